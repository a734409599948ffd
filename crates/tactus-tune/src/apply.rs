//! Carrying a plan out.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use tactus_model::change::{Change, Effect, Target};
use tactus_system::{System, boot_id, lasting_dir};

use super::plan::{Plan, PlanRefusal};
use super::transaction::{
    Action, Begin, Broken, Damage, Entry, Journal, Kept, Log, Outcome, Phase, Recovered, Step, commit,
    recover, task,
};
use super::{persist, tuned};

/// How a plan is to be carried out.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// The order, for `verify` and `apply --again`.
    pub begin: Begin,
    /// Overwrite what another tool has set since.
    pub force: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// The result of applying a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// Unfinished steps of an earlier call.
    pub recovered: Option<Recovered>,
    /// Each step and what became of it.
    pub steps: Vec<(Step, Outcome)>,
    /// Settings that another tool has changed since, with their present value: left alone.
    pub foreign: Vec<(Step, String)>,
    /// Changes that wait for --persist and a boot, or for a restart.
    pub waiting: Vec<Change>,
    /// Whether it went through TuneD.
    pub tuned: bool,
}

/// Why a plan was not carried out.
#[derive(Debug)]
pub enum TuneError {
    /// The plan must not be carried out.
    Refused(Vec<PlanRefusal>),
    /// Another call is at work.
    Busy,
    /// This user may not.
    NotRoot,
    /// Another profile is applied.
    InForce(Box<Begin>),
    /// Nothing is applied.
    Nothing,
    /// A step failed; everything was taken back.
    Broken(Box<Broken>),
    /// The journal, or its directory.
    Journal(io::Error),
    /// The journal can be read in part, and what is needed is in the other part.
    Damaged(Box<Damage>),
}

impl TuneError {
    pub(super) fn damaged(damage: Damage) -> Self {
        Self::Damaged(Box::new(damage))
    }
}

impl From<io::Error> for TuneError {
    fn from(error: io::Error) -> Self {
        Self::Journal(error)
    }
}

/// Where the journal lies.
#[must_use]
pub fn dir(system: &dyn System) -> PathBuf {
    lasting_dir(system).join("tune")
}

/// Takes the lock. Every caller that changes anything must hold it.
pub(super) fn locked(system: &dyn System) -> Result<Box<dyn Send>, TuneError> {
    if !system.is_root() {
        return Err(TuneError::NotRoot);
    }
    let dir = dir(system);
    let made = system.make_own_dir(&dir);
    made.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", dir.display())))?;
    system.lock(&dir.join("lock"))?.ok_or(TuneError::Busy)
}

/// Takes back what an earlier call left unfinished. To be called before the system is looked at for a
/// plan: a thread that a killed call has moved does not look as if it had to be.
///
/// # Errors
/// When this user may not, another call is at work, or the journal cannot be read or written.
pub fn settle(system: &dyn System) -> Result<Option<Recovered>, TuneError> {
    let _lock = locked(system)?;
    Ok(recover(system, &dir(system), &boot_id(system))?)
}

/// Applies a plan: the changes at run time, and with `persist` those for the next boot.
///
/// # Errors
/// When it must not be done or could not: then the system is as it was.
pub fn apply(system: &dyn System, plan: &Plan, order: &ApplyOptions) -> Result<Applied, TuneError> {
    if !plan.refusals.is_empty() {
        return Err(TuneError::Refused(plan.refusals.clone()));
    }
    if order.dry_run {
        let (_, log) = whole(system)?;
        return Ok(dry(prepare(system, plan, order, &log)?));
    }
    let _lock = locked(system)?;
    let (dir, boot) = (dir(system), boot_id(system));
    let recovered = recover(system, &dir, &boot)?;
    let (mut journal, log) = whole(system)?;
    if log.phase != Phase::Nothing
        && let Some(begin) = log.begin.clone().filter(|begin| differs(begin, &order.begin))
    {
        return Err(TuneError::InForce(Box::new(begin)));
    }
    let mut prepared = prepare(system, plan, order, &log)?;
    prepared.recovered = recovered;
    if prepared.steps.is_empty() && log.phase == Phase::Applied {
        return Ok(prepared);
    }
    // The settings of an earlier boot ended with it.
    let kept = Kept::of(&log.entries);
    let gone: Vec<u64> = log
        .entries
        .iter()
        .filter(|entry| entry.boot != boot && entry.action.ends_with_the_boot() && !kept.has(entry))
        .map(|entry| entry.id)
        .collect();
    if !gone.is_empty() {
        journal.undone(&gone)?;
    }
    journal.begin(order.begin.clone())?;
    let steps: Vec<Step> = prepared.steps.iter().map(|(step, _)| step.clone()).collect();
    match commit(system, &mut journal, &boot, &steps) {
        Ok(outcomes) => {
            journal.commit()?;
            prepared.steps = steps.into_iter().zip(outcomes).collect();
            Ok(prepared)
        }
        Err(broken) => {
            let nothing = broken.left.is_empty() && log.phase == Phase::Nothing;
            // The next call would finish it, if this cannot.
            if let Err(error) = if nothing { journal.close() } else { journal.commit() } {
                tracing::warn!(%error, "the journal was not completed; the next call completes it");
            }
            Err(TuneError::Broken(broken))
        }
    }
}

/// The journal, if all of it is readable: nothing is done on top of unknown steps.
fn whole(system: &dyn System) -> Result<(Journal<'_>, Log), TuneError> {
    let (journal, log) = Journal::open(system, &dir(system))?;
    match journal.damage().cloned() {
        None => Ok((journal, log)),
        Some(damage) => Err(TuneError::damaged(damage)),
    }
}

/// Whether two orders ask for different things. `persist` may differ: a profile can be made persistent later.
fn differs(one: &Begin, other: &Begin) -> bool {
    let what = |begin: &Begin| (begin.profile.clone(), begin.isolated.clone());
    what(one) != what(other)
}

fn dry(mut prepared: Applied) -> Applied {
    prepared.steps.iter_mut().for_each(|(_, outcome)| *outcome = Outcome::Done);
    prepared
}

/// The steps of a plan on the system as it is now.
fn prepare(system: &dyn System, plan: &Plan, order: &ApplyOptions, log: &Log) -> Result<Applied, TuneError> {
    let boot = boot_id(system);
    let mut applied = Applied::default();
    if tuned::is_active(system) {
        applied.tuned = true;
        let steps = tuned::steps(system, plan, order.begin.persist).map_err(TuneError::Refused)?;
        applied.steps = steps.into_iter().map(|step| (step, Outcome::Done)).collect();
    }
    // The applied step of each subject: the first one, because it has the original value.
    let (kept, mut in_force) = (Kept::of(&log.entries), BTreeMap::<String, &Entry>::new());
    for entry in &log.entries {
        if entry.reads.is_some() && (entry.boot == boot || kept.has(entry)) {
            in_force.entry(entry.action.subject()).or_insert(entry);
        }
    }
    for step in &plan.entries {
        let change = &step.change;
        if applied.tuned && !matches!(change.target, Target::Scheduling(_)) {
            continue;
        }
        if change.effect != Effect::Runtime {
            if !step.holds && !order.begin.persist {
                applied.waiting.push(change.clone());
            }
            continue;
        }
        let Some(mut action) = action(system, change) else { continue };
        let now = action.former().unwrap_or_default().to_owned();
        if action.then().is_some_and(|then| action.same(&now, then)) {
            continue;
        }
        if let Some(earlier) = in_force.get(&action.subject()) {
            let reads = earlier.reads.as_deref().unwrap_or_default();
            let untouched = action.same(&now, reads) || earlier.action.former() == Some(now.as_str());
            if !untouched && !order.force {
                let step = Step { check: change.check.clone(), action };
                applied.foreign.push((step, now.trim().to_owned()));
                continue;
            }
            // A revert restores the value from before tactus.
            keep_former(&mut action, &earlier.action);
        }
        applied.steps.push((Step { check: change.check.clone(), action }, Outcome::Done));
    }
    if order.begin.persist && !applied.tuned {
        let steps = persist::steps(system, plan).map_err(TuneError::Refused)?;
        applied.steps.extend(steps.into_iter().map(|step| (step, Outcome::Done)));
    }
    Ok(applied)
}

fn keep_former(action: &mut Action, earlier: &Action) {
    match (action, earlier) {
        (Action::Write { former, linked, .. }, Action::Write { former: first, linked: first_linked, .. }) => {
            former.clone_from(first);
            linked.clone_from(first_linked);
        }
        (Action::Schedule { former, .. }, Action::Schedule { former: first, .. })
        | (Action::Place { former, .. }, Action::Place { former: first, .. })
        | (Action::Service { former, .. }, Action::Service { former: first, .. }) => former.clone_from(first),
        _ => {}
    }
}

/// The step that a change at run time is, with what is there now; `None` when that has gone.
fn action(system: &dyn System, change: &Change) -> Option<Action> {
    let then = change.then.clone();
    let former = String::new();
    let action = match &change.target {
        Target::File { path, form } => {
            let linked = linked(path).and_then(|path| Some((path.to_owned(), system.text(path)?)));
            Action::Write { path: path.clone(), form: *form, former, then, linked }
        }
        Target::Scheduling(thread) => Action::Schedule { thread: thread.clone(), former, then },
        Target::Affinity(thread) => {
            // A thread that may not be moved, or whose scheduling cannot be restored, is left alone.
            task(system, thread)?;
            Action::Place { thread: thread.clone(), former, then }
        }
        Target::Service { unit } => Action::Service { unit: unit.clone(), former, then },
        Target::Kernel { .. } | Target::Module { .. } | Target::DropIn { .. } => return None,
    };
    let now = action.current(system)?;
    let restorable = !now.starts_with("DEADLINE") && !now.starts_with("UNKNOWN");
    let with_former = match action {
        Action::Write { path, form, then, linked, .. } => {
            Action::Write { path, form, former: now, then, linked }
        }
        Action::Schedule { thread, then, .. } if restorable => Action::Schedule { thread, former: now, then },
        Action::Place { thread, then, .. } => Action::Place { thread, former: now, then },
        Action::Service { unit, then, .. } => Action::Service { unit, former: now, then },
        _ => return None,
    };
    Some(with_former)
}

/// The file that the kernel sets to 0 when this one is written (mm/page-writeback.c).
fn linked(path: &str) -> Option<&'static str> {
    Some(match path {
        "/proc/sys/vm/dirty_ratio" => "/proc/sys/vm/dirty_bytes",
        "/proc/sys/vm/dirty_bytes" => "/proc/sys/vm/dirty_ratio",
        "/proc/sys/vm/dirty_background_ratio" => "/proc/sys/vm/dirty_background_bytes",
        "/proc/sys/vm/dirty_background_bytes" => "/proc/sys/vm/dirty_background_ratio",
        _ => return None,
    })
}
