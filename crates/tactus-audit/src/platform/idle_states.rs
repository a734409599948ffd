//! Idle CPUs: how deep they sleep.

use std::collections::BTreeMap;
use std::ops::Bound;

use tactus_model::CpuSet;
use tactus_model::change::{Change, Form};
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

/// Exit latency in microseconds up to which a state counts as shallow: C1 and WFI have 1 or 2, and 3 is
/// where TuneD's latency-performance draws the line (`force_latency=cstate.id_no_zero:1|3`).
pub const SHALLOW_US: u64 = 3;

/// The bound on the latency of all CPUs, as long as a program holds it open.
pub const GLOBAL: &str = "/dev/cpu_dma_latency";
/// The bound of one CPU.
pub const OF_CPU: &str = "/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us";

const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

pub static CHECKS: &[Check] = &[
    Check {
        id: "c-states",
        title: "idle CPUs sleep deeply",
        sources: &[
            Source::Xeon,
            Source::Kernel("Documentation/admin-guide/pm/cpuidle.rst"),
            Source::Kernel("Documentation/admin-guide/pm/intel_idle.rst"),
            Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst"),
        ],
        applies: &[Applies::Host],
        severity: Severity::Major,
        arch: Arch::X86,
        set: &[SetBy::Firmware, SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: true,
        reads: "/sys/devices/system/cpu/cpuidle/current_driver, cpu*/cpuidle/state*/{name,latency,disable,usage}; the bounds \
that pm-qos reads",
        expected: "no state deeper than C1 (exit latency up to 3 us) open to isolated CPUs: absent, disabled, or \
excluded by a latency bound",
        why: "A CPU in C6 runs its interrupt handler late, and finds its caches empty. A wake-up may take the exit \
latency that the driver states. For C6 of a Xeon Scalable the kernel's intel_idle has 133 us (2017), 170 us (2021) \
and 290 us (2023).",
        fix: "Boot with intel_idle.max_cstate=0 processor.max_cstate=1, always both: with the first alone acpi_idle \
takes over, with other deep states. Or, on Intel, with intel_idle.max_cstate=1, which leaves only intel_idle and C1. \
Or limit C-states in the firmware's setup.",
        risk: "Heat and power, and less turbo. Without intel_idle (max_cstate=0) the kernel no longer turns C1E \
promotion off: check c1e-package-cstate afterwards.",
        judge: states,
        changes: boot_changes,
    },
    Check {
        id: "c-state-per-cpu",
        title: "deep idle states are open to real-time CPUs",
        sources: &[Source::Kernel("Documentation/admin-guide/pm/cpuidle.rst")],
        applies: &[Applies::Host],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: true,
        reads: "cpu*/cpuidle/state*/{latency,disable} of the isolated CPUs; the bounds that pm-qos reads",
        expected: "disable 1 for each state with an exit latency above 3 us, or a bound on the latency",
        why: "As c-states, but only CPUs {isolated} use more power; the others may sleep.",
        fix: "Write 1 to /sys/devices/system/cpu/cpuN/cpuidle/stateM/disable for the deep states of CPUs {isolated}, at \
each boot.",
        risk: "Low: heat on these CPUs.",
        judge: per_cpu,
        changes: per_cpu_changes,
    },
];

/// One idle state of one CPU.
pub struct Idle<'a> {
    /// The CPU.
    pub cpu: u32,
    /// Its number.
    pub state: u32,
    /// `C6`, `POLL`.
    pub name: &'a str,
    /// The time to leave it, in microseconds; `None`: unknown.
    pub latency: Option<u64>,
    /// Whether it may not be entered; `None`: not told.
    pub disabled: Option<bool>,
    /// How often it was entered.
    pub usage: Option<u64>,
}

impl Idle<'_> {
    /// Whether it takes longer to leave than `bound` allows: the idle governors pass over it
    /// (Documentation/admin-guide/pm/cpuidle.rst, "Power Management Quality of Service for CPUs").
    fn is_forbidden(&self, bound: Option<u64>) -> bool {
        self.latency.zip(bound).is_some_and(|(latency, bound)| latency > bound)
    }

    /// Whether it is deeper than C1. An unknown latency counts as deep.
    pub fn is_deep(&self) -> bool {
        self.latency.is_none_or(|latency| latency > SHALLOW_US)
    }

    /// Whether the CPU may sleep deeply there.
    pub fn is_open(&self) -> bool {
        self.is_deep() && self.disabled != Some(true)
    }
}

/// The name of a state that reports none.
pub const NAMELESS: &str = "an unnamed state";

/// The idle states of a CPU, by number.
pub fn of<'a>(subject: &Subject<'a>, cpu: u32) -> Vec<Idle<'a>> {
    let beginning = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state");
    let mut states: BTreeMap<u32, Idle<'a>> = BTreeMap::new();
    // Not Facts::under: what it gives lives no longer than the beginning of the names.
    let names = (Bound::Included(beginning.as_str()), Bound::Unbounded);
    for (path, reading) in subject.facts.0.range::<str, _>(names) {
        let Some(rest) = path.strip_prefix(&beginning) else { break };
        let Some((state, file)) = rest.split_once('/') else { continue };
        let Ok(state) = state.parse::<u32>() else { continue };
        let idle = states.entry(state).or_insert(Idle {
            cpu,
            state,
            name: NAMELESS,
            latency: None,
            disabled: None,
            usage: None,
        });
        let (Reading::Text(text) | Reading::Cut(text)) = reading else { continue };
        let text = text.trim();
        match file {
            "name" if !text.is_empty() => idle.name = text,
            "latency" => idle.latency = text.parse().ok(),
            // Bit 0 is the user's; a driver's own refusal is another bit and holds as well.
            "disable" => idle.disabled = text.parse().ok().map(|flags: u64| flags != 0),
            "usage" => idle.usage = text.parse().ok(),
            _ => {}
        }
    }
    states.into_values().collect()
}

/// The idle states that the isolated CPUs may use.
pub enum Depth<'a> {
    /// No driver offers states: idle CPUs halt in C1 or WFI, or poll.
    NoDriver,
    /// CPUs without a known state.
    Untold(CpuSet),
    /// All states are shallow: the driver's name, the deepest of them.
    Shallow(u64),
    /// Deep ones are there, and each is disabled.
    Closed(String),
    /// Deep ones are there, and a bound on the latency keeps the CPUs out: their names, the loosest bound.
    Held(String, u64),
    /// Deep ones are open.
    Open(Vec<Idle<'a>>),
}

/// How deep the isolated CPUs may sleep.
///
/// # Errors
/// When the driver is not told.
pub fn depth<'a>(subject: &Subject<'a>) -> Result<Depth<'a>, Judgement> {
    if matches!(subject.value(DRIVER)?, "none" | "") {
        return Ok(Depth::NoDriver);
    }
    let (mut open, mut closed, mut untold, mut deepest) = (Vec::new(), BTreeMap::new(), CpuSet::default(), 0);
    let mut held = None;
    for cpu in subject.isolated().iter() {
        let states = of(subject, cpu);
        if states.is_empty() {
            untold.insert(cpu);
        }
        let bound = bound(subject, cpu);
        for idle in states {
            if idle.is_open() && idle.is_forbidden(bound) {
                held = held.max(bound);
                closed.insert(idle.state, idle.name);
            } else if idle.is_open() {
                open.push(idle);
            } else if idle.is_deep() {
                closed.insert(idle.state, idle.name);
            } else {
                deepest = deepest.max(idle.latency.unwrap_or(0));
            }
        }
    }
    Ok(if !open.is_empty() {
        Depth::Open(open)
    } else if !untold.is_empty() {
        Depth::Untold(untold)
    } else if closed.is_empty() {
        Depth::Shallow(deepest)
    } else {
        let names = closed.into_values().collect::<Vec<_>>().join(", ");
        held.map_or(Depth::Closed(names.clone()), |us| Depth::Held(names, us))
    })
}

/// The bound on a wake-up of a CPU in microseconds, if a program or the CPU's setting sets one. A CPU's `0` means no
/// bound, and `n/a` a bound of zero (drivers/base/power/sysfs.c). `/dev/cpu_dma_latency` reads 2000 s while no
/// program holds it.
pub fn bound(subject: &Subject<'_>, cpu: u32) -> Option<u64> {
    let own = match subject.facts.text(&OF_CPU.replace("{cpu}", &cpu.to_string())) {
        Some("n/a") => Some(0),
        Some(text) => text.parse().ok().filter(|us| *us > 0),
        None => None,
    };
    let global = subject.facts.number(GLOBAL).filter(|us| *us < NOBODY);
    own.into_iter().chain(global).min()
}

/// `/dev/cpu_dma_latency` while no program holds it (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
pub const NOBODY: u64 = 2_000_000_000;

fn untold(cpus: &CpuSet) -> Judgement {
    Judgement::unreadable(format!("there is a driver for idle states, but it lists no states of CPUs {cpus}"))
}

/// `C6 (133 us) on CPUs 2-7`, for each state.
fn told(open: &[Idle<'_>], mut judgement: Judgement) -> (String, Judgement) {
    let mut kinds: BTreeMap<(u32, &str, Option<u64>), CpuSet> = BTreeMap::new();
    for idle in open {
        kinds.entry((idle.state, idle.name, idle.latency)).or_default().insert(idle.cpu);
    }
    let mut words = Vec::new();
    for ((state, name, latency), cpus) in kinds {
        let latency = latency.map_or("latency unknown".to_owned(), |us| format!("{us} us"));
        words.push(format!("{name} ({latency}) on CPUs {cpus}"));
        let path = format!("/sys/devices/system/cpu/cpu{{{cpus}}}/cpuidle/state{state}");
        judgement = judgement.read(path, format!("{name}, latency {latency}, not disabled"));
    }
    (words.join(", "), judgement)
}

/// The effect of a bound while it is set.
pub fn held(names: &str, us: u64) -> String {
    format!("real-time CPUs stay out of {names} while wake-ups are limited to {us} us (pm-qos)")
}

fn states(subject: &Subject<'_>) -> Verdict {
    let driver = subject.facts.text(DRIVER).unwrap_or_default();
    let judgement = match depth(subject)? {
        Depth::NoDriver => Judgement::ok("no driver offers idle states: idle CPUs halt in C1, or poll"),
        Depth::Untold(cpus) => untold(&cpus),
        Depth::Shallow(us) => Judgement::ok(format!(
            "the deepest idle state of the real-time CPUs has an exit latency of {us} us"
        )),
        Depth::Closed(names) => {
            Judgement::ok(format!("{names} is disabled on the real-time CPUs until the next boot"))
        }
        Depth::Held(names, us) => Judgement::ok(held(&names, us)),
        Depth::Open(open) => {
            let (words, judgement) = told(&open, Judgement::finding(""));
            let entered: u64 = open.iter().filter_map(|idle| idle.usage).fold(0, u64::saturating_add);
            let said = format!("real-time CPUs may enter {words}, and did so {entered} times since boot");
            Judgement { said, ..judgement }
        }
    };
    Ok(judgement.read(DRIVER, driver))
}

fn per_cpu(subject: &Subject<'_>) -> Verdict {
    Ok(match depth(subject)? {
        Depth::NoDriver => return Err(Judgement::not_applicable("no driver offers idle states")),
        Depth::Untold(cpus) => untold(&cpus),
        Depth::Shallow(us) => {
            return Err(Judgement::not_applicable(format!(
                "real-time CPUs have no idle state with an exit latency above {us} us"
            )));
        }
        Depth::Closed(names) => Judgement::ok(format!("{names} is disabled on CPUs {}", subject.isolated())),
        Depth::Held(names, us) => Judgement::ok(held(&names, us)),
        Depth::Open(open) => {
            let (words, judgement) = told(&open, Judgement::finding(""));
            Judgement { said: format!("deep idle states are open: {words}"), ..judgement }
        }
    })
}

fn boot_changes(subject: &Subject<'_>) -> Vec<Change> {
    // intel_idle.max_cstate=0 without processor.max_cstate=1 is no fix: both, or neither.
    let mut changes = Vec::new();
    if subject.is(Arch::Intel) {
        changes.push(subject.boot("c-states", "intel_idle.max_cstate", "0"));
    }
    changes.push(subject.boot("c-states", "processor.max_cstate", "1"));
    changes
}

fn per_cpu_changes(subject: &Subject<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    for cpu in subject.isolated().iter() {
        for idle in of(subject, cpu).into_iter().filter(Idle::is_deep) {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{}/disable", idle.state);
            changes.extend(subject.set("c-state-per-cpu", &path, Form::Plain, "1"));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, System, arm, guest, intel};

    fn machine(states: &[(&str, &str, &str)]) -> System {
        let mut system = intel(&[(DRIVER, "intel_idle")]);
        for cpu in 0..4 {
            for (n, (name, latency, disable)) in states.iter().enumerate() {
                let path = |file| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{n}/{file}");
                system = system
                    .and(&path("name"), name)
                    .and(&path("latency"), latency)
                    .and(&path("disable"), disable)
                    .and(&path("usage"), "10");
            }
        }
        system
    }

    const POLL: (&str, &str, &str) = ("POLL", "0", "0");
    const C1: (&str, &str, &str) = ("C1", "2", "0");

    #[test]
    fn shallow_states_are_good_and_leave_nothing_to_disable() {
        let shallow = machine(&[POLL, C1]);
        assert_eq!(shallow.state("c-states"), State::Ok);
        assert_eq!(shallow.state("c-state-per-cpu"), State::NotApplicable);
        assert_eq!(intel(&[(DRIVER, "none")]).state("c-states"), State::Ok);
        assert_eq!(intel(&[(DRIVER, "none")]).state("c-state-per-cpu"), State::NotApplicable);
    }

    #[test]
    fn a_deep_state_is_found_until_it_is_disabled_on_the_isolated_cpus() {
        let deep = machine(&[POLL, C1, ("C6", "133", "0")]);
        let said = deep.said("c-states");
        assert_eq!(said, "real-time CPUs may enter C6 (133 us) on CPUs 2,3, and did so 20 times since boot");
        assert_eq!(deep.state("c-state-per-cpu"), State::Finding);
        assert_eq!(
            deep.wanted("c-state-per-cpu"),
            [2, 3].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state2/disable = 1"))
        );
        assert_eq!(
            deep.wanted("c-states"),
            ["kernel parameter intel_idle.max_cstate = 0", "kernel parameter processor.max_cstate = 1"]
        );
        let closed = machine(&[POLL, C1, ("C6", "133", "1")]);
        assert_eq!((closed.state("c-states"), closed.state("c-state-per-cpu")), (State::Ok, State::Ok));
        assert_eq!(closed.changes("c-state-per-cpu").len(), 2);
    }

    #[test]
    fn a_bound_that_is_held_closes_the_states_above_it() {
        let deep = || machine(&[POLL, C1, ("C1E", "4", "0"), ("C6", "133", "0")]);
        let held = deep().and(GLOBAL, "3");
        for id in ["c-states", "c-state-per-cpu", "idle-poll"] {
            let held = held.clone().and("/proc/cmdline", "quiet");
            assert_eq!(held.state(id), State::Ok, "{id}: {}", held.said(id));
        }
        assert!(held.said("c-states").contains("C1E, C6"), "{}", held.said("c-states"));
        let half = deep().and(GLOBAL, "50");
        assert!(half.said("c-states").contains("C1E (4 us)") && !half.said("c-states").contains("C6"));
        assert_eq!(deep().and(GLOBAL, "2000000000").state("c-states"), State::Finding, "nobody holds it");
        let one = deep().and(&OF_CPU.replace("{cpu}", "2"), "n/a");
        assert!(one.said("c-states").contains("C6 (133 us) on CPUs 3"), "{}", one.said("c-states"));
        assert_eq!(one.and(&OF_CPU.replace("{cpu}", "3"), "0").state("c-states"), State::Finding);
    }

    #[test]
    fn other_processors_have_states_too() {
        let path = "/sys/devices/system/cpu/cpu2/cpuidle/state1/latency";
        let arm = arm(&[(DRIVER, "psci_idle"), (path, "250")]).isolate("2");
        assert_eq!(arm.state("c-states"), State::NotApplicable);
        assert_eq!(arm.state("c-state-per-cpu"), State::Finding);
    }

    #[test]
    fn states_that_are_not_told_are_not_good() {
        assert_eq!(intel(&[(DRIVER, "intel_idle")]).state("c-states"), State::Unreadable);
        assert_eq!(intel(&[]).state("c-states"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(DRIVER, "denied").state("c-states"), State::Unreadable);
        assert_eq!(guest(&[(DRIVER, "none")]).role(Role::Host).state("c-states"), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(machine(&[POLL, ("C6", text, text)]).state("c-states"), State::Finding, "{text}");
            assert_ne!(machine(&[POLL, ("C6", "133", text)]).state("c-state-per-cpu"), State::Ok, "{text}");
        }
    }
}
