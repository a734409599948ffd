//! The rows of a separation, made up: which environment is late, and when.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tactus_model::buckets::{Counts, bucket_of};
use tactus_model::bundle::{ClockFit, Contents, InjectedIn, Row};
use tactus_model::catalogue::fault::Hog;
use tactus_model::catalogue::{Fault, Load};
use tactus_model::lot::Lots;
use tactus_model::message::Injected;
use tactus_model::plan::{Disturbance, Disturbed, Plan, Separation, Technology, Trait};
use tactus_model::windows::Moments;
use tactus_model::{CpuSet, Evidence, Nanos};

use crate::common::{Shape, Span, environment, latency, manifest, measured, planned};

pub const MS: u64 = 1_000_000;
pub const LENGTH: u64 = 50 * MS;
/// CPU of the machine on which everything is disturbed; the other one is 1.
pub const CPU: u32 = 2;
const SECONDS: u64 = 33;
const SPAN: Span = Span { ticks: SECONDS, samples: 300, per_interval: 1, series: 2 };
pub const S: u64 = 1_000 * MS;
pub const WINDOW: u64 = 100 * MS;
/// When everything begins, on the clock of the machine and on that of the guest.
pub const BEGAN: u64 = 5_000 * S + 40 * MS;
const BEGAN_IN_GUEST: u64 = 100 * S + 70 * MS;
/// All ticks.
const ALWAYS: std::ops::Range<usize> = 0..33;

/// When a disturbance is made, on the clock of the machine.
fn moments(load: bool) -> Vec<u64> {
    let lots = if load { Lots::of_load(7) } else { Lots::of_fault(LENGTH, S, 7) };
    let first = BEGAN / lots.every_ns + 1;
    (first..(BEGAN + SECONDS * S) / lots.every_ns).map(|period| lots.due(period)).collect()
}

/// The same on the clock of an environment.
fn clock_of(place: &str, at: u64) -> u64 {
    if place == "guest" { at - BEGAN + BEGAN_IN_GUEST } else { at }
}

/// Windows of a row, in which nothing but noise is.
pub fn keep_windows(row: &mut Row, place: &str, seed: u64) {
    let began = clock_of(place, BEGAN);
    let noise = Lots { every_ns: 1, part_ns: 1, places: 40_000, seed };
    let base = if place == "guest" { 900_000 } else { 5_000 };
    for cpu in [1, 2] {
        let key = row.result.series().iter().find(|one| one.key.cpu == cpu).unwrap().key.clone();
        let first = began.div_ceil(WINDOW);
        let maxima = (0..SECONDS * 10 - 1).map(|n| base + noise.place(n + 1_000_000 * u64::from(cpu)));
        row.windows.add(&key, began, first, maxima);
    }
    row.result.window_ns = Some(WINDOW);
    row.result.clock_fit =
        Some(ClockFit { began_ns: BEGAN, ppm: 0.0, span_ns: 30 * S, late_ns: 20 * MS, error_ns: None });
}

/// In these windows of a CPU the largest latency is at least `ns`.
pub fn set_windows(row: &mut Row, cpu: u32, windows: impl Iterator<Item = u64>, ns: u64) {
    let (_, own) = row.windows.series.iter_mut().find(|(key, _)| key.cpu == cpu).unwrap();
    let (late, ns): (BTreeSet<u64>, _) = (windows.collect(), u32::try_from(ns).unwrap());
    let of = |(window, max): (u64, u32)| (window, if late.contains(&window) { max.max(ns) } else { max });
    *own = own.iter().map(of).collect();
}

/// Keeps only the known windows.
pub fn keep(row: &mut Row, known: impl Fn(u64) -> bool) {
    for own in row.windows.series.values_mut() {
        *own = own.iter().filter(|(window, _)| known(*window)).collect();
    }
}

/// Makes a row late at the moments of these injections.
pub fn inject(row: &mut Row, place: &str, late: &Late) {
    let hit = moments(false).into_iter().enumerate().filter(|(n, _)| late.ticks.contains(n));
    let windows: Vec<u64> = hit.map(|(_, at)| (clock_of(place, at) + late.ns) / WINDOW).collect();
    set_windows(row, late.cpu, windows.into_iter(), late.ns);
}

/// A load is seen in a row while it is on.
pub fn load(row: &mut Row, place: &str, late: &Late) {
    let windows: Vec<u64> =
        moments(true).into_iter().flat_map(|at| (clock_of(place, at) / WINDOW..).take(10)).collect();
    set_windows(row, late.cpu, windows.into_iter(), late.ns);
}

/// The late part of a row: on this CPU inside, in each of these ticks, by this much.
pub struct Late {
    pub cpu: u32,
    pub ticks: std::ops::Range<usize>,
    pub ns: u64,
}

/// Makes wake-ups of a measured row late.
fn delay(row: &mut Row, late: &Late) {
    for (_, series) in row.ticks.series.iter_mut().filter(|(key, _)| key.cpu == late.cpu) {
        for tick in &mut series.stretches {
            if late.ticks.contains(&usize::try_from(tick.first).unwrap()) {
                tick.max_ns = Some(late.ns);
                let counted = row.histograms.series.entry(late.cpu.to_string()).or_default();
                let mut more = Counts::default();
                more.add_packed(counted);
                more.add(bucket_of(late.ns), 1);
                *counted = more.pack();
            }
        }
    }
    for series in latency(row).series.iter_mut().filter(|series| series.key.cpu == late.cpu) {
        if !late.ticks.is_empty() {
            series.summary.max_ns = Some(late.ns);
        }
    }
}

/// A row of a separation: measured on CPUs 1 and 2, which are those of the machine.
pub fn row(name: &str, place: &str, seed: u64, late: &[Late]) -> Row {
    let (kind, evidence, shape) = match place {
        "guest" => ("qemu", Evidence::Emulated, Shape { late: 0.0, ..Shape::EMULATED }),
        "container" => ("podman", Evidence::VirtualHost, Shape::IDLE),
        _ => ("host", Evidence::VirtualHost, Shape::IDLE),
    };
    let mut result = planned(name, place, kind, Vec::new());
    result.layout = vec![(1, 1), (2, 2)];
    result.planned_ns = SECONDS * S;
    let mut row = measured(result, evidence, shape, SPAN, seed);
    keep_windows(&mut row, place, seed);
    for late in late {
        delay(&mut row, late);
    }
    row
}

pub fn on(cpu: u32, ns: u64) -> Vec<Late> {
    vec![Late { cpu, ticks: ALWAYS, ns }]
}

/// A hog in each of three environments. The one on the host reaches all of them. The one in the container
/// reaches the host, and the guest in part. The one in the guest reaches no other environment.
pub fn contents() -> Contents {
    let mut plan =
        Plan { name: "separation".into(), title: Some("Who reaches whom?".into()), ..Plan::default() };
    let places = ["host", "container", "guest"];
    for (place, kind) in places.into_iter().zip(["host", "podman", "qemu"]) {
        plan.environment.insert(place.into(), environment(kind));
    }
    let hog = Hog { length: Nanos(LENGTH), every: Nanos::from_secs(1) };
    let what = |fault, load| Disturbance { fault, load };
    plan.separation = Some(Separation {
        environments: places.map(str::to_owned).to_vec(),
        disturb: vec![
            what(Some(Fault::Hog(hog)), None),
            what(None, Some(Load::Cpu(tactus_model::catalogue::load::Cpu::default()))),
        ],
        interval: None,
        quick: None,
        rest: vec!["rest".into()],
        disturbed: places
            .iter()
            .flat_map(|place| {
                ["hog", "cpu"].map(|what| Disturbed {
                    scenario: format!("{what} in {place}"),
                    environment: (*place).into(),
                    what: what.into(),
                    cpu: Some(CPU),
                })
            })
            .collect(),
        absent: BTreeMap::from([("inmate".into(), "no Jailhouse on this machine".into())]),
        seed: Some(7),
    });
    for (name, place, published) in [("Docker", "container", "Limited"), ("KVM", "guest", "Good")] {
        plan.technology.push(Technology {
            name: name.into(),
            environment: place.into(),
            host: "host".into(),
            alike: vec![["rest".into(), "rest".into()]],
            published: BTreeMap::from([
                (Trait::RealTime, "Yes".into()),
                (Trait::AsOnHost, "Yes".into()),
                (Trait::Separation, published.into()),
                (Trait::Independence, "No".into()),
            ]),
        });
    }
    let mut rows: Vec<Row> =
        (30_u64..).zip(places).map(|(seed, place)| row("rest", place, seed, &[])).collect();
    for (from, disturbed) in (1_u64..).zip(places) {
        for (seed, place) in (from * 10..).zip(places) {
            let late = match (disturbed, place) {
                ("host", _) | ("container", "host" | "container") | ("guest", "guest") => {
                    on(CPU, LENGTH - 90_000)
                }
                ("container", "guest") => vec![Late { cpu: CPU, ticks: ALWAYS, ns: 5 * MS }],
                _ => Vec::new(),
            };
            let mut one = row(&format!("hog in {disturbed}"), place, seed, &late);
            late.iter().for_each(|late| inject(&mut one, place, late));
            one.result.fault =
                vec![json!({ "kind": "hog", "length": "50ms", "every": "1s", "in": disturbed, "cpus": "2" })];
            one.result.injected = vec![InjectedIn {
                environment: disturbed.into(),
                outside: CpuSet::one(CPU),
                injected: Injected {
                    activity: 3,
                    kind: "hog".into(),
                    way: "SCHED_FIFO 99".into(),
                    cpus: CpuSet::one(CPU),
                    length_ns: LENGTH,
                    every_ns: 1_000 * MS,
                    times: Some(moments(false).len() as u64),
                    longest_ns: Some(LENGTH + 40_000),
                    at: Moments::of(moments(false).into_iter().map(|at| clock_of(disturbed, at))),
                },
            }];
            rows.push(one);
            let late = if disturbed == place {
                on(CPU, 160_000 + if place == "guest" { 9 * MS } else { 0 })
            } else {
                Vec::new()
            };
            let mut one = row(&format!("cpu in {disturbed}"), place, seed + 500, &late);
            late.iter().for_each(|late| load(&mut one, place, late));
            let let_run = moments(true).into_iter().map(|at| clock_of(disturbed, at));
            one.result.injected = vec![InjectedIn {
                environment: disturbed.into(),
                outside: CpuSet::one(CPU),
                injected: Injected {
                    activity: 3,
                    kind: "cpu".into(),
                    way: "SIGSTOP, SIGCONT".into(),
                    cpus: CpuSet::one(CPU),
                    length_ns: S,
                    every_ns: 2 * S,
                    times: Some(moments(true).len() as u64),
                    longest_ns: None,
                    at: Moments::of(let_run),
                },
            }];
            one.result.load = vec![json!({ "kind": "cpu", "in": disturbed, "cpus": "2" })];
            rows.push(one);
        }
    }
    Contents {
        manifest: manifest("separation"),
        plan,
        facts: BTreeMap::new(),
        audits: BTreeMap::new(),
        rows,
        notes: Vec::new(),
        damage: Vec::new(),
        raw: false,
        own: false,
    }
}
