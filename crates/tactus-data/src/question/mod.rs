//! Questions to the data set of a user with many machines, and answers that say how sure they are.
//!
//! [`Set::read`] reads what they need; [`ask`] is pure. See `docs/design/data-set.md` for what each test supposes.

mod change;
mod deadline;
mod drift;
mod explain;
mod fisher;
mod missing;
mod page;
mod set;
mod trend;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use tactus_model::bundle::Format;

use crate::AHEAD_US;
use crate::identity::copies;
use crate::version::VERSION;

pub use change::Changed;
pub use deadline::{Judged, MachineEntry};
pub use drift::{Drift, Drifted};
pub use explain::{Explained, Property};
pub use missing::Missing;
pub use page::{FORMATS, PageFormat, page};
pub use set::{Place, Run, Set};

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// The options of the questions.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The deadline, in ns.
    pub max_ns: Option<u64>,
    /// How many machines are listed as the worst.
    pub worst: usize,
    /// How far back from the newest run machines are looked at, in days. Runs that begin after `now_us` are
    /// left out.
    pub days: u32,
    /// After how many days without a run a machine is missing.
    pub missing_after: u32,
    /// Machines that there should be, by name or key.
    pub expect: Vec<String>,
    /// The time of the question, in microseconds since 1970.
    pub now_us: i64,
}

impl Asked {
    /// At a moment since 1970.
    #[must_use]
    pub fn at(now: Duration) -> Self {
        let now_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        Self { max_ns: None, worst: 10, days: 7, missing_after: 3, expect: Vec::new(), now_us }
    }
}

/// The verdict on the whole fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fleet {
    /// A machine missed the deadline, or failed a requirement of its plan.
    Missed,
    /// It cannot be said of a machine, or of one that is expected, or of any, whether it holds.
    NotDecided,
    /// All machines held it.
    Held,
    /// There is no deadline, and no requirement.
    NoDeadline,
}

/// The answers: the document of `tactus fleet show --json`. All latencies are in ns.
#[derive(Clone, Debug, Serialize)]
pub struct Answers {
    /// Version of this contract, which is the data set's.
    pub format: Format,
    /// The verdict on the whole.
    pub outcome: Fleet,
    /// Runs in the data set.
    pub runs: usize,
    /// Machines in it.
    pub machines: usize,
    /// When the first of them began, RFC 3339.
    pub first: Option<String>,
    /// When the last one did.
    pub last: Option<String>,
    /// How far back from that machines are looked at, in days.
    pub days: u32,
    /// The deadline.
    pub max_ns: Option<u64>,
    /// The machines that ran in that time, the worst first.
    pub judged: Vec<MachineEntry>,
    /// The number of machines listed as the worst.
    pub worst: usize,
    /// Properties that the machines with outliers share.
    pub explained: Explained,
    /// Scenarios that drifted.
    pub drift: Drift,
    /// Missing machines.
    pub missing: Vec<Missing>,
    /// Changes of machines.
    pub changes: Vec<Changed>,
    /// Limits of these answers.
    pub limits: Vec<String>,
}

/// A moment, RFC 3339.
fn moment(us: i64) -> Option<String> {
    jiff::Timestamp::from_microsecond(us).ok().map(|moment| moment.to_string())
}

/// Answers.
#[must_use]
pub fn ask(set: &Set, asked: &Asked) -> Answers {
    let (all, (set, future)) = (set, set.until(asked.now_us.saturating_add(AHEAD_US)));
    let set = &set;
    let last = set.runs.iter().map(|run| run.started_us).max();
    let from_us = last.map_or(0, |last| last.saturating_sub(i64::from(asked.days).saturating_mul(DAY_US)));
    let judged = deadline::judged(set, asked.max_ns, from_us);
    let explained = explain::explained(set, &judged, asked.max_ns, from_us);
    Answers {
        format: VERSION,
        outcome: outcome(set, asked, &judged, from_us),
        runs: all.runs.len(),
        machines: all.machines().len(),
        first: set.runs.iter().map(|run| run.started_us).min().and_then(moment),
        last: last.and_then(moment),
        days: asked.days,
        max_ns: asked.max_ns,
        worst: asked.worst,
        explained,
        drift: drift::drift(set),
        missing: missing::missing(set, asked),
        changes: change::changes(set, from_us),
        limits: limits(set, &judged, &future),
        judged,
    }
}

fn outcome(set: &Set, asked: &Asked, judged: &[MachineEntry], from_us: i64) -> Fleet {
    let any = |outcome: Judged| judged.iter().any(|machine| machine.outcome == outcome);
    // An earlier name of a machine is not one of its names in that time: another machine may have it now,
    // with the same numbers.
    let known: BTreeSet<&str> = set
        .runs
        .iter()
        .filter(|run| run.started_us >= from_us)
        .flat_map(|run| [run.machine.as_str(), run.name.as_str()])
        .collect();
    // One that is expected, and has no run of late: missing, or not in the time that is looked at.
    let lacking = !missing::missing(set, asked).is_empty() && !asked.expect.is_empty();
    let lacking = lacking || !asked.expect.iter().all(|name| known.contains(name.as_str()));
    if any(Judged::Missed) {
        Fleet::Missed
    } else if judged.is_empty() || lacking || any(Judged::Unproven) || any(Judged::NotJudged) {
        Fleet::NotDecided
    } else if any(Judged::Held) {
        Fleet::Held
    } else {
        Fleet::NoDeadline
    }
}

fn limits(set: &Set, judged: &[MachineEntry], future: &[&Run]) -> Vec<String> {
    let mut said = vec![
        "A machine that held the deadline did so while it was measured. This promises nothing for other \
            times or loads."
            .to_owned(),
        "Properties that machines with outliers share may depend on others that were not recorded. They are \
         associations; a trial shows which of them is a cause (`tactus prove`)."
            .to_owned(),
    ];
    let by_name = |run: &&Run| run.identity.as_deref() == Some("name");
    let nameless = set.runs.iter().filter(by_name).map(|run| &run.machine).collect::<BTreeSet<_>>().len();
    if nameless > 0 {
        said.push(format!(
            "{nameless} machines are known only by their names: two with one name count as one."
        ));
    }
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in &set.runs {
        names.entry(&run.machine).or_default().insert(&run.name);
    }
    said.extend(copies(&names).into_iter().map(|words| format!("One key stands for {words}.")));
    if !future.is_empty() {
        let named: BTreeSet<&str> = future.iter().map(|run| run.name.as_str()).collect();
        let first: Vec<&str> = named.iter().take(5).copied().collect();
        said.push(format!(
            "{} runs begin in the future, and are left out: the clock is wrong on {}{}.",
            future.len(),
            first.join(", "),
            if named.len() > first.len() { " and others" } else { "" }
        ));
    }
    let emulated = judged.iter().filter(|machine| machine.outcome == Judged::NotJudged).count();
    if emulated > 0 {
        said.push(format!(
            "{emulated} machines have only emulated or failed measurements: they are not judged."
        ));
    }
    said
}
