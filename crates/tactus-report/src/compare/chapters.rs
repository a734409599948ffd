//! A comparison for a reader, in parts without a format.

use tactus_model::document::{
    CompareDocument, ComparedEntry, ConditionEntry, Judgement, QuantityEntry, ResolutionEntry,
};
use tactus_model::outcome::{Better, Unit};

use super::condition::{Beside, Condition, Run, side_by_side};
use super::figures::{distributions, percentiles, ratios};
use super::sittings::By;
use crate::part::{
    Answer, Cell, Chapter, Chapters, Head, Item, Length, List, Mark, Part, Reader, Table, Tone,
};
use crate::row::Quantity;
use crate::section::blame;
use crate::units::{NONE, clean, columns, latency, moment, number, quantity};

impl From<Judgement> for Tone {
    fn from(outcome: Judgement) -> Self {
        match outcome {
            Judgement::Pass => Self::Good,
            Judgement::Regression => Self::Bad,
            Judgement::Inconclusive => Self::Doubt,
        }
    }
}

/// `new against baseline`.
pub fn title(document: &CompareDocument) -> String {
    let names: Vec<String> = document.conditions.iter().map(|own| clean(&own.name)).collect();
    match names.split_first() {
        Some((base, [])) => format!("{base} against itself"),
        Some((base, others)) => format!("{} against {base}", others.join(", ")),
        None => "nothing".into(),
    }
}

/// The result, in a word.
fn answer(document: &CompareDocument) -> Answer {
    let word = match document.outcome {
        Judgement::Pass => "NO REGRESSION",
        Judgement::Regression => "REGRESSION",
        Judgement::Inconclusive => "NOT DECIDED",
    };
    Answer {
        word,
        tone: document.outcome.into(),
        sentence: format!("{}.", document.reason),
        evidence: Vec::new(),
        next: None,
    }
}

/// The sentences above everything else.
fn headline(document: &CompareDocument) -> Vec<String> {
    let mut said = vec![format!("{}: {}.", document.outcome.word(), document.reason)];
    let all = || document.scenarios.iter().flat_map(|one| &one.quantities);
    let improved = all().filter(|of| of.improved).count();
    if improved > 0 {
        said.push(format!("{improved} quantities are better by more than the margin."));
    }
    if document.gated > 0 {
        let here = all().any(|of| of.between_sittings.is_some());
        let scope = if here { " between these two sittings" } else { "" };
        said.push(format!(
            "{} quantities are judged together{scope}: with 95 % confidence every reported regression is real.",
            document.gated
        ));
    }
    let mut changed: Vec<&str> = document.changes.iter().map(|change| change.what.as_str()).collect();
    changed.dedup();
    if !changed.is_empty() {
        said.push(format!("These also differ: {}.", changed.join(", ")));
    }
    said
}

/// The page for this reader.
#[must_use]
pub fn page(document: &CompareDocument, conditions: &[Condition], reader: Reader) -> Chapters {
    let bundles = |own: &ConditionEntry| {
        let first = own.bundles.first().map_or_else(String::new, |bundle| {
            let (began, by) = (moment(&bundle.started), format!("tactus {}", bundle.tactus));
            // An imported bundle may name no machine.
            let said = [bundle.machine.as_str(), &began, &by];
            said.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
        });
        let said = match own.bundles.len() {
            0 | 1 => first,
            many => format!("{many} bundles from {first}"),
        };
        (clean(&own.name), clean(&said))
    };
    Chapters {
        title: title(document),
        kind: "comparison",
        about: document.conditions.iter().map(bundles).collect(),
        answer: Some(answer(document)),
        headline: headline(document),
        chapters: chapters(document, conditions, reader),
    }
}

/// All chapters for this reader.
fn chapters(document: &CompareDocument, conditions: &[Condition], reader: Reader) -> Vec<Chapter> {
    let page = reader == Reader::Page;
    let mut figures: Vec<Part> = Vec::new();
    if page {
        let others = document.conditions.iter().skip(1);
        figures.extend(others.flat_map(|other| ratios(document, &other.name)).map(Part::Figure));
    }
    let all = [
        Chapter {
            id: "results",
            heading: "Results",
            about: "Medians of the runs, for maxima also the largest, and the ratio of the new runs to the \
                    base: above 1 is worse. Where more is better, it is the ratio of the base to the new \
                    runs. `lower bound` holds for all quantities together, `upper bound` for each by \
                    itself, both with 95 %. A regression has its lower bound above `allowed`. A pass has no \
                    upper bound above it.",
            parts: figures.into_iter().chain(results(document)).collect(),
        },
        Chapter {
            id: "changes",
            heading: "What changed",
            about: "Other differences between the bundles. Each of them may explain different results, and \
                so may causes that no reading shows.",
            parts: changed(document).into_iter().collect(),
        },
        Chapter {
            id: "blame",
            heading: "Who had the CPU",
            about: "From the run with the largest latency of each condition: what had the CPU during its \
                largest latencies.",
            parts: blamed(conditions).into_iter().collect(),
        },
        Chapter {
            id: "distributions",
            heading: "Distributions",
            about: "Latencies of all runs of a scenario together. A mark on the axis is the largest one.",
            parts: if page {
                distributions(conditions).into_iter().map(Part::Figure).collect()
            } else {
                Vec::new()
            },
        },
        Chapter {
            id: "percentiles",
            heading: "Percentiles",
            about: "Latencies of all runs of a scenario together, corrected for missed periods. Separate \
                    lines are no proof: the intervals above show how much runs of one condition differ.",
            parts: if page {
                percentiles(conditions).into_iter().map(Part::Figure).collect()
            } else {
                Vec::new()
            },
        },
        Chapter {
            id: "baseline",
            heading: "The baseline against itself",
            about: "Halves of the baseline compared with each other, and what this number of runs can show.",
            parts: document.baseline.iter().flat_map(baseline).collect(),
        },
        Chapter {
            id: "exploration",
            heading: "Exploration: all differences",
            about: "A search in all quantities and threads, without margins. These are candidates, not \
                    verdicts: up to a tenth of them may be chance (Benjamini and Hochberg).",
            parts: explored(document).into_iter().collect(),
        },
        Chapter {
            id: "limits",
            heading: "What this cannot show",
            about: "Limits of these results.",
            parts: limits(document).into_iter().collect(),
        },
    ];
    all.into_iter().filter(|chapter| !chapter.parts.is_empty()).collect()
}

fn limits(document: &CompareDocument) -> Option<Part> {
    let items: Vec<Item> = document.limits.iter().map(Item::said).collect();
    (!items.is_empty()).then(|| Part::List(items.into()))
}

/// A table for each condition against the base, and what was not judged.
fn results(document: &CompareDocument) -> Vec<Part> {
    let mut parts: Vec<Part> = document.conditions.iter().skip(1).map(|own| table(document, own)).collect();
    let mut items: Vec<Item> = Vec::new();
    for one in &document.scenarios {
        if let Some(refused) = &one.refused {
            items.push(Item {
                name: heading(document, one),
                ..Item::led("not judged:", Tone::Doubt, &refused.reason)
            });
        }
        let open = |of: &&QuantityEntry| of.between_sittings.or(of.outcome) == Some(Judgement::Inconclusive);
        for of in one.quantities.iter().filter(open) {
            let name = format!("{}, {}", heading(document, one), clean(&of.quantity));
            items.push(Item { name, ..Item::led("inconclusive:", Tone::Doubt, &of.reason) });
        }
        // Many items may share one reason: it is printed once.
        let mut open: Vec<(&str, Vec<String>)> = Vec::new();
        for of in one.quantities.iter().filter(|of| one.refused.is_none() && of.outcome.is_none()) {
            match open.iter_mut().find(|(reason, _)| *reason == of.reason) {
                Some((_, names)) => names.push(clean(&of.quantity)),
                None => open.push((&of.reason, vec![clean(&of.quantity)])),
            }
        }
        for (reason, names) in open {
            let name = format!("{}, {}", heading(document, one), names.join("; "));
            items.push(Item { name, ..Item::led("not judged:", Tone::Doubt, reason) });
        }
    }
    for one in &document.unmatched {
        let text = format!("measured in {} alone ({}, {})", one.only_in, one.environment, one.measurement);
        items.push(Item { name: clean(&one.name), ..Item::led("not judged:", Tone::Doubt, clean(&text)) });
    }
    if !items.is_empty() {
        parts.push(Part::List(List { items, led: true }));
    }
    parts
}

/// The scenario, and what it is compared with if there are several.
fn heading(document: &CompareDocument, one: &ComparedEntry) -> String {
    if document.conditions.len() > 2 {
        clean(&format!("{}: {}", one.with, one.name))
    } else {
        clean(&one.name)
    }
}

/// The longest name of a condition above its column.
const LONGEST_HEAD: usize = 20;

fn table(document: &CompareDocument, with: &ConditionEntry) -> Part {
    let base = document.conditions.first().map_or_else(String::new, |own| clean(&own.name));
    let own = document.scenarios.iter().filter(|one| one.with == with.name);
    let rows = own.flat_map(|one| one.quantities.iter().enumerate().map(|(n, of)| row(one, of, n == 0)));
    // Broken into several lines, long names look alike.
    let short =
        |name: &str, word: &str| if columns(name) > LONGEST_HEAD { word.to_owned() } else { name.to_owned() };
    let head = vec![
        Head::words("scenario"),
        Head::words("quantity"),
        Head::number(short(&base, "base")),
        Head::number(short(&clean(&with.name), "new")),
        Head::number("ratio"),
        Head::number("lower bound"),
        Head::number("upper bound"),
        Head::number("allowed"),
        Head::words("verdict"),
    ];
    Part::Table(Table::whole(format!("{} against {base}", clean(&with.name)), head, rows.collect()))
}

fn row(one: &ComparedEntry, of: &QuantityEntry, first: bool) -> Vec<Cell> {
    let ratio = |value: Option<f64>| Cell::from(value.map_or_else(|| NONE.into(), times));
    let value = |median: Option<f64>, runs: &[f64]| {
        let mut lines = vec![median.map_or_else(|| NONE.into(), |median| valued(median, of.unit))];
        // The median of the maxima is judged; the largest maximum is shown as well.
        if of.quantity == Quantity::Maximum.name() && runs.len() > 1 {
            let largest = runs.iter().copied().fold(0.0, f64::max);
            lines.push(format!("largest {}", valued(largest, of.unit)));
        }
        Cell::from(lines)
    };
    let counted = |word: &str, counts: [usize; 2]| match counts {
        [1, 1] => format!("1 {word} each"),
        [base, now] if base == now => format!("{base} {word}s each"),
        [base, now] => format!("{base} and {now} {word}s"),
    };
    let mut counts = vec![counted("run", one.runs)];
    if one.sittings.iter().any(|sittings| *sittings > 1) {
        counts.insert(0, counted("sitting", one.sittings));
    }
    // A sitting may be a single run.
    counts.truncate(if one.sittings == one.runs { 1 } else { 2 });
    let name = match one.name.contains(&one.environment) {
        true => clean(&one.name),
        false => clean(&format!("{} ({})", one.name, one.environment)),
    };
    let evidence = one.evidence.map_or_else(|| "unknown evidence".to_owned(), |kind| kind.to_string());
    let below = if of.better == Better::Higher { " (more is better)" } else { "" };
    let judged = of.between_sittings.or(of.outcome);
    let here = if of.between_sittings.is_some_and(|judged| judged != Judgement::Inconclusive) {
        " here"
    } else {
        ""
    };
    let verdict = match judged {
        Some(outcome) if of.improved => {
            Cell::marked(format!("better{here}"), Mark::Tone(Tone::from(outcome)))
        }
        Some(outcome) => Cell::marked(format!("{}{here}", outcome.word()), Mark::Tone(Tone::from(outcome))),
        None => Cell::marked("not judged", Mark::Tone(Tone::Quiet)),
    };
    vec![
        if first {
            Cell::from([vec![name], counts, vec![evidence]].concat())
        } else {
            Cell::from(String::new())
        },
        Cell::from(clean(&of.quantity) + below),
        value(of.base, &of.base_runs),
        value(of.now, &of.now_runs),
        ratio(of.ratio),
        ratio(of.low),
        ratio(of.high),
        if of.outcome.is_some() { ratio(Some(of.limit)) } else { ratio(None) },
        verdict,
    ]
}

/// A ratio: `1.034`.
fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.3}") } else { number(ratio) }
}

fn valued(value: f64, unit: Unit) -> String {
    if unit == Unit::Ns && value >= 1_000.0 { latency(value) } else { quantity(value, unit) }
}

/// Who had the CPU, with a column for each condition; none if no run kept it.
fn blamed(conditions: &[Condition]) -> Option<Part> {
    let largest = |run: &&Run| run.row.result.all().and_then(|all| all.max_ns);
    let causes = |(_, runs): &(&str, Vec<Run>)| {
        let worst = runs.iter().max_by_key(largest)?;
        blame::causes_of(worst.contents, &worst.row.result)
    };
    let row = |(key, of): Beside| {
        let told: Vec<Option<String>> = of.iter().map(causes).collect();
        told.iter().any(Option::is_some).then(|| {
            let said = told.into_iter().map(|said| said.unwrap_or_else(|| NONE.into()));
            std::iter::once(clean(&key.name)).chain(said).map(Cell::from).collect::<Vec<Cell>>()
        })
    };
    let rows: Vec<Vec<Cell>> = side_by_side(conditions).into_iter().filter_map(row).collect();
    let names = conditions.iter().map(|condition| clean(&condition.name));
    let head = std::iter::once("scenario".to_owned()).chain(names).map(Head::words).collect();
    (!rows.is_empty()).then(|| Part::Table(Table::whole("", head, rows)))
}

fn changed(document: &CompareDocument) -> Option<Part> {
    let several = document.conditions.len() > 2;
    let said = |values: &[String]| {
        let lines: Vec<String> = values.iter().map(|value| clean(value)).collect();
        if lines.is_empty() { Cell::from(NONE.to_owned()) } else { Cell::from(lines) }
    };
    let row = |change: &tactus_model::document::ChangeEntry| {
        let place = change.environment.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
        let what = if several {
            format!("{}: {}{place}", change.with, change.what)
        } else {
            format!("{}{place}", change.what)
        };
        let signed = |sign: &str, values: &[String]| -> Vec<String> {
            // Findings are a list: - is gone, + is new.
            let sign = if change.what == "findings" { sign } else { "" };
            values.iter().map(|value| format!("{sign}{value}")).collect()
        };
        vec![Cell::from(clean(&what)), said(&signed("- ", &change.base)), said(&signed("+ ", &change.now))]
    };
    let rows: Vec<Vec<Cell>> = document.changes.iter().map(row).collect();
    let base = document.conditions.first().map_or_else(String::new, |own| clean(&own.name));
    let now = match document.conditions.as_slice() {
        [_, with] => clean(&with.name),
        _ => "the other".into(),
    };
    let head = Head::all(["what", &base, &now]);
    if rows.is_empty() {
        let nothing = "Unchanged: machine, kernel, command line, clock source, governor, findings, \
            tactus.";
        return (document.conditions.len() > 1).then(|| Part::Remark(nothing.into()));
    }
    Some(Part::Table(Table::whole("What changed", head, rows)))
}

fn baseline(own: &tactus_model::document::BaselineEntry) -> Vec<Part> {
    let verdict = match &own.refused {
        Some(why) => Item::led("refused:", Tone::Bad, why),
        None if !own.tells => Item::led(
            "open:",
            Tone::Doubt,
            "halves of so few runs cannot show a regression in this many quantities: the check could not \
             have found one",
        ),
        None => Item::led("holds:", Tone::Good, "no reason against it as a baseline was found"),
    };
    let split = format!(
        "{} {}; in {} of {} splits one half is a regression of the other; the later half {} the earlier \
            one",
        own.count,
        own.of,
        own.regressions,
        own.splits,
        if own.drifted { "differs by more than the margin from" } else { "holds against" }
    );
    let row = |of: &ResolutionEntry| {
        let needed = of.needed.map_or_else(|| NONE.to_owned(), |needed| needed.to_string());
        vec![
            Cell::from(clean(&of.name)),
            Cell::from(clean(&of.quantity)),
            Cell::from(format!("{:.1} %", of.spread * 100.0)),
            Cell::from(of.detectable.map_or_else(|| NONE.to_owned(), times)),
            Cell::from(needed),
        ]
    };
    let head = vec![
        Head::words("scenario"),
        Head::words("quantity"),
        Head::number("spread"),
        Head::number("shows (80 %)"),
        Head::number(format!("{} for 1.3", own.of)),
    ];
    let mut table =
        Table::whole("What the baseline can show", head, own.quantities.iter().map(row).collect());
    table.length = Length::Whole;
    let (of, new) =
        (&own.of, if own.of == By::Runs.word() { "the same number of new runs" } else { "one new sitting" });
    table.remarks.push(format!(
        "`spread`: the standard deviation of the logarithm of {of}. `shows`: the smallest ratio that {new} shows in 80 of \
         100 cases. `{of} for 1.3`: {of} of each condition to show a ratio of 1.3 in 80 of 100 cases; `-`: the margin \
         allows it, or the number is too large."
    ));
    let mut items = vec![verdict, Item::said(split)];
    if let Some(alarms) = own.false_alarms {
        items.push(Item::said(format!(
            "each sitting against the others, as a gate does: {alarms} of {} would be called a regression (at most 5 % are, \
             where nothing changed)",
            own.count
        )));
    }
    vec![Part::List(List { items, led: false }), Part::Table(table)]
}

fn explored(document: &CompareDocument) -> Option<Part> {
    let row = |of: &tactus_model::document::ExploredEntry| {
        vec![
            Cell::from(clean(&of.name)),
            Cell::from(clean(&of.quantity)),
            Cell::from(clean(&of.with)),
            Cell::from(of.ratio.map_or_else(|| NONE.to_owned(), times)),
            Cell::from(if of.q < 0.001 { "< 0.001".to_owned() } else { format!("{:.3}", of.q) }),
        ]
    };
    let head = vec![
        Head::words("scenario"),
        Head::words("quantity"),
        Head::words("condition"),
        Head::number("ratio"),
        Head::number("q"),
    ];
    let rows: Vec<Vec<Cell>> = document.explored.iter().map(row).collect();
    (!rows.is_empty())
        .then(|| Part::Table(Table::whole("Exploration, no verdict: all differences", head, rows)))
}
