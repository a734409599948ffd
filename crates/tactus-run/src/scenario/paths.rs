//! The network paths of a scenario: there before its environments, and gone after them.

use tactus_environment::Attachment;
use tactus_environment::network::Network;
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::event::Event;
use tactus_model::message::{Activity, Link, LinkEnd, What};

use super::{Failure, ScenarioRun};
use crate::context::Context;
use crate::plan::{Resolved, ResolvedActivity};

/// A path that is there, and the activity that it is for.
pub(super) struct Laid {
    activity: u32,
    near: String,
    far: String,
    network: Network,
}

impl ScenarioRun<'_> {
    /// Makes the paths that its activities take.
    pub(super) fn lay_paths(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for at in &self.planned.activities {
            let (Some(name), Some(peer)) = (&at.path, &at.activity.peer) else { continue };
            let Some(path) = context.resolved.plan.path.get(name) else { continue };
            let made = Network::make(name, path, context.system, context.guardian);
            // If the place does not allow it, the rest of the table is measured without it.
            let network = made.map_err(|error| {
                let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                Failure::Refused(format!("{}{hint}", error.reason))
            })?;
            for note in &network.notes {
                let environment = Some(at.environment.clone());
                context.emit(Event::Noted { environment, note: note.clone() })?;
            }
            let (near, far) = (at.environment.clone(), peer.environment().to_owned());
            self.laid.push(Laid { activity: at.activity.id, near, far, network });
        }
        Ok(())
    }

    /// Whether an environment is at an end of one of its paths.
    pub(super) fn is_to_be_on_a_path(&self, name: &str) -> bool {
        self.planned.activities.iter().filter(|at| at.path.is_some()).any(|at| {
            let peer = at.activity.peer.as_ref();
            peer.is_some_and(|peer| at.environment == name || peer.environment() == name)
        })
    }

    /// The place of an environment on a path.
    pub(super) fn place(&self, name: &str) -> Option<Attachment> {
        self.laid.iter().find_map(|laid| {
            (laid.near == name)
                .then(|| laid.network.near())
                .or_else(|| (laid.far == name).then(|| laid.network.far()))
        })
    }

    /// An activity with its way to its peer.
    pub(super) fn linked(&self, context: &Context<'_>, activity: Activity) -> Activity {
        let Some((laid, port)) = self.laid_for(&activity) else { return activity };
        let link = link(context.resolved, laid, LinkEnd::Near, port);
        Activity { link: Some(link), ..activity }
    }

    /// The activities of an environment for the environments whose peer it is.
    pub(super) fn answers<'s>(
        &'s self,
        context: &'s Context<'_>,
        name: &'s str,
    ) -> impl Iterator<Item = Activity> + 's {
        self.planned.activities.iter().filter_map(move |at| {
            let (laid, port) = self.laid_for(&at.activity).filter(|(laid, _)| laid.far == name)?;
            let link = link(context.resolved, laid, LinkEnd::Far, port);
            let cpus = cpus_of_the_far_end(context.resolved, at, &laid.far);
            Some(Activity { cpus, peer: None, link: Some(link), ..at.activity.clone() })
        })
    }

    /// The path of an activity, and the port at which its peer is awaited.
    fn laid_for(&self, activity: &Activity) -> Option<(&Laid, u16)> {
        let laid = self.laid.iter().find(|laid| laid.activity == activity.id)?;
        let What::Measure { measure: Measure::Network(table), .. } = &activity.what else { return None };
        Some((laid, u16::try_from(table.port()).ok()?))
    }
}

fn link(resolved: &Resolved, laid: &Laid, end: LinkEnd, port: u16) -> Link {
    let Attachment { address, other, .. } = match end {
        LinkEnd::Near => laid.network.near(),
        LinkEnd::Far => laid.network.far(),
    };
    // An environment with a separate kernel cannot see the activity of the machine's CPUs.
    let sees = |name: &str| !resolved.environments[name].kind.numbers_cpus();
    let machine = [(LinkEnd::Near, &laid.near), (LinkEnd::Far, &laid.far)];
    let machine = machine.into_iter().find(|(_, name)| sees(name)).map(|(end, _)| end);
    Link { end, own: address, other, port, machine }
}

/// All its CPUs but those that the near end measures on, where there are others.
fn cpus_of_the_far_end(resolved: &Resolved, near: &ResolvedActivity, far: &str) -> CpuSet {
    let outside = |name: &str, cpu: u32| {
        let laid = resolved.environments[name].laid_out();
        laid.iter().find(|(inside, _)| *inside == cpu).map(|(_, outside)| *outside)
    };
    let taken: CpuSet = near.activity.cpus.iter().filter_map(|cpu| outside(&near.environment, cpu)).collect();
    let all = resolved.environments[far].layout.inside();
    let free: CpuSet =
        all.iter().filter(|cpu| outside(far, *cpu).is_none_or(|cpu| !taken.contains(cpu))).collect();
    if free.is_empty() { all } else { free }
}
