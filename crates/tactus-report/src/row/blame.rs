//! Owners of the CPU during the largest latencies of a row, and the cause of each latency.

mod account;
mod asleep;

use std::collections::HashMap;

use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{BlameEntry, BlamedLatency, BlamedPart, HostSide, Owner};
use tactus_model::facts::Facts;
use tactus_model::interrupts::Interrupts;
use tactus_model::message::{Outlier, Unknowable};
use tactus_model::trace::Source;

use self::account::{parts, spans};
use super::attribution::hosts;
use super::summary::unavailable;

/// How many of the largest latencies are counted.
const LARGEST: usize = 10;
/// A latency up to twice the median and this much more is what a wake-up takes ordinarily, in ns.
const ORDINARY_NS: u64 = 10_000;

/// Fewer latencies than this have no ordinary one among them.
const FEWEST: u64 = 100;

/// The cause of a latency.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    /// It is no longer than ordinary wake-ups.
    Ordinary,
    /// The machine that a guest is on: the thread of its virtual CPU was kept from running.
    Hypervisor,
    /// One part.
    Part(Owner, String),
    /// In a virtual machine: the CPU was idle, or the hypervisor had it.
    IdleOrHypervisor,
    /// In a virtual machine: a thread that could not be interrupted or preempted, or the hypervisor while it ran.
    KernelOrHypervisor,
    /// No one part is half of it.
    Unknown,
}

/// Other facts about a latency than its parts.
#[derive(Clone, Copy, Debug)]
struct Circumstances {
    /// The median of all, in ns.
    median_ns: u64,
    /// The machine's record claims it.
    hosts: bool,
    /// A hypervisor may have the CPU, and no event says so.
    is_virtual: bool,
    /// Whether the measured thread could have had the CPU while it was idle.
    could_run: bool,
}

/// The cause of a latency: the one part that is at least half of the time beyond the median.
fn cause(value_ns: u64, parts: &[BlamedPart], known: Circumstances) -> Cause {
    if value_ns <= known.median_ns.saturating_mul(2).saturating_add(ORDINARY_NS) {
        return Cause::Ordinary;
    }
    if known.hosts {
        return Cause::Hypervisor;
    }
    let beyond = value_ns.saturating_sub(known.median_ns);
    let Some(part) = parts.first().filter(|part| part.ns >= beyond.div_ceil(2)) else {
        return Cause::Unknown;
    };
    match part.owner {
        Owner::Itself => Cause::Unknown,
        Owner::Idle if !known.could_run => Cause::Unknown,
        Owner::Idle if known.is_virtual => Cause::IdleOrHypervisor,
        Owner::InterruptsOff | Owner::NotPreempted if known.is_virtual => Cause::KernelOrHypervisor,
        owner => Cause::Part(owner, part.name.clone()),
    }
}

/// The account of a row's largest latencies; `None` if no trace of any was kept.
#[must_use]
pub fn blame(contents: &Contents, result: &RowResult) -> Option<BlameEntry> {
    let kept = |outlier: &&Outlier| outlier.trace.is_some();
    let outliers = || result.series().iter().flat_map(|series| &series.outliers);
    if outliers().find(kept).is_none() {
        let told = unavailable(result, Unknowable::Blame)?;
        let unknowable = Some(told.text.clone());
        let (causes, latencies) = (Vec::new(), Vec::new());
        return Some(BlameEntry { unknowable, source: None, of: 0, causes, latencies });
    }
    let facts = contents.facts.get(&result.environment_key());
    let interrupts = facts.map(Interrupts::of).unwrap_or_default();
    let wakes = result.measurement.kind() == "timer";
    let mut all: Vec<(usize, &Outlier)> = outliers().enumerate().collect();
    all.sort_by_key(|(_, outlier)| std::cmp::Reverse(outlier.value_ns));
    let known = Circumstances {
        median_ns: result.all().filter(|all| all.cycles >= FEWEST).and_then(|all| all.p50_ns).unwrap_or(0),
        hosts: false,
        is_virtual: facts.is_none_or(Facts::virtualized),
        could_run: false,
    };
    let hosts = hosts(result);
    let latency = |(place, outlier): &(usize, &Outlier)| {
        // Counters give no account: they do not say whose a moment was.
        let events = outlier.trace.as_ref().filter(|trace| trace.source != Source::Proc);
        let (spans, could_run) =
            events.map(|trace| spans(trace, outlier.value_ns, wakes, &interrupts)).unwrap_or_default();
        let (parts, mut unaccounted_ns) = parts(&spans);
        if spans.is_empty() {
            unaccounted_ns = outlier.value_ns;
        }
        let host = hosts.get(place);
        let known = Circumstances { hosts: host.is_some(), could_run, ..known };
        let cause = cause(outlier.value_ns, &parts, known);
        BlamedLatency {
            id: outlier.series.id(&result.environment),
            at_ns: outlier.at_ns,
            value_ns: outlier.value_ns,
            cause: said(&cause),
            parts,
            unaccounted_ns,
            spans,
            candidates: outlier.trace.as_ref().map(|trace| trace.candidates.clone()).unwrap_or_default(),
            host: host.filter(|_| cause == Cause::Hypervisor).map(|(wait, within_ns)| HostSide {
                by: wait.by.clone(),
                stopped: wait.stopped,
                outside: wait.outside,
                waited_ns: wait.waited_ns,
                at_ns: wait.at_ns,
                within_ns: *within_ns,
            }),
        }
    };
    let first = all.iter().take(LARGEST);
    let rest = all.iter().skip(LARGEST).filter(|(_, outlier)| outlier.trace.is_some());
    let latencies: Vec<BlamedLatency> = first.chain(rest).map(latency).collect();
    let mut causes: Vec<(String, usize)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for latency in &latencies {
        let place = *places.entry(&latency.cause).or_insert(causes.len());
        match causes.get_mut(place) {
            Some((_, times)) => *times += 1,
            None => causes.push((latency.cause.clone(), 1)),
        }
    }
    // Known causes come first, the most frequent before others.
    let last = |cause: &str| cause == UNKNOWN || cause == ORDINARY;
    causes.sort_by_key(|(cause, times)| (last(cause), std::cmp::Reverse(*times)));
    let source = outliers().filter_map(|outlier| Some(outlier.trace.as_ref()?.source)).max();
    Some(BlameEntry { unknowable: None, source, of: latencies.len(), causes, latencies })
}

/// No one part is the cause.
const UNKNOWN: &str = "not known";
/// It is no longer than wake-ups are ordinarily.
const ORDINARY: &str = "ordinary";

fn said(cause: &Cause) -> String {
    match cause {
        Cause::Ordinary => ORDINARY.to_owned(),
        Cause::Unknown => UNKNOWN.to_owned(),
        Cause::Hypervisor => "hypervisor".to_owned(),
        Cause::IdleOrHypervisor => "idle or hypervisor".to_owned(),
        Cause::KernelOrHypervisor => "kernel or hypervisor".to_owned(),
        Cause::Part(Owner::Idle, _) => "idle (sleep state)".to_owned(),
        Cause::Part(owner, name) => owner_name(*owner, name),
    }
}

/// An owner for people.
#[must_use]
pub fn owner_name(owner: Owner, name: &str) -> String {
    match owner {
        Owner::Thread => name.to_owned(),
        Owner::NotPreempted => format!("{name}, not preempted"),
        Owner::InterruptsOff => format!("interrupts off in {name}"),
        Owner::Idle => "idle".to_owned(),
        Owner::Blocked if name.is_empty() => "blocked".to_owned(),
        Owner::Blocked => format!("blocked ({name})"),
        Owner::Interrupt => format!("irq {name}"),
        Owner::SoftInterrupt => format!("softirq {name}"),
        Owner::Vector => format!("{name} interrupt"),
        Owner::Timer if name.is_empty() => "a timer".to_owned(),
        Owner::Timer => format!("timer {name}"),
        Owner::Itself => "the thread itself".to_owned(),
        Owner::Unaccounted => "unaccounted".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn a_cause_is_one_part_that_is_half_of_what_is_beyond_the_ordinary() {
        let part = |owner, name: &str, us: u64| BlamedPart { owner, name: name.into(), ns: us * US };
        let metal = |median_us| Circumstances {
            median_ns: median_us * US,
            hosts: false,
            is_virtual: false,
            could_run: true,
        };
        let hog = [part(Owner::Thread, "hog", 900), part(Owner::Itself, "", 20)];
        assert_eq!(said(&cause(1_000 * US, &hog, metal(50))), "hog");
        assert_eq!(said(&cause(2_000 * US, &hog, metal(50))), UNKNOWN);
        assert_eq!(said(&cause(1_000 * US, &hog, Circumstances { hosts: true, ..metal(50) })), "hypervisor");
        assert_eq!(said(&cause(1_000 * US, &hog, metal(500))), ORDINARY);
        assert_eq!(said(&cause(1_000 * US, &hog[1..], metal(0))), UNKNOWN);
        assert_eq!(said(&cause(u64::MAX, &[], metal(u64::MAX / US))), ORDINARY);
        let timer = [part(Owner::Timer, "slow_timer", 400)];
        let known = Circumstances { is_virtual: true, ..metal(5) };
        assert_eq!(said(&cause(406 * US, &timer, known)), "timer slow_timer");
    }

    #[test]
    fn in_a_virtual_machine_what_may_be_the_hypervisors_is_laid_to_no_thread() {
        let said = |owner, is_virtual| {
            let part = BlamedPart { owner, name: "rustc".into(), ns: 900 * US };
            said(&cause(
                1_000 * US,
                &[part],
                Circumstances { median_ns: 0, hosts: false, is_virtual, could_run: true },
            ))
        };
        let told = [
            (Owner::Thread, "rustc", "rustc"),
            (Owner::SoftInterrupt, "softirq rustc", "softirq rustc"),
            (Owner::Idle, "idle (sleep state)", "idle or hypervisor"),
            (Owner::Blocked, "blocked (rustc)", "blocked (rustc)"),
            (Owner::InterruptsOff, "interrupts off in rustc", "kernel or hypervisor"),
            (Owner::NotPreempted, "rustc, not preempted", "kernel or hypervisor"),
        ];
        for (owner, metal, guest) in told {
            assert_eq!((said(owner, false).as_str(), said(owner, true).as_str()), (metal, guest));
        }
    }

    #[test]
    fn idle_is_no_cause_where_the_thread_may_have_slept() {
        let idle = BlamedPart { owner: Owner::Idle, name: String::new(), ns: 900 * US };
        for is_virtual in [false, true] {
            let known = Circumstances { median_ns: 0, hosts: false, is_virtual, could_run: false };
            assert_eq!(cause(1_000 * US, std::slice::from_ref(&idle), known), Cause::Unknown);
        }
    }

    /// Ordinary wake-ups: nothing is blamed, however the largest are chosen.
    #[test]
    fn no_cause_is_claimed_of_two_runs_in_which_nothing_happens() {
        let mut state = 7_u64;
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let known = Circumstances { median_ns: 7 * US, hosts: false, is_virtual: false, could_run: true };
        for _ in 0..5_000 {
            let (irq, thread) = (1 + draw(4), 1 + draw(8));
            let part = |owner, us: u64| BlamedPart { owner, name: "x".into(), ns: us * US };
            let parts = [part(Owner::Thread, thread), part(Owner::Vector, irq)];
            assert_eq!(cause((irq + thread + 2) * US, &parts, known), Cause::Ordinary);
        }
    }
}
