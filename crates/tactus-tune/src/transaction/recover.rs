//! Recovery after a kill or a power cut: an unfinished transaction is taken back, and an unfinished revert is
//! completed.

use std::io;
use std::path::Path;

use tactus_system::System;

use super::journal::FILE;
use super::undo::{Undone, undo_all};
use super::{Damage, Entry, Journal, Phase};

/// The result of a recovery.
#[derive(Debug)]
pub struct Recovered {
    /// The phase that the earlier call had reached.
    pub phase: Phase,
    /// Steps that were taken back now.
    pub undone: Vec<(Entry, Undone)>,
    /// Steps that could not be, or whose value another program has changed.
    pub left: Vec<(Entry, Undone)>,
    /// The unreadable part of its journal.
    pub damage: Option<Damage>,
}

/// Finishes what an earlier call did not. `None`: there was nothing to finish.
///
/// # Errors
/// When the journal cannot be read or written.
pub fn recover(system: &dyn System, dir: &Path, boot: &str) -> io::Result<Option<Recovered>> {
    let (mut journal, log) = Journal::open(system, dir)?;
    let entries: Vec<Entry> = match log.phase {
        Phase::Applied => return Ok(None),
        Phase::Nothing => {
            // At most the beginning of a first line, which nothing was done after; unless it is damaged.
            if system.exists(&dir.join(FILE)) && journal.damage().is_none() {
                journal.close()?;
            }
            return Ok(None);
        }
        Phase::Applying => log.entries.iter().filter(|entry| entry.unfinished).cloned().collect(),
        Phase::Reverting => log.entries.clone(),
    };
    let damage = journal.damage().cloned();
    let (undone, left) = undo_all(system, &mut journal, &entries, boot, false);
    if left.is_empty() && (log.phase == Phase::Reverting || !log.earlier) {
        journal.close()?;
    } else if log.phase == Phase::Applying {
        // Earlier settings stay applied; steps that could not be taken back can be taken back with them.
        journal.commit()?;
    }
    Ok(Some(Recovered { phase: log.phase, undone, left, damage }))
}
