//! Every limit of every measurement, and whether each measurement of which nothing is required was made: what test servers
//! count.

use tactus_model::bundle::Contents;
use tactus_model::document::Outcome;
use tactus_model::event::RowStatus;
use tactus_model::outcome::RowEnd;

use crate::row::{Runs, broke, came_of, limit_words, mark};
use crate::stats::{Line, comparison};
use crate::units::clean;

/// How a case came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was shown to hold.
    Pass,
    /// It was shown not to hold.
    Fail,
    /// This machine cannot measure it, and nothing is required of it.
    Skipped,
    /// Nothing was shown.
    Undecided,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// `host idle: max 100 us`, or `host idle: measured`.
    pub name: String,
    /// How it came out.
    pub came: Came,
    /// Why.
    pub said: String,
    /// The figure that was measured, and its unit (`ns`, or empty for a number).
    pub measured: Option<(f64, String)>,
}

/// The cases of a run, in the order of the bundle.
#[must_use]
pub fn cases(contents: &Contents) -> Vec<Case> {
    let all = Runs::new(contents);
    let lines = comparison(contents);
    let has_any = lines.iter().any(Line::has_numbers);
    let of = |line: &Line| {
        let runs = all.of(line.row);
        let waits = runs.iter().any(|run| run.result.ended == RowEnd::Waiting);
        of_line(line, broke(contents, runs), has_any && !waits)
    };
    let damage = contents.damage.first().map(|first| Case {
        name: "bundle: whole".into(),
        came: Came::Undecided,
        said: format!("the bundle is damaged: {first}"),
        measured: None,
    });
    lines.iter().flat_map(of).chain(damage).collect()
}

fn of_line(line: &Line, broke: Option<String>, may_skip: bool) -> Vec<Case> {
    let name = format!("{}{}", clean(&line.name), mark(line.evidence));
    let Some(verdict) = &line.verdict else {
        let reason = line.reason.clone().unwrap_or_default();
        let (came, said) = match (line.status, broke) {
            (RowStatus::Skipped, _) if may_skip => (Came::Skipped, reason),
            (_, Some(broke)) => (Came::Undecided, broke),
            (_, None) if !line.has_numbers() => (Came::Undecided, reason),
            (_, None) => (Came::Pass, String::new()),
        };
        return vec![Case { name: format!("{name}: measured"), came, said, measured: None }];
    };
    let limits = verdict.limits.iter().filter(|limit| !limit.warns);
    let cases: Vec<Case> = limits
        .map(|limit| {
            let came = match came_of(limit, verdict) {
                Outcome::Fail => Came::Fail,
                Outcome::Inconclusive => Came::Undecided,
                Outcome::Pass | Outcome::Warn => Came::Pass,
            };
            Case {
                name: format!("{name}: {} {}", clean(&limit.quantity), limit_words(limit)),
                came,
                said: verdict.reason.clone(),
                measured: Some((limit.high, limit.unit.clone())),
            }
        })
        .collect();
    if !cases.is_empty() {
        return cases;
    }
    let came = if verdict.outcome == Outcome::Pass { Came::Pass } else { Came::Undecided };
    vec![Case { name: format!("{name}: requirement"), came, said: verdict.reason.clone(), measured: None }]
}
