//! The CPUs of a system, from facts.

use crate::cpus::{CpuRequest, CpuSet};
use crate::facts::Facts;

/// Which CPUs there are and what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// CPUs that are on.
    pub online: CpuSet,
    /// CPUs that this process may use.
    pub allowed: CpuSet,
    /// CPUs taken from the scheduler's balancing at boot (`isolcpus`).
    pub isolated: CpuSet,
    /// CPUs without a periodic tick (`nohz_full`).
    pub nohz_full: CpuSet,
    /// For each CPU the set of hardware threads of its core.
    pub cores: Vec<CpuSet>,
    /// CPUs to measure on, where somebody has already said so; else empty.
    pub preferred: CpuSet,
}

/// Why a request for CPUs cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuRequestError {
    /// A CPU that is not there, or not on.
    #[error("CPU {missing} is not online; this machine has {online}")]
    NotOnline {
        /// What is missing.
        missing: CpuSet,
        /// What there is.
        online: CpuSet,
    },
    /// A CPU that this process may not use.
    #[error("CPU {missing} is not allowed for this process (cpuset or affinity); allowed are {allowed}")]
    NotAllowed {
        /// What is missing.
        missing: CpuSet,
        /// What is allowed.
        allowed: CpuSet,
    },
    /// Nothing is left.
    #[error("`{0}` leaves no CPU")]
    Empty(String),
    /// `neighbour` on a machine with one CPU.
    #[error("there is no CPU beside the measured one")]
    NoNeighbour,
    /// `isolated` on a machine that isolates none.
    #[error("no CPU of this machine is isolated (isolcpus= is empty)")]
    NoneIsolated,
}

impl Topology {
    /// Reads the topology out of facts. What cannot be read is empty, except that CPU 0 is always
    /// there.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        let set =
            |name: &str| -> CpuSet { facts.text(name).and_then(|t| t.parse().ok()).unwrap_or_default() };
        let mut online = set("/sys/devices/system/cpu/online");
        if online.is_empty() {
            online.insert(0);
        }
        let mut allowed = set("sched:affinity").and(&online);
        if allowed.is_empty() {
            allowed.clone_from(&online);
        }
        let mut cores: Vec<CpuSet> = online
            .iter()
            .map(|cpu| {
                let core = set(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
                if core.is_empty() { CpuSet::one(cpu) } else { core }
            })
            .collect();
        cores.sort();
        cores.dedup();
        Self {
            isolated: set("/sys/devices/system/cpu/isolated").and(&online),
            nohz_full: set("/sys/devices/system/cpu/nohz_full").and(&online),
            online,
            allowed,
            cores,
            preferred: CpuSet::default(),
        }
    }

    /// The CPUs to measure on when nobody says: the isolated ones; else every allowed CPU but the
    /// first core's (the system needs one), as far as there are others.
    #[must_use]
    pub fn measuring(&self) -> CpuSet {
        if !self.preferred.is_empty() {
            return self.preferred.clone();
        }
        let isolated = self.isolated.and(&self.online);
        if !isolated.is_empty() {
            return isolated;
        }
        let housekeeping = self.core_of(self.allowed.first().unwrap_or(0));
        let rest = self.allowed.minus(&housekeeping);
        if rest.is_empty() { self.allowed.clone() } else { rest }
    }

    /// The CPUs on which everything but the measurement should run.
    #[must_use]
    pub fn housekeeping(&self, measuring: &CpuSet) -> CpuSet {
        let rest = self.allowed.minus(measuring);
        if rest.is_empty() { self.allowed.clone() } else { rest }
    }

    /// The machine without some of its CPUs, as far as any is left.
    #[must_use]
    pub fn without(&self, taken: &CpuSet) -> Self {
        let left = |cpus: &CpuSet| cpus.minus(taken);
        if left(&self.allowed).is_empty() {
            return self.clone();
        }
        Self {
            online: left(&self.online),
            allowed: left(&self.allowed),
            isolated: left(&self.isolated),
            nohz_full: left(&self.nohz_full),
            cores: self.cores.iter().map(left).filter(|core| !core.is_empty()).collect(),
            preferred: left(&self.preferred),
        }
    }

    /// The hardware threads of the core that `cpu` belongs to.
    #[must_use]
    pub fn core_of(&self, cpu: u32) -> CpuSet {
        self.cores.iter().find(|core| core.contains(cpu)).cloned().unwrap_or_else(|| CpuSet::one(cpu))
    }

    /// The CPU beside the first measured one: another measuring CPU of another core, else another
    /// measuring CPU, else the last one that keeps house.
    #[must_use]
    pub fn neighbour(&self) -> Option<CpuSet> {
        let measuring = self.measuring();
        let first = measuring.first()?;
        let others = measuring.minus(&CpuSet::one(first));
        let other_cores = others.minus(&self.core_of(first));
        let house = self.allowed.minus(&CpuSet::one(first));
        [other_cores.first(), others.first(), house.last()].into_iter().flatten().next().map(CpuSet::one)
    }

    /// Resolves a request on this machine.
    ///
    /// # Errors
    /// When it names a CPU that is not there or may not be used, or leaves none.
    pub fn resolve(&self, request: &CpuRequest) -> Result<CpuSet, CpuRequestError> {
        let set = match request {
            CpuRequest::Auto => self.measuring(),
            CpuRequest::All => self.allowed.clone(),
            CpuRequest::First => self.measuring().take(1),
            CpuRequest::Neighbour => self.neighbour().ok_or(CpuRequestError::NoNeighbour)?,
            CpuRequest::Isolated if self.isolated.is_empty() => return Err(CpuRequestError::NoneIsolated),
            CpuRequest::Isolated => self.isolated.clone(),
            CpuRequest::Not(set) => self.allowed.minus(set),
            CpuRequest::List(set) => set.clone(),
        };
        if set.is_empty() {
            return Err(CpuRequestError::Empty(request.to_string()));
        }
        let missing = set.minus(&self.online);
        if !missing.is_empty() {
            return Err(CpuRequestError::NotOnline { missing, online: self.online.clone() });
        }
        let missing = set.minus(&self.allowed).minus(&self.isolated);
        if !missing.is_empty() {
            return Err(CpuRequestError::NotAllowed { missing, allowed: self.allowed.clone() });
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(online: &str, isolated: &str) -> Topology {
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/cpu/online", online);
        facts.keep("/sys/devices/system/cpu/isolated", isolated);
        facts.keep("sched:affinity", online);
        Topology::of(&facts)
    }

    #[test]
    fn isolated_cpus_are_measured_when_there_are_any() {
        assert_eq!(machine("0-7", "2-7").measuring().to_string(), "2-7");
        assert_eq!(machine("0-3", "").measuring().to_string(), "1-3");
        assert_eq!(machine("0", "").measuring().to_string(), "0");
    }

    #[test]
    fn the_first_core_keeps_house_with_all_its_threads() {
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/cpu/online", "0-3");
        for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            facts.keep(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
        }
        assert_eq!(Topology::of(&facts).measuring().to_string(), "1,3");
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named_with_those_that_do() {
        let error = machine("0,1", "").resolve(&"2-3".parse().unwrap()).unwrap_err().to_string();
        assert_eq!(error, "CPU 2,3 is not online; this machine has 0,1");
        assert_eq!(machine("0,1", "").resolve(&CpuRequest::Isolated), Err(CpuRequestError::NoneIsolated));
        assert!(machine("0,1", "").resolve(&"!0-1".parse().unwrap()).is_err());
    }

    #[test]
    fn what_a_partition_takes_is_left_out_unless_that_is_all() {
        let machine = machine("0-3", "2-3");
        let left = machine.without(&"2-3".parse().unwrap());
        assert_eq!((left.online.to_string().as_str(), left.measuring().to_string().as_str()), ("0,1", "1"));
        assert!(left.isolated.is_empty() && left.cores.len() == 2);
        assert_eq!(machine.without(&"0-3".parse().unwrap()), machine);
    }

    #[test]
    fn the_neighbour_is_another_measuring_cpu_or_else_one_that_keeps_house() {
        let of = |online, isolated| {
            machine(online, isolated).resolve(&CpuRequest::Neighbour).map(|set| set.to_string())
        };
        assert_eq!(of("0-7", "2-7"), Ok("3".into()));
        assert_eq!(of("0,1", ""), Ok("0".into()));
        assert_eq!(of("0", ""), Err(CpuRequestError::NoNeighbour));
    }

    #[test]
    fn facts_that_say_nothing_still_give_a_cpu() {
        assert_eq!(Topology::of(&Facts::default()).measuring().to_string(), "0");
    }
}
