//! The document of a domain that tactus creates. Pure.

use std::path::Path;

use quick_xml::escape::escape;
use tactus_model::CpuSet;
use tactus_tune::generate::libvirt::{Placed, Tree, place};
use tactus_tune::generate::{Accel as Executes, Size};

use crate::Layout;
use crate::support::guest::{Accel, Boot, CHANNEL};

/// The parts of a domain.
pub struct Domain<'a> {
    pub name: &'a str,
    pub boot: &'a Boot,
    pub accel: Accel,
    pub layout: &'a Layout,
    /// vCPUs that get SCHED_FIFO.
    pub fifo: &'a CpuSet,
    /// CPUs for everything but the vCPUs.
    pub housekeeping: &'a CpuSet,
    /// Socket on which its console is awaited.
    pub console: &'a Path,
    /// Socket on which the probe's stream is awaited.
    pub probe: &'a Path,
    /// Variable and value that mark every process of the run.
    pub marker: (&'a str, &'a str),
    /// libvirt's security drivers, as its capabilities name them.
    pub security: &'a [String],
}

/// The document.
///
/// # Errors
/// When it cannot be made: a mistake of ours.
pub fn write(domain: &Domain<'_>) -> Result<String, String> {
    let mut text = skeleton(domain);
    place(
        &mut text,
        &Placed {
            arch: domain.boot.arch,
            accel: if domain.accel == Accel::Kvm { Executes::Kvm } else { Executes::Tcg },
            cpus: domain.layout.cpus.iter().map(|(_, cpu)| *cpu).collect(),
            fifo: domain.fifo,
            emulator: domain.housekeeping,
            memory: Size(domain.boot.memory_mib << 20),
            locked: domain.boot.lock_memory,
        },
    )?;
    Ok(text)
}

/// The parts of any guest of ours: its kernel, a console and the channel. The probe's socket is ours, and QEMU
/// connects to it: so no output is missed.
fn skeleton(domain: &Domain<'_>) -> String {
    let x86 = domain.boot.arch == "x86_64";
    let (machine, features) =
        if x86 { ("q35", "<acpi/><apic/>") } else { ("virt", "<acpi/><gic version='3'/>") };
    let path = |path: &Path| escape(path.display().to_string()).into_owned();
    let (variable, value) = domain.marker;
    let security: String = domain.security.iter().map(|model| label(model)).collect();
    format!(
        "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>{name}</name>
  <os>
    <type arch='{arch}' machine='{machine}'>hvm</type>
    <kernel>{kernel}</kernel>
    <initrd>{initrd}</initrd>
    <cmdline>{words}</cmdline>
  </os>
  <features>
    {features}
  </features>
  <clock offset='utc'/>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <serial type='unix'>
      <source mode='connect' path='{console}'/>
    </serial>
    <channel type='unix'>
      <source mode='connect' path='{probe}'/>
      <target type='virtio' name='{CHANNEL}'/>
    </channel>
  </devices>
{security}  <qemu:commandline>
    <qemu:env name='{variable}' value='{value}'/>
  </qemu:commandline>
</domain>
",
        name = escape(domain.name),
        arch = domain.boot.arch,
        kernel = path(&domain.boot.kernel),
        initrd = path(&domain.boot.initrd),
        words = escape(domain.boot.kernel_words(domain.accel)),
        console = path(domain.console),
        probe = path(domain.probe),
        variable = escape(variable),
        value = escape(value),
    )
}

/// libvirt would run QEMU as a user who may not enter our private directory, or confine it to paths that
/// are not ours: this one runs as we do.
fn label(model: &str) -> String {
    match model {
        "dac" => "  <seclabel type='static' model='dac' relabel='no'>
    <label>+0:+0</label>
  </seclabel>
"
        .into(),
        "none" => String::new(),
        other => format!("  <seclabel type='none' model='{}'/>\n", escape(other)),
    }
}

/// libvirt's security drivers, from its capabilities.
pub fn security(capabilities: &str) -> Vec<String> {
    let Ok(tree) = Tree::parse(capabilities) else { return Vec::new() };
    let Some(host) = tree.find(&["host"]) else { return Vec::new() };
    let drivers = tree.children(host, "secmodel");
    drivers
        .flat_map(|driver| tree.children(driver, "model"))
        .map(|model| model.text.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The output of libvirt 9.0, without its guests.
    const CAPABILITIES: &str = "<capabilities>
  <host>
    <uuid>2ca9da0c-4f5a-4a0d-8be7-cbd5d9b9f0c0</uuid>
    <secmodel>
      <model>none</model>
      <doi>0</doi>
    </secmodel>
    <secmodel>
      <model>dac</model>
      <doi>0</doi>
      <baselabel type='kvm'>+0:+0</baselabel>
      <baselabel type='qemu'>+0:+0</baselabel>
    </secmodel>
  </host>
</capabilities>";

    fn boot() -> Boot {
        Boot {
            arch: "x86_64",
            kernel: "/k/vmlinux".into(),
            initrd: "/w/a & b/initramfs".into(),
            cmdline: "isolcpus=1 dyndbg=\"file <x> +p\"".into(),
            memory_mib: 512,
            lock_memory: false,
        }
    }

    fn document(boot: &Boot, accel: Accel, fifo: &str, security: &[String]) -> String {
        let layout = Layout { cpus: vec![(0, 0), (1, 2)], measuring: CpuSet::one(1) };
        write(&Domain {
            name: "tactus-1-guest",
            boot,
            accel,
            layout: &layout,
            fifo: &fifo.parse().unwrap(),
            housekeeping: &"0-1".parse().unwrap(),
            console: Path::new("/w/c"),
            probe: Path::new("/w/p"),
            marker: ("TACTUS_RUN", "1"),
            security,
        })
        .unwrap()
    }

    #[test]
    fn a_domain_of_ours_is_placed_as_the_generator_places_one() {
        insta::assert_snapshot!("emulated", document(&boot(), Accel::Tcg, "1", &security(CAPABILITIES)));
        let locked = Boot { lock_memory: true, ..boot() };
        let security = ["selinux".to_owned(), "dac".to_owned()];
        insta::assert_snapshot!("accelerated", document(&locked, Accel::Kvm, "", &security));
    }

    #[test]
    fn security_drivers_are_read_from_the_capabilities() {
        assert_eq!(security(CAPABILITIES), ["none", "dac"]);
        assert!(security("").is_empty() && security("<capabilities/>").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_readers_panic(text in "[<>/a-z='\" \\n]{0,200}") {
            let _ = security(&text);
        }

        #[test]
        fn whatever_the_plan_says_the_domain_is_one_document(words in ".{0,80}", name in "[ -~]{1,40}") {
            let boot = Boot { cmdline: words, initrd: format!("/w/{name}").into(), ..boot() };
            let text = document(&boot, Accel::Tcg, "1", &[]);
            let tree = Tree::parse(&text).unwrap();
            prop_assert_eq!(tree.root().name.as_str(), "domain");
            prop_assert!(tree.find(&["os", "initrd"]).is_some() && tree.find(&["cputune", "vcpusched"]).is_some());
        }
    }
}
