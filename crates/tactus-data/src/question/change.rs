//! Changes of machines.

use serde::Serialize;

use super::moment;
use super::set::{PROPERTIES, Set};

/// A change of a machine, between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Name of the machine.
    pub name: String,
    /// Its key.
    pub machine: String,
    /// When the run began that had it first.
    pub started: Option<String>,
    /// The property that changed.
    pub what: &'static str,
    /// Its value before.
    pub before: Option<String>,
    /// Its value now.
    pub now: Option<String>,
}

/// The changes since a moment, the last first. A plan is no change of a machine.
pub fn changes(set: &Set, from_us: i64) -> Vec<Changed> {
    let called = set.called();
    let mut all: Vec<(i64, Changed)> = Vec::new();
    for (machine, runs) in set.machines() {
        for pair in runs.windows(2) {
            let (before, now) = (&set.runs[pair[0]], &set.runs[pair[1]]);
            if now.started_us < from_us {
                continue;
            }
            for (at, (column, what)) in PROPERTIES.iter().enumerate() {
                let (old, new) = (before.properties.get(at), now.properties.get(at));
                if old != new && *column != "plan" {
                    all.push((
                        now.started_us,
                        Changed {
                            name: called.get(machine).cloned().unwrap_or_default(),
                            machine: machine.to_owned(),
                            started: moment(now.started_us),
                            what,
                            before: old.cloned().flatten(),
                            now: new.cloned().flatten(),
                        },
                    ));
                }
            }
        }
    }
    all.sort_by(|(one, _), (other, _)| other.cmp(one));
    all.into_iter().map(|(_, changed)| changed).collect()
}
