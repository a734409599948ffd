//! Every limit of every measurement, and whether each measurement of which nothing is required was made: what test servers
//! count.

use tactus_model::Nanos;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::Outcome;
use tactus_model::event::RowStatus;
use tactus_model::number::float;
use tactus_model::outcome::RowEnd;
use tactus_model::plan::Require;

use crate::row::{Runs, all_found_nothing, broke, came_of, limit_words, mark, taken};
use crate::stats::{Line, comparison};
use crate::units::{clean, exactly, number};

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
        let nothing = all_found_nothing(runs);
        let result = contents.rows.get(line.row).map(|row| &row.result);
        of_line(line, result, nothing, broke(contents, runs), has_any && !waits)
    };
    let damage = contents.damage.first().map(|first| Case {
        name: "bundle: whole".into(),
        came: Came::Undecided,
        said: format!("the bundle is damaged: {first}"),
        measured: None,
    });
    lines.iter().flat_map(of).chain(damage).collect()
}

fn of_line(
    line: &Line,
    result: Option<&RowResult>,
    nothing: Option<&str>,
    broke: Option<String>,
    may_skip: bool,
) -> Vec<Case> {
    let name = format!("{}{}", clean(&line.name), mark(line.evidence));
    let Some(verdict) = &line.verdict else {
        let reason = line.reason.clone().unwrap_or_default();
        let (came, said) = match (line.status, broke) {
            (RowStatus::Skipped, _) if may_skip => (Came::Skipped, reason),
            (_, Some(broke)) => (Came::Undecided, broke),
            (_, None) if nothing.is_some() => (Came::Pass, clean(nothing.unwrap_or_default())),
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
                said: limit.reason.clone(),
                measured: taken(limit).map(|taken| (taken, limit.unit.clone())),
            }
        })
        .collect();
    if !cases.is_empty() {
        return cases;
    }
    let came = if verdict.outcome == Outcome::Pass { Came::Pass } else { Came::Undecided };
    let case = |what: &str| Case {
        name: format!("{name}: {what}"),
        came,
        said: verdict.reason.clone(),
        measured: None,
    };
    // No limit was judged: each of them is open.
    let asked = result.and_then(|result| result.require.as_ref()).map(asked).unwrap_or_default();
    match asked.iter().any(|one| !one.warns) {
        true => asked.iter().filter(|one| !one.warns).map(|one| case(&one.words())).collect(),
        false => vec![case("requirement")],
    }
}

/// A required limit.
pub struct Asked {
    /// What it limits: `max`, `p99.9`, the name of a value.
    pub quantity: String,
    /// The limit, in words.
    pub limit: String,
    /// Whether it only warns.
    pub warns: bool,
}

impl Asked {
    /// `max 40 us`.
    fn words(&self) -> String {
        format!("{} {}", clean(&self.quantity), clean(&self.limit))
    }
}

/// The limits of a requirement, those that warn behind the others, each list in the order of its verdict.
#[must_use]
pub fn asked(require: &Require) -> Vec<Asked> {
    fn of(require: &Require, warns: bool) -> Vec<Asked> {
        let time = |ns: Nanos| exactly(float(ns.0));
        let max = require.max.map(|limit| ("max", time(limit)));
        let jitter = require.jitter.map(|limit| ("jitter", time(limit)));
        let quantiles = require.quantiles().into_iter().map(|(name, _, limit)| (name, time(limit)));
        let tail = require.tail.map(|tail| ("tail", time(tail.max)));
        let overruns = require.overruns.map(|limit| ("overruns", number(float(limit))));
        let values = require.values.iter().map(|(item, bound)| (item.as_str(), bound.to_string()));
        let all = max.into_iter().chain(jitter).chain(quantiles).chain(tail).chain(overruns).chain(values);
        all.map(|(quantity, limit)| Asked { quantity: quantity.to_owned(), limit, warns }).collect()
    }
    let soft = require.warn.iter().flat_map(|warn| of(warn, true));
    of(require, false).into_iter().chain(soft).collect()
}
