//! The CPUs of a system, from facts.

use crate::cpus::{CpuRequest, CpuSet};
use crate::facts::Facts;
use crate::isolation::{self, Group, Isolated};

/// The CPUs of a system and their uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// CPUs that are on.
    pub online: CpuSet,
    /// CPUs that this process may use.
    pub allowed: CpuSet,
    /// CPUs that the scheduler's balancing leaves out: since the boot, or by a cpuset partition.
    pub isolated: CpuSet,
    /// The CPUs of these that were isolated at boot (`isolcpus`).
    pub booted: CpuSet,
    /// Cpuset partitions that isolate CPUs.
    pub partitions: Vec<Group>,
    /// The cpuset of this process, if known.
    pub cpuset: Option<Group>,
    /// CPUs without a periodic tick (`nohz_full`).
    pub nohz_full: CpuSet,
    /// For each CPU the set of hardware threads of its core.
    pub cores: Vec<CpuSet>,
    /// CPUs to measure on, if they have already been chosen; else empty.
    pub preferred: CpuSet,
}

/// Why a request for CPUs cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuRequestError {
    /// A CPU that is not there, or not on.
    #[error("{} not online; this machine has CPUs {online}", are(.missing))]
    NotOnline {
        /// The missing CPUs.
        missing: CpuSet,
        /// The online CPUs.
        online: CpuSet,
    },
    /// The CPU is online, but this process may not use it.
    #[error("{} online, but {} may use {allowed} only", are(.missing), who(.cgroup.as_deref()))]
    NotAllowed {
        /// The missing CPUs.
        missing: CpuSet,
        /// The allowed CPUs.
        allowed: CpuSet,
        /// The cgroup that lacks them; `None` if the process's affinity does.
        cgroup: Option<String>,
        /// The directory of the cpuset partition that has them.
        partition: Option<String>,
    },
    /// Nothing is left.
    #[error("`{0}` leaves no CPU")]
    Empty(String),
    /// `neighbour` on a machine with one CPU.
    #[error("there is no CPU beside the measured one")]
    NoNeighbour,
    /// `isolated` on a machine that isolates none.
    #[error("no CPU of this machine is isolated, neither at boot (isolcpus=) nor by a cpuset")]
    NoneIsolated,
}

/// `CPU 2 is`, `CPUs 2,3 are`.
#[must_use]
pub fn are(cpus: &CpuSet) -> String {
    if cpus.len() == 1 { format!("CPU {cpus} is") } else { format!("CPUs {cpus} are") }
}

fn who(cgroup: Option<&str>) -> String {
    cgroup.map_or("this process".into(), |path| format!("this cgroup ({path})"))
}

impl CpuRequestError {
    /// A hint on how to fix it.
    #[must_use]
    pub fn hint(&self) -> String {
        let Self::NotAllowed { missing, allowed, cgroup, partition } = self else {
            return "use CPUs of this machine, or `auto`".into();
        };
        match (partition, cgroup) {
            (Some(directory), _) => enter(directory),
            (None, Some(path)) => format!(
                "name CPUs of {allowed}, or add {missing} to cpuset.cpus of the cgroup {path} and of those above it"
            ),
            (None, None) => format!(
                "name CPUs of {allowed}, or start tactus on more: `taskset -c {} tactus ...`",
                allowed.or(missing)
            ),
        }
    }
}

/// How to measure on the CPUs of a cpuset partition: only processes of its cgroup may use them.
fn enter(directory: &str) -> String {
    // Names of cgroups are anything that a file may be called.
    if directory.contains(|c: char| c.is_control() || "'\"$`".contains(c)) {
        return format!("only processes of the cgroup {directory:?} may use them: start tactus there");
    }
    format!(
        "only processes of the cgroup {directory} may use them. Start tactus there: \
         sudo sh -c 'echo $$ > \"{directory}/cgroup.procs\" && exec tactus ...'"
    )
}

impl Topology {
    /// Reads the topology out of facts. Unreadable parts are empty, except that CPU 0 always exists.
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
        let isolated = Isolated::of(facts, &online);
        Self {
            isolated: isolated.all(),
            booted: isolated.at_boot,
            partitions: isolated.partitions,
            cpuset: isolation::own_cpuset(facts),
            nohz_full: set("/sys/devices/system/cpu/nohz_full").and(&online),
            online,
            allowed,
            cores,
            preferred: CpuSet::default(),
        }
    }

    /// CPUs that this process can be put on. CPUs isolated at boot are in no task's default affinity, but may still be
    /// chosen. Those of a partition may not be chosen from outside.
    #[must_use]
    pub fn usable(&self) -> CpuSet {
        let held = self.cpuset.as_ref().map_or_else(|| self.booted.clone(), |own| self.booted.and(&own.cpus));
        self.allowed.or(&held.and(&self.online))
    }

    /// Isolated CPUs that this process cannot be put on.
    #[must_use]
    pub fn out_of_reach(&self) -> CpuSet {
        self.isolated.minus(&self.usable())
    }

    /// The default CPUs to measure on: the isolated ones that may be used. Without those, every allowed CPU but the
    /// first core's (the system needs one), as far as there are others.
    #[must_use]
    pub fn measuring(&self) -> CpuSet {
        if !self.preferred.is_empty() {
            return self.preferred.clone();
        }
        let isolated = self.isolated.and(&self.usable());
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
            booted: left(&self.booted),
            partitions: self.partitions.clone(),
            cpuset: self.cpuset.clone(),
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

    /// The CPU beside the first measured one: another measuring CPU of another core, else another measuring CPU, else
    /// the last housekeeping CPU.
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
        let missing = set.minus(&self.usable());
        if !missing.is_empty() {
            return Err(self.not_allowed(missing));
        }
        Ok(set)
    }

    /// Why CPUs that are on may not be used.
    #[must_use]
    pub fn not_allowed(&self, missing: CpuSet) -> CpuRequestError {
        let holds = |group: &&Group| missing.minus(&group.cpus).is_empty();
        let own = self.cpuset.as_ref().filter(|own| !missing.and(&own.cpus).eq(&missing));
        CpuRequestError::NotAllowed {
            allowed: self.usable(),
            cgroup: own.map(|own| own.path.clone()),
            partition: self.partitions.iter().find(holds).map(|group| group.path.clone()),
            missing,
        }
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
        assert_eq!(error, "CPUs 2,3 are not online; this machine has CPUs 0,1");
        assert_eq!(machine("0,1", "").resolve(&CpuRequest::Isolated), Err(CpuRequestError::NoneIsolated));
        assert!(machine("0,1", "").resolve(&"!0-1".parse().unwrap()).is_err());
    }

    /// Four CPUs, two of them in an isolated cpuset partition, seen from a cgroup that has these.
    fn partitioned(cgroup: &str, cpus: &str) -> Topology {
        let mut facts = Facts::default();
        facts.keep("/sys/devices/system/cpu/online", "0-3");
        facts.keep("/sys/devices/system/cpu/isolated", "");
        facts.keep("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated");
        facts.keep("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3");
        facts.keep("/proc/self/cgroup", format!("0::{cgroup}"));
        facts.keep(format!("/sys/fs/cgroup{}/cpuset.cpus.effective", cgroup.trim_end_matches('/')), cpus);
        facts.keep("sched:affinity", cpus);
        Topology::of(&facts)
    }

    #[test]
    fn cpus_of_a_partition_are_isolated_and_used_from_inside_it() {
        let inside = partitioned("/rt", "2-3");
        assert_eq!((inside.isolated.to_string(), inside.booted.to_string()), ("2,3".into(), String::new()));
        assert_eq!(inside.resolve(&CpuRequest::Isolated), Ok("2-3".parse().unwrap()));
        assert_eq!(inside.measuring().to_string(), "2,3");
        assert!(inside.out_of_reach().is_empty());
    }

    #[test]
    fn from_outside_a_partition_it_is_said_how_to_get_in() {
        let outside = partitioned("/", "0-1");
        assert_eq!(outside.isolated.to_string(), "2,3");
        assert_eq!(
            (outside.measuring().to_string(), outside.out_of_reach().to_string()),
            ("1".into(), "2,3".into())
        );
        for request in ["2-3", "isolated"] {
            let error = outside.resolve(&request.parse().unwrap()).unwrap_err();
            assert_eq!(error.to_string(), "CPUs 2,3 are online, but this cgroup (/) may use 0,1 only");
            assert_eq!(
                error.hint(),
                "only processes of the cgroup /sys/fs/cgroup/rt may use them. Start tactus there: \
                 sudo sh -c 'echo $$ > \"/sys/fs/cgroup/rt/cgroup.procs\" && exec tactus ...'"
            );
        }
        assert!(!enter("/sys/fs/cgroup/a'; reboot; '").contains("sh -c"), "a name of others is no command");
        assert!(enter("/sys/fs/cgroup/machine-a\\x2db.scope").contains("\\x2db.scope/cgroup.procs\""));
    }

    #[test]
    fn a_cpu_that_is_on_and_may_not_be_used_is_told_from_one_that_is_off() {
        let mut machine = partitioned("/user.slice", "0-1");
        machine.partitions.clear();
        machine.isolated = CpuSet::default();
        let error = machine.resolve(&"2".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "CPU 2 is online, but this cgroup (/user.slice) may use 0,1 only");
        assert_eq!(
            error.hint(),
            "name CPUs of 0,1, or add 2 to cpuset.cpus of the cgroup /user.slice and of those above it"
        );
        machine.cpuset = None;
        let error = machine.resolve(&"2".parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "CPU 2 is online, but this process may use 0,1 only");
        assert_eq!(error.hint(), "name CPUs of 0,1, or start tactus on more: `taskset -c 0-2 tactus ...`");
        let off = machine.resolve(&"4".parse().unwrap()).unwrap_err().to_string();
        assert_eq!(off, "CPU 4 is not online; this machine has CPUs 0-3");
    }

    #[test]
    fn cpus_isolated_at_boot_are_used_as_far_as_the_cgroup_has_them() {
        let mut booted = machine("0-3", "2-3");
        booted.allowed = "0-1".parse().unwrap();
        assert_eq!(booted.measuring().to_string(), "2,3");
        booted.cpuset = Some(Group { path: "/a".into(), cpus: "0-2".parse().unwrap() });
        assert_eq!(
            (booted.measuring().to_string(), booted.out_of_reach().to_string()),
            ("2".into(), "3".into())
        );
        assert_eq!(
            booted.resolve(&"3".parse().unwrap()).unwrap_err().to_string(),
            "CPU 3 is online, but this cgroup (/a) may use 0-2 only"
        );
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
