//! The CPUs that a container may use.

use tactus_model::CpuSet;
use tactus_model::finding::{By, Severity};

use super::cgroup::own;
use crate::sentence::cpus_or_none;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub const CHECK: Check = Check {
    id: "ctr-cpuset",
    title: "the container may run on CPUs that are not isolated",
    sources: &[Source::Osadl],
    applies: &[Applies::Container],
    severity: Severity::Blocker,
    arch: Arch::Any,
    set: &[SetBy::ContainerFlag],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "cpuset.cpus.effective and cpuset.cpus.partition of the container's cgroup, \
/sys/devices/system/cpu/isolated",
    expected: "a cpuset of only isolated CPUs",
    why: "A container is a set of ordinary processes of the host. On CPUs that are not isolated, it shares the CPU \
with every daemon, interrupt and kernel thread of the host.",
    fix: "Start it with --cpuset-cpus={isolated}. In Kubernetes: the static CPU manager, whole CPUs and equal \
requests and limits.",
    risk: "The program has only these CPUs. Isolated CPUs have no load balancing: pin every thread.",
    judge,
    changes: no_change,
};

fn judge(subject: &Subject<'_>) -> Verdict {
    let file = own(subject, "cpuset", "cpuset.cpus.effective", "cpuset.effective_cpus")?;
    let file = match file {
        Some(file) => Some(file),
        None => own(subject, "cpuset", "", "cpuset.cpus")?,
    };
    let Some((path, text)) = file else { return unconfined(subject) };
    let Ok(cpus) = text.parse::<CpuSet>() else {
        let shown: String = text.chars().take(40).collect();
        return Err(Judgement::unreadable(format!("{path} contains `{shown}`, which is not a list of CPUs")));
    };
    if cpus.is_empty() {
        return Err(Judgement::unreadable(format!("{path} is empty")));
    }
    if subject.started {
        // Its other threads have the housekeeping CPUs; whether the machine isolates any is isolcpus' to say.
        return Ok(Judgement::ok(format!(
            "tactus starts the container with CPUs {cpus}, and keeps the measurement on {}",
            cpus_or_none(subject.isolated())
        ))
        .read(path, text.chars().take(80).collect::<String>()));
    }
    let isolated = isolated(subject)?;
    let outside = cpus.minus(&isolated);
    let judgement = if outside.is_empty() {
        Judgement::ok(format!("the container runs on CPUs {cpus}, which are isolated"))
    } else if isolated.is_empty() {
        Judgement::finding(format!("the container runs on CPUs {cpus}, but no CPU of the host is isolated"))
    } else {
        Judgement::finding(format!("the container may run on CPUs {outside}, which are not isolated"))
    };
    Ok(judgement
        .read(path, text.chars().take(80).collect::<String>())
        .read("isolated CPUs", isolated.to_string()))
}

/// The CPUs that somebody has really set apart: a mere assumption is no isolation.
fn isolated(subject: &Subject<'_>) -> Result<CpuSet, Judgement> {
    Ok(match subject.isolation.by {
        // The named CPUs may be others than those of the container's own partition.
        By::Asked => subject.isolated().or(&subject.topology.isolated.minus(&subject.topology.booted)),
        By::Boot | By::Cpuset => subject.isolated().clone(),
        By::Intended | By::Assumed => CpuSet::default(),
    })
}

/// No cpuset confines it; an affinity may, which any of its programs can undo.
fn unconfined(subject: &Subject<'_>) -> Verdict {
    subject.value("/proc/self/cgroup")?;
    let affinity = subject.value("sched:affinity")?;
    let shown: String = affinity.chars().take(80).collect();
    Ok(Judgement::finding(format!(
        "no cpuset limits the container; its affinity is {shown}, which its programs may change"
    ))
    .read("sched:affinity", shown))
}

#[cfg(test)]
mod tests {
    use tactus_model::CpuSet;
    use tactus_model::finding::{Role, State};

    use crate::testing::{HOSTILE, System, blank, intel};

    const CPUS: &str = "/sys/fs/cgroup/cpuset.cpus.effective";

    /// Under cgroup version 2, on a host that isolates CPUs 2 and 3.
    fn container(cpus: &str) -> System {
        intel(&[("/proc/self/cgroup", "0::/"), (CPUS, cpus), ("sched:affinity", "0-3")]).role(Role::Container)
    }

    #[test]
    fn a_container_that_tactus_starts_is_started_rightly() {
        let mut ours = container("0-3");
        assert_eq!(ours.state("ctr-cpuset"), State::Finding);
        ours.intent.started = true;
        assert_eq!(
            ours.said("ctr-cpuset"),
            "tactus starts the container with CPUs 0-3, and keeps the measurement on CPUs 2,3"
        );
        assert_eq!(ours.state("ctr-cpuset"), State::Ok);
    }

    #[test]
    fn its_cpus_must_be_isolated_ones() {
        assert_eq!(container("2-3").state("ctr-cpuset"), State::Ok);
        assert_eq!(
            container("1-2").said("ctr-cpuset"),
            "the container may run on CPUs 1, which are not isolated"
        );
        let bare = container("2-3").and("/sys/devices/system/cpu/isolated", "");
        assert_eq!(
            bare.said("ctr-cpuset"),
            "the container runs on CPUs 2,3, but no CPU of the host is isolated"
        );
        let partition = bare.and("/sys/fs/cgroup/cpuset.cpus.partition", "isolated");
        assert_eq!(partition.state("ctr-cpuset"), State::Ok);
        let invalid = partition.and("/sys/fs/cgroup/cpuset.cpus.partition", "isolated invalid (...)");
        assert_eq!(invalid.state("ctr-cpuset"), State::Finding);
    }

    #[test]
    fn the_cgroup_may_be_of_version_1_and_show_the_path_of_the_host() {
        let old = |path: &str| {
            intel(&[("/proc/self/cgroup", "8:cpuset:/docker/abc\n4:cpu,cpuacct:/"), (path, "2")])
                .role(Role::Container)
        };
        assert_eq!(old("/sys/fs/cgroup/cpuset/docker/abc/cpuset.cpus").state("ctr-cpuset"), State::Ok);
        assert_eq!(old("/sys/fs/cgroup/cpuset/cpuset.cpus").state("ctr-cpuset"), State::Ok);
    }

    #[test]
    fn an_affinity_is_no_cpuset() {
        let soft = container("").without(CPUS).and("sched:affinity", "2");
        assert!(soft.said("ctr-cpuset").starts_with("no cpuset limits the container; its affinity is 2"));
        assert_eq!(soft.without("/proc/self/cgroup").state("ctr-cpuset"), State::NotApplicable);
    }

    #[test]
    fn a_host_is_not_concerned_and_rubbish_is_unreadable() {
        assert_eq!(container("2-3").role(Role::Host).state("ctr-cpuset"), State::NotApplicable);
        assert_eq!(blank(&[]).role(Role::Container).state("ctr-cpuset"), State::NotApplicable);
        assert_eq!(container("2").unreadable(CPUS, "denied").state("ctr-cpuset"), State::Unreadable);
        for text in HOSTILE.iter().filter(|text| text.parse::<CpuSet>().is_err()) {
            assert_eq!(container(text).state("ctr-cpuset"), State::Unreadable, "{text}");
        }
    }
}
