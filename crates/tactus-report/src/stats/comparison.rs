//! The comparison table: every row, and how it differs from the host under the same conditions.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::dependence::{Dependence, dependence};
use tactus_model::document::{Published, Verdict};
use tactus_model::event::RowStatus;
use tactus_model::latency::{Corrected, Summary};
use tactus_model::outcome::{RowEnd, ValueResult, Yields};
use tactus_model::scheduling::Policy;

use super::conditions::{keys, measures};
use super::together::{medians, together};
use super::typical::values_of;
use crate::row::{
    Runs, apart, figures, has_numbers, load_words, published, reason, scenario_title, verdict_of_runs,
};

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The row's number in the bundle.
    pub row: usize,
    /// The scenario's name; with the environment where it has several measurements.
    pub name: String,
    /// Whether it belongs to a study whose tables have it, so that a list of all is longer for nothing.
    pub apart: bool,
    /// The measurement's environment.
    pub environment: String,
    /// The subject of the latency: the guest whose answers a card times, or else the environment.
    pub subject: String,
    /// Its place: the environment, in the state of the machine if the plan declares states. Audits and facts
    /// are kept by it.
    pub place: String,
    /// Its kind.
    pub kind: String,
    /// `timer`, `spin`, ...
    pub measurement: &'static str,
    /// The evidence of its numbers.
    pub evidence: Option<Evidence>,
    /// The load beside the measurement, in words; `idle` without any.
    pub load: String,
    /// How it ended; of several runs the worst.
    pub status: RowStatus,
    /// Why it lacks numbers, or has fewer than planned.
    pub reason: Option<String>,
    /// Whether a latency ended it.
    pub broke: bool,
    /// Whether it was scheduled as an ordinary program is, where that is known.
    pub ordinary: bool,
    /// How long it measured, in ns; of several runs the shortest that has numbers.
    pub measured_ns: u64,
    /// Frames that did not arrive, of all runs.
    pub frames_lost: u64,
    /// The kind of its results.
    pub yields: Yields,
    /// The figures of latencies, if any were measured; of several runs those of all their data.
    pub figures: Option<Summary>,
    /// Its runs one by one, where the plan repeats it.
    pub repeated: Option<Repeated>,
    /// Its values, of several runs the median of each item; empty for latencies.
    pub values: Vec<ValueResult>,
    /// How it differs from the host.
    pub against: Option<Against>,
    /// The figures of the study's document.
    pub published: Option<Published>,
    /// The verdict on its requirement; of several runs the worst, limit by limit.
    pub verdict: Option<Verdict>,
}

/// The runs of a measurement that the plan repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// Each of them, in their order.
    pub runs: Vec<Run>,
    /// Of latencies the median of each figure of the runs that have any.
    pub median: Option<Summary>,
}

/// One of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its number, from 1.
    pub number: u32,
    /// How it ended.
    pub status: RowStatus,
    /// Why it lacks numbers, or has fewer than planned.
    pub reason: Option<String>,
    /// Whether it has numbers.
    pub has_numbers: bool,
    /// How long it measured, in ns.
    pub measured_ns: u64,
    /// Its own figures, of latencies.
    pub figures: Option<Summary>,
}

impl Line {
    /// Whether anything was measured.
    #[must_use]
    pub fn has_numbers(&self) -> bool {
        self.figures.is_some() || !self.values.is_empty()
    }

    /// How long each run measured that has numbers, in ns.
    pub fn lasted(&self) -> impl Iterator<Item = u64> {
        let runs = self.repeated.iter().flat_map(|repeated| &repeated.runs);
        let runs: Vec<u64> = runs.filter(|run| run.has_numbers).map(|run| run.measured_ns).collect();
        if runs.is_empty() { vec![self.measured_ns] } else { runs }.into_iter()
    }

    /// Quantiles corrected for missed periods, if any were missed.
    #[must_use]
    pub fn corrected(&self) -> Option<&Corrected> {
        self.figures.as_ref().filter(|all| all.missed() > 0).map(|all| &all.corrected)
    }
}

/// The difference to the host's row that was measured in the same way under the same load.
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// Index of the host's row.
    pub row: usize,
    /// Its name.
    pub name: String,
    /// Its figures, as those of a line.
    pub figures: Option<Summary>,
    /// Why the two must not be ranked against each other, when they are different evidence.
    pub caution: Option<&'static str>,
}

/// A difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta {
    /// In ns.
    pub absolute_ns: f64,
    /// As a part of the host's value; `None` when that is 0.
    pub relative: Option<f64>,
}

/// The comparison table, a line for each measurement, in the order of the bundle; all runs of it are one
/// line.
#[must_use]
pub fn comparison(contents: &Contents) -> Vec<Line> {
    let all = Runs::new(contents);
    let hosts = Hosts::of(contents);
    let lines = contents.rows.iter().enumerate().filter(|(n, _)| all.is_first(*n)).map(|(n, row)| {
        let result = &row.result;
        let runs = all.of(n);
        let each: Vec<Run> = runs.iter().map(|row| run(contents, &row.result)).collect();
        let results = || runs.iter().map(|row| &row.result);
        Line {
            row: n,
            name: scenario_title(contents, result),
            apart: apart(contents, &result.name),
            environment: result.environment.clone(),
            subject: result.to.as_ref().unwrap_or(&result.environment).clone(),
            place: result.environment_key(),
            kind: result.kind.clone(),
            measurement: result.measurement.kind(),
            evidence: results().filter_map(|run| run.evidence).reduce(Evidence::weaker),
            load: load_words(result),
            status: each.iter().map(|run| run.status).max_by_key(severity).unwrap_or(result.status),
            reason: reasons(&each),
            broke: results().any(|run| run.ended == RowEnd::Broke),
            ordinary: result.policy == Policy::Other,
            measured_ns: results()
                .filter(|run| has_numbers(run))
                .map(|run| run.measured_ns)
                .min()
                .unwrap_or(result.measured_ns),
            frames_lost: results().fold(0, |sum, run| sum.saturating_add(run.frames_lost)),
            yields: result.outcome.yields(),
            figures: together(runs),
            values: values_of(runs, result),
            against: hosts.against(contents, &all, result),
            published: published(&contents.plan, &result.name, &result.environment),
            verdict: verdict_of_runs(runs),
            repeated: (each.len() > 1).then(|| Repeated {
                median: medians(&each.iter().filter_map(|run| run.figures.as_ref()).collect::<Vec<_>>()),
                runs: each,
            }),
        }
    });
    lines.collect()
}

fn run(contents: &Contents, result: &RowResult) -> Run {
    Run {
        number: result.repeat.unwrap_or(1),
        status: result.status,
        reason: reason(contents, result),
        has_numbers: has_numbers(result),
        measured_ns: result.measured_ns,
        figures: figures(result).cloned(),
    }
}

/// How bad it is that a run ended so.
const fn severity(status: &RowStatus) -> u8 {
    match status {
        RowStatus::Measured => 0,
        RowStatus::Skipped => 1,
        RowStatus::Failed => 2,
    }
}

/// Why some runs have no numbers, or fewer than planned: each reason once, with the runs that it is of.
fn reasons(runs: &[Run]) -> Option<String> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for run in runs {
        let Some(reason) = run.reason.as_deref() else { continue };
        match all.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, of)) => of.push(run.number.to_string()),
            None => all.push((reason, vec![run.number.to_string()])),
        }
    }
    let said = |(reason, of): &(&str, Vec<String>)| match of.as_slice() {
        all if all.len() == runs.len() => (*reason).to_owned(),
        [one] => format!("run {one} of {}: {reason}", runs.len()),
        some => format!("runs {} of {}: {reason}", some.join(", "), runs.len()),
    };
    (!all.is_empty()).then(|| all.iter().map(said).collect::<Vec<_>>().join("; "))
}

/// The hosts' rows that others are compared with.
struct Hosts(BTreeMap<String, usize>);

impl Hosts {
    fn of(contents: &Contents) -> Self {
        let mut first = BTreeMap::new();
        for (at, row) in contents.rows.iter().enumerate() {
            if is_host(&row.result) && has_numbers(&row.result) {
                for key in comparable(&row.result) {
                    first.entry(key).or_insert(at);
                }
            }
        }
        Self(first)
    }

    fn against(&self, contents: &Contents, all: &Runs, result: &RowResult) -> Option<Against> {
        if !has_numbers(result) || is_host(result) {
            return None;
        }
        // The same load in its own environment; else the very same load where it was.
        let row = comparable(result).iter().find_map(|key| self.0.get(key).copied())?;
        let host = &contents.rows.get(row)?.result;
        Some(Against {
            row,
            name: scenario_title(contents, host),
            figures: together(all.of(row)),
            caution: caution(result.evidence, host.evidence),
        })
    }
}

/// A text that a row and the host's share if they can be compared.
fn comparable(result: &RowResult) -> [String; 2] {
    // A factor between an emulated processor and one that is not is the emulator's.
    let is_emulated = result.evidence == Some(Evidence::Emulated);
    let scheduled = (result.interval_ns, result.policy, result.priority);
    keys(&format!("{} {scheduled:?} {is_emulated}", measures(&result.measurement)), result)
}

pub(super) fn is_host(result: &RowResult) -> bool {
    dependence(&result.kind) == Some(Dependence::Itself)
}

/// The difference between two values of one figure, in ns.
#[must_use]
pub fn delta(own: Option<f64>, theirs: Option<f64>) -> Option<Delta> {
    let (own, theirs) = (own?, theirs?);
    let absolute_ns = own - theirs;
    Some(Delta { absolute_ns, relative: (theirs > 0.0).then(|| absolute_ns / theirs) })
}

fn caution(own: Option<Evidence>, theirs: Option<Evidence>) -> Option<&'static str> {
    if own == theirs {
        None
    } else {
        Some("different kinds of evidence: the difference is not the environment's alone")
    }
}
