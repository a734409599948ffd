//! Caches that CPUs for real-time work share with the others.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::finding::Severity;

use super::resctrl;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "llc-sharing",
    title: "real-time CPUs share a cache with the other CPUs",
    sources: &[Source::Osadl, Source::Kernel("Documentation/core-api/real-time/hardware.rst")],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::Placement],
    reversible: Reversible::Yes,
    hardware: true,
    reads: "/sys/devices/system/cpu/cpuN/cache/index*/{level,shared_cpu_list} of the real-time CPUs",
    expected: "no level 2 cache shared with other CPUs, and no shared last-level cache without partitions",
    why: "A neighbour that reads much memory empties the shared cache, and the next cycle must fetch its data from \
memory. In osadl-2023 cyclictest ran at an interval of 3 ms. Maxima were 315 to 415 us on the cores that shared a 1 \
MB L2 with the load. They were 51 and 68 us on the two cores of another cluster.",
    fix: "Choose real-time CPUs by whole clusters (CPUs that share a level-2 cache) or whole sockets, and run \
everything else on the other CPUs. If the last level must be shared, partition it (resctrl-cat).",
    risk: "CPUs of the cluster that you do not need stay idle.",
    judge,
    changes: no_change,
}];

/// More levels than any processor has.
const INDICES: u32 = 6;

fn judge(subject: &Subject<'_>) -> Verdict {
    if subject.housekeeping().is_empty() {
        return Err(Judgement::not_applicable("all CPUs are real-time CPUs: there is no other neighbour"));
    }
    let caches = shared(subject);
    if caches.is_empty() {
        return Err(Judgement::not_applicable("this kernel does not show which CPUs share a cache"));
    }
    let last = caches.keys().map(|(level, _)| *level).max().unwrap_or(0);
    let mut private = Vec::new();
    let mut outer = Vec::new();
    let mut reads = Vec::new();
    for ((level, cpus), members) in &caches {
        let neighbours = cpus.and(subject.housekeeping());
        reads.push((format!("level {level} of CPUs {members}"), format!("shared by {cpus}")));
        if neighbours.is_empty() {
            continue;
        }
        let said = format!("CPUs {members} share their level {level} cache with {neighbours}");
        if *level == last && *level > 2 { outer.push(said) } else { private.push(said) }
    }
    let judgement = if !private.is_empty() {
        Judgement::finding([private, outer].concat().join("; "))
    } else if outer.is_empty() {
        Judgement::ok(format!("CPUs {} share no cache with the others", subject.isolated()))
    } else if resctrl::partitioned(subject) {
        Judgement::ok(format!("{}, but it is partitioned", outer.join("; ")))
    } else {
        Judgement::finding(outer.join("; ")).at(Severity::Minor)
    };
    Ok(reads.into_iter().take(12).fold(judgement, |judgement, (path, value)| judgement.read(path, value)))
}

/// Caches above the first level of the CPUs for real-time work: level and sharers, and which of those
/// CPUs are among them.
fn shared(subject: &Subject<'_>) -> BTreeMap<(u32, CpuSet), CpuSet> {
    let mut caches: BTreeMap<(u32, CpuSet), CpuSet> = BTreeMap::new();
    for cpu in subject.isolated().and(&subject.topology.online).iter() {
        for index in 0..INDICES {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let Some(sharers) = subject.facts.text(&format!("{dir}/shared_cpu_list")) else { continue };
            let Some(level @ 2..=9) = level(subject, &dir, index) else { continue };
            let Ok(sharers) = sharers.parse::<CpuSet>() else { continue };
            caches.entry((level, sharers)).or_default().insert(cpu);
        }
    }
    caches
}

/// The level of a cache. Without a reading the level follows from the index, as on every common processor: two caches
/// of level 1, then one of each level.
fn level(subject: &Subject<'_>, dir: &str, index: u32) -> Option<u32> {
    match subject.facts.text(&format!("{dir}/level")) {
        Some(text) => text.parse().ok(),
        None => Some(index.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Severity, State};

    use crate::testing::{HOSTILE, System, blank, guest, intel};

    /// CPUs 2 and 3 are for real-time work; `second` and `third` are the CPUs that share their caches of level 2 and
    /// 3.
    fn machine(second: [&str; 2], third: &str) -> System {
        let mut system = intel(&[]);
        for (cpu, second) in [2, 3].into_iter().zip(second) {
            for (index, level, sharers) in [(0, "1", "0-3"), (2, "2", second), (3, "3", third)] {
                let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                system = system
                    .and(&format!("{dir}/level"), level)
                    .and(&format!("{dir}/shared_cpu_list"), sharers);
            }
        }
        system
    }

    #[test]
    fn a_second_level_shared_with_others_is_worse_than_a_third() {
        assert_eq!(machine(["2", "3"], "2-3").state("llc-sharing"), State::Ok);
        let found = machine(["1-2", "3"], "0-3").finding("llc-sharing");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Major));
        assert_eq!(
            found.message,
            "CPUs 2 share their level 2 cache with 1; CPUs 2,3 share their level 3 cache with 0,1"
        );
        let found = machine(["2", "3"], "0-3").finding("llc-sharing");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Minor));
    }

    #[test]
    fn a_last_level_that_is_the_second_is_judged_as_such() {
        let cluster = machine(["0-3", "0-3"], "").finding("llc-sharing");
        assert_eq!((cluster.state, cluster.severity), (State::Finding, Severity::Major));
    }

    #[test]
    fn a_partitioned_last_level_may_be_shared() {
        let system = machine(["2", "3"], "0-3")
            .and("/sys/fs/resctrl/schemata", "L3:0=0ff")
            .and("/sys/fs/resctrl/rt/schemata", "L3:0=f00")
            .and("/sys/fs/resctrl/rt/cpus_list", "2-3");
        assert_eq!(system.state("llc-sharing"), State::Ok);
    }

    #[test]
    fn a_guest_cannot_know_and_some_kernels_do_not_say() {
        assert_eq!(guest(&[]).state("llc-sharing"), State::Unknowable);
        assert_eq!(
            blank(&[("/sys/devices/system/cpu/online", "0-3")]).state("llc-sharing"),
            State::NotApplicable
        );
        assert_eq!(machine(["2", "3"], "2-3").isolate("0-3").state("llc-sharing"), State::NotApplicable);
        for text in HOSTILE.iter().filter(|text| text.parse::<tactus_model::CpuSet>().is_err()) {
            assert_eq!(machine([text, text], text).state("llc-sharing"), State::NotApplicable, "{text}");
        }
    }
}
