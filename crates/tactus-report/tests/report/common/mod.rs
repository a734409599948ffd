//! Written fixtures: bundles whose numbers come from a small generator with a fixed seed. They have the
//! shape of real runs (skewed latencies, a few late ones under load, emulation a hundred times slower)
//! and claim nothing about any machine.

pub mod audits;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tactus_model::bundle::{Contents, FORMAT, Machine, Manifest, Row, RowResult};
use tactus_model::catalogue::measure::Os;
use tactus_model::catalogue::{Item, Measure};
use tactus_model::event::RunStatus;
use tactus_model::facts::Facts;
use tactus_model::histograms::{Folding, Place};
use tactus_model::latency::{Latency, Totals, swallowed};
use tactus_model::message::{Control, Note, Outlier, Stage, ThreadCounters};
use tactus_model::number::{float, whole};
use tactus_model::outcome::{
    Better, Ending, LatencyOutcome, Outcome, Repeats, RowEnd, SeriesResult, Unit, ValueResult,
};
use tactus_model::plan::{Compare, Environment, Figure, FigureKind, Plan, Reference, Require, Scenario};
use tactus_model::series::SeriesKey;
use tactus_model::ticks::{TickScalars, Ticks};
use tactus_model::{Evidence, Nanos};

/// xorshift64*: numbers that are the same on every machine.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Between 0 and 1.
    fn unit(&mut self) -> f64 {
        float(self.next() >> 11) / float(1 << 53)
    }
}

/// The shape of a row's latencies, in ns.
#[derive(Clone, Copy)]
pub struct Shape {
    pub base: f64,
    pub spread: f64,
    /// Part of the wake-ups that something delays.
    pub late: f64,
    pub lateness: f64,
}

impl Shape {
    pub const IDLE: Self = Self { base: 1_900.0, spread: 420.0, late: 0.002, lateness: 2_600.0 };
    pub const LOADED: Self = Self { base: 2_500.0, spread: 900.0, late: 0.02, lateness: 4_500.0 };
    pub const EMULATED: Self = Self { base: 210_000.0, spread: 70_000.0, late: 0.03, lateness: 900_000.0 };

    fn draw(self, random: &mut Random) -> u64 {
        let exponential = |random: &mut Random| -(1.0 - random.unit()).ln();
        let mut value = self.base + self.spread * exponential(random);
        if random.unit() < self.late {
            value += self.lateness * exponential(random);
        }
        whole(value)
    }
}

pub const MACHINE: &str = "bench-07";

/// Each round of a bundle as a separate bundle: as if the runs had been sittings.
pub fn sittings(of: &Contents) -> Vec<Contents> {
    let rounds: std::collections::BTreeSet<Option<u32>> =
        of.rows.iter().map(|row| row.result.repeat).collect();
    let sitting = |round: &Option<u32>| {
        let rows = of.rows.iter().filter(|row| row.result.repeat == *round).cloned().collect();
        Contents { rows, ..of.clone() }
    };
    rounds.iter().map(sitting).collect()
}

/// A row as it would have been planned.
pub fn planned(name: &str, environment: &str, kind: &str, load: Vec<Value>) -> RowResult {
    RowResult { load, planned_ns: 10_000_000_000, ..RowResult::unmeasured(name, environment, kind) }
}

/// Ticks, samples per tick and series, ticks per interval of the log.
#[derive(Clone, Copy)]
pub struct Span {
    pub ticks: u64,
    pub samples: u64,
    pub per_interval: u64,
    pub series: u32,
}

impl Span {
    pub const QUICK: Self = Self { ticks: 20, samples: 2_500, per_interval: 1, series: 2 };
}

/// Measures a planned row: `shape` decides the latencies.
pub fn measured(mut result: RowResult, evidence: Evidence, shape: Shape, span: Span, seed: u64) -> Row {
    let mut random = Random(seed * 7_919 + 12_345);
    let tick_ns = result.planned_ns / span.ticks;
    let (mut ticks, mut series) = (Ticks::planned(result.planned_ns), Vec::new());
    let mut all = Latency::new();
    let lengths = vec![tick_ns * span.per_interval];
    let (mut intervals, mut missed) =
        (Folding::new(lengths.clone(), usize::MAX), Folding::new(lengths, usize::MAX));
    for cpu in 1..=span.series {
        let key = SeriesKey { cpu, thread: cpu - 1, priority: 95, kind: "thread".into() };
        let (mut own, mut interval) = (Latency::new(), Latency::new());
        let mut outliers = Vec::new();
        for n in 0..span.ticks {
            let mut values: Vec<u64> = (0..span.samples).map(|_| shape.draw(&mut random)).collect();
            let mut totals = Totals::default();
            for value in &values {
                interval.record(*value, result.interval_ns);
                let overruns = swallowed(*value, result.interval_ns);
                totals.add(&Totals { cycles: 1, overruns, min_ns: *value, max_ns: *value, sum_ns: *value });
            }
            values.sort_unstable();
            for value in values.iter().rev().take(12) {
                outliers.push(Outlier {
                    activity: 0,
                    series: key.clone(),
                    at_ns: n * tick_ns + value,
                    value_ns: *value,
                    trace: None,
                });
            }
            outliers.sort_by_key(|outlier| std::cmp::Reverse(outlier.value_ns));
            outliers.truncate(12);
            let scalars = TickScalars {
                n,
                at_ns: (n + 1) * tick_ns + 40_000,
                cycles: totals.cycles,
                overruns: totals.overruns,
                min_ns: Some(totals.min_ns),
                sum_ns: Some(totals.sum_ns),
                p99_ns: values.get(values.len() * 99 / 100).copied(),
                max_ns: Some(totals.max_ns),
            };
            assert!(ticks.add(&key, &scalars));
            if (n + 1) % span.per_interval == 0 || n + 1 == span.ticks {
                let first = n / span.per_interval * span.per_interval;
                // A tick ends a little late, and the next interval begins there.
                let start = if first == 0 { 0 } else { first * tick_ns + 40_000 };
                let place = Place { start_ns: start, length_ns: (n + 1) * tick_ns + 40_000 - start };
                for (folding, counted) in [(&mut intervals, &interval.raw), (&mut missed, &interval.missed)] {
                    let counts = tactus_model::Sparse::of(counted);
                    assert!(folding.add_sparse(&cpu.to_string(), place, &counts).unwrap());
                }
                own.merge(&interval);
                interval = Latency::new();
            }
        }
        result.control.push(Control {
            activity: 0,
            series: key.clone(),
            injected_ns: 1_000_000,
            seen_ns: 1_000_000 + shape.draw(&mut random),
            noise_ns: whole(shape.base * 2.0),
            passed: true,
            attempts: 1,
            by: "hog".into(),
            stage: Stage::Before,
        });
        let counters = ThreadCounters {
            voluntary_switches: Some(own.totals.cycles),
            involuntary_switches: Some(u64::from(cpu) * 3),
            ..counters()
        };
        series.push(SeriesResult { key, summary: own.summary(), counters, outliers, whole: true });
        all.merge(&own);
    }
    result.threads = Some(series.iter().map(|series| series.key.of_thread()).collect());
    result.evidence = Some(evidence);
    result.end(Ending::complete());
    result.started = Some("2026-11-20T09:14:03Z".into());
    result.measured_ns = result.planned_ns;
    result.start_up_ms = Some(if result.kind == "qemu" { 1_912 } else { 148 });
    result.outcome = Outcome::Latency(LatencyOutcome { series, all: Some(all.summary()) });
    result.notes.push(Note::side_effect("/dev/cpu_dma_latency was held at 0 us while measuring"));
    Row { ticks, histograms: intervals.finish(), missed: missed.finish(), ..Row::of(result) }
}

/// The counters of a thread that ran undisturbed.
pub fn counters() -> ThreadCounters {
    ThreadCounters {
        minor_faults: Some(0),
        major_faults: Some(0),
        voluntary_switches: Some(0),
        involuntary_switches: Some(0),
        cpu_ns: Some(310_000_000),
        steal_ns: Some(1_200_000),
        smi: None,
        llc_misses: None,
    }
}

/// The latencies of a row, to be changed.
pub fn latency(row: &mut Row) -> &mut LatencyOutcome {
    row.result.outcome.latency_mut().expect("it has latencies")
}

pub fn unmeasured(mut result: RowResult, ended: RowEnd, reason: &str) -> Row {
    result.end(Ending::because(ended, reason));
    Row::of(result)
}

pub fn scheduler(environment: &str) -> Vec<Value> {
    vec![json!({ "kind": "scheduler", "pipes": false, "in": environment })]
}

pub fn manifest(plan: &str) -> Manifest {
    Manifest {
        format: FORMAT,
        tactus: "0.1.0".into(),
        plan: plan.into(),
        started: "2026-11-20T09:14:01Z".into(),
        finished: Some("2026-11-20T09:15:32Z".into()),
        status: RunStatus::Complete,
        machine: Machine {
            name: MACHINE.into(),
            processor: "Intel(R) Xeon(R) Gold 6338N CPU @ 2.20GHz".into(),
            cpus: "0-3".into(),
            kernel: "6.12.57+deb13-rt-amd64 #1 SMP PREEMPT_RT Debian 6.12.57-1 (2025-11-05)".into(),
            system: "Debian GNU/Linux 13 (trixie)".into(),
            ..Machine::default()
        },
        files: BTreeMap::new(),
        sessions: Vec::new(),
        asked: None,
    }
}

pub fn facts(kernel: &str, cmdline: &str) -> Facts {
    let mut facts = Facts::default();
    facts.keep("uname:release", kernel);
    facts.keep("/proc/cmdline", cmdline);
    facts.keep("/sys/devices/system/cpu/online", "0-3");
    facts.keep("/sys/devices/system/cpu/isolated", "2-3");
    facts.keep("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
    facts.keep("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance");
    facts.keep("/proc/sys/kernel/sched_rt_runtime_us", "950000");
    facts.keep("/proc/interrupts", "            CPU0       CPU1\n  0:         12          0  IO-APIC   2-edge  timer\nLOC:    1234567     765432  Local timer interrupts");
    facts.0.insert("/sys/kernel/realtime".into(), tactus_model::facts::Reading::Absent);
    facts.0.insert(
        "/sys/kernel/debug/sched/features".into(),
        tactus_model::facts::Reading::Unreadable("Permission denied (os error 13)".into()),
    );
    facts
}

pub fn environment(kind: &str) -> Environment {
    Environment { kind: kind.into(), ..Environment::default() }
}

/// A run of `tactus run --quick` on a machine without KVM and without crun.
pub fn this_machine() -> Contents {
    static MADE: OnceLock<Contents> = OnceLock::new();
    MADE.get_or_init(make_this_machine).clone()
}

fn make_this_machine() -> Contents {
    let mut plan = Plan {
        name: "this-machine".into(),
        title: Some("This machine".into()),
        about: Some("Wake-up latency, everywhere with the same probe, CPUs, priority and interval.".into()),
        ..Plan::default()
    };
    let mut rows = Vec::new();
    for (n, kind) in ["host", "podman", "qemu"].into_iter().enumerate() {
        plan.environment.insert(kind.into(), environment(kind));
        plan.compare.push(Compare {
            name: format!("Scheduler load on {kind}"),
            base: format!("{kind}, idle"),
            with: format!("{kind}, loaded"),
            claim: None,
        });
        for loaded in [false, true] {
            let load = if loaded { scheduler(kind) } else { Vec::new() };
            let name = format!("{kind}, {}", if loaded { "loaded" } else { "idle" });
            plan.scenario.push(Scenario {
                name: Some(name.clone()),
                environment: Some(kind.into()),
                duration: Some(Nanos::from_secs(10)),
                ..Scenario::default()
            });
            let mut result = planned(&name, kind, kind, load);
            let (evidence, shape) = match (kind, loaded) {
                ("qemu", false) => (Evidence::Emulated, Shape::EMULATED),
                ("qemu", true) => (Evidence::Emulated, Shape { late: 0.09, ..Shape::EMULATED }),
                (_, false) => (Evidence::VirtualHost, Shape::IDLE),
                (_, true) => (Evidence::VirtualHost, Shape::LOADED),
            };
            if kind == "host" {
                result.require = Some(Require {
                    max: Some(Nanos::from_us(100)),
                    cycles: Some(50_000),
                    ..Require::default()
                });
            }
            if kind == "qemu" {
                result.require = Some(Require { max: Some(Nanos::from_us(100)), ..Require::default() });
                result
                    .notes
                    .push(Note::info("no KVM on this machine: the guest's processor is emulated (TCG)"));
            }
            rows.push(measured(result, evidence, shape, Span::QUICK, n as u64 * 2 + u64::from(loaded) + 1));
        }
    }
    let skipped = planned("oci, idle", "oci", "oci", Vec::new());
    rows.push(unmeasured(
        skipped,
        RowEnd::Unavailable,
        "neither crun nor runc is installed; install crun (apt install crun)",
    ));
    Contents {
        manifest: manifest("this-machine"),
        plan,
        facts: BTreeMap::from([
            (
                "host".into(),
                facts(
                    "6.12.57+deb13-rt-amd64",
                    "BOOT_IMAGE=/vmlinuz root=/dev/vda1 isolcpus=managed_irq,domain,2-3 nohz_full=2-3",
                ),
            ),
            (
                "podman".into(),
                facts(
                    "6.12.57+deb13-rt-amd64",
                    "BOOT_IMAGE=/vmlinuz root=/dev/vda1 isolcpus=managed_irq,domain,2-3 nohz_full=2-3",
                ),
            ),
            (
                "qemu".into(),
                facts("6.12.57+deb13-rt-amd64", "console=ttyS0 quiet isolcpus=managed_irq,domain,1"),
            ),
        ]),
        audits: BTreeMap::from([("host".into(), audits::audit())]),
        rows,
        notes: vec![
            (None, Note::info("the guest's kernel is linux-image-6.12.57+deb13-rt-amd64")),
            (
                Some("podman".into()),
                Note::obstacle(
                    "the cgroup of the container has no budget for real-time tasks (RT_GROUP_SCHED)",
                    "add --cpu-rt-runtime, or boot with a kernel without RT_GROUP_SCHED",
                ),
            ),
        ],
        damage: Vec::new(),
        raw: false,
        own: false,
    }
}

/// A study with references, claims and figures, on hardware with KVM; one scenario failed.
pub fn study() -> Contents {
    static MADE: OnceLock<Contents> = OnceLock::new();
    MADE.get_or_init(make_study).clone()
}

fn make_study() -> Contents {
    let names = [
        "host without load",
        "host with load on the neighbour",
        "VM without load",
        "VM with load on the neighbour",
    ];
    let mut plan = Plan {
        name: "intel-xeon-2015".into(),
        title: Some("Does load on one core disturb the real-time core beside it?".into()),
        about: Some("The document measures the wake-up latency of one core for 24 hours, on the host and in a virtual machine, without load and with hackbench on the neighbouring core.".into()),
        ..Plan::default()
    };
    plan.environment.insert("host".into(), environment("host"));
    plan.environment.insert("vm".into(), environment("qemu"));
    let mut rows = Vec::new();
    for (n, name) in names.into_iter().enumerate() {
        let (environment, kind) = if n < 2 { ("host", "host") } else { ("vm", "qemu") };
        let load = if n % 2 == 1 {
            vec![
                json!({ "kind": "scheduler", "pipes": false, "in": environment, "cpus": if n < 2 { "3" } else { "2" } }),
            ]
        } else {
            Vec::new()
        };
        let result = RowResult { planned_ns: 60_000_000_000, ..planned(name, environment, kind, load) };
        let slower = if n < 2 { 1.0 } else { 1.7 };
        let shape = if n == 1 { Shape { base: 2_050.0, ..Shape::IDLE } } else { Shape::IDLE };
        let shape = Shape { base: shape.base * slower, spread: shape.spread * slower, ..shape };
        let span = Span { ticks: 60, samples: 1_500, per_interval: 1, series: 1 };
        rows.push(measured(result, Evidence::BareMetal, shape, span, 40 + n as u64));
    }
    for scenario in &names[2..] {
        plan.reference.push(Reference {
            scenario: (*scenario).into(),
            max: Some(Nanos::from_us(8)),
            source: "section 12.2 and figure 3".into(),
            ..Reference::default()
        });
    }
    for (place, names, title) in
        [("host", &names[..2], "Figure 2. Result on Host"), ("VM", &names[2..], "Figure 3. Result on VM")]
    {
        plan.compare.push(Compare {
            name: format!("Load on the neighbour core, {place}"),
            base: names[0].into(),
            with: names[1].into(),
            claim: Some("load on one core does not change the latency on another".into()),
        });
        plan.figure.push(Figure {
            kind: FigureKind::LatencyOverTime,
            title: title.into(),
            scenarios: names.iter().map(|name| (*name).to_owned()).collect(),
        });
    }
    let mut manifest = manifest("intel-xeon-2015");
    manifest.started = "2026-11-20T10:00:00Z".into();
    Contents {
        manifest,
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

/// A bundle of a plan without scenarios.
pub fn empty() -> Contents {
    Contents {
        manifest: manifest("empty"),
        plan: Plan { name: "empty".into(), ..Plan::default() },
        facts: BTreeMap::new(),
        audits: BTreeMap::new(),
        rows: Vec::new(),
        notes: Vec::new(),
        damage: Vec::new(),
        raw: false,
        own: false,
    }
}

/// A bundle whose only claim compares `b` with `a`.
pub fn compared(rows: Vec<Row>) -> Contents {
    let mut contents = empty();
    contents.rows = rows;
    contents.plan.compare.push(Compare { name: "b".into(), base: "a".into(), with: "b".into(), claim: None });
    contents
}

/// A run that died while it measured its only row.
pub fn interrupted() -> Contents {
    static MADE: OnceLock<Contents> = OnceLock::new();
    MADE.get_or_init(make_interrupted).clone()
}

fn make_interrupted() -> Contents {
    let mut contents = empty();
    let mut row = measured(
        RowResult { planned_ns: 4_000_000_000, ..planned("host, idle", "host", "host", Vec::new()) },
        Evidence::BareMetal,
        Shape::IDLE,
        Span { ticks: 4, samples: 5_000, per_interval: 1, series: 1 },
        9,
    );
    row.result.planned_ns = 86_400_000_000_000;
    row.result.end(Ending { ended: RowEnd::Died, reason: None });
    contents.rows.push(row);
    contents.manifest.status = RunStatus::Interrupted;
    contents.manifest.finished = None;
    contents
        .damage
        .push("the run died before it could end the bundle: up to one report interval may be missing".into());
    contents
}

/// Names that want to be something else.
pub fn hostile() -> Contents {
    static MADE: OnceLock<Contents> = OnceLock::new();
    MADE.get_or_init(make_hostile).clone()
}

fn make_hostile() -> Contents {
    let names = [
        "<script>alert(1)</script>".to_owned(),
        "a|b`c` *d* \u{1b}[31mred\u{1b}[0m \u{202e}reversed".to_owned(),
        "very long ".repeat(40),
        "日本語のシナリオ名 🦀 und Ünïcödé".to_owned(),
        "\"quoted\" & 'single' {{ 7 * 7 }} </script><svg onload=x>".to_owned(),
    ];
    let mut contents = empty();
    contents.plan.title = Some("<img src=x onerror=alert(1)>".into());
    for (n, name) in names.iter().enumerate() {
        let mut result = planned(name, &format!("env<{n}>"), "host", Vec::new());
        result.notes.push(Note::obstacle("<b>bold</b>\nsecond line", "</td><script>"));
        let span = Span { ticks: 3, samples: 200, per_interval: 1, series: 1 };
        contents.rows.push(measured(result, Evidence::BareMetal, Shape::IDLE, span, n as u64 + 1));
    }
    let title = names[0].clone();
    contents.plan.figure.push(Figure { kind: FigureKind::Histogram, title, scenarios: names.to_vec() });
    contents.facts.insert("env<0>".into(), facts("<kernel>", "</script><script>alert(2)</script>"));
    contents
}

/// 24 hours at one tick a second and one interval a minute, idle and loaded.
pub fn day() -> Contents {
    static MADE: OnceLock<Contents> = OnceLock::new();
    MADE.get_or_init(make_day).clone()
}

fn make_day() -> Contents {
    let mut contents = empty();
    for (n, name) in ["host without load", "host, loaded"].into_iter().enumerate() {
        let load = if n == 1 { scheduler("host") } else { Vec::new() };
        let result = RowResult { planned_ns: 86_400_000_000_000, ..planned(name, "host", "host", load) };
        let span = Span { ticks: 86_400, samples: 5, per_interval: 60, series: 1 };
        let mut row =
            measured(result, Evidence::BareMetal, if n == 0 { Shape::IDLE } else { Shape::LOADED }, span, 3);
        if n == 0 {
            // One late wake-up in the whole day.
            let mut stretches = row.ticks.series.values_mut().flat_map(|series| &mut series.stretches);
            let late = stretches.find(|one| (one.first..=one.last).contains(&50_000)).unwrap();
            late.max_ns = Some(777_000);
            if let Some(all) = &mut latency(&mut row).all {
                all.max_ns = Some(777_000);
            }
        }
        contents.rows.push(row);
    }
    contents.plan.figure.push(Figure {
        kind: FigureKind::LatencyOverTime,
        title: "The whole day".into(),
        scenarios: vec!["host without load".into(), "host, loaded".into()],
    });
    contents.plan.compare.push(Compare {
        name: "Load".into(),
        base: "host without load".into(),
        with: "host, loaded".into(),
        claim: None,
    });
    contents
}

/// The JSON document without its scenarios: a line for each entry of each section, key by key in its order.
pub fn sections(document: &tactus_model::document::Document) -> String {
    let json = serde_json::to_string(document).expect("a document is JSON");
    let all: serde_json::Map<String, Value> = serde_json::from_str(&json).expect("it is an object");
    let mut lines = Vec::new();
    for (key, value) in all.iter().filter(|(key, _)| *key != "scenarios") {
        let inner = value.get("cells").or(Some(value)).and_then(Value::as_array);
        let whole = vec![value.clone()];
        lines.extend(inner.unwrap_or(&whole).iter().map(|entry| format!("{key}: {entry}")));
    }
    lines.join("\n")
}

/// An item of a measurement that yields values.
pub const fn item(name: &'static str, unit: Unit, better: Better) -> Item {
    Item { name, unit, better, about: "" }
}

/// A row of values: each item with its median; the repeats lie evenly around it.
pub fn valued(mut result: RowResult, evidence: Evidence, items: &[(Item, f64)]) -> Row {
    let value = |(item, median): &(Item, f64)| {
        let kept = (0..41_u32).map(|n| median * (1.0 + (f64::from(n) - 20.0) / 400.0)).collect();
        let mut repeats = Repeats { kept, dropped: 3, batch: 1_000 };
        ValueResult::of(item, &mut repeats).expect("it has repeats")
    };
    result.measurement = Measure::Os(Os::default());
    result.outcome = Outcome::Values(items.iter().map(value).collect());
    result.evidence = Some(evidence);
    result.end(Ending::complete());
    result.measured_ns = result.planned_ns;
    Row::of(result)
}

/// The costs of system calls on a host, in a container and in an emulated guest, beside published figures;
/// and the latencies of that host.
pub fn overheads() -> Contents {
    let mut contents = empty();
    contents.plan.title = Some("What the operating system costs".into());
    contents.manifest.plan = "overheads".into();
    let items = |factor: f64| {
        [
            (item("system call", Unit::Ns, Better::Lower), 112.0 * factor),
            (item("signal handler", Unit::Us, Better::Lower), 1.74 * factor),
            (item("AF_UNIX bandwidth", Unit::MegabytesPerSecond, Better::Higher), 5_210.0 / factor),
        ]
    };
    let kinds = [
        ("host", Evidence::BareMetal, 1.0),
        ("podman", Evidence::BareMetal, 1.01),
        ("qemu", Evidence::Emulated, 31.0),
    ];
    for (kind, evidence, factor) in kinds {
        contents.plan.environment.insert(kind.into(), environment(kind));
        let name = format!("{kind}, services");
        let mut result = planned(&name, kind, kind, Vec::new());
        let bound = |text: &str| text.parse().expect("a quantity");
        result.require = Some(Require {
            values: BTreeMap::from([
                ("signal handler".into(), bound("1.75us")),
                ("AF_UNIX bandwidth".into(), bound("2GB/s")),
            ]),
            ..Require::default()
        });
        contents.rows.push(valued(result, evidence, &items(factor)));
    }
    for (item, value) in [("signal handler", "3.48us"), ("AF_UNIX bandwidth", "1.1GB/s")] {
        contents.plan.reference.push(Reference {
            scenario: "podman, services".into(),
            item: Some(item.into()),
            value: Some(value.parse().expect("a quantity")),
            source: "table 4".into(),
            ..Reference::default()
        });
    }
    let span = Span { ticks: 4, samples: 1_000, per_interval: 1, series: 1 };
    let timer = planned("host, idle", "host", "host", Vec::new());
    contents.rows.push(measured(timer, Evidence::BareMetal, Shape::IDLE, span, 5));
    let mut refused = planned("oci, services", "oci", "oci", Vec::new());
    refused.outcome = Outcome::Values(Vec::new());
    contents.rows.push(unmeasured(refused, RowEnd::Unavailable, "neither crun nor runc is installed"));
    contents
}

/// A minute of two threads every 6 ms, all of it, that keeps its limit.
pub fn whole_minute() -> Row {
    let (planned_ns, interval_ns) = (60_000_000_000, 6_000_000);
    let limit = Require { max: Some(Nanos::from_ms(10)), cycles: Some(1), ..Require::default() };
    let planned = planned("host, idle", "host", "host", Vec::new());
    let result = RowResult { require: Some(limit), planned_ns, interval_ns, ..planned };
    measured(
        result,
        Evidence::BareMetal,
        Shape::IDLE,
        Span { ticks: 10, samples: 1_000, per_interval: 1, series: 2 },
        3,
    )
}

/// The least CPU time that this thread needs for it, in three attempts.
pub fn cpu_time(mut what: impl FnMut()) -> std::time::Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    let times = [(); 3].map(|()| {
        let began = now();
        what();
        now() - began
    });
    times.into_iter().min().unwrap_or_default()
}
