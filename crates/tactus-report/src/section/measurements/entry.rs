//! The section.

use std::collections::BTreeSet;

use tactus_model::bundle::Contents;
use tactus_model::document::{Document, RepeatedEntry};
use tactus_model::outcome::Yields;

use super::{latency_columns, value_columns};
use crate::answer::without_rows;
use crate::part::{Grid, Item, List, Part, Reader, Tone};
use crate::section::Section;
use crate::stats::{Line, Repeated, comparison};

/// The table of some lines.
type Table = fn(&Contents, &[&Line]) -> Grid;
/// The table for each kind of result.
const TABLES: &[(Yields, Table)] =
    &[(Yields::Latency, latency_columns::grid), (Yields::Values, value_columns::grid)];
/// Explains quantiles of rows with missed periods.
const MISSED_PERIODS: &str = "a wake-up that is late by one interval or more misses periods, which are \
                              counted as overruns. Quantiles include these periods (corrected for \
                              coordinated omission); `--raw` adds the quantiles of the wake-ups that \
                              happened";

/// Explains a ratio.
const RATIOS: &str = "ratio: the value divided by the host's under the same conditions. It is in the \
                      interval below with at least 90 % certainty; that interval combines both 95 % \
                      intervals";

/// The section.
pub struct Measurements;
/// Its entry.
pub static ENTRY: Measurements = Measurements;

impl Section for Measurements {
    fn name(&self) -> &'static str {
        "measurements"
    }

    fn heading(&self) -> &'static str {
        "Measurements"
    }

    fn about(&self) -> &'static str {
        "Every measurement, and how it differs from the host under the same conditions. Minimum, mean and maximum are \
         exact; quantiles are within 0.1 % (`spin`: 0.15 % plus 0.5 ns)."
    }

    fn applies(&self, _: &Contents) -> bool {
        true
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let mut lines = comparison(contents);
        if lines.is_empty() {
            return vec![Part::Remark(without_rows(contents))];
        }
        // A long list that says nothing which the tables of the study do not.
        let all = lines.len();
        lines.retain(|line| reader != Reader::Terminal || !line.apart);
        let left = all - lines.len();
        let mut parts = Vec::new();
        for (yields, grid) in TABLES {
            let own: Vec<&Line> = lines.iter().filter(|line| line.yields == *yields).collect();
            if !own.is_empty() {
                parts.push(Part::Grid(once(grid(contents, &own))));
            }
        }
        parts.extend(remarks(&lines, reader));
        if left > 0 {
            let more = format!(
                "{left} measurements of the separation are in its tables; the other formats list them"
            );
            let items = vec![Item::led("note:", Tone::Quiet, more)];
            parts.push(Part::List(List { items, led: true }));
        }
        parts
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.repeated =
            comparison(contents).into_iter().filter_map(|line| repeated(contents, line)).collect();
    }
}

/// The common result of the runs of a repeated measurement.
fn repeated(contents: &Contents, line: Line) -> Option<RepeatedEntry> {
    let Repeated { runs, median } = line.repeated?;
    let first = &contents.rows.get(line.row)?.result;
    Some(RepeatedEntry {
        name: first.name.clone(),
        environment: line.environment,
        host: first.host.clone(),
        to: first.to.clone(),
        measurement: line.measurement.into(),
        evidence: line.evidence,
        runs: runs.len(),
        measured: runs.iter().filter(|run| run.has_numbers).count(),
        status: line.status,
        reason: line.reason,
        all: line.figures,
        median,
        values: line.values,
        verdict: line.verdict,
    })
}

/// Under what conditions an environment was measured stands at its first row alone.
fn once(mut grid: Grid) -> Grid {
    let mut said = BTreeSet::new();
    for group in &mut grid.groups {
        if group.conditions.as_ref().is_some_and(|(_, anchor)| !said.insert(anchor.clone())) {
            group.conditions = None;
        }
    }
    grid
}

/// Caveats to the rows, each sentence once.
fn remarks(lines: &[Line], reader: Reader) -> Vec<Part> {
    let mut cautions: Vec<&str> = lines.iter().filter_map(|line| line.against.as_ref()?.caution).collect();
    cautions.sort_unstable();
    cautions.dedup();
    let missed = lines.iter().any(|line| line.corrected().is_some()).then_some(MISSED_PERIODS);
    let compared = |line: &Line| line.against.is_some() && !line.values.is_empty();
    let ratios = lines.iter().any(compared).then_some(RATIOS);
    let all: Vec<&str> = missed.into_iter().chain(ratios).chain(cautions).collect();
    match reader {
        Reader::Terminal if all.is_empty() => Vec::new(),
        Reader::Terminal => {
            let items = all.into_iter().map(|text| Item::led("note:", Tone::Quiet, text)).collect();
            vec![Part::List(List { items, led: true })]
        }
        Reader::Markdown | Reader::Page => {
            all.into_iter().map(|text| Part::Remark(format!("{}.", capital(text)))).collect()
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
