//! CPUs that are isolated at run time by cgroups.

use tactus_model::CpuSet;
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::sentence::{cpus_or_none, few, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ROOT: &str = "/sys/fs/cgroup/";

pub static CHECKS: &[Check] = &[Check {
    id: "cpuset-partition",
    title: "a cpuset partition is not isolated, or is invalid",
    sources: &[Source::Kernel("Documentation/admin-guide/cgroup-v2.rst")],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/fs/cgroup/*/cpuset.cpus.partition",
    expected: "isolated, without invalid",
    why: "Since Linux 6.1 a cgroup can exclude CPUs from load balancing at run time. A partition becomes invalid \
when a CPU goes offline or a sibling claims the same CPUs. It then becomes an ordinary group, and its CPUs are \
balanced again. The kernel tells only programs that poll the file.",
    fix: "Read the reason in cpuset.cpus.partition, fix it, and write isolated again. CPUs of isolcpus= may only be \
in isolated partitions. A partition sets neither nohz_full nor managed_irq.",
    risk: "Taking CPUs away from other groups may leave them without any: the kernel then refuses.",
    judge: partitions,
    changes: no_change,
}];

fn partitions(subject: &Subject<'_>) -> Verdict {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (name, reading) in subject.facts.under(ROOT) {
        let Some(group) = name.strip_prefix(ROOT).and_then(|rest| rest.strip_suffix("cpuset.cpus.partition"))
        else {
            continue;
        };
        match reading {
            Reading::Text(value) | Reading::Cut(value) => {
                all.push((group.trim_end_matches('/'), value.trim()));
            }
            Reading::Unreadable(why) => {
                return Err(Judgement::unreadable(format!("{name} could not be read: {why}")).read(name, why));
            }
            Reading::Absent => {}
        }
    }
    let file = |group: &str| format!("{ROOT}{group}/cpuset.cpus.partition");
    let broken: Vec<&(&str, &str)> = all.iter().filter(|(_, value)| value.contains("invalid")).collect();
    if !broken.is_empty() {
        let groups = few(broken.iter().map(|(group, value)| format!("{group} is {value}")));
        let judgement = Judgement::finding(format!("cpuset partitions are not in effect: {groups}"));
        return Ok(broken.into_iter().fold(judgement, |one, (group, value)| one.read(file(group), *value)));
    }
    let isolated: Vec<&str> =
        all.iter().filter(|(_, value)| *value == "isolated").map(|(group, _)| *group).collect();
    if isolated.is_empty() {
        return Err(Judgement::not_applicable("no cgroup is an isolated cpuset partition"));
    }
    let mut cpus = CpuSet::default();
    for group in &isolated {
        let list = subject.facts.text(&format!("{ROOT}{group}/cpuset.cpus.effective"));
        cpus = cpus.or(&list.and_then(|list| list.parse().ok()).unwrap_or_default());
    }
    let mut said = format!("isolated cpuset partitions: {} with {}", few(&isolated), cpus_or_none(&cpus));
    if !within(&cpus, &subject.topology.nohz_full) {
        let ticking = cpus_or_none(&cpus.minus(&subject.topology.nohz_full));
        said += &format!("; a partition does not stop the tick, which {ticking} have");
    }
    let judgement = Judgement::ok(said);
    Ok(isolated.into_iter().fold(judgement, |one, group| one.read(file(group), "isolated")))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, intel};

    const RT: &str = "/sys/fs/cgroup/rt.slice/cpuset.cpus.partition";
    const CPUS: &str = "/sys/fs/cgroup/rt.slice/cpuset.cpus.effective";

    #[test]
    fn an_invalid_partition_is_found_with_its_reason() {
        let id = "cpuset-partition";
        assert_eq!(intel(&[(RT, "isolated"), (CPUS, "2-3")]).state(id), State::Ok);
        let why = "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
        let broken = intel(&[(RT, why)]);
        assert_eq!(broken.said(id), format!("cpuset partitions are not in effect: rt.slice is {why}"));
        assert_eq!(intel(&[(RT, "root invalid")]).state(id), State::Finding);
        assert_eq!(intel(&[(RT, "member")]).state(id), State::NotApplicable);
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(RT, "denied").state(id), State::Unreadable);
    }

    #[test]
    fn a_partition_does_not_stop_the_tick() {
        let ticking = intel(&[(RT, "isolated"), (CPUS, "2-3")]).said("cpuset-partition");
        assert!(ticking.ends_with("does not stop the tick, which CPUs 2,3 have"), "{ticking}");
        let quiet = intel(&[(RT, "isolated"), (CPUS, "2-3"), ("/sys/devices/system/cpu/nohz_full", "2-3")]);
        assert_eq!(quiet.said("cpuset-partition"), "isolated cpuset partitions: rt.slice with CPUs 2,3");
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            assert_ne!(intel(&[(RT, text), (CPUS, text)]).state("cpuset-partition"), State::Ok, "{text}");
        }
    }
}
