//! The subject of a check: the facts of one system, parsed once.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::change::{self, Change, Effect, Form, Target};
use tactus_model::cmdline::Cmdline;
use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::{By, Isolation, Role, State};
use tactus_model::interrupts::Interrupts;
use tactus_model::isolation;
use tactus_model::threads::{Thread, Threads};
use tactus_model::topology::Topology;

use super::vm::Vm;
use super::{Arch, Judgement, Kernel, Verdict, asked, sentence, settable};

/// A thread as a change names it.
fn as_it_is(thread: &Thread) -> change::Thread {
    change::Thread { tid: thread.tid, name: thread.name.clone(), started: thread.started }
}

/// The user's intent for a system.
#[derive(Clone, Debug, Default)]
pub struct Intent {
    /// CPUs for real-time work; `None`: those that are isolated, else what tactus would choose.
    pub isolated: Option<CpuSet>,
    /// Facts of the same system a moment later, for what is only told by its change.
    pub later: Option<Facts>,
    /// Facts of the machine that carries this guest, where they are known.
    pub carrier: Option<Facts>,
    /// Whether tactus itself starts it, so that the user has no options of its start to change.
    pub started: bool,
}

impl Intent {
    /// The intent of a run that measures on these CPUs. If tactus itself would choose them, the user has not asked
    /// for them, as in an audit alone: then no CPUs are named.
    #[must_use]
    pub fn measuring(facts: &Facts, measured: CpuSet) -> Self {
        let topology = Topology::of(facts);
        let by_itself = if topology.isolated.is_empty() {
            measured == assumed(facts, &topology)
        } else {
            measured.minus(&topology.isolated).is_empty()
        };
        Self { isolated: (!by_itself).then_some(measured), ..Self::default() }
    }
}

/// One system under audit.
pub struct Subject<'a> {
    /// The raw readings.
    pub facts: &'a Facts,
    /// The same a moment later.
    pub later: Option<&'a Facts>,
    /// Of the machine that carries this guest.
    pub carrier: Option<&'a Facts>,
    /// Whether tactus itself starts it.
    pub started: bool,
    /// The part that it plays.
    pub role: Role,
    /// Its CPUs.
    pub topology: Topology,
    /// The CPUs for real-time work, and the others.
    pub isolation: Isolation,
    /// Whether a hypervisor lies below it.
    pub virtualized: bool,
    /// `x86_64`, `aarch64`, as uname says it.
    pub machine: String,
    /// The processor's maker, as `/proc/cpuinfo` says it: `GenuineIntel`.
    pub vendor: String,
    /// The kernel that runs it.
    pub kernel: Kernel,
    /// The command line of that kernel.
    pub cmdline: Cmdline,
    /// Its threads.
    pub threads: Threads,
    /// Its interrupts.
    pub interrupts: Interrupts,
    /// The virtual machines that run on it.
    pub vms: Vec<Vm>,
}

impl<'a> Subject<'a> {
    /// Understands the facts of a system.
    #[must_use]
    pub fn new(facts: &'a Facts, role: Role, intent: &'a Intent) -> Self {
        let topology = Topology::of(facts);
        let isolation = set_apart(facts, &topology, intent);
        let machine = facts.text("uname:machine").unwrap_or_default().to_owned();
        let vendor = facts.field("/proc/cpuinfo", "vendor_id", ':').unwrap_or_default().to_owned();
        let threads = Threads::of(facts);
        Self {
            facts,
            later: intent.later.as_ref(),
            carrier: intent.carrier.as_ref(),
            started: intent.started,
            role,
            isolation,
            virtualized: facts.virtualized(),
            machine,
            vendor,
            kernel: Kernel::of(facts),
            cmdline: Cmdline::of(facts),
            vms: Vm::all(facts, &threads),
            threads,
            interrupts: Interrupts::of(facts),
            topology,
        }
    }

    /// Whether its processor is one of these.
    #[must_use]
    pub fn is(&self, arch: Arch) -> bool {
        let x86 = matches!(self.machine.as_str(), "x86_64" | "i686");
        match arch {
            Arch::Any => true,
            Arch::X86 => x86,
            Arch::Intel => x86 && self.vendor == "GenuineIntel",
            Arch::Arm64 => self.machine == "aarch64",
        }
    }

    /// CPUs for real-time work.
    #[must_use]
    pub fn isolated(&self) -> &CpuSet {
        &self.isolation.isolated
    }

    /// Whether no CPU is set apart yet: those for real-time work are what tactus would choose, or what is asked for at boot
    /// and not in effect.
    #[must_use]
    pub fn sets_none_apart(&self) -> bool {
        matches!(self.isolation.by, By::Assumed | By::Intended)
    }

    /// CPUs for everything else.
    #[must_use]
    pub fn housekeeping(&self) -> &CpuSet {
        &self.isolation.housekeeping
    }

    /// The text of a reading.
    ///
    /// # Errors
    /// The judgement of a rule without this reading: not applicable if the kernel has no such file, unreadable with
    /// the reason if it has.
    pub fn value(&self, path: &str) -> Result<&'a str, Judgement> {
        match self.facts.0.get(path) {
            Some(Reading::Text(text) | Reading::Cut(text)) => Ok(text.trim()),
            Some(Reading::Unreadable(reason)) => {
                Err(Judgement::unreadable(format!("{path} could not be read: {reason}")).read(path, reason))
            }
            Some(Reading::Absent) | None => Err(self.absent(path)),
        }
    }

    /// A reading as a number.
    ///
    /// # Errors
    /// As [`Subject::value`]; what is no number counts as unreadable.
    pub fn number(&self, path: &str) -> Result<u64, Judgement> {
        let text = self.value(path)?;
        text.parse().map_err(|_| {
            let shown: String = text.chars().take(40).collect();
            Judgement::unreadable(format!("{path} contains `{shown}`, which is not a number"))
                .read(path, shown)
        })
    }

    /// The text of a reading that every system has: without it, or where the facts are of a probe that
    /// did not look for it, nothing can be said.
    ///
    /// # Errors
    /// The judgement "unreadable" with the reason.
    pub fn need(&self, name: &str) -> Result<&'a str, Judgement> {
        match self.facts.0.get(name) {
            Some(Reading::Text(text) | Reading::Cut(text)) => Ok(text.trim()),
            Some(Reading::Unreadable(reason)) => {
                Err(Judgement::unreadable(format!("{name} could not be read: {reason}")).read(name, reason))
            }
            Some(Reading::Absent) => {
                Err(Judgement::unreadable(format!("{name} is not there")).read(name, "not there"))
            }
            None => Err(Judgement::unreadable(format!("the facts do not include {name}"))),
        }
    }

    /// The kernel's command line.
    ///
    /// # Errors
    /// The judgement "unreadable" if it is unknown.
    pub fn told(&self) -> Result<&Cmdline, Judgement> {
        self.need("/proc/cmdline").map(|_| &self.cmdline)
    }

    /// The threads of the system.
    ///
    /// # Errors
    /// The judgement "unreadable" where the facts do not say which there are.
    pub fn running(&self) -> Result<&Threads, Judgement> {
        if !self.threads.list.is_empty() {
            return Ok(&self.threads);
        }
        Err(Judgement::unreadable("the facts do not include the threads"))
    }

    /// A judgement over all threads: a good result for the threads that were read proves nothing for the others.
    #[must_use]
    pub fn over_all_threads(&self, judgement: Judgement) -> Judgement {
        let unseen = self.threads.left_out.saturating_add(self.threads.damaged as u64);
        if judgement.state != State::Ok || unseen == 0 {
            return judgement;
        }
        let said = format!("the facts do not include {unseen} threads; of the others: {}", judgement.said);
        Judgement { state: State::Unreadable, said, ..judgement }
    }

    /// Isolated and housekeeping CPUs, where there are both. Without housekeeping CPUs nothing can be
    /// moved away from the isolated ones.
    #[must_use]
    pub fn parted(&self) -> Option<(&CpuSet, &CpuSet)> {
        let (isolated, housekeeping) = (self.isolated(), self.housekeeping());
        (!isolated.is_empty() && !housekeeping.is_empty()).then_some((isolated, housekeeping))
    }

    /// [`Subject::parted`].
    ///
    /// # Errors
    /// The judgement "not applicable" where there is one sort only.
    pub fn need_parted(&self) -> Result<(&CpuSet, &CpuSet), Judgement> {
        self.parted().ok_or_else(|| {
            Judgement::not_applicable(format!(
                "no CPU is isolated: {} for real-time work, {} for the rest",
                sentence::cpus_or_none(self.isolated()),
                sentence::cpus_or_none(self.housekeeping())
            ))
        })
    }

    fn absent(&self, path: &str) -> Judgement {
        Judgement::not_applicable(format!("{path} is not there: this kernel or machine has no such setting"))
            .read(path, "not there")
    }

    /// Whether a file says the wanted value.
    ///
    /// # Errors
    /// As [`Subject::value`].
    pub fn expect(&self, path: &str, form: Form, wanted: &str) -> Verdict {
        let text = self.value(path)?;
        let now = form.value(text);
        Ok(Judgement::when(
            form.same(text, wanted),
            format!("{path} is {wanted}"),
            format!("{path} is {now}, not {wanted}"),
        )
        .read(path, text))
    }

    /// Whether a file of each of these CPUs satisfies a rule. `path` has `{cpu}` where the number
    /// stands; equal values are reported together.
    ///
    /// # Errors
    /// As [`Subject::value`], when no CPU has the file.
    pub fn expect_per_cpu(
        &self,
        cpus: &CpuSet,
        path: &str,
        wanted: &str,
        good: impl Fn(&str) -> bool,
    ) -> Verdict {
        let mut values: BTreeMap<&str, CpuSet> = BTreeMap::new();
        let (mut bad, mut unread, mut refused) = (CpuSet::default(), CpuSet::default(), None);
        for cpu in cpus.iter() {
            match self.value(&path.replace("{cpu}", &cpu.to_string())) {
                Ok(text) => {
                    values.entry(text).or_default().insert(cpu);
                    if !good(text) {
                        bad.insert(cpu);
                    }
                }
                Err(judgement) => {
                    unread.insert(cpu);
                    refused = Some(judgement.or_refused(refused));
                }
            }
        }
        if values.is_empty() {
            return Err(refused.unwrap_or_else(|| self.absent(&path.replace("{cpu}", "*"))));
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut judgement = if bad.is_empty() && !unread.is_empty() {
            Judgement::unreadable(format!(
                "{name} of CPUs {unread} could not be read; elsewhere it is {wanted}"
            ))
        } else {
            Judgement::when(
                bad.is_empty(),
                format!("{name} is {wanted} on CPUs {cpus}"),
                format!("{name} is not {wanted} on CPUs {bad}"),
            )
        };
        for (value, cpus) in values {
            let cpus = if cpus.len() == 1 { cpus.to_string() } else { format!("{{{cpus}}}") };
            judgement = judgement.read(path.replace("{cpu}", &cpus), value);
        }
        Ok(judgement)
    }

    /// A change of a file of each of these CPUs; `path` as for [`Subject::expect_per_cpu`]. CPUs
    /// without the file are left out.
    #[must_use]
    pub fn set_per_cpu(&self, check: &str, cpus: &CpuSet, path: &str, form: Form, then: &str) -> Vec<Change> {
        cpus.iter()
            .filter_map(|cpu| self.set(check, &path.replace("{cpu}", &cpu.to_string()), form, then))
            .collect()
    }

    /// Whether the first processor has a flag; `None` where `/proc/cpuinfo` tells no flags.
    #[must_use]
    pub fn flag(&self, flag: &str) -> Option<bool> {
        let flags = self.facts.field("/proc/cpuinfo", "flags", ':')?;
        Some(flags.split_ascii_whitespace().any(|one| one == flag))
    }

    /// Whether KVM runs here (there is /dev/kvm); `None` where that was not read. A kernel that has it built in has its
    /// parameters, too, where the processor or another hypervisor lets it not run.
    #[must_use]
    pub fn kvm(&self) -> Option<bool> {
        match self.facts.0.get("device:kvm")? {
            Reading::Text(text) => Some(text.trim() == "present"),
            Reading::Absent => Some(false),
            Reading::Cut(_) | Reading::Unreadable(_) => None,
        }
    }

    /// The answer of CPUID in a register (`eax`) for a leaf (`0x6:0`).
    #[must_use]
    pub fn cpuid(&self, leaf: &str, register: &str) -> Option<u32> {
        let text = self.facts.text(&format!("cpuid:{leaf}"))?;
        let value = text.split_ascii_whitespace().find_map(|word| {
            let (name, value) = word.split_once('=')?;
            (name == register).then_some(value)
        })?;
        u32::from_str_radix(value.strip_prefix("0x")?, 16).ok()
    }

    /// A change of a parameter of the kernel's command line, for which a reboot is needed. A parameter
    /// without a value has an empty text.
    #[must_use]
    pub fn boot(&self, check: &str, parameter: &str, then: impl Into<String>) -> Change {
        debug_assert!(settable::is_kernel_parameter(parameter), "{parameter}");
        let then = then.into();
        let told = self.cmdline.all(parameter).last().map(Option::unwrap_or_default);
        let same = |told: &&str| isolation::same_value(told, &then, isolation::last_cpu(self.facts));
        let now = told.map(|told| if same(&told) { then.clone() } else { told.to_owned() });
        let target = Target::Kernel { parameter: parameter.to_owned() };
        Change { check: check.to_owned(), target, now, then, effect: Effect::Boot }
    }

    /// A change of the CPUs that a thread may use.
    #[must_use]
    pub fn place(&self, check: &str, thread: &Thread, cpus: &CpuSet) -> Change {
        let target = Target::Affinity(as_it_is(thread));
        let (now, then) = (Some(thread.cpus.to_string()), cpus.to_string());
        Change { check: check.to_owned(), target, now, then, effect: Effect::Runtime }
    }

    /// A change of how a thread is scheduled: `FIFO 4`.
    #[must_use]
    pub fn schedule(&self, check: &str, thread: &Thread, then: impl Into<String>) -> Change {
        let target = Target::Scheduling(as_it_is(thread));
        let now = Some(format!("{} {}", thread.policy.word(), thread.priority));
        Change { check: check.to_owned(), target, now, then: then.into(), effect: Effect::Runtime }
    }

    /// A change of a parameter that a module reads when it is loaded; `None` where the module or its
    /// parameter is not there.
    #[must_use]
    pub fn module(
        &self,
        check: &str,
        module: &str,
        parameter: &str,
        then: impl Into<String>,
    ) -> Option<Change> {
        let now = self.facts.text(&format!("/sys/module/{module}/parameters/{parameter}"))?;
        let target = Target::Module { module: module.to_owned(), parameter: parameter.to_owned() };
        Some(Change {
            check: check.to_owned(),
            target,
            now: Some(now.to_owned()),
            then: then.into(),
            effect: Effect::Restart,
        })
    }

    /// A change of a file at run time; `None` if the file does not exist, or is not in [`settable`].
    #[must_use]
    pub fn set(&self, check: &str, path: &str, form: Form, then: impl Into<String>) -> Option<Change> {
        let now = form.value(self.facts.text(path).filter(|_| settable::is_file(path))?);
        let target = Target::File { path: path.to_owned(), form };
        Some(Change {
            check: check.to_owned(),
            target,
            now: Some(now),
            then: then.into(),
            effect: Effect::Runtime,
        })
    }
}

/// The CPUs that tactus would choose: all but the first core of each NUMA node, which is left for housekeeping. If
/// that leaves no CPU, all but the first core.
pub(super) fn assumed(facts: &Facts, topology: &Topology) -> CpuSet {
    let all = topology.measuring();
    let firsts = facts
        .under("/sys/devices/system/node/node")
        .filter(|(path, _)| path.ends_with("/cpulist"))
        .filter_map(|(path, _)| facts.text(path)?.parse::<CpuSet>().ok()?.and(&topology.online).first())
        .fold(CpuSet::default(), |house, first| house.or(&topology.core_of(first)));
    let rest = all.minus(&firsts);
    if rest.is_empty() { all } else { rest }
}

fn set_apart(facts: &Facts, topology: &Topology, intent: &Intent) -> Isolation {
    let (isolated, by) = match &intent.isolated {
        Some(asked) => (asked.clone(), By::Asked),
        None if !topology.isolated.is_empty() => {
            let by = if topology.isolated == topology.booted { By::Boot } else { By::Cpuset };
            (topology.isolated.clone(), by)
        }
        None => match asked::isolation(facts, &topology.online) {
            Some(cpus) => (cpus, By::Intended),
            None => (assumed(facts, topology), By::Assumed),
        },
    };
    let housekeeping = topology.online.minus(&isolated);
    Isolation { isolated, housekeeping, by }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(release: &str, version: &str) -> Kernel {
        let mut facts = Facts::default();
        facts.keep("uname:release", release);
        facts.keep("uname:version", version);
        Kernel::of(&facts)
    }

    #[test]
    fn what_some_cpus_do_not_tell_is_not_taken_for_good() {
        const OF_CPU: &str = "/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us";
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/cpu/online", "0-2");
        facts.keep("/x/cpu0/y", "1");
        facts.keep("/x/cpu1/y", "1");
        facts.keep(OF_CPU.replace("{cpu}", "0"), "0");
        facts.keep(OF_CPU.replace("{cpu}", "1"), "0");
        facts.0.insert("/z/cpu0".into(), Reading::Unreadable("denied".into()));
        facts.keep("cpuid:0x6:0", "eax=0x77 ebx=0x2 ecx=0x9 edx=zz");
        let intent = Intent::default();
        let subject = Subject::new(&facts, Role::Host, &intent);
        let judged =
            |cpus: &str| subject.expect_per_cpu(&cpus.parse().unwrap(), "/x/cpu{cpu}/y", "1", |y| y == "1");
        assert_eq!(judged("0-1").unwrap().said, "y is 1 on CPUs 0,1");
        assert_eq!(judged("0-2").unwrap().said, "y of CPUs 2 could not be read; elsewhere it is 1");
        assert!(judged("2").is_err());
        let refused = |path: &str| subject.expect_per_cpu(&"0-2".parse().unwrap(), path, "1", |_| true);
        assert_eq!(refused("/z/cpu{cpu}").unwrap_err().state, State::Unreadable);
        let set = |path| subject.set_per_cpu("c", &"0-2".parse().unwrap(), path, Form::Plain, "1").len();
        assert_eq!((set(OF_CPU), set("/x/cpu{cpu}/y")), (2, 0), "what nobody may set is no change");
        assert_eq!((subject.cpuid("0x6:0", "eax"), subject.cpuid("0x6:0", "edx")), (Some(0x77), None));
        assert_eq!(subject.flag("vmx"), None);
    }

    #[test]
    fn a_kernel_is_known_by_its_release_and_its_version() {
        let rt = kernel("6.12.43+deb13-rt-amd64", "#1 SMP PREEMPT_RT Debian 6.12.43-1 (2025-08-27)");
        assert_eq!(rt, Kernel { major: 6, minor: 12, rt: true });
        assert!(kernel("3.10.0-957.rt56.910.el7", "#1 SMP PREEMPT RT Wed Oct 31").rt);
        let plain = kernel("6.1.0-38-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.147-1");
        assert!(
            !plain.rt && plain.since(6, 1) && plain.before(6, 2) && !plain.since(6, 2) && plain.since(5, 15)
        );
    }

    #[test]
    fn a_kernel_of_no_known_version_is_neither_old_nor_new() {
        for release in ["", "x", "-1.2", "99999999999999999999.1", "\u{1d7d8}.1"] {
            let kernel = kernel(release, "");
            assert!(!kernel.since(1, 0) && !kernel.before(99, 0), "{release}");
        }
    }
}
