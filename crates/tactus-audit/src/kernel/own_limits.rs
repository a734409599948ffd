//! Limits of the cgroup, service or session of tactus itself: its measurements, and programs that are started beside
//! it, have the same limits.

use tactus_model::finding::{Role, Severity};
use tactus_model::isolation::own_cpuset;
use tactus_model::own_groups::{Throttled, own_groups, quota};

use super::throttling::groups_are_off;
use crate::sentence::{cpus_or_none, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const GROUPS: &str = "/proc/self/cgroup";
const LIMITS: &str = "/proc/self/limits";
const SLACK: &str = "/proc/self/timerslack_ns";
/// The timer slack of a thread by default.
const USUAL_SLACK_NS: u64 = 50_000;

pub static CHECKS: &[Check] = &[Check {
    id: "own-limits",
    title: "the cgroup, service or session of the measurement has limits",
    sources: &[
        Source::Kernel("Documentation/scheduler/sched-bwc.rst"),
        Source::Kernel("Documentation/scheduler/sched-rt-group.rst"),
        Source::Guide("systemd.resource-control(5)"),
        Source::Guide("getrlimit(2)"),
    ],
    applies: &[Applies::Host, Applies::Guest, Applies::Container],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::Service],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "cpu.max, cpu.stat, cpu.rt_runtime_us, cpuset.cpus.effective, memory.max and memory.high (version 1: \
cpu.cfs_quota_us, memory.limit_in_bytes) of the process's cgroup and the ones above; /proc/self/limits; nice value \
and timer slack",
    expected: "no quota, no real-time budget below the machine's, the real-time CPUs in the cpuset, no limit of memory, RLIMIT_RTTIME \
unlimited, nice 0 and a timer slack of 50 us",
    why: "A quota stops all ordinary threads of its group until the period (100 ms by default) ends. That includes \
threads that hold a lock a real-time thread waits for. A real-time budget stops the real-time threads. Memory above \
memory.high is reclaimed while the program waits. RLIMIT_RTTIME sends SIGXCPU to a real-time thread that does not \
sleep. A program inherits these limits from its service or session, and from the slices above.",
    fix: "Start it without such a limit, or remove the limit: systemctl set-property UNIT CPUQuota= \
MemoryHigh=infinity MemoryMax=infinity. UNIT may be a slice; systemctl status PID shows it. In the unit set \
LimitRTTIME=infinity and TimerSlackNSec=. Start it without nice. In cgroup version 1: echo -1 > cpu.cfs_quota_us, \
echo 950000 > cpu.rt_runtime_us, from the root down.",
    risk: "Without a quota it may take all CPU time from other programs.",
    judge,
    changes: no_change,
}];

/// A limit: its severity, its sentence and what was read.
struct Limit(Severity, String, String, String);

fn judge(subject: &Subject<'_>) -> Verdict {
    let table = subject.need(GROUPS)?;
    let mut limits = Vec::new();
    // In a container the checks ctr-* report the first three.
    if subject.role != Role::Container {
        limits.extend(quotas(subject, table));
        limits.extend(budgets(subject, table));
        limits.extend(cpuset(subject));
    }
    limits.extend(memory(subject, table));
    limits.extend(rtprio(subject));
    limits.extend(rttime(subject));
    limits.extend(nice(subject));
    limits.extend(slack(subject));
    let Some(severity) = limits.iter().map(|limit| limit.0).max() else {
        let seen = ["cpu.max", "cpu.stat", "cpu.cfs_quota_us"];
        let seen = own_groups(table, "cpu").iter().any(|group| {
            seen.iter().any(|name| subject.facts.text(&format!("{}/{name}", group.directory)).is_some())
        });
        let said = match seen {
            true => "no quota, budget, cpuset or other limit of the cgroup, session or process interferes",
            false => {
                "no limit of the session or process interferes; the CPU quota of its cgroups cannot be seen"
            }
        };
        return Ok(Judgement::ok(said).read(GROUPS, table));
    };
    let said = limits.iter().map(|limit| limit.1.clone()).collect::<Vec<_>>().join("; ");
    let judgement = Judgement::finding(said).at(severity);
    Ok(limits.into_iter().fold(judgement, |judgement, Limit(.., path, value)| judgement.read(path, value)))
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

fn quotas(subject: &Subject<'_>, table: &str) -> Vec<Limit> {
    let of = |group: tactus_model::own_groups::OwnGroup| {
        let file = |name: &str| format!("{}/{name}", group.directory);
        let read = |name: &str| subject.facts.text(&file(name)).map(|text| (file(name), text));
        let (path, text) = read("cpu.max").or_else(|| read("cpu.cfs_quota_us"))?;
        let (quota, period) = quota(text)?;
        let period = period.or_else(|| subject.facts.number(&file("cpu.cfs_period_us")));
        let period = period.map(|period| format!(" of every {period} us")).unwrap_or_default();
        let counted = subject.facts.text(&file("cpu.stat")).and_then(Throttled::of);
        let counted = counted.filter(|counted| counted.times > 0);
        let throttled = counted
            .map(|counted| format!(", and was {} since it started", counted.by("it")))
            .unwrap_or_default();
        let said = format!("{} may use {quota} us of CPU time{period}{throttled}", group.path);
        Some(Limit(Severity::Major, said, path, short(text)))
    };
    own_groups(table, "cpu").into_iter().filter_map(of).collect()
}

/// Real-time budgets of groups, which only version 1 has.
fn budgets(subject: &Subject<'_>, table: &str) -> Vec<Limit> {
    let unlimited = subject.facts.text("/proc/sys/kernel/sched_rt_runtime_us") == Some("-1");
    if unlimited || groups_are_off(subject) {
        return Vec::new();
    }
    let of = |group: tactus_model::own_groups::OwnGroup| {
        // The root's is that of the whole machine: rt-throttling.
        let path = (group.path != "/").then(|| format!("{}/cpu.rt_runtime_us", group.directory))?;
        let text = subject.facts.text(&path)?;
        let budget: i64 = text.parse().ok()?;
        let period =
            subject.facts.number(&format!("{}/cpu.rt_period_us", group.directory)).unwrap_or(1_000_000);
        let limit = |severity, said| Some(Limit(severity, said, path.clone(), short(text)));
        match budget {
            0 => limit(
                Severity::Blocker,
                format!("{} has no real-time budget: the kernel refuses SCHED_FIFO there", group.path),
            ),
            // A budget as large as the kernel's limit for the whole machine does not limit the group.
            1.. if budget.unsigned_abs() < period / 100 * 95 => limit(
                Severity::Major,
                format!("real-time threads of {} get {budget} of every {period} us", group.path),
            ),
            _ => None,
        }
    };
    own_groups(table, "cpu").into_iter().filter_map(of).collect()
}

fn cpuset(subject: &Subject<'_>) -> Option<Limit> {
    let own = own_cpuset(subject.facts)?;
    let (isolated, _) = subject.parted()?;
    if within(isolated, &own.cpus) {
        return None;
    }
    let missing = isolated.minus(&own.cpus);
    let said = format!(
        "the cpuset of {} has {}: {} cannot be used from here, although online",
        own.path,
        cpus_or_none(&own.cpus),
        cpus_or_none(&missing)
    );
    Some(Limit(Severity::Minor, said, format!("cpuset of {}", own.path), own.cpus.to_string()))
}

fn memory(subject: &Subject<'_>, table: &str) -> Vec<Limit> {
    let of = |group: tactus_model::own_groups::OwnGroup| {
        let names = ["memory.max", "memory.high", "memory.limit_in_bytes"];
        names.into_iter().find_map(|name| {
            let path = format!("{}/{name}", group.directory);
            let bytes = subject.facts.number(&path)?;
            // Version 1 has the largest number of pages for no limit.
            let said = match name {
                _ if bytes >= 1 << 60 => return None,
                "memory.high" => format!("{} is slowed down above {} MiB of memory", group.path, bytes >> 20),
                _ => format!("{} may use {} MiB of memory", group.path, bytes >> 20),
            };
            Some(Limit(Severity::Minor, said, path, bytes.to_string()))
        })
    };
    own_groups(table, "memory").into_iter().filter_map(of).collect()
}

/// CAP_SYS_NICE in include/uapi/linux/capability.h.
const CAP_SYS_NICE: u32 = 23;

/// In a container ctr-caps-limits reports it.
fn rtprio(subject: &Subject<'_>) -> Option<Limit> {
    let granted = subject.facts.field("/proc/self/status", "CapEff", ':')?;
    let granted = u64::from_str_radix(granted, 16).ok()?;
    let capable = granted >> CAP_SYS_NICE & 1 == 1;
    let limit = subject.facts.text("limit:rtprio")?;
    (subject.role != Role::Container && !capable && limit == "0").then(|| {
        let said =
            "this user may not use real-time priorities (RLIMIT_RTPRIO is 0, no CAP_SYS_NICE)".to_owned();
        Limit(Severity::Minor, said, "limit:rtprio".to_owned(), limit.to_owned())
    })
}

fn rttime(subject: &Subject<'_>) -> Option<Limit> {
    let lines = subject.facts.text(LIMITS)?.lines();
    let line = lines.filter_map(|line| line.strip_prefix("Max realtime timeout")).next()?;
    let soft: u64 = line.split_whitespace().next()?.parse().ok()?;
    let said =
        format!("a real-time thread that runs for {soft} us without sleeping gets SIGXCPU (RLIMIT_RTTIME)");
    Some(Limit(Severity::Major, said, LIMITS.to_owned(), format!("Max realtime timeout {soft} us")))
}

fn nice(subject: &Subject<'_>) -> Option<Limit> {
    let nice = subject.facts.text("sched:nice")?;
    let number: i32 = nice.parse().ok().filter(|nice| *nice > 0)?;
    Some(Limit(
        Severity::Minor,
        format!("it runs at nice {number}"),
        "sched:nice".to_owned(),
        nice.to_owned(),
    ))
}

fn slack(subject: &Subject<'_>) -> Option<Limit> {
    let ns = subject.facts.number(SLACK).filter(|ns| *ns > USUAL_SLACK_NS)?;
    let said = format!("its ordinary threads may be woken {} us late (timer slack)", ns / 1000);
    Some(Limit(Severity::Minor, said, SLACK.to_owned(), ns.to_string()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, intel};

    const ID: &str = "own-limits";
    const UNIT: &str = "/sys/fs/cgroup/system.slice/x.service";

    fn service(readings: &[(&str, &str)]) -> System {
        intel(&[(GROUPS, "0::/system.slice/x.service"), (&format!("{UNIT}/cpu.max"), "max 100000")])
            .with(readings)
    }

    #[test]
    fn a_quota_of_a_service_or_of_a_slice_above_it_is_seen_without_a_container() {
        assert_eq!(service(&[]).state(ID), State::Ok, "{}", service(&[]).said(ID));
        let own = service(&[
            (&format!("{UNIT}/cpu.max"), "20000 100000"),
            (&format!("{UNIT}/cpu.stat"), "nr_periods 20\nnr_throttled 13\nthrottled_usec 308000"),
        ]);
        assert_eq!(
            own.said(ID),
            "/system.slice/x.service may use 20000 us of CPU time of every 100000 us, and was throttled 13 times, 308 ms, by it since it started"
        );
        assert_eq!(own.finding(ID).severity, Severity::Major);
        let above = service(&[("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000")]);
        assert_eq!(above.said(ID), "/system.slice may use 150000 us of CPU time of every 100000 us");
        let v1 = intel(&[
            (GROUPS, "4:cpuacct,cpu:/a"),
            ("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000"),
            ("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!(v1.said(ID), "/a may use 50000 us of CPU time of every 100000 us");
        // Of a container its own check says it.
        assert_eq!(own.role(Role::Container).state(ID), State::Ok);
    }

    #[test]
    fn a_budget_below_the_machines_is_one_of_the_groups() {
        let v1 = |budget: &str| {
            intel(&[
                (GROUPS, "4:cpu,cpuacct:/a/b"),
                ("/sys/fs/cgroup/cpu/a/b/cpu.rt_runtime_us", budget),
                ("/sys/fs/cgroup/cpu/a/b/cpu.rt_period_us", "1000000"),
                ("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000"),
            ])
        };
        assert_eq!(v1("0").finding(ID).severity, Severity::Blocker);
        assert_eq!(v1("10000").said(ID), "real-time threads of /a/b get 10000 of every 1000000 us");
        assert_eq!(v1("950000").state(ID), State::Ok);
        assert_eq!(v1("0").and("/proc/sys/kernel/sched_rt_runtime_us", "-1").state(ID), State::Ok);
        assert_eq!(v1("0").and("/proc/cmdline", "rt_group_sched=0").state(ID), State::Ok);
    }

    #[test]
    fn every_other_limit_is_named() {
        let limits =
            "Max realtime priority     0          0\nMax realtime timeout      200000     200000     us";
        let all = service(&[
            ("/sys/fs/cgroup/system.slice/x.service/cpuset.cpus.effective", "0-1"),
            ("/sys/fs/cgroup/system.slice/memory.high", "1073741824"),
            (LIMITS, limits),
            ("sched:nice", "10"),
            (SLACK, "50000000"),
            ("/proc/self/status", "CapEff:\t0000000000000000"),
            ("limit:rtprio", "0"),
        ]);
        assert_eq!(
            all.said(ID),
            "the cpuset of /system.slice/x.service has CPUs 0,1: CPUs 2,3 cannot be used from here, although online; \
             /system.slice is slowed down above 1024 MiB of memory; this user may not use real-time priorities (RLIMIT_RTPRIO is \
             0, no CAP_SYS_NICE); a real-time thread that runs for 200000 us without sleeping gets SIGXCPU (RLIMIT_RTTIME); it \
             runs at nice 10; its ordinary threads may be woken 50000 us late (timer slack)"
        );
        assert!(
            all.and(LIMITS, "Max realtime timeout      unlimited  unlimited  us")
                .said(ID)
                .matches("SIGXCPU")
                .next()
                .is_none()
        );
    }

    #[test]
    fn what_is_not_known_is_no_limit_and_not_good() {
        assert_eq!(intel(&[]).state(ID), State::Unreadable);
        let unseen = intel(&[(GROUPS, "0::/x")]);
        assert!(unseen.said(ID).ends_with("the CPU quota of its cgroups cannot be seen"));
        for text in HOSTILE.iter().filter(|text| !text.starts_with(['1', '9'])) {
            let system = service(&[
                (&format!("{UNIT}/cpu.max"), text),
                (LIMITS, text),
                ("sched:nice", text),
                (SLACK, text),
            ]);
            assert_eq!(system.state(ID), State::Ok, "{text}: {}", system.said(ID));
        }
    }
}
