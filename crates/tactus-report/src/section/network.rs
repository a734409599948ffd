//! The costs of streams over network paths.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row};
use tactus_model::catalogue::measure::{self, network as items};
use tactus_model::catalogue::{Item, Measure};
use tactus_model::document::{Degradation, Document, NetworkEntry};
use tactus_model::outcome::{ValueResult, value_of};
use tactus_model::plan::{Activity, PathKind, Scenario};

use super::Section;
use super::degradation::{doubt, words};
use crate::part::{Cell, Head, Part, Reader, Table};
use crate::row::Runs;
use crate::stats::{degradations, valued, values_of};
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
        "UDP streams over each path: how much arrives, and how many hardware threads of the machine are busy \
         for it. Degradation is the load for each Gb/s compared with that of the first path in the same \
         direction. A degradation is shown only if the plan repeats the runs and the interval excludes zero."
    }

    fn applies(&self, contents: &Contents) -> bool {
        !streams(contents).is_empty()
    }

    fn parts(&self, contents: &Contents, _: Reader) -> Vec<Part> {
        let entries = entries(contents);
        let head = vec![
            Head::words("scenario"),
            Head::words("path"),
            Head::words("direction"),
            Head::number("Mb/s"),
            Head::number("lost %"),
            Head::number("load"),
            Head::number("per Gb/s"),
            Head::number("degradation"),
            Head::number("switches per message"),
        ];
        let mut table = Table::whole("", head, entries.iter().map(row).collect());
        if entries.iter().any(|entry| entry.one_machine) {
            table.remarks.push(
                "Both ends are network namespaces of one machine, in place of two machines and the wire \
                 between them. The load is that of both ends, and there is no line rate."
                    .into(),
            );
        }
        table.remarks.extend(busy(contents));
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
        entry.degradation.map_or_else(|| Cell::from(NONE.to_owned()), degradation),
        shown(entry.switches_per_message),
    ]
}

fn degradation(of: Degradation) -> Cell {
    std::iter::once(words(of)).chain(doubt(of)).collect::<Vec<String>>().into()
}

/// Names the rows in which the machine did other work at the same time, which is in the load.
fn busy(contents: &Contents) -> Option<String> {
    let is_busy = |row: &&Row| {
        let values = row.result.values();
        let value = |item: &Item| Some(value_of(values, item.name)?.value);
        let loads: Vec<f64> = [items::TX_LOAD, items::RX_LOAD].iter().filter_map(value).collect();
        value(&items::LOAD_AT_REST).is_some_and(|rest| loads.iter().any(|load| rest > OTHERS * load))
    };
    let of = contents.rows.iter().filter(|row| matches!(row.result.measurement, Measure::Network(_)));
    let mut names: Vec<String> =
        of.filter(is_busy).map(|row| format!("`{}`", clean(&row.result.name))).collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "The load of {} includes other work: even at rest the machine was busy for more than a tenth of \
             it (`load at rest`). Measure again while nothing else runs.",
            names.join(", ")
        )
    })
}

/// So large a part of the load may be others'.
const OTHERS: f64 = 0.1;

/// The items of a direction: throughput, loss, load, load per rate, context switches.
type Items = [Item; 5];

static DIRECTIONS: [(&str, Items); 2] = [
    (
        "TX",
        [items::TX_THROUGHPUT, items::TX_LOSS, items::TX_LOAD, items::TX_LOAD_PER_RATE, items::TX_SWITCHES],
    ),
    (
        "RX",
        [items::RX_THROUGHPUT, items::RX_LOSS, items::RX_LOAD, items::RX_LOAD_PER_RATE, items::RX_SWITCHES],
    ),
];

/// A stream that was measured, in one direction.
struct Stream<'a> {
    /// The number of its row in the bundle.
    number: usize,
    row: &'a Row,
    table: &'a measure::Network,
    direction: &'static str,
    /// As [`Items`].
    values: [Option<ValueResult>; 5],
}

/// Every stream that was measured, the directions of one after the other.
fn streams(contents: &Contents) -> Vec<Stream<'_>> {
    let runs = Runs::new(contents);
    let rows = valued(contents).into_iter().filter_map(|(number, row)| match &row.result.measurement {
        Measure::Network(table) => Some((number, row, table, values_of(runs.of(number), &row.result))),
        _ => None,
    });
    let rows: Vec<_> = rows.collect();
    let stream = |(direction, items): &'static (&'static str, Items)| {
        rows.iter().filter_map(move |(number, row, table, all)| {
            let value = |item: &Item| all.iter().find(|own| own.item == item.name).cloned();
            let values = items.each_ref().map(value);
            values[0].is_some().then_some(Stream { number: *number, row, table, direction, values })
        })
    };
    DIRECTIONS.iter().flat_map(stream).collect()
}

/// The costs of each of them.
fn entries(contents: &Contents) -> Vec<NetworkEntry> {
    let streams = streams(contents);
    if streams.is_empty() {
        return Vec::new();
    }
    let degraded = degradations(contents, true);
    let named = contents.plan.scenario.iter().filter_map(|own| Some((own.name.as_deref()?, own)));
    // Of several of one name the first.
    let scenarios: BTreeMap<&str, &Scenario> = named.rev().collect();
    let told = |Stream { number, row, table, direction, values }: Stream| {
        let of = |value: &Option<ValueResult>| value.as_ref().map(|value| value.value);
        let [throughput, loss, load, per_rate, switches] = &values;
        let degradation = per_rate.as_ref().and_then(|own| {
            let pair = degraded.iter().find(|pair| pair.with_row == number)?;
            Some(pair.items.iter().find(|item| item.with.is_of(own))?.degradation)
        });
        NetworkEntry {
            direction: direction.to_owned(),
            throughput_mbps: of(throughput),
            loss_percent: of(loss),
            load: of(load),
            load_per_gbps: of(per_rate),
            switches_per_message: of(switches),
            degradation,
            ..entry(contents, scenarios.get(row.result.name.as_str()).copied(), row, table)
        }
    };
    streams.into_iter().map(told).collect()
}

/// The shared fields of a row's entries.
fn entry(
    contents: &Contents,
    scenario: Option<&Scenario>,
    row: &Row,
    table: &measure::Network,
) -> NetworkEntry {
    let result = &row.result;
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
