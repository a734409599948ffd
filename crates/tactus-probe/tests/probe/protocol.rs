//! The probe as the host side meets it: over a byte stream.

use tactus_model::Nanos;
use tactus_model::catalogue::fault::Hog;
use tactus_model::catalogue::load::{Cpu, Scheduler};
use tactus_model::catalogue::measure::Timer;
use tactus_model::catalogue::{Fault, Load, entries};
use tactus_model::latency::Totals;
use tactus_model::message::{
    Activity, Control, End, FromProbe, Injected, Job, NoteKind, Proven, Stage, Tick, ToProbe, Total, What,
};

use crate::common::{PROBE, Probe, eventually, job, marked, skipped, spin, timer};

fn ticks(heard: &[FromProbe]) -> Vec<&Tick> {
    heard
        .iter()
        .filter_map(|message| if let FromProbe::Tick(tick) = message { Some(tick) } else { None })
        .collect()
}

fn controls(heard: &[FromProbe], stage: Stage) -> Vec<Control> {
    let trial = |message: &FromProbe| match message {
        FromProbe::Trial(trial) if trial.stage == stage => Some(trial.control()),
        _ => None,
    };
    heard.iter().filter_map(trial).collect()
}

/// Tells a probe to prove itself, and returns its messages until it has.
fn prove(probe: &mut Probe) -> (Vec<FromProbe>, Proven) {
    probe.say(&ToProbe::Prove);
    let mut heard = Vec::new();
    loop {
        match probe.hear() {
            FromProbe::Proven(proven) => return (heard, proven),
            FromProbe::Note(_) => {}
            other => heard.push(other),
        }
    }
}

fn injected(heard: &[FromProbe]) -> &Injected {
    heard
        .iter()
        .find_map(|message| if let FromProbe::Injected(injected) = message { Some(injected) } else { None })
        .unwrap()
}

fn samples(ticks: &[&Tick]) -> u64 {
    ticks.iter().flat_map(|tick| tick.counts.buckets().unwrap()).map(|(_, count)| count).sum()
}

fn load(id: u32, probe: &Probe, load: Load) -> Activity {
    Activity::new(id, probe.house(), What::Load(load))
}

fn small() -> Load {
    Load::Scheduler(Scheduler { groups: Some(1), pairs: Some(3), size: None, pipes: false })
}

#[test]
fn hello_and_facts_come_without_being_asked_for() {
    let probe = Probe::start();
    let hello = probe.hello.clone().unwrap();
    // The watch injects `hold-vcpu` from outside of a guest; a probe inside cannot.
    let inside = entries().map(|entry| entry.name).filter(|name| *name != "hold-vcpu");
    let inside = inside.chain(["clock"]);
    assert_eq!(hello.can, inside.collect::<Vec<_>>());
    assert_eq!(hello.pid, probe.child.id());
    assert!(probe.facts.text("/proc/cmdline").is_some() && probe.facts.text("uname:release").is_some());
    assert_eq!(probe.quit(), Some(0));
}

#[test]
fn ticks_of_a_timer_add_up_and_its_thread_never_faulted() {
    let mut probe = Probe::start();
    let activity = timer(4, probe.cpu(), Timer { threads: Some(2), break_at: None });
    let job = job(&probe, vec![activity]);
    let Some((heard, done)) = probe.perform(job) else { return };
    assert_eq!((done.end, done.measured_ns), (End::Complete, 600_000_000));
    let all = ticks(&heard);
    assert_eq!(all.len(), 6, "two series, three ticks");
    for thread in 0..2 {
        let ticks: Vec<&Tick> = all.iter().copied().filter(|tick| tick.series.thread == thread).collect();
        let last = ticks.last().unwrap();
        assert_eq!((last.activity, last.series.priority, last.at_ns), (4, 80 - thread, 600_000_000));
        assert_eq!(ticks.iter().map(|tick| tick.n).collect::<Vec<_>>(), [0, 1, 2]);
        let mut sum = Totals::default();
        ticks.iter().for_each(|tick| sum.add(&tick.now));
        assert_eq!(sum, last.total, "ticks add up");
        assert_eq!(samples(&ticks), sum.cycles, "nothing was lost on the way to the histogram");
        let missed: u64 =
            ticks.iter().flat_map(|tick| tick.missed.buckets().unwrap()).map(|(_, count)| count).sum();
        assert_eq!(missed, sum.overruns, "every swallowed period is put back");
        assert!(sum.cycles > 0 && sum.cycles + sum.overruns <= 600 + sum.max_ns / 1_000_000, "{sum:?}");
        assert!(sum.min_ns <= sum.max_ns && sum.max_ns <= sum.sum_ns);
        assert_eq!(
            (last.thread.minor_faults, last.thread.major_faults),
            (Some(0), Some(0)),
            "memory was ready"
        );
        let largest = heard.iter().filter_map(|message| match message {
            FromProbe::Outlier(outlier) if outlier.series == last.series => Some(outlier.value_ns),
            _ => None,
        });
        assert_eq!(largest.max(), Some(sum.max_ns), "the largest value is among the outliers");
    }
    assert_eq!(probe.quit(), Some(0));
}

#[test]
fn gaps_are_counted_and_fill_the_time_that_was_polled() {
    let mut probe = Probe::start();
    let job = job(&probe, vec![spin(0, probe.cpu())]);
    let Some((heard, done)) = probe.perform(job) else { return };
    assert_eq!(done.end, End::Complete);
    let ticks = ticks(&heard);
    let total = ticks.last().unwrap().total;
    assert_eq!(samples(&ticks), total.cycles);
    assert_eq!(ticks[0].series.kind, "gap");
    assert!(total.sum_ns > 0 && total.max_ns < 600_000_000 && total.overruns == 0, "{total:?}");
    assert!(total.sum_ns <= 600_000_000 + total.max_ns, "gaps lie within the time that was measured");
    assert!(probe.notes.iter().any(|note| note.text.starts_with("spin polls ")), "the clock is named");
}

#[test]
fn a_control_is_seen_at_its_size_by_every_thread() {
    let mut probe = Probe::start();
    for activity in [timer(0, probe.cpu(), Timer { threads: Some(3), break_at: None }), spin(0, probe.cpu())]
    {
        let threads = if matches!(&activity.what, What::Measure { interval_ns: 0, .. }) { 1 } else { 3 };
        let job = Job { control: tactus_model::control::ControlBy::Hog, ..job(&probe, vec![activity]) };
        let Some((heard, _)) = probe.perform(job) else { return };
        assert_eq!(controls(&heard, Stage::Fine).len(), threads);
        let controls = controls(&heard, Stage::Before);
        assert_eq!(controls.len(), threads);
        for control in controls {
            assert!(control.passed, "{control:?}");
            assert!(control.seen_ns + control.injected_ns / 10 >= control.injected_ns, "{control:?}");
            assert!(control.injected_ns >= 500_000 && (1..=8).contains(&control.attempts), "{control:?}");
        }
    }
}

#[test]
fn a_probe_that_has_proven_itself_waits_and_does_not_do_it_again() {
    let mut probe = Probe::start();
    let activity = timer(0, probe.cpu(), Timer { threads: Some(1), break_at: None });
    let job = Job { control: tactus_model::control::ControlBy::Hog, ..job(&probe, vec![activity]) };
    if let Err(refusal) = probe.prepare(job) {
        return skipped(&refusal.reason);
    }
    let (heard, before) = prove(&mut probe);
    let both = controls(&heard, Stage::Before).len() + controls(&heard, Stage::Fine).len();
    assert_eq!((both, heard.len()), (2, 2), "nothing is measured yet: {heard:?}");
    assert!(before.clock.step_ns.is_some_and(|step| step > 0), "{before:?}");
    assert!(0 < before.told_ns && before.told_ns < before.proven_ns, "{before:?}");
    probe.say(&ToProbe::Go);
    let (heard, done) = probe.finish();
    assert_eq!(done.end, End::Complete);
    assert!(controls(&heard, Stage::Before).is_empty() && !ticks(&heard).is_empty());
    // Once more, after it; and then no more.
    let (heard, after) = prove(&mut probe);
    assert_eq!((controls(&heard, Stage::After).len(), heard.len()), (1, 1), "{heard:?}");
    assert!(after.told_ns > before.proven_ns + 600_000_000, "{after:?}");
    probe.say(&ToProbe::Prove);
    assert!(matches!(probe.hear(), FromProbe::Note(_)), "there is no job");
    let next = job_of(&probe);
    assert_eq!(probe.perform(next).unwrap().1.end, End::Complete);
}

fn job_of(probe: &Probe) -> Job {
    job(probe, vec![timer(0, probe.cpu(), Timer::default())])
}

#[test]
fn a_series_says_its_last_totals_more_than_once_and_in_frames_of_their_own() {
    let mut probe = Probe::start();
    let job = job_of(&probe);
    let Some((heard, done)) = probe.perform(job) else { return };
    let totals: Vec<&Total> = heard
        .iter()
        .filter_map(|message| if let FromProbe::Total(total) = message { Some(total) } else { None })
        .collect();
    assert!(totals.len() >= 3 && totals.iter().all(|total| total.last), "{totals:?}");
    let last = ticks(&heard).last().unwrap().total;
    assert!(totals.iter().all(|total| total.total == last && total.at_ns == done.measured_ns));
    assert_eq!(done.jump_ns / 10_000_000, 0, "no clock jumped");
}

#[test]
fn every_planned_period_is_measured_or_counted_as_missed() {
    let mut probe = Probe::start();
    // A hog that holds the CPU across the beginning and the end, with three threads below it.
    let hog = Fault::Hog(Hog { length: Nanos::from_ms(7), every: Nanos::from_ms(10) });
    let fault = Activity::new(1, probe.cpu(), What::Fault(hog));
    let measured = timer(0, probe.cpu(), Timer { threads: Some(3), break_at: None });
    let job = job(&probe, vec![measured, fault]);
    let planned = job.duration_ns / 1_000_000;
    let Some((heard, done)) = probe.perform(job) else { return };
    assert_eq!(done.end, End::Complete);
    for thread in 0..3 {
        let all = ticks(&heard);
        let last = all.iter().rfind(|tick| tick.series.thread == thread).unwrap();
        let periods = last.total.cycles + last.total.overruns;
        assert!(
            last.total.overruns > 0 && periods.abs_diff(planned) <= 1,
            "{planned} planned: {:?}",
            last.total
        );
    }
}

#[test]
fn a_hog_is_seen_by_the_thread_below_it_and_counted() {
    let mut probe = Probe::start();
    let hog = Fault::Hog(Hog { length: Nanos::from_ms(5), every: Nanos::from_ms(50) });
    let fault = Activity::new(1, probe.cpu(), What::Fault(hog));
    let job = job(&probe, vec![timer(0, probe.cpu(), Timer::default()), fault]);
    let Some((heard, done)) = probe.perform(job) else { return };
    let total = ticks(&heard).last().unwrap().total;
    assert!(total.max_ns >= 4_000_000 && total.overruns >= 4, "5 ms at an interval of 1 ms: {total:?}");
    assert_eq!((done.end, done.load_rounds.len()), (End::Complete, 0), "a fault is no load");
    let injected = injected(&heard);
    assert_eq!((&*injected.kind, &*injected.way, injected.activity), ("hog", "SCHED_FIFO 81", 1));
    assert_eq!((injected.length_ns, injected.every_ns), (5_000_000, 50_000_000));
    assert!((1..=12).contains(&injected.times.unwrap()), "in 600 ms: {injected:?}");
    assert!(injected.longest_ns.unwrap() >= 5_000_000, "{injected:?}");
}

#[test]
fn loads_count_their_rounds_and_leave_nothing() {
    let mut probe = Probe::start_as(&[PROBE], "rounds");
    let pipes = Load::Scheduler(Scheduler { groups: Some(1), pairs: Some(2), size: Some(64), pipes: true });
    let busy = Load::Cpu(Cpu { busy: Some(30) });
    let activities = vec![load(0, &probe, small()), load(1, &probe, pipes), load(2, &probe, busy)];
    let job = job(&probe, activities);
    let (_, done) = probe.perform(job).unwrap();
    let ids: Vec<u32> = done.load_rounds.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, 1, 2]);
    assert!(done.load_rounds.iter().all(|(_, rounds)| *rounds > 0), "{done:?}");
    // `done` says that the job has ended: so have its children.
    assert_eq!(marked("rounds"), [probe.child.id()]);
}

#[test]
fn a_stop_ends_a_job_early_and_keeps_what_it_measured() {
    let mut probe = Probe::start();
    let long =
        Job { duration_ns: 3_600_000_000_000, ..job(&probe, vec![timer(0, probe.cpu(), Timer::default())]) };
    if let Err(refusal) = probe.prepare(long) {
        return skipped(&refusal.reason);
    }
    probe.say(&ToProbe::Go);
    while !matches!(probe.hear(), FromProbe::Tick(_)) {}
    probe.say(&ToProbe::Stop);
    let (heard, done) = probe.finish();
    assert_eq!(done.end, End::Stopped);
    assert!(done.measured_ns > 0 && done.measured_ns < 3_600_000_000_000);
    let last = *ticks(&heard).last().unwrap();
    assert!(last.total.cycles > 0);
    assert_eq!(last.at_ns, done.measured_ns);
    // The probe is free for the next one.
    let next = job(&probe, vec![timer(0, probe.cpu(), Timer::default())]);
    assert_eq!(probe.perform(next).unwrap().1.end, End::Complete);
}

#[test]
fn a_break_names_the_thread_its_cpu_and_the_value() {
    let mut probe = Probe::start();
    let never = Timer { threads: None, break_at: Some(Nanos(1)) };
    let job = job(&probe, vec![timer(0, probe.cpu(), never)]);
    let Some((heard, done)) = probe.perform(job) else { return };
    assert_eq!(done.end, End::Break);
    let max = ticks(&heard).last().unwrap().total.max_ns;
    let reason = done.reason.unwrap();
    assert!(reason.contains(&format!("thread 0 on CPU {} woke {max} ns late", probe.cpu())), "{reason}");
}

#[test]
fn without_the_capability_real_time_is_refused_with_reason_and_hint() {
    let words = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", PROBE];
    let can = std::process::Command::new(words[0]).args(&words[1..3]).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skipped("setpriv cannot drop CAP_SYS_NICE here");
    }
    let mut probe = Probe::start_as(&words, "none");
    if probe.facts.number("limit:rtprio") != Some(0) {
        return skipped("RLIMIT_RTPRIO allows real time");
    }
    let job = job(&probe, vec![timer(0, probe.cpu(), Timer::default())]);
    let refusal = probe.prepare(job).unwrap_err();
    assert!(refusal.reason.contains("CAP_SYS_NICE is missing and RLIMIT_RTPRIO is 0"), "{refusal:?}");
    assert!(refusal.hint.unwrap().contains("--cap-add=SYS_NICE"));
}

#[test]
fn a_cpu_outside_the_affinity_is_refused_with_those_inside() {
    let (first, last) = {
        let probe = Probe::start();
        (probe.house(), probe.cpu())
    };
    if first == last {
        return skipped("this machine has one CPU");
    }
    let mut probe = Probe::start_as(&["taskset", "-c", &first.to_string(), PROBE], "none");
    let job = job(&probe, vec![timer(0, last.clone(), Timer::default())]);
    let refusal = probe.prepare(job).unwrap_err();
    assert_eq!(refusal.reason, format!("CPU {last} is online, but this process may use {first} only"));
}

#[test]
fn the_end_of_the_stream_ends_everything_at_once() {
    let mut probe = Probe::start_as(&[PROBE], "stream");
    let long = Job { duration_ns: 3_600_000_000_000, ..job(&probe, vec![load(0, &probe, small())]) };
    probe.prepare(long).unwrap();
    probe.say(&ToProbe::Go);
    assert!(eventually(|| marked("stream").len() == 8), "the probe, its worker and six workers");
    drop(probe.stdin.take());
    assert!(probe.ends());
    assert_eq!(probe.child.wait().unwrap().code(), Some(0));
    assert!(marked("stream").is_empty());
}

#[test]
fn a_killed_probe_takes_its_children_with_it() {
    let mut probe = Probe::start_as(&[PROBE], "killed");
    let job = job(&probe, vec![load(0, &probe, small())]);
    probe.prepare(job).unwrap();
    assert!(eventually(|| marked("killed").len() == 8));
    probe.child.kill().unwrap();
    probe.child.wait().unwrap();
    assert!(eventually(|| marked("killed").is_empty()), "{:?}", marked("killed"));
}

#[test]
fn garbage_is_answered_by_a_note_and_does_no_harm() {
    let mut probe = Probe::start();
    probe.write(b"\x00\xff\xfe garbage\n{\"q\":0,\"m\":{\"t\":\"quit\"},\"c\":\"00000000\"}\n");
    for _ in 0..2 {
        let FromProbe::Note(note) = probe.hear() else { panic!("no note") };
        assert_eq!(note.kind, NoteKind::Obstacle);
        assert!(note.text.contains("is not a frame"), "{note:?}");
    }
    let bytes = tactus_model::wire::Encoder::new().encode(&serde_json::json!({"t": "dance"})).unwrap();
    probe.write(&bytes);
    let FromProbe::Note(note) = probe.hear() else { panic!("no note") };
    assert!(note.text.contains("was not understood"), "{note:?}");
    let job = job(&probe, vec![load(0, &probe, Load::Cpu(Cpu { busy: Some(10) }))]);
    assert_eq!(probe.perform(job).unwrap().1.end, End::Complete);
}

#[test]
fn a_second_job_is_refused_while_one_is_prepared_or_runs() {
    let mut probe = Probe::start();
    let job = job(&probe, vec![load(0, &probe, Load::Cpu(Cpu { busy: Some(10) }))]);
    probe.prepare(job.clone()).unwrap();
    assert!(probe.prepare(job.clone()).is_err());
    probe.say(&ToProbe::Go);
    probe.say(&ToProbe::Job(job));
    let (heard, done) = probe.finish();
    assert!(heard.iter().any(|message| matches!(message, FromProbe::Refused(_))));
    assert_eq!(done.end, End::Complete);
}

#[test]
fn what_measuring_changes_is_said_or_left_alone() {
    let mut probe = Probe::start();
    let changing = job(&probe, vec![timer(0, probe.cpu(), Timer::default())]);
    let leaving = Job { no_side_effects: true, ..changing.clone() };
    let Some(_) = probe.perform(leaving) else { return };
    assert!(!probe.notes.iter().any(|note| note.text.contains("cpu_dma_latency")));
    probe.perform(changing).unwrap();
    let note = probe.notes.iter().find(|note| note.text.contains("cpu_dma_latency")).unwrap();
    let held = probe.facts.text("/dev/cpu_dma_latency").is_some();
    assert_eq!(note.kind, if held { NoteKind::SideEffect } else { NoteKind::Obstacle });
}
