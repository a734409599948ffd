//! The figures of a comparison: ratios with their margins, and the percentiles of all conditions over each other.

use hdrhistogram::Histogram;
use tactus_model::bundle::Row;
use tactus_model::document::{CompareDocument, ComparedEntry};
use tactus_model::latency::Summary;
use tactus_model::number::{float, whole};
use tactus_model::outcome::{LatencyOutcome, Outcome};

use super::condition::{Beside, Condition, Run, side_by_side};
use crate::figure::{Axes, CURVES, Curve, Figure, Forested, PlotKind, SERIES, curves, forest, histograms};
use crate::units::{clean, shortened};

/// The most ratios of one figure.
const RATIOS: usize = 40;

/// All of them, for one condition against the base.
pub fn ratios(document: &CompareDocument, with: &str) -> Vec<Figure> {
    let own = document.scenarios.iter().filter(|one| one.with == with);
    let all: Vec<Forested> = own.flat_map(forested).collect();
    let title = format!("How many times worse {} is, with its interval", clean(with));
    all.chunks(RATIOS).map(|part| forest(&title, "times worse (1: as before; log.)", part)).collect()
}

fn forested(one: &ComparedEntry) -> Vec<Forested> {
    let of = |of: &tactus_model::document::QuantityEntry| {
        Some(Forested {
            name: format!("{}, {}", shortened(&clean(&one.name), 34), clean(&of.quantity)),
            estimate: of.ratio?,
            low: of.low,
            high: of.high,
            limit: Some(of.limit),
            outcome: of.between_sittings.or(of.outcome)?,
            word: of.between_sittings.or(of.outcome)?.word(),
        })
    };
    one.quantities.iter().filter_map(of).collect()
}

/// Percentiles of each scenario, a line for each condition.
pub fn percentiles(conditions: &[Condition]) -> Vec<Figure> {
    let figure = |(key, of): Beside| {
        let lines: Vec<Curve> = of
            .iter()
            .map(|(condition, runs)| Curve { name: clean(condition), points: curve(runs) })
            .filter(|line| !line.points.is_empty())
            .take(CURVES)
            .collect();
        let axes = Axes {
            across: "percentile (all runs together)",
            label,
            kind: PlotKind::Percentile,
            upright: "latency in us",
        };
        (lines.len() > 1).then(|| curves(&key.title(), axes, &lines, &[]))
    };
    side_by_side(conditions).into_iter().filter_map(figure).collect()
}

/// The latencies of each scenario, all runs of a condition together: the distributions of all conditions over each other.
pub fn distributions(conditions: &[Condition]) -> Vec<Figure> {
    let figure = |(key, of): Beside| {
        let rows: Vec<Row> =
            of.iter().filter_map(|(condition, runs)| together(condition, runs)).take(SERIES).collect();
        (rows.len() > 1).then(|| histograms(&key.title(), &rows.iter().collect::<Vec<_>>()))
    };
    side_by_side(conditions).into_iter().filter_map(figure).collect()
}

/// The latencies of several runs as those of one row with the name of their condition; `None` without
/// latencies.
fn together(condition: &str, runs: &[Run]) -> Option<Row> {
    let rows = runs.iter().map(|run| run.row);
    let measured: Vec<(&Row, &Summary)> =
        rows.filter_map(|row| Some((row, row.result.all().filter(|all| all.cycles > 0)?))).collect();
    let mut row = Row::of(measured.first()?.0.result.clone());
    (row.result.name, row.result.repeat) = (condition.to_owned(), None);
    let counts = measured.iter().flat_map(|(row, _)| row.histograms.series.values());
    row.histograms.series = counts.enumerate().map(|(n, counts)| (n.to_string(), counts.clone())).collect();
    let min = measured.iter().filter_map(|(_, all)| all.min_ns).min();
    let max = measured.iter().filter_map(|(_, all)| all.max_ns).max();
    if let Outcome::Latency(LatencyOutcome { all: Some(all), .. }) = &mut row.result.outcome {
        (all.min_ns, all.max_ns) = (min, max);
    }
    Some(row)
}

/// Latencies, corrected for missed periods, at which one of 2, 5, 10, 20, ... is above; in us.
fn curve(runs: &[Run]) -> Vec<(u64, f64)> {
    let mut all: Option<Histogram<u64>> = None;
    for run in runs {
        let own = run.row.corrected();
        match &mut all {
            Some(all) => drop(all.add(own)),
            None => all = Some(own),
        }
    }
    let Some(all) = all.filter(|all| !all.is_empty()) else { return Vec::new() };
    let steps = (0..16).flat_map(|decade| [1, 2, 5].map(|n| n * 10_u64.pow(decade)));
    let at = |n: u64| (n, float(all.value_at_quantile(1.0 - 1.0 / float(n))) / 1e3);
    steps.skip(1).take_while(|n| *n <= all.len()).map(at).collect()
}

/// `99.9 %` for one of a thousand.
fn label(n: u64) -> String {
    // A nine for each power of ten; a number between two powers has one digit more.
    let digits = usize::try_from(whole(float(n).log10().ceil())).unwrap_or(2);
    let text = format!("{:.*}", digits.saturating_sub(1).max(1), 100.0 - 100.0 / float(n.max(1)));
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_called_by_their_names() {
        let names = [2, 5, 10, 100, 200, 1_000, 10_000, 1_000_000].map(label);
        assert_eq!(names, ["50 %", "80 %", "90 %", "99 %", "99.5 %", "99.9 %", "99.99 %", "99.9999 %"]);
    }
}
