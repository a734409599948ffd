//! The threads that handle interrupts, softirqs and RCU callbacks, and their priorities.

use tactus_model::change::Change;
use tactus_model::finding::Severity;
use tactus_model::threads::{Policy, Thread};

use super::realtime;
use crate::sentence::{count, cpus_or_none, few, meet, read_threads, scheduling};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

/// The kernel's default for a threaded handler (`sched_set_fifo`, kernel/sched/syscalls.c).
const DEFAULT: &str = "FIFO 50";
/// Its default since 6.18 for the second one of an interrupt, `irq/N-s-NAME` (`sched_set_fifo_secondary`).
const SECONDARY: &str = "FIFO 49";

pub static CHECKS: &[Check] = &[
    Check {
        id: "irq-thread-priority",
        title: "interrupt threads preempt real-time work, or have no real-time priority",
        sources: &[Source::RedHat],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "policy and priority of the threads irq/*, and of the real-time threads on the same CPUs",
        expected: "FIFO or RR, and on CPUs {isolated} below the real-time threads there",
        why: "A threaded handler has FIFO 50 by default, a secondary one (irq/N-s-NAME) 49 since Linux 6.18. A \
real-time thread of lower priority, such as a vCPU of FIFO 1, waits for every interrupt on its CPU. A handler \
without real-time priority waits for ordinary work, and its device waits with it.",
        fix: "Move the interrupt away (irq-affinity). If it must stay: chrt -f -p PRIORITY TID, below the real-time \
threads of its CPU. For a handler without real-time priority: chrt -f -p 50 TID (49 for a secondary one).",
        risk: "Priority inversion: a real-time thread that needs the device waits for a handler of lower priority \
than others.",
        judge: irq_threads,
        changes: |subject| {
            let late =
                subject.threads.named("irq/").filter(|thread| thread.kernel && !thread.policy.is_realtime());
            late.map(|thread| subject.schedule("irq-thread-priority", thread, usual(subject, thread)))
                .collect()
        },
    },
    Check {
        id: "rcu-softirq-priority",
        title: "threads for RCU and softirqs starve behind real-time threads",
        sources: &[Source::Tuned("realtime-virtual-host"), Source::Guide("OpenShift node tuning operator")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime, SetBy::KernelCommandLine],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "policy and priority of rcuc/*, rcub/*, ksoftirqd/*, ktimers/* (ktimersoftd/*)",
        expected: "rcuc and rcub FIFO 4 or more; ksoftirqd and ktimers FIFO 2 or more; ktimersoftd FIFO 3 or more",
        why: "On a PREEMPT_RT kernel softirqs and RCU callbacks run in these threads, at FIFO 1 or as ordinary \
threads. Below a spinning vCPU of FIFO 1 they never run. Timers do not expire, memory is not freed, and grace \
periods never end. TuneD's real-time profiles put them just above it.",
        fix: "chrt -f -p 4 for rcuc/* and rcub/*, chrt -f -p 2 for ksoftirqd/* and ktimers/*. Or boot with \
rcutree.kthread_prio=11 for rcuc and rcub (OpenShift). Keep them above real-time threads that never sleep, and below \
those that do.",
        risk: "They preempt real-time threads of lower priority.",
        judge: helpers,
        changes: |subject| {
            if subject.kernel.rt {
                helper_threads(subject).map(|(thread, least)| raise(subject, thread, least)).collect()
            } else {
                Vec::new()
            }
        },
    },
];

/// How the kernel itself would schedule this handler.
fn usual(subject: &Subject<'_>, thread: &Thread) -> &'static str {
    let secondary = thread.name.split_once('-').is_some_and(|(_, rest)| rest.starts_with("s-"));
    if secondary && subject.kernel.since(6, 18) { SECONDARY } else { DEFAULT }
}

fn irq_threads(subject: &Subject<'_>) -> Verdict {
    subject.running()?;
    let all: Vec<&Thread> = subject.threads.named("irq/").filter(|thread| thread.kernel).collect();
    if all.is_empty() {
        return Err(Judgement::not_applicable("no interrupt handler is a thread here"));
    }
    let late: Vec<&Thread> = all.iter().copied().filter(|thread| !thread.policy.is_realtime()).collect();
    if !late.is_empty() {
        let names = few(late.iter().map(|thread| &thread.name));
        let said = format!("{} without real-time priority: {names}", count(late.len(), "interrupt thread"));
        return Ok(read_threads(Judgement::finding(said), "policy and priority", late, scheduling));
    }
    let placed = realtime::by_cpu(subject, subject.isolated());
    let goes_before = |thread: &&Thread| {
        placed.iter().any(|(cpu, there)| {
            thread.cpus.contains(*cpu)
                && there.iter().any(|other| realtime::rank(thread) >= realtime::rank(other))
        })
    };
    let above: Vec<&Thread> = all.iter().copied().filter(goes_before).collect();
    let names = few(above.iter().map(|thread| &thread.name));
    let judgement = Judgement::when(
        above.is_empty(),
        format!(
            "{} with real-time priority, none above a real-time thread on its CPU",
            count(all.len(), "interrupt thread")
        ),
        format!(
            "on {} interrupt threads preempt real-time threads: {names}",
            cpus_or_none(subject.isolated())
        ),
    );
    let shown = if above.is_empty() { all } else { above };
    Ok(subject.over_all_threads(read_threads(judgement, "policy and priority", shown, scheduling)))
}

/// The helpers of each CPU with the least priority that they should have: TuneD's realtime-virtual-*.
fn helper_threads<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = (&'a Thread, u32)> {
    subject.threads.kernel().filter_map(|thread| {
        let (name, _) = thread.name.split_once('/')?;
        let least = match name {
            "rcuc" | "rcub" => 4,
            "ktimersoftd" => 3,
            "ksoftirqd" | "ktimers" => 2,
            _ => return None,
        };
        Some((thread, least))
    })
}

fn is_raised(thread: &Thread, least: u32) -> bool {
    matches!(thread.policy, Policy::Fifo | Policy::Rr) && thread.priority >= least
}

fn raise(subject: &Subject<'_>, thread: &Thread, least: u32) -> Change {
    let then = if is_raised(thread, least) { scheduling(thread) } else { format!("FIFO {least}") };
    subject.schedule("rcu-softirq-priority", thread, then)
}

fn helpers(subject: &Subject<'_>) -> Verdict {
    if !subject.kernel.rt {
        let why = "without PREEMPT_RT softirqs run when an interrupt ends, not in threads";
        return Err(Judgement::not_applicable(why));
    }
    subject.running()?;
    let all: Vec<(&Thread, u32)> = helper_threads(subject).collect();
    if all.is_empty() {
        return Err(Judgement::unreadable("no kernel thread can be seen from here"));
    }
    let low: Vec<&Thread> =
        all.iter().filter(|(thread, least)| !is_raised(thread, *least)).map(|(thread, _)| *thread).collect();
    let on_isolated = low.iter().filter(|thread| meet(&thread.cpus, subject.isolated())).count();
    let names = few(low.iter().map(|thread| &thread.name));
    let judgement = Judgement::when(
        low.is_empty(),
        format!("{} for RCU and softirqs are above FIFO 1", count(all.len(), "thread")),
        format!(
            "{} for RCU and softirqs may starve, {on_isolated} of them on {}: {names}",
            count(low.len(), "thread"),
            cpus_or_none(subject.isolated())
        ),
    );
    let shown = if low.is_empty() { all.into_iter().map(|(thread, _)| thread).collect() } else { low };
    Ok(subject.over_all_threads(read_threads(judgement, "policy and priority", shown, scheduling)))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, System, intel};

    fn with(lines: &[&str]) -> System {
        let text: Vec<String> = lines.iter().map(|line| line.replace(' ', "\t").replace('_', " ")).collect();
        intel(&[("uname:version", "#1 SMP PREEMPT_RT"), ("threads:0", &text.join("\n"))])
    }

    #[test]
    fn interrupt_threads_are_between_ordinary_and_real_time_work() {
        let id = "irq-thread-priority";
        let thread = "99 99 2 208040 FIFO 50 1 irq/24-eth0";
        assert_eq!(with(&[thread]).state(id), State::Ok);
        let vcpu = "900 899 1 400040 FIFO 1 3 CPU_0/KVM";
        assert_eq!(with(&[thread, vcpu]).state(id), State::Ok, "they are on other CPUs");
        let beside = with(&["99 99 2 208040 FIFO 50 3 irq/24-eth0", vcpu]);
        assert_eq!(beside.said(id), "on CPUs 2,3 interrupt threads preempt real-time threads: irq/24-eth0");
        let above = with(&["99 99 2 208040 FIFO 50 3 irq/24-eth0", "900 899 1 400040 FIFO 80 3 control"]);
        assert_eq!(above.state(id), State::Ok);
        let late = with(&["99 99 2 208040 OTHER 0 1 irq/24-eth0", thread]);
        assert_eq!(late.state(id), State::Finding);
        assert_eq!(late.wanted(id), ["scheduling of irq/24-eth0 (99) = FIFO 50"]);
        let second = with(&["99 99 2 208040 OTHER 0 1 irq/24-s-eth0"]);
        let on = |release: &str| second.clone().and("uname:release", release).wanted(id);
        assert_eq!(on("6.18.0"), ["scheduling of irq/24-s-eth0 (99) = FIFO 49"]);
        assert_eq!(on("6.17.0"), ["scheduling of irq/24-s-eth0 (99) = FIFO 50"]);
        assert_eq!(with(&[vcpu]).state(id), State::NotApplicable);
        assert_eq!(intel(&[]).state(id), State::Unreadable);
        assert_eq!(with(&[thread]).and("threads:cut", "3").state(id), State::Unreadable);
    }

    #[test]
    fn helpers_are_above_a_virtual_cpu_that_spins() {
        let id = "rcu-softirq-priority";
        let tuned = [
            "20 20 2 4208040 FIFO 4 2 rcuc/2",
            "21 21 2 4208040 FIFO 2 2 ksoftirqd/2",
            "22 22 2 4208040 FIFO 2 2 ktimers/2",
        ];
        assert_eq!(with(&tuned).state(id), State::Ok);
        assert_eq!(with(&["20 20 2 4208040 FIFO 11 2 rcuc/2"]).state(id), State::Ok, "as OpenShift does");
        assert!(with(&["20 20 2 4208040 FIFO 11 2 rcuc/2"]).wanted(id).is_empty());
        let stock = with(&["20 20 2 4208040 FIFO 1 2 rcuc/2", "21 21 2 4208040 OTHER 0 0 ksoftirqd/0"]);
        assert_eq!(
            stock.said(id),
            "2 threads for RCU and softirqs may starve, 1 of them on CPUs 2,3: rcuc/2, ksoftirqd/0"
        );
        assert_eq!(
            stock.wanted(id),
            ["scheduling of rcuc/2 (20) = FIFO 4", "scheduling of ksoftirqd/0 (21) = FIFO 2"]
        );
        assert_eq!(stock.and("uname:version", "#1 SMP PREEMPT_DYNAMIC").state(id), State::NotApplicable);
        assert_eq!(with(&[]).state(id), State::Unreadable);
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            for id in ["irq-thread-priority", "rcu-softirq-priority"] {
                assert_ne!(with(&[]).and("threads:0", text).state(id), State::Ok, "{id}: {text}");
            }
        }
    }
}
