//! What each setting under test is worth on this machine.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::latency::Summary;
use tactus_model::number::float;
use tactus_model::plan::Proof;

use super::document::figures;
use super::paired::{Paired, paired};
use crate::units::latency;

/// The three quantities of a setting are judged together: the error is shared out among them
/// (Bonferroni), so that all three intervals hold at once at 95 %.
pub const ERROR: f64 = 0.05;
/// A figure of a row, in ns.
type Quantity = fn(&Summary) -> Option<u64>;
const QUANTITIES: [(&str, Quantity); 3] =
    [("p99", |all| all.p99_ns), ("p99.9", |all| all.p999_ns), ("maximum", |all| all.max_ns)];

/// A setting under test and what came of it.
#[derive(Clone, Debug)]
pub struct Proven {
    /// Id of its check.
    pub setting: String,
    /// Name of the environment.
    pub environment: String,
    /// What differed.
    pub what: String,
    /// What the numbers are worth.
    pub evidence: Option<Evidence>,
    /// Pairs that were measured whole, and those that were planned.
    pub pairs: (usize, usize),
    /// The effect on each quantity, or why there is none.
    pub answer: Answer,
}

/// What came of a test.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Effects on p99, p99.9 and the maximum.
    Effects(Vec<Worth>),
    /// It was not tested, or not often enough.
    None(String),
}

/// The effect on one quantity, in ns.
#[derive(Clone, Debug)]
pub struct Worth {
    /// `p99`, `p99.9`, `maximum`.
    pub quantity: &'static str,
    /// Median without the setting.
    pub without_ns: f64,
    /// Median with it.
    pub with_ns: f64,
    /// The difference.
    pub effect: Paired,
}

impl Worth {
    /// "lower by 3.2 us (1.1 us to 5.0 us)", or "no effect larger than 2.1 us".
    #[must_use]
    pub fn words(&self) -> String {
        let effect = &self.effect;
        if !effect.is_shown() {
            return format!("no effect larger than {}", latency(effect.at_most()));
        }
        let (word, near, far) = if effect.high < 0.0 {
            ("lower", -effect.high, -effect.low)
        } else {
            ("higher", effect.low, effect.high)
        };
        format!("{word} by {} ({} to {})", latency(effect.estimate.abs()), latency(near), latency(far))
    }

    /// The interval in numbers: "-5.0 us to +1.1 us".
    #[must_use]
    pub fn interval(&self) -> String {
        format!("{} to {}", signed(self.effect.low), signed(self.effect.high))
    }
}

/// Every setting under test of a bundle, in the plan's order.
#[must_use]
pub fn proofs(contents: &Contents) -> Vec<Proven> {
    let rows: BTreeMap<&str, &RowResult> =
        contents.rows.iter().map(|row| (row.result.name.as_str(), &row.result)).collect();
    contents.plan.proof.iter().map(|proof| proven(proof, &rows)).collect()
}

fn proven(proof: &Proof, rows: &BTreeMap<&str, &RowResult>) -> Proven {
    let planned = proof.with.len().min(proof.without.len());
    let pairs: Vec<(&RowResult, &RowResult)> = proof
        .with
        .iter()
        .zip(&proof.without)
        .filter_map(|(with, without)| {
            let pair = (*rows.get(with.as_str())?, *rows.get(without.as_str())?);
            (figures(pair.0).is_some() && figures(pair.1).is_some()).then_some(pair)
        })
        .collect();
    let evidence = pairs.first().and_then(|(with, _)| with.evidence);
    let answer = answer(proof, &pairs, rows);
    Proven {
        setting: proof.setting.clone(),
        environment: proof.environment.clone(),
        what: proof.what.clone(),
        evidence,
        pairs: (pairs.len(), planned),
        answer,
    }
}

fn answer(proof: &Proof, pairs: &[(&RowResult, &RowResult)], rows: &BTreeMap<&str, &RowResult>) -> Answer {
    if let Some(reason) = &proof.reason {
        return Answer::None(reason.clone());
    }
    let mut effects = Vec::new();
    for (quantity, value) in QUANTITIES {
        let values: Vec<(f64, f64)> = pairs
            .iter()
            .filter_map(|(with, without)| {
                Some((float(value(figures(with)?)?), float(value(figures(without)?)?)))
            })
            .collect();
        let differences: Vec<f64> = values.iter().map(|(with, without)| with - without).collect();
        let Some(effect) = paired(&differences, ERROR / 3.0) else {
            let why = proof.with.iter().chain(&proof.without).find_map(|name| {
                let row = rows.get(name.as_str())?;
                row.reason.clone().filter(|_| figures(row).is_none())
            });
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let planned = proof.with.len();
            return Answer::None(format!(
                "{} of {planned} pairs were measured, too few to judge{why}",
                pairs.len()
            ));
        };
        effects.push(Worth {
            quantity,
            without_ns: median(values.iter().map(|(_, without)| *without).collect()),
            with_ns: median(values.iter().map(|(with, _)| *with).collect()),
            effect,
        });
    }
    Answer::Effects(effects)
}

fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "-" } else { "+" }, latency(ns.abs()))
}

/// The median; there is at least one value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// What a reader of many tests must know; `None` for few.
#[must_use]
pub fn caution(proofs: &[Proven]) -> Option<String> {
    let tested = proofs.iter().filter(|proven| matches!(proven.answer, Answer::Effects(_))).count();
    let by_chance = 0.05 * float(u64::try_from(tested).unwrap_or(u64::MAX));
    (by_chance >= 0.5).then(|| {
        format!(
            "Of {tested} settings without any effect about {by_chance:.0} would still seem to have one: prove again, \
             alone and with more pairs, what you mean to rely on."
        )
    })
}
