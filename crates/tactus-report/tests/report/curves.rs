//! Items that were measured at several points: tables by size, figures, and what stands for the whole.

use crate::common::{empty, environment, item, planned, valued};
use tactus_model::Evidence;
use tactus_model::bundle::Contents;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Memory;
use tactus_model::facts::Facts;
use tactus_model::outcome::{Better, Outcome, Point, Unit, ValueResult};
use tactus_report::document;
use tactus_report::figure::Figure;
use tactus_report::part::{Part, Reader, Table};
use tactus_report::render::text::{Style, render};
use tactus_report::section::{Section, curves, values};

const ITEM: &str = "random latency, 4 KiB pages";

/// The latency of memory in some environments, 1 KiB to 8 MiB; the first says its caches.
fn latencies(kinds: &[&str]) -> Contents {
    let mut contents = empty();
    for (n, kind) in (0_u32..).zip(kinds) {
        contents.plan.environment.insert((*kind).into(), environment(kind));
        let result = planned(&format!("{kind}, memory"), kind, kind, Vec::new());
        let mut row = valued(
            result,
            Evidence::BareMetal,
            &[
                (item("memory read bandwidth", Unit::MegabytesPerSecond, Better::Higher), 9_000.0),
                (item(ITEM, Unit::Ns, Better::Lower), 1.5),
            ],
        );
        let [read, first] = row.result.values() else { panic!() };
        let at = |power: u32| {
            let times = f64::from((1 + n) * (1 + power * power));
            let kept = |value: f64| value * times;
            ValueResult {
                at: Some(Point::Bytes(1024 << power)),
                value: kept(first.value),
                low: first.low.map(kept),
                high: first.high.map(kept),
                ..first.clone()
            }
        };
        let points = (0..14).map(at);
        row.result.outcome = Outcome::Values(std::iter::once(read.clone()).chain(points).collect());
        contents.rows.push(row);
    }
    let mut facts = Facts::default();
    facts.keep("/sys/devices/system/cpu/online", "0");
    for (index, level, size) in [(0, "1", "32K"), (2, "2", "1024K"), (3, "3", "32768K")] {
        let dir = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        facts.keep(format!("{dir}/type"), "Unified");
        facts.keep(format!("{dir}/level"), level);
        facts.keep(format!("{dir}/shared_cpu_list"), "0");
        facts.keep(format!("{dir}/size"), size);
    }
    contents.facts.insert(kinds[0].to_owned(), facts);
    contents
}

fn parts(contents: &Contents, reader: Reader) -> (Vec<Figure>, Vec<Table>) {
    let (mut figures, mut tables) = (Vec::new(), Vec::new());
    let mut all = curves::ENTRY.parts(contents, reader);
    while !all.is_empty() {
        match all.remove(0) {
            Part::Figure(figure) => figures.push(figure),
            Part::Table(table) => tables.push(table),
            // Several tables are folded together.
            Part::Folded(_, parts) => all.splice(..0, parts).for_each(drop),
            other => panic!("{other:?}"),
        }
    }
    (figures, tables)
}

#[test]
fn a_curve_is_a_table_by_size_and_a_figure_with_the_sizes_of_the_caches() {
    let (figures, tables) = parts(&latencies(&["host"]), Reader::Page);
    let [table] = tables.as_slice() else { panic!("{tables:?}") };
    assert_eq!(table.head[0].name, "array");
    assert_eq!(table.head[1].name, "random latency, 4 KiB pages, ns");
    let first: Vec<&str> = table.rows[0].iter().map(|cell| cell.lines[0].as_str()).collect();
    assert_eq!((first, table.rows.len()), (vec!["1KiB", "1.50"], 14));
    let [figure] = figures.as_slice() else { panic!("{figures:?}") };
    assert_eq!(figure.title, "host, memory (bare metal)");
    let svg = figure.svg();
    for text in [ITEM, "L1 32KiB", "L2 1MiB", "in ns, log."] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!svg.contains("L3"), "it is beyond the largest array");
    let (none, tables) = parts(&latencies(&["host"]), Reader::Terminal);
    assert_eq!((none.len(), tables.len()), (0, 1));
}

#[test]
fn environments_are_drawn_in_one_figure_for_each_item() {
    let (figures, tables) = parts(&latencies(&["host", "podman"]), Reader::Page);
    assert_eq!((figures.len(), tables.len()), (1, 2));
    assert_eq!(figures[0].title, ITEM);
    assert!(figures[0].svg().contains("podman, memory (bare metal)"));
}

#[test]
fn among_the_other_values_a_curve_is_what_its_largest_array_is() {
    let mut contents = latencies(&["host", "podman"]);
    let style = Style { colour: false, width: 160 };
    let text = render(&contents, style);
    let measured =
        text.split("\n\nvalues ").nth(1).and_then(|text| text.split("\nB bare metal").next()).unwrap();
    // The name is longer than its column.
    let counted =
        ["random latency, 4 KiB pages,", "  8MiB\n", "4MiB"].map(|text| measured.matches(text).count());
    assert_eq!(counted, [2, 2, 0], "{measured}");
    let bars: Vec<String> = values::ENTRY
        .parts(&contents, Reader::Page)
        .into_iter()
        .flat_map(Part::figures)
        .map(|figure| figure.about)
        .collect();
    assert!(bars.concat().contains("4 KiB pages, 8MiB") && !bars.concat().contains("4MiB"), "{bars:?}");
    contents.plan.reference.push(
        serde_json::from_value(serde_json::json!({
            "scenario": "host, memory", "item": ITEM, "value": "648.3ns", "source": "a table"
        }))
        .unwrap(),
    );
    let json = serde_json::to_value(document(&contents)).unwrap();
    let all = json["scenarios"][0]["values"].as_array().unwrap();
    assert_eq!(all.len(), 15, "every point is in the document");
    let published: Vec<_> = all.iter().filter(|value| !value["published"].is_null()).collect();
    assert_eq!(published.len(), 1);
    assert_eq!(published[0]["at"]["bytes"], 8 << 20);
}

#[test]
fn machines_with_other_caches_are_compared_at_a_size_that_both_have() {
    let mut contents = latencies(&["host", "ssh"]);
    let mut compared = |host: &str, board: &str| -> Vec<(String, u64, f64)> {
        for (row, sizes) in contents.rows.iter_mut().zip([host, board]) {
            row.result.measurement = Measure::Memory(Memory { sizes: Some(sizes.parse().unwrap()) });
        }
        // The board's cache is smaller.
        if let Outcome::Values(values) = &mut contents.rows[1].result.outcome {
            values.retain(|value| value.at != Some(Point::Bytes(8 << 20)));
        }
        let json = serde_json::to_value(document(&contents)).unwrap();
        let all = json["degradations"].as_array().cloned().unwrap_or_default();
        let of = |entry: &serde_json::Value| {
            let worse = entry["degradation"]["value"].as_f64().unwrap();
            (entry["item"].as_str().unwrap().to_owned(), entry["at"]["bytes"].as_u64().unwrap_or(0), worse)
        };
        all.iter().map(of).collect()
    };
    let found = compared("1KiB..4x2MiB", "1KiB..4xLLC");
    let [(_, 0, bandwidth), (item, at, latency)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((item.as_str(), *at), (ITEM, 4 << 20));
    assert!(bandwidth.abs() < 1e-9 && (latency - 1.0).abs() < 1e-9, "{found:?}");
    assert!(
        compared("1KiB..4x2MiB", "1KiB..2xLLC").is_empty(),
        "another number of caches is another measurement"
    );
    assert!(compared("1KiB..4x2MiB", "4KiB..4xLLC").is_empty());
    assert!(compared("1KiB..8MiB", "1KiB..4MiB").is_empty(), "sizes of the plan's own are as they are");
}

#[test]
fn without_curves_there_is_no_such_section() {
    assert!(!curves::ENTRY.applies(&crate::common::overheads()));
    assert!(!render(&crate::common::overheads(), Style { colour: false, width: 100 }).contains("by size"));
}

#[test]
fn absurd_points_are_shown_and_nothing_panics() {
    let mut contents = latencies(&["host"]);
    let Outcome::Values(values) = &mut contents.rows[0].result.outcome else { panic!() };
    values[1].at = Some(Point::Bytes(0));
    values[2].at = Some(Point::Bytes(u64::MAX));
    values[3].at = Some(Point::Processes(u64::MAX));
    values[4].value = 1e300;
    values[5].value = 0.0;
    let (figures, tables) = parts(&contents, Reader::Page);
    assert_eq!((figures.len(), tables.len()), (2, 2), "sizes and numbers are two axes");
    assert!(figures.iter().all(|figure| !figure.svg().contains("NaN")));
}

#[test]
fn many_items_each_at_points_of_its_own_are_no_table_of_their_square() {
    let cells = |items: usize| -> usize {
        let mut contents = latencies(&["host"]);
        let of = |n: usize| ValueResult {
            item: format!("item {n}"),
            at: Some(Point::Bytes(1024 + n as u64)),
            ..contents.rows[0].result.values()[0].clone()
        };
        contents.rows[0].result.outcome = Outcome::Values((0..items).map(of).collect());
        let parts = curves::ENTRY.parts(&contents, Reader::Terminal);
        let tables =
            parts.iter().filter_map(|part| if let Part::Table(table) = part { Some(table) } else { None });
        tables.flat_map(|table| &table.rows).map(Vec::len).sum()
    };
    assert!(cells(512) <= 9 * 512, "{}", cells(512));
}
