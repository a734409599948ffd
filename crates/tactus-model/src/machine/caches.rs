//! The CPUs that share a cache, from facts, and their groups in a study of shared caches.

use std::collections::BTreeSet;
use std::fmt;

use crate::cpus::CpuSet;
use crate::facts::Facts;
use crate::topology::Topology;

/// A cache that holds data, and the CPUs that fill it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// 1 is the nearest to the CPU.
    pub level: u32,
    /// CPUs that share it, those that are off left out.
    pub cpus: CpuSet,
    /// Size, in bytes; `None`: the system does not say.
    pub size: Option<u64>,
}

/// More caches than any CPU has.
const INDICES: u32 = 8;

/// The caches for data (or for both) of all CPUs that are on, by level and CPUs. Empty where the
/// system does not say, as in many guests.
#[must_use]
pub fn caches(facts: &Facts) -> Vec<Cache> {
    let online = Topology::of(facts).online;
    let mut caches = BTreeSet::new();
    for cpu in online.iter() {
        for index in 0..INDICES {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            if facts.text(&format!("{dir}/type")) == Some("Instruction") {
                continue;
            }
            let Some(level) = facts.number(&format!("{dir}/level")).and_then(|n| u32::try_from(n).ok())
            else {
                continue;
            };
            let Some(Ok(cpus)) = facts.text(&format!("{dir}/shared_cpu_list")).map(str::parse::<CpuSet>)
            else {
                continue;
            };
            // A CPU always shares its cache with itself: anything else is damage.
            if !cpus.contains(cpu) {
                continue;
            }
            let size = facts.text(&format!("{dir}/size")).and_then(size);
            caches.insert(Cache { level, cpus: cpus.and(&online), size });
        }
    }
    caches.into_iter().collect()
}

/// `32768K`, as the kernel writes it, in bytes.
fn size(text: &str) -> Option<u64> {
    text.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

/// CPUs that are alike to those that carry a load: the nearest cache that they share with one of
/// these is of the same level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The level of that cache.
    pub level: u32,
    /// Its size, in bytes; `None`: unknown, or sizes differ.
    pub size: Option<u64>,
    /// The CPUs.
    pub cpus: CpuSet,
}

/// All CPUs of a system, by the caches that they share with loaded CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The loaded CPUs.
    pub loaded: CpuSet,
    /// The CPUs that share a cache with one of them, nearest level first.
    pub sharing: Vec<Sharing>,
    /// The CPUs that share no cache with them.
    pub apart: CpuSet,
    /// The CPUs whose caches are unknown.
    pub unknown: CpuSet,
}

/// Groups the CPUs that are on by the caches that they share with the loaded ones.
#[must_use]
pub fn groups(facts: &Facts, loaded: &CpuSet) -> Groups {
    let online = Topology::of(facts).online;
    let caches = caches(facts);
    let known = caches.iter().fold(CpuSet::default(), |all, cache| all.or(&cache.cpus));
    let mut groups = Groups {
        loaded: loaded.and(&online),
        unknown: online.minus(&known).minus(loaded),
        ..Groups::default()
    };
    let mut rest = online.and(&known).minus(loaded);
    // In the order of their levels: the nearest one decides.
    for cache in caches.iter().filter(|cache| !cache.cpus.and(loaded).is_empty()) {
        let cpus = cache.cpus.and(&rest);
        if cpus.is_empty() {
            continue;
        }
        rest = rest.minus(&cpus);
        match groups.sharing.last_mut().filter(|sharing| sharing.level == cache.level) {
            Some(sharing) => {
                sharing.cpus = sharing.cpus.or(&cpus);
                sharing.size = sharing.size.filter(|size| Some(*size) == cache.size);
            }
            None => groups.sharing.push(Sharing { level: cache.level, size: cache.size, cpus }),
        }
    }
    if known.and(loaded).is_empty() {
        // The caches of the loaded CPUs are unknown, so no CPU is known to be apart from them.
        groups.unknown = groups.unknown.or(&rest);
    } else {
        groups.apart = rest;
    }
    groups
}

impl Groups {
    /// The group of a CPU, in words: `shares level 2 (1MiB) with the load`.
    #[must_use]
    pub fn title(&self, cpu: u32) -> Option<String> {
        let sharing = self.sharing.iter().find(|sharing| sharing.cpus.contains(cpu));
        match sharing {
            Some(sharing) => Some(sharing.to_string()),
            None if self.loaded.contains(cpu) => Some("carries the load".into()),
            None if self.apart.contains(cpu) => Some("shares no cache with the load".into()),
            None if self.unknown.contains(cpu) => Some("its caches are unknown".into()),
            None => None,
        }
    }

    /// Why CPUs that share a cache with the load cannot be compared with CPUs that do not; `None`: they can.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        if self.sharing.is_empty() && self.apart.is_empty() {
            return Some(if self.unknown.is_empty() {
                "there is no CPU beside those that carry the load".into()
            } else {
                "this system does not report which CPUs share a cache".into()
            });
        }
        match (&self.sharing[..], self.apart.is_empty()) {
            ([], false) => Some("no other CPU shares a cache with those that carry the load".into()),
            ([one], true) => Some(format!(
                "this machine has only one cache domain: every other CPU ({}) {one}, and none shares less",
                one.cpus
            )),
            _ => None,
        }
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shares its level {} cache", self.level)?;
        if let Some(size) = self.size {
            write!(f, " ({})", crate::size::Bytes(size))?;
        }
        f.write_str(" with the load")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Facts of a machine whose CPUs have these caches: level, kind, size, CPUs.
    fn machine(online: &str, caches: &[(u32, &str, &str, &str)]) -> Facts {
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/cpu/online", online);
        let online: CpuSet = online.parse().unwrap();
        for cpu in online.iter() {
            let own = caches.iter().filter(|(.., cpus)| cpus.parse::<CpuSet>().unwrap().contains(cpu));
            for (index, (level, kind, size, cpus)) in own.enumerate() {
                let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                facts.keep(format!("{dir}/level"), level.to_string());
                facts.keep(format!("{dir}/type"), *kind);
                facts.keep(format!("{dir}/size"), *size);
                facts.keep(format!("{dir}/shared_cpu_list"), *cpus);
            }
        }
        facts
    }

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn cpus_of_a_loaded_cluster_are_told_from_those_of_another() {
        let board = machine("0-5", &[(2, "Unified", "1024K", "0-3"), (2, "Unified", "1024K", "4-5")]);
        let groups = groups(&board, &set("0-1"));
        assert_eq!(groups.sharing, [Sharing { level: 2, size: Some(1 << 20), cpus: set("2-3") }]);
        assert_eq!((groups.apart.clone(), groups.obstacle()), (set("4-5"), None));
        assert_eq!(groups.title(2).unwrap(), "shares its level 2 cache (1MiB) with the load");
        assert_eq!(groups.title(4).unwrap(), "shares no cache with the load");
        assert_eq!(groups.title(1).unwrap(), "carries the load");
        assert_eq!(groups.title(9), None);
    }

    #[test]
    fn the_nearest_shared_cache_decides() {
        let mut all: Vec<(u32, &str, &str, &str)> = vec![(3, "Unified", "32768K", "0-3")];
        all.extend([(1, "Data", "32K", "0-1"), (1, "Instruction", "32K", "0-1"), (1, "Data", "32K", "2-3")]);
        let groups = groups(&machine("0-5", &all), &set("0"));
        let levels: Vec<_> = groups.sharing.iter().map(|s| (s.level, s.cpus.to_string())).collect();
        assert_eq!(levels, [(1, "1".into()), (3, "2,3".into())]);
        assert_eq!((groups.apart, groups.unknown), (CpuSet::default(), set("4-5")));
    }

    #[test]
    fn a_machine_with_one_domain_says_so() {
        let small = machine(
            "0-1",
            &[(2, "Unified", "512K", "0"), (2, "Unified", "512K", "1"), (3, "Unified", "32768K", "0-1")],
        );
        assert_eq!(
            groups(&small, &set("0")).obstacle().unwrap(),
            "this machine has only one cache domain: every other CPU (1) shares its level 3 cache (32MiB) with \
             the load, and none shares less"
        );
        let all = groups(&small, &set("0-1"));
        assert_eq!(all.obstacle().unwrap(), "there is no CPU beside those that carry the load");
        let apart =
            groups(&machine("0-1", &[(2, "Unified", "512K", "0"), (2, "Unified", "512K", "1")]), &set("0"));
        assert!(apart.obstacle().unwrap().starts_with("no other CPU shares"));
    }

    #[test]
    fn what_a_system_does_not_say_is_not_made_up() {
        let silent = groups(&machine("0-3", &[]), &set("0"));
        assert_eq!((silent.apart.clone(), silent.unknown.clone()), (CpuSet::default(), set("1-3")));
        assert_eq!(silent.obstacle().unwrap(), "this system does not report which CPUs share a cache");
        // Caches of others say nothing of those of the loaded CPU.
        let half = groups(&machine("0-3", &[(2, "Unified", "1K", "2-3")]), &set("0"));
        assert_eq!((half.apart, half.unknown), (CpuSet::default(), set("1-3")));
    }

    proptest! {
        #[test]
        fn every_cpu_is_in_one_group_whatever_the_system_says(
            loaded in proptest::collection::btree_set(0u32..6, 0..4),
            lines in proptest::collection::vec((0u32..6, 0u32..4, "[0-9,-]{0,5}|0-5|2-3", "[1-4]|x"), 0..20),
        ) {
            let mut facts = Facts::default();
            facts.keep("/sys/devices/system/cpu/online", "0-5");
            for (cpu, index, cpus, level) in lines {
                let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                facts.keep(format!("{dir}/level"), level);
                facts.keep(format!("{dir}/shared_cpu_list"), cpus);
            }
            let groups = groups(&facts, &loaded.into_iter().collect());
            for cpu in 0..6 {
                let sharing = groups.sharing.iter().filter(|sharing| sharing.cpus.contains(cpu)).count();
                let others = [&groups.loaded, &groups.apart, &groups.unknown];
                let others = others.iter().filter(|set| set.contains(cpu)).count();
                prop_assert_eq!(sharing + others, 1, "CPU {}: {:?}", cpu, groups);
            }
        }
    }
}
