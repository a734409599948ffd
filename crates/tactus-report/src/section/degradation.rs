//! The costs of each environment, item by item.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{Degradation as Difference, DegradationEntry, Document, PlaceEntry};
use tactus_model::outcome::{Better, ValueResult};

use super::Section;
use crate::figure::{Cost, Figure, Times, costs};
use crate::part::{Cell, Head, Mark, Part, Reader, Table, Tone};
use crate::row::{MOST_ROWS, figures, published_value};
use crate::stats::{Degraded, DegradedItem, degradations, held_against, least_rounds};
use crate::units::{beginning, clean, number, quantity};

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
        "Every item compared with that of the first environment: how much it is worse, with a simultaneous \
         95 % interval. A degradation is shown only if the plan repeats the runs and the interval excludes \
         zero: two runs of the same thing also differ."
    }

    fn applies(&self, contents: &Contents) -> bool {
        held_against(contents).iter().any(|pair| !pair.is_network())
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        let all = degradations(contents, false);
        let drawn =
            if self.draws_in(contents) && reader == Reader::Page { figures_of(&all) } else { Vec::new() };
        let read = (!drawn.is_empty()).then(|| Part::Remark(FIGURES.into()));
        let tables = tables(contents, &all);
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
pub const FIGURES: &str = "How many times worse every item is in each environment than in the first; the \
                           lines around a mark show its interval. Full marks are shown to differ, in \
                           repeated runs; hollow ones are not.";

/// Most environments in one figure: a reader cannot tell more marks apart.
const MOST_PLACES: usize = 40;
/// Longest name in characters where it may be repeated.
const NAME: usize = 64;
/// The same in JSON, where nothing else says what is meant.
const WRITTEN: usize = 128;

/// A figure for each environment that others are compared with, with at most `MOST_ROWS` lines in all.
#[must_use]
pub fn drawn(contents: &Contents) -> Vec<Figure> {
    figures_of(&degradations(contents, false))
}

fn figures_of(all: &[Degraded]) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    let (mut room, mut left_out) = (MOST_ROWS, 0);
    for (base, own) in by_environment(all) {
        if room == 0 {
            left_out += 1;
            continue;
        }
        let places = places(&own);
        let shown = &places[..places.len().min(MOST_PLACES)];
        let (lines, of) = lines(&own, shown, room);
        room -= lines.len();
        let names: Vec<String> = shown.iter().map(|place| named(&place.environment, Some(place))).collect();
        let mut title = format!("{HELD} {}", named(base, own.first().map(|pair| pair.base)));
        if shown.len() < places.len() {
            title += &format!(" (the first {} of {} environments)", shown.len(), places.len());
        }
        if lines.len() < of {
            title += &format!(" (the first {} of {of} lines)", lines.len());
        }
        figures.push(costs(&title, &names, &lines));
    }
    if let Some(last) = figures.last_mut().filter(|_| left_out > 0) {
        last.title += &format!(" (and {left_out} more environments, which are not drawn)");
    }
    figures
}

/// A line for each item of each first run that others are compared with, at most `most`; and the count of
/// all.
fn lines(pairs: &[&Degraded], places: &[&RowResult], most: usize) -> (Vec<Cost>, usize) {
    let numbers = numbers(places);
    let (mut all, mut of): (Vec<Cost>, usize) = (Vec::new(), 0);
    for held in by_base(pairs) {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for (pair, item) in held.iter().flat_map(|pair| pair.items.iter().map(move |item| (pair, item))) {
            let Some(place) = numbers.get(pair.with.environment.as_str()) else { continue };
            let Difference { value, low, high, seen, .. } = item.degradation;
            let times = Times {
                place: *place,
                estimate: 1.0 + value,
                interval: low.zip(high).map(|(low, high)| (1.0 + low, 1.0 + high)),
                shown: seen,
            };
            let name = clean(&item.base.name());
            let at = *known.entry(name.clone()).or_insert(of);
            if at < of {
                // The first run of a measurement in a place counts, as in the table.
                let is_new = |cost: &&mut Cost| cost.times.iter().all(|other| other.place != times.place);
                if let Some(cost) = all.get_mut(at).filter(is_new) {
                    cost.times.push(times);
                }
                continue;
            }
            of += 1;
            if all.len() < most {
                let scenario = beginning(&clean(&pair.base.name), NAME);
                all.push(Cost { name: beginning(&name, NAME), scenario, times: vec![times] });
            }
        }
    }
    let mut often: BTreeMap<String, usize> = BTreeMap::new();
    for cost in &all {
        *often.entry(cost.name.clone()).or_default() += 1;
    }
    for cost in &mut all {
        // Where an item has one line its name says all.
        if often.get(&cost.name).is_none_or(|lines| *lines < 2) {
            cost.scenario.clear();
        }
    }
    (all, of)
}

/// The environments that are compared with another, each with its first row.
fn places<'a>(pairs: &[&Degraded<'a>]) -> Vec<&'a RowResult> {
    let mut known = BTreeSet::new();
    let all = pairs.iter().map(|pair| pair.with);
    all.filter(|with| known.insert(with.environment.as_str())).collect()
}

/// Which of them each is.
fn numbers<'a>(places: &[&'a RowResult]) -> BTreeMap<&'a str, usize> {
    places.iter().enumerate().map(|(n, place)| (place.environment.as_str(), n)).collect()
}

/// Beginning of the figures' titles.
const HELD: &str = "Every value against";

/// The pairs of each environment that others are compared with.
fn by_environment<'p, 'a>(all: &'p [Degraded<'a>]) -> BTreeMap<&'a str, Vec<&'p Degraded<'a>>> {
    let mut of: BTreeMap<&str, Vec<&Degraded>> = BTreeMap::new();
    for pair in all {
        of.entry(pair.base.environment.as_str()).or_default().push(pair);
    }
    of
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

/// A caveat to a difference that is not a degradation: there is not enough data.
#[must_use]
pub fn doubt(of: Difference) -> Option<String> {
    match (of.rounds, of.low) {
        (0 | 1, _) => Some("one run each".into()),
        (rounds, None) => Some(format!("{rounds} rounds: too few")),
        _ => None,
    }
}

/// Degradations from this size on are written as a factor.
const FACTOR: f64 = 9.0;

fn signed(part: f64) -> String {
    let percent = number(part * 100.0);
    if part > 0.0 { format!("+{percent}") } else { percent }
}

/// Tables for each environment that others are compared with, items down and environments across. They have
/// at most `MOST_ROWS` lines in all. Items of the same environments share a table, or most of its cells would
/// be empty.
fn tables(contents: &Contents, all: &[Degraded]) -> Vec<Table> {
    let (mut tables, mut of): (Vec<Table>, usize) = (Vec::new(), 0);
    for (base, own) in by_environment(all) {
        let (single, before) = (single(&own), tables.len());
        let mut title = if single { SINGLE } else { "" };
        for group in by_places(&own) {
            let lines = items(&group);
            let room = MOST_ROWS.saturating_sub(of);
            of += lines.len();
            if room > 0 {
                let pairs: Vec<&Degraded> = group.concat();
                let lines = &lines[..lines.len().min(room)];
                tables.push(table(contents, (title, base), &pairs, lines, single));
                title = "";
            }
        }
        if let Some(last) = tables[before..].last_mut() {
            last.remarks.extend(remarks(&own, places(&own).len()));
        }
    }
    if let Some(last) = tables.last_mut().filter(|_| of > MOST_ROWS) {
        last.remarks.push(format!("The first {MOST_ROWS} of {of} lines; the JSON has them all."));
    }
    tables
}

/// A table of these lines, of pairs that have one environment for their base.
fn table(
    contents: &Contents,
    (title, base): (&str, &str),
    pairs: &[&Degraded],
    lines: &[(&Held, &DegradedItem)],
    single: bool,
) -> Table {
    let places = places(pairs);
    let shown = &places[..places.len().min(MOST_ROWS)];
    let first = pairs.first().map(|pair| pair.base);
    let mut head = vec![Head::words("item"), Head::number(named(base, first))];
    head.extend(shown.iter().map(|place| Head::number(named(&place.environment, Some(place)))));
    let numbers = numbers(shown);
    let rows = lines.iter().map(|(of, item)| line(contents, of, item, &numbers, single)).collect();
    let mut table = Table::whole(title, head, rows);
    if shown.len() < places.len() {
        let (shown, all) = (shown.len(), places.len());
        table.remarks.push(format!("The first {shown} of {all} environments; the JSON has them all."));
    }
    table
}

/// Pairs that have the same first run for their base.
type Held<'p, 'a> = Vec<&'p Degraded<'a>>;

/// The pairs of each such run, in the order of those.
fn by_base<'p, 'a>(pairs: &[&'p Degraded<'a>]) -> Vec<Held<'p, 'a>> {
    let mut of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut all: Vec<Held> = Vec::new();
    for pair in pairs {
        let place = *of.entry(pair.base_row).or_insert(all.len());
        if place == all.len() {
            all.push(Vec::new());
        }
        all[place].push(pair);
    }
    all
}

/// The same, in groups that share an environment with a pair before them.
fn by_places<'p, 'a>(pairs: &[&'p Degraded<'a>]) -> Vec<Vec<Held<'p, 'a>>> {
    let mut of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<Vec<Held>> = Vec::new();
    for held in by_base(pairs) {
        let places = places(&held);
        let known = places.iter().find_map(|place| of.get(place.environment.as_str()).copied());
        let group = known.unwrap_or(all.len());
        of.extend(places.iter().map(|place| (place.environment.as_str(), group)));
        if group == all.len() {
            all.push(Vec::new());
        }
        all[group].push(held);
    }
    all
}

/// The items of a table, a line each.
fn items<'g, 'p, 'a>(group: &'g [Held<'p, 'a>]) -> Vec<(&'g Held<'p, 'a>, &'p DegradedItem)> {
    let mut all = Vec::new();
    for held in group {
        let mut known = BTreeSet::new();
        for item in held.iter().flat_map(|pair| &pair.items) {
            if known.insert((item.base.item.as_str(), item.base.at)) {
                all.push((held, item));
            }
        }
    }
    all
}

/// The title of a table that contains only single runs.
const SINGLE: &str = "Compared with the first environment, one run each: equal runs differ, too";

/// Whether nothing was repeated.
fn single(pairs: &[&Degraded]) -> bool {
    pairs.iter().flat_map(|pair| &pair.items).all(|item| item.degradation.rounds < 2)
}

/// An item in all environments, of pairs with one base. `single`: nothing was repeated.
fn line(
    contents: &Contents,
    of: &[&Degraded],
    item: &DegradedItem,
    numbers: &BTreeMap<&str, usize>,
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
    let mut there: Vec<Option<Cell>> = vec![None; numbers.len()];
    for pair in of {
        let place = numbers.get(pair.with.environment.as_str()).and_then(|n| there.get_mut(*n));
        if let Some(place) = place.filter(|place| place.is_none()) {
            let own = pair.items.iter().find(|own| own.base.is_of(&item.base));
            *place = own.map(|own| cell(contents, pair.with, own, theirs, !single));
        }
    }
    cells.extend(there.into_iter().map(Option::unwrap_or_default));
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
    let name = beginning(&clean(environment), NAME);
    match of.and_then(|of| of.evidence) {
        Some(Evidence::Emulated) => format!("{name} (EMULATED)"),
        Some(Evidence::VirtualHost) => format!("{name} (inside a VM)"),
        _ => name,
    }
}

fn remarks(pairs: &[&Degraded], places: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    let items = || pairs.iter().flat_map(|pair| &pair.items);
    if items().any(|item| item.degradation.rounds < 2 || item.degradation.low.is_none()) {
        remarks.push(format!(
            "One run each, or too few rounds, cannot show a degradation: use `repeat = {}` in the plan.",
            least_rounds(places)
        ));
    }
    let broke = |pair: &&&Degraded| pair.broken > 0;
    remarks.extend(pairs.iter().filter(broke).map(|pair| {
        let (broken, all) = (pair.broken, pair.rounds + pair.broken);
        let name = clean(&pair.with.name);
        format!("In {broken} of {all} rounds of {name} a run did not complete: its values are unknown.")
    }));
    if pairs.iter().any(|pair| pair.with.evidence != pair.base.evidence) {
        remarks.push(
            "Environments with different kinds of evidence are shown side by side: the cost of an emulated \
             processor comes from the emulator, not from the environment."
                .into(),
        );
    }
    remarks
}

/// As the document has it.
#[must_use]
pub fn entry(contents: &Contents, pair: &Degraded, item: &DegradedItem) -> DegradationEntry {
    let place = |of: &RowResult, value: &ValueResult| PlaceEntry {
        scenario: beginning(&of.name, WRITTEN),
        environment: beginning(&of.environment, WRITTEN),
        evidence: of.evidence,
        value: value.value,
        published: published_value(&contents.plan, of, value).map(|of| of.value),
    };
    DegradationEntry {
        measurement: pair.with.measurement.kind().to_owned(),
        item: beginning(&item.with.item, WRITTEN),
        at: item.with.at,
        unit: item.with.unit,
        base: place(pair.base, &item.base),
        with: place(pair.with, &item.with),
        degradation: item.degradation,
    }
}
