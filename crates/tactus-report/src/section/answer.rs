//! The answer to the first question, and all environments side by side.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row};
use tactus_model::document::Document;
use tactus_model::number::float;

use super::{Section, degradation};
use crate::answer::{answer, most_measured, question};
use crate::figure::{CURVES, Figure, Reference, SERIES, exceedances};
use crate::part::{Part, Reader};
use crate::row::{figures, worst_runs};
use crate::units::latency;

/// The section.
pub struct First;
/// Its entry.
pub static ENTRY: First = First;

impl Section for First {
    fn name(&self) -> &'static str {
        "answer"
    }

    fn heading(&self) -> &'static str {
        "The answer"
    }

    fn question(&self, contents: &Contents) -> &'static str {
        question(contents)
    }

    fn about(&self) -> &'static str {
        "Share of wake-ups at least this late, corrected for missed periods. The further left a line ends, the better. \
         Dotted vertical lines are limits."
    }

    fn applies(&self, _: &Contents) -> bool {
        true
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Page => {
                let latencies: Vec<Figure> = side_by_side(contents).into_iter().collect();
                let (drawn, read) = match latencies.is_empty() {
                    true => (degradation::drawn(contents), degradation::FIGURES),
                    false => (latencies, self.about()),
                };
                let read = (!drawn.is_empty()).then(|| Part::Remark(read.into()));
                let figures = drawn.into_iter().map(Part::Figure);
                std::iter::once(Part::Answer(answer(contents))).chain(figures).chain(read).collect()
            }
            // Its first line is the answer.
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.answer = Some(answer(contents).into());
    }

    fn draws(&self) -> bool {
        true
    }

    fn opens(&self) -> bool {
        true
    }
}

/// One figure of all environments: all rows where those are few, else the worst of each environment.
fn side_by_side(contents: &Contents) -> Option<Figure> {
    drawn_together(contents, |_| true)
}

/// The same of those rows alone.
pub(crate) fn drawn_together(contents: &Contents, is_shown: impl Fn(&Row) -> bool) -> Option<Figure> {
    let latencies: Vec<&Row> = worst_runs(contents)
        .into_iter()
        .filter(|row| figures(&row.result).is_some() && is_shown(row))
        .collect();
    // Different kinds of measurement do not belong on one axis.
    let kind = |row: &&Row| row.result.measurement.kind();
    let own = most_measured(latencies.iter().map(kind))?;
    let mut rows: Vec<&Row> = latencies.into_iter().filter(|row| kind(row) == own).collect();
    let deadlines = deadlines(&rows);
    let mut title = "All measurements side by side";
    let sides = sides(contents);
    if !sides.is_empty() {
        rows = worst(&rows, |row| sides.get(row.result.name.as_str()).cloned().unwrap_or_default());
        title = "The measurement with the largest latency, with each setting and without it";
    } else if rows.len() > SERIES {
        rows = worst(&rows, subject);
        title = "All environments side by side, each with its largest latency";
    }
    rows.truncate(CURVES);
    Some(exceedances(title, &rows, &deadlines))
}

/// The scenarios of settings under test, with the side of its setting on which each is.
fn sides(contents: &Contents) -> BTreeMap<&str, String> {
    let mut sides = BTreeMap::new();
    for proof in &contents.plan.proof {
        for (names, word) in [(&proof.with, "with"), (&proof.without, "without")] {
            sides.extend(names.iter().map(|name| (name.as_str(), format!("{} {word}", proof.setting))));
        }
    }
    sides
}

/// The row with the largest latency of each group.
fn worst<'a>(rows: &[&'a Row], group: impl Fn(&Row) -> String) -> Vec<&'a Row> {
    let largest = |row: &Row| figures(&row.result).and_then(|all| all.max_ns);
    let mut worst: Vec<&Row> = Vec::new();
    for row in rows {
        let place = group(row);
        match worst.iter_mut().find(|known| group(known) == place) {
            Some(known) if largest(row) > largest(known) => *known = row,
            Some(_) => {}
            None => worst.push(row),
        }
    }
    worst
}

/// The subject of the latency.
fn subject(row: &Row) -> String {
    row.result.to.clone().unwrap_or_else(|| row.result.environment_key())
}

/// The limits on the largest latency of these rows, each once.
fn deadlines(rows: &[&Row]) -> Vec<Reference> {
    let mut limits: Vec<u64> =
        rows.iter().filter_map(|row| row.result.require.as_ref()?.max).map(|limit| limit.0).collect();
    limits.sort_unstable();
    limits.dedup();
    let named = |ns| Reference { text: format!("required: at most {}", latency(float(ns))), ns };
    limits.into_iter().map(named).collect()
}
