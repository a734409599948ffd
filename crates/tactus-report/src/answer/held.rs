//! The latencies found without a required deadline.

use std::collections::BTreeSet;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row};
use tactus_model::number::float;

use super::scale::scale;
use super::{kinds, most_measured};
use crate::part::{Answer, Tone};
use crate::row::found_nothing;
use crate::stats::Line;
use crate::units::{NAMED, TOLD, beginning, clean, duration, latency, listed};

/// The word of an answer without a limit.
const NO_LIMIT: &str = "NO LIMIT GIVEN";
/// How to ask.
const ASK: &str = "Give your limit with --max, as in `tactus run -i 1ms --max 100us`.";
/// Advice for imported results.
const MEASURE: &str = "tactus did not measure it, so it proves no deadline: `tactus run --max 100us` \
                       measures here and checks the limit.";

/// The answer, where latencies were measured.
pub fn answer(contents: &Contents, lines: &[Line]) -> Option<Answer> {
    let latencies = || lines.iter().filter(|line| line.figures.is_some());
    let kind = most_measured(latencies().map(|line| line.measurement))?;
    let own: Vec<&Line> = latencies().filter(|line| line.measurement == kind).collect();
    let evidence = kinds(own.iter().filter_map(|line| line.evidence));
    let emulated = evidence.first() == Some(&Evidence::Emulated);
    let ask = if evidence.as_slice() == [Evidence::Imported] { MEASURE } else { ASK };
    let said: Vec<String> = evidence.iter().map(|kind| held(&own, *kind)).collect();
    Some(Answer {
        word: NO_LIMIT,
        tone: if emulated { Tone::Doubt } else { Tone::Quiet },
        sentence: format!("{}{} {ask}", said.join(" "), scale_of(contents, &own).unwrap_or_default()),
        evidence,
        next: None,
    })
}

/// The answer where instruments saw nothing above their threshold, and nothing else was measured.
pub fn below(contents: &Contents) -> Option<Answer> {
    let said = |row: &Row| {
        let lasted = match row.result.measured_ns {
            0 => "an unknown time".into(),
            ns => duration(ns),
        };
        Some(format!(
            "{}: {} ({lasted}, imported)",
            clean(&row.result.name),
            clean(&beginning(found_nothing(&row.result)?, TOLD))
        ))
    };
    let said: Vec<String> = contents.rows.iter().filter_map(said).collect();
    (!said.is_empty()).then(|| Answer {
        word: NO_LIMIT,
        tone: Tone::Quiet,
        sentence: format!("{}. {MEASURE}", listed(&said, ". ")),
        evidence: vec![Evidence::Imported],
        next: None,
    })
}

/// How much that is, of wake-ups on a real processor.
fn scale_of(contents: &Contents, lines: &[&Line]) -> Option<String> {
    let real = |line: &&&Line| matches!(line.evidence, Some(Evidence::BareMetal | Evidence::VirtualHost));
    let own: Vec<&Line> =
        lines.iter().filter(real).filter(|line| line.measurement == "timer").copied().collect();
    let periods: BTreeSet<u64> =
        own.iter().filter_map(|line| Some(contents.rows.get(line.row)?.result.interval_ns)).collect();
    let period = periods.first().filter(|_| periods.len() == 1);
    scale(&own, period.copied()).map(|said| format!(" {said}"))
}

/// "Held within 26.1 us (10 s, bare metal) by host; 31.0 us by podman."
fn held(lines: &[&Line], evidence: Evidence) -> String {
    let mut places: Vec<(&str, u64, &str)> = Vec::new();
    let mut times: BTreeSet<u64> = BTreeSet::new();
    for line in lines.iter().filter(|line| line.evidence == Some(evidence)) {
        times.extend(line.lasted());
        let Some(max) = line.figures.as_ref().and_then(|all| all.max_ns) else { continue };
        let about = if evidence == Evidence::Imported { about(line) } else { "" };
        match places.iter_mut().find(|(place, ..)| *place == line.subject) {
            Some((_, most, said)) if max > *most => (*most, *said) = (max, about),
            Some(_) => {}
            None => places.push((&line.subject, max, about)),
        }
    }
    // Where not all are named, those are that were worst.
    if places.len() > NAMED {
        places.sort_by_key(|(_, most, _)| std::cmp::Reverse(*most));
    }
    let names: Vec<String> = places
        .iter()
        .map(|(place, max, about)| format!("{} in {}{about}", latency(float(*max)), clean(place)))
        .collect();
    let what = match evidence {
        Evidence::Emulated => "Under emulation, which says nothing about hardware, the largest latency was",
        Evidence::Imported => "In what was imported, the largest latency was",
        Evidence::BareMetal | Evidence::VirtualHost => "The largest latency was",
    };
    let place = if evidence == Evidence::Emulated { String::new() } else { format!(", {evidence}") };
    // An imported file need not say it.
    let [shortest, longest] = [times.first(), times.last()].map(|ns| ns.map_or(0, |ns| *ns));
    let lasted = match (duration(shortest), duration(longest)) {
        _ if shortest == 0 => "for an unknown time".to_owned(),
        (short, long) if short == long => short,
        (short, long) => format!("{short} to {long}"),
    };
    if names.is_empty() {
        return format!("The largest latency is unknown ({lasted}{place}).");
    }
    let names = listed(&names, ", ");
    format!("{what} {names} ({lasted}{place}).")
}

/// A caveat to an imported maximum.
const fn about(line: &Line) -> &'static str {
    match (line.broke, line.ordinary) {
        (true, true) => " (it ended the run; SCHED_OTHER, not real-time)",
        (true, false) => " (it ended the run)",
        (false, true) => " (SCHED_OTHER, not real-time)",
        (false, false) => "",
    }
}
