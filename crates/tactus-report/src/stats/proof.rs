//! What each setting under test is worth: pairs of measurements with and without it.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::number::float;
use tactus_model::plan::Proof;

use super::change::Change;
use super::effect::changed;
use super::holm::ERROR;
use super::order::order_p;
use super::runs::is_whole;
use super::unknown::Unknown;
use crate::row::{Quantity, figures, is_corrected};

/// What is judged of a setting.
pub const PROVEN: [Quantity; 3] = [Quantity::P99, Quantity::P999, Quantity::Maximum];

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
    /// Whether periods were missed, so that quantiles are corrected ones.
    pub corrected: bool,
    /// The effect on each quantity, or why there is none.
    pub answer: Answer,
    /// What is to be known of it: the order mattered, for instance.
    pub caution: Option<String>,
}

/// What came of a test.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Effects on p99, p99.9 and the maximum.
    Effects(Vec<Change>),
    /// It was not tested, or not often enough.
    None(String),
}

/// Rows by name, with their number: the order in which they were measured.
type Rows<'a> = BTreeMap<&'a str, (usize, &'a RowResult)>;

/// Every setting under test of a bundle, in the plan's order, before they are judged.
pub(super) fn drafts(contents: &Contents) -> Vec<Proven> {
    let rows = contents.rows.iter().enumerate();
    let rows: Rows<'_> = rows.map(|(at, row)| (row.result.name.as_str(), (at, &row.result))).collect();
    contents.plan.proof.iter().map(|proof| draft(proof, &rows)).collect()
}

/// Fewer pairs than this are a look.
const EXPLORATORY: usize = 10;

fn draft(proof: &Proof, rows: &Rows<'_>) -> Proven {
    let planned = proof.with.len().min(proof.without.len());
    let halves = proof.without.iter().zip(&proof.with);
    let found: Vec<[&(usize, &RowResult); 2]> = halves
        .filter_map(|(without, with)| Some([rows.get(without.as_str())?, rows.get(with.as_str())?]))
        .collect();
    let whole: Vec<_> = found.iter().filter(|pair| pair.iter().all(|half| is_whole(half.1))).collect();
    let pairs: Vec<[&RowResult; 2]> = whole.iter().map(|[without, with]| [without.1, with.1]).collect();
    let with_first: Vec<bool> = whole.iter().map(|[without, with]| with.0 < without.0).collect();
    let unseen = found.iter().flatten().find(|half| half.1.control.iter().any(|control| !control.passed));
    let answer = match (&proof.reason, unseen) {
        (Some(reason), _) => Answer::None(reason.clone()),
        (None, Some((_, row))) => Answer::None(format!("self-test not passed in `{}`", row.name)),
        (None, None) => {
            let made: Vec<_> = pairs.iter().map(|pair| pair.map(Some)).collect();
            Answer::Effects(PROVEN.into_iter().map(|of| changed(of, &made)).collect())
        }
    };
    let summaries = || pairs.iter().flatten().filter_map(|result| figures(result));
    Proven {
        setting: proof.setting.clone(),
        environment: proof.environment.clone(),
        what: proof.what.clone(),
        evidence: pairs.first().and_then(|[_, with]| with.evidence),
        pairs: (pairs.len(), planned),
        corrected: summaries().any(is_corrected),
        answer,
        caution: order(&pairs, &with_first),
    }
}

/// Whether differences depend on which half came first.
fn order(pairs: &[[&RowResult; 2]], with_first: &[bool]) -> Option<String> {
    let value = |quantity: Quantity, result: &RowResult| Some(float(quantity.of(figures(result)?)?));
    let depends = |quantity: Quantity| {
        let differences: Option<Vec<f64>> =
            pairs.iter().map(|[base, with]| Some(value(quantity, with)? - value(quantity, base)?)).collect();
        // One error for all three quantities.
        differences.is_some_and(|of| order_p(&of, with_first) * 3.0 <= ERROR)
    };
    let names: Vec<&str> = PROVEN.into_iter().filter(|q| depends(*q)).map(Quantity::name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the difference in {} depends on which half of a pair came first: the setting acts on for longer than a \
             half takes; prove it again with a longer --duration",
            names.join(" and ")
        )
    })
}

/// After they were judged: too few pairs are one reason for all quantities.
pub(super) fn close(proven: &mut Proven, rows: &Contents) {
    let planned = proven.pairs.1;
    if planned < EXPLORATORY {
        let said = format!("exploratory: {planned} pairs are a look, and no test");
        proven.caution =
            Some(proven.caution.take().map_or(said.clone(), |caution| format!("{said}; {caution}")));
        return;
    }
    let Answer::Effects(changes) = &proven.answer else { return };
    let few = changes.iter().find_map(|change| match change.difference {
        Err(Unknown::TooFewRuns { least, .. }) => Some(least),
        _ => None,
    });
    let Some(least) = few else { return };
    let proof = rows.plan.proof.iter().find(|proof| proof.setting == proven.setting);
    let names: Vec<&String> =
        proof.map(|proof| proof.with.iter().chain(&proof.without).collect()).unwrap_or_default();
    let mut own = rows.rows.iter().map(|row| &row.result).filter(|result| names.contains(&&result.name));
    let why = own.find(|result| !is_whole(result)).and_then(|result| result.reason.clone());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let (measured, planned) = proven.pairs;
    proven.answer = Answer::None(format!(
        "{measured} of {planned} pairs were measured whole, too few to judge among all that is tested here: {least} \
         are needed{why}"
    ));
}
