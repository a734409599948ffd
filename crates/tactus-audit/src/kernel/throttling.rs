//! Mechanisms that take time from real-time threads so that others get some.

use tactus_model::CpuSet;
use tactus_model::change::{Change, Effect, Form, Target};
use tactus_model::facts::Reading;
use tactus_model::finding::{Severity, State};

use crate::sentence::cpus_or_none;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const SERVER: &str = "/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime";

pub static CHECKS: &[Check] = &[
    Check {
        id: "rt-throttling",
        title: "the kernel throttles real-time threads",
        sources: &[
            Source::RedHat,
            Source::Kernel("Documentation/scheduler/sched-rt-group.rst"),
            Source::Kernel("kernel/sched/rt.c"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: RUNTIME,
        expected: "-1, with stalld running to rescue starved threads",
        why: "FIFO and RR threads of a CPU may use sched_rt_runtime_us of each sched_rt_period_us (950 of 1000 ms by \
default). The kernel then stops them for the rest of the period: 50 ms for a thread that spins. Since Linux 6.12, \
without RT_GROUP_SCHED, the value only limits SCHED_DEADLINE admission (so the code; the kernel's documentation still \
describes the old rule).",
        fix: "Run stalld on {housekeeping} first, so that starved threads are still rescued. Then sysctl \
kernel.sched_rt_runtime_us=-1. A real-time thread that sleeps for 5 % of each second is never throttled, and needs \
neither.",
        risk: "A real-time thread that never sleeps starves everything else on its CPU, kernel threads included, and \
the system may lock up. The documentation of the profiles calls it extremely dangerous. Leave such a CPU idle time, \
or run stalld.",
        judge: throttling,
        changes: |subject| {
            // Never the last guard: stalld comes with it, and before it.
            let Some(rescue) = stalld_service(subject, "rt-throttling") else { return Vec::new() };
            let off = subject.set("rt-throttling", RUNTIME, Form::Plain, "-1");
            off.map(|off| vec![rescue, off]).unwrap_or_default()
        },
    },
    Check {
        id: "fair-server",
        title: "the fair server takes time from real-time threads",
        sources: &[Source::Kernel("commit 557a6bfc662c"), Source::Kernel("kernel/sched/deadline.c")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
        expected: "0 on CPUs {isolated} if stalld runs; otherwise leave it on, as the last mechanism that rescues starved \
threads",
        why: "Since Linux 6.12 a deadline server gives 50 ms a second to ordinary threads that real-time threads \
starve. It preempts every FIFO thread, and takes time only while an ordinary thread waits. While one waits, a timer \
on that CPU interrupts about once a second. While it serves one, a nohz_full CPU has its tick.",
        fix: "Run stalld on {housekeeping}; only then echo 0 > /sys/kernel/debug/sched/fair_server/cpuN/runtime for \
each N of CPUs {isolated}. If the real-time threads sleep for 5 % of each second, leave it on.",
        risk: "Without stalld a real-time thread that never sleeps starves ordinary and kernel threads on its CPU, \
and the machine hangs: see no-rescue. The kernel warns when you turn it off.",
        judge: fair_server,
        changes: |subject| {
            // If nothing else rescues starved threads this is only information, and tuning leaves it out.
            let path = |cpu: u32| SERVER.replace("{cpu}", &cpu.to_string());
            let zero = |cpu| subject.set("fair-server", &path(cpu), Form::Plain, "0");
            subject.isolated().iter().filter_map(zero).collect()
        },
    },
];

/// Whether a kernel that has RT_GROUP_SCHED does not use it, because of its command line or, since 6.16, its
/// configuration (`rt_group_sched=` of kernel-parameters.txt).
pub(super) fn groups_are_off(subject: &Subject<'_>) -> bool {
    if subject.cmdline.has("rt_group_sched") {
        return !subject.cmdline.flag("rt_group_sched");
    }
    subject.facts.text("config:CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED") == Some("y")
}

/// Whether real-time threads are accounted by group; `None`: nothing tells.
fn by_group(subject: &Subject<'_>) -> Option<bool> {
    if groups_are_off(subject) {
        return Some(false);
    }
    match subject.facts.0.get("config:CONFIG_RT_GROUP_SCHED") {
        Some(Reading::Text(value)) => Some(value.trim() == "y"),
        Some(Reading::Absent) => Some(false),
        _ => subject.facts.text("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").map(|_| true),
    }
}

/// Runtime and period of throttling, in microseconds.
fn budget(subject: &Subject<'_>) -> Result<(i64, i64), Judgement> {
    let text = subject.value(RUNTIME)?;
    let runtime = text
        .parse::<i64>()
        .map_err(|_| Judgement::unreadable(format!("{RUNTIME} is not a number")).read(RUNTIME, text))?;
    let period = subject.facts.text(PERIOD).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    Ok((runtime, period))
}

/// A runtime of the whole period throttles no thread (`sched_rt_runtime_exceeded` in kernel/sched/rt.c).
fn unlimited((runtime, period): (i64, i64)) -> bool {
    runtime < 0 || runtime >= period
}

fn throttling(subject: &Subject<'_>) -> Verdict {
    let (runtime, period) = budget(subject)?;
    let read = |judgement: Judgement| judgement.read(RUNTIME, runtime.to_string());
    if unlimited((runtime, period)) {
        return Ok(read(Judgement::ok("real-time threads are not throttled")));
    }
    let stops = format!("real-time threads of a CPU get {runtime} of every {period} us");
    if !subject.kernel.since(6, 12) {
        return Ok(read(Judgement::finding(stops)));
    }
    match by_group(subject) {
        Some(true) => Ok(read(Judgement::finding(format!("{stops} (per group)")))),
        Some(false) => Err(read(Judgement::not_applicable(
            "since Linux 6.12 this value limits only SCHED_DEADLINE; the fair server replaces it",
        ))),
        None => Ok(read(
            Judgement::finding(format!(
                "{stops}, if this kernel has RT_GROUP_SCHED: its configuration is unknown"
            ))
            .at(Severity::Minor),
        )),
    }
}

/// Whether a fair server may exist, and if so whether it can be seen.
fn server_is_there(subject: &Subject<'_>) -> Result<(), Judgement> {
    if subject.facts.under("/sys/kernel/debug/sched/fair_server/").next().is_some() {
        return Ok(());
    }
    if subject.kernel.before(6, 12) {
        return Err(Judgement::not_applicable("kernels before 6.12 have no fair server"));
    }
    Err(Judgement::unreadable(
        "/sys/kernel/debug/sched/fair_server cannot be seen: mount debugfs, or be root",
    ))
}

fn fair_server(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    server_is_there(subject)?;
    let judgement = subject.expect_per_cpu(isolated, SERVER, "0", |text| text == "0")?;
    let on = |cpu: &u32| subject.facts.number(&SERVER.replace("{cpu}", &cpu.to_string())) != Some(0);
    let said = match judgement.state {
        State::Ok => format!("the fair server is off on {}", cpus_or_none(isolated)),
        State::Finding => {
            let cpus = isolated.iter().filter(on).collect();
            format!("the fair server takes time from real-time threads on {}", cpus_or_none(&cpus))
        }
        _ => judgement.said,
    };
    if judgement.state == State::Finding && !rescued(subject) {
        let said =
            format!("{said}: without stalld it is the last that rescues starved threads, so it stays on");
        return Ok(Judgement { said, ..judgement }.at(Severity::Info));
    }
    Ok(Judgement { said, ..judgement })
}

/// Where stalld is installed.
const STALLD: [&str; 6] = [
    "/usr/bin/stalld",
    "/usr/sbin/stalld",
    "/usr/local/bin/stalld",
    "/usr/local/sbin/stalld",
    "/bin/stalld",
    "/sbin/stalld",
];

/// The processes of stalld, which boosts threads that starve. A name proves nothing: any user can name a thread so,
/// link to a program of root, or run it in a container. So the process must be root's, outside of containers, and run
/// the installed program.
pub fn rescuers(subject: &Subject<'_>) -> Vec<u32> {
    let is = |pid: u32| {
        let reading = |key: &str| subject.facts.text(&format!("process:{pid}:{key}"));
        let outside = reading("NSpid").is_some_and(|numbers| numbers.split_whitespace().count() == 1);
        outside && reading("uid") == Some("0") && reading("exe").is_some_and(|exe| STALLD.contains(&exe))
    };
    called_stalld(subject).filter(|pid| is(*pid)).collect()
}

/// Processes that are called stalld, whatever they are.
fn called_stalld(subject: &Subject<'_>) -> impl Iterator<Item = u32> {
    let first = subject.threads.user().filter(|thread| thread.tid == thread.pid && thread.name == "stalld");
    first.map(|thread| thread.pid)
}

/// Whether a process is called stalld whose program this user may not see: an ordinary user sees no program of root's.
pub fn may_be_rescued(subject: &Subject<'_>) -> bool {
    called_stalld(subject).any(|pid| {
        let program = subject.facts.0.get(&format!("process:{pid}:exe"));
        matches!(program, Some(Reading::Unreadable(_)))
    })
}

/// Whether stalld runs.
#[must_use]
pub fn rescued(subject: &Subject<'_>) -> bool {
    !rescuers(subject).is_empty()
}

/// stalld as a service, where it is installed or runs.
pub fn stalld_service(subject: &Subject<'_>, check: &str) -> Option<Change> {
    let installed = subject.facts.text("program:stalld").is_some_and(|path| path != "absent");
    let running = rescued(subject);
    (installed || running).then(|| Change {
        check: check.to_owned(),
        target: Target::Service { unit: "stalld.service".to_owned() },
        now: subject.threads.known.then(|| if running { "active" } else { "inactive" }.to_owned()),
        then: "active".to_owned(),
        effect: Effect::Runtime,
    })
}

/// Isolated CPUs on which the kernel takes no time from real-time threads for those that starve.
///
/// # Errors
/// Where that cannot be seen.
pub fn unguarded(subject: &Subject<'_>) -> Result<CpuSet, Judgement> {
    let (isolated, _) = subject.need_parted()?;
    let throttled = !unlimited(budget(subject)?);
    if throttled && (subject.kernel.before(6, 12) || by_group(subject) == Some(true)) {
        return Ok(CpuSet::default());
    }
    if !subject.kernel.since(6, 12) {
        return Ok(isolated.clone());
    }
    server_is_there(subject)?;
    let served = subject.expect_per_cpu(isolated, SERVER, "on", |text| {
        text.parse::<u64>().is_ok_and(|runtime| runtime > 0)
    })?;
    if served.state == State::Unreadable {
        return Err(served);
    }
    let mut off = CpuSet::default();
    for cpu in isolated.iter() {
        if subject.number(&SERVER.replace("{cpu}", &cpu.to_string()))? == 0 {
            off.insert(cpu);
        }
    }
    Ok(off)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, STALLD_RUNS, System, intel};

    fn on(release: &str, runtime: &str) -> System {
        intel(&[("uname:release", release), (RUNTIME, runtime), (PERIOD, "1000000")])
    }

    fn server(system: System, first: &str, second: &str) -> System {
        system.and(&SERVER.replace("{cpu}", "2"), first).and(&SERVER.replace("{cpu}", "3"), second)
    }

    #[test]
    fn throttling_is_off_at_minus_one_or_at_the_whole_period() {
        assert_eq!(on("6.1.0", "-1").state("rt-throttling"), State::Ok);
        assert_eq!(on("6.1.0", "1000000").state("rt-throttling"), State::Ok);
        assert_eq!(
            on("6.1.0", "950000").said("rt-throttling"),
            "real-time threads of a CPU get 950000 of every 1000000 us"
        );
        assert!(on("6.1.0", "950000").changes("rt-throttling").is_empty(), "nothing would rescue anybody");
        let with_stalld = on("6.1.0", "950000").and("program:stalld", "/usr/bin/stalld");
        let wanted = ["service stalld.service = active".to_owned(), format!("{RUNTIME} = -1")];
        assert_eq!(with_stalld.wanted("rt-throttling"), wanted);
        assert_eq!(intel(&[]).absent(RUNTIME).state("rt-throttling"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(RUNTIME, "denied").state("rt-throttling"), State::Unreadable);
    }

    #[test]
    fn what_only_calls_itself_stalld_rescues_nobody() {
        let off = |system: System| system.wanted("rt-throttling").contains(&format!("{RUNTIME} = -1"));
        let runs = || on("6.1.0", "950000").with(STALLD_RUNS);
        assert!(off(runs()));
        for (name, lie) in [
            ("process:700:uid", "65534"),
            ("process:700:exe", "/home/nobody/stalld"),
            ("process:700:exe", "/usr/bin/su"),
            ("process:700:NSpid", "700\t1"),
            ("threads:0", "700\t700\t1\t400100\tFIFO\t10\t0-1\tother"),
            ("threads:0", "700\t699\t1\t400100\tFIFO\t10\t0-1\tstalld"),
        ] {
            assert!(!off(runs().and(name, lie)), "{name} = {lie}");
        }
        for name in ["process:700:uid", "process:700:exe", "process:700:NSpid"] {
            assert!(!off(runs().without(name)) && !off(runs().absent(name)), "{name}");
        }
    }

    #[test]
    fn since_6_12_the_sysctl_throttles_groups_only() {
        let option = |value: &str| on("6.12.43", "950000").and("config:CONFIG_RT_GROUP_SCHED", value);
        assert_eq!(option("y").state("rt-throttling"), State::Finding);
        assert_eq!(option("n").state("rt-throttling"), State::NotApplicable);
        assert_eq!(
            on("6.12.43", "950000").absent("config:CONFIG_RT_GROUP_SCHED").state("rt-throttling"),
            State::NotApplicable
        );
        assert_eq!(on("6.12.43", "950000").finding("rt-throttling").severity, Severity::Minor);
        assert_eq!(
            option("y").and("/proc/cmdline", "rt_group_sched=0").state("rt-throttling"),
            State::NotApplicable
        );
        let built_off = || option("y").and("config:CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED", "y");
        assert_eq!(built_off().state("rt-throttling"), State::NotApplicable);
        assert_eq!(
            built_off().and("/proc/cmdline", "rt_group_sched=1").state("rt-throttling"),
            State::Finding
        );
    }

    #[test]
    fn the_fair_server_is_judged_where_it_can_be_seen() {
        let new = || on("6.12.43", "-1");
        assert_eq!(server(new(), "0", "0").state("fair-server"), State::Ok);
        let last = server(new(), "0", "50000000");
        assert_eq!(last.finding("fair-server").severity, Severity::Info, "{}", last.said("fair-server"));
        let bad = last.with(STALLD_RUNS);
        assert_eq!(bad.finding("fair-server").severity, Severity::Major);
        assert_eq!(bad.said("fair-server"), "the fair server takes time from real-time threads on CPU 3");
        assert_eq!(bad.wanted("fair-server"), ["/sys/kernel/debug/sched/fair_server/cpu3/runtime = 0"]);
        assert_eq!(new().state("fair-server"), State::Unreadable);
        assert_eq!(on("6.1.0", "-1").state("fair-server"), State::NotApplicable);
        let closed = new().unreadable(&SERVER.replace("{cpu}", "2"), "Permission denied");
        assert_eq!(closed.state("fair-server"), State::Unreadable);
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE.iter().filter(|text| text.trim() != "-1") {
            assert_ne!(on("6.1.0", text).state("rt-throttling"), State::Ok, "{text}");
            assert_ne!(server(on("6.12.43", text), text, text).state("fair-server"), State::Ok, "{text}");
        }
    }
}
