//! Small bundles for the tests, written by the writer that runs use. Their latencies are made up, and claim nothing about
//! any machine.

use std::path::{Path, PathBuf};

use tactus_bundle::Writer;
use tactus_model::bundle::{Job, Machine, Manifest, RowResult};
use tactus_model::event::{RunStatus, Ticked};
use tactus_model::facts::Facts;
use tactus_model::finding::{Audit, Finding, Isolation, Role, Severity, State};
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{ThreadCounters, Tick};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, Restart, SeriesResult};
use tactus_model::plan::{Environment, Plan, Scenario};
use tactus_model::series::SeriesKey;
use tactus_model::{Evidence, Nanos};

/// Ticks of a second that each is long.
pub const TICKS: u64 = 25;

/// The contents of a bundle to write.
#[derive(Clone, Debug)]
pub struct Made {
    pub machine: Machine,
    pub started: String,
    pub job: Option<Job>,
    pub evidence: Evidence,
    /// The largest latency of each of two CPUs, in ns.
    pub max_ns: [u64; 2],
    pub findings: Vec<&'static str>,
    pub facts: Vec<(String, String)>,
    /// The loads that ran beside it, as a plan's tables.
    pub load: Vec<serde_json::Value>,
    /// How its environment died and was started again.
    pub restarts: Vec<Restart>,
    /// The counters of each of its threads.
    pub counters: ThreadCounters,
}

/// A machine that tells all of itself.
pub fn machine(number: u32) -> Machine {
    Machine {
        name: format!("node{number:03}"),
        processor: "EPYC".into(),
        cpus: "0-3".into(),
        kernel: "6.12.0-rt #1".into(),
        system: "Debian 13".into(),
        id: Some(format!("{number:08x}{:024x}", 0)),
        hardware: Some(format!("{number:08x}{:024x}", 1)),
        bios: Some("Maker 2.1 01/02/2026".into()),
        microcode: Some("0xa201025".into()),
    }
}

/// A run of a machine on a day of November 2026.
pub fn made(number: u32, day: u32) -> Made {
    Made {
        machine: machine(number),
        started: format!("2026-11-{day:02}T03:{:02}:00.000001Z", number % 60),
        job: Some(Job { engine: "slurm".into(), id: format!("{number}") }),
        evidence: Evidence::BareMetal,
        max_ns: [20_000 + u64::from(number), 30_000],
        findings: vec!["cpu-not-isolated"],
        load: Vec::new(),
        restarts: Vec::new(),
        counters: ThreadCounters::default(),
        facts: vec![
            ("/proc/cmdline".into(), "quiet".into()),
            ("/etc/tuned/active_profile".into(), "realtime".into()),
        ],
    }
}

fn plan() -> Plan {
    let mut plan = Plan { name: "fleet".into(), ..Plan::default() };
    plan.environment.insert("host".into(), Environment { kind: "host".into(), ..Environment::default() });
    plan.scenario.push(Scenario {
        name: Some("idle".into()),
        environment: Some("host".into()),
        duration: Some(Nanos(TICKS * 1_000_000_000)),
        ..Scenario::default()
    });
    plan
}

fn finding(id: &str) -> Finding {
    Finding {
        id: id.into(),
        state: State::Finding,
        severity: Severity::Major,
        family: "kernel".into(),
        title: id.into(),
        message: format!("{id} was found."),
        read: Vec::new(),
        expected: String::new(),
        why: String::new(),
        fix: String::new(),
        risk: String::new(),
    }
}

impl Made {
    /// Writes it into this directory.
    pub fn write(&self, dir: &Path) -> PathBuf {
        let planned_ns = TICKS * 1_000_000_000;
        let mut row = RowResult {
            evidence: Some(self.evidence),
            planned_ns,
            measured_ns: planned_ns,
            started: Some(self.started.clone()),
            load: self.load.clone(),
            restarts: self.restarts.clone(),
            ..RowResult::unmeasured("idle", "host", "host")
        };
        let mut writer = Writer::create(dir, &plan(), &[row.clone()], self.machine.clone()).unwrap();
        writer.begin_session(self.machine.clone(), self.job.clone(), None).unwrap();
        let mut facts = Facts::default();
        self.facts.iter().for_each(|(path, text)| facts.keep(path, text));
        writer.facts("host", &facts).unwrap();
        let audit = Audit {
            role: Role::Host,
            isolation: Isolation::default(),
            findings: self.findings.iter().map(|id| finding(id)).collect(),
            actions: Vec::new(),
        };
        writer.audit("host", &audit).unwrap();
        let mut log = writer.begin_row(0, &row, 1_000_000_000).unwrap();
        let (mut all, mut series) = (Latency::new(), Vec::new());
        for (cpu, max_ns) in (1_u32..).zip(self.max_ns) {
            let key = SeriesKey { cpu, thread: cpu - 1, priority: 95, kind: "thread".into() };
            let mut total = Latency::new();
            for n in 0..TICKS {
                let mut now = Latency::new();
                (0..200).for_each(|value| now.record(2_000 + 10 * value, row.interval_ns));
                if n == 3 {
                    now.record(max_ns, row.interval_ns);
                }
                total.merge(&now);
                let tick = Tick {
                    activity: 0,
                    series: key.clone(),
                    n,
                    at_ns: (n + 1) * 1_000_000_000,
                    now: now.totals,
                    total: total.totals,
                    counts: Sparse::of(&now.raw),
                    missed: Sparse::of(&now.missed),
                    thread: ThreadCounters::default(),
                };
                log.tick(&Ticked::of(0, tick, Some(now.raw.value_at_quantile(0.99)))).unwrap();
            }
            all.merge(&total);
            let summary = total.summary();
            series.push(SeriesResult {
                key,
                summary,
                counters: self.counters,
                outliers: Vec::new(),
                whole: true,
            });
        }
        log.finish().unwrap();
        row.outcome = Outcome::Latency(LatencyOutcome { series, all: Some(all.summary()) });
        row.end(Ending::complete());
        writer.result(0, &row).unwrap();
        writer.finish(RunStatus::Complete).unwrap();
        let started = self.started.clone();
        manifest(dir, |manifest| manifest.started = started);
        dir.to_owned()
    }
}

/// Changes what a manifest says.
pub fn manifest(bundle: &Path, change: impl FnOnce(&mut Manifest)) {
    let path = bundle.join("manifest.json");
    let mut own: Manifest = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut own);
    std::fs::write(path, serde_json::to_vec_pretty(&own).unwrap()).unwrap();
}

/// Copies a directory.
pub fn copied(from: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let own = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &own);
        } else {
            std::fs::copy(entry.path(), own).unwrap();
        }
    }
    to.to_owned()
}
