//! Whether a condition may be a baseline: compared with itself, it must not be a regression.
//!
//! Two checks. First, its runs are split 200 times into interleaved halves: of each two neighbours in time,
//! one is chosen at random. A half that is a regression of the other is a false alarm. More than 5 % of false
//! alarms show that runs depend on each other in a way that the test cannot handle. Second, a drift is alike
//! in both halves; so the later half is also compared with the earlier one.

use tactus_model::document::{BaselineEntry, ResolutionEntry};
use tactus_model::number::float;
use tactus_model::random::SplitMix64;
use tactus_statistics::{ERROR, TwoSamples, detectable_ratio, least_p, runs_needed};

use super::condition::{Condition, Key, is_skipped};
use super::judge::is_regression;
use super::margins::Margins;
use super::refusal::{unfit, unlike};
use super::sampled::{Sampled, sampled};

/// Runs that a baseline needs at least to be split.
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

/// The check of a condition as a baseline; `None` if a scenario has too few runs for two halves, or none may
/// be judged.
#[must_use]
pub fn baseline(condition: &Condition, margins: &Margins) -> Option<BaselineEntry> {
    let all = judged(condition, margins);
    let runs = all.iter().map(|(_, of)| of.base.len()).min().filter(|runs| *runs >= LEAST_RUNS)?;
    let sampled: Vec<&Sampled> = all.iter().map(|(_, of)| of).collect();
    let (test, family) = (TwoSamples::default(), float(all.len() as u64));
    let half = runs / 2;
    let tells = least_p(half, half) <= ERROR / family;
    let mut random = SplitMix64::new(SEED);
    let regressions = (0..SPLITS).filter(|_| is_worse(&sampled, halves(runs, &mut random), &test)).count();
    let (earlier, later): (Vec<usize>, Vec<usize>) = ((0..half).collect(), (runs - half..runs).collect());
    let drifted = [(earlier.clone(), later.clone()), (later, earlier)]
        .into_iter()
        .any(|halves| is_worse(&sampled, halves, &test));
    let refused = if drifted {
        Some("its later runs differ from its earlier ones by more than the margin: it drifted".to_owned())
    } else if float(regressions as u64) > ERROR * float(SPLITS as u64) {
        Some(format!("in {regressions} of {SPLITS} splits one half is a regression of the other"))
    } else {
        None
    };
    let resolution = |(key, of): &(Key, Sampled)| {
        let spread = of.run_to_run()?;
        let error = ERROR / family;
        let distance = (RATIO / of.limit).ln();
        Some(ResolutionEntry {
            name: key.name.clone(),
            environment: key.environment.clone(),
            quantity: of.quantity.clone(),
            run_to_run: spread,
            detectable: detectable_ratio(spread, of.base.len(), error, of.limit),
            runs_needed: if distance > 0.0 { runs_needed(spread, distance, error) } else { None },
        })
    };
    let quantities = all.iter().filter_map(resolution).collect();
    Some(BaselineEntry { runs, splits: SPLITS, regressions, drifted, tells, refused, quantities })
}

/// Of each two neighbours one, at random.
fn halves(runs: usize, random: &mut SplitMix64) -> (Vec<usize>, Vec<usize>) {
    let pair = |n: usize| {
        let (one, other) = (2 * n, 2 * n + 1);
        if random.draw() >> 63 == 0 { (one, other) } else { (other, one) }
    };
    (0..runs / 2).map(pair).unzip()
}

fn is_worse(all: &[&Sampled], (base, now): (Vec<usize>, Vec<usize>), test: &TwoSamples) -> bool {
    let split: Vec<Sampled> = all.iter().map(|of| of.split(&base, &now)).collect();
    is_regression(&split, test)
}
