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

/// Why a reading has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is the first of its machine.
    First,
    /// It differs from the one before.
    Changed,
    /// A later run was collected before, or its clock is wrong.
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

/// A reading that has a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The environment.
    pub environment: String,
    /// The reading.
    pub path: String,
    /// Its content, or why it could not be read.
    pub value: Option<String>,
    /// Its state: `text`, `cut`, `unreadable`, `absent`, or `gone` if it is no longer among the readings.
    pub state: &'static str,
    /// Why it has a row.
    pub change: Change,
}

/// The rows of a run.
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
    /// The environment, with the state of the machine if the plan declares states.
    environment: Text = &row.fact.environment;
    /// The reading: a path, or a word with a colon for readings that are not files.
    path: Text = &row.fact.path;
    /// Its content, or why it could not be read; null if there is nothing.
    value: Text = row.fact.value.as_deref();
    /// `text`; `cut` (the beginning of a longer one); `unreadable`; `absent`; `gone` (no longer among the readings).
    state: Text = row.fact.state;
    /// Why it has a row: `first` (of the machine's first run), `changed`, or `late`. A run is late if it was collected
    /// after a later run of its machine, or if it begins after it was collected because of a wrong clock.
    change: Text = row.fact.change.word();
}
