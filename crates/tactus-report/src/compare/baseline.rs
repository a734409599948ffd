//! Whether a condition may be a baseline: compared with itself, it must not be a regression.
//!
//! Two checks, of its sittings or, if it is one sitting, of its runs. First, they are split 200 times into interleaved halves:
//! of each two neighbours in time, one is chosen at random. A half that is a regression of the other is a false alarm. More
//! than 5 % of false alarms show that they depend on each other in a way that the test cannot handle. Second, a drift is
//! alike in both halves; so the later half is also compared with the earlier one.

use tactus_model::bundle::Contents;
use tactus_model::document::{BaselineEntry, ResolutionEntry};
use tactus_model::number::float;
use tactus_model::random::SplitMix64;
use tactus_statistics::{ERROR, LEAST_SITTINGS, TwoSamples, detectable_ratio, least_p, log_t};

use super::condition::{Condition, Key, Run, is_skipped};
use super::judge::is_regression;
use super::margins::Margins;
use super::refusal::{Refusal, unfit, unlike};
use super::sampled::{Sampled, sampled};
use super::sittings::By;

/// Runs of one sitting, or sittings of fewer than five runs, that a baseline needs at least to be split.
pub const LEAST_RUNS: usize = 10;
/// Number of splits.
const SPLITS: usize = 200;
/// The regression that a baseline should tell.
const RATIO: f64 = 1.3;
/// The same seed each time, so that a baseline is refused always or never.
const SEED: u64 = 0x7461_6374_7573;

/// The quantities of a condition that may be judged: those of scenarios whose runs are fit and alike.
pub fn judged(condition: &Condition, margins: &Margins) -> Vec<(Key, Sampled)> {
    let mut all = Vec::new();
    for (key, runs) in condition.scenarios() {
        let Some(first) = runs.first().copied().filter(|_| !is_skipped(&runs)) else { continue };
        let fit =
            runs.iter().all(|run| unfit(&condition.name, *run).is_none() && unlike(first, *run).is_none());
        let own = sampled(&runs, &[], margins).into_iter().filter(|of| fit && of.not_judged.is_none());
        all.extend(own.map(|of| (key.clone(), of)));
    }
    all
}

/// Whether all runs of a bundle are complete and passed their self-test. In a baseline, one that did not would forbid every
/// verdict.
#[must_use]
pub fn is_fit(of: &Contents) -> bool {
    let condition = Condition::new("", vec![of.clone()]);
    let is_spoiled = |refusal: &Refusal| {
        matches!(refusal, Refusal::Unmeasured { .. } | Refusal::Incomplete { .. } | Refusal::Unproven { .. })
    };
    let fit = |(_, runs): &(Key, Vec<Run>)| {
        is_skipped(runs) || !runs.iter().filter_map(|run| unfit("", *run)).any(|refusal| is_spoiled(&refusal))
    };
    condition.scenarios().iter().all(fit)
}

/// The check of a condition as a baseline; `None` if a scenario has too few sittings or runs for two halves, or none may be
/// judged.
#[must_use]
pub fn baseline(condition: &Condition, margins: &Margins) -> Option<BaselineEntry> {
    let all = judged(condition, margins);
    // All of a condition are of the same runs; those with zeros go by ranks.
    let first = all.first()?.1.by;
    let by = all.iter().map(|(_, of)| of.by).find(|by| by.is_medians()).unwrap_or(first);
    let least = if by.is_medians() { LEAST_SITTINGS } else { LEAST_RUNS };
    let count = all.iter().map(|(_, of)| of.base.len()).min().filter(|count| *count >= least)?;
    let sampled: Vec<&Sampled> = all.iter().map(|(_, of)| of).collect();
    let (test, family) = (TwoSamples::default(), float(all.len() as u64));
    let half = count / 2;
    let mut random = SplitMix64::new(SEED);
    let regressions = (0..SPLITS).filter(|_| is_worse(&sampled, halves(count, &mut random), &test)).count();
    let (earlier, later): (Vec<usize>, Vec<usize>) = ((0..half).collect(), (count - half..count).collect());
    let drifted = [(earlier.clone(), later.clone()), (later, earlier)]
        .into_iter()
        .any(|halves| is_worse(&sampled, halves, &test));
    let refused = if drifted {
        let of = by.word();
        Some(format!("its later {of} differ from its earlier ones by more than the margin: it drifted"))
    } else if float(regressions as u64) > ERROR * float(SPLITS as u64) {
        Some(format!("in {regressions} of {SPLITS} splits one half is a regression of the other"))
    } else {
        None
    };
    let alone = |one: &usize| {
        let others = (0..count).filter(|other| other != one).collect();
        is_worse(&sampled, (others, vec![*one]), &test)
    };
    let resolution = |(key, of): &(Key, Sampled)| {
        let spread = of.spread()?;
        let error = ERROR / family;
        let distance = (RATIO / of.limit).ln();
        let detectable = match by {
            By::Medians(_) => {
                log_t::apart(spread, [of.base.len(), 1], error).map(|apart| of.limit * apart.exp())
            }
            By::Runs | By::Ranks(_) => detectable_ratio(spread, of.base.len(), error, of.limit),
        };
        Some(ResolutionEntry {
            name: key.name.clone(),
            environment: key.environment.clone(),
            quantity: of.quantity.clone(),
            spread,
            detectable,
            needed: if distance > 0.0 { by.needed(spread, distance, error) } else { None },
        })
    };
    Some(BaselineEntry {
        of: by.word().to_owned(),
        count,
        splits: SPLITS,
        regressions,
        drifted,
        tells: by.is_medians() || least_p(half, half) <= ERROR / family,
        false_alarms: by.is_medians().then(|| (0..count).filter(alone).count()),
        refused,
        quantities: all.iter().filter_map(resolution).collect(),
    })
}

/// Of each two neighbours one, at random.
fn halves(count: usize, random: &mut SplitMix64) -> (Vec<usize>, Vec<usize>) {
    let pair = |n: usize| {
        let (one, other) = (2 * n, 2 * n + 1);
        if random.draw() >> 63 == 0 { (one, other) } else { (other, one) }
    };
    (0..count / 2).map(pair).unzip()
}

fn is_worse(all: &[&Sampled], (base, now): (Vec<usize>, Vec<usize>), test: &TwoSamples) -> bool {
    let split: Vec<Sampled> = all.iter().map(|of| of.split(&base, &now)).collect();
    is_regression(&split, test)
}
