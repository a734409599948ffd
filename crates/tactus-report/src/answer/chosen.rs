//! The question that a run answers. With a deadline: whether it was met. Without one: the benefit of
//! settings, or else the latencies found. A run of values without latencies answers what environments cost.

use std::collections::BTreeSet;

use tactus_model::bundle::Contents;

use super::conditions::{conditions, damaged};
use super::headline::without_rows;
use super::{costs, held, next, required, tested};
use crate::part::{Answer, Tone};
use crate::stats::{Line, comparison};
use crate::units::{listed, told};

/// The question that a run answers.
#[must_use]
pub fn question(contents: &Contents) -> &'static str {
    match answer(contents).word {
        costs::SHOWN | costs::NONE_SHOWN | costs::NOT_JUDGED => "What does each environment cost?",
        tested::SHOWN | tested::NONE_SHOWN | tested::NOT_TESTED => {
            tested::question(contents.plan.proof.len())
        }
        _ => "Can this machine meet the deadline?",
    }
}

/// The answer of a run.
#[must_use]
pub fn answer(contents: &Contents) -> Answer {
    let answer = found(contents);
    let typed = contents.manifest.asked.as_ref().map_or(&[][..], |asked| &asked.command);
    let typed = if contents.own || next::is_harmless(typed) { typed } else { &[] };
    Answer { next: answer.next.map(|next| next::whole(typed, next)), ..answer }
}

fn found(contents: &Contents) -> Answer {
    let lines = comparison(contents);
    let under_conditions = |answer: Answer| {
        let mut said = conditions(contents, &lines, &answer.sentence);
        said.insert(0, answer.sentence);
        Answer { sentence: said.join(" "), ..answer }
    };
    if let Some(decided) = required::answer(contents, &lines) {
        return under_conditions(decided);
    }
    if let Some(worth) = tested::answer(contents) {
        let damaged = damaged(contents).map(|said| format!(" {said}")).unwrap_or_default();
        return Answer { sentence: worth.sentence + &damaged, ..worth };
    }
    if let Some(held) = held::answer(contents, &lines) {
        return under_conditions(Answer { next: next::step(contents), ..held });
    }
    if let Some(cost) = costs::answer(contents) {
        return under_conditions(cost);
    }
    let has_numbers = lines.iter().any(Line::has_numbers);
    if let Some(below) = held::below(contents).filter(|_| !has_numbers) {
        return under_conditions(below);
    }
    let sentence = match has_numbers {
        true => {
            "no latency was measured, and no deadline was given: the values are in the tables below.".into()
        }
        false if lines.is_empty() => without_rows(contents),
        false => nothing_measured(&lines),
    };
    under_conditions(Answer {
        word: "NO ANSWER",
        tone: Tone::Doubt,
        sentence,
        evidence: Vec::new(),
        next: None,
    })
}

/// Nothing was measured, and each reason for it once: in quotes, because most are sentences of a probe or a peer.
fn nothing_measured(lines: &[Line]) -> String {
    const NOTHING: &str = "nothing was measured";
    let mut known = BTreeSet::from([NOTHING]);
    let reasons = lines.iter().filter_map(|line| line.reason.as_deref());
    let reasons: Vec<String> = reasons.filter(|reason| known.insert(*reason)).map(told).collect();
    match reasons.is_empty() {
        true => format!("{NOTHING}."),
        false => format!("{NOTHING}: {}.", listed(&reasons, "; ")),
    }
}
