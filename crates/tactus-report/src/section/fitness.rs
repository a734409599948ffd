//! The classes of control applications that each environment is fit for.

use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::document::{ClassEntry, Document, Fit, FitnessEntry};
use tactus_model::number::whole;
use tactus_model::plan::{Class, Span};

use super::Section;
use crate::fitness::{COMPUTES, LeftOut, asked_classes, built_in, entries, left_out};
use crate::part::{Cell, Head, Mark, Part, Reader, Table, Tone};
use crate::row::{figures, rate_words};
use crate::units::{clean, count, duration, latency_up, listed, number, unbroken};

/// The section.
pub struct Fitness;
/// Its entry.
pub static ENTRY: Fitness = Fitness;

impl Section for Fitness {
    fn name(&self) -> &'static str {
        "fitness"
    }

    fn heading(&self) -> &'static str {
        "Fitness for control applications"
    }

    fn about(&self) -> &'static str {
        "Lists the classes of control applications that these latencies are good enough for. The jitter (largest \
         minus smallest latency) must not exceed what the class allows, and the largest latency must lie \
         within the cycle. The computing time of the application is not included: it comes on top. \
         A measured response time of an application already includes it and is compared with the whole \
         cycle."
    }

    fn applies(&self, contents: &Contents) -> bool {
        let has_latencies = contents.rows.iter().any(|row| figures(&row.result).is_some());
        (has_latencies || !contents.plan.reference.is_empty()) && !asked_classes(contents).is_empty()
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        let classes = asked_classes(contents);
        let all = entries(contents, &classes);
        let fit = |class: &Class| {
            let own: Vec<Fit> = all
                .iter()
                .filter_map(|entry| entry.classes.iter().find(|answer| answer.class == class.name))
                .map(|answer| answer.fit)
                .filter(|fit| matches!(fit, Fit::Fit | Fit::Unfit))
                .collect();
            let count = own.iter().filter(|fit| **fit == Fit::Fit).count();
            match own.len() {
                0 => format!("{}: not judged", clean(class.title())),
                judged => format!("{}: {count} of {judged} fit", clean(class.title())),
            }
        };
        Some(listed(&classes.iter().map(fit).collect::<Vec<_>>(), "; "))
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let classes = asked_classes(contents);
        let all = entries(contents, &classes);
        // A terminal shows rows only for measurements with an answer for every class; `tactus report --class`
        // shows all.
        let says = |entry: &FitnessEntry| {
            entry.classes.iter().all(|class| matches!(class.fit, Fit::Fit | Fit::Unfit))
        };
        if all.is_empty() || (reader != Reader::Page && !all.iter().any(says)) {
            return Vec::new();
        }
        let mut parts = vec![Part::Table(judged(contents, &classes, &all, reader))];
        if reader == Reader::Page {
            parts.push(Part::Table(definitions(&classes)));
        }
        parts
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        let classes = asked_classes(contents);
        document.fitness = if classes.is_empty() { Vec::new() } else { entries(contents, &classes) };
    }
}

/// Environments by classes: the answer in each cell, and the numbers behind it.
#[must_use]
pub fn judged(contents: &Contents, classes: &[Class], all: &[FitnessEntry], reader: Reader) -> Table {
    let mut head = Head::all(["latency", "seen"]).to_vec();
    head.extend(classes.iter().map(|class| Head::words(clean(class.title()))));
    let rows = all.iter().map(|entry| row(classes, entry, reader)).collect();
    let remarks = whose(classes).into_iter().chain(remarks(contents, all)).collect();
    Table { remarks, ..Table::whole("", head, rows) }
}

/// The thresholds of the classes.
#[must_use]
pub fn definitions(classes: &[Class]) -> Table {
    let span = |Span { from, to }: Span| {
        if from == to { latency_up(to.0) } else { format!("{} to {}", latency_up(from.0), latency_up(to.0)) }
    };
    let row = |class: &Class| {
        let name = if class.title() == class.name {
            vec![clean(&class.name)]
        } else {
            vec![clean(class.title()), clean(&class.name)]
        };
        let share = match class.share {
            100 => "all".to_owned(),
            share => format!("{share} %"),
        };
        let source = class.source.as_deref().map(clean).unwrap_or_default();
        vec![
            Cell::from(name),
            span(class.cycle).into(),
            span(class.jitter).into(),
            share.into(),
            source.into(),
        ]
    };
    let head = Head::all(["class", "cycle", "jitter allowed", "share of the cycle", "source"]);
    Table::whole("What the classes allow", head, classes.iter().map(row).collect())
}

fn row(classes: &[Class], entry: &FitnessEntry, reader: Reader) -> Vec<Cell> {
    let mut cells = vec![name(entry), seen(entry)];
    cells.extend(classes.iter().map(|class| {
        let answer = entry.classes.iter().find(|answer| answer.class == class.name);
        answer.map(|answer| cell(class, entry, answer)).unwrap_or_default()
    }));
    if reader == Reader::Page {
        for line in cells.iter_mut().flat_map(|cell| &mut cell.lines) {
            *line = unbroken(line);
        }
    }
    cells
}

/// The latency, its place and its evidence.
fn name(entry: &FitnessEntry) -> Cell {
    if let Some(source) = &entry.published {
        return Cell::from(vec!["published".to_owned(), clean(&entry.scenario), clean(source)]);
    }
    let mut place = clean(&entry.environment);
    if let Some(to) = &entry.to {
        place = format!("{place} -> {}", clean(to));
    }
    if let Some(host) = &entry.host {
        place = format!("{place}, host {}", clean(host));
    }
    if let Some(evidence) = entry.evidence {
        place = format!("{place} ({evidence})");
    }
    let mut lines = vec![clean(&entry.scenario), place];
    lines.extend(entry.latency.as_deref().map(latency_words));
    Cell::from(lines)
}

/// The kind of latency.
fn latency_words(kind: &str) -> String {
    match kind {
        "thread" => "wake-up of a thread".into(),
        "irq" => "timer interrupt of the kernel (timerlat's IRQ column)".into(),
        "interrupt" => "from an interrupt to its handler".into(),
        "response" => "response of an application".into(),
        "start" => "start of an application's cycle".into(),
        "execution" => "execution of an application's cycle".into(),
        "gap" => "gap of a polling loop".into(),
        other => clean(other),
    }
}

/// The numbers, and for how long it was looked.
fn seen(entry: &FitnessEntry) -> Cell {
    let mut lines = vec![
        format!("worst {}", latency_up(entry.worst_ns)),
        format!("jitter {}", latency_up(entry.jitter_ns)),
    ];
    if entry.published.is_none() {
        let runs = if entry.runs > 1 { format!("{} runs, ", entry.runs) } else { String::new() };
        let every = entry.interval_ns.map(|ns| format!(" every {}", latency_up(ns))).unwrap_or_default();
        let lasted = entry.duration_s.map(|seconds| duration(whole(seconds * 1e9)));
        lines.push(format!("{runs}{}{every}", lasted.as_deref().unwrap_or("for an unknown time")));
    }
    lines.extend(entry.cycles.map(|cycles| format!("{} latencies", count(cycles))));
    Cell::from(lines)
}

fn cell(class: &Class, entry: &FitnessEntry, answer: &ClassEntry) -> Cell {
    let mut lines = vec![answer.fit.word().to_owned()];
    let keeps = || {
        let from = answer.shortest_cycle_ns.map(|ns| format!("cycle from {}", latency_up(ns)));
        let allowed = latency_up(class.jitter.to.0);
        from.into_iter().chain([format!("jitter {}, limit {allowed}", latency_up(entry.jitter_ns))])
    };
    match answer.fit {
        Fit::Fit => {
            lines.extend(keeps());
            lines.push(format!("margin {} %", number(answer.margin * 100.0)));
        }
        Fit::Unknowable if answer.lacks.is_empty() => lines.extend(keeps()),
        Fit::Unfit | Fit::Unknowable => lines.extend(answer.lacks.iter().cloned()),
        Fit::Emulated => {}
    }
    let mark = match answer.fit {
        // A document's figures are no promise for this machine.
        _ if entry.published.is_some() => Mark::Tone(Tone::Quiet),
        Fit::Fit => Mark::Tone(Tone::Good),
        Fit::Unfit => Mark::Tone(Tone::Bad),
        Fit::Unknowable => Mark::Tone(Tone::Doubt),
        Fit::Emulated => Mark::Evidence(Evidence::Emulated),
    };
    Cell { mark, ..Cell::from(lines) }
}

/// Names in a sentence; more are counted.
const NAMED: usize = 4;

/// The source of the thresholds, if it is a document.
fn whose(classes: &[Class]) -> Option<String> {
    let is_built_in = |class: &&Class| built_in().contains(class);
    let names: Vec<String> = classes.iter().filter(is_built_in).map(|class| clean(class.title())).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The thresholds of {} come from a document of 2014 (intel-industrial-2014, table 1), not from \
             your application. Set your own with `--max`, or define a class.",
            names.join(", ")
        )
    })
}

/// Caveats to the answers.
fn remarks(contents: &Contents, all: &[FitnessEntry]) -> Vec<String> {
    let mut remarks = unknowable(all);
    remarks.extend(looked(all));
    if all.iter().any(|entry| entry.evidence == Some(Evidence::VirtualHost)) {
        remarks.push("Measurements inside a VM hold only inside this virtual machine.".into());
    }
    let claim = contents.plan.fitness.as_ref().and_then(|fitness| fitness.claim.as_deref());
    if let Some(claim) = claim.filter(|_| all.iter().any(|entry| entry.published.is_some())) {
        remarks.push(format!(
            "Published figures are judged as they stand. The document states: {}",
            clean(claim)
        ));
    }
    let out = left_out(contents);
    for why in ["a fault was injected", "it failed", COMPUTES] {
        let names: Vec<&LeftOut> = out.iter().filter(|one| one.why == why).collect();
        let named = named(&names.iter().map(|one| one.name.as_str()).collect::<Vec<_>>());
        remarks.extend(named.map(|names| format!("Not judged, because {why}: {names}.")));
    }
    remarks
}

/// Reasons for missing answers, a sentence each.
fn unknowable(all: &[FitnessEntry]) -> Vec<String> {
    let mut reasons: Vec<(&str, Fit, Vec<&str>)> = Vec::new();
    for entry in all {
        for (reason, fit) in
            entry.classes.iter().filter_map(|class| Some((class.reason.as_deref()?, class.fit)))
        {
            let at = reasons.iter().position(|(known, ..)| *known == reason).unwrap_or_else(|| {
                reasons.push((reason, fit, Vec::new()));
                reasons.len() - 1
            });
            if !reasons[at].2.contains(&entry.scenario.as_str()) {
                reasons[at].2.push(&entry.scenario);
            }
        }
    }
    // Reasons that differ in their first number alone become one, with the smallest number.
    let mut alike: Vec<(Option<u64>, &str, Fit, Vec<&str>)> = Vec::new();
    for (reason, fit, names) in reasons {
        let (number, rest) = counted(reason);
        match alike
            .iter_mut()
            .find(|(known, same, of, _)| (*same, *of, known.is_some()) == (rest, fit, number.is_some()))
        {
            Some((least, _, _, all)) => {
                *least = (*least).min(number);
                all.extend(names.into_iter().filter(|name| !all.contains(name)).collect::<Vec<_>>());
            }
            None => alike.push((number, rest, fit, names)),
        }
    }
    let said = |(number, rest, fit, names): (Option<u64>, &str, Fit, Vec<&str>)| match fit {
        Fit::Emulated => Some(format!(
            "Not judged, because emulated latencies say nothing about hardware: {}.",
            named(&names)?
        )),
        _ => {
            let number = number.map(count).unwrap_or_default();
            Some(format!("Inconclusive for {}: {number}{}.", named(&names)?, clean(rest)))
        }
    };
    alike.into_iter().filter_map(said).collect()
}

/// The number that a sentence begins with, and the rest of it.
fn counted(reason: &str) -> (Option<u64>, &str) {
    let end = reason.find(|c: char| !c.is_ascii_digit() && !c.is_whitespace()).unwrap_or(0);
    let (number, rest) = reason.split_at(reason[..end].trim_end().len());
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.parse().map_or((None, reason), |number| (Some(number), rest))
}

/// For how long it was looked where something is called fit: of the rest a bound is known.
fn looked(all: &[FitnessEntry]) -> Option<String> {
    let fit = |entry: &&FitnessEntry| {
        entry.published.is_none() && entry.classes.iter().any(|class| class.fit == Fit::Fit)
    };
    let shortest = all
        .iter()
        .filter(fit)
        .min_by(|one, other| one.duration_s.unwrap_or(0.0).total_cmp(&other.duration_s.unwrap_or(0.0)))?;
    let (seconds, rate) = (shortest.duration_s?, shortest.worse_per_s?);
    Some(format!(
        "Fit holds for the measured time: a larger latency may still occur. None occurred in {}, so at most \
         {} a second are to be expected (95 %, if seconds are independent). A cycle shorter than the \
         measured interval was not tested.",
        duration(whole(seconds * 1e9)),
        rate_words(rate),
    ))
}

/// Names in a sentence: all of a few, else how many.
fn named(names: &[&str]) -> Option<String> {
    match names {
        [] => None,
        few if few.len() <= NAMED => Some(few.iter().map(|name| clean(name)).collect::<Vec<_>>().join("; ")),
        many => Some(format!("{} measurements", many.len())),
    }
}
