//! The command line of QEMU, and of the kernel in it. Pure.

use std::path::{Path, PathBuf};

use super::accel::Accel;

/// What QEMU is to run.
#[derive(Clone, Debug)]
pub struct Machine {
    /// `x86_64` or `aarch64`.
    pub arch: &'static str,
    /// Name of the machine; its threads bear it.
    pub name: String,
    pub accel: Accel,
    pub kernel: PathBuf,
    pub initrd: PathBuf,
    /// Words of the plan for the kernel.
    pub cmdline: String,
    pub cpus: usize,
    pub memory_mib: u64,
    pub lock_memory: bool,
    /// File for the guest's console.
    pub console: PathBuf,
    /// Socket on which the probe's stream is awaited.
    pub probe: PathBuf,
    /// Socket on which QEMU's monitor is awaited.
    pub monitor: PathBuf,
}

/// What the value of `memory` looks like.
pub const MEMORY_HINT: &str = "a size of at least 64MiB, as 512MiB or 2GiB";
/// A distribution's kernel does not boot with less.
const LEAST_MIB: u64 = 64;
/// More than any machine has; QEMU would refuse it with a worse message.
const MOST_MIB: u64 = 1 << 24;

/// The program that emulates an architecture.
pub fn program(arch: &str) -> String {
    format!("qemu-system-{arch}")
}

/// A size such as `512MiB`, `2GiB`, `512M` or `2G`, in MiB.
pub fn mebibytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim() {
        "MiB" | "M" => 1,
        "GiB" | "G" => 1024,
        _ => return None,
    };
    number.checked_mul(factor).filter(|mib| (LEAST_MIB..=MOST_MIB).contains(mib))
}

impl Machine {
    /// QEMU's words.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![program(self.arch)];
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        add(&["-name", &format!("guest={},debug-threads=on", self.name)]);
        // Nothing but what the guest needs: every device costs boot time and may take time later.
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        let memory = if self.lock_memory { ",memory-backend=ram" } else { "" };
        let (machine, accel, cpu) = match (self.arch, self.accel) {
            ("aarch64", Accel::Kvm) => ("virt,gic-version=host", "kvm", "host"),
            ("aarch64", Accel::Tcg) => ("virt,gic-version=3", "tcg,thread=multi", "max"),
            (_, Accel::Kvm) => ("q35", "kvm", "host"),
            // Without hpet the guest's clock is the TSC, which an emulated guest reads without an exit.
            (_, Accel::Tcg) => ("q35,hpet=off", "tcg,thread=multi", "max"),
        };
        add(&["-machine", &format!("{machine}{memory}"), "-accel", accel, "-cpu", cpu]);
        add(&["-smp", &format!("cpus={0},sockets=1,cores={0},threads=1", self.cpus)]);
        add(&["-m", &format!("{}M", self.memory_mib)]);
        if self.lock_memory {
            add(&["-object", &format!("memory-backend-ram,id=ram,size={}M,prealloc=on", self.memory_mib)]);
            add(&["-overcommit", "mem-lock=on"]);
        }
        add(&[
            "-kernel",
            &text(&self.kernel),
            "-initrd",
            &text(&self.initrd),
            "-append",
            &self.kernel_words(),
        ]);
        add(&[
            "-chardev",
            &format!("file,id=console,path={}", value(&self.console)),
            "-serial",
            "chardev:console",
        ]);
        add(&["-device", "virtio-serial-pci,max_ports=2"]);
        add(&["-chardev", &format!("socket,id=probe,path={}", value(&self.probe))]);
        add(&["-device", "virtserialport,chardev=probe,name=org.tactus.probe"]);
        add(&[
            "-chardev",
            &format!("socket,id=monitor,path={}", value(&self.monitor)),
            "-mon",
            "chardev=monitor,mode=control",
        ]);
        words
    }

    /// The kernel's words. The plan's come last: they win.
    fn kernel_words(&self) -> String {
        let console = if self.arch == "aarch64" { "console=ttyAMA0" } else { "console=ttyS0" };
        // A panic ends QEMU (with -no-reboot), and so the scenario, with the console as its witness.
        // The self-tests of the kernel's cryptography take an emulated guest half a second.
        let mut words = vec![console, "panic=-1", "cryptomgr.notests"];
        if self.arch == "x86_64" {
            words.push("reboot=t");
            if self.accel == Accel::Tcg {
                words.extend(["tsc=reliable", "clocksource=tsc"]);
            }
        }
        words.extend(self.cmdline.split_whitespace());
        words.join(" ")
    }
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

    pub(in crate::environment::qemu) fn machine() -> Machine {
        Machine {
            arch: "x86_64",
            name: "tactus-1-guest".into(),
            accel: Accel::Tcg,
            kernel: "/k/vmlinux".into(),
            initrd: "/w/initramfs".into(),
            cmdline: "isolcpus=1  nohz_full=1".into(),
            cpus: 2,
            memory_mib: 512,
            lock_memory: false,
            console: "/runs/a, b/console.log".into(),
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
        assert!(words.contains(&"file,id=console,path=/runs/a,, b/console.log".to_owned()), "{words:?}");
    }

    #[test]
    fn only_an_emulated_guest_is_told_what_its_clock_is() {
        let kvm = Machine { accel: Accel::Kvm, lock_memory: true, ..machine() }.words().join(" ");
        assert!(
            !kvm.contains("clocksource") && kvm.contains("-accel kvm") && kvm.contains("mem-lock=on"),
            "{kvm}"
        );
        let arm = Machine { arch: "aarch64", ..machine() }.words().join(" ");
        assert!(
            arm.starts_with("qemu-system-aarch64") && arm.contains("ttyAMA0") && !arm.contains("tsc"),
            "{arm}"
        );
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
