//! One row per reading that changed.

use tactus_format::columns;
use tactus_format::export::table::Cell;

use super::{Table, owned};

/// The table.
pub const TABLE: Table = Table {
    name: "fact",
    about: "A row for each reading of an environment that differs from the machine's previous run, and for \
        each reading of its first run. Readings that are never twice the same are left out: counters, times, \
        running tasks. A run that was collected after a later one of its machine, or that begins after it \
        was collected, has all of its readings (`late`). Later runs are not compared with it.",
    columns: || COLUMNS,
    // The collector makes them, by comparison with those of the run before.
    rows: Some(|_, _| Ok(())),
};

/// Why a reading is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is the first of its machine.
    First,
    /// It is another than before.
    Changed,
    /// A later run was there before, or its clock is wrong.
    Late,
}

impl Change {
    const fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Changed => "changed",
            Self::Late => "late",
        }
    }
}

/// A reading that is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The environment.
    pub environment: String,
    /// The reading.
    pub path: String,
    /// What it says, or why it says nothing.
    pub value: Option<String>,
    /// Its state: `text`, `cut`, `unreadable`, `absent`, or `gone` if it is no longer among the readings.
    pub state: &'static str,
    /// Why it is told.
    pub change: Change,
}

/// The rows of what is told of a run.
#[must_use]
pub fn fact_rows(run: &str, facts: &[Fact]) -> Vec<Vec<Cell<'static>>> {
    facts.iter().map(|fact| cells(&Own { run, fact }).iter().map(owned).collect()).collect()
}

struct Own<'a> {
    run: &'a str,
    fact: &'a Fact,
}

columns! { row: Own<'_>;
    /// The run.
    run: Text = row.run;
    /// The environment, with the state of the machine where the plan declares states.
    environment: Text = &row.fact.environment;
    /// What was read: a path, or a word with a colon for what is no file.
    path: Text = &row.fact.path;
    /// What it said, or why it could not be read; null where there is nothing.
    value: Text = row.fact.value.as_deref();
    /// `text`; `cut` (the beginning of a longer one); `unreadable`; `absent`; `gone` (no longer among the readings).
    state: Text = row.fact.state;
    /// Why it is told: `first` (of the machine's first run), `changed`, or `late` (collected after a later run of its machine, or before it began, as a wrong clock has it).
    change: Text = row.fact.change.word();
}
