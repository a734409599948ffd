//! What streams over network paths cost.

use tactus_model::bundle::{Contents, Row};
use tactus_model::catalogue::measure::{self, network as items};
use tactus_model::catalogue::{Item, Measure};
use tactus_model::document::{Degradation, Document, NetworkEntry};
use tactus_model::outcome::ValueResult;
use tactus_model::plan::{Activity, PathKind};

use super::Section;
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::units::{NONE, clean, number};

/// The section.
pub struct Network;
/// Its entry.
pub static ENTRY: Network = Network;

impl Section for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn heading(&self) -> &'static str {
        "Network paths"
    }

    fn about(&self) -> &'static str {
        "Streams of UDP over each path: what arrives, and how many hardware threads of the machine are busy for it. \
         Degradation is the load for each Gb/s over that of the first path in the same direction, less one; where its \
         interval holds zero there is no difference to be seen."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !entries(contents).is_empty()
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        let entries = entries(contents);
        let head = vec![
            Head::words("scenario"),
            Head::words("path"),
            Head::words(""),
            Head::number("Mb/s"),
            Head::number("lost %"),
            Head::number("load"),
            Head::number("per Gb/s"),
            Head::number("degradation"),
            Head::number("switches/message"),
        ];
        let mut table = Table::whole("", head, entries.iter().map(row).collect());
        if entries.iter().any(|entry| entry.one_machine) {
            table.remarks.push(
                "Both ends are network namespaces of one machine, which stand for two machines and the wire between \
                 them: the load is that of both ends, and there is no line rate."
                    .into(),
            );
        }
        vec![Part::Table(table)]
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.network = entries(contents);
    }
}

fn row(entry: &NetworkEntry) -> Vec<Cell> {
    let shown = |value: Option<f64>| Cell::from(value.map_or_else(|| NONE.into(), number));
    let path = match &entry.path {
        Some(name) if *name != entry.kind => format!("{} ({})", clean(name), entry.kind),
        _ => entry.kind.clone(),
    };
    vec![
        clean(&entry.scenario).into(),
        path.into(),
        entry.direction.clone().into(),
        shown(entry.throughput_mbps),
        shown(entry.loss_percent),
        shown(entry.load),
        shown(entry.load_per_gbps),
        entry.degradation.map_or_else(|| NONE.into(), degraded).into(),
        shown(entry.switches_per_message),
    ]
}

/// A degradation is only called so where there is one to be seen.
fn degraded(of: Degradation) -> String {
    let percent = |value: f64| number(value * 100.0);
    match (of.low, of.high) {
        (Some(low), Some(high)) if of.seen => {
            format!("{} % ({} to {})", percent(of.value), percent(low), percent(high))
        }
        (Some(low), Some(high)) => format!("none seen ({} to {} %)", percent(low), percent(high)),
        _ => "too few turns".into(),
    }
}

/// The items of a direction: throughput, loss, load, load per rate, context switches.
type Items = [Item; 5];

const DIRECTIONS: [(&str, Items); 2] = [
    (
        "TX",
        [items::TX_THROUGHPUT, items::TX_LOSS, items::TX_LOAD, items::TX_LOAD_PER_RATE, items::TX_SWITCHES],
    ),
    (
        "RX",
        [items::RX_THROUGHPUT, items::RX_LOSS, items::RX_LOAD, items::RX_LOAD_PER_RATE, items::RX_SWITCHES],
    ),
];

/// Every stream that was measured, the directions of one after the other.
fn entries(contents: &Contents) -> Vec<NetworkEntry> {
    let mut entries = Vec::new();
    for (direction, items) in &DIRECTIONS {
        let mut first: Option<&ValueResult> = None;
        for row in &contents.rows {
            let Measure::Network(table) = &row.result.measurement else { continue };
            let value = |item: &Item| row.result.values().iter().find(|own| own.item == item.name);
            let [throughput, loss, load, per_rate, switches] = items.each_ref().map(value);
            if throughput.is_none() {
                continue;
            }
            let degradation = first.zip(per_rate).map(|(first, own)| degradation(first, own));
            first = first.or(per_rate);
            let of = |value: Option<&ValueResult>| value.map(|value| value.value);
            entries.push(NetworkEntry {
                direction: (*direction).to_owned(),
                throughput_mbps: of(throughput),
                loss_percent: of(loss),
                load: of(load),
                load_per_gbps: of(per_rate),
                switches_per_message: of(switches),
                degradation,
                ..entry(contents, row, table)
            });
        }
    }
    entries
}

/// What a row's entries have in common.
fn entry(contents: &Contents, row: &Row, table: &measure::Network) -> NetworkEntry {
    let result = &row.result;
    let scenario = contents.plan.scenario.iter().find(|own| own.name.as_ref() == Some(&result.name));
    let activities = scenario.map_or(&[][..], |scenario| &scenario.activity);
    let network = |own: &&Activity| {
        own.environment == result.environment && matches!(own.measure, Some(Measure::Network(_)))
    };
    let path = activities.iter().find(network).and_then(|own| own.path.clone());
    let kind = path.as_ref().and_then(|name| contents.plan.path.get(name)).map(|path| path.kind);
    let kind = kind.unwrap_or(PathKind::Loopback);
    NetworkEntry {
        scenario: result.name.clone(),
        environment: result.environment.clone(),
        path,
        kind: kind.to_string(),
        one_machine: kind != PathKind::Loopback,
        evidence: result.evidence,
        direction: String::new(),
        offered_mbps: table.rate,
        throughput_mbps: None,
        loss_percent: None,
        load: None,
        load_per_gbps: None,
        switches_per_message: None,
        degradation: None,
    }
}

/// How much more one costs than the other. The interval has the ends that both intervals allow together: it holds the
/// true ratio with 90 % at least.
fn degradation(first: &ValueResult, own: &ValueResult) -> Degradation {
    let less_one = |above: f64, below: f64| above / below - 1.0;
    let ends = first.low.zip(first.high).zip(own.low.zip(own.high)).filter(|((low, _), _)| *low > 0.0);
    let (low, high) = match ends {
        Some(((first_low, first_high), (low, high))) => {
            (Some(less_one(low, first_high)), Some(less_one(high, first_low)))
        }
        None => (None, None),
    };
    let seen = low.is_some_and(|low| low > 0.0) || high.is_some_and(|high| high < 0.0);
    Degradation { value: less_one(own.value, first.value), low, high, seen }
}

#[cfg(test)]
mod tests {
    use tactus_model::outcome::{Better, Unit};

    use super::*;

    fn load(value: f64, interval: Option<(f64, f64)>) -> ValueResult {
        ValueResult {
            item: "TX load per rate".into(),
            at: None,
            unit: Unit::ThreadsPerGigabit,
            better: Better::Lower,
            samples: 20,
            value,
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            min: value,
            max: value,
            deviation: 0.0,
            variation: 0.0,
            dropped: 0,
            batch: 1,
        }
    }

    #[test]
    fn a_degradation_is_only_called_so_where_its_interval_excludes_zero() {
        let first = load(1.0, Some((0.9, 1.1)));
        let worse = degradation(&first, &load(2.0, Some((1.8, 2.2))));
        assert!(worse.seen && (worse.value - 1.0).abs() < 1e-9);
        assert_eq!(degraded(worse), "100 % (63.6 to 144)");
        let alike = degradation(&first, &load(1.15, Some((1.0, 1.3))));
        assert!(!alike.seen);
        assert!(degraded(alike).starts_with("none seen ("), "{}", degraded(alike));
        let better = degradation(&first, &load(0.5, Some((0.4, 0.6))));
        assert!(better.seen && better.value < 0.0);
    }

    #[test]
    fn few_turns_and_a_load_of_nothing_have_no_interval() {
        let few = degradation(&load(1.0, None), &load(2.0, None));
        assert_eq!((few.low, few.seen, degraded(few)), (None, false, "too few turns".to_owned()));
        let nothing = degradation(&load(0.1, Some((0.0, 0.2))), &load(2.0, Some((1.0, 3.0))));
        assert!(!nothing.seen);
    }
}
