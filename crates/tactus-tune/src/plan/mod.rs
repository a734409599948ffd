//! A plan: everything that a profile would change on one system, and what speaks against it.

mod choice;
mod choose;
mod guards;
mod next_boot;
mod refuse;
#[cfg(test)]
mod tests;

use serde::Serialize;
use tactus_audit::{Subject, settable};
use tactus_model::CpuSet;
use tactus_model::change::Change;
use tactus_model::finding::{Isolation, Role};

use super::pitfall::{self, Warning};
use super::profile::Profile;

pub use choice::Choice;
pub use guards::Withheld;
pub(crate) use next_boot::goes_with_driver;
pub use refuse::PlanRefusal;

/// The plan as `tune plan` prints it: a stable contract.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Name of the profile.
    pub profile: String,
    /// The part that the system plays.
    pub role: Role,
    /// The isolated CPUs, and the others.
    pub isolation: Isolation,
    /// The changes, at run time first, then those that need a restart or a boot.
    pub entries: Vec<PlannedChange>,
    /// Changes of the profile that the plan leaves out, because they would weaken a guard of the system.
    pub withheld: Vec<Withheld>,
    /// Why it must not be carried out. Empty: it may.
    pub refusals: Vec<PlanRefusal>,
    /// Pitfalls that lie on this system's way.
    pub pitfalls: Vec<Warning>,
    /// Where the profile and an audit check want different things; the profile's value is planned.
    pub contradictions: Vec<Contradiction>,
    /// Remarks that are worth knowing but are not pitfalls.
    pub remarks: Vec<String>,
}

/// One change of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedChange {
    /// The change.
    pub change: Change,
    /// The source of the change.
    pub layer: Layer,
    /// Its risk.
    pub risk: String,
    /// The protection that it gives up, by request. Empty: nothing.
    pub gives_up: &'static str,
    /// Numbers of the pitfalls that it runs into here.
    pub pitfalls: Vec<u8>,
    /// Whether it is as it should be already.
    pub holds: bool,
}

/// The source of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The profile, as TuneD has it.
    Profile,
    /// An audit check that the profile's purpose calls for.
    Beyond,
    /// An audit check that was asked for by name.
    Chosen,
}

/// Two who want different things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// The setting in question.
    pub target: String,
    /// The value in the profile, and in the plan.
    pub profile: String,
    /// The check that wants something else.
    pub check: String,
    /// The check's value.
    pub wants: String,
}

impl Plan {
    /// Makes the plan of a profile for a system. Pure: nothing is read but the facts.
    #[must_use]
    pub fn new(subject: &Subject<'_>, profile: &Profile, choice: &Choice) -> Self {
        let choose::Chosen { mut steps, withheld, contradictions, unknown } =
            choose::steps(subject, profile, choice);
        steps.sort_by_key(|step| step.change.effect);
        let changes: Vec<&Change> = steps.iter().map(|step| &step.change).collect();
        debug_assert!(changes.iter().all(|change| settable::is_settable(&change.target)), "{changes:?}");
        let mut refusals = refuse::refusals(subject, profile, &changes);
        refusals.extend(unknown);
        let pitfalls = pitfall::warnings(subject, &changes);
        for step in &mut steps {
            let concerned = pitfalls.iter().filter(|warning| pitfall::concerns(warning.number, &step.change));
            step.pitfalls = concerned.map(|warning| warning.number).collect();
        }
        Self {
            profile: profile.name.to_owned(),
            role: subject.role,
            isolation: subject.isolation.clone(),
            entries: steps,
            withheld,
            refusals,
            pitfalls,
            contradictions,
            remarks: remarks(subject),
        }
    }

    /// The steps that change something.
    pub fn open(&self) -> impl Iterator<Item = &PlannedChange> {
        self.entries.iter().filter(|step| !step.holds)
    }
}

/// Housekeeping on every node: memory is reclaimed, and interrupts are served, best where they are.
fn remarks(subject: &Subject<'_>) -> Vec<String> {
    let nodes: Vec<(String, CpuSet)> = subject
        .facts
        .under("/sys/devices/system/node/node")
        .filter_map(|(name, _)| {
            let (node, file) = name.strip_prefix("/sys/devices/system/node/")?.split_once('/')?;
            let cpus = subject.facts.text(name).filter(|_| file == "cpulist")?.parse::<CpuSet>().ok()?;
            Some((node.to_owned(), cpus))
        })
        .collect();
    if nodes.len() < 2 {
        return Vec::new();
    }
    let without = nodes.iter().filter(|(_, cpus)| {
        !cpus.is_empty() && cpus.and(&subject.topology.online).and(subject.housekeeping()).is_empty()
    });
    without
        .map(|(node, cpus)| {
            format!(
                "{node} (CPUs {cpus}) has no housekeeping CPU, so its kswapd, kcompactd and interrupts run on \
another node; leave one core of each node out of --isolate"
            )
        })
        .collect()
}
