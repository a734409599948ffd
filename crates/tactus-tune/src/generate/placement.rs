//! Where a guest or a container stands on the machine: whole cores of one NUMA node, everything else
//! on the housekeeping CPUs.

use std::collections::BTreeMap;

use tactus_audit::{Subject, impossible};
use tactus_model::CpuSet;
use tactus_model::facts::{Facts, Reading};

use super::GenerateError;

/// The placement of a guest. The number of a vCPU is its index in `cpus`; vCPU 0 is the guest's housekeeping CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The CPU of each vCPU. Where `threads` is 2, hardware threads of a core follow each other.
    pub cpus: Vec<u32>,
    /// Hardware threads of a core that the guest gets: 1 or all.
    pub threads: usize,
    /// Hardware threads of the cores used that nothing may run on, because their sibling is a vCPU's.
    pub idle: CpuSet,
    /// The NUMA node of the CPUs, where the facts tell.
    pub node: Option<u32>,
    /// Of a processor with several kinds of cores, those of the CPUs; else empty.
    pub mixed: Vec<&'static str>,
    /// The same of all isolated CPUs.
    pub kinds: Vec<&'static str>,
    /// How many NUMA nodes the machine has; at least 1.
    pub nodes: usize,
    /// CPUs for everything of the guest but its vCPUs: those of the same node, if there are any.
    pub emulator: CpuSet,
    /// All CPUs that keep house.
    pub housekeeping: CpuSet,
    /// All CPUs for real-time work.
    pub isolated: CpuSet,
}

impl Placement {
    /// Places `wanted` vCPUs, and at least `least`. Without a number there is one on every isolated core of the node
    /// that has most of them.
    ///
    /// A core's second hardware thread is left idle while there are enough cores; only then whole cores with all
    /// their threads are given.
    ///
    /// # Errors
    /// When the isolation is of no use, or the vCPUs do not fit into it.
    pub fn of(subject: &Subject<'_>, wanted: Option<usize>, least: usize) -> Result<Self, GenerateError> {
        check(subject)?;
        let (isolated, housekeeping) = (subject.isolated(), subject.housekeeping());
        let nodes = nodes(subject.facts);
        let cores: Vec<&CpuSet> = subject
            .topology
            .cores
            .iter()
            .filter(|core| core.first().is_some_and(|cpu| isolated.contains(cpu)))
            .collect();
        let of_node = |node: Option<&CpuSet>| -> Vec<&CpuSet> {
            let here = |core: &CpuSet| node.is_none_or(|cpus| !core.and(cpus).is_empty());
            cores.iter().copied().filter(|core| here(core)).collect()
        };
        // Of nodes with equally many cores, the first: machines boot from it and have their disks there.
        let mut seats: Vec<(Option<u32>, Vec<&CpuSet>)> = if nodes.is_empty() {
            vec![(None, of_node(None))]
        } else {
            nodes.iter().map(|(node, cpus)| (Some(*node), of_node(Some(cpus)))).collect()
        };
        seats.sort_by_key(|(_, cores)| std::cmp::Reverse(cores.len()));
        // `check` has found an isolated core.
        let (node, mut cores) = seats.into_iter().next().unwrap_or_default();
        let kinds = kinds(subject.facts);
        if kinds.len() > 1 {
            cores = of_one_kind(&cores, &kinds, wanted);
        }

        let online = |core: &CpuSet| core.and(isolated);
        let wanted = wanted.unwrap_or(cores.len());
        if wanted < least {
            return Err(GenerateError::TooFew { wanted, least });
        }
        let capacity: usize = cores.iter().map(|core| online(core).len()).sum();
        if wanted > capacity {
            let total = isolated.len();
            return Err(GenerateError::TooMany { wanted, isolated: isolated.clone(), capacity, total });
        }
        let (cpus, threads): (Vec<u32>, usize) = if wanted <= cores.len() {
            (cores.iter().take(wanted).filter_map(|core| online(core).first()).collect(), 1)
        } else {
            let threads = cores.first().map_or(1, |core| online(core).len());
            if cores.iter().any(|core| online(core).len() != threads) {
                return Err(GenerateError::UnlikeCores { wanted, cores: cores.len() });
            }
            if !wanted.is_multiple_of(threads) {
                return Err(GenerateError::HalfACore { wanted, threads, cores: cores.len() });
            }
            let all =
                cores.iter().take(wanted / threads).flat_map(|core| online(core).iter().collect::<Vec<_>>());
            (all.collect(), threads)
        };
        let used: CpuSet = cpus.iter().copied().collect();
        let idle = cpus
            .iter()
            .fold(CpuSet::default(), |set, cpu| set.or(&subject.topology.core_of(*cpu).and(isolated)))
            .minus(&used);
        let near = node.as_ref().and_then(|node| nodes.get(node)).map(|cpus| cpus.and(housekeeping));
        Ok(Self {
            cpus,
            threads,
            idle,
            node,
            mixed: kinds_of(&kinds, &used),
            kinds: kinds_of(&kinds, isolated),
            nodes: nodes.len().max(1),
            emulator: near.filter(|near| !near.is_empty()).unwrap_or_else(|| housekeeping.clone()),
            housekeeping: housekeeping.clone(),
            isolated: isolated.clone(),
        })
    }

    /// How many vCPUs there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cpus.len()
    }

    /// A note on a processor with several kinds of cores.
    #[must_use]
    pub fn mixture(&self) -> Option<String> {
        match self.mixed[..] {
            [] => None,
            [kind] => Some(format!("hybrid processor: all of its CPUs are {kind} cores")),
            _ => Some(format!(
                "hybrid processor: its CPUs are {} cores, which differ in latency; take fewer with --vcpus, or isolate \
more cores of one kind",
                self.mixed.join(" and ")
            )),
        }
    }

    /// The same where a cluster's scheduler chooses among all isolated CPUs.
    #[must_use]
    pub fn scheduled(&self) -> Option<String> {
        (self.kinds.len() > 1).then(|| {
            format!(
                "hybrid processor: the isolated CPUs are {} cores, and the scheduler does not distinguish them. One \
guest may get both, which differ in latency; isolate cores of one kind only",
                self.kinds.join(" and ")
            )
        })
    }

    /// The CPUs as a set.
    #[must_use]
    pub fn set(&self) -> CpuSet {
        self.cpus.iter().copied().collect()
    }

    /// The vCPUs that do real-time work: all but the first core's.
    #[must_use]
    pub fn realtime(&self) -> CpuSet {
        (0u32..).zip(&self.cpus).skip(self.threads).map(|(vcpu, _)| vcpu).collect()
    }

    /// The vCPUs that keep house inside: those of the first core.
    #[must_use]
    pub fn keeps_house(&self) -> CpuSet {
        (0u32..).zip(&self.cpus).take(self.threads).map(|(vcpu, _)| vcpu).collect()
    }
}

/// The CPUs of each kind of core of a hybrid processor, as the kernel's performance counters tell them;
/// the fastest first. Empty where there is one kind.
fn kinds(facts: &Facts) -> Vec<(&'static str, CpuSet)> {
    let all = [("P", "cpu_core"), ("E", "cpu_atom"), ("low-power E", "cpu_lowpower")];
    let there = all.into_iter().filter_map(|(kind, name)| {
        let cpus: CpuSet = facts.text(&format!("/sys/devices/{name}/cpus"))?.parse().ok()?;
        (!cpus.is_empty()).then_some((kind, cpus))
    });
    there.collect()
}

/// The kinds of these CPUs.
fn kinds_of(kinds: &[(&'static str, CpuSet)], of: &CpuSet) -> Vec<&'static str> {
    if kinds.len() < 2 {
        return Vec::new();
    }
    kinds.iter().filter(|(_, cpus)| !cpus.and(of).is_empty()).map(|(kind, _)| *kind).collect()
}

/// The cores of one kind: the fastest that has `wanted` of them, or the most common one without `wanted`. If no kind
/// has enough, all cores, the fastest first.
fn of_one_kind<'a>(cores: &[&'a CpuSet], kinds: &[(&str, CpuSet)], wanted: Option<usize>) -> Vec<&'a CpuSet> {
    let of = |cpus: &CpuSet| -> Vec<&'a CpuSet> {
        cores.iter().copied().filter(|core| !core.and(cpus).is_empty()).collect()
    };
    let mut groups: Vec<Vec<&CpuSet>> = kinds.iter().map(|(_, cpus)| of(cpus)).collect();
    let enough = |group: &&Vec<&CpuSet>| wanted.is_some_and(|wanted| group.len() >= wanted);
    if let Some(group) = groups.iter().find(enough) {
        return group.clone();
    }
    match wanted {
        Some(_) => groups.concat(),
        None => {
            groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
            groups.into_iter().next().unwrap_or_default()
        }
    }
}

/// Whether the isolation is of any use.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check(subject: &Subject<'_>) -> Result<(), GenerateError> {
    impossible(subject).into_iter().next().map_or(Ok(()), |wrong| Err(wrong.into()))
}

/// The CPUs of each NUMA node that has any.
#[must_use]
pub fn nodes(facts: &Facts) -> BTreeMap<u32, CpuSet> {
    const NODE: &str = "/sys/devices/system/node/node";
    let read = |(name, reading): (&str, &Reading)| -> Option<(u32, CpuSet)> {
        let number = name.strip_prefix(NODE)?.strip_suffix("/cpulist")?.parse().ok()?;
        let Reading::Text(text) = reading else { return None };
        let cpus: CpuSet = text.parse().ok()?;
        (!cpus.is_empty()).then_some((number, cpus))
    };
    facts.under(NODE).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_audit::Impossible;

    use super::super::testing::machine;
    use super::*;

    fn placed(
        cpus: u32,
        smt: bool,
        nodes: u32,
        isolate: &str,
        wanted: Option<usize>,
    ) -> Result<Placement, GenerateError> {
        let machine = machine("x86_64", "GenuineIntel").cpus(cpus, smt, nodes);
        machine.isolate(isolate).with(|subject| Placement::of(subject, wanted, 2))
    }

    #[test]
    fn every_isolated_core_of_one_node_has_a_vcpu_by_default() {
        let here = placed(8, false, 2, "2-7", None).unwrap();
        assert_eq!((here.cpus.clone(), here.node, here.threads), (vec![4, 5, 6, 7], Some(1), 1));
        // The node has no housekeeping CPU.
        assert_eq!(here.emulator, "0-1".parse().unwrap());
        assert_eq!(here.realtime(), "1-3".parse().unwrap());
        let here = placed(8, false, 2, "2-3,5-7", Some(2)).unwrap();
        assert_eq!((here.cpus, here.emulator), (vec![5, 6], "4".parse().unwrap()));
    }

    #[test]
    fn siblings_stay_idle_while_there_are_cores_and_then_whole_cores_are_given() {
        // Linux numbers siblings n and n + cores.
        let here = placed(8, true, 1, "1-3,5-7", Some(3)).unwrap();
        assert_eq!((here.cpus, here.threads, here.idle), (vec![1, 2, 3], 1, "5-7".parse().unwrap()));
        let here = placed(8, true, 1, "1-3,5-7", Some(4)).unwrap();
        assert_eq!(
            (here.cpus.clone(), here.threads, here.idle.clone()),
            (vec![1, 5, 2, 6], 2, CpuSet::default())
        );
        assert_eq!((here.keeps_house(), here.realtime()), ("0-1".parse().unwrap(), "2-3".parse().unwrap()));
        let refused = placed(8, true, 1, "1-3,5-7", Some(5)).unwrap_err();
        assert_eq!(refused, GenerateError::HalfACore { wanted: 5, threads: 2, cores: 3 });
    }

    #[test]
    fn an_isolation_of_no_use_is_refused_and_the_reason_is_told() {
        let refused = |cpus, smt, isolate: &str, wanted| placed(cpus, smt, 1, isolate, wanted).unwrap_err();
        let impossible = |isolated| match refused(4, false, isolated, None) {
            GenerateError::Isolation(wrong) => wrong,
            other => panic!("{other}"),
        };
        assert!(matches!(impossible(""), Impossible::Nothing { .. }));
        assert!(matches!(impossible("2-9"), Impossible::NotOnline { .. }));
        assert!(matches!(impossible("0-3"), Impossible::NoHousekeeping { .. }));
        assert!(matches!(impossible("0-2"), Impossible::CpuZero { .. }));
        let split = refused(8, true, "2-3", None);
        assert!(matches!(split, GenerateError::Isolation(Impossible::HalfCores { .. })));
        assert!(matches!(refused(4, false, "1-3", Some(4)), GenerateError::TooMany { .. }));
        assert!(matches!(refused(4, false, "3", None), GenerateError::TooFew { .. }));
    }

    #[test]
    fn facts_without_nodes_are_one_node() {
        let machine = machine("x86_64", "GenuineIntel").cpus(4, false, 0).isolate("2-3");
        let here = machine.with(|subject| Placement::of(subject, None, 2)).unwrap();
        assert_eq!((here.node, here.nodes), (None, 1));
    }

    #[test]
    fn a_guest_has_cores_of_one_kind_while_there_are_enough() {
        // Two P cores, 0 and 1, with four E cores behind them; CPU 0 is for housekeeping.
        let hybrid = machine("x86_64", "GenuineIntel")
            .cpus(8, false, 1)
            .fact("/sys/devices/cpu_core/cpus", "0-3")
            .fact("/sys/devices/cpu_atom/cpus", "4-7")
            .isolate("1-7");
        let placed = |wanted| hybrid.with(|subject| Placement::of(subject, wanted, 2)).unwrap();
        assert_eq!((placed(Some(3)).cpus, placed(Some(3)).mixed), (vec![1, 2, 3], vec!["P"]));
        assert_eq!((placed(None).cpus, placed(Some(4)).cpus), (vec![4, 5, 6, 7], vec![4, 5, 6, 7]));
        let both = placed(Some(6));
        assert_eq!((both.cpus, both.mixed), (vec![1, 2, 3, 4, 5, 6], vec!["P", "E"]));
    }

    proptest! {
        #[test]
        fn a_placement_never_leaves_the_isolation_and_never_shares_a_core(
            cpus in 1u32..33, smt: bool, nodes in 0u32..4, from in 0u32..33, length in 0u32..33, wanted in 0usize..40,
        ) {
            let set: CpuSet = (from..from + length).collect();
            let cpus = if smt { cpus * 2 } else { cpus };
            let machine = machine("x86_64", "GenuineIntel").cpus(cpus, smt, nodes).isolate(&set.to_string());
            machine.with(|subject| {
                let Ok(here) = Placement::of(subject, Some(wanted), 1) else { return Ok(()) };
                prop_assert_eq!(here.count(), wanted);
                prop_assert_eq!(here.set().len(), wanted, "one CPU each");
                prop_assert!(here.set().minus(&set).is_empty());
                prop_assert!(here.emulator.and(&set).is_empty() && !here.emulator.is_empty());
                prop_assert!(here.idle.and(&here.set()).is_empty());
                Ok(())
            })?;
        }
    }
}
