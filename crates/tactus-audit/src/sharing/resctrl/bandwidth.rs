//! Memory bandwidth that neighbours may take.

use tactus_model::finding::Severity;

use super::groups::{Group, groups, unmounted};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub const CHECK: Check = Check {
    id: "resctrl-mba",
    title: "neighbours may take all memory bandwidth",
    sources: &[Source::Xeon, Source::Kernel("Documentation/filesystems/resctrl.rst")],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::X86,
    set: &[SetBy::RunTime, SetBy::Libvirt],
    reversible: Reversible::Yes,
    hardware: true,
    reads: "the MB: lines of /sys/fs/resctrl/schemata of every group",
    expected: "a lower limit for groups without real-time work than for the group of real-time work",
    why: "Cache misses of the real-time program wait behind those of its neighbours at the memory controller. Memory \
Bandwidth Allocation delays the requests of limited groups.",
    fix: "Limit the default group and leave the real-time group at its maximum. Intel counts in percent: echo \
'MB:0=50' > /sys/fs/resctrl/schemata. AMD counts in steps of 1/8 GB/s: 'MB:0=160' is 20 GB/s. For a guest: \
<memorytune vcpus='...'><node id='0' bandwidth='100'/></memorytune>.",
    risk: "Everything in the limited group runs slower, even while the bandwidth is free.",
    judge,
    changes: no_change,
};

const WHAT: &str = "limit the memory bandwidth of groups (mba)";

fn judge(subject: &Subject<'_>) -> Verdict {
    let groups = match groups(subject) {
        Ok(groups) => groups,
        Err(refused) => return Err(unmounted(subject, refused, &["mba"], WHAT)),
    };
    let domains: Vec<u32> =
        groups.first().map(|root| root.bandwidth.keys().copied().collect()).unwrap_or_default();
    if domains.is_empty() {
        return Err(unmounted(subject, Judgement::not_applicable(""), &[], WHAT));
    }
    let of_real_time =
        |group: &Group| !group.cpus.and(subject.isolated()).is_empty() && !group.name.is_empty();
    let held = domains.iter().any(|id| {
        let value = |group: &Group| group.bandwidth.get(id).copied();
        let most = groups.iter().filter_map(value).max();
        // Where no group has the real-time CPUs, its threads are in the one that may take most.
        let ours = groups.iter().filter(|group| of_real_time(group)).filter_map(value).max().or(most);
        let least = groups.iter().filter(|group| !of_real_time(group)).filter_map(value).min();
        matches!((ours, least), (Some(ours), Some(least)) if least < ours)
    });
    let judgement = Judgement::when(
        held,
        "groups without real-time work have limited memory bandwidth",
        "no group has a lower memory bandwidth limit than real-time work",
    );
    Ok(groups.iter().take(8).fold(judgement, |judgement, group| {
        let values: Vec<String> = group.bandwidth.iter().map(|(id, value)| format!("{id}={value}")).collect();
        let name = if group.name.is_empty() { String::new() } else { format!("{}/", group.name) };
        judgement.read(format!("/sys/fs/resctrl/{name}schemata"), format!("MB:{}", values.join(";")))
    }))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, System, arm, intel};

    fn groups(root: &str, rt: &str, cpus: &str) -> System {
        intel(&[
            ("/sys/fs/resctrl/schemata", root),
            ("/sys/fs/resctrl/rt/schemata", rt),
            ("/sys/fs/resctrl/rt/cpus_list", cpus),
        ])
    }

    #[test]
    fn the_others_must_be_held_below_real_time_work() {
        assert_eq!(groups("MB:0=50", "MB:0=100", "2-3").state("resctrl-mba"), State::Ok);
        assert_eq!(groups("MB:0=100", "MB:0=100", "2-3").state("resctrl-mba"), State::Finding);
        assert_eq!(
            groups("MB:0=100", "MB:0=50", "2-3").state("resctrl-mba"),
            State::Finding,
            "the wrong one"
        );
        assert_eq!(groups("MB:0=50", "MB:0=100", "").state("resctrl-mba"), State::Ok, "threads of a guest");
        assert_eq!(intel(&[("/sys/fs/resctrl/schemata", "MB:0=100")]).state("resctrl-mba"), State::Finding);
    }

    #[test]
    fn without_the_feature_it_is_not_concerned() {
        assert_eq!(groups("L3:0=fff", "L3:0=f", "2-3").state("resctrl-mba"), State::NotApplicable);
        assert_eq!(intel(&[]).state("resctrl-mba"), State::NotApplicable);
        assert_eq!(arm(&[]).state("resctrl-mba"), State::NotApplicable);
        let able = intel(&[("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t: mba")]);
        assert_eq!(able.state("resctrl-mba"), State::Finding);
        for text in HOSTILE {
            assert_eq!(groups(text, text, text).state("resctrl-mba"), State::NotApplicable);
        }
    }
}
