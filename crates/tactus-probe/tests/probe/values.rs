//! Measurements that yield values, as the host side sees them: every item runs in a worker beside the session and
//! leaves no process behind.

use tactus_model::CpuSet;
use tactus_model::catalogue::measure::{Cpu, Exits, Memory, Os, Timer};
use tactus_model::catalogue::{Item, Measure};
use tactus_model::control::ControlBy;
use tactus_model::message::{Activity, End, FromProbe, Job, NoteKind, ToProbe, What};
use tactus_model::outcome::breakdown::Breakdown;
use tactus_model::outcome::{ValueResult, take_value};
use tactus_model::scheduling::Policy;

use crate::common::{PROBE, Probe, eventually, job, marked, timer};

fn os(id: u32, cpus: CpuSet) -> Activity {
    values_of(Measure::Os(Os::default()), id, cpus)
}

fn values_of(measure: Measure, id: u32, cpus: CpuSet) -> Activity {
    Activity::new(id, cpus, What::Measure { measure, interval_ns: 0, priority: 80, policy: Policy::Other })
}

/// The messages on where the time went.
fn breakdowns(heard: &[FromProbe]) -> Vec<&Breakdown> {
    let mut all = Vec::new();
    for message in heard {
        if let FromProbe::Breakdown(of) = message {
            all.push(&of.breakdown);
        }
    }
    all
}

/// The last word on every item, and how many there were.
fn values(heard: &[FromProbe]) -> (Vec<ValueResult>, usize) {
    let (mut last, mut words) = (Vec::new(), 0);
    for message in heard {
        if let FromProbe::Value(said) = message {
            assert_eq!(said.activity, 3);
            take_value(&mut last, said.value.clone());
            words += 1;
        }
    }
    (last, words)
}

fn check(value: &ValueResult) {
    assert!(value.value > 0.0 && value.value.is_finite(), "{value:?}");
    assert!(value.min <= value.value && value.value <= value.max, "{value:?}");
    assert!(value.samples >= 1 && value.batch >= 1 && value.deviation >= 0.0, "{value:?}");
    match (value.low, value.high) {
        (Some(low), Some(high)) => {
            assert!(value.samples >= 6 && low <= value.value && value.value <= high, "{value:?}");
        }
        (None, None) => assert!(value.samples < 6, "{value:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_item_has_a_value_during_the_measurement_and_a_better_one_at_the_end() {
    let first = |probe: &Probe| os(3, probe.cpu());
    every_item_has_a_value("os", first, Os::ITEMS);
    let exits = |probe: &Probe| values_of(Measure::Exits(Exits::default()), 3, probe.cpu());
    // The others take a kernel's rights.
    every_item_has_a_value("exits", exits, &Exits::ITEMS[..3]);
    // A binary of the user's that is not there costs nothing but its own item.
    let cpu = Cpu { coremark: Some("/nowhere/coremark".into()) };
    let all = |probe: &Probe| values_of(Measure::Cpu(cpu.clone()), 3, probe.cpus());
    every_item_has_a_value("cpu", all, Cpu::ITEMS);
    let small = Memory { sizes: Some("1KiB..8MiB".parse().unwrap()) };
    let memory = |probe: &Probe| values_of(Measure::Memory(small.clone()), 3, probe.cpu());
    every_item_has_a_value("memory", memory, Memory::ITEMS);
}

fn every_item_has_a_value(mark: &str, activity: impl Fn(&Probe) -> Activity, items: &[Item]) {
    let mut probe = Probe::start_as(&[PROBE], mark);
    let job = job(&probe, vec![activity(&probe)]);
    // The control by hog is for threads on lanes: here it finds none.
    probe.prepare(Job { duration_ns: 3_000_000_000, control: ControlBy::Hog, ..job }).unwrap();
    probe.say(&ToProbe::Go);
    let (heard, done) = probe.finish();
    assert_eq!(done.end, End::Complete, "{done:?}");
    let (values, words) = values(&heard);
    let obstacles: Vec<_> = probe.notes.iter().filter(|note| note.kind == NoteKind::Obstacle).collect();
    let missing = |name: &str| obstacles.iter().any(|note| note.text.contains(name));
    for item in items {
        match values.iter().find(|value| value.item == item.name) {
            Some(value) => {
                assert_eq!((value.unit, value.better), (item.unit, item.better));
                check(value);
            }
            None => assert!(missing(item.name), "{}: {:?}", item.name, probe.notes),
        }
    }
    assert!(words > values.len(), "{words} words on {} values", values.len());
    let [breakdown] = breakdowns(&heard)[..] else { panic!("where the time went is said once: {heard:?}") };
    let cpu = activity(&probe).cpus.first().unwrap();
    let own = breakdown.cpus.iter().find(|own| own.cpu == cpu).unwrap();
    assert!(own.user_ns + own.nice_ns + own.system_ns > 0 && breakdown.ns > 0, "{breakdown:?}");
    let name = format!("tactus-{}", activity(&probe).what.kind());
    assert!(breakdown.threads.iter().any(|thread| thread.name == name), "{breakdown:?}");
    assert!(heard.iter().all(|message| !matches!(message, FromProbe::Tick(_) | FromProbe::Trial(_))));
    assert_eq!(marked(mark), [probe.child.id()], "`done` says that nothing is left");
}

#[test]
fn what_was_measured_until_a_stop_is_said_and_nothing_is_left() {
    let mark = "stopped-values";
    let mut probe = Probe::start_as(&[PROBE], mark);
    let job = job(&probe, vec![os(3, probe.cpu())]);
    probe.prepare(Job { duration_ns: 3_600_000_000_000, ..job }).unwrap();
    probe.say(&ToProbe::Go);
    while !matches!(probe.hear(), FromProbe::Value(_)) {}
    probe.say(&ToProbe::Stop);
    let (heard, done) = probe.finish();
    assert_eq!(done.end, End::Stopped);
    assert!(!values(&heard).0.is_empty());
    assert_eq!(marked(mark), [probe.child.id()]);
}

#[test]
fn a_killed_probe_takes_the_worker_and_its_partners_with_it() {
    let mark = "killed-values";
    let mut probe = Probe::start_as(&[PROBE], mark);
    let job = job(&probe, vec![os(3, probe.cpu())]);
    probe.prepare(Job { duration_ns: 3_600_000_000_000, ..job }).unwrap();
    probe.say(&ToProbe::Go);
    while !matches!(probe.hear(), FromProbe::Value(_)) {}
    // The session, the worker, the measuring process, seven partners and three rings of fifteen; and a child that is
    // just forked.
    let all = marked(mark).len();
    assert!((55..=56).contains(&all), "{all}");
    probe.child.kill().unwrap();
    probe.child.wait().unwrap();
    assert!(eventually(|| marked(mark).is_empty()), "{:?}", marked(mark));
}

#[test]
fn a_worker_that_is_killed_ends_the_job_and_what_it_had_said_stays() {
    let mark = "broken-values";
    let mut probe = Probe::start_as(&[PROBE], mark);
    let job = job(&probe, vec![os(3, probe.cpu())]);
    probe.prepare(Job { duration_ns: 3_600_000_000_000, ..job }).unwrap();
    probe.say(&ToProbe::Go);
    while !matches!(probe.hear(), FromProbe::Value(_)) {}
    let session = probe.child.id();
    let worker = marked(mark).into_iter().find(|pid| *pid != session).unwrap();
    let pid = rustix::process::Pid::from_raw(worker.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let (_, done) = probe.finish();
    assert_eq!(done.end, End::Failed);
    assert!(done.reason.as_deref().is_some_and(|why| why.contains("`os` ended before its time")), "{done:?}");
    assert!(eventually(|| marked(mark) == [session]), "{:?}", marked(mark));
}

#[test]
fn latencies_and_values_are_measured_side_by_side() {
    let mut probe = Probe::start();
    let both = vec![timer(1, probe.cpu(), Timer::default()), os(3, probe.house())];
    let job = Job { duration_ns: 2_000_000_000, ..job(&probe, both) };
    let Some((heard, done)) = probe.perform(job) else { return };
    assert_eq!(done.end, End::Complete, "{done:?}");
    assert!(heard.iter().any(|message| matches!(message, FromProbe::Tick(tick) if tick.activity == 1)));
    assert!(!values(&heard).0.is_empty());
}

#[test]
fn scheduling_that_has_no_meaning_for_values_is_refused() {
    let mut probe = Probe::start();
    let mut activity = os(3, probe.cpu());
    if let What::Measure { policy, .. } = &mut activity.what {
        *policy = Policy::Deadline;
    }
    let job = job(&probe, vec![activity]);
    let refusal = probe.prepare(job).unwrap_err();
    assert!(refusal.reason.contains("no period") && refusal.hint.is_some(), "{refusal:?}");
}
