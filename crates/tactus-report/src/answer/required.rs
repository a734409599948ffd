//! Whether what was required is kept.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{LimitEntry, Outcome, Side, Verdict};
use tactus_model::outcome::RowEnd;

use super::{kinds, next};
use crate::part::{Answer, Next, Tone};
use crate::row::{Runs, enough, time_words, under};
use crate::stats::Line;
use crate::units::{clean, duration, latency, number};

/// The most environments that are named.
pub(super) const NAMED: usize = 4;

/// A measurement of which something is required.
struct Judged<'a> {
    line: &'a Line,
    verdict: &'a Verdict,
    /// All of its runs.
    runs: Vec<&'a RowResult>,
}

fn judged<'a>(all: &Runs<'a>, line: &'a Line) -> Option<Judged<'a>> {
    let runs = all.of(line.row).iter().map(|run| &run.result).collect();
    Some(Judged { line, verdict: line.verdict.as_ref()?, runs })
}

/// The answer, where anything is required.
pub fn answer(contents: &Contents, lines: &[Line]) -> Option<Answer> {
    let all = Runs::new(contents);
    let judged = |line| judged(&all, line);
    let judged: Vec<Judged<'_>> = lines.iter().filter_map(judged).collect();
    let worst = judged.iter().map(|one| rank(one.verdict.outcome)).max()?;
    let own = || judged.iter().filter(|one| rank(one.verdict.outcome) == worst);
    // Of those that are alike the one that is nearest to its limit, or farthest beyond; what could be decided first.
    let decides = own().max_by(|one, other| weight(one).total_cmp(&weight(other)))?;
    let outcome = decides.verdict.outcome;
    let (word, tone) = match outcome {
        Outcome::Fail => ("NOT MET", Tone::Bad),
        Outcome::Warn => ("MET WITH A WARNING", Tone::Doubt),
        Outcome::Pass => ("MET", Tone::Good),
        Outcome::Inconclusive => ("NOT DECIDED", Tone::Doubt),
    };
    Some(Answer {
        word,
        tone,
        sentence: format!("{}.{}", said(decides), others(&judged, outcome)),
        evidence: kinds(own().filter_map(|one| one.line.evidence)),
        next: match outcome {
            Outcome::Fail | Outcome::Warn => next::step(contents),
            // Mending decides nothing.
            Outcome::Inconclusive => longer(decides),
            Outcome::Pass => None,
        },
    })
}

fn is_emulated(judged: &Judged<'_>) -> bool {
    judged.line.evidence == Some(Evidence::Emulated)
}

/// How much an outcome says against the machine.
const fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Warn => 1,
        Outcome::Inconclusive => 2,
        Outcome::Fail => 3,
    }
}

/// How much of its limit a measurement takes; of those that are not decided, whether time would.
fn weight(judged: &Judged<'_>) -> f64 {
    if judged.verdict.outcome == Outcome::Inconclusive {
        return match (is_emulated(judged), judged.verdict.longer_ns) {
            (true, _) => 0.0,
            (false, None) => 1.0,
            (false, Some(_)) => 2.0,
        };
    }
    deciding(judged).map_or(0.0, part)
}

/// The part of a limit that is taken.
fn part(limit: &LimitEntry) -> f64 {
    if limit.limit > 0.0 { limit.high / limit.limit } else { limit.high }
}

/// The limit that decides: of those that are broken, or else of all, the one that is taken most.
fn deciding<'a>(judged: &Judged<'a>) -> Option<&'a LimitEntry> {
    let side = match judged.verdict.outcome {
        Outcome::Fail => Some((Side::Broken, false)),
        Outcome::Warn => Some((Side::Broken, true)),
        Outcome::Pass | Outcome::Inconclusive => None,
    };
    // Values may be bounded from below: their reason says it.
    let of = |one: &&LimitEntry| {
        matches!(one.unit.as_str(), "ns" | "") && side.is_none_or(|of| of == (one.side, one.warns))
    };
    judged.verdict.limits.iter().filter(of).max_by(|one, other| part(one).total_cmp(&part(other)))
}

/// `host, loaded: max 187 us > 100 us (10 s, under scheduler load, inside a virtual machine)`.
fn said(judged: &Judged<'_>) -> String {
    let Judged { line, verdict, .. } = judged;
    let name = clean(&line.name);
    let relation = match verdict.outcome {
        Outcome::Fail | Outcome::Warn => ">",
        Outcome::Pass | Outcome::Inconclusive => "of at most",
    };
    // What is kept and does not pass, and why.
    let longer = verdict.longer_ns.map(enough);
    // The next step says for how long.
    let reason = longer.and_then(|longer| verdict.reason.strip_suffix(&longer)).unwrap_or(&verdict.reason);
    let doubt = reason.split_once(", but ").map(|(_, doubt)| format!(", but {doubt}"));
    let open = verdict.limits.iter().any(|limit| limit.side == Side::Open);
    let decides =
        deciding(judged).filter(|_| verdict.outcome != Outcome::Inconclusive || (doubt.is_some() && !open));
    let Some(limit) = decides else { return format!("{name}: {reason}") };
    let doubt = doubt.filter(|_| verdict.outcome == Outcome::Inconclusive).unwrap_or_default();
    let shown = |value: f64| if limit.unit == "ns" { latency(value) } else { number(value) };
    let quantity = clean(&limit.quantity);
    // Of a quantile the bound keeps the limit, and tables show what was measured.
    let bounded = limit.side == Side::Kept && quantity.starts_with("p99") && limit.low < limit.high;
    let taken = match bounded {
        true => format!("{} (at most {}, 95 %)", shown(limit.low), shown(limit.high)),
        false => shown(limit.high),
    };
    format!("{name}: {quantity} {taken} {relation} {} ({}){doubt}", shown(limit.limit), over(judged))
}

/// Over what a limit was judged: `5 runs of 10 s, under scheduler load, bare metal`.
fn over(judged: &Judged<'_>) -> String {
    let times: Vec<String> = judged.runs.iter().map(|run| time_words(run)).collect();
    let time = match times.as_slice() {
        [] => duration(judged.line.measured_ns),
        [one] => one.clone(),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!("{} runs of {first}", times.len())
        }
        all => {
            let sum = judged.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.measured_ns));
            format!("{} runs, {} in all", all.len(), duration(sum))
        }
    };
    let under = judged.runs.first().and_then(|run| under(run));
    let evidence = judged.line.evidence.map(|kind| kind.to_string());
    std::iter::once(time).chain(under).chain(evidence).collect::<Vec<_>>().join(", ")
}

/// What came of the other environments: "Met in host. Not decided in qemu."
fn others(judged: &[Judged<'_>], outcome: Outcome) -> String {
    let mut places: Vec<(&str, u8)> = Vec::new();
    for one in judged {
        let (name, own) = (one.line.subject.as_str(), rank(one.verdict.outcome));
        match places.iter_mut().find(|(place, _)| *place == name) {
            Some((_, worst)) => *worst = own.max(*worst),
            None => places.push((name, own)),
        }
    }
    let said = |of: Outcome, word: &str| {
        let names: Vec<String> =
            places.iter().filter(|(_, own)| *own == rank(of)).map(|(name, _)| clean(name)).collect();
        (!names.is_empty()).then(|| format!(" {word} in {}.", listed(&names, ", ")))
    };
    // One environment is no list; what decides is named already.
    let words = [
        (Outcome::Fail, "Not met"),
        (Outcome::Inconclusive, "Not decided"),
        (Outcome::Warn, "Met with a warning"),
        (Outcome::Pass, "Met"),
    ];
    if places.len() < 2 {
        return String::new();
    }
    let alone = places.iter().filter(|(_, own)| *own == rank(outcome)).count() == 1;
    words
        .iter()
        .filter(|(of, _)| !(alone && *of == outcome))
        .filter_map(|(of, word)| said(*of, word))
        .collect()
}

/// Names in a phrase, the first of them where there are many.
pub(super) fn listed(names: &[String], between: &str) -> String {
    match names.len() {
        many if many > NAMED => format!("{} and {} more", names[..NAMED].join(between), many - NAMED),
        _ => names.join(between),
    }
}

/// Where time alone would decide: how much of it.
fn longer(judged: &Judged<'_>) -> Option<Next> {
    let longer = judged.verdict.longer_ns?;
    // A run that a latency ends would be ended again.
    if judged.runs.iter().any(|run| run.ended == RowEnd::Broke) {
        return None;
    }
    let seconds = judged.line.measured_ns.saturating_add(longer).div_ceil(1_000_000_000);
    Some(Next {
        title: format!("Measure for {}", duration(seconds.saturating_mul(1_000_000_000))),
        command: format!("--duration {seconds}s"),
        why: format!("{} more of {} would decide it", duration(longer), clean(&judged.line.name)),
    })
}
