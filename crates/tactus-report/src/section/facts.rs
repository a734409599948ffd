//! The readings of every environment.

use tactus_model::bundle::Contents;
use tactus_model::facts::{Facts, Reading as Read};
use tactus_model::isolation;

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Reading, Readings, Table};
use crate::units::{NONE, beginning, clean, listed};

/// The section.
pub struct Readable;
/// Its entry.
pub static ENTRY: Readable = Readable;

impl Section for Readable {
    fn name(&self) -> &'static str {
        "facts"
    }

    fn heading(&self) -> &'static str {
        "Facts"
    }

    fn about(&self) -> &'static str {
        "What the probe read in each environment before the measurement: first the settings that matter most \
         for latency, side by side; then all readings, searchable. Readings that an environment shares with \
         the machine are listed once."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        Some(format!(
            "what the probe read in {}",
            listed(&contents.facts.keys().map(|name| clean(name)).collect::<Vec<_>>(), ", ")
        ))
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.facts.is_empty()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Page => vec![Part::Table(side_by_side(contents)), Part::Readings(readings(contents))],
            Reader::Terminal | Reader::Markdown => Vec::new(),
        }
    }
}

/// Facts that decide how a machine keeps time, and their names.
const TELLING: &[(&str, Telling)] = &[
    ("kernel", |of| first(of, &["uname:release", "/proc/sys/kernel/osrelease"])),
    ("kernel build", |of| first(of, &["uname:version", "/proc/sys/kernel/version"])),
    ("PREEMPT_RT", |of| first(of, &["/sys/kernel/realtime"])),
    ("command line", |of| first(of, &["/proc/cmdline"])),
    ("online CPUs", |of| first(of, &["/sys/devices/system/cpu/online"])),
    ("CPUs allowed", |of| first(of, &["sched:affinity"])),
    ("isolated CPUs", isolation::told),
    ("CPUs without tick", |of| first(of, &["/sys/devices/system/cpu/nohz_full"])),
    ("hyper-threading", |of| first(of, &["/sys/devices/system/cpu/smt/active"])),
    ("clock source", |of| first(of, &["/sys/devices/system/clocksource/clocksource0/current_clocksource"])),
    ("idle driver", |of| first(of, &["/sys/devices/system/cpu/cpuidle/current_driver"])),
    ("frequency governor", |of| first(of, &["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"])),
    ("real-time throttling", |of| first(of, &["/proc/sys/kernel/sched_rt_runtime_us"])),
    ("transparent huge pages", |of| first(of, &["/sys/kernel/mm/transparent_hugepage/enabled"])),
];

/// Reads one of them from the facts.
type Telling = fn(&Facts) -> Option<String>;

/// The first of these readings that there is.
fn first(facts: &Facts, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| facts.text(name)).map(str::to_owned)
}

/// The most important facts, if they are known.
pub(crate) fn telling(facts: &Facts) -> impl Iterator<Item = (&'static str, String)> {
    TELLING
        .iter()
        .filter_map(|(title, told)| Some((*title, told(facts).filter(|text| !text.trim().is_empty())?)))
}

/// The facts that matter most, a column for each environment.
fn side_by_side(contents: &Contents) -> Table {
    let rows = TELLING.iter().filter_map(|(title, told)| {
        let value = |facts| told(facts).map(|text| clean(&text));
        let values: Vec<Option<String>> = contents.facts.values().map(value).collect();
        let known = values.iter().flatten().any(|value| !value.is_empty());
        let cells = values.into_iter().map(|value| Cell::from(value.unwrap_or_else(|| NONE.into())));
        known.then(|| std::iter::once(Cell::from((*title).to_owned())).chain(cells).collect())
    });
    let head = std::iter::once(String::new()).chain(contents.facts.keys().map(|name| clean(name)));
    Table::whole("", head.map(Head::words).collect(), rows.collect())
}

/// Most bytes of all readings on a page; those of a machine of 64 CPUs are some hundred thousand.
const MOST: usize = 1 << 20;

/// Longest reading on a page, in characters: a list of all threads is too long to read there, and three of
/// them are a tenth of a page.
const LONGEST: usize = 80;

/// Characters that a cut must save: about those of its remark.
const SAVED: usize = 60;

/// Every reading of every environment, within the length of a page. A reading equal to the machine's is shown
/// there only: a container shares nearly everything with the machine.
fn readings(contents: &Contents) -> Vec<Readings> {
    let mut left = MOST;
    let mut reading = |(name, read): (&String, &Read)| {
        let (text, there) = match read {
            Read::Text(text) | Read::Cut(text) if text.len().min(LONGEST) > left => {
                (format!("{} bytes, which are in the bundle (facts)", text.len()), true)
            }
            Read::Text(text) if text.len() > LONGEST + SAVED => {
                let first = lines(&beginning(text, LONGEST));
                (format!("{first}\n({} bytes; the rest is in the bundle, in facts)", text.len()), true)
            }
            Read::Text(text) => (lines(text), true),
            Read::Cut(text) => (format!("{}\n(the rest was cut)", lines(&beginning(text, LONGEST))), true),
            Read::Unreadable(reason) => (format!("read failed: {}", clean(reason)), false),
            Read::Absent => ("absent".into(), false),
        };
        left = left.saturating_sub(text.len());
        Reading { name: clean(name), text, there }
    };
    let machine =
        contents.facts.iter().find(|(name, _)| name.as_str() == "host" || name.starts_with("host@"));
    let mut of = |(name, facts): (&String, &Facts)| {
        let beside = machine.filter(|(own, _)| *own != name);
        let is_new = |(what, read): &(&String, &Read)| {
            beside.is_none_or(|(_, machine)| machine.0.get(*what) != Some(*read))
        };
        let all: Vec<Reading> = facts.0.iter().filter(is_new).map(&mut reading).collect();
        let same = beside.map(|(machine, _)| (facts.0.len() - all.len(), clean(machine)));
        Readings { name: clean(name), all, same: same.filter(|(many, _)| *many > 0) }
    };
    contents.facts.iter().map(&mut of).collect()
}

/// A text of several lines, each of them clean.
fn lines(text: &str) -> String {
    let lines: Vec<String> =
        text.trim_end().lines().map(|line| clean(&line.replace('\t', "        "))).collect();
    lines.join("\n")
}
