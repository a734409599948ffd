//! `block` by a BPF program, on the real kernel of this machine.

use std::fs;
use std::process::Command;

use tactus_model::catalogue::Fault;
use tactus_model::catalogue::fault::{Block, BlockWay, Off};
use tactus_model::catalogue::measure::Timer;
use tactus_model::control::ControlBy;
use tactus_model::message::{
    Activity, Control, End, FromProbe, Injected, Job, NoteKind, Refusal, ToProbe, What,
};
use tactus_model::{CpuSet, Nanos};

use crate::common::{PROBE, Probe, eventually, job, marked, skipped, timer};

const MS: u64 = 1_000_000;
const LENGTH: u64 = 20 * MS;
const EVERY: u64 = 200 * MS;

fn block(off: Off) -> Fault {
    let (length, every) = (Nanos(LENGTH), Nanos(EVERY));
    Fault::Block(Block { length, every, emulated: None, off: Some(off), way: Some(BlockWay::Bpf) })
}

/// A timer on every CPU, and a block on the last one.
fn blocked(probe: &Probe, duration_ns: u64) -> Job {
    let all: CpuSet = probe.facts.text("sched:affinity").unwrap().parse().unwrap();
    let fault = Activity::new(1, probe.cpu(), What::Fault(block(Off::Interrupts)));
    let job = job(probe, vec![timer(0, all, Timer::default()), fault]);
    Job { duration_ns, no_side_effects: true, ..job }
}

/// Whether this machine can do it; if not, it prints the reason.
fn can(refused: &Result<(), Refusal>) -> bool {
    if let Err(refusal) = refused {
        skipped(&refusal.reason);
    }
    refused.is_ok()
}

/// Descriptors of processes that are BPF programs, or performance events that run one.
fn held() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let descriptors =
        processes.flat_map(|process| fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten());
    let names = descriptors.filter_map(|entry| Some((entry.path(), fs::read_link(entry.path()).ok()?)));
    let ours = names.filter(|(_, to)| {
        let to = to.to_string_lossy();
        to.contains("bpf-prog") || to.contains("bpf-map") || to.contains("[perf_event]")
    });
    ours.map(|(path, to)| format!("{} {}", path.display(), to.display())).collect()
}

fn workers(mark: &str) -> Vec<u32> {
    let is_worker = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"worker")
    };
    marked(mark).into_iter().filter(is_worker).collect()
}

/// A BPF program, on some kernels with something that keeps the CPU from idling.
fn is_its_way(way: &str, cpus: &CpuSet) -> bool {
    way == "BPF program" || way == format!("BPF program, CPU {cpus} kept from idling")
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_block_is_as_long_as_it_was_asked_for_and_is_seen_on_its_cpu_alone() {
    let mut probe = Probe::start();
    let job = blocked(&probe, 2_000 * MS);
    if !can(&probe.prepare(job)) {
        return;
    }
    probe.say(&ToProbe::Go);
    let (heard, done) = probe.finish();
    assert_eq!(done.end, End::Complete, "{:?}", done.reason);
    let injected: Vec<&Injected> = heard
        .iter()
        .filter_map(|m| if let FromProbe::Injected(injected) = m { Some(injected) } else { None })
        .collect();
    let [injected] = injected[..] else { panic!("{injected:?}") };
    assert!(is_its_way(&injected.way, &probe.cpu()), "{injected:?}");
    assert_eq!(injected.cpus, probe.cpu());
    // The program's own account: a shared machine may hold it up, never end it early.
    assert!((5..=10).contains(&injected.times.unwrap()), "every 200 ms for 2 s: {injected:?}");
    assert!(injected.longest_ns.unwrap() >= LENGTH, "{injected:?}");
    let there = probe.cpu().first().unwrap();
    let (mut on, mut elsewhere) = (0, 0);
    for message in &heard {
        let FromProbe::Tick(tick) = message else { continue };
        let long = tick.counts.buckets().unwrap().into_iter().filter(|(value, _)| *value >= LENGTH / 2);
        let count: u64 = long.map(|(_, count)| count).sum();
        if tick.series.cpu == there { on += count } else { elsewhere += count }
    }
    assert!(on >= injected.times.unwrap() - 1, "{on} seen of {injected:?}");
    assert!(elsewhere < on, "{elsewhere} on the other CPUs, {on} on this one");
    probe.quit();
}

#[test]
fn the_instrument_is_proven_by_a_block_with_the_length_that_it_really_had() {
    let mut probe = Probe::start();
    let control = ControlBy::Fault(block(Off::Interrupts));
    let proven = Job { control, ..job(&probe, vec![timer(0, probe.cpu(), Timer::default())]) };
    let Some((heard, _)) = probe.perform(proven) else { return };
    let controls: Vec<Control> = heard
        .iter()
        .filter_map(|m| if let FromProbe::Trial(trial) = m { Some(trial.control()) } else { None })
        .collect();
    let [control] = &controls[..] else { panic!("{controls:?} {:?}", probe.notes) };
    assert_eq!(control.by, "block");
    assert!(control.injected_ns >= LENGTH && control.seen_ns >= LENGTH / 10 * 9, "{control:?}");
    let note = probe
        .notes
        .iter()
        .find(|note| note.text.starts_with("the self-test was block of 20ms by BPF program"));
    assert!(note.is_some(), "{:?}", probe.notes);
    probe.quit();
}

#[test]
fn a_bpf_program_cannot_turn_off_preemption_alone() {
    let mut probe = Probe::start();
    let fault = Activity::new(1, probe.cpu(), What::Fault(block(Off::Preemption)));
    let job = job(&probe, vec![timer(0, probe.cpu(), Timer::default()), fault]);
    let refusal = probe.prepare(job).unwrap_err();
    assert!(refusal.reason.contains("not only preemption") && refusal.hint.is_some(), "{refusal:?}");
    probe.quit();
}

#[test]
fn a_probe_without_the_capabilities_says_which() {
    let without = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all", PROBE];
    let mut probe = Probe::start_as(&without, "none");
    let job = blocked(&probe, 600 * MS);
    let refusal = probe.prepare(job).unwrap_err();
    assert!(refusal.reason.contains("no CAP_BPF and no CAP_PERFMON"), "{refusal:?}");
    assert!(refusal.hint.as_ref().unwrap().contains("capabilities = [\"BPF\", \"PERFMON\"]"), "{refusal:?}");
    probe.quit();
}

#[test]
fn whoever_is_killed_no_program_and_no_clock_is_left() {
    let before = held().len();
    // The worker: the probe continues, and reports its end.
    let mut probe = Probe::start_as(&[PROBE], "block-worker");
    if !can(&probe.prepare(blocked(&probe, 600_000 * MS))) {
        return;
    }
    assert!(held().len() > before, "a program, its memory and its clock");
    probe.say(&ToProbe::Go);
    // One that ends before it has begun fails the measurement, which is another story.
    while !matches!(probe.hear(), FromProbe::Tick(_)) {}
    let [worker] = workers("block-worker")[..] else { panic!("one worker") };
    kill(worker);
    let note = loop {
        if let FromProbe::Note(note) = probe.hear()
            && note.text.contains("ended before its time")
        {
            break note;
        }
    };
    assert_eq!(note.kind, NoteKind::Obstacle);
    assert!(!note.text.contains("put back"), "nothing was changed: {}", note.text);
    assert_eq!(held().len(), before, "{:?}", held());
    probe.say(&ToProbe::Stop);
    let done = probe.finish().1;
    assert_eq!(done.end, End::Stopped, "{:?}", done.reason);
    probe.quit();
    // The probe: its worker hears the end.
    let mut probe = Probe::start_as(&[PROBE], "block-probe");
    probe.prepare(blocked(&probe, 600_000 * MS)).unwrap();
    probe.say(&ToProbe::Go);
    kill(probe.child.id());
    assert!(eventually(|| workers("block-probe").is_empty()));
    assert_eq!(held().len(), before, "{:?}", held());
    drop(probe);
    // Both, before either can do anything about the other.
    let mut probe = Probe::start_as(&[PROBE], "block-both");
    probe.prepare(blocked(&probe, 600_000 * MS)).unwrap();
    probe.say(&ToProbe::Go);
    let both: Vec<String> = marked("block-both").iter().map(u32::to_string).collect();
    assert!(Command::new("kill").arg("-9").args(&both).status().unwrap().success());
    assert!(eventually(|| marked("block-both").is_empty()));
    assert_eq!(held().len(), before, "{:?}", held());
}
