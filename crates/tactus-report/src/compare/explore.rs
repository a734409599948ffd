//! A search for differences of any size, also in single threads. Its finds are candidates.

use tactus_model::document::ExploredEntry;
use tactus_model::latency::Summary;
use tactus_model::number::float;
use tactus_model::outcome::SeriesResult;
use tactus_statistics::{FALSE_FINDS, Samples, TwoSamples, benjamini_hochberg, typical_ratio};

use super::condition::Run;
use super::matched::Matched;
use super::sittings::By;
use crate::row::{Quantity, figures};

/// The differences, the surest first: in the long run at most a tenth of them are false.
pub fn explored(all: &[Matched], test: &TwoSamples) -> Vec<ExploredEntry> {
    let mut tried: Vec<(ExploredEntry, f64)> = Vec::new();
    for one in all.iter().filter(|one| one.refused.is_none()) {
        let by = By::of(&one.base, &one.now);
        let mut try_it = |quantity: String, samples: Samples| {
            let p = 2.0 * by.larger_p(test, samples, 1.0).min(by.smaller_p(test, samples, 1.0));
            let entry = ExploredEntry {
                name: one.key.name.clone(),
                environment: one.key.environment.clone(),
                with: one.with.to_owned(),
                quantity,
                ratio: typical_ratio(samples),
                q: 1.0,
            };
            tried.push((entry, p.min(1.0)));
        };
        for of in one.sampled.iter().filter(|of| of.not_judged.is_none()) {
            try_it(of.quantity.clone(), of.samples());
        }
        for (name, base, now) in further(by, &one.base, &one.now) {
            try_it(name, Samples { base: &base, with: &now });
        }
    }
    let p: Vec<f64> = tried.iter().map(|(_, p)| *p).collect();
    let mut found: Vec<ExploredEntry> = tried
        .into_iter()
        .zip(benjamini_hochberg(&p))
        .map(|((entry, _), q)| ExploredEntry { q, ..entry })
        .filter(|entry| entry.q <= FALSE_FINDS)
        .collect();
    found.sort_by(|one, other| one.q.total_cmp(&other.q));
    found
}

/// The mean, and the figures of each thread where there are several.
fn further(by: By, base: &[Run], now: &[Run]) -> Vec<(String, Vec<f64>, Vec<f64>)> {
    let mut all = Vec::new();
    let mut add = |name: String, value: &dyn Fn(&Run) -> Option<f64>| {
        if base.iter().chain(now).all(|run| value(run).is_some()) {
            all.push((name, by.values(base, value), by.values(now, value)));
        }
    };
    add("mean".into(), &|run| figures(&run.row.result)?.mean_ns);
    let series: &[SeriesResult] = base.first().map(|run| run.row.result.series()).unwrap_or_default();
    for own in series.iter().filter(|_| series.len() > 1) {
        for quantity in [Quantity::P50, Quantity::P99, Quantity::P999, Quantity::Maximum] {
            let of = |summary: &Summary| quantity.of(summary).map(|ns| float(ns.max(1)));
            add(format!("{} of {}", quantity.name(), own.key), &|run| {
                let series = run.row.result.series().iter();
                series.filter(|other| other.key == own.key).find_map(|other| of(&other.summary))
            });
        }
    }
    all
}
