//! Comparing a system with a plan, now or after a reboot.

use tactus_audit::Subject;
use tactus_model::CpuSet;
use tactus_model::change::{Change, Effect, Target};
use tactus_system::System;

use super::apply::{TuneError, dir};
use super::plan::{Choice, Plan};
use super::transaction::{Action, Begin, Journal, Phase};
use super::{persist, tuned};

/// A setting that is not as planned.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Id of the check, or the profile's word.
    pub check: String,
    /// The subject of the setting.
    pub target: String,
    /// Its present value.
    pub now: Option<String>,
    /// Its planned value.
    pub then: String,
    /// The remedy.
    pub needs: &'static str,
}

/// The order that is applied.
///
/// # Errors
/// When nothing is applied, or the journal cannot be read.
pub fn in_force(system: &dyn System) -> Result<Begin, TuneError> {
    let (journal, log) = Journal::open(system, &dir(system))?;
    let begin = log.begin.filter(|_| log.phase != Phase::Nothing);
    begin.ok_or_else(|| journal.damage().cloned().map_or(TuneError::Nothing, TuneError::damaged))
}

impl Begin {
    /// The choice of settings that was made.
    #[must_use]
    pub fn choice(&self) -> Choice {
        Choice {
            only: self.only.clone(),
            without: self.without.clone(),
            with: self.with.clone(),
            plain: self.plain,
            own_irq: self.own_irq.clone(),
            move_irq: self.move_irq.clone(),
        }
    }
}

/// The differences between a system and a plan that was made of its present facts.
#[must_use]
pub fn verify(system: &dyn System, subject: &Subject<'_>, plan: &Plan) -> Vec<Difference> {
    let mut all: Vec<Difference> = plan
        .open()
        .filter(|step| !matches!(step.change.target, Target::DropIn { .. }))
        .map(|step| Difference {
            check: step.change.check.clone(),
            target: step.change.target.to_string(),
            now: step.change.now.clone(),
            then: step.change.then.clone(),
            needs: needs(&step.change),
        })
        .collect();
    all.extend(effective(subject, plan));
    if !tuned::is_active(system) {
        all.extend(missing(system, plan));
    }
    all
}

fn needs(change: &Change) -> &'static str {
    match change.effect {
        // The timer's and those of some chips are held fast (EIO, EPERM): only a boot places them.
        Effect::Runtime if is_interrupt(&change.target) => {
            "tactus tune apply --again; if that is refused, irqaffinity= on the command line and a reboot"
        }
        Effect::Runtime => "tactus tune apply --again",
        Effect::Boot => "--persist and a reboot",
        Effect::Restart => "--persist, and reload the module or restart the service",
    }
}

fn is_interrupt(target: &Target) -> bool {
    matches!(target, Target::File { path, .. } if path.starts_with("/proc/irq/") && path.ends_with("/smp_affinity_list"))
}

/// Differences between the plan's CPUs and those that the kernel took from its command line. The kernel uses the
/// first isolcpus= of two, and leaves out CPUs that it does not have.
fn effective(subject: &Subject<'_>, plan: &Plan) -> Vec<Difference> {
    let sets: [(&str, &str, &CpuSet); 2] = [
        ("isolcpus", "/sys/devices/system/cpu/isolated", &subject.topology.booted),
        ("nohz_full", "/sys/devices/system/cpu/nohz_full", &subject.topology.nohz_full),
    ];
    sets.into_iter()
        .filter_map(|(name, path, now)| {
            let step = plan.entries.iter().find(
                |step| matches!(&step.change.target, Target::Kernel { parameter } if parameter == name),
            )?;
            let good = *now == plan.isolation.isolated;
            (step.holds && !good).then(|| Difference {
                check: step.change.check.clone(),
                target: path.to_owned(),
                now: Some(now.to_string()),
                then: plan.isolation.isolated.to_string(),
                needs: "look for the kernel's messages about its command line: dmesg | grep -i housekeeping",
            })
        })
        .collect()
}

/// Drop-ins of a plan that are not there, or not as they should be.
fn missing(system: &dyn System, plan: &Plan) -> Vec<Difference> {
    persist::unit_dropins(plan)
        .into_iter()
        .filter_map(|step| match step.action {
            Action::Install { path, then, .. } => {
                let now = system.text(&path);
                (now.as_deref() != Some(then.as_str())).then(|| Difference {
                    check: step.check,
                    target: path,
                    now: now.map(|_| "other lines".into()),
                    then: "the plan's lines".into(),
                    needs: "--persist",
                })
            }
            _ => None,
        })
        .collect()
}
