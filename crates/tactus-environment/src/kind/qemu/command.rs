//! The command line of QEMU. Pure.

use std::path::{Path, PathBuf};

use tactus_model::plan::GuestDevice;

use crate::network::TAP;
use crate::support::guest::{Accel, Boot, CHANNEL};

/// What QEMU is to run.
#[derive(Clone, Debug)]
pub struct Machine {
    pub boot: Boot,
    /// Name of the machine; its threads bear it.
    pub name: String,
    pub accel: Accel,
    /// Whether it may do no more than run the guest: not every QEMU is built so that it can be told.
    pub sandbox: bool,
    pub cpus: usize,
    /// What it has of a network.
    pub nic: Option<GuestDevice>,
    /// Socket on which the guest's console is awaited.
    pub console: PathBuf,
    /// Socket on which the probe's stream is awaited.
    pub probe: PathBuf,
    /// Socket on which QEMU's monitor is awaited.
    pub monitor: PathBuf,
}

/// What QEMU may not do any more once it runs (seccomp).
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// The program that emulates an architecture.
pub fn program(arch: &str) -> String {
    format!("qemu-system-{arch}")
}

impl Machine {
    /// QEMU's words.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![program(self.boot.arch)];
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        add(&["-name", &format!("guest={},debug-threads=on", self.name)]);
        // Nothing but what the guest needs: every device costs boot time and may take time later.
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        // Whoever breaks out of the guest finds a QEMU that starts nothing, gains nothing and places nothing: its
        // threads are placed from here, by their ids.
        if self.sandbox {
            add(&["-sandbox", SANDBOX]);
        }
        let memory = if self.boot.lock_memory { ",memory-backend=ram" } else { "" };
        let (machine, accel, cpu) = match (self.boot.arch, self.accel) {
            ("aarch64", Accel::Kvm) => ("virt,gic-version=host", "kvm", "host"),
            // `max` has pointer authentication, which takes an emulated guest three times as long to boot.
            ("aarch64", Accel::Tcg) => ("virt,gic-version=3", "tcg,thread=multi", "cortex-a57"),
            (_, Accel::Kvm) => ("q35", "kvm", "host"),
            // Without hpet the guest's clock is the TSC, which an emulated guest reads without an exit.
            (_, Accel::Tcg) => ("q35,hpet=off", "tcg,thread=multi", "max"),
        };
        add(&["-machine", &format!("{machine}{memory}"), "-accel", accel, "-cpu", cpu]);
        add(&["-smp", &format!("cpus={0},sockets=1,cores={0},threads=1", self.cpus)]);
        add(&["-m", &format!("{}M", self.boot.memory_mib)]);
        if self.boot.lock_memory {
            add(&[
                "-object",
                &format!("memory-backend-ram,id=ram,size={}M,prealloc=on", self.boot.memory_mib),
            ]);
            add(&["-overcommit", "mem-lock=on"]);
        }
        add(&[
            "-kernel",
            &text(&self.boot.kernel),
            "-initrd",
            &text(&self.boot.initrd),
            "-append",
            &self.boot.kernel_words(self.accel),
        ]);
        add(&[
            "-chardev",
            &format!("socket,id=console,path={}", value(&self.console)),
            "-serial",
            "chardev:console",
        ]);
        add(&["-device", "virtio-serial-pci,max_ports=2"]);
        add(&["-chardev", &format!("socket,id=probe,path={}", value(&self.probe))]);
        add(&["-device", &format!("virtserialport,chardev=probe,name={CHANNEL}")]);
        if let Some(nic) = self.nic {
            let (backend, device) = network(nic);
            add(&["-netdev", &backend, "-device", device]);
        }
        add(&[
            "-chardev",
            &format!("socket,id=monitor,path={}", value(&self.monitor)),
            "-mon",
            "chardev=monitor,mode=control",
        ]);
        words
    }
}

/// Both sides of a network device: QEMU emulates it, or leaves it to the kernel.
fn network(nic: GuestDevice) -> (String, &'static str) {
    let (vhost, device) = match nic {
        // Each notification of the guest ends in QEMU.
        GuestDevice::Virtio => ("off", "virtio-net-pci,netdev=net,ioeventfd=off"),
        GuestDevice::Vhost => ("on", "virtio-net-pci,netdev=net"),
        GuestDevice::E1000 | GuestDevice::Vfio => ("off", "e1000,netdev=net"),
    };
    (format!("tap,id=net,ifname={TAP},script=no,downscript=no,vhost={vhost}"), device)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A path as the value of an option: QEMU reads two commas as one.
fn value(path: &Path) -> String {
    text(path).replace(',', ",,")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::kind::qemu) fn machine() -> Machine {
        let boot = Boot {
            arch: "x86_64",
            kernel: "/k/vmlinux".into(),
            initrd: "/w/initramfs".into(),
            cmdline: "isolcpus=1  nohz_full=1".into(),
            memory_mib: 512,
            lock_memory: false,
        };
        Machine {
            boot,
            name: "tactus-1-guest".into(),
            accel: Accel::Tcg,
            sandbox: true,
            cpus: 2,
            nic: None,
            console: "/w/a, b/c".into(),
            probe: "/w/p".into(),
            monitor: "/w/m".into(),
        }
    }

    #[test]
    fn the_plans_words_come_last_and_commas_in_paths_survive() {
        let words = machine().words();
        let append = words.iter().position(|word| word == "-append").unwrap();
        assert_eq!(
            words[append + 1],
            "console=ttyS0 panic=-1 cryptomgr.notests reboot=t tsc=reliable clocksource=tsc isolcpus=1 nohz_full=1"
        );
        assert!(words.contains(&"socket,id=console,path=/w/a,, b/c".to_owned()), "{words:?}");
    }

    #[test]
    fn a_guest_has_a_network_only_where_it_is_on_a_path_and_emulated_virtio_is_emulated_throughout() {
        assert!(!machine().words().join(" ").contains("-netdev"));
        let words = |nic| Machine { nic: Some(nic), ..machine() }.words().join(" ");
        let virtio = words(GuestDevice::Virtio);
        assert!(virtio.contains("ifname=tap0") && virtio.contains("vhost=off"), "{virtio}");
        assert!(virtio.contains("virtio-net-pci,netdev=net,ioeventfd=off"), "{virtio}");
        assert!(words(GuestDevice::Vhost).contains("vhost=on"));
        assert!(words(GuestDevice::E1000).contains("e1000,netdev=net"));
    }

    #[test]
    fn only_an_emulated_guest_is_told_what_its_clock_is() {
        let base = machine();
        let locked = Boot { lock_memory: true, ..base.boot.clone() };
        let kvm = Machine { boot: locked, accel: Accel::Kvm, ..base.clone() }.words().join(" ");
        assert!(
            !kvm.contains("clocksource") && kvm.contains("-accel kvm") && kvm.contains("mem-lock=on"),
            "{kvm}"
        );
        let arm = Boot { arch: "aarch64", ..base.boot.clone() };
        let arm = Machine { boot: arm, ..base }.words().join(" ");
        assert!(
            arm.starts_with("qemu-system-aarch64") && arm.contains("ttyAMA0") && !arm.contains("tsc"),
            "{arm}"
        );
    }
}
