//! Real-time threads of user programs on isolated CPUs: which of them share a CPU.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tactus_model::CpuSet;
use tactus_model::finding::Severity;
use tactus_model::threads::{Policy, Thread};

use crate::sentence::{count, cpus_or_none, few, meet, read_places, read_threads, scheduling, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[
    Check {
        id: "sched-deadline",
        title: "SCHED_DEADLINE threads preempt all FIFO threads",
        sources: &[Source::Kernel("Documentation/scheduler/sched-deadline.rst")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "policy of all threads that may run on isolated CPUs",
        expected: "no SCHED_DEADLINE thread on CPUs {isolated}, unless planned there",
        why: "A SCHED_DEADLINE thread preempts every FIFO and RR thread, priority 99 included, until its runtime is \
used up. Latencies of FIFO threads on the same CPUs then depend on its runtime and period.",
        fix: "Plan for it, or confine it to other CPUs with an exclusive cpuset: its affinity cannot be smaller than \
its scheduling domain.",
        risk: "A deadline thread with fewer CPUs may be refused admission.",
        judge: deadline,
        changes: no_change,
    },
    Check {
        id: "pin-overlap",
        title: "two owners share a real-time CPU",
        sources: &[Source::Osadl],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::RunTime, SetBy::Libvirt],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "Cpus_allowed_list of user threads that are confined to isolated CPUs",
        expected: "virtual machines, containers and tasks have disjoint CPUs; each vCPU has a dedicated CPU",
        why: "Two vCPUs, or a vCPU and a container, on one CPU take turns at best. At FIFO one waits until the other \
sleeps. There is no warning: each of the two is placed correctly by itself.",
        fix: "Give each vCPU, container and task dedicated CPUs: vcpupin, --cpuset-cpus, taskset.",
        risk: "None; it needs more CPUs.",
        judge: overlap,
        changes: no_change,
    },
    Check {
        id: "rt-overcommit",
        title: "several real-time threads share one CPU",
        sources: &[Source::Osadl],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "policy, priority and Cpus_allowed_list of user threads on isolated CPUs",
        expected: "one thread at the highest real-time priority of each isolated CPU",
        why: "Of threads with equal priority the second waits until the first sleeps; lower ones wait for all higher \
ones. Published: twelve threads of priorities 99 to 88 on one core, maximum 27 ms at the lowest; one thread per \
core, 52 us (osadl-2023).",
        fix: "Put one such thread on each CPU: taskset -pc CPU TID, or change the priority: chrt -f -p PRIORITY TID.",
        risk: "None; it needs more CPUs.",
        judge: overcommit,
        changes: no_change,
    },
    Check {
        id: "rt-priority-ceiling",
        title: "a real-time thread does not have the highest priority on its CPU, or has 99",
        sources: &[Source::Osadl, Source::Kernel("kernel/stop_machine.c")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "policy and priority of real-time threads on isolated CPUs",
        expected: "the highest user priority on its CPU, up to 98",
        why: "Only the thread of the highest priority gets the kernel's latency; others add the run times of the \
threads above. At 99 no FIFO thread is above it. No shell and no watchdog of yours can stop it when it spins, and \
kernel threads of priority 99 wait behind it. (The migration threads do not: they are of the stop class, above all \
priorities, whatever ps shows.)",
        fix: "chrt -f -p 95 TID for the important thread; lower priorities for the others.",
        risk: "The thread that had the highest priority now waits.",
        judge: ceiling,
        changes: no_change,
    },
];

/// Order among real-time threads: deadline goes before all priorities.
pub fn rank(thread: &Thread) -> u32 {
    match thread.policy {
        Policy::Deadline => 100,
        Policy::Fifo | Policy::Rr => thread.priority,
        _ => 0,
    }
}

/// User threads with a real-time policy that are confined to isolated CPUs.
fn confined<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = &'a Thread> {
    let isolated = subject.isolated();
    subject.threads.user().filter(|thread| {
        thread.policy.is_realtime() && !thread.cpus.is_empty() && within(&thread.cpus, isolated)
    })
}

/// User threads with a real-time policy that have exactly one CPU, by that CPU.
pub fn by_cpu<'a>(subject: &'a Subject<'_>, among: &CpuSet) -> BTreeMap<u32, Vec<&'a Thread>> {
    let mut map: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    for thread in confined(subject).filter(|thread| thread.cpus.len() == 1) {
        if let Some(cpu) = thread.cpus.first().filter(|cpu| among.contains(*cpu)) {
            map.entry(cpu).or_default().push(thread);
        }
    }
    map
}

fn named(thread: &Thread) -> String {
    format!("{} ({}, {})", thread.name, thread.tid, scheduling(thread))
}

fn deadline(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    let threads = subject.running()?;
    // The kernel's own (schedutil's governor) belong to frequency scaling.
    let there = |thread: &&Thread| thread.policy == Policy::Deadline && meet(&thread.cpus, isolated);
    let found: Vec<&Thread> = threads.user().filter(there).collect();
    let names = few(found.iter().map(|thread| named(thread)));
    let place = cpus_or_none(isolated);
    let judgement = Judgement::when(
        found.is_empty(),
        format!("no SCHED_DEADLINE thread may run on {place}"),
        format!(
            "{} may run on {place} and preempt all others: {names}",
            count(found.len(), "SCHED_DEADLINE thread")
        ),
    );
    Ok(subject.over_all_threads(read_places(judgement, found)))
}

/// The processes with a thread that is confined to isolated CPUs, each with its topmost ancestor of that kind. So a
/// container or a service counts as one owner, however many processes it has.
fn owners(subject: &Subject<'_>) -> HashMap<u32, u32> {
    let isolated = subject.isolated();
    let mut parents: HashMap<u32, u32> = HashMap::new();
    let mut known: HashMap<*const CpuSet, bool> = HashMap::new();
    for thread in subject.threads.user() {
        let fits = || !thread.cpus.is_empty() && within(&thread.cpus, isolated);
        if *known.entry(Arc::as_ptr(&thread.cpus)).or_insert_with(fits) {
            parents.insert(thread.pid, thread.ppid);
        }
    }
    let top = |mut pid: u32| {
        // As deep as a sound tree of processes can be; a loop in the facts ends here too.
        for _ in 0..64 {
            match parents.get(&pid) {
                Some(parent) if parents.contains_key(parent) => pid = *parent,
                _ => break,
            }
        }
        pid
    };
    parents.keys().map(|pid| (*pid, top(*pid))).collect()
}

fn is_virtual_cpu(thread: &Thread) -> bool {
    thread.name.strip_prefix("CPU ").is_some_and(|rest| rest.ends_with("/KVM") || rest.ends_with("/TCG"))
}

fn overlap(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let owners = owners(subject);
    if owners.is_empty() {
        return Err(Judgement::not_applicable(format!(
            "no program is confined to {}",
            cpus_or_none(isolated)
        )));
    }
    let mut claims: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut virtual_cpus: BTreeMap<u32, Vec<&Thread>> = BTreeMap::new();
    let mut seen: HashSet<(u32, *const CpuSet)> = HashSet::new();
    for thread in subject.threads.user() {
        let Some(owner) = owners.get(&thread.pid) else { continue };
        if thread.cpus.is_empty() || !within(&thread.cpus, isolated) {
            continue;
        }
        if seen.insert((*owner, Arc::as_ptr(&thread.cpus))) {
            for cpu in thread.cpus.iter() {
                claims.entry(cpu).or_default().insert(*owner);
            }
        }
        if is_virtual_cpu(thread) && thread.cpus.len() == 1 {
            virtual_cpus.entry(thread.cpus.first().unwrap_or(0)).or_default().push(thread);
        }
    }
    let name = |pid: &u32| {
        let name = subject.threads.get(*pid).map_or("process", |thread| thread.name.as_str());
        format!("{name} ({pid})")
    };
    let mut shared = Vec::new();
    for (cpu, owners) in &claims {
        let several = virtual_cpus.get(cpu).filter(|threads| threads.len() > 1);
        if owners.len() > 1 {
            shared.push(format!("CPU {cpu}: {}", few(owners.iter().map(name))));
        } else if let Some(threads) = several {
            shared.push(format!("CPU {cpu}: {}", few(threads.iter().map(|thread| &thread.name))));
        }
    }
    let taken: CpuSet = claims.keys().copied().collect();
    let judgement = Judgement::when(
        shared.is_empty(),
        format!("each of {} has one owner", cpus_or_none(&taken)),
        format!("{} with more than one owner: {}", count(shared.len(), "real-time CPU"), few(&shared)),
    );
    let shown = subject
        .threads
        .user()
        .filter(|thread| owners.contains_key(&thread.pid) && within(&thread.cpus, isolated));
    Ok(subject.over_all_threads(read_places(judgement, shown)))
}

fn overcommit(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let placed = by_cpu(subject, isolated);
    let (mut tied, mut stacked) = (Vec::new(), Vec::new());
    for (cpu, threads) in &placed {
        let top = threads.iter().map(|thread| rank(thread)).max().unwrap_or(0);
        let highest: Vec<&&Thread> = threads.iter().filter(|thread| rank(thread) == top).collect();
        let list =
            |threads: &[&&Thread]| format!("CPU {cpu}: {}", few(threads.iter().map(|thread| named(thread))));
        if highest.len() > 1 {
            tied.push(list(&highest));
        } else if threads.len() > 1 {
            stacked.push(list(&threads.iter().collect::<Vec<_>>()));
        }
    }
    // Threads that share several CPUs: more of them than CPUs.
    let mut groups: BTreeMap<&CpuSet, Vec<&Thread>> = BTreeMap::new();
    for thread in confined(subject).filter(|thread| thread.cpus.len() > 1) {
        groups.entry(&thread.cpus).or_default().push(thread);
    }
    for (cpus, threads) in groups.iter().filter(|(cpus, threads)| threads.len() > cpus.len()) {
        tied.push(format!("CPUs {cpus}: {}", few(threads.iter().map(|thread| named(thread)))));
    }
    if placed.is_empty() && groups.is_empty() {
        return Err(Judgement::not_applicable(format!(
            "no real-time thread is placed on {}",
            cpus_or_none(isolated)
        )));
    }
    let shown = || confined(subject);
    let read = |judgement| read_threads(judgement, "policy and priority", shown(), scheduling);
    if !tied.is_empty() {
        let said = format!("real-time threads of the highest priority share CPUs: {}", few(&tied));
        return Ok(read(Judgement::finding(said)));
    }
    if !stacked.is_empty() {
        let said = format!("real-time threads wait for higher ones on the same CPU: {}", few(&stacked));
        return Ok(read(Judgement::finding(said)).at(Severity::Info));
    }
    let said = format!(
        "{} on {}, one on each CPU",
        count(shown().count(), "real-time thread"),
        cpus_or_none(isolated)
    );
    Ok(subject.over_all_threads(read(Judgement::ok(said))))
}

fn ceiling(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let all: Vec<&Thread> = confined(subject).filter(|thread| thread.policy != Policy::Deadline).collect();
    if all.is_empty() {
        return Err(Judgement::not_applicable(format!(
            "no real-time thread is placed on {}",
            cpus_or_none(isolated)
        )));
    }
    let mut said = Vec::new();
    let rivals: Vec<&Thread> = all.iter().copied().filter(|thread| thread.priority >= 99).collect();
    if !rivals.is_empty() {
        said.push(format!(
            "at 99, with no higher priority left for recovery: {}",
            few(rivals.iter().map(|thread| named(thread)))
        ));
    }
    let mut below = Vec::new();
    for (cpu, threads) in by_cpu(subject, isolated) {
        let Some(top) = threads.iter().max_by_key(|thread| rank(thread)) else { continue };
        let under = threads.iter().filter(|thread| thread.pid != top.pid && rank(thread) < rank(top));
        below.extend(under.map(|thread| format!("{} on CPU {cpu} below {}", named(thread), named(top))));
    }
    if !below.is_empty() {
        said.push(format!("not the highest priority on their CPU: {}", few(&below)));
    }
    let good = format!(
        "{} on {} have the highest priority on their CPUs, and are below 99",
        count(all.len(), "real-time thread"),
        cpus_or_none(isolated)
    );
    let judgement = Judgement::when(said.is_empty(), good, said.join("; "));
    Ok(subject.over_all_threads(read_threads(judgement, "policy and priority", all, scheduling)))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, intel};

    const IDS: [&str; 4] = ["sched-deadline", "pin-overlap", "rt-overcommit", "rt-priority-ceiling"];

    fn with(lines: &[&str]) -> System {
        let text: Vec<String> = lines.iter().map(|line| line.replace(' ', "\t").replace('_', " ")).collect();
        intel(&[("threads:0", &text.join("\n"))])
    }

    const QEMU: [&str; 3] = [
        "800 800 1 400100 OTHER 0 0,1 qemu-kvm",
        "801 800 1 400040 FIFO 1 2 CPU_0/KVM",
        "802 800 1 400040 FIFO 1 3 CPU_1/KVM",
    ];

    #[test]
    fn a_machine_of_well_placed_virtual_cpus_is_good() {
        for id in ["pin-overlap", "rt-overcommit", "rt-priority-ceiling", "sched-deadline"] {
            assert_eq!(with(&QEMU).state(id), State::Ok, "{id}");
            assert_eq!(with(&QEMU).and("threads:cut", "7").state(id), State::Unreadable, "{id}");
        }
        for id in IDS {
            assert_eq!(intel(&[]).state(id), State::Unreadable, "{id}");
            assert_eq!(with(&QEMU).isolate("0-3").state(id), State::NotApplicable, "{id}");
        }
        let idle = with(&["1 1 0 400100 OTHER 0 0,1 systemd"]);
        assert_eq!(idle.state("pin-overlap"), State::NotApplicable);
        assert_eq!(idle.state("rt-overcommit"), State::NotApplicable);
        assert_eq!(idle.state("sched-deadline"), State::Ok);
    }

    #[test]
    fn two_owners_of_a_cpu_are_named() {
        let mut lines = QEMU.to_vec();
        lines.push("900 900 1 400100 OTHER 0 3 postgres");
        let said = with(&lines).said("pin-overlap");
        assert_eq!(said, "1 real-time CPU with more than one owner: CPU 3: qemu-kvm (800), postgres (900)");
        let twice = with(&[QEMU[0], QEMU[1], "802 800 1 400040 FIFO 1 2 CPU_1/KVM"]);
        assert_eq!(
            twice.said("pin-overlap"),
            "1 real-time CPU with more than one owner: CPU 2: CPU 0/KVM, CPU 1/KVM"
        );
    }

    #[test]
    fn processes_of_one_container_are_one_owner() {
        let lines = [
            "900 900 700 400100 OTHER 0 2,3 init",
            "901 901 900 400100 OTHER 0 2,3 worker",
            "902 902 901 400100 FIFO 80 3 control",
        ];
        assert_eq!(with(&lines).state("pin-overlap"), State::Ok);
        let a_loop = ["900 900 901 400100 OTHER 0 2 a", "901 901 900 400100 OTHER 0 2 b"];
        let _ = with(&a_loop).state("pin-overlap");
    }

    #[test]
    fn threads_of_one_priority_on_one_cpu_are_a_blocker_and_a_stack_is_worth_knowing() {
        let tied =
            with(&["900 900 1 400100 FIFO 80 3 a", "901 901 1 400100 RR 80 3 b"]).finding("rt-overcommit");
        assert_eq!((tied.state, tied.severity), (State::Finding, Severity::Blocker));
        let stack =
            with(&["900 900 1 400100 FIFO 80 3 a", "901 901 1 400100 FIFO 70 3 b"]).finding("rt-overcommit");
        assert_eq!((stack.state, stack.severity), (State::Finding, Severity::Info));
        let crowd = with(&[
            "900 900 1 400100 FIFO 8 2,3 a",
            "901 901 1 400100 FIFO 7 2,3 b",
            "902 902 1 400100 FIFO 6 2,3 c",
        ]);
        assert_eq!(crowd.finding("rt-overcommit").severity, Severity::Blocker);
        assert_eq!(with(&["900 900 1 400100 FIFO 8 2,3 a"]).state("rt-overcommit"), State::Ok);
    }

    #[test]
    fn ninety_nine_leaves_nothing_above_and_a_thread_below_another_program_is_not_the_highest() {
        let said = |lines: &[&str]| with(lines).said("rt-priority-ceiling");
        assert_eq!(
            said(&["900 900 1 400100 FIFO 99 3 a"]),
            "at 99, with no higher priority left for recovery: a (900, FIFO 99)"
        );
        let two = said(&["900 900 1 400100 FIFO 80 3 a", "901 901 1 400100 FIFO 90 3 b"]);
        assert_eq!(
            two,
            "not the highest priority on their CPU: a (900, FIFO 80) on CPU 3 below b (901, FIFO 90)"
        );
        let one_program = with(&["900 900 1 400100 FIFO 80 3 a", "901 900 1 400100 FIFO 90 3 b"]);
        assert_eq!(one_program.state("rt-priority-ceiling"), State::Ok);
    }

    #[test]
    fn deadline_threads_are_reported() {
        let found = with(&["900 900 1 400100 DEADLINE 0 0-3 video"]);
        assert_eq!(found.state("sched-deadline"), State::Finding);
        assert_eq!(with(&["90 90 2 208040 DEADLINE 0 0-3 sugov:0"]).state("sched-deadline"), State::Ok);
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            for id in ["pin-overlap", "rt-overcommit", "rt-priority-ceiling"] {
                assert_ne!(with(&[]).and("threads:0", text).state(id), State::Ok, "{id}: {text}");
            }
        }
    }
}
