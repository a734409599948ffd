//! Taking a plan back.

use tactus_system::{System, boot_id};

use super::apply::{TuneError, dir, locked};
use super::transaction::{Damage, Entry, Journal, Kept, Phase, Recovered, Undone, recover, undo_all};

/// How a plan is to be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Back {
    /// Overwrite what another tool has set since.
    pub force: bool,
    /// Let what another tool has set since be, and forget it.
    pub leave: bool,
    /// Only say what would be taken back.
    pub dry_run: bool,
}

/// The result of a revert.
#[derive(Debug, Default)]
pub struct Reverted {
    /// The unreadable part of the journal: it may have named more steps.
    pub damage: Option<Damage>,
    /// Unfinished steps of an earlier call.
    pub recovered: Option<Recovered>,
    /// Steps that were taken back, newest first; with `dry_run`: those that would be.
    pub undone: Vec<(Entry, Undone)>,
    /// Steps that were not taken back: another program has changed the value, or the system refused.
    pub left: Vec<(Entry, Undone)>,
}

/// Reverts the applied settings: run-time values of this boot, and every file of ours.
///
/// # Errors
/// When nothing is applied, another call is at work, or the journal cannot be read.
pub fn revert(system: &dyn System, back: Back) -> Result<Reverted, TuneError> {
    let (dir, boot) = (dir(system), boot_id(system));
    if back.dry_run {
        let (journal, log) = Journal::open(system, &dir)?;
        let damage = journal.damage().cloned();
        if log.entries.is_empty() && (log.phase == Phase::Nothing || damage.is_some()) {
            return Err(nothing(damage));
        }
        let kept = Kept::of(&log.entries);
        let undone = log.entries.into_iter().rev().map(|entry| {
            let over = entry.boot != boot && entry.action.ends_with_the_boot() && !kept.has(&entry);
            (entry, if over { Undone::Gone } else { Undone::Restored })
        });
        return Ok(Reverted { damage, undone: undone.collect(), ..Reverted::default() });
    }
    let _lock = locked(system)?;
    let recovered = recover(system, &dir, &boot)?;
    let (mut journal, log) = Journal::open(system, &dir)?;
    let damage = journal.damage().cloned();
    if log.entries.is_empty() && (log.phase == Phase::Nothing || damage.is_some()) {
        if recovered.is_none() {
            return Err(nothing(damage));
        }
        // The unfinished steps have just been taken back, and no readable line names another one.
        journal.close()?;
        return Ok(Reverted { recovered, ..Reverted::default() });
    }
    journal.reverting()?;
    let (mut undone, mut left) = undo_all(system, &mut journal, &log.entries, &boot, back.force);
    if back.leave {
        let theirs: Vec<u64> = left
            .iter()
            .filter(|(_, undone)| matches!(undone, Undone::Foreign(_)))
            .map(|(e, _)| e.id)
            .collect();
        journal.undone(&theirs)?;
        let waiting: Vec<Entry> = left
            .iter()
            .rev()
            .filter(|(_, undone)| !matches!(undone, Undone::Foreign(_)))
            .map(|(entry, _)| entry.clone())
            .collect();
        let (more, still) = undo_all(system, &mut journal, &waiting, &boot, back.force);
        undone.extend(more);
        left = still;
    }
    if left.is_empty() {
        journal.close()?;
    } else {
        // Another call can still take back the steps that are left.
        journal.commit()?;
    }
    Ok(Reverted { damage, recovered, undone, left })
}

/// Why there is nothing to revert.
fn nothing(damage: Option<Damage>) -> TuneError {
    damage.map_or(TuneError::Nothing, TuneError::damaged)
}
