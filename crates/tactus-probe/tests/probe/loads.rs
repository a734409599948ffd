//! Loads as the host side meets them: they count, stay on their CPUs, and leave nothing.

use std::fs;

use tactus_model::CpuSet;
use tactus_model::catalogue::Load;
use tactus_model::catalogue::load::{Cache, Command, Disk, Memory, Network};
use tactus_model::catalogue::measure::Timer;
use tactus_model::message::{Activity, End, Job, NoteKind, ToProbe, What};
use tactus_model::size::Bytes;

use crate::common::{PROBE, Probe, eventually, job, marked, skipped, timer};

fn run(words: &[&str]) -> Load {
    Load::Command(Command { run: words.iter().map(|word| (*word).to_owned()).collect() })
}

fn loads() -> Vec<Load> {
    vec![
        Load::Cache(Cache { workers: Some(2), ..Cache::default() }),
        Load::Memory(Memory { bytes: Some(Bytes(4 << 20)) }),
        Load::Disk(Disk { directory: Some("/var/tmp".into()), bytes: Some(Bytes(1 << 20)) }),
        Load::Network(Network::default()),
        run(&["sh", "-c", "while :; do :; done"]),
    ]
}

fn on(cpus: &CpuSet, id: u32, load: Load) -> Activity {
    Activity::new(id, cpus.clone(), What::Load(load))
}

fn status(pid: u32, key: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix(key))?.trim().to_owned())
}

/// The CPU on which a process ran last.
fn ran_on(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// Workers: all marked processes except the probe and its worker.
fn workers(probe: &Probe, mark: &str) -> Vec<u32> {
    let session = probe.child.id();
    let parent = |pid| status(pid, "PPid:").and_then(|parent| parent.parse::<u32>().ok());
    marked(mark).into_iter().filter(|pid| *pid != session && parent(*pid) != Some(session)).collect()
}

#[test]
fn every_load_counts_its_rounds_on_its_cpus_alone_and_leaves_nothing() {
    for (load, processes) in loads().into_iter().zip([2, 1, 1, 2, 3]) {
        let name = load.kind();
        let mut probe = Probe::start_as(&[PROBE], name);
        let cpu = probe.cpu();
        let job = job(&probe, vec![on(&cpu, 7, load)]);
        probe.prepare(Job { duration_ns: 2_000_000_000, ..job }).unwrap();
        probe.say(&ToProbe::Go);
        let there = |pid: &u32| {
            status(*pid, "Cpus_allowed_list:") == Some(cpu.to_string()) && ran_on(*pid) == cpu.first()
        };
        let settled = || {
            let workers = workers(&probe, name);
            workers.len() == processes && workers.iter().all(there)
        };
        assert!(eventually(settled), "{name}: {:?}", workers(&probe, name));
        let (_, done) = probe.finish();
        assert_eq!(done.end, End::Complete, "{name}: {done:?}");
        let (id, rounds) = done.load_rounds[0];
        assert!(id == 7 && rounds > 1, "{name}: {rounds} rounds");
        assert!(!probe.notes.iter().any(|note| note.text.contains("ended before")), "{:?}", probe.notes);
        assert_eq!(marked(name), [probe.child.id()], "{name}: `done` says that nothing is left");
    }
}

#[test]
fn a_killed_probe_takes_every_load_with_it() {
    for load in loads() {
        let mark = format!("killed-{}", load.kind());
        let mut probe = Probe::start_as(&[PROBE], &mark);
        let job = job(&probe, vec![on(&probe.house(), 0, load)]);
        probe.prepare(Job { duration_ns: 3_600_000_000_000, ..job }).unwrap();
        probe.say(&ToProbe::Go);
        assert!(eventually(|| !workers(&probe, &mark).is_empty()));
        probe.child.kill().unwrap();
        probe.child.wait().unwrap();
        assert!(eventually(|| marked(&mark).is_empty()), "{mark}: {:?}", marked(&mark));
    }
}

#[test]
fn processes_that_a_program_started_end_with_it_even_in_a_separate_session() {
    if status(std::process::id(), "Uid:").is_none_or(|uids| !uids.starts_with('0')) {
        return skipped("only root may make a process namespace");
    }
    let stray = run(&["sh", "-c", "setsid sleep 3600 & setsid setsid sleep 3600 & sleep 3600"]);
    for kill in [false, true] {
        let mark = format!("stray-{kill}");
        let mut probe = Probe::start_as(&[PROBE], &mark);
        let mut job = job(&probe, vec![on(&probe.house(), 0, stray.clone())]);
        job.duration_ns = 3_600_000_000_000;
        probe.prepare(job).unwrap();
        probe.say(&ToProbe::Go);
        let sleeping = || {
            let sleeps = |pid: &u32| status(*pid, "Name:").is_some_and(|name| name == "sleep");
            marked(&mark).iter().filter(|pid| sleeps(pid)).count() == 3
        };
        assert!(eventually(sleeping));
        if kill {
            probe.child.kill().unwrap();
            probe.child.wait().unwrap();
            assert!(eventually(|| marked(&mark).is_empty()), "{:?}", marked(&mark));
        } else {
            probe.say(&ToProbe::Stop);
            assert_eq!(probe.finish().1.end, End::Stopped);
            assert_eq!(marked(&mark), [probe.child.id()]);
        }
    }
}

#[test]
fn a_program_that_ends_early_is_reported_with_how_it_ended() {
    let cases = [
        (run(&["sh", "-c", "exit 3"]), "`sh` ended (exit status 3)"),
        (run(&["sh", "-c", "kill -9 $$"]), "`sh` was ended by signal 9"),
        (run(&["true"]), "`true` ended (exit status 0)"),
    ];
    for (load, words) in cases {
        let mut probe = Probe::start_as(&[PROBE], "early");
        let job = job(&probe, vec![timer(0, probe.cpu(), Timer::default()), on(&probe.house(), 1, load)]);
        let Some((_, done)) = probe.perform(job) else { return };
        assert_eq!(done.end, End::Complete, "the measurement goes on");
        let note = probe.notes.iter().find(|note| note.text.contains("ended before its time"));
        let note = note.unwrap_or_else(|| panic!("nothing was said of {words}: {:?}", probe.notes));
        assert_eq!(note.kind, NoteKind::Obstacle);
        assert!(note.text.contains(words), "{note:?}");
        assert_eq!(marked("early"), [probe.child.id()]);
    }
}

#[test]
fn a_load_that_cannot_be_made_here_is_refused_with_reason_and_hint() {
    let mut probe = Probe::start();
    let absent = run(&["no-such-program"]);
    let nowhere = Load::Disk(Disk { directory: Some("/dev/shm".into()), bytes: None });
    for (load, reason) in [(absent, "no program `no-such-program`"), (nowhere, "/dev/shm is in memory")] {
        let job = job(&probe, vec![on(&probe.house(), 0, load)]);
        let refusal = probe.prepare(job).unwrap_err();
        assert!(refusal.reason.contains(reason) && refusal.hint.is_some(), "{refusal:?}");
    }
}

#[test]
fn a_loopback_that_is_down_is_refused_where_it_is_somebody_elses() {
    let words = ["unshare", "--net", PROBE];
    if !std::process::Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|s| s.success()) {
        return skipped("unshare cannot make a network namespace here");
    }
    let mut probe = Probe::start_as(&words, "none");
    let network = Load::Network(Network::default());
    let job_of = |probe: &Probe| job(probe, vec![on(&probe.house(), 0, network.clone())]);
    let refused = job_of(&probe);
    let refusal = probe.prepare(refused).unwrap_err();
    assert!(refusal.reason.contains("nothing can be sent over the loopback"), "{refusal:?}");
    drop(probe);
    // As PID 1 the probe is the whole environment, and its loopback ends with it.
    let words = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", PROBE];
    let mut probe = Probe::start_as(&words, "none");
    let job = job_of(&probe);
    let (_, done) = probe.perform(job).unwrap();
    assert!(done.load_rounds[0].1 > 0, "{done:?}");
}
