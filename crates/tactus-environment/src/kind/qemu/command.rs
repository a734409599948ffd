//! The command line of QEMU. Pure.

use std::path::{Path, PathBuf};

use tactus_model::plan::GuestDevice;
use tactus_model::wire::clock_page;
use tactus_system::System;

use crate::Usable;
use crate::attachment::{GuestNic, Tap};
use crate::kernel::OWN;
use crate::network::{MAC, TAP};
use crate::support::guest::devices::GuestPci;
use crate::support::guest::{Accel, Boot, CHANNEL};

/// The machine that QEMU runs.
#[derive(Clone, Debug)]
pub struct Machine {
    pub boot: Boot,
    /// Name of the machine; its threads bear it.
    pub name: String,
    pub accel: Accel,
    /// Whether it may do no more than run the guest: not every QEMU is built so that it can be told.
    pub sandbox: bool,
    pub cpus: usize,
    /// Its NIC.
    pub nic: Option<GuestNic>,
    /// Where its interrupt card is to be had.
    pub card: Option<PathBuf>,
    /// Where the page of memory is in which it shows its clock.
    pub clock: Option<PathBuf>,
    /// Devices that a measurement in it may drive.
    pub pci: Vec<GuestPci>,
    pub sockets: Sockets,
}

/// Sockets on which QEMU's ends are awaited.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// The guest's console.
    pub console: PathBuf,
    /// The probe's stream.
    pub probe: PathBuf,
    /// QEMU's monitor.
    pub monitor: PathBuf,
}

impl Sockets {
    /// Those of an environment, in its private directory.
    pub fn within(workspace: &Path) -> Self {
        let at = |name| workspace.join(name);
        Self { console: at("console.sock"), probe: at("probe.sock"), monitor: at("qmp.sock") }
    }
}

/// The system calls that QEMU may not use once it runs (seccomp).
pub const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// The program that emulates an architecture.
pub fn program(arch: &str) -> String {
    format!("qemu-system-{arch}")
}

/// RHEL's QEMU, of this machine's architecture only; no PATH leads to it.
const OF_RHEL: &str = "/usr/libexec/qemu-kvm";

/// Where a program of QEMU's is, if it is installed.
pub fn find(program: &str, system: &dyn System) -> Option<PathBuf> {
    let of_rhel = || system.find_program(OF_RHEL).filter(|_| program == self::program(OWN));
    system.find_program(program).or_else(of_rhel)
}

/// That QEMU is not installed for an architecture, and what would install it.
pub fn missing(arch: &str, system: &dyn System) -> Option<Usable> {
    let program = program(arch);
    if find(&program, system).is_some() {
        return None;
    }
    let (debian, fedora) = match arch {
        "aarch64" => ("qemu-system-arm", "qemu-system-aarch64"),
        _ => ("qemu-system-x86", "qemu-system-x86"),
    };
    Some(Usable::No {
        reason: format!("{program} is not installed"),
        remedy: format!(
            "install QEMU (Debian, Ubuntu: `apt-get install --no-install-recommends {debian}`; Fedora: `dnf install {fedora}-core`; \
RHEL: `dnf install qemu-kvm-core`; Arch: `pacman -S {fedora}`)"
        ),
    })
}

impl Machine {
    /// QEMU's words.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![program(self.boot.arch)];
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        add(&["-name", &format!("guest={},debug-threads=on", self.name)]);
        // Nothing but what the guest needs: every device costs boot time and may take time later.
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        // An attacker who breaks out of the guest then finds a QEMU that cannot start programs, gain rights or place
        // threads: tactus places its threads from outside, by their ids.
        if self.sandbox {
            add(&["-sandbox", SANDBOX]);
        }
        let memory = if self.boot.lock_memory { ",memory-backend=ram" } else { "" };
        let (machine, accel, cpu) = match (self.boot.arch, self.accel) {
            ("aarch64", Accel::Kvm) => ("virt,gic-version=host", "kvm", "host"),
            // Interrupts of a device that is emulated throughout end in QEMU, too.
            (_, Accel::Kvm) if self.emulates_throughout() => ("q35", "kvm,kernel-irqchip=off", "host"),
            // `max` has pointer authentication, with which an emulated guest boots three times slower.
            ("aarch64", Accel::Tcg) => ("virt,gic-version=3", "tcg,thread=multi", "cortex-a57"),
            (_, Accel::Kvm) => ("q35", "kvm", "host"),
            // Without hpet the guest's clock is the TSC, which an emulated guest reads without an exit.
            (_, Accel::Tcg) => ("q35,hpet=off", "tcg,thread=multi", "max"),
        };
        // A guest whose programs drive a device without the kernel needs an IOMMU that confines it.
        let kept_in = self.card.is_some() || !self.pci.is_empty();
        let split = if kept_in { ",kernel-irqchip=split" } else { "" };
        add(&["-machine", &format!("{machine}{memory}{split}"), "-accel", accel, "-cpu", cpu]);
        if kept_in {
            // QEMU must learn which memory the guest lets a device of this machine reach, to allow it as well.
            let own = self.pci.iter().any(|device| matches!(device, GuestPci::Own(_)));
            let heard = if own { ",caching-mode=on" } else { "" };
            add(&["-device", &format!("intel-iommu,intremap=on{heard}")]);
        }
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
        add(&["-chardev", &socket("console", &self.sockets.console), "-serial", "chardev:console"]);
        add(&["-device", "virtio-serial-pci,max_ports=2"]);
        add(&["-chardev", &socket("probe", &self.sockets.probe)]);
        add(&["-device", &format!("virtserialport,chardev=probe,name={CHANNEL}")]);
        if let Some(nic) = self.nic {
            let (backend, device) = network(nic);
            add(&["-netdev", &backend, "-device", &device]);
        }
        for device in &self.pci {
            match device {
                GuestPci::Emulated(name) => add(&["-device", name]),
                GuestPci::Own(address) => add(&["-device", &format!("vfio-pci,host={address}")]),
            }
        }
        if let Some(at) = &self.card {
            add(&card(at).each_ref().map(String::as_str));
        }
        if let Some(at) = &self.clock {
            add(&clock_page(at).each_ref().map(String::as_str));
        }
        add(&["-chardev", &socket("monitor", &self.sockets.monitor), "-mon", "chardev=monitor,mode=control"]);
        words
    }

    /// Whether its network is left to QEMU alone.
    fn emulates_throughout(&self) -> bool {
        self.nic.is_some_and(|nic| nic.device == GuestDevice::Virtio)
    }
}

/// Both sides of a network device: QEMU emulates it, or leaves it to the kernel.
fn network(nic: GuestNic) -> (String, String) {
    let (vhost, device) = match nic.device {
        // Each notification of the guest ends in QEMU.
        GuestDevice::Virtio => ("off", "virtio-net-pci,ioeventfd=off"),
        // The kernel takes them, and raises the guest's interrupts itself (irqfd).
        GuestDevice::Vhost => ("on", "virtio-net-pci,ioeventfd=on"),
        GuestDevice::E1000 | GuestDevice::Vfio => ("off", "e1000"),
    };
    let tap = match nic.tap {
        Tap::Named => format!("ifname={TAP},script=no,downscript=no"),
        Tap::File => "fd=3".to_owned(),
    };
    (format!("tap,id=net,{tap},vhost={vhost}"), format!("{device},netdev=net,mac={MAC}"))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The interrupt card that is to be had there.
pub fn card(at: &Path) -> [String; 4] {
    ["-chardev", &socket("card", at), "-device", "ivshmem-doorbell,vectors=1,chardev=card"].map(str::to_owned)
}

/// The page of memory that is to be had there.
fn clock_page(at: &Path) -> [String; 4] {
    let memory = format!(
        "memory-backend-file,id=clock,mem-path={},size={},share=on",
        text(at).replace(',', ",,"),
        clock_page::BYTES
    );
    ["-object", &memory, "-device", "ivshmem-plain,memdev=clock"].map(str::to_owned)
}

/// A channel by a socket. QEMU reads two commas in the value of an option as one.
pub fn socket(id: &str, path: &Path) -> String {
    format!("socket,id={id},path={}", text(path).replace(',', ",,"))
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
            card: None,
            clock: None,
            pci: Vec::new(),
            sockets: Sockets { console: "/w/a, b/c".into(), probe: "/w/p".into(), monitor: "/w/m".into() },
        }
    }

    #[test]
    fn the_plans_words_come_last_and_commas_in_paths_survive() {
        let words = machine().words();
        let append = words.iter().position(|word| word == "-append").unwrap();
        assert_eq!(
            words[append + 1],
            "console=ttyS0 panic=-1 cryptomgr.notests reboot=t no_timer_check tsc=reliable clocksource=tsc isolcpus=1 nohz_full=1"
        );
        assert!(words.contains(&"socket,id=console,path=/w/a,, b/c".to_owned()), "{words:?}");
    }

    #[test]
    fn a_guest_has_a_network_only_where_it_is_on_a_path_and_emulated_virtio_is_emulated_throughout() {
        assert!(!machine().words().join(" ").contains("-netdev"));
        let with = |device, tap, accel| {
            let nic = Some(GuestNic { device, tap });
            Machine { nic, accel, ..machine() }.words().join(" ")
        };
        let words = |device| with(device, Tap::Named, Accel::Kvm);
        let virtio = words(GuestDevice::Virtio);
        assert!(virtio.contains("ifname=tap0") && virtio.contains("vhost=off"), "{virtio}");
        assert!(virtio.contains("virtio-net-pci,ioeventfd=off,netdev=net"), "{virtio}");
        assert!(virtio.contains("-accel kvm,kernel-irqchip=off"), "{virtio}");
        let vhost = words(GuestDevice::Vhost);
        assert!(vhost.contains("vhost=on") && vhost.contains("ioeventfd=on"), "{vhost}");
        assert!(!vhost.contains("irqchip"), "{vhost}");
        assert!(words(GuestDevice::E1000).contains("e1000,netdev=net"));
        let file = with(GuestDevice::Virtio, Tap::File, Accel::Tcg);
        assert!(file.contains("tap,id=net,fd=3") && !file.contains("ifname"), "{file}");
        assert!(file.contains(&format!("mac={MAC}")) && !file.contains("irqchip"), "{file}");
    }

    #[test]
    fn a_guest_with_a_card_has_an_iommu_before_it() {
        let plain = machine().words().join(" ");
        assert!(!plain.contains("iommu") && !plain.contains("ivshmem"), "{plain}");
        let words = Machine { card: Some("/w/card.sock".into()), ..machine() }.words();
        let at = |beginning: &str| words.iter().position(|word| word.starts_with(beginning)).unwrap();
        assert!(at("intel-iommu") < at("ivshmem-doorbell"), "{words:?}");
        assert!(words[at("q35")].ends_with("kernel-irqchip=split"), "{words:?}");
    }

    #[test]
    fn a_guest_that_shows_its_clock_needs_no_iommu_for_it() {
        let words = Machine { clock: Some("/proc/7/fd/9".into()), ..machine() }.words().join(" ");
        let memory = "-object memory-backend-file,id=clock,mem-path=/proc/7/fd/9,size=4096,share=on";
        assert!(words.contains(&format!("{memory} -device ivshmem-plain,memdev=clock")), "{words}");
        assert!(!words.contains("iommu") && !words.contains("irqchip"), "{words}");
    }

    #[test]
    fn a_guest_with_a_device_to_drive_has_an_iommu_before_it_that_hears_of_this_machines() {
        let with = |pci| Machine { pci, ..machine() }.words().join(" ");
        let edu = with(vec![GuestPci::Emulated("edu")]);
        assert!(edu.contains("kernel-irqchip=split") && !edu.contains("caching-mode"), "{edu}");
        assert!(edu.find("intel-iommu,intremap=on").unwrap() < edu.find("-device edu").unwrap(), "{edu}");
        let own = with(vec![GuestPci::Own("0000:03:00.0".parse().unwrap())]);
        assert!(own.contains("intel-iommu,intremap=on,caching-mode=on"), "{own}");
        assert!(own.contains("-device vfio-pci,host=0000:03:00.0"), "{own}");
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
