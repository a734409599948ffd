//! What rescues threads that real-time threads keep off their CPU.

use tactus_model::finding::{Severity, State};
use tactus_model::threads::Thread;

use super::throttling::{may_be_rescued, rescued, rescuers, stalld_service, unguarded};
use crate::sentence::{cpus_or_none, meet, read_places};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

pub static CHECKS: &[Check] = &[
    Check {
        id: "no-rescue",
        title: "nothing rescues what a spinning real-time thread starves",
        sources: &[
            Source::RedHat,
            Source::Kernel("kernel/sched/deadline.c"),
            Source::Guide("OpenShift node tuning operator"),
            Source::Guide("stalld(8)"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime, SetBy::Service],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "kernel.sched_rt_runtime_us (before Linux 6.12, or with RT_GROUP_SCHED); fair_server/cpu*/runtime (since \
6.12); whether stalld runs",
        expected: "one of the three on each CPU of {isolated}: throttling, the fair server, stalld",
        why: "A kernel thread that is bound to a CPU (a kworker, RCU, the vmstat worker) waits for ever behind a \
real-time thread that spins there, and others wait for it: the machine hangs in places that have nothing to do with \
real time. A vCPU with a real-time policy whose guest polls is such a thread.",
        fix: "Run stalld on {housekeeping} (systemctl enable --now stalld), as OpenShift does wherever it takes the \
throttling off; or turn one of the kernel's own guards on again: write 50000000 to \
/sys/kernel/debug/sched/fair_server/cpuN/runtime (since 6.12), or sysctl kernel.sched_rt_runtime_us=950000.",
        risk: "When stalld boosts, it takes about 20 us from the real-time thread; the fair server takes up to 50 ms of a \
second from one that never sleeps.",
        judge: guards,
        changes: |subject| stalld_service(subject, "no-rescue").into_iter().collect(),
    },
    Check {
        id: "stalld",
        title: "stalld itself may run on real-time CPUs",
        sources: &[Source::Guide("stalld(8)"), Source::Guide("OpenShift node tuning operator")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::Service],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "Cpus_allowed_list of stalld's threads",
        expected: "where it runs, {housekeeping}",
        why: "stalld reads the run queues each second and boosts a thread that has starved too long for some \
microseconds. It needs a CPU that no real-time thread keeps from it, or it starves with those that it should rescue. \
Whether anything has to rescue them, no-rescue says.",
        fix: "CPUAffinity={housekeeping} in the unit of stalld.service, or systemd-cpu-affinity for all services.",
        risk: "None.",
        judge: placed,
        changes: |subject| stalld_service(subject, "stalld").into_iter().collect(),
    },
];

const CALLED: &str =
    "a process is called stalld, and this user may not see which program it is: run the audit as root";

fn guards(subject: &Subject<'_>) -> Verdict {
    let bare = unguarded(subject)?;
    if bare.is_empty() {
        let said = "the kernel takes some time from real-time threads for those that they starve";
        return Ok(Judgement::ok(said).read("kernel.sched_rt_runtime_us, fair_server", "one of them is on"));
    }
    subject.running()?;
    let bad = format!(
        "throttling and fair server are off, and stalld does not run: what starves on {} stays so",
        cpus_or_none(&bare)
    );
    let judgement = Judgement::when(rescued(subject), "stalld rescues starved threads", bad);
    if judgement.state == State::Finding && may_be_rescued(subject) {
        return Err(Judgement::unreadable(CALLED));
    }
    // A stalld among the threads that were left out cannot be seen.
    if judgement.state == State::Finding && subject.threads.left_out > 0 {
        return Err(Judgement::unreadable(
            "not all threads are among the facts, and stalld is not among those that are",
        ));
    }
    Ok(judgement.read("threads", if rescued(subject) { "stalld" } else { "no stalld" }))
}

fn placed(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let processes = rescuers(subject);
    let own: Vec<&Thread> = subject.threads.user().filter(|thread| processes.contains(&thread.pid)).collect();
    if own.is_empty() && may_be_rescued(subject) {
        return Err(Judgement::unreadable(CALLED));
    }
    if own.is_empty() {
        let why = "stalld does not run: whether anything else rescues starved threads, no-rescue says";
        return Err(Judgement::not_applicable(why));
    }
    let away = own.iter().all(|thread| !meet(&thread.cpus, isolated));
    let bad = format!("stalld may run on {}, where it starves with the others", cpus_or_none(isolated));
    Ok(read_places(Judgement::when(away, "stalld runs on housekeeping CPUs", bad), own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, STALLD_RUNS, System, intel};

    const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    const NONE: (&str, &str) = ("threads:0", "1\t1\t0\t400100\tOTHER\t0\t0-1\tsystemd");

    fn on(release: &str, runtime: &str) -> System {
        intel(&[("uname:release", release), (RUNTIME, runtime), NONE])
    }

    fn served(first: &str, second: &str) -> System {
        let path = |cpu: u32| format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
        on("6.12.43", "-1").and(&path(2), first).and(&path(3), second)
    }

    #[test]
    fn with_every_guard_off_it_is_grave() {
        let bare = served("0", "0");
        let found = bare.finding("no-rescue");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Major));
        assert_eq!(bare.clone().with(STALLD_RUNS).state("no-rescue"), State::Ok);
        assert_eq!(served("50000000", "50000000").state("no-rescue"), State::Ok);
        assert!(served("0", "50000000").said("no-rescue").ends_with("what starves on CPU 2 stays so"));
        assert_eq!(bare.and("threads:cut", "5").state("no-rescue"), State::Unreadable);
        assert_eq!(on("6.12.43", "-1").state("no-rescue"), State::Unreadable, "debugfs cannot be seen");
        assert_eq!(on("6.1.0", "-1").state("no-rescue"), State::Finding);
        assert_eq!(on("6.1.0", "950000").state("no-rescue"), State::Ok);
        let grouped = served("0", "0").and(RUNTIME, "950000").and("config:CONFIG_RT_GROUP_SCHED", "y");
        assert_eq!(grouped.state("no-rescue"), State::Ok);
    }

    #[test]
    fn who_may_not_see_programs_of_roots_is_not_told_that_stalld_does_not_run() {
        let user = served("0", "0").with(STALLD_RUNS).unreadable("process:700:exe", "Permission denied");
        assert_eq!((user.state("no-rescue"), user.state("stalld")), (State::Unreadable, State::Unreadable));
        assert!(user.said("no-rescue").contains("as root"), "{}", user.said("no-rescue"));
        assert!(user.and(RUNTIME, "950000").changes("rt-throttling").is_empty(), "it is not believed either");
    }

    #[test]
    fn no_two_checks_ask_together_for_every_guard_to_go() {
        for system in [on("6.1.0", "950000"), served("50000000", "50000000"), served("0", "50000000")] {
            assert!(system.changes("rt-throttling").is_empty());
            // Its change is for who asks for it by name.
            let found = system.finding("fair-server");
            assert!(found.state != State::Finding || found.severity == Severity::Info, "{}", found.message);
        }
        let installed = served("0", "0").and("program:stalld", "/usr/bin/stalld");
        assert_eq!(installed.wanted("no-rescue"), ["service stalld.service = active"]);
        assert!(served("0", "0").changes("no-rescue").is_empty(), "it is not installed");
    }

    #[test]
    fn stalld_keeps_house_where_it_runs() {
        assert_eq!(served("0", "0").state("stalld"), State::NotApplicable);
        assert_eq!(served("0", "0").with(STALLD_RUNS).state("stalld"), State::Ok);
        let beside =
            served("0", "0").with(STALLD_RUNS).and("threads:0", &STALLD_RUNS[0].1.replace("0-1", "0-3"));
        assert_eq!(beside.state("stalld"), State::Finding);
        assert_eq!(intel(&[]).state("stalld"), State::Unreadable);
    }

    #[test]
    fn rubbish_rescues_nobody() {
        for text in HOSTILE.iter().filter(|text| !text.contains("18446744073709551616")) {
            assert_ne!(served(text, text).state("no-rescue"), State::Ok, "{text}");
        }
    }
}
