//! Machines that miss the deadline, and the worst ones.

use std::collections::BTreeMap;

use serde::Serialize;

use super::moment;
use super::set::{Place, Set};

/// The verdict on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// A latency was above the deadline, or a requirement of the plan failed.
    Missed,
    /// None was, in runs that are complete, with a passed self-test and evidence that suffices for a verdict.
    Held,
    /// None was, but something was not measured, or not as a verdict needs it.
    Unproven,
    /// There is no deadline, and no requirement.
    NoDeadline,
    /// No measurement says anything about hardware.
    NotJudged,
}

impl Judged {
    /// In words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Missed => "missed",
            Self::Held => "held",
            Self::Unproven => "not decided",
            Self::NoDeadline => "no deadline",
            Self::NotJudged => "not judged",
        }
    }
}

/// A machine, by its worst.
#[derive(Clone, Debug, Serialize)]
pub struct MachineEntry {
    /// Its key.
    pub machine: String,
    /// Its name.
    pub name: String,
    /// Its outcome.
    pub outcome: Judged,
    /// Why it is not decided.
    pub why: Option<&'static str>,
    /// Its runs in the time that is looked at.
    pub runs: usize,
    /// Those of them that missed the deadline.
    pub missed: usize,
    /// Its largest latency.
    pub max_ns: Option<u64>,
    /// Where that was.
    pub environment: Option<String>,
    /// In which scenario.
    pub scenario: Option<String>,
    /// In which run.
    pub run: Option<String>,
    /// When that began.
    pub started: Option<String>,
    /// The evidence of the numbers.
    pub evidence: Option<String>,
}

/// Whether numbers say something about hardware: those of an emulation do not.
pub fn counts(place: &Place) -> bool {
    place.max_ns.is_some() && place.evidence.as_deref().is_some_and(|evidence| evidence != "emulated")
}

/// Whether a scenario missed its limit.
fn misses(place: &Place, max_ns: Option<u64>) -> bool {
    match max_ns {
        Some(most) => place.max_ns.is_some_and(|max| max > most),
        None => place.verdict.as_deref() == Some("fail"),
    }
}

/// Why a scenario cannot be said to keep its limit; `None` if it can.
fn unsure(place: &Place, max_ns: Option<u64>) -> Option<&'static str> {
    let verdict = place.verdict.as_deref();
    let passed = matches!(verdict, Some("pass" | "warn"));
    match () {
        () if place.evidence.as_deref() == Some("emulated") => None,
        () if !counts(place) => Some("a scenario has no number, or its evidence is unknown"),
        // It has no limit.
        () if max_ns.is_none() && verdict.is_none() => None,
        // It froze, and no number says how late it was then.
        () if place.restarts.is_some_and(|restarts| restarts > 0) => Some("its environment died meanwhile"),
        () if place.self_test_passed != Some(true) => Some("a self-test was not passed, or not made"),
        () if verdict == Some("inconclusive") => Some("the verdict of its plan is inconclusive"),
        () if max_ns.is_some() && !passed && place.suffices != Some(true) => {
            Some("a scenario has too little evidence for a verdict")
        }
        () => None,
    }
}

/// The machines that ran since a moment, the worst first.
pub fn judged(set: &Set, max_ns: Option<u64>, from_us: i64) -> Vec<MachineEntry> {
    let called = set.called();
    let mut of: BTreeMap<usize, Vec<&Place>> = BTreeMap::new();
    let mut everything: BTreeMap<usize, Vec<&Place>> = BTreeMap::new();
    for place in &set.places {
        everything.entry(place.run).or_default().push(place);
        if counts(place) {
            of.entry(place.run).or_default().push(place);
        }
    }
    let mut all: Vec<MachineEntry> = Vec::new();
    for (machine, runs) in set.machines() {
        let runs: Vec<usize> = runs.into_iter().filter(|run| set.runs[*run].started_us >= from_us).collect();
        if runs.is_empty() {
            continue;
        }
        let places: Vec<&Place> = runs.iter().filter_map(|run| of.get(run)).flatten().copied().collect();
        let worst = places.iter().max_by_key(|place| place.max_ns);
        let missed =
            |run: &&usize| of.get(run).is_some_and(|own| own.iter().any(|place| misses(place, max_ns)));
        let missed = runs.iter().filter(missed).count();
        let asked = max_ns.is_some() || places.iter().any(|place| place.verdict.is_some());
        let mut own = runs.iter().filter_map(|run| everything.get(run)).flatten();
        let cut = runs.iter().any(|run| !set.runs[*run].complete);
        let doubt = if cut {
            Some("a run was interrupted, or a scenario of it was skipped or failed")
        } else {
            own.find_map(|place| unsure(place, max_ns))
        };
        let outcome = match () {
            () if places.is_empty() => Judged::NotJudged,
            () if missed > 0 => Judged::Missed,
            () if !asked => Judged::NoDeadline,
            () if doubt.is_some() => Judged::Unproven,
            () => Judged::Held,
        };
        let of_run = |place: &&Place| &set.runs[place.run];
        all.push(MachineEntry {
            machine: machine.to_owned(),
            name: called.get(machine).cloned().unwrap_or_default(),
            outcome,
            why: doubt.filter(|_| outcome == Judged::Unproven),
            runs: runs.len(),
            missed,
            max_ns: worst.and_then(|place| place.max_ns),
            environment: worst.map(|place| place.environment.clone()),
            scenario: worst.map(|place| place.scenario.clone()),
            run: worst.map(|place| of_run(place).run.clone()),
            started: worst.and_then(|place| moment(of_run(place).started_us)),
            evidence: worst.and_then(|place| place.evidence.clone()),
        });
    }
    all.sort_by(|one, other| (other.max_ns, &one.machine).cmp(&(one.max_ns, &other.machine)));
    all
}
