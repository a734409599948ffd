//! The quantities of two conditions: a value of each run, and those that are judged.

use tactus_model::Evidence;
use tactus_model::bundle::RowResult;
use tactus_model::latency::Summary;
use tactus_model::number::float;
use tactus_model::outcome::{Better, Unit, ValueResult, Yields};
use tactus_statistics::{Samples, median};

use super::condition::Run;
use super::margins::{FLOOR_NS, Margins};
use super::sittings::By;
use crate::row::{Quantity, fewest_periods, figures};

/// Periods above a quantile that every thread needs at least.
const ABOVE: f64 = 10.0;

/// A quantity of two conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Its name.
    pub quantity: String,
    /// Its unit.
    pub unit: Unit,
    /// Which of two values is the better one.
    pub better: Better,
    /// In each run of the base, and in each of the other.
    pub runs: [Vec<f64>; 2],
    /// Whether runs or sittings are judged, and by which test.
    pub by: By,
    /// The judged values of the base: one for each run or sitting.
    pub base: Vec<f64>,
    /// The judged values of the other.
    pub now: Vec<f64>,
    /// How many times worse it may be.
    pub limit: f64,
    /// Why it is not judged, though its runs are.
    pub not_judged: Option<String>,
    /// Whether that is because its runs are too short for it: then the quantity is left out.
    pub left_out: bool,
}

impl Sampled {
    /// Both sets, so that the second is the larger one where it is worse.
    pub fn samples(&self) -> Samples<'_> {
        match self.better {
            Better::Lower => Samples { base: &self.base, with: &self.now },
            Better::Higher => Samples { base: &self.now, with: &self.base },
        }
    }

    /// How many runs of the other are worse than each run of the base by more than the margin. The median of a sitting hides
    /// them.
    pub fn outside(&self) -> usize {
        let [base, now] = &self.runs;
        match self.better {
            Better::Lower => {
                let most = base.iter().copied().fold(0.0, f64::max) * self.limit;
                now.iter().filter(|value| **value > most).count()
            }
            Better::Higher => {
                let least = base.iter().copied().fold(f64::INFINITY, f64::min) / self.limit;
                now.iter().filter(|value| **value < least).count()
            }
        }
    }

    /// The medians of both; `None` if no run has it.
    pub fn medians(&self) -> [Option<f64>; 2] {
        [&self.base, &self.now].map(|runs| median(runs.clone()))
    }

    /// How much runs, or sittings, of one condition differ by themselves: the standard deviation of the logarithm, of both
    /// together.
    pub fn spread(&self) -> Option<f64> {
        let degrees = (self.base.len() + self.now.len()).checked_sub(2).filter(|degrees| *degrees > 0)?;
        let squares: f64 = [&self.base, &self.now]
            .into_iter()
            .map(|runs| {
                let logs: Vec<f64> = runs.iter().map(|value| value.ln()).collect();
                let mean = logs.iter().sum::<f64>() / float(logs.len().max(1) as u64);
                logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>()
            })
            .sum();
        let spread = (squares / float(degrees as u64)).sqrt();
        spread.is_finite().then_some(spread)
    }

    /// The same quantity of some runs or sittings of the base against others of it.
    pub fn split(&self, base: &[usize], now: &[usize]) -> Self {
        let of = |some: &[usize]| some.iter().filter_map(|one| self.base.get(*one)).copied().collect();
        Self { base: of(base), now: of(now), ..self.clone() }
    }
}

/// Every quantity of the runs.
pub fn sampled(base: &[Run], now: &[Run], margins: &Margins) -> Vec<Sampled> {
    match base.first().map(|run| run.row.result.outcome.yields()) {
        Some(Yields::Latency) => {
            let all = [Quantity::P50, Quantity::P99, Quantity::P999, Quantity::Maximum];
            all.into_iter().filter_map(|quantity| latency(quantity, base, now, margins)).collect()
        }
        Some(Yields::Values) => values(base, now, margins),
        None => Vec::new(),
    }
}

fn latency(quantity: Quantity, base: &[Run], now: &[Run], margins: &Margins) -> Option<Sampled> {
    // Less than a nanosecond has no ratio.
    let step = imported_step(base, now);
    let value = |run: &Run| {
        let ns = quantity.of(figures(&run.row.result)?)?;
        Some(float((ns - ns % step).max(1)))
    };
    let runs = [base, now].map(|runs| By::Runs.values(runs, value));
    if runs.iter().all(Vec::is_empty) {
        return None;
    }
    let by = By::of(base, now);
    let [own, other] = [base, now].map(|runs| by.values(runs, value));
    let by = by.for_values([&own, &other]);
    let fewest = base.iter().chain(now).map(|run| fewest_periods(&run.row.result)).min().unwrap_or(0);
    let least = quantity.part().map_or(0.0, |part| ABOVE / (1.0 - part));
    let whole = runs.each_ref().map(Vec::len) == [base.len(), now.len()];
    let left_out = float(fewest) + 0.5 < least;
    let not_judged = if !whole {
        Some("a run lacks this figure".into())
    } else if left_out {
        Some(format!("{fewest} periods of a thread are too few for it: {least:.0} are needed"))
    } else {
        None
    };
    // The floor in ns becomes a ratio to the base.
    let floor = 1.0 + float(floor_ns(base, now)) / median(own.clone()).unwrap_or(1.0);
    Some(Sampled {
        quantity: quantity.name().into(),
        unit: Unit::Ns,
        better: Better::Lower,
        limit: (1.0 + margins.of(quantity)).max(floor),
        runs,
        by,
        base: own,
        now: other,
        left_out: whole && left_out,
        not_judged,
    })
}

/// Imported values are cut to multiples of this, in ns. A tool that counts whole microseconds cuts the rest off, so the values
/// of the other tool are cut as well. That is exact, because a cut keeps the order of values. 1: nothing is cut.
fn imported_step(base: &[Run], now: &[Run]) -> u64 {
    let runs = || base.iter().chain(now).map(|run| &run.row.result);
    let is_whole = |result: &RowResult| figures(result).is_some_and(is_in_whole_us);
    let all_imported = runs().all(|result| result.evidence == Some(Evidence::Imported));
    if all_imported && runs().any(is_whole) { 1_000 } else { 1 }
}

/// Whether a file counts whole microseconds. Its quantiles may be ends of buckets; its extremes are exact.
fn is_in_whole_us(all: &Summary) -> bool {
    [all.min_ns, all.max_ns].iter().all(|ns| ns.is_some_and(|ns| ns % 1_000 == 0))
}

/// Smallest difference that counts, in ns: a microsecond, or two steps of a coarser clock.
fn floor_ns(base: &[Run], now: &[Run]) -> u64 {
    let step = |run: &Run| run.row.result.clock.as_ref().filter(|clock| clock.stands)?.step_ns;
    let coarsest = base.iter().chain(now).filter_map(step).max().unwrap_or(0);
    FLOOR_NS.max(coarsest.saturating_mul(2))
}

fn values(base: &[Run], now: &[Run], margins: &Margins) -> Vec<Sampled> {
    let items = base.first().map(|run| run.row.result.values()).unwrap_or_default();
    let sampled = |item: &ValueResult| {
        let value = |run: &Run| {
            run.row
                .result
                .values()
                .iter()
                .find(|own| own.is_of(item) && own.unit == item.unit)
                .map(|own| own.value)
        };
        let runs = [base, now].map(|runs| By::Runs.values(runs, value));
        let by = By::of(base, now);
        let [own, other] = [base, now].map(|runs| by.values(runs, value));
        let by = by.for_values([&own, &other]);
        let whole = runs.each_ref().map(Vec::len) == [base.len(), now.len()];
        let has_ratios = own.iter().chain(&other).all(|value| value.is_finite() && *value >= 0.0);
        let not_judged = if !whole {
            Some("not every run has it".into())
        } else if !has_ratios {
            Some("values below zero have no ratio".into())
        } else {
            None
        };
        Sampled {
            quantity: item.name(),
            unit: item.unit,
            better: item.better,
            limit: 1.0 + margins.values,
            runs,
            by,
            base: own,
            now: other,
            not_judged,
            left_out: false,
        }
    };
    items.iter().map(sampled).collect()
}
