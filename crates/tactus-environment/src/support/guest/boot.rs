//! The parts that a guest boots: a kernel, an initramfs that contains the probe, and the kernel's parameters.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::message::Note;
use tactus_model::plan::{self, GuestDevice};
use tactus_system::System;
use tactus_system::probe;

use super::{Accel, devices, initramfs};
use crate::kernel::{self, Kernel, card_module};
use crate::support::{self, cannot, profiled, programs};
use crate::{OptionError, Setting, StartError};

/// This machine's architecture.
pub use crate::kernel::OWN;
/// Those that a guest can have.
const ARCHS: [&str; 2] = ["x86_64", "aarch64"];
/// The memory of a guest whose plan does not say.
const MEMORY: &str = "512MiB";
const MEMORY_HINT: &str = "a size of at least 64MiB, as 512MiB or 2GiB";
/// A distribution's kernel does not boot with less.
const LEAST_MIB: u64 = 64;
/// More than any machine has; QEMU would refuse it with a worse message.
const MOST_MIB: u64 = 1 << 24;
/// How long a guest under KVM may take to its first word before it is tried without: it needs two
/// seconds, and where KVM does not work it never speaks.
pub const KVM_PATIENCE: Duration = Duration::from_secs(20);
/// The same for an emulated one, which comes up in five seconds, or in twenty on a loaded machine.
pub const TCG_PATIENCE: Duration = Duration::from_secs(45);
/// Drivers of the channel to the probe.
const MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];

/// Drivers by which a process has a device.
const CARD_MODULES: [&str; 2] = ["vfio_iommu_type1", "vfio_pci"];
/// The parameter that switches on the IOMMU, which confines the card.
const CARD_WORDS: &str = "intel_iommu=on";

/// The parts that a guest boots.
#[derive(Clone, Debug)]
pub struct Boot {
    /// `x86_64` or `aarch64`.
    pub arch: &'static str,
    pub kernel: PathBuf,
    pub initrd: PathBuf,
    /// Words of the plan for the kernel.
    pub cmdline: String,
    pub memory_mib: u64,
    pub lock_memory: bool,
}

impl Boot {
    /// The kernel's words. The plan's come last: they win.
    pub fn kernel_words(&self, accel: Accel) -> String {
        let console = if self.arch == "aarch64" { "console=ttyAMA0" } else { "console=ttyS0" };
        // A panic ends QEMU (with -no-reboot), and so the scenario, with the console as its witness.
        // The self-tests of the kernel's cryptography take an emulated guest half a second.
        let mut words = vec![console, "panic=-1", "cryptomgr.notests"];
        if self.arch == "x86_64" {
            words.push("reboot=t");
            if accel == Accel::Tcg {
                // Where the machine is busy no tick may come in the 10 ms in which the kernel waits for some; it panics then.
                words.extend(["no_timer_check", "tsc=reliable", "clocksource=tsc"]);
            }
        }
        words.extend(self.cmdline.split_whitespace());
        words.join(" ")
    }
}

/// The architecture that a plan wants.
///
/// # Errors
/// When no guest has this architecture.
pub fn arch(spec: &plan::Environment) -> Result<&'static str, OptionError> {
    let wanted = support::word(spec, "arch", &ARCHS)?.unwrap_or(OWN);
    Ok(ARCHS.into_iter().find(|arch| *arch == wanted).unwrap_or(OWN))
}

/// A size such as `512MiB`, `2GiB`, `512M` or `2G`, in MiB.
fn mebibytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim() {
        "MiB" | "M" => 1,
        "GiB" | "G" => 1024,
        _ => return None,
    };
    number.checked_mul(factor).filter(|mib| (LEAST_MIB..=MOST_MIB).contains(mib))
}

/// The guest's memory, in MiB.
///
/// # Errors
/// When the plan's size cannot be parsed.
pub fn memory(spec: &plan::Environment) -> Result<u64, OptionError> {
    let text = support::text(spec, "memory", MEMORY_HINT)?.unwrap_or(MEMORY);
    mebibytes(text).ok_or_else(|| OptionError {
        key: "memory".into(),
        message: format!("`memory` cannot be {text:?}"),
        hint: MEMORY_HINT.into(),
    })
}

/// Checks the keys of [`super::keys`].
///
/// # Errors
/// The first that is wrong.
pub fn check(spec: &plan::Environment, system: &dyn System) -> Result<(), OptionError> {
    support::text(spec, "cmdline", "a text of kernel parameters")?;
    let wanted = super::accel::wanted(spec)?;
    let arch = arch(spec)?;
    if wanted == "kvm" && arch != OWN {
        return Err(OptionError {
            key: "accel".into(),
            message: format!("`accel` cannot be kvm: this machine is {OWN}, but the guest {arch}"),
            hint: "leave out `accel`: a guest of another architecture is emulated (TCG)".into(),
        });
    }
    support::boolean(spec, "lock_memory")?;
    profiled::written(spec)?;
    if !programs::named(spec)?.is_empty() && arch != OWN {
        return Err(OptionError {
            key: "programs".into(),
            message: format!(
                "programs of this machine ({OWN}) do not run in a guest of another architecture ({arch})"
            ),
            hint: "leave out `programs` or `arch`".into(),
        });
    }
    if !devices::named(spec)?.is_empty() && arch != "x86_64" {
        return Err(OptionError {
            key: "pci".into(),
            message: format!("devices to measure need an Intel IOMMU, which a guest of {arch} does not have"),
            hint: "leave out `pci`, or use a guest of x86_64".into(),
        });
    }
    support::boot_timeout(spec)?;
    memory(spec)?;
    // A kernel that is merely not there is this machine's lack, not the plan's fault.
    if let Some(path) = support::text(spec, "kernel", "a name of `tactus kernel list`, or a path")?
        && path.contains('/')
        && system.exists(Path::new(path))
    {
        kernel::find(path, arch, system).map_err(|error| OptionError {
            key: "kernel".into(),
            message: error.reason,
            hint: error.hint.unwrap_or_default(),
        })?;
    }
    Ok(())
}

/// The kernel that a plan wants.
///
/// # Errors
/// When it is not here.
pub fn wanted_kernel(spec: &plan::Environment, system: &dyn System) -> Result<Kernel, StartError> {
    let arch = arch(spec)?;
    match support::text(spec, "kernel", "a name or a path")? {
        Some(wanted) => kernel::find(wanted, arch, system),
        None => kernel::chosen(arch, system),
    }
}

/// Gathers what a guest boots; the initramfs is written on the way.
///
/// # Errors
/// When something is missing, with what it is.
pub fn prepare(setting: &Setting<'_>, accel: Accel, notes: &mut Vec<Note>) -> Result<Boot, StartError> {
    let (system, spec) = (setting.system, setting.spec);
    let arch = arch(spec)?;
    let kernel = wanted_kernel(spec, system)?;
    let probe = probe::bytes(arch).ok_or_else(|| cannot("no probe", format!("none was built for {arch}")))?;
    let mut modules = kernel::needed(kernel.modules_dir.as_deref(), &wanted_modules(setting), system)
        .map_err(|error| cannot("kernel module", error))?;
    if setting.card.as_ref().is_some_and(|card| card.by == AnswerBy::Kernel) {
        modules.push(card_module::build(&kernel, setting.workspace, setting.guardian, system)?);
    }
    let bootable = kernel::bootable(&kernel.path, system)
        .map_err(|error| cannot(&kernel.path.display().to_string(), error))?;
    if let Some(why) = &bootable.why_not {
        notes.push(Note::info(format!("the kernel boots compressed, which takes longer: {why}")));
    }
    let initrd = setting.workspace.join("initramfs.cpio");
    let programs = programs::collect(&programs::named(spec)?, system)?;
    let archive = initramfs::write(probe, &modules, kernel.config(system).as_ref(), &programs);
    system.write(&initrd, &archive).map_err(|error| cannot(&initrd.display().to_string(), error))?;
    notes.push(Note::info(format!(
        "the guest's kernel is {} ({})",
        kernel.name,
        if kernel.preempt_rt { "PREEMPT_RT" } else { "not PREEMPT_RT" }
    )));
    Ok(Boot {
        arch,
        kernel: bootable.path,
        initrd,
        cmdline: cmdline(setting, arch, accel, notes)?,
        memory_mib: memory(spec)?,
        lock_memory: support::boolean(spec, "lock_memory")?.unwrap_or(false),
    })
}

/// Drivers of the probe's channel, of the network that it is on, and of its interrupt card.
fn wanted_modules(setting: &Setting<'_>) -> Vec<&'static str> {
    let nic = setting.network.and_then(|place| place.nic).map(|nic| match nic.device {
        GuestDevice::Virtio | GuestDevice::Vhost => "virtio_net",
        GuestDevice::E1000 | GuestDevice::Vfio => "e1000",
    });
    let by_process = setting.card.as_ref().is_some_and(|card| card.by != AnswerBy::Kernel);
    let card = (by_process || has_devices(setting)).then_some(CARD_MODULES).into_iter().flatten();
    MODULES.into_iter().chain(nic).chain(card).collect()
}

/// Whether it has devices for a measurement to drive.
fn has_devices(setting: &Setting<'_>) -> bool {
    devices::named(setting.spec).is_ok_and(|devices| !devices.is_empty())
}

/// The profile's words and then the plan's: of two for one parameter the kernel takes the last.
fn cmdline(
    setting: &Setting<'_>,
    arch: &str,
    accel: Accel,
    notes: &mut Vec<Note>,
) -> Result<String, OptionError> {
    let own = support::text(setting.spec, "cmdline", "")?.unwrap_or_default();
    let card = if setting.card.is_some() || has_devices(setting) { CARD_WORDS } else { "" };
    let own = format!("{card} {own}").trim().to_owned();
    let Some(profiled) = profiled::of(setting.spec, setting.layout)? else { return Ok(own) };
    let words = profiled.kernel_words(&vendor(arch, accel, setting.system));
    notes.push(Note::info(format!(
        "profile {} added to the kernel's command line: {words}",
        profiled.profile.name
    )));
    Ok(format!("{words} {own}").trim_end().to_owned())
}

/// The maker of the guest's processor: KVM shows the machine's own, QEMU's `max` says AuthenticAMD.
fn vendor(arch: &str, accel: Accel, system: &dyn System) -> String {
    match accel {
        _ if arch != "x86_64" => String::new(),
        Accel::Tcg => "AuthenticAMD".into(),
        Accel::Kvm => {
            let info = system.text("/proc/cpuinfo").unwrap_or_default();
            let line = info.lines().find(|line| line.starts_with("vendor_id"));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, name)| name.trim().to_owned())
                .unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tactus_system::Memory;

    use super::*;

    fn spec(keys: &[(&str, serde_json::Value)]) -> plan::Environment {
        let options = keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        plan::Environment { kind: "qemu".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn keys_with_wrong_values_are_refused_before_anything_starts() {
        let machine = Memory::new().file("/k/no-kernel", "text");
        for (key, value) in [
            ("memory", json!("lots")),
            ("memory", json!("1KiB")),
            ("accel", json!("hvf")),
            ("arch", json!("riscv64")),
            ("lock_memory", json!("yes")),
            ("boot_timeout", json!(20)),
            ("kernel", json!("/k/no-kernel")),
            ("cmdline", json!(["quiet"])),
            ("profile", json!("fast")),
            ("isolate", json!("1")),
            ("pci", json!(["e1000"])),
        ] {
            let error = check(&spec(&[(key, value.clone())]), &machine).expect_err(key);
            assert_eq!(error.key, key);
            assert!(!error.hint.is_empty(), "{key} = {value}");
        }
        assert!(
            check(&spec(&[("kernel", json!("/not/here"))]), &machine).is_ok(),
            "that is this machine's lack"
        );
    }

    #[test]
    fn a_guest_of_another_architecture_cannot_have_kvm() {
        let other = if OWN == "x86_64" { "aarch64" } else { "x86_64" };
        let error =
            check(&spec(&[("arch", json!(other)), ("accel", json!("kvm"))]), &Memory::new()).unwrap_err();
        assert_eq!(error.key, "accel");
        assert_eq!(arch(&spec(&[])), Ok(OWN));
        assert_eq!(arch(&spec(&[("arch", json!(other))])), Ok(other));
    }

    #[test]
    fn sizes_are_read_with_their_unit() {
        assert_eq!(mebibytes("512MiB"), Some(512));
        assert_eq!(mebibytes("2G"), Some(2048));
        for wrong in ["", "512", "1KiB", "-1G", "99999999999999999999G", "4MiB", "18446744073709551615G", "G"]
        {
            assert_eq!(mebibytes(wrong), None, "{wrong}");
        }
    }
}
