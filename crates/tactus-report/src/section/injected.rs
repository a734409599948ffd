//! The real effects of the faults of a run, beside the requested ones.

use std::collections::{HashMap, HashSet};

use tactus_model::bundle::{Contents, InjectedIn};
use tactus_model::number::float;

use super::Section;
use crate::part::{Cell, Head, Mark, Part, Reader, Table, Tone};
use crate::row::never_made;
use crate::units::{NONE, clean, count, duration, latency, latency_or_none};

/// The section.
pub struct Injected;
/// Its entry.
pub static ENTRY: Injected = Injected;

impl Section for Injected {
    fn name(&self) -> &'static str {
        "injected"
    }

    fn heading(&self) -> &'static str {
        "Injected faults"
    }

    fn about(&self) -> &'static str {
        "The faults of the run as they were made, beside what was requested: how often, and for how long the \
         longest one held its CPU. A dash: not reported."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        let faults: usize = contents.rows.iter().map(|row| row.result.injected.len()).sum();
        Some(format!("{faults} fault{} requested", if faults == 1 { "" } else { "s" }))
    }

    fn applies(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| !row.result.injected.is_empty())
    }

    /// A requested fault that never came is easily overlooked: its rows look like those without it.
    fn headline(&self, contents: &Contents) -> Vec<String> {
        // Every measured environment and every run reports it, and runs of scenarios take turns.
        let mut never: Vec<String> = Vec::new();
        for result in contents.rows.iter().map(|row| &row.result) {
            let said = never_made(result).map(|never| format!("{never} ({})", clean(&result.name)));
            never.extend(said.filter(|said| !never.contains(said)));
        }
        let more = match never.len() {
            0 | 1 => String::new(),
            2 => ", and so in one further scenario".into(),
            all => format!(", and so in {} further scenarios", all - 1),
        };
        let said = |first| {
            format!(
                "A fault was requested but not made: {first}{more}. The measurements there do not show its \
                    effect."
            )
        };
        never.first().map(said).into_iter().collect()
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        vec![Part::Table(table(contents))]
    }
}

/// A fault of a scenario, over all its runs.
struct Line<'a> {
    scenario: &'a str,
    fault: &'a InjectedIn,
    /// How often it was made, in each run.
    times: Vec<Option<u64>>,
    longest_ns: Option<u64>,
}

/// Every fault of every scenario. All measurements of a run tell of all its faults.
fn lines(contents: &Contents) -> Vec<Line<'_>> {
    // By what they say: a stranger may have written very many.
    let mut seen = HashSet::new();
    let (mut lines, mut first): (Vec<Line<'_>>, HashMap<_, usize>) = (Vec::new(), HashMap::new());
    for result in contents.rows.iter().map(|row| &row.result) {
        for fault in &result.injected {
            if !seen.insert((result.name.as_str(), result.repeat, format!("{fault:?}"))) {
                continue;
            }
            let (times, longest_ns) = (fault.injected.times, fault.injected.longest_ns);
            let at = *first.entry((result.name.as_str(), asked(fault))).or_insert(lines.len());
            // Within one run, two that are alike are two.
            match lines.get_mut(at).filter(|_| result.repeat.is_some_and(|run| run > 1)) {
                Some(line) => {
                    line.times.push(times);
                    line.longest_ns = line.longest_ns.max(longest_ns);
                }
                None => lines.push(Line { scenario: &result.name, fault, times: vec![times], longest_ns }),
            }
        }
    }
    lines
}

/// A key that is equal for the same fault, whatever its outcome.
fn asked(at: &InjectedIn) -> String {
    let (own, fault) = ((&at.environment, &at.outside), &at.injected);
    format!("{:?}", (own, &fault.kind, &fault.way, &fault.cpus, fault.length_ns, fault.every_ns))
}

/// A table of every fault of every scenario.
fn table(contents: &Contents) -> Table {
    let row = |line: Line<'_>| {
        let fault = &line.fault.injected;
        let outside = line.fault.outside.to_string();
        let cpus = if outside.is_empty() {
            format!("its own CPU {}", fault.cpus)
        } else if outside == fault.cpus.to_string() {
            format!("CPU {outside}")
        } else {
            format!("CPU {outside} ({} inside)", fault.cpus)
        };
        [
            clean(line.scenario),
            format!("{} in {}, {cpus}", clean(&fault.kind), clean(&line.fault.environment)),
            clean(&fault.way),
            match (fault.length_ns, fault.every_ns) {
                (0, _) => "unknown".to_owned(),
                (length, 0) => latency(float(length)),
                (length, every) => format!("{} every {}", latency(float(length)), duration(every)),
            },
        ]
        .map(Cell::from)
        .into_iter()
        .chain([made(&line.times), latency_or_none(line.longest_ns).into()])
        .collect()
    };
    let columns = ["scenario", "fault", "by", "asked for", "times", "longest held"];
    Table::whole("", Head::all(columns), lines(contents).into_iter().map(row).collect())
}

/// How often it was made. That it never was is not to be overlooked.
fn made(runs: &[Option<u64>]) -> Cell {
    let never = runs.iter().filter(|times| **times == Some(0)).count();
    match (never, runs.len()) {
        (0, _) => times(runs).into(),
        (never, all) if never == all => doubted(format!("{}: never made", times(runs))),
        (never, all) => doubted(format!("{}: never made in {never} of {all}", times(runs))),
    }
}

fn doubted(words: String) -> Cell {
    Cell::marked(words, Mark::Tone(Tone::Doubt))
}

/// How often, in one run or in each of several.
fn times(runs: &[Option<u64>]) -> String {
    let said = |times: Option<u64>| times.map_or_else(|| NONE.into(), count);
    match (runs.iter().min(), runs.iter().max()) {
        (Some(least), Some(most)) if least != most => {
            format!("{} to {} in {} runs", said(*least), said(*most), runs.len())
        }
        (Some(all), _) if runs.len() > 1 => format!("{} in each of {} runs", said(*all), runs.len()),
        (all, _) => said(all.copied().flatten()),
    }
}
