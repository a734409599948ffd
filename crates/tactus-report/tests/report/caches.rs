//! Shared caches: latencies and misses by the caches that a CPU shares with the load, and the held part of a
//! divided cache. The counts are made up: no processor with these counters was at hand.

use std::collections::BTreeMap;

use serde_json::json;
use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row};
use tactus_model::partition::{CacheHeld, CacheUse, Phase};
use tactus_model::plan::{Page, Plan, Shown};
use tactus_report::document;
use tactus_report::render::text::{Style, render};
use tactus_report::render::{html, markdown};

use crate::common::{self, Shape, Span, environment, latency, manifest, measured, planned};

const SPAN: Span = Span { ticks: 10, samples: 1_000, per_interval: 1, series: 2 };

fn row(name: &str, seed: u64, misses: Option<u64>) -> Row {
    let mut row =
        measured(planned(name, "host", "host", Vec::new()), Evidence::BareMetal, Shape::IDLE, SPAN, seed);
    for series in &mut latency(&mut row).series {
        series.counters.llc_misses = misses.map(|misses| misses * u64::from(series.key.cpu));
    }
    row
}

fn contents(misses: Option<u64>) -> Contents {
    let mut plan = Plan { name: "caches".into(), ..Plan::default() };
    plan.environment.insert("host".into(), environment("host"));
    plan.page = vec![Page {
        title: "But why?! Shared last level caches".into(),
        words: None,
        show: vec![Shown::Caches],
        scenarios: vec!["no load".into(), "load on CPU 1".into()],
        environment: None,
    }];
    let mut with = row("load on CPU 1", 2, misses.map(|misses| misses * 100));
    with.result.load = vec![json!({ "kind": "cache", "in": "host", "cpus": "1" })];
    Contents {
        manifest: manifest("caches"),
        plan,
        facts: BTreeMap::new(),
        audits: BTreeMap::new(),
        rows: vec![row("no load", 1, misses), with],
        notes: Vec::new(),
        damage: Vec::new(),
        raw: false,
        own: false,
    }
}

#[test]
fn misses_stand_beside_the_latencies_where_they_are_counted() {
    let contents = contents(Some(1_000));
    let text = render(&contents, Style::default());
    assert!(text.contains("misses/s without"), "{text}");
    let page = html::render(&contents).unwrap();
    assert!(page.contains(">cache misses</th>") && page.contains(">200 000</td>"), "each thread's own");
    let entry = &document(&contents).caches[0];
    assert_eq!((entry.rest.as_str(), entry.loaded.as_str()), ("no load", "1"));
    assert_eq!(entry.cpus[1].cpu, 2);
    // 2000 and 200000 in ten seconds.
    assert_eq!((entry.cpus[1].rest_misses_per_s, entry.cpus[1].with_misses_per_s), (Some(200), Some(20_000)));
    assert!(entry.cpus.iter().all(|cpu| cpu.with_max_ns.is_some() && cpu.rest_max_ns.is_some()));
}

#[test]
fn a_machine_without_counters_says_so() {
    let text = render(&contents(None), Style::default());
    assert!(text.contains("no performance counters here") && !text.contains("misses/s"), "{text}");
    assert!(!html::render(&contents(None)).unwrap().contains("cache misses</th>"));
    assert_eq!(document(&contents(None)).caches[0].cpus[0].with_misses_per_s, None);
}

fn used(phase: Phase, group: &str, cpus: &str, mib: u64, moved: Option<u64>) -> CacheUse {
    CacheUse {
        phase,
        group: group.into(),
        cpus: cpus.parse().unwrap(),
        occupancy_bytes: Some(mib << 20),
        memory_bytes: moved.map(|mib| mib << 20),
    }
}

/// The contents with a divided cache.
fn divided() -> Contents {
    let mut contents = contents(None);
    for one in [
        used(Phase::Before, "all", "0-3", 20, None),
        used(Phase::With, "measured", "1-2", 3, Some(10)),
        used(Phase::With, "others", "0,3", 15, Some(500)),
        used(Phase::With, "measured", "1-2", 5, Some(12)),
        used(Phase::With, "others", "0,3", 16, Some(2_500)),
        used(Phase::After, "all", "0-3", 21, None),
    ] {
        CacheHeld::add(&mut contents.rows[1].held, &one);
    }
    contents
}

#[test]
fn the_json_of_caches_and_partitions() {
    insta::assert_snapshot!(common::sections(&document(&divided())));
}

#[test]
fn what_was_held_of_a_divided_cache_is_shown_before_with_and_after() {
    let contents = divided();
    let held = document(&contents).partitions;
    let of = |phase, group: &str| held.iter().find(|one| one.phase == phase && one.group == group).unwrap();
    let measured = of(Phase::With, "measured");
    assert_eq!(
        (measured.looks, measured.least_bytes, measured.most_bytes),
        (2, Some(3 << 20), Some(5 << 20))
    );
    assert_eq!(measured.memory_bytes, Some(2 << 20));
    assert_eq!(of(Phase::After, "all").memory_bytes, None, "looked at once");
    let text = render(&contents, Style::default());
    for line in ["before it  all       0-3   20.0 MiB", "3.0 MiB to 5.0 MiB", "2.0 GiB"] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    for other in [html::render(&contents).unwrap(), markdown::render(&contents)] {
        assert!(other.contains("Use of the divided cache"));
    }
}
