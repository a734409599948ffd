//! Decides which quantities are a regression, pass, or do neither: all together. With one sitting on each side no quantity is
//! decided: what was found holds between these two.

use tactus_model::document::{Judgement, QuantityEntry};
use tactus_model::number::float;
use tactus_statistics::{ERROR, TwoSamples, holm, least_p, typical_ratio};

use super::sampled::Sampled;
use super::sittings::By;

/// A quantity as it is judged.
struct Tested<'a> {
    of: &'a Sampled,
    larger: f64,
    smaller: f64,
    improved: f64,
}

/// Judges each quantity. The regressions are all true together with 95 % (Holm), and so are the improvements.
/// A quantity passes if it alone passes with 95 %. The statement that all of them pass is then wrong in at
/// most 5 % of cases, because it requires each of them to pass (R. L. Berger, "Multiparameter hypothesis
/// testing and acceptance sampling", Technometrics 24, 1982).
pub fn judge(all: &[&Sampled], test: &TwoSamples) -> Vec<QuantityEntry> {
    let judged: Vec<usize> = (0..all.len()).filter(|at| all[*at].not_judged.is_none()).collect();
    let tested: Vec<Tested> = judged.iter().map(|at| tested(all[*at], test)).collect();
    let larger: Vec<f64> = tested.iter().map(|of| of.larger).collect();
    let improved: Vec<f64> = tested.iter().map(|of| of.improved).collect();
    let (worse, better) = (holm(&larger), holm(&improved));
    let mut entries: Vec<QuantityEntry> = all.iter().map(|of| bare(of)).collect();
    for (n, at) in judged.iter().enumerate() {
        let of = &tested[n];
        let found = Found { p: of.larger, adjusted: worse[n], passes: of.smaller, family: tested.len() };
        fill(&mut entries[*at], of.of, &found, test);
        entries[*at].improved = better[n] <= ERROR;
        if entries[*at].improved {
            entries[*at].reason = "better by more than the margin".into();
        }
        if of.of.by == By::Runs {
            between_two_sittings(&mut entries[*at]);
        }
    }
    entries
}

/// What one sitting each shows holds between these two. Other sittings may differ by more.
fn between_two_sittings(entry: &mut QuantityEntry) {
    entry.between_sittings = entry.outcome;
    entry.outcome = Some(Judgement::Inconclusive);
    entry.reason = format!("between these two sittings: {}", entry.reason);
}

/// Whether one of these quantities, all of which may be judged, is a regression: the part of [`judge`] that
/// decides that.
pub fn is_regression(all: &[Sampled], test: &TwoSamples) -> bool {
    let larger: Vec<f64> = all.iter().map(|of| of.by.larger_p(test, of.samples(), of.limit)).collect();
    holm(&larger).iter().any(|adjusted| *adjusted <= ERROR)
}

fn tested<'a>(of: &'a Sampled, test: &TwoSamples) -> Tested<'a> {
    let (samples, by) = (of.samples(), of.by);
    Tested {
        of,
        larger: by.larger_p(test, samples, of.limit),
        smaller: match of.outside() {
            0 if is_nothing(of) => 0.0,
            0 => by.smaller_p(test, samples, of.limit),
            _ => 1.0,
        },
        improved: by.smaller_p(test, samples, 1.0 / of.limit),
    }
}

/// Nothing in every run of both, such as packets lost: as much as before.
fn is_nothing(of: &Sampled) -> bool {
    of.runs.iter().flatten().all(|value| *value <= 0.0)
}

/// The figures of a quantity alone.
pub fn bare(of: &Sampled) -> QuantityEntry {
    let [base, now] = of.medians();
    QuantityEntry {
        quantity: of.quantity.clone(),
        unit: of.unit,
        better: of.better,
        base_runs: of.runs[0].clone(),
        now_runs: of.runs[1].clone(),
        base,
        now,
        ratio: typical_ratio(of.samples()),
        low: None,
        high: None,
        limit: of.limit,
        p: None,
        p_adjusted: None,
        outcome: None,
        left_out: of.left_out,
        improved: false,
        reason: of.not_judged.clone().unwrap_or_default(),
        between_sittings: None,
        spread: of.spread(),
        needed: None,
        margin_needed: None,
    }
}

struct Found {
    p: f64,
    adjusted: f64,
    passes: f64,
    family: usize,
}

fn fill(entry: &mut QuantityEntry, of: &Sampled, found: &Found, test: &TwoSamples) {
    let samples = of.samples();
    let family = float(found.family.max(1) as u64);
    // By how many tests Holm divides the error for this one: then its lower end is above the limit just where it is a
    // regression.
    let times = if found.adjusted < 1.0 && found.p > 0.0 { found.adjusted / found.p } else { family };
    let low = of.by.low(test, samples, ERROR / times.max(1.0));
    let high = if is_nothing(of) { 1.0 } else { of.by.high(test, samples, ERROR) };
    entry.low = (low.is_finite() && low > 0.0).then_some(low);
    entry.high = high.is_finite().then_some(high);
    entry.p = Some(found.p);
    entry.p_adjusted = Some(found.adjusted);
    let outcome = if found.adjusted <= ERROR {
        Judgement::Regression
    } else if found.passes <= ERROR {
        Judgement::Pass
    } else {
        Judgement::Inconclusive
    };
    entry.outcome = Some(outcome);
    entry.reason = match outcome {
        Judgement::Regression => "worse by more than the margin".into(),
        Judgement::Pass => "not worse than the margin allows".into(),
        Judgement::Inconclusive => undecided(entry, of, ERROR / family),
    };
}

/// Why neither is certain, and what would decide.
fn undecided(entry: &mut QuantityEntry, of: &Sampled, error: f64) -> String {
    let ratio = entry.ratio.filter(|ratio| *ratio > 0.0);
    let distance = ratio.map(|ratio| (ratio / of.limit).ln());
    let is_above = distance.is_some_and(|distance| distance > 0.0);
    let needed_at = if is_above { error } else { ERROR };
    let (base, now) = (of.base.len(), of.now.len());
    let needed = distance
        .zip(entry.spread)
        .and_then(|(distance, spread)| of.by.needed(spread, distance, needed_at))
        // More than there are would help; values that lie apart by chance may seem to need fewer.
        .map(|needed| needed.max(base.min(now) + 1));
    entry.needed = needed;
    entry.margin_needed = entry.high.map(|high| (high - 1.0).max(0.0));
    let word = of.by.word();
    let outside = of.outside();
    if outside > 0 && !is_above {
        return format!(
            "{outside} of {} runs are worse than every run of the base by more than the margin",
            of.runs[1].len()
        );
    }
    // Worse in every pair and still no regression: with so few values the p-value of ranks cannot be smaller.
    let coarse = !of.by.is_medians() && least_p(base, now) > error && is_above;
    let mut said = if coarse {
        format!("{base} and {now} {word} are too few to show a regression in this many quantities")
    } else if is_above {
        "it may be worse than the margin allows".to_owned()
    } else {
        "it could still be worse than the margin allows".to_owned()
    };
    match needed {
        Some(needed) => said += &format!("; about {needed} {word} of each would decide"),
        None if coarse || distance.is_none() => {}
        None => said += &format!("; it is so near the margin that no number of {word} decides"),
    }
    if let Some(margin) = entry.margin_needed.filter(|margin| *margin < 10.0) {
        said += &format!("; with a margin of {:.0} % it passes", (margin * 100.0).ceil() + 0.0);
    }
    said
}
