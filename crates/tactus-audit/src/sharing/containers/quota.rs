//! A quota on a container's CPU time.

use tactus_model::finding::Severity;

use super::cgroup::own;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub const CHECK: Check = Check {
    id: "ctr-cfs-quota",
    title: "the container is stopped when it has used its CPU time",
    sources: &[Source::Kernel("Documentation/scheduler/sched-bwc.rst")],
    applies: &[Applies::Container],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::ContainerFlag],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "cpu.max (version 1: cpu.cfs_quota_us) and cpu.stat of the container's cgroup",
    expected: "max (version 1: -1)",
    why: "A group that has used its quota stops until the period (100 ms by default) is over. That affects all its \
ordinary threads, including those that hold a lock the real-time thread waits for.",
    fix: "Start it without --cpus and --cpu-quota and give it whole CPUs with --cpuset-cpus. In Kubernetes: the \
annotation cpu-quota.crio.io: \"disable\" with CRI-O.",
    risk: "Only the cpuset limits the CPU time of the container.",
    judge,
    changes: no_change,
};

fn judge(subject: &Subject<'_>) -> Verdict {
    let Some((path, text)) = own(subject, "cpu", "cpu.max", "cpu.cfs_quota_us")? else {
        subject.value("/proc/self/cgroup")?;
        return Err(Judgement::not_applicable("the container has no separate cgroup that limits CPU time"));
    };
    let shown: String = text.chars().take(40).collect();
    let mut fields = text.split_whitespace();
    let judgement = match fields.next() {
        Some("max" | "-1") => Judgement::ok(
            "its own cgroup does not limit the container's CPU time; the cgroups above cannot be seen",
        ),
        Some(quota) if quota.parse::<u64>().is_ok() => {
            let period = fields.next().map(|period| format!(" in {period} us")).unwrap_or_default();
            let throttled = throttled(subject)?.filter(|times| *times > 0);
            let times = throttled.map(|times| format!(", and was stopped {times} times")).unwrap_or_default();
            let period: String = period.chars().take(30).collect();
            Judgement::finding(format!("the container may use {quota} us of CPU time{period}{times}"))
        }
        _ => return Err(Judgement::unreadable(format!("{path} contains `{shown}`, which is not a quota"))),
    };
    Ok(judgement.read(path, shown))
}

/// How often it was stopped so far.
fn throttled(subject: &Subject<'_>) -> Result<Option<u64>, Judgement> {
    let Some((_, text)) = own(subject, "cpu", "cpu.stat", "cpu.stat")? else { return Ok(None) };
    let times = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    Ok(times.and_then(|times| times.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use crate::testing::{HOSTILE, System, blank, intel};

    fn v2(max: &str) -> System {
        intel(&[
            ("/proc/self/cgroup", "0::/"),
            ("/sys/fs/cgroup/cpu.max", max),
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 99"),
        ])
        .role(Role::Container)
    }

    #[test]
    fn there_must_be_no_quota() {
        assert_eq!(v2("max 100000").state("ctr-cfs-quota"), State::Ok);
        assert_eq!(
            v2("200000 100000").said("ctr-cfs-quota"),
            "the container may use 200000 us of CPU time in 100000 us, and was stopped 4 times"
        );
        let v1 = |quota| {
            intel(&[("/proc/self/cgroup", "4:cpu,cpuacct:/"), ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)])
                .role(Role::Container)
        };
        assert_eq!(v1("-1").state("ctr-cfs-quota"), State::Ok);
        assert_eq!(v1("50000").state("ctr-cfs-quota"), State::Finding);
    }

    #[test]
    fn without_a_controller_it_is_not_concerned() {
        let none = v2("").without("/sys/fs/cgroup/cpu.max");
        assert_eq!(none.state("ctr-cfs-quota"), State::NotApplicable);
        assert_eq!(blank(&[]).role(Role::Container).state("ctr-cfs-quota"), State::NotApplicable);
        assert_eq!(v2("1 1").role(Role::Host).state("ctr-cfs-quota"), State::NotApplicable);
        assert_eq!(
            v2("").unreadable("/sys/fs/cgroup/cpu.max", "denied").state("ctr-cfs-quota"),
            State::Unreadable
        );
    }

    #[test]
    fn rubbish_is_no_quota() {
        for text in HOSTILE.iter().filter(|text| !text.starts_with(['1', '-'])) {
            assert_eq!(v2(text).state("ctr-cfs-quota"), State::Unreadable, "{text}");
        }
    }
}
