//! What each environment costs, item by item.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{Degradation as Difference, DegradationEntry, Document, PlaceEntry};
use tactus_model::outcome::{Better, ValueResult};

use super::Section;
use crate::figure::{Cost, Figure, Times, costs};
use crate::part::{Cell, Head, Mark, Part, Reader, Table, Tone};
use crate::row::{figures, published_value};
use crate::stats::{Degraded, DegradedItem, degradations, held_against, least_rounds};
use crate::units::{clean, number, quantity};

/// The section.
pub struct Degradation;
/// Its entry.
pub static ENTRY: Degradation = Degradation;

impl Section for Degradation {
    fn name(&self) -> &'static str {
        "degradation"
    }

    fn heading(&self) -> &'static str {
        "What each environment costs"
    }

    fn about(&self) -> &'static str {
        "Every item against that of the first environment: by how much it is worse, with an interval that holds together \
         with all others of this report (95 %). It is only called a degradation where the plan repeats the runs and the \
         interval leaves out zero: two runs of the same thing differ, too."
    }

    fn applies(&self, contents: &Contents) -> bool {
        held_against(contents).iter().any(|pair| !pair.is_network())
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let drawn =
            if self.draws_in(contents) && reader == Reader::Page { drawn(contents) } else { Vec::new() };
        let read = (!drawn.is_empty()).then(|| Part::Remark(FIGURES.into()));
        let tables = tables(contents, &degradations(contents, false));
        let figures = drawn.into_iter().map(Part::Figure).chain(read);
        figures.chain(tables.into_iter().map(Part::Table)).collect()
    }

    fn draws(&self) -> bool {
        true
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        let all = degradations(contents, false);
        let entries = all.iter().flat_map(|pair| pair.items.iter().map(|item| entry(contents, pair, item)));
        document.degradations = entries.collect();
    }
}

impl Degradation {
    /// Whether its figures stand here: without latencies a report begins with them.
    fn draws_in(&self, contents: &Contents) -> bool {
        contents.rows.iter().any(|row| figures(&row.result).is_some())
    }
}

/// How the figures are read.
pub const FIGURES: &str = "How many times worse every item is in each environment than in the first, the lines around a \
                           mark as far as its interval goes. Full marks are shown to differ, in repeated runs; hollow \
                           ones are not.";

/// A figure for each environment that others are held against.
#[must_use]
pub fn drawn(contents: &Contents) -> Vec<Figure> {
    let all = degradations(contents, false);
    let figure = |base: &str| {
        let own: Vec<&Degraded> = all.iter().filter(|pair| pair.base.environment == base).collect();
        let places = places(&own);
        let names: Vec<String> = places.iter().map(|place| named(&place.environment, Some(place))).collect();
        let first = own.first().map(|pair| pair.base);
        costs(&format!("{HELD} {}", named(base, first)), &names, &lines(&own, &places))
    };
    bases(&all).into_iter().map(figure).collect()
}

/// A line for each item of each first run that others are held against.
fn lines(pairs: &[&Degraded], places: &[&RowResult]) -> Vec<Cost> {
    let mut all: Vec<Cost> = Vec::new();
    for of in by_base(pairs) {
        let before = all.len();
        for (pair, item) in of.iter().flat_map(|pair| pair.items.iter().map(move |item| (pair, item))) {
            let place = places.iter().position(|place| place.environment == pair.with.environment);
            let Difference { value, low, high, seen, .. } = item.degradation;
            let times = Times {
                place: place.unwrap_or_default(),
                estimate: 1.0 + value,
                interval: low.zip(high).map(|(low, high)| (1.0 + low, 1.0 + high)),
                shown: seen,
            };
            let (name, scenario) = (clean(&item.base.name()), clean(&pair.base.name));
            match all[before..].iter_mut().find(|known| known.name == name) {
                // The first run of a measurement in a place counts, as in the table.
                Some(known) if known.times.iter().any(|other| other.place == times.place) => {}
                Some(known) => known.times.push(times),
                None => all.push(Cost { name, scenario, times: vec![times] }),
            }
        }
    }
    let names: Vec<String> = all.iter().map(|cost| cost.name.clone()).collect();
    for cost in &mut all {
        // Where an item has one line its name says all.
        if names.iter().filter(|name| **name == cost.name).count() < 2 {
            cost.scenario.clear();
        }
    }
    all
}

/// The environments that are held against another, each with its first row.
fn places<'a>(pairs: &[&Degraded<'a>]) -> Vec<&'a RowResult> {
    let mut places: Vec<&RowResult> = Vec::new();
    for pair in pairs {
        if !places.iter().any(|known| known.environment == pair.with.environment) {
            places.push(pair.with);
        }
    }
    places
}

/// What the figures are of.
const HELD: &str = "Every value against";

/// The environments that others are held against.
fn bases<'a>(all: &'a [Degraded<'_>]) -> Vec<&'a str> {
    let mut bases: Vec<&str> = all.iter().map(|pair| pair.base.environment.as_str()).collect();
    bases.sort_unstable();
    bases.dedup();
    bases
}

/// A difference in words: a part of a hundred, from ten times on a factor.
#[must_use]
pub fn words(of: Difference) -> String {
    let value = size(of.value);
    let shown = |value: f64| if of.value < FACTOR { number(value * 100.0) } else { number(value + 1.0) };
    match of.low.zip(of.high).map(|(low, high)| format!("({} to {})", shown(low), shown(high))) {
        Some(range) if of.seen || of.rounds < 2 => format!("{value} {range}"),
        Some(range) => format!("none shown {range}"),
        None => value,
    }
}

/// By how much something is worse: a part of a hundred, from ten times on a factor.
#[must_use]
pub fn size(value: f64) -> String {
    if value < FACTOR { format!("{} %", signed(value)) } else { format!("x{}", number(value + 1.0)) }
}

/// What must be known of a difference that is no degradation: what it is judged from does not suffice.
#[must_use]
pub fn doubt(of: Difference) -> Option<String> {
    match (of.rounds, of.low) {
        (0 | 1, _) => Some("one run each".into()),
        (rounds, None) => Some(format!("{rounds} rounds: too few")),
        _ => None,
    }
}

/// So much worse is said as a factor.
const FACTOR: f64 = 9.0;

fn signed(part: f64) -> String {
    let percent = number(part * 100.0);
    if part > 0.0 { format!("+{percent}") } else { percent }
}

/// A table for each environment that others are held against: items down, environments across.
fn tables(contents: &Contents, all: &[Degraded]) -> Vec<Table> {
    let of = |base: &str| {
        let own: Vec<&Degraded> = all.iter().filter(|pair| pair.base.environment == base).collect();
        table(contents, base, &own)
    };
    bases(all).into_iter().map(of).collect()
}

fn table(contents: &Contents, base: &str, pairs: &[&Degraded]) -> Table {
    let places = places(pairs);
    let first = pairs.first().map(|pair| pair.base);
    let mut head = vec![Head::words("item"), Head::number(named(base, first))];
    head.extend(places.iter().map(|place| Head::number(named(&place.environment, Some(place)))));
    let single = single(pairs);
    let mut rows = Vec::new();
    for of in by_base(pairs) {
        let mut known: Vec<&ValueResult> = Vec::new();
        for item in of.iter().flat_map(|pair| &pair.items) {
            if !known.iter().any(|before| before.is_of(&item.base)) {
                known.push(&item.base);
                rows.push(line(contents, &of, item, &places, single));
            }
        }
    }
    let title = if single { SINGLE } else { "" };
    let mut table = Table::whole(title, head, rows);
    table.remarks = remarks(pairs, places.len());
    table
}

/// The pairs that have the same first run for their base, in the order of those.
fn by_base<'p, 'a>(pairs: &[&'p Degraded<'a>]) -> Vec<Vec<&'p Degraded<'a>>> {
    let mut of: BTreeMap<*const RowResult, usize> = BTreeMap::new();
    let mut all: Vec<Vec<&Degraded>> = Vec::new();
    for pair in pairs {
        let place = *of.entry(&raw const *pair.base).or_insert(all.len());
        if place == all.len() {
            all.push(Vec::new());
        }
        all[place].push(pair);
    }
    all
}

/// What stands above a table of nothing but single runs.
const SINGLE: &str = "Against the first environment, one run each: runs differ by themselves";

/// Whether nothing was repeated.
fn single(pairs: &[&Degraded]) -> bool {
    pairs.iter().flat_map(|pair| &pair.items).all(|item| item.degradation.rounds < 2)
}

/// An item in all environments, of pairs with one base. `single`: nothing was repeated.
fn line(
    contents: &Contents,
    of: &[&Degraded],
    item: &DegradedItem,
    places: &[&RowResult],
    single: bool,
) -> Vec<Cell> {
    let better = match item.base.better {
        Better::Lower => "",
        Better::Higher => " (more is better)",
    };
    let theirs = of.first().and_then(|pair| published_value(&contents.plan, pair.base, &item.base));
    let theirs = theirs.map(|of| of.value);
    let mut base = vec![quantity(item.base.value, item.base.unit)];
    base.extend(theirs.map(|value| format!("published {}", quantity(value, item.base.unit))));
    let mut cells = vec![Cell::from(format!("{}{better}", clean(&item.base.name()))), Cell::from(base)];
    let mut there: BTreeMap<&str, Cell> = BTreeMap::new();
    for pair in of {
        if let Some(own) = pair.items.iter().find(|own| own.base.is_of(&item.base)) {
            let cell = || cell(contents, pair.with, own, theirs, !single);
            there.entry(&pair.with.environment).or_insert_with(cell);
        }
    }
    cells.extend(places.iter().map(|place| there.remove(place.environment.as_str()).unwrap_or_default()));
    cells
}

fn cell(
    contents: &Contents,
    with: &RowResult,
    item: &DegradedItem,
    theirs: Option<f64>,
    doubtful: bool,
) -> Cell {
    let mut lines = vec![quantity(item.with.value, item.with.unit), words(item.degradation)];
    lines.extend(doubt(item.degradation).filter(|_| doubtful));
    if let Some(own) = published_value(&contents.plan, with, &item.with) {
        let worse = theirs.map(|theirs| match item.with.better {
            Better::Lower => own.value / theirs,
            Better::Higher => theirs / own.value,
        });
        let worse = worse.map(|ratio| format!(", {} %", signed(ratio - 1.0))).unwrap_or_default();
        lines.push(format!("published {}{worse}", quantity(own.value, item.with.unit)));
    }
    let mark = if item.degradation.seen { Mark::Tone(Tone::Heading) } else { Mark::None };
    Cell { mark, ..Cell::from(lines) }
}

/// Numbers of an emulated processor must not be taken for those of one that is not.
fn named(environment: &str, of: Option<&RowResult>) -> String {
    match of.and_then(|of| of.evidence) {
        Some(Evidence::Emulated) => format!("{} (EMULATED)", clean(environment)),
        Some(Evidence::VirtualHost) => format!("{} (inside a VM)", clean(environment)),
        _ => clean(environment),
    }
}

fn remarks(pairs: &[&Degraded], places: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    let items = || pairs.iter().flat_map(|pair| &pair.items);
    if items().any(|item| item.degradation.rounds < 2 || item.degradation.low.is_none()) {
        remarks.push(format!(
            "Nothing is called a degradation of one run each, or of too few rounds: `repeat = {}` in the plan tells.",
            least_rounds(places)
        ));
    }
    if pairs.iter().any(|pair| pair.with.evidence != pair.base.evidence) {
        remarks.push(
            "Environments with different kinds of evidence stand side by side: what an emulated processor costs is the \
             emulator's, not the environment's."
                .into(),
        );
    }
    remarks
}

/// As the document has it.
#[must_use]
pub fn entry(contents: &Contents, pair: &Degraded, item: &DegradedItem) -> DegradationEntry {
    let place = |of: &RowResult, value: &ValueResult| PlaceEntry {
        scenario: of.name.clone(),
        environment: of.environment.clone(),
        evidence: of.evidence,
        value: value.value,
        published: published_value(&contents.plan, of, value).map(|of| of.value),
    };
    DegradationEntry {
        measurement: pair.with.measurement.kind().to_owned(),
        item: item.with.item.clone(),
        at: item.with.at,
        unit: item.with.unit,
        base: place(pair.base, &item.base),
        with: place(pair.with, &item.with),
        degradation: item.degradation,
    }
}
