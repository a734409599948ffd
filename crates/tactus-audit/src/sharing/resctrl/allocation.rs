//! Ways of a cache that are kept for real-time work.

use std::collections::BTreeSet;

use tactus_model::CpuSet;
use tactus_model::finding::{Severity, State};

use super::groups::{Group, groups, unmounted};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub const CHECK: Check = Check {
    id: "resctrl-cat",
    title: "no part of the last-level cache is reserved for real-time work",
    sources: &[Source::Xeon, Source::Kernel("Documentation/filesystems/resctrl.rst")],
    applies: &[Applies::Host],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::RunTime, SetBy::Libvirt],
    reversible: Reversible::Yes,
    hardware: true,
    reads: "/sys/fs/resctrl/{schemata,cpus_list} of every group, info/L*/shareable_bits",
    expected: "a group for the CPUs or threads of real-time work, with ways that no other group and no device uses",
    why: "Cores of a socket share its last-level cache. A neighbour that streams through memory evicts the real-time \
program's lines. With Cache Allocation (Intel, AMD; MPAM on Arm) a group fills only its ways, and the lines in them \
stay.",
    fix: "`mount -t resctrl resctrl /sys/fs/resctrl`; mkdir /sys/fs/resctrl/rt. Take ways from the default group, \
give them to the new one and add the CPUs. For a cache 0 of 12 ways (info/L3/cbm_mask fff): echo 'L3:0=0ff' > \
/sys/fs/resctrl/schemata; echo 'L3:0=f00' > /sys/fs/resctrl/rt/schemata; echo {isolated} > \
/sys/fs/resctrl/rt/cpus_list.\nFor a guest: <cachetune vcpus='...'><cache id='0' level='3' type='both' size='6' \
unit='MiB'/></cachetune>.",
    risk: "Everything else has less cache. Masks must be contiguous on Intel (unless info/L3/sparse_masks is 1) and \
have at least min_cbm_bits.",
    judge,
    changes: no_change,
};

const WHAT: &str = "reserve parts of its caches (cat_l3, cat_l2)";

/// Whether the last-level cache is divided so that real-time work has a separate part.
pub fn partitioned(subject: &Subject<'_>) -> bool {
    matches!(judge(subject), Ok(judgement) if judgement.state == State::Ok)
}

fn judge(subject: &Subject<'_>) -> Verdict {
    let groups = match groups(subject) {
        Ok(groups) => groups,
        Err(refused) => return Err(unmounted(subject, refused, &["cat_l3", "cat_l2"], WHAT)),
    };
    let Some(level) = groups.first().and_then(|root| root.ways.keys().map(|(level, _)| *level).max()) else {
        return Err(unmounted(subject, Judgement::not_applicable(""), &[], WHAT));
    };
    let (real_time, others) = split(&groups, subject.isolated());
    let judgement = if real_time.is_empty() {
        Judgement::finding(format!("all programs use the whole cache of level {level}: there is no group"))
    } else {
        let domains = domains(subject, level);
        let bad = real_time.iter().find_map(|group| overlap(group, &others, level, domains.as_ref()));
        let left = left_out(&real_time, subject.isolated());
        match (bad, left) {
            (Some(said), _) => Judgement::finding(said),
            (None, Some(cpus)) => {
                Judgement::finding(format!("CPUs {cpus} are in no group with separate ways"))
            }
            (None, None) => match shared_with_devices(subject, &real_time, level) {
                Some(said) => Judgement::finding(said).at(Severity::Minor),
                None => Judgement::ok(format!(
                    "{} has separate ways in the cache of level {level}",
                    real_time.iter().map(|group| group.title()).collect::<Vec<_>>().join(", ")
                )),
            },
        }
    };
    Ok(groups.iter().take(8).fold(judgement, |judgement, group| {
        let ways: Vec<String> = group
            .ways
            .iter()
            .filter(|((l, _), _)| *l == level)
            .map(|((_, id), ways)| format!("{id}={ways:x}"))
            .collect();
        let name = if group.name.is_empty() { String::new() } else { format!("{}/", group.name) };
        judgement.read(format!("/sys/fs/resctrl/{name}schemata"), format!("L{level}:{}", ways.join(";")))
    }))
}

/// Groups for real-time work and the others. A group with CPUs that are for real-time work is one; a
/// group without CPUs holds threads, as libvirt makes one for a guest's vCPUs.
fn split<'a>(groups: &'a [Group], isolated: &CpuSet) -> (Vec<&'a Group>, Vec<&'a Group>) {
    let of_cpus = |group: &Group| !group.cpus.and(isolated).is_empty();
    groups.iter().partition(|group| !group.name.is_empty() && (of_cpus(group) || group.cpus.is_empty()))
}

/// The caches of that level that belong to the CPUs for real-time work; `None` where that is not known.
fn domains(subject: &Subject<'_>, level: u32) -> Option<BTreeSet<u32>> {
    let mut domains = BTreeSet::new();
    for cpu in subject.isolated().iter() {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{level}");
        domains.insert(subject.facts.text(&format!("{dir}/id"))?.parse().ok()?);
    }
    (!domains.is_empty()).then_some(domains)
}

/// The part of a cache that a group shares with one of the others.
fn overlap(group: &Group, others: &[&Group], level: u32, domains: Option<&BTreeSet<u32>>) -> Option<String> {
    for (&(of, id), &ways) in &group.ways {
        if of != level || domains.is_some_and(|domains| !domains.contains(&id)) {
            continue;
        }
        for other in others {
            let both = ways & other.ways.get(&(of, id)).copied().unwrap_or(0);
            if both != 0 {
                return Some(format!(
                    "{} shares ways {both:x} of cache {id} (level {level}) with {}",
                    group.title(),
                    other.title()
                ));
            }
        }
    }
    None
}

/// CPUs for real-time work in none of the groups. Groups of threads are for threads that were not
/// read: where there is one, nothing is said.
fn left_out(real_time: &[&Group], isolated: &CpuSet) -> Option<CpuSet> {
    if real_time.iter().any(|group| group.cpus.is_empty()) {
        return None;
    }
    let left = real_time.iter().fold(isolated.clone(), |left, group| left.minus(&group.cpus));
    (!left.is_empty()).then_some(left)
}

/// Ways that devices fill too (`shareable_bits`).
fn shared_with_devices(subject: &Subject<'_>, real_time: &[&Group], level: u32) -> Option<String> {
    let devices = ["", "CODE", "DATA"].iter().find_map(|part| {
        let text = subject.facts.text(&format!("/sys/fs/resctrl/info/L{level}{part}/shareable_bits"))?;
        u64::from_str_radix(text, 16).ok()
    })?;
    let (group, both) = real_time.iter().find_map(|group| {
        let both = group.ways.iter().filter(|((of, _), _)| *of == level).fold(0, |all, (_, ways)| all | ways)
            & devices;
        (both != 0).then_some((group, both))
    })?;
    Some(format!(
        "{} has separate ways, but devices fill {both:x} of them too (shareable_bits)",
        group.title()
    ))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, Severity, State};

    use crate::testing::{HOSTILE, System, arm, guest, intel};

    /// CPUs 2 and 3 are for real-time work.
    fn groups(root: &str, rt: &str, cpus: &str) -> System {
        intel(&[
            ("/sys/fs/resctrl/schemata", root),
            ("/sys/fs/resctrl/cpus_list", "0-1"),
            ("/sys/fs/resctrl/rt/schemata", rt),
            ("/sys/fs/resctrl/rt/cpus_list", cpus),
        ])
    }

    #[test]
    fn ways_must_be_apart_and_hold_all_real_time_cpus() {
        assert_eq!(groups("L3:0=0ff", "L3:0=f00", "2-3").state("resctrl-cat"), State::Ok);
        let shared = groups("L3:0=fff", "L3:0=f00", "2-3");
        assert_eq!(
            shared.said("resctrl-cat"),
            "group rt shares ways f00 of cache 0 (level 3) with the default group"
        );
        let half = groups("L3:0=0ff", "L3:0=f00", "2");
        assert_eq!(half.said("resctrl-cat"), "CPUs 3 are in no group with separate ways");
        assert_eq!(groups("L3:0=0ff", "L3:0=f00", "").state("resctrl-cat"), State::Ok, "threads of a guest");
        let none = intel(&[("/sys/fs/resctrl/schemata", "L3:0=fff")]);
        assert_eq!(none.state("resctrl-cat"), State::Finding);
    }

    #[test]
    fn only_the_cache_of_the_real_time_cpus_counts() {
        let mut system = groups("L3:0=fff;1=0ff", "L3:0=fff;1=f00", "2-3");
        assert_eq!(system.state("resctrl-cat"), State::Finding);
        for cpu in [2, 3] {
            system = system.and(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/id"), "1");
        }
        assert_eq!(system.state("resctrl-cat"), State::Ok);
    }

    #[test]
    fn ways_of_devices_are_not_quite_ones_own() {
        let found = groups("L3:0=0ff", "L3:0=f00", "2-3")
            .and("/sys/fs/resctrl/info/L3/shareable_bits", "c00")
            .finding("resctrl-cat");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Minor));
    }

    #[test]
    fn a_processor_that_could_is_told_so_and_one_that_cannot_is_not_concerned() {
        let able = intel(&[("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t: cat_l3 mba cqm_llc")]);
        assert_eq!(able.state("resctrl-cat"), State::Finding);
        assert_eq!(intel(&[]).state("resctrl-cat"), State::NotApplicable);
        assert_eq!(arm(&[]).state("resctrl-cat"), State::NotApplicable);
        assert_eq!(guest(&[]).role(Role::Host).state("resctrl-cat"), State::Unknowable);
        let refused = able.unreadable("/sys/fs/resctrl/schemata", "denied");
        assert_eq!(refused.state("resctrl-cat"), State::Unreadable);
    }

    #[test]
    fn rubbish_reserves_nothing() {
        for text in HOSTILE {
            assert_eq!(groups(text, "L3:0=f00", "2-3").state("resctrl-cat"), State::NotApplicable, "{text}");
            assert_ne!(groups("L3:0=fff", "L3:0=fff", text).state("resctrl-cat"), State::Ok, "{text}");
        }
    }
}
