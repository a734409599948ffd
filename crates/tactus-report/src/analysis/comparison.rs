//! The comparison table: every row, and how it differs from the host under the same conditions.

use serde_json::Value;
use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{ControlEntry, Published, Verdict};
use tactus_model::event::RowStatus;
use tactus_model::latency::{Corrected, Summary};
use tactus_model::number::float;

use super::control::control;
use super::document::{figures, inside, reason};
use super::published::published;
use super::verdict::verdict;

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The scenario's name; with the environment where it has several measurements.
    pub name: String,
    /// The measurement's environment.
    pub environment: String,
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
    /// The figures, when anything was measured.
    pub figures: Option<Summary>,
    /// How it differs from the host.
    pub against: Option<Against>,
    /// How its control went.
    pub control: Option<ControlEntry>,
    /// What the study's document published.
    pub published: Option<Published>,
    /// What the requirement says.
    pub verdict: Option<Verdict>,
}

impl Line {
    /// Quantiles with the swallowed periods put back, where there are any.
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
    /// This row minus the host's.
    pub figures: Figures<Option<Delta>>,
    /// Why the two must not be ranked against each other, when they are different evidence.
    pub caution: Option<&'static str>,
}

/// The six figures of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures<T> {
    /// Smallest.
    pub min: T,
    /// Mean.
    pub mean: T,
    /// Median.
    pub p50: T,
    /// 99th percentile.
    pub p99: T,
    /// 99.9th percentile.
    pub p999: T,
    /// Largest.
    pub max: T,
}

impl<T> Figures<T> {
    /// In the order of the table.
    pub fn each(&self) -> [&T; 6] {
        [&self.min, &self.mean, &self.p50, &self.p99, &self.p999, &self.max]
    }

    fn joined<U, V>(self, other: Figures<U>, with: impl Fn(T, U) -> V) -> Figures<V> {
        Figures {
            min: with(self.min, other.min),
            mean: with(self.mean, other.mean),
            p50: with(self.p50, other.p50),
            p99: with(self.p99, other.p99),
            p999: with(self.p999, other.p999),
            max: with(self.max, other.max),
        }
    }
}

impl From<&Summary> for Figures<Option<f64>> {
    fn from(all: &Summary) -> Self {
        Self {
            min: all.min_ns.map(float),
            mean: all.mean_ns,
            p50: all.p50_ns.map(float),
            p99: all.p99_ns.map(float),
            p999: all.p999_ns.map(float),
            max: all.max_ns.map(float),
        }
    }
}

/// A difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta {
    /// In ns.
    pub absolute_ns: f64,
    /// As a part of the host's value; `None` when that is 0.
    pub relative: Option<f64>,
}

/// The comparison table, one line per row of the bundle and in its order.
#[must_use]
pub fn comparison(contents: &Contents) -> Vec<Line> {
    let lines = contents.rows.iter().map(|row| {
        let result = &row.result;
        Line {
            name: title(contents, result),
            environment: result.environment.clone(),
            place: result.environment_key(),
            kind: result.kind.clone(),
            measurement: result.measurement.kind(),
            evidence: result.evidence,
            load: load_words(result),
            status: result.status,
            reason: reason(contents, result),
            measured_ns: result.measured_ns,
            figures: figures(result).cloned(),
            against: against(contents, result),
            control: control(result),
            published: published(&contents.plan, &result.name, &result.environment),
            verdict: verdict(row),
        }
    });
    lines.collect()
}

/// The name of a measurement: that of its scenario, with the environment where it has several, and with what that
/// lies inside.
#[must_use]
pub fn title(contents: &Contents, result: &RowResult) -> String {
    let same = contents.rows.iter().filter(|row| row.result.name == result.name).count();
    let outer = inside(contents, &result.environment).map(|outer| format!("{} in {outer}", result.kind));
    let place = (same > 1).then(|| result.environment.clone());
    let words: Vec<String> = place.into_iter().chain(outer).collect();
    if words.is_empty() { result.name.clone() } else { format!("{} ({})", result.name, words.join(", ")) }
}

fn against(contents: &Contents, result: &RowResult) -> Option<Against> {
    let own = figures(result)?;
    if result.kind == "host" {
        return None;
    }
    let comparable = |host: &RowResult| {
        host.kind == "host"
            && figures(host).is_some()
            && host.measurement == result.measurement
            && host.interval_ns == result.interval_ns
            && host.policy == result.policy
            && host.priority == result.priority
    };
    let hosts =
        || contents.rows.iter().map(|row| &row.result).enumerate().filter(|(_, host)| comparable(host));
    // The same load in its own environment; else the very same load where it was.
    let (row, host) = hosts()
        .find(|(_, host)| conditions(host, true) == conditions(result, true))
        .or_else(|| hosts().find(|(_, host)| conditions(host, false) == conditions(result, false)))?;
    let theirs = figures(host)?;
    let delta = |own: Option<f64>, theirs: Option<f64>| {
        let (own, theirs) = (own?, theirs?);
        let absolute_ns = own - theirs;
        Some(Delta { absolute_ns, relative: (theirs > 0.0).then(|| absolute_ns / theirs) })
    };
    Some(Against {
        row,
        name: title(contents, host),
        figures: Figures::from(own).joined(Figures::from(theirs), delta),
        caution: caution(result.evidence, host.evidence),
    })
}

fn caution(own: Option<Evidence>, theirs: Option<Evidence>) -> Option<&'static str> {
    if own == theirs {
        None
    } else if own == Some(Evidence::Emulated) {
        Some(
            "an emulated processor against one that is not: the difference is the emulator's, not the environment's",
        )
    } else {
        Some("different kinds of evidence: the difference is not the environment's alone")
    }
}

/// The loads and faults of a row as far as they must agree for a comparison: their kind and
/// parameters, and where they ran (`own`: leaving out the row's own environment). CPUs are numbered
/// anew in each environment.
fn conditions(result: &RowResult, own: bool) -> Vec<Value> {
    let mut tables: Vec<Value> = result.load.iter().chain(&result.fault).cloned().collect();
    for table in &mut tables {
        if let Some(map) = table.as_object_mut() {
            map.remove("cpus");
            if own && map.get("in").and_then(Value::as_str).is_none_or(|place| place == result.environment) {
                map.remove("in");
            }
        }
    }
    tables.sort_by_key(Value::to_string);
    tables
}

/// What ran beside a measurement, in words: `scheduler load`, `cpu load in guest, hog fault`.
#[must_use]
pub fn load_words(result: &RowResult) -> String {
    let words = |tables: &[Value], family: &str| -> Vec<String> {
        tables
            .iter()
            .map(|table| {
                let text = |key: &str| table.get(key).and_then(Value::as_str);
                let kind = text("kind").or_else(|| table.as_str()).unwrap_or("unknown");
                let place = text("in").filter(|place| *place != result.environment);
                let place = place.map(|place| format!(" in {place}")).unwrap_or_default();
                let cpus = text("cpus").map(|cpus| format!(" on CPU {cpus}")).unwrap_or_default();
                format!("{kind} {family}{place}{cpus}")
            })
            .collect()
    };
    let all = [words(&result.load, "load"), words(&result.fault, "fault")].concat();
    if all.is_empty() { "idle".into() } else { all.join(", ") }
}
