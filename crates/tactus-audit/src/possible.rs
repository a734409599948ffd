//! Whether CPUs can be set apart at all: asked alike by the audit, by tuning and by what is generated.

use tactus_model::CpuSet;
use tactus_model::topology::are;

use super::Subject;
use super::sentence::{cpus_or_none, few};
use super::subject::assumed;

/// Why CPUs cannot be set apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// None is named, and none is isolated.
    #[error("no CPU is isolated; this system has {}", cpus_or_none(.online))]
    Nothing {
        /// The CPUs of this system.
        online: CpuSet,
        /// The CPUs that tactus would choose.
        better: CpuSet,
    },
    /// CPUs that are not there.
    #[error("{} not online; this system has CPUs {online}", are(.missing))]
    NotOnline {
        /// The missing CPUs.
        missing: CpuSet,
        /// The CPUs of this system.
        online: CpuSet,
        /// The CPUs that tactus would choose.
        better: CpuSet,
    },
    /// All CPUs.
    #[error("isolating {isolated} leaves no CPU for everything else")]
    NoHousekeeping {
        /// The requested CPUs.
        isolated: CpuSet,
        /// The CPUs that tactus would choose.
        better: CpuSet,
    },
    /// CPU 0.
    #[error("isolating {isolated} isolates CPU 0: timekeeping and unmovable interrupts run there")]
    CpuZero {
        /// The requested CPUs.
        isolated: CpuSet,
    },
    /// Cores in part.
    #[error("only half of a core would be isolated: {}", few(.halves.iter().map(half)))]
    HalfCores {
        /// Of each such core the hardware threads that are isolated, and the others.
        halves: Vec<(CpuSet, CpuSet)>,
        /// The isolated cores that are whole.
        whole: CpuSet,
    },
}

fn half((inside, outside): &(CpuSet, CpuSet)) -> String {
    format!("CPU {inside} shares its core with CPU {outside}")
}

impl Impossible {
    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> String {
        let instance = |better: &CpuSet| match better.is_empty() {
            true => "this system has too few CPUs for it".to_owned(),
            false => format!("for instance --isolate {better}"),
        };
        match self {
            Self::Nothing { better, .. } | Self::NotOnline { better, .. } => {
                format!("name existing CPUs: {}", instance(better))
            }
            Self::NoHousekeeping { better, .. } => {
                format!("leave at least one core free, best the core of CPU 0: {}", instance(better))
            }
            Self::CpuZero { .. } => "leave CPU 0 and its core out of --isolate".into(),
            Self::HalfCores { whole, .. } if whole.is_empty() => {
                "isolate all hardware threads of a core, or turn SMT off (nosmt)".into()
            }
            Self::HalfCores { whole, .. } => {
                format!("isolate whole cores (of these: --isolate {whole}), or turn SMT off (nosmt)")
            }
        }
    }

    /// Whether nothing can be said of such an isolation. The others are findings.
    #[must_use]
    pub const fn is_nonsense(&self) -> bool {
        matches!(self, Self::Nothing { .. } | Self::NotOnline { .. } | Self::NoHousekeeping { .. })
    }
}

/// The problems of the CPUs that are meant for real-time work, the worst first.
#[must_use]
pub fn impossible(subject: &Subject<'_>) -> Vec<Impossible> {
    let (isolated, online) = (subject.isolated(), &subject.topology.online);
    let better = || {
        let all = assumed(subject.facts, &subject.topology);
        if all.contains(0) { CpuSet::default() } else { all }
    };
    if isolated.is_empty() {
        return vec![Impossible::Nothing { online: online.clone(), better: better() }];
    }
    let mut wrong = Vec::new();
    let missing = isolated.minus(online);
    if !missing.is_empty() {
        wrong.push(Impossible::NotOnline { missing, online: online.clone(), better: better() });
    }
    let nobody_left = subject.housekeeping().is_empty();
    if nobody_left {
        wrong.push(Impossible::NoHousekeeping { isolated: isolated.clone(), better: better() });
    } else if isolated.contains(0) {
        wrong.push(Impossible::CpuZero { isolated: isolated.clone() });
    }
    let cores = || subject.topology.cores.iter().map(|core| core.and(online));
    let halves: Vec<(CpuSet, CpuSet)> = cores()
        .map(|core| (core.and(isolated), core.minus(isolated)))
        .filter(|(inside, outside)| !inside.is_empty() && !outside.is_empty())
        .collect();
    if !halves.is_empty() && !nobody_left {
        let whole = cores().filter(|core| core.minus(isolated).is_empty());
        let whole = whole.fold(CpuSet::default(), |all, core| all.or(&core)).minus(&CpuSet::one(0));
        wrong.push(Impossible::HalfCores { halves, whole });
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::intel;

    fn wrong(isolated: &str) -> Vec<(String, String)> {
        let siblings = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let cores = [(siblings(2), "2-3"), (siblings(3), "2-3")];
        let cores: Vec<(&str, &str)> = cores.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let system = intel(&cores).isolate(isolated);
        let subject = Subject::new(&system.facts, system.role, &system.intent);
        impossible(&subject).iter().map(|wrong| (wrong.to_string(), wrong.hint())).collect()
    }

    #[test]
    fn an_isolation_that_cannot_be_is_named_with_one_that_can() {
        assert!(wrong("2-3").is_empty());
        let one = |isolated| {
            let (what, hint) = wrong(isolated).remove(0);
            format!("{what}; {hint}")
        };
        assert_eq!(
            one("2-7"),
            "CPUs 4-7 are not online; this system has CPUs 0-3; name existing CPUs: for instance --isolate 2,3"
        );
        assert!(one("").starts_with("no CPU is isolated; this system has CPUs 0-3; name existing CPUs"));
        assert!(
            one("0-3")
                .starts_with("isolating 0-3 leaves no CPU for everything else; leave at least one core")
        );
        assert!(one("0-1").starts_with("isolating 0,1 isolates CPU 0: timekeeping"));
        assert_eq!(
            one("1-2"),
            "only half of a core would be isolated: CPU 2 shares its core with CPU 3; isolate whole cores (of these: --isolate \
             1), or turn SMT off (nosmt)"
        );
        assert!(one("3").ends_with("isolate all hardware threads of a core, or turn SMT off (nosmt)"));
        // Which one it is best to name is what tactus would choose, and not what is wrong.
        assert!(one("8").ends_with("--isolate 2,3"), "isolated at boot");
    }
}
