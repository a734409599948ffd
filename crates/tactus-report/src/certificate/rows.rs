//! The table of the measurements.

use std::cmp::Reverse;

use super::{Judged, short};
use crate::answer::rank;
use crate::row::{Quantity, is_corrected};
use crate::stats::Line;
use crate::units::{NONE, beginning, count, duration, latency_or_none};

/// Most rows that the first page has room for.
const MOST: usize = 8;
/// Characters of a name that are looked at.
const NAME: usize = 120;

/// Names of its columns, and whether numbers stand there.
pub const HEAD: [(&str, bool); 9] = [
    ("Measurement", false),
    ("Place", false),
    ("Load", false),
    ("Worst", true),
    ("p99.9", true),
    ("Missed", true),
    ("Cycles", true),
    ("Duration", true),
    ("Verdict", false),
];

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Its rows, a text for each column.
    pub rows: Vec<[String; HEAD.len()]>,
    /// Data that the table lacks, and how to read it.
    pub remark: String,
}

/// The measurements that have a limit, the worst first; `others` have none.
pub fn rows(judged: &[Judged<'_>], others: usize) -> Rows {
    let mut lines: Vec<&Line> = judged.iter().map(|one| one.line).collect();
    let worst = |line: &Line| line.figures.as_ref().and_then(|all| all.max_ns);
    let outcome = |line: &Line| line.verdict.as_ref().map(|verdict| rank(verdict.outcome));
    // One that is worse than another never gives way to it.
    lines.sort_by_key(|line| Reverse((outcome(line), worst(line))));
    let mut said = Vec::new();
    if let Some(more) = lines.len().checked_sub(MOST).filter(|more| *more > 0) {
        said.push(format!("And {} more, none with a worse verdict: see the report.", count_of(more)));
    }
    match others {
        0 => {}
        1 => said.push("One measurement has no limit, and is not shown here.".into()),
        others => {
            said.push(format!("{} measurements have no limit, and are not shown here.", count_of(others)));
        }
    }
    if lines.iter().any(|line| line.figures.as_ref().is_some_and(is_corrected)) {
        said.push("p99.9 is corrected for missed periods.".into());
    }
    Rows { rows: lines.iter().take(MOST).map(|line| row(line)).collect(), remark: said.join(" ") }
}

fn count_of(number: usize) -> String {
    count(u64::try_from(number).unwrap_or(u64::MAX))
}

fn row(line: &Line) -> [String; HEAD.len()] {
    let figures = line.figures.as_ref();
    let name = |text: &str| beginning(&short(text), NAME);
    let figure = |of: Quantity| latency_or_none(figures.and_then(|all| of.of(all)));
    let known = |number: Option<u64>| number.map_or_else(|| NONE.to_owned(), count);
    [
        name(&line.name),
        name(&line.subject),
        name(&line.load),
        figure(Quantity::Maximum),
        figure(Quantity::P999),
        known(figures.and_then(|all| all.overruns)),
        known(figures.map(|all| all.cycles)),
        lasted(line),
        line.verdict.as_ref().map_or(NONE, |verdict| verdict.outcome.word()).to_owned(),
    ]
}

/// How long it was measured: `10 min`, `3 x 10 min`.
fn lasted(line: &Line) -> String {
    if !line.has_numbers() {
        return NONE.into();
    }
    let times: Vec<u64> = line.lasted().collect();
    match times.as_slice() {
        [] => NONE.into(),
        [one] => duration(*one),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!("{} x {}", times.len(), duration(*first))
        }
        all => format!("{} runs", all.len()),
    }
}
