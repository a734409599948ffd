//! The comparison table: every row, and how it differs from the host under the same conditions.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::dependence::{Dependence, dependence};
use tactus_model::document::{Outcome, Published, SelfTestEntry, Verdict};
use tactus_model::event::RowStatus;
use tactus_model::latency::{Corrected, Summary};
use tactus_model::outcome::{ValueResult, Yields};

use super::conditions::{keys, measures};
use super::typical::{Runs, Spread, figures_of, spread, values_of};
use crate::row::{apart, control, has_numbers, load_words, published, reason, scenario_title, verdict};

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
    /// Whose latency it is: that of the guest whose answers a card times, else the environment's.
    pub subject: String,
    /// Where it was: the environment, in the state of the machine where the plan declares states. Audits
    /// and facts are kept by it.
    pub place: String,
    /// Its kind.
    pub kind: String,
    /// `timer`, `spin`, ...
    pub measurement: &'static str,
    /// What the numbers are worth.
    pub evidence: Option<Evidence>,
    /// What ran beside the measurement, in words; `idle` when nothing did.
    pub load: String,
    /// How it ended.
    pub status: RowStatus,
    /// Why it has no numbers, or fewer than planned.
    pub reason: Option<String>,
    /// How long it measured, in ns.
    pub measured_ns: u64,
    /// What it yields.
    pub yields: Yields,
    /// The figures of latencies, when any were measured; of several runs the median of each.
    pub figures: Option<Summary>,
    /// The range of the runs, where the plan repeats it.
    pub spread: Option<Spread>,
    /// Its values; nothing for latencies.
    pub values: Vec<ValueResult>,
    /// How it differs from the host.
    pub against: Option<Against>,
    /// How its control went.
    pub control: Option<SelfTestEntry>,
    /// What the study's document published.
    pub published: Option<Published>,
    /// What the requirement says.
    pub verdict: Option<Verdict>,
}

impl Line {
    /// Whether anything was measured.
    #[must_use]
    pub fn has_numbers(&self) -> bool {
        self.figures.is_some() || !self.values.is_empty()
    }

    /// Quantiles corrected for missed periods, where there are any.
    #[must_use]
    pub fn corrected(&self) -> Option<&Corrected> {
        self.figures.as_ref().filter(|all| all.overruns > 0).map(|all| &all.corrected)
    }
}

/// The difference to the host's row that was measured in the same way under the same load.
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// Index of the host's row.
    pub row: usize,
    /// Its name.
    pub name: String,
    /// Its figures; of several runs the median of each.
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

/// The comparison table, one line per measurement and in the order of the bundle; all runs of it are one line.
#[must_use]
pub fn comparison(contents: &Contents) -> Vec<Line> {
    let all = Runs::new(contents);
    let own = |row: &Row| {
        let first = all.of(&row.result).first().map(|first| &raw const first.result);
        row.result.repeat.is_none() || first == Some(&raw const row.result)
    };
    let hosts = Hosts::of(contents);
    let lines = contents.rows.iter().enumerate().filter(|(_, row)| own(row)).map(|(n, row)| {
        let result = &row.result;
        let runs = all.of(result);
        Line {
            row: n,
            name: scenario_title(contents, result),
            apart: apart(contents, &result.name),
            environment: result.environment.clone(),
            subject: result.to.as_ref().unwrap_or(&result.environment).clone(),
            place: result.environment_key(),
            kind: result.kind.clone(),
            measurement: result.measurement.kind(),
            evidence: result.evidence,
            load: load_words(result),
            status: result.status,
            reason: reason(contents, result),
            measured_ns: result.measured_ns,
            yields: result.outcome.yields(),
            figures: figures_of(runs),
            spread: spread(runs),
            values: values_of(runs, result),
            against: hosts.against(contents, &all, result),
            control: control(result),
            published: published(&contents.plan, &result.name, &result.environment),
            verdict: runs.iter().filter_map(|run| verdict(run)).max_by_key(worst),
        }
    });
    lines.collect()
}

/// Of several runs the verdict that is worst counts.
const fn worst(verdict: &Verdict) -> u8 {
    match verdict.outcome {
        Outcome::Pass => 0,
        Outcome::Warn => 1,
        Outcome::Inconclusive => 2,
        Outcome::Fail => 3,
    }
}

/// The hosts' rows that others are held against.
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
            figures: figures_of(all.of(host)),
            caution: caution(result.evidence, host.evidence),
        })
    }
}

/// What a row and the host's have in common.
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
