//! Faults with a kernel that supports all of them: a guest with a PREEMPT_RT kernel, which takes a BPF program and
//! has tracers that keep interrupts off. `killed.rs` tests what becomes of a block when its injector is killed. A
//! guest on a shared machine wakes up to some ten milliseconds late without any fault. So the tests count blocks of
//! 50 ms, and assert nothing else of its latency.
#![expect(clippy::print_stderr, reason = "what was heard is said, for who reads the test")]

use std::time::Duration;

use tactus_model::catalogue::fault::{Block, BlockWay, Off, Overcommit};
use tactus_model::catalogue::measure::Timer;
use tactus_model::catalogue::{Fault, Measure};
use tactus_model::change::{Change, Effect, Form, Target};
use tactus_model::control::ControlBy;
use tactus_model::message::{
    Activity, Control, End, FromProbe, Injected, Job, Note, NoteKind, Refusal, Stage, ToProbe, What,
};
use tactus_model::scheduling::Policy;
use tactus_model::{CpuSet, Nanos};

use super::conversation::{Conversation, PATIENCE, Speaks};
use super::{alone, leftovers, qemu, skipped, spec};

const MS: u64 = 1_000_000;
const LENGTH: Nanos = Nanos(50 * MS);
const EVERY: Nanos = Nanos(500 * MS);
/// A value that is a block and no noise, in ns.
const SEEN: u64 = 45 * MS;
/// How often a control is tried: other work of a shared machine may keep the guest waiting as long as one.
const TRIES: usize = 4;

/// Every file that a block or timerlat changes, and what Linux says in it after boot.
const FILES: [(&str, Form, &str); 13] = [
    ("hwlat_detector/mode", Form::Choice, "round-robin"),
    ("hwlat_detector/width", Form::Plain, "500000"),
    ("hwlat_detector/window", Form::Plain, "1000000"),
    ("osnoise/cpus", Form::List, "0-1"),
    ("osnoise/runtime_us", Form::Plain, "1000000"),
    ("osnoise/period_us", Form::Plain, "1000000"),
    ("osnoise/timerlat_period_us", Form::Plain, "1000"),
    ("osnoise/stop_tracing_us", Form::Plain, "0"),
    ("osnoise/stop_tracing_total_us", Form::Plain, "0"),
    (
        "osnoise/options",
        Form::Plain,
        "DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP NO_OSNOISE_PREEMPT_DISABLE NO_OSNOISE_IRQ_DISABLE",
    ),
    ("current_tracer", Form::Plain, "nop"),
    ("tracing_on", Form::Plain, "1"),
    ("tracing_cpumask", Form::Mask, "3"),
];

/// The tracers' instances, which are gone afterwards.
const INSTANCES: [&str; 4] = ["hwlat", "osnoise", "timerlat", "blame"];

/// The messages of a job.
pub struct Heard {
    /// Values of at least [`SEEN`], by CPU, in ns.
    pub blocks: [Vec<u64>; 2],
    controls: Vec<Control>,
    pub injected: Vec<Injected>,
    pub notes: Vec<Note>,
}

/// A block of 50 ms.
pub fn block(off: Off, way: Option<BlockWay>) -> Fault {
    Fault::Block(Block { length: LENGTH, every: EVERY, emulated: None, off: Some(off), way })
}

pub fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// A timer on both CPUs.
pub fn job(duration: Duration) -> Job {
    let measure = Measure::Timer(Timer::default());
    let what = What::Measure { measure, interval_ns: MS, priority: 80, policy: Policy::Fifo };
    Job {
        duration_ns: u64::try_from(duration.as_nanos()).unwrap(),
        tick_ns: 1_000 * MS,
        control: ControlBy::Nothing,
        no_side_effects: true,
        housekeeping: CpuSet::default(),
        activities: vec![Activity::new(0, cpus("0-1"), what)],
        changes: Vec::new(),
        restore: false,
        budget: 0,
        cache_misses: false,
        blame_above: None,
        blame_by: None,
        lock_in: None,
    }
}

/// A job with a fault besides.
pub fn with(fault: Fault, on: &str, mut job: Job) -> Job {
    job.activities.push(Activity::new(1, cpus(on), What::Fault(fault)));
    job
}

/// Gives a job and waits until it is prepared; what was noted meanwhile.
pub fn prepare(talk: &mut impl Speaks, job: Job) -> Result<Vec<Note>, Refusal> {
    talk.say(&ToProbe::Job(job));
    let mut notes = Vec::new();
    loop {
        match talk.hear(PATIENCE) {
            FromProbe::Ready => return Ok(notes),
            FromProbe::Refused(refusal) => return Err(refusal),
            FromProbe::Note(note) => notes.push(note),
            _ => {}
        }
    }
}

pub fn perform(talk: &mut Conversation, job: Job) -> Result<Heard, Refusal> {
    let notes = prepare(talk, job)?;
    talk.say(&ToProbe::Go);
    let mut heard =
        Heard { blocks: [Vec::new(), Vec::new()], controls: Vec::new(), injected: Vec::new(), notes };
    loop {
        match talk.hear(PATIENCE) {
            FromProbe::Tick(tick) => {
                let values = tick.counts.buckets().unwrap();
                let large = values.into_iter().filter(|(value, _)| *value >= SEEN);
                let cpu = usize::try_from(tick.series.cpu).unwrap();
                heard.blocks[cpu].extend(large.flat_map(|(value, count)| (0..count).map(move |_| value)));
            }
            FromProbe::Trial(trial) if trial.stage == Stage::Before => heard.controls.push(trial.control()),
            FromProbe::Injected(injected) => heard.injected.push(injected),
            FromProbe::Note(note) => heard.notes.push(note),
            FromProbe::Done(done) => {
                assert_eq!(done.end, End::Complete, "{:?}", done.reason);
                return Ok(heard);
            }
            _ => {}
        }
    }
}

/// Has the probe set every file to its value after boot. A file that already has this value shows that the fault was
/// undone.
pub fn assert_undone(talk: &mut Conversation) {
    assert_undone_on(talk, "0-1");
}

/// The same in a guest with these CPUs.
pub fn assert_undone_on(talk: &mut Conversation, all: &str) {
    let change = |path: String, form, then: &str| Change {
        check: "a-check".into(),
        target: Target::File { path, form },
        now: None,
        then: then.into(),
        effect: Effect::Runtime,
    };
    let changes: Vec<Change> = FILES
        .iter()
        .map(|(path, form, then)| match (*path, all) {
            ("osnoise/cpus", _) => (path, form, all),
            ("tracing_cpumask", "0") => (path, form, "1"),
            _ => (path, form, *then),
        })
        .map(|(path, form, then)| change(format!("/sys/kernel/tracing/{path}"), *form, then))
        .chain(INSTANCES.map(|name| {
            change(format!("/sys/kernel/tracing/instances/tactus-{name}/tracing_on"), Form::Plain, "0")
        }))
        .collect();
    let mut job = Job { changes, ..job(Duration::from_secs(1)) };
    job.activities[0].cpus = cpus(all);
    let notes = prepare(talk, job).unwrap();
    talk.say(&ToProbe::Stop);
    while !matches!(talk.hear(PATIENCE), FromProbe::Done(_)) {}
    let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
    let all = format!(
        "0 of {} settings made; {} had their value already",
        FILES.len() + INSTANCES.len(),
        FILES.len()
    );
    assert!(texts.iter().any(|text| text.starts_with(&all)), "{texts:#?}");
    assert_eq!(
        texts.iter().filter(|text| text.contains("No such file")).count(),
        INSTANCES.len(),
        "{texts:#?}"
    );
}

#[test]
fn a_block_is_seen_at_its_size_on_the_cpu_it_was_asked_for_and_everything_is_put_back() {
    let _turn = alone();
    let Some(qemu) = qemu() else { return };
    let mut talk = Conversation::begin(qemu, &spec("qemu", &[("kernel", "rt"), ("accel", "tcg")]))
        .unwrap_or_else(|error| panic!("{error}"));
    talk.greet();
    drop(talk.running.after_hello().unwrap());
    for (off, way, name, on) in [
        (Off::Interrupts, None, "BPF program", "1"),
        (Off::Interrupts, Some(BlockWay::Hwlat), "hwlat tracer", "1"),
        (Off::Interrupts, Some(BlockWay::Osnoise), "osnoise tracer", "0"),
        (Off::Preemption, None, "osnoise tracer", "1"),
    ] {
        is_seen(&mut talk, off, way, name, on);
    }
    the_control_may_be_a_block(&mut talk);
    what_this_kernel_lacks_is_refused(&mut talk);
    a_job_that_is_stopped_or_never_begins_leaves_nothing(&mut talk);
    threads_beyond_the_cpus_wait_for_each_other(&mut talk);
    let id = talk.id().to_owned();
    talk.end();
    leftovers::none_within(&id, Duration::from_secs(5)).unwrap_or_else(|left| panic!("qemu leaves {left}"));
}

/// Blocks a CPU. How often and for how long is what carries it out says, as far as it does.
fn is_seen(talk: &mut Conversation, off: Off, way: Option<BlockWay>, name: &str, on: &str) {
    let heard = perform(talk, with(block(off, way), on, job(Duration::from_secs(4)))).unwrap();
    eprintln!("{name} on CPU {on}: {:?} {:?}", heard.blocks, heard.injected);
    let [injected] = &heard.injected[..] else { panic!("{:?}", heard.injected) };
    assert_eq!((&*injected.kind, injected.activity), ("block", 1));
    // On some kernels a BPF program takes something that keeps the CPU from idling.
    assert!(injected.way.starts_with(name), "{injected:?}");
    assert_eq!((&injected.cpus, injected.length_ns), (&cpus(on), LENGTH.0));
    let mut times = 8;
    if name == "hwlat tracer" {
        assert_eq!((injected.times, injected.longest_ns), (None, None), "nobody counts them");
    } else {
        times = usize::try_from(injected.times.unwrap()).unwrap();
        assert!((4..=9).contains(&times), "every 500 ms for 4 s: {injected:?}");
        assert!(injected.longest_ns.unwrap() >= LENGTH.0, "{injected:?}");
    }
    assert_undone(talk);
    let [there, elsewhere] = if on == "0" { [0, 1] } else { [1, 0] };
    // Where the guest was kept waiting meanwhile two may look as one, and a long wait as one of them.
    let (seen, others) = (heard.blocks[there].len(), heard.blocks[elsewhere].len());
    assert!(seen * 2 > times, "{name}: {times} times, seen {:?}", heard.blocks);
    assert!(others < seen, "{name}: on the other CPU, too: {:?}", heard.blocks);
}

fn the_control_may_be_a_block(talk: &mut Conversation) {
    let controlled =
        Job { control: ControlBy::Fault(block(Off::Interrupts, None)), ..job(Duration::from_secs(1)) };
    let mut tries = 0;
    let heard = loop {
        tries += 1;
        let heard = perform(talk, controlled.clone()).unwrap();
        if tries == TRIES || heard.controls.iter().any(|control| control.passed) {
            break heard;
        }
    };
    eprintln!("after {tries}: {:#?}", heard.controls);
    assert_eq!(heard.controls.len(), 2, "one for each thread");
    for control in &heard.controls {
        assert_eq!((&*control.by, control.injected_ns), ("block", LENGTH.0));
        assert!(control.seen_ns >= SEEN && (1..=4).contains(&control.attempts), "{control:?}");
        // The rule, whatever the place is like just now.
        let above = (LENGTH.0 / 10).max(control.noise_ns);
        let told_apart = control.noise_ns < SEEN;
        assert_eq!(control.passed, told_apart && control.seen_ns <= LENGTH.0 + above, "{control:?}");
    }
    assert!(heard.controls.iter().any(|control| control.passed), "{:?}", heard.controls);
    let how = "the self-test was block of 50ms by BPF program";
    assert!(heard.notes.iter().any(|note| note.text.starts_with(how)), "{:?}", heard.notes);
    assert!(heard.injected.is_empty(), "a control is no fault of the plan");
    assert_undone(talk);
}

fn what_this_kernel_lacks_is_refused(talk: &mut Conversation) {
    for (off, way, why) in [
        (
            Off::Interrupts,
            BlockWay::PreemptirqDelay,
            "preemptirq_delay_test cannot be loaded with delay=50000",
        ),
        (Off::Interrupts, BlockWay::Blocksys, "/dev/blocksys: No such file"),
        (Off::Preemption, BlockWay::Hwlat, "not only preemption"),
    ] {
        let fault = block(off, Some(way));
        let refusal = prepare(talk, with(fault.clone(), "1", job(Duration::from_secs(1)))).unwrap_err();
        assert!(refusal.reason.contains(why) && refusal.hint.is_some(), "{refusal:?}");
        // As a control it is no obstacle to measuring, but proves nothing.
        let job = Job { control: ControlBy::Fault(fault), ..job(Duration::from_millis(200)) };
        let heard = perform(talk, job).unwrap();
        assert!(heard.controls.is_empty());
        let note = heard.notes.iter().find(|note| note.text.starts_with("no self-test on CPUs 0,1"));
        assert!(note.is_some_and(|note| note.kind == NoteKind::Obstacle), "{:?}", heard.notes);
    }
    assert_undone(talk);
}

fn a_job_that_is_stopped_or_never_begins_leaves_nothing(talk: &mut Conversation) {
    for (begins, way) in [(false, BlockWay::Hwlat), (true, BlockWay::Hwlat), (true, BlockWay::Bpf)] {
        let fault = block(Off::Interrupts, Some(way));
        prepare(talk, with(fault, "0-1", job(Duration::from_secs(600)))).unwrap();
        if begins {
            talk.say(&ToProbe::Go);
            while !matches!(talk.hear(PATIENCE), FromProbe::Tick(_)) {}
        }
        talk.say(&ToProbe::Stop);
        while !matches!(talk.hear(PATIENCE), FromProbe::Done(_)) {}
        assert_undone(talk);
    }
}

fn threads_beyond_the_cpus_wait_for_each_other(talk: &mut Conversation) {
    let over = Fault::Overcommit(Overcommit { threads: Some(4), length: Nanos(10 * MS), every: EVERY });
    let heard = perform(talk, with(over, "1", job(Duration::from_secs(3)))).unwrap();
    let [injected] = &heard.injected[..] else { panic!("{:?}", heard.injected) };
    eprintln!("{injected:?}");
    assert_eq!((&*injected.kind, &*injected.way), ("overcommit", "SCHED_FIFO 81 to 78"));
    assert!((8..=28).contains(&injected.times.unwrap()), "four threads, every 500 ms for 3 s: {injected:?}");
    assert!(injected.longest_ns.unwrap() >= 10 * MS, "{injected:?}");
}

#[test]
fn a_block_is_refused_where_the_kernel_has_no_way_to_it() {
    let _turn = alone();
    let tracers = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c"])
        .arg("mount -t tracefs x /sys/kernel/tracing && cat /sys/kernel/tracing/available_tracers")
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    if tracers.contains("hwlat") || tracers.contains("osnoise") {
        return skipped(&format!("this kernel can: it has {tracers}"));
    }
    let host = tactus_environment::find("host").unwrap();
    let mut talk = Conversation::begin(host, &spec("host", &[])).unwrap();
    talk.greet();
    let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
    let before = mounts();
    let job = job(Duration::from_secs(1));
    // By preemption alone: interrupts are what a BPF program keeps off.
    let refusal = prepare(&mut talk, with(block(Off::Preemption, None), "0", job)).unwrap_err();
    eprintln!("{refusal:?}");
    for word in
        ["a BPF program turns", "/dev/blocksys", "hwlat tracer", "osnoise tracer", "preemptirq_delay_test"]
    {
        assert!(refusal.reason.contains(word), "{refusal:?}");
    }
    assert!(refusal.hint.unwrap().contains("CONFIG_OSNOISE_TRACER"));
    assert_eq!(mounts(), before, "what was mounted to look was mounted for the fault's process alone");
    talk.end();
}
