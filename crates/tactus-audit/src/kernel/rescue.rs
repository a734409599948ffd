//! The rescue of threads that real-time threads keep off their CPU.

use tactus_model::finding::{Severity, State};
use tactus_model::threads::Thread;

use super::throttling::{may_be_rescued, rescued, rescuers, stalld_service, unguarded};
use crate::sentence::{cpus_or_none, meet, read_places};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

pub static CHECKS: &[Check] = &[
    Check {
        id: "no-rescue",
        title: "no mechanism rescues threads that a spinning real-time thread starves",
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
        expected: "one of three on each of CPUs {isolated}: throttling, the fair server, stalld",
        why: "A kernel thread bound to a CPU (a kworker, RCU, the vmstat worker) waits forever behind a real-time \
thread that spins there. Other threads wait for it, and the machine hangs in unrelated places. A real-time vCPU \
whose guest polls is such a spinning thread.",
        fix: "Run stalld on {housekeeping} (systemctl enable --now stalld), as OpenShift does wherever it turns \
throttling off. Or turn one of the kernel's guards on again: write 50000000 to \
/sys/kernel/debug/sched/fair_server/cpuN/runtime (since 6.12), or sysctl kernel.sched_rt_runtime_us=950000.",
        risk: "A boost by stalld takes about 20 us from the real-time thread. The fair server takes up to 50 ms of \
each second from a thread that never sleeps.",
        judge: guards,
        changes: |subject| stalld_service(subject, "no-rescue").into_iter().collect(),
    },
    Check {
        id: "stalld",
        title: "stalld may run on real-time CPUs",
        sources: &[Source::Guide("stalld(8)"), Source::Guide("OpenShift node tuning operator")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::Service],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "Cpus_allowed_list of stalld's threads",
        expected: "{housekeeping} only, if it runs",
        why: "stalld reads the run queues each second and boosts a starved thread for some microseconds. It needs a \
CPU without real-time threads, or it starves with the threads that it should rescue. no-rescue shows whether any \
mechanism rescues them.",
        fix: "CPUAffinity={housekeeping} in the unit of stalld.service, or systemd-cpu-affinity for all services.",
        risk: "None.",
        judge: placed,
        changes: |subject| stalld_service(subject, "stalld").into_iter().collect(),
    },
];

const CALLED: &str =
    "a process is named stalld, but this user may not see its program: run the audit as root";

fn guards(subject: &Subject<'_>) -> Verdict {
    let bare = unguarded(subject)?;
    if bare.is_empty() {
        let said = "the kernel takes some time from real-time threads for starved threads";
        return Ok(Judgement::ok(said).read("kernel.sched_rt_runtime_us, fair_server", "one of them is on"));
    }
    subject.running()?;
    let bad = format!(
        "throttling and fair server are off, and stalld does not run: starved threads on {} are not rescued",
        cpus_or_none(&bare)
    );
    let judgement = Judgement::when(rescued(subject), "stalld rescues starved threads", bad);
    if judgement.state == State::Finding && may_be_rescued(subject) {
        return Err(Judgement::unreadable(CALLED));
    }
    // A stalld among the threads that were left out cannot be seen.
    if judgement.state == State::Finding && subject.threads.left_out > 0 {
        return Err(Judgement::unreadable(
            "the facts do not include all threads, and stalld is not among them",
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
        let why = "stalld does not run; see no-rescue for what else rescues starved threads";
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
        assert!(
            served("0", "50000000").said("no-rescue").ends_with("starved threads on CPU 2 are not rescued")
        );
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
    fn rubbish_is_not_a_rescuer() {
        for text in HOSTILE.iter().filter(|text| !text.contains("18446744073709551616")) {
            assert_ne!(served(text, text).state("no-rescue"), State::Ok, "{text}");
        }
    }
}
