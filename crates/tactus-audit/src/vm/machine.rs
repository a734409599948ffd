//! One virtual machine: its process, and what each of its threads is for.

use std::collections::BTreeMap;
use std::fmt;

use tactus_model::CpuSet;
use tactus_model::facts::{Facts, Reading};
use tactus_model::process_files::is_ordinary_user;
use tactus_model::qemu_arguments::bytes;
use tactus_model::threads::{Thread, Threads};

use super::Arguments;

/// The process of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// Its process.
    pub pid: u32,
    /// The guest's name, else the process's.
    pub name: String,
    /// Why nothing of root's is given to its threads; `None` where a user who is believed runs it by KVM.
    pub distrust: Option<Distrust>,
    /// The program that runs it.
    pub monitor: Monitor,
    /// Whether the processor is emulated (QEMU's TCG); `None` when nothing tells.
    pub emulated: Option<bool>,
    /// The arguments, if it is QEMU and they are known.
    pub arguments: Option<Arguments>,
    /// The threads that run the guest's processors, by their numbers.
    pub vcpus: Vec<Vcpu>,
    /// The IO threads.
    pub io: Vec<Thread>,
    /// All its other threads: the main loop, workers, the monitor.
    pub emulator: Vec<Thread>,
    /// The kernel's threads that work for it: vhost, kvm-pit, the recovery of huge pages.
    pub helpers: Vec<Thread>,
}

/// Why the threads of a process that looks like a virtual machine get no CPUs and no priority from root: any user may
/// name threads as QEMU names its vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// It is this ordinary user's.
    OrdinaryUser(u32),
    /// No reading shows the owner.
    UnknownUser,
    /// KVM does not run, or is not known to run, each of the vCPUs that its threads are called after.
    NotOfKvm,
}

/// Says it behind a finding: `it is a process of user 1000: ...`.
impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OrdinaryUser(uid) => write!(f, "it is a process of user {uid}"),
            Self::UnknownUser => f.write_str("the user of its process cannot be seen"),
            Self::NotOfKvm => f.write_str("it is not confirmed that KVM runs vCPUs with these thread ids"),
        }?;
        f.write_str(": `tune` leaves it alone")
    }
}

/// A program that runs virtual machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monitor {
    /// QEMU.
    Qemu,
    /// Cloud Hypervisor.
    CloudHypervisor,
    /// Firecracker.
    Firecracker,
    /// Another.
    Other,
}

/// A thread that runs a processor of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// The number of the processor in the guest.
    pub number: u32,
    /// The thread.
    pub thread: Thread,
}

impl Vm {
    /// Every virtual machine of a system, by process.
    #[must_use]
    pub fn all(facts: &Facts, threads: &Threads) -> Vec<Self> {
        let mut vms: BTreeMap<u32, Self> = BTreeMap::new();
        for (name, _) in facts.under("vm:") {
            if let Some(pid) = name.split(':').nth(1).and_then(|pid| pid.parse().ok()) {
                vms.entry(pid).or_insert_with(|| Self::new(pid, facts));
            }
        }
        for thread in threads.user() {
            if vcpu(&thread.name).is_some() {
                vms.entry(thread.pid).or_insert_with(|| Self::new(thread.pid, facts));
            }
        }
        for thread in &threads.list {
            let of = if thread.kernel { serves(&thread.name) } else { Some(thread.pid) };
            if let Some(vm) = of.and_then(|pid| vms.get_mut(&pid)) {
                vm.take(thread);
            }
        }
        let mut vms: Vec<_> = vms.into_values().collect();
        for vm in &mut vms {
            vm.vcpus.sort_by_key(|vcpu| (vcpu.number, vcpu.thread.tid));
            vm.distrust = vm.distrust(facts);
        }
        vms
    }

    fn new(pid: u32, facts: &Facts) -> Self {
        let process = facts.text(&format!("vm:{pid}:name")).unwrap_or_default();
        let (line, cut) = match facts.0.get(&format!("vm:{pid}:cmdline")) {
            Some(Reading::Text(text)) => (Some(text.trim()), false),
            Some(Reading::Cut(text)) => (Some(text.trim()), true),
            _ => (None, false),
        };
        let program = line.and_then(|line| line.split_whitespace().next()).unwrap_or(process);
        let program = program.rsplit('/').next().unwrap_or(program);
        let monitor = match program {
            // Distributions call it kvm or qemu-kvm; comm is cut to 15 bytes.
            name if name.starts_with("qemu") || name == "kvm" => Monitor::Qemu,
            name if name.starts_with("cloud-hyperviso") => Monitor::CloudHypervisor,
            name if name.starts_with("firecracker") => Monitor::Firecracker,
            _ => Monitor::Other,
        };
        let arguments = line.filter(|_| monitor == Monitor::Qemu).map(|line| Arguments::parse(line, cut));
        let called = arguments
            .as_ref()
            .and_then(|arguments| arguments.last(&["name"], "guest").or_else(|| arguments.kind("name")));
        let called = called.filter(|name| !name.is_empty()).unwrap_or(process);
        Self {
            pid,
            name: shown(called),
            distrust: None,
            monitor,
            emulated: arguments.as_ref().and_then(emulated),
            arguments,
            vcpus: Vec::new(),
            io: Vec::new(),
            emulator: Vec::new(),
            helpers: Vec::new(),
        }
    }

    fn distrust(&self, facts: &Facts) -> Option<Distrust> {
        let reading = |key: &str| facts.text(&format!("vm:{}:{key}", self.pid));
        let Some(uid) = reading("uid").and_then(|uid| uid.parse().ok()) else {
            return Some(Distrust::UnknownUser);
        };
        if is_ordinary_user(uid) {
            return Some(Distrust::OrdinaryUser(uid));
        }
        let of_kvm: CpuSet = reading("vcpus").and_then(|numbers| numbers.parse().ok()).unwrap_or_default();
        let called: CpuSet = self.vcpus.iter().map(|vcpu| vcpu.number).collect();
        let once = called.len() == self.vcpus.len();
        (!once || !called.minus(&of_kvm).is_empty()).then_some(Distrust::NotOfKvm)
    }

    fn take(&mut self, thread: &Thread) {
        if let Some((number, emulated)) = vcpu(&thread.name).filter(|_| !thread.kernel) {
            if emulated.is_some() {
                self.emulated = emulated;
            }
            self.vcpus.push(Vcpu { number, thread: thread.clone() });
        } else if thread.kernel || helps(&thread.name) {
            self.helpers.push(thread.clone());
        } else if thread.name.starts_with("IO ") && thread.name != "IO mon_iothread" {
            // libvirt counts the monitor's thread among the emulator's.
            self.io.push(thread.clone());
        } else {
            self.emulator.push(thread.clone());
        }
    }

    /// The machine and its process: `rt (process 812)`.
    #[must_use]
    pub fn title(&self) -> String {
        match self.name.is_empty() {
            true => format!("process {}", self.pid),
            false => format!("{} (process {})", self.name, self.pid),
        }
    }

    /// The CPUs on which its vCPUs may run.
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        self.vcpus.iter().fold(CpuSet::default(), |all, vcpu| all.or(&vcpu.thread.cpus))
    }

    /// The guest's memory in bytes, as the command line says it.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        let arguments = self.arguments.as_ref()?;
        match arguments.last(&["m"], "size") {
            Some(size) => bytes(size, 1 << 20),
            None => bytes(arguments.kind("m")?, 1 << 20),
        }
    }
}

/// A name as it is shown: on one line, and not endless.
fn shown(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).take(64).collect()
}

/// The number of a vCPU, and whether it is emulated, where the name tells.
fn vcpu(name: &str) -> Option<(u32, Option<bool>)> {
    if let Some(rest) = name.strip_prefix("CPU ") {
        let (number, how) = rest.split_once('/')?;
        let emulated = match how {
            "KVM" => false,
            "TCG" => true,
            _ => return None,
        };
        return Some((number.parse().ok()?, Some(emulated)));
    }
    if name == "ALL CPUs/TCG" {
        return Some((0, Some(true)));
    }
    let number = name.strip_prefix("fc_vcpu ").or_else(|| name.strip_prefix("vcpu"))?;
    Some((number.parse().ok()?, Some(false)))
}

/// The process that a thread of the kernel works for: `vhost-812` before Linux 6.4 (when it became a
/// thread of the process itself), `kvm-pit/812`, `kvm-nx-lpage-recovery-812`.
fn serves(name: &str) -> Option<u32> {
    let of = ["vhost-", "kvm-pit/", "kvm-nx-lpage-recovery-"];
    of.iter().find_map(|beginning| name.strip_prefix(beginning))?.parse().ok()
}

/// Whether a thread of the process is in truth the kernel's (`vhost_task_create`, Linux 6.4; the
/// recovery of huge pages since 6.14, its name cut to 15 bytes).
fn helps(name: &str) -> bool {
    name.starts_with("vhost-") || name.starts_with("kvm-nx-lpage")
}

fn emulated(arguments: &Arguments) -> Option<bool> {
    let accelerator = arguments
        .last(&["machine", "M"], "accel")
        .or_else(|| arguments.kind("accel"))
        .or_else(|| arguments.has("enable-kvm").then_some("kvm"))?;
    Some(accelerator.split(':').next() == Some("tcg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: &str = "812\t812\t1\t400100\tOTHER\t0\t0,1\tqemu-system-x86\n\
        815\t812\t1\t400040\tFIFO\t1\t3\tCPU 1/KVM\n\
        814\t812\t1\t400040\tOTHER\t0\t2\tCPU 0/KVM\n\
        813\t812\t1\t400040\tOTHER\t0\t0,1\tIO iothread1\n\
        816\t812\t1\t400040\tOTHER\t0\t0,1\tIO mon_iothread\n\
        817\t812\t1\t404040\tOTHER\t0\t0,1\tvhost-812\n\
        818\t818\t2\t208040\tOTHER\t0\t0-3\tkvm-pit/812\n\
        819\t819\t2\t208040\tOTHER\t0\t0-3\tkvm-pit/9\n\
        900\t900\t1\t400040\tOTHER\t0\t0-3\tfirecracker\n\
        901\t900\t1\t400040\tOTHER\t0\t0-3\tfc_vcpu 0";

    fn machines(readings: &[(&str, &str)]) -> Vec<Vm> {
        let mut facts = Facts::default();
        for (name, text) in readings {
            facts.keep(*name, *text);
        }
        Vm::all(&facts, &Threads::of(&facts))
    }

    #[test]
    fn threads_are_told_by_what_they_do() {
        let vms = machines(&[
            ("threads:0", THREADS),
            ("vm:812:name", "qemu-system-x86"),
            (
                "vm:812:cmdline",
                "qemu-system-x86_64 -name guest=rt,debug-threads=on -machine q35,accel=kvm -m 4G",
            ),
        ]);
        let [rt, small] = vms.as_slice() else { panic!("{vms:?}") };
        assert_eq!(
            (rt.title().as_str(), rt.monitor, rt.emulated),
            ("rt (process 812)", Monitor::Qemu, Some(false))
        );
        assert_eq!(rt.vcpus.iter().map(|vcpu| vcpu.thread.tid).collect::<Vec<_>>(), [814, 815]);
        let ids = |threads: &[Thread]| threads.iter().map(|thread| thread.tid).collect::<Vec<_>>();
        assert_eq!(
            (ids(&rt.io), ids(&rt.emulator), ids(&rt.helpers)),
            (vec![813], vec![812, 816], vec![817, 818])
        );
        assert_eq!((rt.cpus().to_string(), rt.memory()), ("2,3".into(), Some(4 << 30)));
        assert_eq!((small.pid, small.vcpus.len(), small.arguments.is_none()), (900, 1, true));
    }

    #[test]
    fn a_machine_is_known_by_its_readings_or_by_its_threads() {
        assert!(machines(&[("threads:0", "1\t1\t0\t0\tOTHER\t0\t0\tinit")]).is_empty());
        let known = machines(&[("vm:7:name", "kvm")]);
        assert_eq!((known.len(), known[0].title().as_str(), known[0].vcpus.len()), (1, "kvm (process 7)", 0));
    }

    #[test]
    fn who_runs_a_machine_must_be_known_and_no_ordinary_user() {
        let of = |uid: &str| machines(&[("vm:7:name", "kvm"), ("vm:7:uid", uid)])[0].distrust;
        let user = |uid| Some(Distrust::OrdinaryUser(uid));
        assert_eq!(
            ["0", "107", "64055", "x", "1000", "100000"].map(of),
            [None, None, None, Some(Distrust::UnknownUser), user(1000), user(100_000)]
        );
        assert_eq!(machines(&[("vm:7:name", "kvm")])[0].distrust, Some(Distrust::UnknownUser));
    }

    #[test]
    fn a_thread_is_a_vcpu_only_where_kvm_runs_one_of_its_number() {
        let of = |vcpus: &str| {
            let readings = [("threads:0", THREADS), ("vm:812:uid", "0"), ("vm:812:vcpus", vcpus)];
            machines(&readings)[0].distrust
        };
        let no = Some(Distrust::NotOfKvm);
        assert_eq!(["0-1", "0-7", "", "0", "1-2", "x"].map(of), [None, None, no, no, no, no]);
        let unread = machines(&[("threads:0", THREADS), ("vm:812:uid", "0")])[0].distrust;
        assert_eq!(unread, no);
        let twice = THREADS.replace("CPU 1/KVM", "CPU 0/KVM");
        let readings = [("threads:0", twice.as_str()), ("vm:812:uid", "0"), ("vm:812:vcpus", "0-1")];
        assert_eq!(machines(&readings)[0].distrust, no, "two threads that are one vCPU");
    }

    #[test]
    fn emulation_is_known_from_arguments_or_threads() {
        let of = |line: &str| machines(&[("vm:7:cmdline", line)])[0].emulated;
        assert_eq!(of("qemu-system-aarch64 -machine virt -accel tcg,thread=multi"), Some(true));
        assert_eq!(of("kvm -enable-kvm"), Some(false));
        assert_eq!(of("qemu-system-x86_64 -machine q35,accel=kvm:tcg"), Some(false));
        assert_eq!(of("qemu-system-x86_64"), None);
        let hostile = machines(&[("vm:7:cmdline", "qemu -name guest=a\u{1b}[31mb")]);
        assert_eq!(hostile[0].name, "a?[31mb");
        assert!(machines(&[("vm:x:name", "a"), ("vm:", "b"), ("vm:99999999999:name", "c")]).is_empty());
    }
}
