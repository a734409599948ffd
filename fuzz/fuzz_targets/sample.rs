//! A small bundle as the writer writes it, finished and unfinished, and everything that is made of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tactus_audit::{Intent, Subject};
use tactus_bundle::{Trust, Writer, read};
use tactus_model::bundle::{Contents, Machine, RowResult};
use tactus_model::event::{Event, RunStatus, Stamped, Ticked};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{Note, ThreadCounters, Tick};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, RowStatus};
use tactus_model::plan::{Environment, Plan, Scenario};
use tactus_model::series::SeriesKey;
use tactus_report::audit;
use tactus_report::render::FORMATS;
use tactus_report::render::text::Style;

/// Something that a user can have made of a bundle. All of it of each input would take five times as long.
pub fn report(contents: &Contents, which: usize) {
    if let Some(format) = FORMATS.get(which % (FORMATS.len() + 1)) {
        let _ = (format.render)(contents);
        return;
    }
    let audits = contents.audits.iter().map(|(environment, audit)| audit::Audited { environment, audit });
    let audits: Vec<audit::Audited<'_>> = audits.collect();
    let _ = (audit::document(&audits), audit::markdown(&audits), audit::junit(&audits, None));
    let _ = audit::text(&audits, audit::Detail::All, Style::default());
}

static SAMPLES: OnceLock<Samples> = OnceLock::new();

/// The samples, made once.
pub fn samples() -> &'static Samples {
    SAMPLES.get_or_init(Samples::make)
}

pub struct Samples {
    pub finished: Sample,
    pub unfinished: Sample,
}

pub struct Sample {
    pub dir: PathBuf,
    /// Its files as they were written.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

impl Samples {
    /// In a directory of its own, which the script that runs the fuzzer removes.
    fn make() -> Self {
        let root = tempfile::tempdir().expect("a directory").keep();
        let sample = |name: &str, end: bool| {
            let dir = root.join(name);
            write(&dir, end);
            let whole = read(&dir, Trust::Whole).expect("the sample is a bundle");
            assert_eq!(whole.rows.len(), 1, "{:?}", whole.damage);
            let mut files = Vec::new();
            collect(&dir, &mut files);
            files.sort();
            Sample { dir, files }
        };
        Self { finished: sample("finished", true), unfinished: sample("unfinished", false) }
    }
}

fn collect(dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).expect("the sample can be listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let bytes = fs::read(&path).expect("the sample can be read");
            files.push((path, bytes));
        }
    }
}

const TICK_NS: u64 = 1_000_000_000;

/// A small run as the writer writes it; `end`: whether it could finish.
fn write(dir: &Path, end: bool) {
    let mut result = RowResult {
        planned_ns: 4 * 1440 * TICK_NS,
        start_up_ms: Some(12),
        ..RowResult::unmeasured("host, idle", "host", "host")
    };
    let mut plan = Plan { name: "sample".into(), ..Plan::default() };
    plan.environment.insert("host".into(), Environment { kind: "host".into(), ..Environment::default() });
    plan.scenario.push(Scenario {
        name: Some(result.name.clone()),
        environment: Some("host".into()),
        ..Scenario::default()
    });
    let mut writer = Writer::create(dir, &plan, &[result.clone()], Machine::default()).expect("a bundle");
    let mut facts = Facts::default();
    facts.keep("/proc/cmdline", "isolcpus=1");
    writer.facts("host", &facts).expect("facts");
    let audit = tactus_audit::audit(&Subject::new(&facts, Role::Host, &Intent::default()));
    writer.audit("host", &audit).expect("an audit");
    result.status = RowStatus::Measured;
    let mut log = writer.begin_row(0, &result, TICK_NS).expect("a row");
    let note = Note::info("a remark");
    writer.event(&Stamped { at_ms: 1, event: Event::Noted { environment: None, note } }).expect("an event");
    let mut total = Latency::new();
    // Four ticks become an interval; the last two of an unfinished run are still pending.
    for n in 0..6 {
        let mut now = Latency::new();
        for value in [5_000 + n, 7_000, 900_000 + n] {
            now.record(value, result.interval_ns);
        }
        total.merge(&now);
        let tick = Tick {
            activity: 0,
            series: SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() },
            n,
            at_ns: (n + 1) * TICK_NS,
            now: now.totals,
            total: total.totals,
            counts: Sparse::of(&now.raw),
            missed: Sparse::of(&now.missed),
            thread: ThreadCounters::default(),
        };
        log.tick(&Ticked::of(0, tick, None)).expect("a tick");
    }
    if end {
        log.finish().expect("the log");
        result.outcome = Outcome::Latency(LatencyOutcome { series: Vec::new(), all: Some(total.summary()) });
        result.end(Ending::complete());
        writer.result(0, &result).expect("the result");
        writer.finish(RunStatus::Complete).expect("the bundle");
    }
}
