//! Whether real-time programs hold their memory.

use std::collections::{BTreeMap, HashMap};

use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "app-mlock",
    title: "a real-time program does not lock its memory",
    sources: &[Source::Osadl, Source::Guide("mlockall(2)")],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::Application],
    reversible: Reversible::Nothing,
    hardware: false,
    reads: "VmLck and majflt of every process with a real-time thread",
    expected: "VmLck above 0, and no major fault while it runs",
    why: "Memory that is not locked may be reclaimed, program text and data alike. Memory that was never touched is \
not yet mapped. The first access costs a fault of microseconds, or milliseconds if the disk must deliver the page.",
    fix: "Call mlockall(MCL_CURRENT | MCL_FUTURE) before the real-time part starts, and touch stack and heap once. \
It needs CAP_IPC_LOCK or a limit: LimitMEMLOCK=infinity in the unit.",
    risk: "Other programs cannot use locked memory. With MCL_FUTURE an allocation beyond the limit fails.",
    judge,
    changes: no_change,
}];

/// A user process with a real-time thread.
#[derive(Default)]
struct Process<'a> {
    name: &'a str,
    locked_kib: Option<u64>,
    faults: Option<u64>,
}

fn judge(subject: &Subject<'_>) -> Verdict {
    let found = processes(subject.facts);
    if found.is_empty() {
        return Err(none(subject));
    }
    let later = subject.later.map(processes);
    let concerns = on_real_time_cpus(subject);
    let (mut concerned, mut unlocked, mut faulted, mut unknown) = (0, Vec::new(), Vec::new(), Vec::new());
    let mut judgement_reads = Vec::new();
    for (pid, process) in &found {
        // The process of a virtual machine has its own check (mem-lock).
        if subject.facts.text(&format!("vm:{pid}:name")).is_some() || concerns.get(pid) == Some(&false) {
            continue;
        }
        concerned += 1;
        let name = format!("{} ({pid})", process.name);
        match process.locked_kib {
            Some(0) => unlocked.push(name.clone()),
            Some(_) => {}
            None => unknown.push(name.clone()),
        }
        let after = later.as_ref().and_then(|later| later.get(pid)?.faults);
        if let (Some(before), Some(after)) = (process.faults, after)
            && after > before
        {
            faulted.push(format!("{name}: {} more", after - before));
        }
        if let Some(kib) = process.locked_kib {
            judgement_reads
                .push((format!("/proc/{pid}/status VmLck"), format!("{kib} kB, {}", process.name)));
        }
    }
    if concerned == 0 {
        return Err(Judgement::not_applicable(
            "the processes with real-time threads are virtual machines, or stay off the real-time CPUs",
        ));
    }
    let mut bad = Vec::new();
    if !unlocked.is_empty() {
        bad.push(format!("{} locked nothing", listed(&unlocked)));
    }
    if !faulted.is_empty() {
        bad.push(format!("major faults: {}", listed(&faulted)));
    }
    let judgement = if !bad.is_empty() {
        Judgement::finding(bad.join("; "))
    } else if !unknown.is_empty() {
        Judgement::unreadable(format!("the locked memory of {} could not be read", listed(&unknown)))
    } else {
        let seen = if later.is_some() { "none of them had a major fault" } else { "faults were not counted" };
        Judgement::ok(format!("all {concerned} processes with real-time threads lock memory; {seen}"))
    };
    Ok(judgement_reads
        .into_iter()
        .take(8)
        .fold(judgement, |judgement, (path, value)| judgement.read(path, value)))
}

/// Why there is no process to judge.
fn none(subject: &Subject<'_>) -> Judgement {
    if !subject.threads.known {
        return Judgement::unreadable("these facts list no threads, so real-time programs are unknown");
    }
    if subject.threads.user().any(|thread| thread.policy.is_realtime()) {
        return Judgement::unreadable(
            "there are real-time threads, but these facts do not show their locked memory",
        );
    }
    Judgement::not_applicable("no program of this system has a real-time thread")
}

/// For each process with real-time threads, whether one of them may run on the CPUs that are meant for real-time
/// work. If no CPUs are named for it, every CPU counts.
fn on_real_time_cpus(subject: &Subject<'_>) -> HashMap<u32, bool> {
    let mut on = HashMap::new();
    for thread in subject.threads.user().filter(|thread| thread.policy.is_realtime()) {
        let here = subject.sets_none_apart() || !thread.cpus.and(subject.isolated()).is_empty();
        *on.entry(thread.pid).or_default() |= here;
    }
    on
}

fn processes(facts: &Facts) -> BTreeMap<u32, Process<'_>> {
    let mut all: BTreeMap<u32, Process<'_>> = BTreeMap::new();
    for (name, reading) in facts.under("process:") {
        let mut words = name.splitn(3, ':').skip(1);
        let (Some(Ok(pid)), Some(key)) = (words.next().map(str::parse), words.next()) else { continue };
        let text = match reading {
            Reading::Text(text) | Reading::Cut(text) => text.trim(),
            Reading::Unreadable(_) | Reading::Absent => "",
        };
        let process = all.entry(pid).or_default();
        match key {
            "name" => process.name = text,
            "VmLck" => process.locked_kib = text.trim_end_matches("kB").trim().parse().ok(),
            "majflt" => process.faults = text.parse().ok(),
            _ => {}
        }
    }
    all
}

/// At most three of them.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} ({more} more)"),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, System, blank, intel};

    const THREAD: &str = "700\t700\t1\t400000\tFIFO\t80\t2\tcontrol";

    fn control(locked: &str, faults: &str) -> System {
        intel(&[
            ("threads:0", THREAD),
            ("process:700:name", "control"),
            ("process:700:VmLck", locked),
            ("process:700:majflt", faults),
        ])
    }

    #[test]
    fn a_program_that_locks_is_good_and_one_that_does_not_is_named() {
        assert_eq!(control("20480 kB", "3").state("app-mlock"), State::Ok);
        assert_eq!(control("0 kB", "3").said("app-mlock"), "control (700) locked nothing");
    }

    #[test]
    fn major_faults_are_told_by_their_growth() {
        let again = |faults| control("20480 kB", "3").later(&[("process:700:majflt", faults)]);
        assert_eq!(again("3").state("app-mlock"), State::Ok);
        assert_eq!(again("5").said("app-mlock"), "major faults: control (700): 2 more");
    }

    #[test]
    fn what_stays_on_housekeeping_cpus_and_virtual_machines_are_left_to_others() {
        let house = control("0 kB", "0").and("threads:0", "700\t700\t1\t0\tFIFO\t80\t0-1\tcontrol");
        assert_eq!(house.state("app-mlock"), State::NotApplicable);
        let machine = control("0 kB", "0").and("vm:700:name", "qemu-system-x86");
        assert_eq!(machine.state("app-mlock"), State::NotApplicable);
    }

    #[test]
    fn no_threads_known_is_not_the_same_as_no_real_time_threads() {
        assert_eq!(blank(&[]).state("app-mlock"), State::Unreadable);
        let idle = blank(&[("threads:0", "1\t1\t0\t400100\tOTHER\t0\t0-3\tsystemd")]);
        assert_eq!(idle.state("app-mlock"), State::NotApplicable);
        assert_eq!(intel(&[("threads:0", THREAD)]).state("app-mlock"), State::Unreadable);
        for text in HOSTILE {
            assert_eq!(control(text, "0").state("app-mlock"), State::Unreadable);
        }
    }
}
