//! The answers for a reader, in parts that know no format.

use tactus_report::part::{Cell, Chapter, Chapters, Head, Item, Mark, Part, Reader, Table, Tone};
use tactus_report::render::{RenderError, html, json, markdown, text};
use tactus_report::units::{NONE, clean, latency_or_none, latency_up};

use crate::identity::{MOST_NAME, cut};

use super::deadline::{Judged, MachineEntry};
use super::{Answers, Changed, Drifted, Missing, Property};

/// Most rows of a table that a terminal is given, and a page.
const TERMINAL: usize = 15;
const PAGE: usize = 1_000;

/// A format.
pub struct PageFormat {
    /// As `--format` takes it.
    pub name: &'static str,
    /// Writes the answers in it.
    pub render: fn(&Answers) -> Result<Vec<u8>, RenderError>,
}

/// Every format.
pub static FORMATS: &[PageFormat] = &[
    PageFormat {
        name: "text",
        render: |of| Ok(text::chapters(&page(of, Reader::Terminal), text::Style::default()).into_bytes()),
    },
    PageFormat { name: "json", render: |of| Ok(json::text(of)?.into_bytes()) },
    PageFormat { name: "html", render: |of| html::chapters(page(of, Reader::Page)).map(String::into_bytes) },
    PageFormat {
        name: "markdown",
        render: |of| Ok(markdown::chapters(&page(of, Reader::Markdown)).into_bytes()),
    },
];

/// The page for this reader.
#[must_use]
pub fn page(of: &Answers, reader: Reader) -> Chapters {
    let most = if reader == Reader::Page { PAGE } else { TERMINAL };
    let day = |moment: &Option<String>| moment.as_deref().map_or(NONE, day).to_owned();
    let mut about = vec![
        ("Machines".to_owned(), of.machines.to_string()),
        ("Runs".to_owned(), of.runs.to_string()),
        ("From".to_owned(), day(&of.first)),
        ("To".to_owned(), day(&of.last)),
    ];
    about.extend(of.max_ns.map(|max| ("Deadline".to_owned(), latency_up(max))));
    Chapters {
        title: "The fleet".into(),
        kind: "fleet",
        about,
        answer: None,
        headline: headline(of),
        chapters: chapters(of, most),
    }
}

fn day(moment: &str) -> &str {
    moment.split('T').next().unwrap_or(moment)
}

fn count(of: &Answers, outcome: Judged) -> usize {
    of.judged.iter().filter(|machine| machine.outcome == outcome).count()
}

/// The answers in sentences.
fn headline(of: &Answers) -> Vec<String> {
    let mut said = Vec::new();
    let all = of.judged.len();
    let asked = of.max_ns.map_or_else(
        || "the requirements of their plans".to_owned(),
        |max| format!("the deadline of {}", latency_up(max)),
    );
    let judged = count(of, Judged::Missed) + count(of, Judged::Held) + count(of, Judged::Unproven);
    said.push(match judged {
        0 if all == 0 => "No machine has a run.".to_owned(),
        0 => {
            let machines = if all == 1 { "1 machine".to_owned() } else { format!("{all} machines") };
            let why = match of.max_ns {
                None => "none has a deadline: give one with --max, as in `--max 100us`".to_owned(),
                Some(_) => format!(
                    "their results cannot be judged by {asked}: they were emulated, or have no latency"
                ),
            };
            format!("{machines} ran in the last {} days, but {why}.", of.days)
        }
        _ => {
            let unproven = count(of, Judged::Unproven);
            let unproven =
                if unproven > 0 { format!("; for {unproven} it is undecided") } else { String::new() };
            format!(
                "{} of {judged} machines missed {asked} in the last {} days{unproven}.",
                count(of, Judged::Missed),
                of.days
            )
        }
    });
    match (&of.explained.nothing, of.explained.found.first()) {
        (_, Some(first)) => said.push(format!(
            "Outliers are more frequent with {}: {} of {} machines, and {} of the {} others.",
            first.is.join(", "),
            first.with_outliers,
            first.with,
            first.without_outliers,
            first.without
        )),
        (Some(why), None) => said.push(format!("No explanation of outliers was found: {why}.")),
        (None, None) => {}
    }
    if !of.drift.found.is_empty() {
        said.push(format!("{} of {} scenarios of machines drift.", of.drift.found.len(), of.drift.asked));
    }
    if !of.missing.is_empty() {
        said.push(format!("{} machines are missing.", of.missing.len()));
    }
    said.iter().map(|sentence| clean(sentence)).collect()
}

fn chapters(of: &Answers, most: usize) -> Vec<Chapter> {
    let missed: Vec<&MachineEntry> =
        of.judged.iter().filter(|machine| machine.outcome == Judged::Missed).collect();
    let all = [
        Chapter {
            id: "deadline",
            heading: "Missed deadlines",
            about: "Machines with a latency above the deadline (without one: that failed a requirement of \
                    their plan) in any run of that time, the worst first.",
            parts: machines("Machines that missed it", &missed, most).into_iter().collect(),
        },
        Chapter {
            id: "worst",
            heading: "The worst",
            about: "The machines with the largest latencies, missed or not, and where those were.",
            parts: machines("The worst machines", &of.judged.iter().take(of.worst).collect::<Vec<_>>(), most)
                .into_iter()
                .collect(),
        },
        Chapter {
            id: "explained",
            heading: "What outliers have in common",
            about: "Each value of firmware, microcode, kernel, profile and the like, and each finding, \
                    divides the machines in two. The table lists those that are associated with outliers \
                    more than by chance, all together with 95 % (Fisher, Holm). This does not show a cause: \
                    all properties in one line have the same machines, and unrecorded properties may have \
                    them as well.",
            parts: explained(of),
        },
        Chapter {
            id: "drift",
            heading: "What drifts",
            about: "The 99.9th percentile of each scenario on each machine over its runs. The table lists \
                    those that rise or fall, all of them together with 95 % (Mann and Kendall, Holm), and by \
                    how much in 30 days (Theil and Sen).",
            parts: drift(of, most),
        },
        Chapter {
            id: "missing",
            heading: "Missing machines",
            about: "Machines without a recent run, and expected machines that were never seen.",
            parts: missing(&of.missing, most).into_iter().collect(),
        },
        Chapter {
            id: "changes",
            heading: "Changes of machines",
            about: "Differences between two successive runs of a machine, the last first.",
            parts: changes(&of.changes, most).into_iter().collect(),
        },
        Chapter {
            id: "limits",
            heading: "What this cannot show",
            about: "Limits of these results.",
            parts: vec![Part::List(of.limits.iter().map(Item::said).collect::<Vec<_>>().into())],
        },
    ];
    all.into_iter().filter(|chapter| !chapter.parts.is_empty()).collect()
}

/// A table of at most `most` of these rows, and how many more there are.
fn table(title: &str, head: Vec<Head>, rows: Vec<Vec<Cell>>, most: usize) -> Option<Part> {
    let more = rows.len().saturating_sub(most);
    let mut table = Table::whole(title, head, rows.into_iter().take(most).collect());
    if more > 0 {
        table.remarks.push(format!("And {more} more: --json has all of them."));
    }
    (!table.rows.is_empty()).then_some(Part::Table(table))
}

fn words(text: &str) -> Cell {
    Cell::from(clean(cut(text, MOST_NAME)))
}

fn or_none(text: Option<&str>) -> Cell {
    words(text.unwrap_or(NONE))
}

const fn tone(outcome: Judged) -> Tone {
    match outcome {
        Judged::Missed => Tone::Bad,
        Judged::Held => Tone::Good,
        Judged::Unproven | Judged::NoDeadline => Tone::Doubt,
        Judged::NotJudged => Tone::Quiet,
    }
}

fn machines(title: &str, all: &[&MachineEntry], most: usize) -> Option<Part> {
    let head = vec![
        Head::words("machine"),
        Head::words("verdict"),
        Head::number("largest"),
        Head::number("runs"),
        Head::number("missed"),
        Head::words("where"),
        Head::words("when"),
        Head::words("evidence"),
    ];
    let row = |machine: &&MachineEntry| {
        vec![
            words(&machine.name),
            Cell::marked(
                machine.why.map_or_else(
                    || machine.outcome.word().to_owned(),
                    |why| format!("{}: {why}", machine.outcome.word()),
                ),
                Mark::Tone(tone(machine.outcome)),
            ),
            Cell::from(latency_or_none(machine.max_ns)),
            Cell::from(machine.runs.to_string()),
            Cell::from(machine.missed.to_string()),
            or_none(machine.scenario.as_deref()),
            Cell::from(machine.started.as_deref().map_or(NONE, day).to_owned()),
            or_none(machine.evidence.as_deref()),
        ]
    };
    table(title, head, all.iter().map(row).collect(), most)
}

/// A chance: `3.2e-9`, `0.012`.
fn chance(chance: f64) -> String {
    if chance < 1e-3 { format!("{chance:.1e}") } else { format!("{chance:.3}") }
}

fn explained(of: &Answers) -> Vec<Part> {
    let of = &of.explained;
    let head = || {
        vec![
            Head::words("what"),
            Head::number("with it"),
            Head::number("others"),
            Head::number("chance"),
            Head::number("of all"),
        ]
    };
    let row = |one: &Property| {
        vec![
            Cell::from(one.is.iter().map(|is| clean(is)).collect::<Vec<_>>()),
            Cell::from(format!("{} of {}", one.with_outliers, one.with)),
            Cell::from(format!("{} of {}", one.without_outliers, one.without)),
            Cell::from(chance(one.chance)),
            Cell::from(chance(one.chance_of_all)),
        ]
    };
    let mut parts = vec![Part::Remark(clean(&format!(
        "A machine has outliers if {}: {} of {} do. {} properties were tested.",
        of.outlier, of.outliers, of.machines, of.asked
    )))];
    if let Some(why) = &of.nothing {
        parts.push(Part::List(vec![Item::led("not known:", Tone::Doubt, clean(why))].into()));
    }
    parts.extend(table("Associated with outliers", head(), of.found.iter().map(row).collect(), PAGE));
    parts.extend(table(
        "Candidates: they may be chance alone",
        head(),
        of.candidates.iter().map(row).collect(),
        PAGE,
    ));
    parts
}

fn drift(of: &Answers, most: usize) -> Vec<Part> {
    let row = |one: &Drifted| {
        vec![
            words(&one.name),
            words(&one.scenario),
            Cell::from(format!("{:.2}", one.times_in_30_days)),
            Cell::from(latency_or_none(Some(one.first_ns))),
            Cell::from(latency_or_none(Some(one.last_ns))),
            Cell::from(one.runs.to_string()),
            Cell::from(format!("{:.0}", one.days)),
            Cell::from(chance(one.chance_of_all)),
        ]
    };
    let head = vec![
        Head::words("machine"),
        Head::words("where"),
        Head::number("times in 30 days"),
        Head::number("first"),
        Head::number("last"),
        Head::number("runs"),
        Head::number("days"),
        Head::number("chance of all"),
    ];
    let drift = &of.drift;
    let remark = match (drift.asked, drift.found.len()) {
        (0, _) => format!(
            "No scenario of a machine has enough runs to test: {} runs over {} days.",
            super::drift::LEAST_RUNS,
            super::drift::LEAST_DAYS
        ),
        (asked, 0) => format!("No evidence of a drift in {asked} scenarios of machines."),
        (asked, found) => format!("{found} of {asked} scenarios of machines drift."),
    };
    let few = if drift.asked > 0 && drift.too_few > 0 {
        format!(" {} have too few runs, or cover too short a time.", drift.too_few)
    } else {
        String::new()
    };
    let mut parts = vec![Part::Remark(remark + &few)];
    parts.extend(table("What drifts", head, drift.found.iter().map(row).collect(), most));
    parts
}

fn missing(all: &[Missing], most: usize) -> Option<Part> {
    let row = |one: &Missing| {
        vec![
            words(&one.name),
            Cell::from(one.last.as_deref().map_or("never seen", day).to_owned()),
            Cell::from(one.days.map_or_else(|| NONE.to_owned(), |days| days.to_string())),
        ]
    };
    let head = vec![Head::words("machine"), Head::words("last run"), Head::number("days ago")];
    table("Machines that are missing", head, all.iter().map(row).collect(), most)
}

fn changes(all: &[Changed], most: usize) -> Option<Part> {
    let row = |one: &Changed| {
        vec![
            words(&one.name),
            Cell::from(one.started.as_deref().map_or(NONE, day).to_owned()),
            words(one.what),
            or_none(one.before.as_deref()),
            or_none(one.now.as_deref()),
        ]
    };
    let head = Head::all(["machine", "since", "what", "before", "now"]);
    table("Changes", head, all.iter().map(row).collect(), most)
}
