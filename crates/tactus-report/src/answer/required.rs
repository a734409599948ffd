//! Whether what was required is kept.

use tactus_model::bundle::{Contents, Row};
use tactus_model::document::{LimitEntry, Outcome, Side, Verdict};
use tactus_model::number::float;
use tactus_model::outcome::RowEnd;
use tactus_model::{Evidence, Nanos};

use super::{kinds, next};
use crate::part::{Answer, Next, Tone};
use crate::row::{Runs, enough, limit_words, taken_words, time_words, under, verdict};
use crate::stats::Line;
use crate::units::{clean, duration, exactly, listed, told};

/// A measurement of which something is required.
pub(super) struct Judged<'a> {
    pub(super) line: &'a Line,
    pub(super) verdict: &'a Verdict,
    /// All of its runs.
    pub(super) runs: Vec<&'a Row>,
}

pub(super) fn judged<'a>(all: &Runs<'a>, line: &'a Line) -> Option<Judged<'a>> {
    Some(Judged { line, verdict: line.verdict.as_ref()?, runs: all.of(line.row).to_vec() })
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
        sentence: format!("{}.{}", said(decides), others(&judged, decides)),
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
pub(crate) const fn rank(outcome: Outcome) -> u8 {
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
        return match judged.verdict.longer_ns {
            _ if is_emulated(judged) || !judged.line.has_numbers() => 0.0,
            None => 1.0,
            Some(_) => 2.0,
        };
    }
    deciding(judged).map_or(0.0, part)
}

/// The part of a limit that is taken.
pub(super) fn part(limit: &LimitEntry) -> f64 {
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
        Outcome::Fail | Outcome::Warn => " >",
        Outcome::Pass | Outcome::Inconclusive => ", limit",
    };
    // A limit may be kept and the verdict still not pass: the text after `, but ` says why.
    let longer = verdict.longer_ns.map(enough);
    // The next step says for how long.
    let reason = longer.and_then(|longer| verdict.reason.strip_suffix(&longer)).unwrap_or(&verdict.reason);
    let reason = quoted(reason, &judged.runs);
    let doubt = reason.split_once(", but ").map(|(_, doubt)| format!(", but {doubt}"));
    let open = verdict.limits.iter().any(|limit| limit.side == Side::Open);
    let decides =
        deciding(judged).filter(|_| verdict.outcome != Outcome::Inconclusive || (doubt.is_some() && !open));
    let Some(limit) = decides else {
        let asked = asked_of(judged).filter(|_| verdict.limits.is_empty() && line.has_numbers());
        let asked = asked.map(|asked| format!(" (asked for: {asked})")).unwrap_or_default();
        return format!("{name}: {reason}{asked}");
    };
    let doubt = doubt.filter(|_| verdict.outcome == Outcome::Inconclusive).unwrap_or_default();
    let quantity = clean(&limit.quantity);
    // A quantile is judged for each thread, and tables show that of all.
    let threads = judged.runs.first().map_or(0, |run| run.result.series().len());
    let of = if quantity.starts_with("p99") && threads > 1 { " of the worst thread" } else { "" };
    let most = limit_words(limit);
    let taken = taken_words(limit);
    format!("{name}: {quantity}{of} {taken}{relation} {most} ({}){doubt}", over(judged, limit))
}

/// The reason of a verdict with that of its run in quotes: this may be a sentence of a probe or a peer.
fn quoted(reason: &str, runs: &[&Row]) -> String {
    let own = runs.iter().filter_map(|run| run.result.reason.as_deref()).filter(|why| !why.is_empty());
    let told_of = own.filter_map(|why| Some((reason.rfind(&format!(": {why}"))?, why)));
    let Some((at, why)) = told_of.max_by_key(|(_, why)| why.len()) else { return reason.to_owned() };
    let (before, rest) = reason.split_at(at);
    let after = rest.get(": ".len() + why.len()..).unwrap_or_default();
    format!("{before}: {}{after}", told(why))
}

/// The limits on latencies that were asked for: `max 100 us, overruns 0`; `None` without any.
pub(super) fn asked_of(judged: &Judged<'_>) -> Option<String> {
    let require = judged.runs.first()?.result.require.as_ref()?;
    let time = |name: &str, ns: Nanos| format!("{name} {}", exactly(float(ns.0)));
    let max = require.max.map(|ns| time("max", ns));
    let jitter = require.jitter.map(|ns| time("jitter", ns));
    let quantiles = require.quantiles().into_iter().map(|(name, _, ns)| time(name, ns));
    let tail = require.tail.map(|tail| format!("{} in {}", time("tail", tail.max), duration(tail.horizon.0)));
    let overruns = require.overruns.map(|most| format!("overruns {most}"));
    let all: Vec<String> =
        max.into_iter().chain(jitter).chain(quantiles).chain(tail).chain(overruns).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Over what a limit was judged: `5 runs of 10 s, under scheduler load, bare metal`.
pub(super) fn over(judged: &Judged<'_>, limit: &LimitEntry) -> String {
    let all = judged.runs.len();
    let runs = match run_of(judged, limit) {
        Some(run) => vec![run],
        None => judged.runs.clone(),
    };
    let number = runs.first().and_then(|run| run.result.repeat).filter(|_| runs.len() < all);
    let number = number.map(|number| format!("run {number} of {all}"));
    let times: Vec<String> = runs.iter().map(|run| time_words(&run.result)).collect();
    let time = match times.as_slice() {
        [] => duration(judged.line.measured_ns),
        [one] => one.clone(),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!("{} runs of {first}", times.len())
        }
        all => {
            let sum = runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.result.measured_ns));
            format!("{} runs, {} in all", all.len(), duration(sum))
        }
    };
    let under = runs.first().and_then(|run| under(&run.result));
    let evidence = judged.line.evidence.map(|kind| kind.to_string());
    number.into_iter().chain([time]).chain(under).chain(evidence).collect::<Vec<_>>().join(", ")
}

/// The run whose figure a limit has; `None` if the figure is that of all runs, as for a maximum.
fn run_of<'a>(judged: &Judged<'a>, limit: &LimitEntry) -> Option<&'a Row> {
    if limit.quantity == "max" {
        return None;
    }
    let own = |row: &&'a Row| {
        let is_of = |one: &LimitEntry| (&one.quantity, one.warns) == (&limit.quantity, limit.warns);
        verdict(row)?.limits.iter().find(|one| is_of(one)).map(|one| one.high)
    };
    let is_it = |row: &&'a Row| own(row).is_some_and(|high| high.total_cmp(&limit.high).is_eq());
    let all_alike = judged.runs.iter().all(is_it);
    judged.runs.iter().copied().find(is_it).filter(|_| !all_alike)
}

/// The outcomes of the others: "Not met either: host, idle. Met in qemu."
fn others(judged: &[Judged<'_>], decides: &Judged<'_>) -> String {
    let outcome = decides.verdict.outcome;
    // The conditions name the measurements without numbers.
    let alike = judged.iter().filter(|one| {
        one.verdict.outcome == outcome && one.line.row != decides.line.row && one.line.has_numbers()
    });
    let alike: Vec<String> = alike.map(|one| clean(&one.line.name)).collect();
    let word = match outcome {
        Outcome::Fail => "Not met either",
        Outcome::Inconclusive => "Not decided either",
        Outcome::Warn => "With a warning as well",
        Outcome::Pass => "",
    };
    let mut words = String::new();
    if !alike.is_empty() && outcome != Outcome::Pass {
        words = format!(" {word}: {}.", listed(&alike, "; "));
    }
    let mut places: Vec<(&str, u8)> = Vec::new();
    for one in judged {
        let (name, own) = (one.line.subject.as_str(), rank(one.verdict.outcome));
        match places.iter_mut().find(|(place, _)| *place == name) {
            Some((_, worst)) => *worst = own.max(*worst),
            None => places.push((name, own)),
        }
    }
    // One environment is no list.
    if places.len() < 2 {
        return words;
    }
    for (of, word) in [
        (Outcome::Fail, "Not met"),
        (Outcome::Inconclusive, "Not decided"),
        (Outcome::Warn, "Met with a warning"),
        (Outcome::Pass, "Met"),
    ] {
        let own = places.iter().filter(|(_, own)| *own == rank(of));
        let names: Vec<String> = own.map(|(name, _)| clean(name)).collect();
        // The deciding measurement is named already, and so are those with the same outcome.
        let is_told = of == outcome && (of != Outcome::Pass || names.len() == 1);
        if !names.is_empty() && !is_told {
            words += &format!(" {word} in {}.", listed(&names, ", "));
        }
    }
    words
}

/// Where time alone would decide: how much of it.
fn longer(judged: &Judged<'_>) -> Option<Next> {
    let longer = judged.verdict.longer_ns?;
    // A run that a latency ends would be ended again.
    if judged.runs.iter().any(|run| run.result.ended == RowEnd::Broke) {
        return None;
    }
    let seconds = judged.line.measured_ns.saturating_add(longer).div_ceil(1_000_000_000);
    Some(Next {
        title: format!("Measure for {}", duration(seconds.saturating_mul(1_000_000_000))),
        command: format!("--duration {seconds}s"),
        why: format!("{} more of {} would decide it", duration(longer), clean(&judged.line.name)),
    })
}
