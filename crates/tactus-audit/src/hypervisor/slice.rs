//! The control group that systemd keeps virtual machines in.

use tactus_model::CpuSet;
use tactus_model::change::{Change, Effect, Target};
use tactus_model::finding::Severity;

use crate::vm::realtime;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const EFFECTIVE: &str = "/sys/fs/cgroup/machine.slice/cpuset.cpus.effective";
const ALLOWED: &str = "/sys/fs/cgroup/machine.slice/cpuset.cpus";

pub static CHECKS: &[Check] = &[Check {
    id: "slice-cpus",
    title: "the control group of virtual machines does not have the real-time CPUs",
    sources: &[Source::Guide("systemd.resource-control(5)")],
    applies: &[Applies::Hypervisor],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Service],
    reversible: Reversible::Yes,
    hardware: false,
    reads: EFFECTIVE,
    expected: "all of CPUs {isolated}",
    why: "A machine can only be pinned to CPUs of its control group. Otherwise it does not start, or its vCPUs \
silently run on other CPUs.",
    fix: "Set AllowedCPUs= of machine.slice to all CPUs of machines: {isolated}, and {housekeeping} for QEMU's other \
threads: systemctl set-property machine.slice AllowedCPUs=...",
    risk: "If the list is too short, machines do not start.",
    judge,
    changes,
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    let (vms, _) = realtime(subject);
    if vms.is_empty() {
        let known = subject.threads.known;
        return Err(match known {
            true => Judgement::not_applicable("no virtual machine runs here"),
            false => Judgement::unreadable("the facts do not show whether virtual machines run here"),
        });
    }
    let text = subject.value(EFFECTIVE)?;
    let has: CpuSet = text.parse().map_err(|_| {
        Judgement::unreadable(format!("{EFFECTIVE} is not a list of CPUs")).read(EFFECTIVE, text)
    })?;
    let missing = subject.isolated().minus(&has);
    Ok(Judgement::when(
        missing.is_empty(),
        format!("machine.slice has all real-time CPUs ({})", subject.isolated()),
        format!("machine.slice lacks the real-time CPUs {missing}"),
    )
    .read(EFFECTIVE, text))
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    // An empty list stands for all that the parent has.
    let Some(now) = subject.facts.text(ALLOWED).filter(|now| !now.is_empty()) else { return Vec::new() };
    let Ok(has) = now.parse::<CpuSet>() else { return Vec::new() };
    let target = Target::DropIn {
        unit: "machine.slice".to_owned(),
        section: "Slice".to_owned(),
        key: "AllowedCPUs".to_owned(),
    };
    vec![Change {
        check: "slice-cpus".to_owned(),
        target,
        now: Some(has.to_string()),
        then: has.or(subject.isolated()).or(subject.housekeeping()).to_string(),
        effect: Effect::Restart,
    }]
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::intel;
    use crate::vm::testing::host;

    const ID: &str = "slice-cpus";

    #[test]
    fn the_group_of_machines_has_the_isolated_cpus() {
        assert_eq!(host().and(EFFECTIVE, "0-3").state(ID), State::Ok);
        let bad = host().with(&[(EFFECTIVE, "0-2"), (ALLOWED, "0-2")]);
        assert_eq!(
            (bad.state(ID), bad.said(ID).as_str()),
            (State::Finding, "machine.slice lacks the real-time CPUs 3")
        );
        assert_eq!(bad.wanted(ID), ["machine.slice [Slice] AllowedCPUs = 0-3"]);
        let all = host().with(&[(EFFECTIVE, "0-3"), (ALLOWED, "0-3")]);
        assert!(all.wanted(ID).is_empty() && all.changes(ID).len() == 1);
    }

    #[test]
    fn without_machines_or_a_group_there_is_nothing_to_say() {
        assert_eq!(host().state(ID), State::NotApplicable);
        assert_eq!(host().and(EFFECTIVE, "0-").state(ID), State::Unreadable);
        assert_eq!(host().unreadable(EFFECTIVE, "permission denied").state(ID), State::Unreadable);
        assert_eq!(intel(&[("threads:0", ""), (EFFECTIVE, "0")]).state(ID), State::NotApplicable);
        assert_eq!(intel(&[(EFFECTIVE, "0")]).state(ID), State::Unreadable);
        assert!(host().with(&[(EFFECTIVE, "0"), (ALLOWED, "")]).changes(ID).is_empty());
    }
}
