//! The engine against environments whose probes follow a script: their messages are written here, word by word, so
//! that every failure can be played.

mod arrival;
mod day;
mod hostile;
mod logged;
mod performed;
mod restart;
mod resume;
mod scripted;
mod warnings;
mod watchers;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tactus_bundle::{self as bundle, BundleError, Trust, Writer};
use tactus_environment::{Environment, Running, Setting, StartError, Stream, Usable};
use tactus_model::CpuSet;
use tactus_model::bundle::{Contents, Machine};
use tactus_model::catalogue;
use tactus_model::catalogue::load::Cpu;
use tactus_model::catalogue::measure::{Os, Timer};
use tactus_model::catalogue::{Load, Measure};
use tactus_model::clock::ClockCheck;
use tactus_model::event::{Event, RowStatus, RunStatus, Stamped};
use tactus_model::facts::Facts;
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{
    Activity, Control, Counted, Done, End, FromProbe, Hello, Note, PROTOCOL, Proven, Refusal, Stage,
    ThreadCounters, Tick, ToProbe, Total, Trial, Value, What,
};
use tactus_model::outcome::{Repeats, RowEnd, ValueResult};
use tactus_model::plan::{self, Plan};
use tactus_model::scheduling::Policy;
use tactus_model::series::SeriesKey;
use tactus_model::topology::Topology;
use tactus_model::wire::{Decoder, Encoder, Item};
use tactus_system::guardian::Guardian;
use tactus_system::{Directory, Real, System, topology};

use self::performed::*;
use self::scripted::*;
use super::execute::{On, run};
use super::sink::{Emitter, Record};
use super::{Interrupt, Recorder};
use crate::plan::{Choices, Resolved, ResolvedActivity, Source, resolve};

#[test]
fn what_a_probe_measures_is_in_the_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let (status, contents, events) = perform(&[("a", &GOOD)], dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    let row = &contents.rows[0];
    assert_eq!((row.result.status, row.result.reason.as_deref()), (RowStatus::Measured, None));
    let all = row.result.all().unwrap();
    assert_eq!((all.cycles, all.lost, all.min_ns, all.max_ns), (9, 0, Some(5_000), Some(9_002)));
    assert_eq!(row.result.measured_ns, 3_000_000_000);
    assert_eq!(contents.facts["a"].text("/proc/version"), Some("Linux scripted"));
    assert!(matches!(events.first(), Some(Event::RunStarted { rows: 1, .. })));
    // A count from outside names its scenario, which has the name of its environment here.
    let counted = |event: &Event| matches!(event, Event::Noted { note, .. } if note.text.starts_with("a: CPU 2 entered"));
    assert!(events.iter().any(counted), "{events:?}");
    assert!(matches!(events.last(), Some(Event::RunFinished { .. })));
}

#[test]
fn several_environments_are_up_at_once_and_a_load_ends_with_the_measurement() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("a", &GOOD), ("b", &LOADS)]);
    // One scenario: the measurement in `a`, its load in `b`.
    let load = Activity::new(1, CpuSet::one(0), What::Load(Load::Cpu(Cpu::default())));
    resolved.scenarios[0].activities.push(ResolvedActivity {
        environment: "b".into(),
        activity: load,
        path: None,
    });
    resolved.scenarios.truncate(1);
    resolved.rows.truncate(1);
    let (status, contents, events) = perform_resolved(&resolved, dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    assert_eq!(contents.rows.len(), 1);
    assert_eq!(contents.rows[0].result.status, RowStatus::Measured);
    assert_eq!(contents.rows[0].result.reason, None);
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).expect("it happened");
    let up = |name: &'static str| {
        at(&move |e| matches!(e, Event::EnvironmentUp { environment, .. } if environment == name))
    };
    let started = at(&|e| matches!(e, Event::RowStarted { .. }));
    assert!(up("a") < started && up("b") < started, "both are up before anything is measured");
}

#[test]
fn environments_that_share_cpus_prove_their_instruments_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("a", &GOOD), ("b", &GOOD)]);
    // One scenario that measures in both.
    let beside = resolved.scenarios.pop().expect("two");
    resolved.scenarios[0].activities.extend(beside.activities);
    resolved.scenarios[0].rows = 0..2;
    let (status, contents, events) = perform_resolved(&resolved, dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    let controls = |stage: Stage| -> Vec<(usize, bool)> {
        let of = |event: &Event| match event {
            Event::Controlled { row, control } if control.stage == stage => Some((*row, control.passed)),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    };
    assert_eq!(controls(Stage::Before), [(0, true), (1, true)]);
    assert_eq!(controls(Stage::After), [(0, true), (1, true)]);
    let is =
        |event: &Event, of: Stage| matches!(event, Event::Controlled { control, .. } if control.stage == of);
    let ticked = |event: &Event| matches!(event, Event::Ticked(_));
    let last = |wanted: &dyn Fn(&Event) -> bool| events.iter().rposition(wanted).expect("it happened");
    let first = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).expect("it happened");
    assert!(last(&|event| is(event, Stage::Before)) < first(&ticked), "nothing is measured before");
    assert!(last(&ticked) < first(&|event| is(event, Stage::After)), "and everything before the second");
    assert_eq!(contents.rows.len(), 2);
}

#[test]
fn after_a_refusal_the_other_environments_give_their_job_back_and_stay_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = resolved(&[("a", &GOOD), ("b", &REFUSES)]);
    let load = Activity::new(1, CpuSet::one(0), What::Load(Load::Cpu(Cpu::default())));
    resolved.scenarios[0].activities.push(ResolvedActivity {
        environment: "b".into(),
        activity: load,
        path: None,
    });
    resolved.scenarios[1].activities[0].environment = "a".into();
    resolved.rows[1].result.environment = "a".into();
    let (_, contents, events) = perform_resolved(&resolved, dir.path(), false);
    let row = |n: usize| &contents.rows[n].result;
    assert_eq!(row(0).status, RowStatus::Skipped);
    assert!(row(0).reason.as_deref().is_some_and(|why| why.contains("not allowed")), "{:?}", row(0).reason);
    assert_eq!((row(1).status, row(1).reason.as_deref()), (RowStatus::Measured, None));
    assert_eq!(row(1).all().unwrap().cycles, 9);
    let kept = |event: &Event| matches!(event, Event::EnvironmentKept { environment } if environment == "a");
    assert!(events.iter().any(kept), "it is not started again");
}

#[test]
fn garbage_between_frames_costs_what_was_garbled_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, events) = perform(&[("a", &NOISY)], dir.path(), false);
    let result = &contents.rows[0].result;
    assert_eq!(result.status, RowStatus::Measured);
    let all = result.all().unwrap();
    // The totals are exact since the start: the lost tick shows as lost samples, not as less measured.
    assert_eq!((all.cycles, all.lost, all.max_ns), (9, 3, Some(9_002)));
    assert!(result.frames_lost >= 1);
    assert!(events.iter().any(|event| matches!(event, Event::FramesLost { .. })));
}

#[test]
fn each_way_of_breaking_ends_its_scenario_with_a_reason_and_the_run_continues() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] =
        &[("dies", &DIES), ("refuses", &REFUSES), ("mute", &MUTE), ("other", &FOREIGN), ("good", &GOOD)];
    let (status, contents, _) = perform(scripts, dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    let rows: BTreeMap<&str, _> =
        contents.rows.iter().map(|row| (row.result.name.as_str(), &row.result)).collect();
    let reason = |name: &str| rows[name].reason.clone().unwrap_or_default();
    assert!(reason("dies").contains("Kernel panic"), "{}", reason("dies"));
    assert_eq!(rows["dies"].all().unwrap().cycles, 6, "what had arrived stays");
    assert_eq!(rows["dies"].measured_ns, 2_000_000_000);
    assert!(reason("refuses").contains("SCHED_FIFO is not allowed; allow it"), "{}", reason("refuses"));
    assert!(reason("mute").contains("Kernel panic"), "{}", reason("mute"));
    assert!(reason("other").contains("protocol"), "{}", reason("other"));
    for name in ["dies", "mute", "other"] {
        assert_eq!((rows[name].status, rows[name].ended), (RowStatus::Failed, RowEnd::Failed), "{name}");
    }
    assert_eq!(rows["refuses"].ended, RowEnd::Refused);
    assert_eq!(rows["refuses"].status, RowStatus::Skipped, "what is not allowed there was not tried");
    assert_eq!((rows["good"].status, rows["good"].ended), (RowStatus::Measured, RowEnd::Complete));
}

#[test]
fn an_interrupt_keeps_what_was_measured_and_skips_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let (status, contents, _) = perform(&[("a", &ENDLESS), ("b", &GOOD)], dir.path(), true);
    assert_eq!(status, RunStatus::Interrupted);
    assert_eq!(contents.manifest.status, RunStatus::Interrupted);
    let first = &contents.rows[0].result;
    assert_eq!(first.status, RowStatus::Measured);
    assert!(first.reason.as_deref().is_some_and(|why| why.contains("interrupted")), "{:?}", first.reason);
    assert_eq!(first.all().unwrap().cycles, 9);
    assert_eq!(contents.rows[1].result.status, RowStatus::Skipped);
    let ended: Vec<RowEnd> = contents.rows.iter().map(|row| row.result.ended).collect();
    assert_eq!(ended, [RowEnd::Interrupted, RowEnd::Waiting]);
}

/// A plan of one row of values per script.
fn values(scripts: &[(&str, &'static Scripted)]) -> Plan {
    let mut plan = written(scripts);
    for scenario in &mut plan.scenario {
        scenario.measurement = Some(Measure::Os(Os::default()));
        scenario.policy = None;
    }
    plan
}

#[test]
fn the_last_word_on_every_value_is_in_the_bundle_and_nothing_had_to_be_proven() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] = &[("a", &VALUES), ("b", &VALUES_DIE)];
    let resolved = resolved_as(&values(scripts), &Choices::default(), scripts);
    let (_, contents, events) = perform_resolved(&resolved, dir.path(), false);
    for row in &contents.rows {
        let result = &row.result;
        assert_eq!(result.values(), [value("system call", 21), value("signal install", 21)]);
        assert_eq!((result.all(), result.series(), result.control.len()), (None, &[][..], 0));
    }
    let ended: Vec<RowEnd> = contents.rows.iter().map(|row| row.result.ended).collect();
    assert_eq!(ended, [RowEnd::Complete, RowEnd::Failed], "what had arrived stays");
    let complete: Vec<bool> = contents.rows.iter().map(|row| row.result.is_complete()).collect();
    assert_eq!(complete, [true, false]);
    let told = events.iter().filter_map(|event| match event {
        Event::ValueMeasured { row: 0, value } => Some(value.samples),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [10, 10, 20, 20, 21, 21]);
}

/// Files of a bundle by name, but for what says when and where it was written.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for path in Real.list(&at).unwrap() {
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            match Real.read(&path) {
                Ok(bytes) => drop(found.insert(name, bytes)),
                Err(_) => open.push(path),
            }
        }
    }
    found.remove("manifest.json");
    // A log says at its head when it was begun.
    for (_, log) in found.iter_mut().filter(|(name, _)| name.ends_with(".hlog")) {
        let text = String::from_utf8(std::mem::take(log)).unwrap();
        let body = text.lines().filter(|line| !line.starts_with('#'));
        *log = body.collect::<Vec<_>>().join("\n").into_bytes();
    }
    found
}

#[test]
fn a_bundle_follows_from_the_events_of_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] =
        &[("a", &VALUES), ("b", &VALUES_DIE), ("c", &GOOD), ("d", &NOISY)];
    let mut plan = values(scripts);
    for latency in &mut plan.scenario[2..] {
        latency.measurement = None;
    }
    let resolved = resolved_as(&plan, &Choices::default(), scripts);
    let guardian = Guardian::start(&Real).unwrap();
    let into = writer(&resolved, dir.path());
    let (status, _, events) = perform_stamped(guardian, into, &resolved, dir.path(), false);
    let place = dir.path().join("again");
    Real.make_dir(&place).unwrap();
    let mut recorder = Recorder::new(writer(&resolved, &place), &resolved);
    for event in events {
        let line = serde_json::to_string(&event).unwrap();
        recorder.record(&serde_json::from_str(&line).unwrap()).unwrap();
    }
    Box::new(recorder).finish(status).unwrap();
    let (then, now) = (files(&dir.path().join("bundle")), files(&place.join("bundle")));
    assert_eq!(then.keys().collect::<Vec<_>>(), now.keys().collect::<Vec<_>>());
    for (name, bytes) in then {
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&now[&name]), "{name}");
    }
}
