//! Writes the bundle of a long run through the writer that runs use, in as little time as that takes. Its latencies
//! are simulated, and the bundle says so: some have the shape of an idle core, some of one under load, and they drift.
//!
//! `cargo run --release --example simulated-run -- DIR HOURS CPUS`, for `scripts/bench/long-run.py`. Prints the peak of
//! its memory as JSON: what a run of that length takes to be recorded.
#![expect(clippy::print_stdout, reason = "an example says what it found")]
#![expect(clippy::disallowed_methods, reason = "a tool of the developers, not a part of tactus")]

use std::error::Error;
use std::path::Path;

use tactus_bundle::Writer;
use tactus_model::bundle::{Machine, RowResult};
use tactus_model::event::{RunStatus, Ticked};
use tactus_model::latency::{Latency, Sparse, Totals, swallowed};
use tactus_model::message::{Note, ThreadCounters, Tick};
use tactus_model::number::{float, whole};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, SeriesResult};
use tactus_model::plan::{Environment, Figure, FigureKind, Plan, Scenario};
use tactus_model::series::SeriesKey;
use tactus_model::{Evidence, Nanos};

const TICK_NS: u64 = 1_000_000_000;
const INTERVAL_NS: u64 = 200_000;
/// Seconds of each shape that are drawn; a tick is one of them, a little earlier or later.
const DRAWN: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dir, hours, cpus] = words.as_slice() else { return Err("DIR HOURS CPUS".into()) };
    write(Path::new(dir), hours.parse()?, cpus.parse()?)?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse()?;
    println!("{{\"hours\": {hours}, \"cpus\": {cpus}, \"peak_kib\": {kib}}}");
    Ok(())
}

fn write(dir: &Path, hours: u64, cpus: u32) -> Result<(), Box<dyn Error>> {
    let name = "simulated, idle and loaded cores";
    let ticks = hours * 3600;
    let mut row = RowResult {
        evidence: Some(Evidence::Imported),
        interval_ns: INTERVAL_NS,
        planned_ns: ticks * TICK_NS,
        notes: vec![Note::info("simulated: nothing was measured; these numbers show what a bundle takes")],
        ..RowResult::unmeasured(name, "host", "host")
    };
    let mut writer = Writer::create(dir, &plan(name, row.planned_ns), &[row.clone()], machine(cpus))?;
    writer.begin_session(machine(cpus), None, None)?;
    let mut log = writer.begin_row(0, &row, TICK_NS)?;
    let mut random = Random(4_711);
    let shapes = [Shape::IDLE, Shape::LOADED].map(|shape| shape.seconds(&mut random));
    let mut series: Vec<(SeriesKey, Latency)> = (0..cpus)
        .map(|cpu| (SeriesKey { cpu, thread: cpu, priority: 95, kind: "thread".into() }, Latency::new()))
        .collect();
    for n in 0..ticks {
        let mut at_ns = (n + 1) * TICK_NS + 20_000;
        for (key, total) in &mut series {
            // One series after the other is read and sent.
            at_ns += 10_000 + random.below(15_000);
            let shape = &shapes[usize::from(key.cpu % 2 == 1)];
            let second = &shape[usize::try_from(random.below(DRAWN as u64))?];
            let tick = second.tick(key, n, at_ns, total, &mut random);
            let p99_ns = Some(second.p99_ns);
            log.tick(&Ticked::of(0, tick, p99_ns))?;
        }
        // As the recorder does it: a power cut loses one tick.
        log.sync()?;
        writer.sync()?;
    }
    log.finish()?;
    let mut all = Latency::new();
    let mut results = Vec::new();
    for (key, latency) in series {
        all.merge(&latency);
        let (summary, counters) = (latency.summary(), ThreadCounters::default());
        results.push(SeriesResult { key, summary, counters, outliers: Vec::new(), whole: true });
    }
    row.outcome = Outcome::Latency(LatencyOutcome { series: results, all: Some(all.summary()) });
    row.measured_ns = row.planned_ns;
    row.end(Ending::complete());
    writer.result(0, &row)?;
    writer.finish(RunStatus::Complete)?;
    Ok(())
}

fn machine(cpus: u32) -> Machine {
    Machine { name: "simulated".into(), cpus: format!("0-{}", cpus.saturating_sub(1)), ..Machine::default() }
}

fn plan(name: &str, duration_ns: u64) -> Plan {
    let mut plan = Plan { name: "simulated-run".into(), ..Plan::default() };
    plan.title = Some("A long run, simulated".into());
    plan.environment.insert("host".into(), Environment { kind: "host".into(), ..Environment::default() });
    plan.scenario.push(Scenario {
        name: Some(name.into()),
        environment: Some("host".into()),
        duration: Some(Nanos(duration_ns)),
        ..Scenario::default()
    });
    plan.figure.push(Figure {
        kind: FigureKind::LatencyOverTime,
        title: "All of the time".into(),
        scenarios: vec![name.into()],
    });
    plan
}

/// xorshift64*: the same bundle every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 16) % most
    }

    /// Exponentially distributed, 1 on average.
    fn exponential(&mut self) -> f64 {
        -(1.0 - float(self.next() >> 11) / float(1 << 53)).ln()
    }
}

/// The shape of latencies, in ns.
#[derive(Clone, Copy)]
struct Shape {
    base: f64,
    spread: f64,
    /// Part of the wake-ups that something delays.
    late: f64,
    lateness: f64,
}

impl Shape {
    const IDLE: Self = Self { base: 1_900.0, spread: 420.0, late: 0.002, lateness: 2_600.0 };
    const LOADED: Self = Self { base: 2_500.0, spread: 900.0, late: 0.02, lateness: 4_500.0 };

    fn seconds(self, random: &mut Random) -> Vec<Second> {
        (0..DRAWN).map(|_| self.second(random)).collect()
    }

    fn second(self, random: &mut Random) -> Second {
        let mut drawn = Latency::new();
        for _ in 0..TICK_NS / INTERVAL_NS {
            let mut value = self.base + self.spread * random.exponential();
            if random.exponential() < self.late {
                value += self.lateness * random.exponential();
            }
            drawn.record(whole(value), INTERVAL_NS);
        }
        let p99_ns = drawn.raw.value_at_quantile(0.99);
        Second { totals: drawn.totals, counts: Sparse::of(&drawn.raw), p99_ns }
    }
}

/// A second of latencies.
struct Second {
    totals: Totals,
    counts: Sparse,
    p99_ns: u64,
}

impl Second {
    fn tick(&self, key: &SeriesKey, n: u64, at_ns: u64, total: &mut Latency, random: &mut Random) -> Tick {
        // Later by the time of day and by chance; and now and then one wake-up by much more.
        let shift = n / 90 % 120 + random.below(40);
        let mut now = self.totals;
        now.min_ns += shift;
        now.max_ns += shift + random.below(1_500);
        now.sum_ns += shift * now.cycles + random.below(1_500);
        let mut counts = self.counts.clone();
        counts.0[0] += shift;
        let mut missed = Sparse::default();
        if random.below(20_000) == 0 {
            let late = 20_000 + whole(60_000.0 * random.exponential());
            let highest: u64 = counts.0.iter().step_by(2).sum();
            counts.0.extend([late.saturating_sub(highest), 1]);
            let overruns = swallowed(late, INTERVAL_NS);
            now.add(&Totals { cycles: 1, overruns, min_ns: late, max_ns: late, sum_ns: late });
            if overruns > 0 {
                missed = Sparse(vec![late - INTERVAL_NS, 1]);
            }
        }
        total.totals.add(&now);
        let _ = counts.add_to(&mut total.raw);
        let _ = missed.add_to(&mut total.missed);
        Tick {
            activity: 0,
            series: key.clone(),
            n,
            at_ns,
            now,
            total: total.totals,
            counts,
            missed,
            thread: ThreadCounters {
                voluntary_switches: Some(total.totals.cycles),
                ..ThreadCounters::default()
            },
        }
    }
}
