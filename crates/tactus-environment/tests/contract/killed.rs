//! A block, and the settings of timerlat, are taken back when any of the processes that made them is killed with -9.
//! The first probe of a guest is its PID 1, and the whole guest ends with it. So the first one starts a second one in
//! the guest, which injects and is killed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tactus_model::catalogue::Measure;
use tactus_model::catalogue::fault::{BlockWay, Off};
use tactus_model::catalogue::measure::{Timer, Timerlat};
use tactus_model::cpus::CpuRequest;
use tactus_model::message::{Activity, End, FromProbe, Job, NoteKind, ToProbe, What};
use tactus_model::scheduling::Policy;
use tactus_model::trace::{EventKind, Source, Trace};
use tactus_model::undo::block::{undo_of_blame, undo_of_timerlat, undos};
use tactus_system::{Child, Connection, Invocation, Remote, System};

use super::conversation::{Conversation, PATIENCE, Speaks, listen};
use super::faults::{assert_undone, assert_undone_on, block, cpus, job, prepare, with};
use super::{alone, leftovers, plan, qemu, spec};

const TRACING: &str = "/sys/kernel/tracing";

/// A second probe in the guest.
struct Second {
    child: Box<dyn Child>,
    connection: Arc<Connection>,
    heard: Receiver<FromProbe>,
}

impl Second {
    fn start(guest: &Remote) -> Self {
        let mut child = guest.spawn(&Invocation::new(["/init"])).unwrap();
        let connection = Arc::new(Connection::new(child.take_stdin()));
        let heard = listen(child.take_stdout().unwrap(), Arc::clone(&connection));
        let mut second = Self { child, connection, heard };
        while !matches!(second.hear(PATIENCE), FromProbe::Facts { last: true, .. }) {}
        second
    }

    /// Has it block CPU 1, and returns when it is prepared (`begins`: measures meanwhile).
    fn block(&mut self, begins: bool) {
        let fault = block(Off::Interrupts, Some(BlockWay::Hwlat));
        self.begin(with(fault, "1", job(Duration::from_secs(600))), begins);
    }

    /// Has it read what timerlat writes of CPU 1, every 2 ms.
    fn trace(&mut self, begins: bool) {
        let measure = Measure::Timerlat(Timerlat::default());
        let what = What::Measure { measure, interval_ns: 2_000_000, priority: 90, policy: Policy::Other };
        let activities = vec![Activity::new(0, cpus("1"), what)];
        self.begin(Job { activities, ..job(Duration::from_secs(600)) }, begins);
    }

    /// Has it keep by tracefs who has CPU 0 while a timer is late there.
    fn keep(&mut self, begins: bool) {
        self.keep_by(Source::Tracefs, begins);
    }

    fn keep_by(&mut self, source: Source, begins: bool) {
        let measure = Measure::Timer(Timer::default());
        let what = What::Measure { measure, interval_ns: 2_000_000, priority: 90, policy: Policy::Fifo };
        let job = Job {
            activities: vec![Activity::new(0, cpus("0"), what)],
            no_side_effects: false,
            housekeeping: cpus("0"),
            blame_above: Some(0),
            blame_by: Some(source),
            ..job(Duration::from_secs(600))
        };
        self.begin(job, begins);
    }

    fn begin(&mut self, job: Job, begins: bool) {
        prepare(self, job).unwrap();
        if begins {
            self.say(&ToProbe::Go);
            while !matches!(self.hear(PATIENCE), FromProbe::Tick(_)) {}
        }
    }
}

impl Speaks for Second {
    fn say(&mut self, message: &ToProbe) {
        self.connection.say(message).expect("the probe listens");
    }

    fn hear(&mut self, patience: Duration) -> FromProbe {
        let heard = self.heard.recv_timeout(patience);
        heard.unwrap_or_else(|error| panic!("the second probe is silent ({error}): {}", self.child.stderr()))
    }
}

/// Workers in the guest, by their directories in `/proc`.
fn workers(guest: &Remote) -> Vec<PathBuf> {
    let is_number =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.as_encoded_bytes()[0].is_ascii_digit());
    let processes = guest.list("/proc".as_ref()).unwrap().into_iter().filter(is_number);
    let is_worker = |path: &PathBuf| {
        let line = guest.read(&path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"worker")
    };
    processes.filter(is_worker).collect()
}

fn await_workers(guest: &Remote, wanted: usize) -> Vec<PathBuf> {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = workers(guest);
        if found.len() == wanted {
            return found;
        }
        assert!(Instant::now() < until, "{found:?} instead of {wanted}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Has the guest's kernel kill its only worker: told that memory is short, it kills the process with the highest
/// `oom_score_adj` (Documentation/admin-guide/sysrq.rst, `f`). No program in the guest could.
fn kill_worker(guest: &Remote) {
    let [worker] = &await_workers(guest, 1)[..] else { unreachable!("one was waited for") };
    guest.write(&worker.join("oom_score_adj"), b"1000").unwrap();
    guest.write("/proc/sysrq-trigger".as_ref(), b"f").unwrap();
}

fn says(guest: &Remote, file: &str) -> String {
    guest.text(&format!("{TRACING}/{file}")).unwrap_or_default().trim().to_owned()
}

/// Does each of these in one guest whose kernel has the tracers, and looks for what is left of it.
fn in_a_traced_guest(each: &[fn(&Remote, &mut Conversation)]) {
    in_a_guest(&traced_guest(), each);
}

fn traced_guest() -> plan::Environment {
    spec("qemu", &[("kernel", "rt"), ("accel", "tcg")])
}

fn in_a_guest(spec: &plan::Environment, each: &[fn(&Remote, &mut Conversation)]) {
    let _turn = alone();
    let Some(qemu) = qemu() else { return };
    let mut first = Conversation::begin(qemu, spec).unwrap_or_else(|error| panic!("{error}"));
    first.greet();
    let guest = first.system();
    each.iter().for_each(|part| part(&guest, &mut first));
    let id = first.id().to_owned();
    first.end();
    leftovers::none_within(&id, Duration::from_secs(5)).unwrap_or_else(|left| panic!("qemu leaves {left}"));
}

#[test]
fn a_block_is_put_back_whoever_injected_it_is_killed() {
    in_a_traced_guest(&[the_probe_alone, the_worker_alone, both, another_runs_block_is_left]);
}

/// The worker hears the end of its orders and puts everything back.
fn the_probe_alone(guest: &Remote, first: &mut Conversation) {
    let mut second = Second::start(guest);
    second.block(true);
    assert_eq!(says(guest, "instances/tactus-hwlat/current_tracer"), "hwlat");
    assert_eq!(says(guest, "hwlat_detector/width"), "50000");
    second.child.kill();
    assert!(matches!(second.child.try_wait(), Ok(Some(None))), "a signal ended it");
    await_workers(guest, 0);
    assert_undone(first);
}

/// The probe sees it die, has another worker put everything back at once, reports that, and continues to measure.
fn the_worker_alone(guest: &Remote, first: &mut Conversation) {
    let mut second = Second::start(guest);
    second.block(true);
    kill_worker(guest);
    let note = loop {
        match second.hear(PATIENCE) {
            FromProbe::Note(note) if note.text.contains("ended before its time") => break note,
            FromProbe::Done(done) => panic!("{done:?}"),
            _ => {}
        }
    };
    assert_eq!(note.kind, NoteKind::Obstacle);
    assert!(note.text.contains("`block`") && note.text.contains("SIGKILL"), "{}", note.text);
    assert!(note.text.ends_with("its changes are reverted"), "{}", note.text);
    assert_undone(first);
    while !matches!(second.hear(PATIENCE), FromProbe::Tick(_)) {}
    second.say(&ToProbe::Stop);
    let done = loop {
        match second.hear(PATIENCE) {
            FromProbe::Done(done) => break done,
            FromProbe::Injected(injected) => panic!("what it did is not known: {injected:?}"),
            _ => {}
        }
    };
    assert_eq!(done.end, End::Stopped, "{:?}", done.reason);
    second.connection.say(&ToProbe::Quit).unwrap();
    assert_eq!(await_workers(guest, 0).len(), 0);
}

/// Neither of them can put anything back: the run's guardian fulfils its promise. Here the guardian is the first
/// probe, as for everything that is made inside a guest.
fn both(guest: &Remote, first: &mut Conversation) {
    let guardian = first.guardian().within(guest, "guest").unwrap();
    let fault = block(Off::Interrupts, None);
    let promises: Vec<_> = undos(&fault, "", |path| guest.text(path))
        .into_iter()
        .map(|how| guardian.promise(how).unwrap())
        .collect();
    let mut second = Second::start(guest);
    // Prepared, and waiting for its orders: it does not look after its worker meanwhile.
    second.block(false);
    kill_worker(guest);
    await_workers(guest, 0);
    second.child.kill();
    assert_eq!(says(guest, "hwlat_detector/width"), "50000", "nobody is left who could have put it back");
    assert!(guest.exists(format!("{TRACING}/instances/tactus-hwlat").as_ref()));
    // The newest first.
    promises.into_iter().rev().for_each(drop);
    assert_undone(first);
}

/// A run whose block is refused takes its promises back: they do not cover the block of another run.
fn another_runs_block_is_left(guest: &Remote, first: &mut Conversation) {
    let guardian = first.guardian().within(guest, "guest").unwrap();
    let mut second = Second::start(guest);
    second.block(true);
    let fault = block(Off::Interrupts, None);
    let undos = undos(&fault, "refused", |path| guest.text(path));
    assert!(undos.len() >= 2, "{undos:?}");
    undos.into_iter().for_each(|how| drop(guardian.promise(how).unwrap()));
    assert_eq!(says(guest, "instances/tactus-hwlat/current_tracer"), "hwlat", "the other's goes on");
    assert_eq!(says(guest, "hwlat_detector/width"), "50000");
    second.child.kill();
    await_workers(guest, 0);
    assert_undone(first);
}

#[test]
fn settings_of_timerlat_are_put_back_when_any_of_its_processes_is_killed() {
    in_a_traced_guest(&[the_reader_alone, the_worker_that_traces_alone, reader_and_worker]);
}

const TRACED: &str = "instances/tactus-timerlat/current_tracer";
const LIMIT: &str = "osnoise/stop_tracing_total_us";

fn assert_traced(guest: &Remote) {
    assert_eq!(says(guest, TRACED), "timerlat");
    assert_eq!(says(guest, "osnoise/timerlat_period_us"), "2000");
    assert_eq!(says(guest, "osnoise/cpus"), "1");
    assert_eq!(says(guest, LIMIT), "0");
}

/// The worker hears the end of its orders and puts everything back, what somebody else had set among it.
fn the_reader_alone(guest: &Remote, first: &mut Conversation) {
    let limit = |text: &str| guest.write(format!("{TRACING}/{LIMIT}").as_ref(), text.as_bytes()).unwrap();
    limit("77777");
    let mut second = Second::start(guest);
    second.trace(true);
    assert_traced(guest);
    second.child.kill();
    await_workers(guest, 0);
    assert_eq!(says(guest, LIMIT), "77777");
    limit("0");
    assert_undone(first);
}

/// Without its worker nothing measures, which ends the job; when its readers have closed the trace another worker
/// puts everything back.
fn the_worker_that_traces_alone(guest: &Remote, first: &mut Conversation) {
    let mut second = Second::start(guest);
    second.trace(true);
    kill_worker(guest);
    let done = loop {
        if let FromProbe::Done(done) = second.hear(PATIENCE) {
            break done;
        }
    };
    assert_eq!(done.end, End::Failed);
    let reason = done.reason.unwrap();
    assert!(reason.contains("`timerlat`") && reason.contains("SIGKILL"), "{reason}");
    assert!(!reason.contains("COULD"), "{reason}");
    assert_undone(first);
    second.connection.say(&ToProbe::Quit).unwrap();
    assert_eq!(await_workers(guest, 0).len(), 0);
}

/// The run's guardian fulfils its promise.
fn reader_and_worker(guest: &Remote, first: &mut Conversation) {
    let guardian = first.guardian().within(guest, "guest").unwrap();
    let promise = undo_of_timerlat("", |path| guest.text(path)).unwrap();
    let promise = guardian.promise(promise).unwrap();
    let mut second = Second::start(guest);
    second.trace(false);
    kill_worker(guest);
    await_workers(guest, 0);
    second.child.kill();
    assert_traced(guest);
    drop(promise);
    assert_undone(first);
}

#[test]
fn who_had_the_cpu_is_kept_by_tracefs_and_its_instance_is_removed_when_its_maker_is_killed() {
    in_a_guest(
        &guest_with_one_cpu(),
        &[had_the_cpu_by_tracefs, who_keeps_alone, who_removes_alone, who_keeps_and_who_removes],
    );
}

/// On PREEMPT_RT, where more of the kernel can be preempted.
#[test]
fn who_had_the_cpu_is_kept_by_bpf_and_nothing_of_it_is_in_tracefs() {
    in_a_guest(&guest_with_one_cpu(), &[had_the_cpu_by_bpf]);
}

/// For tests that trace sched_switch: a kernel changes its code to trace it, and QEMU 7.2 with two CPUs sometimes hangs in
/// its translation of the old code (docs/design/blame.md).
fn guest_with_one_cpu() -> plan::Environment {
    plan::Environment { cpus: Some(CpuRequest::First), ..traced_guest() }
}

const KEPT: &str = "instances/tactus-blame/events/sched/sched_switch/enable";

fn await_gone(guest: &Remote) {
    let until = Instant::now() + PATIENCE;
    while guest.exists(format!("{TRACING}/instances/tactus-blame").as_ref()) {
        assert!(Instant::now() < until, "the instance is there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn had_the_cpu_by_tracefs(guest: &Remote, first: &mut Conversation) {
    let mut second = Second::start(guest);
    second.keep(true);
    assert_eq!(says(guest, KEPT), "1");
    who_had_the_cpu(second, Source::Tracefs);
    assert_eq!(await_workers(guest, 0).len(), 0);
    assert_undone_on(first, "0");
}

fn had_the_cpu_by_bpf(guest: &Remote, _: &mut Conversation) {
    let mut second = Second::start(guest);
    second.keep_by(Source::Bpf, true);
    assert!(!guest.exists(format!("{TRACING}/{KEPT}").as_ref()));
    who_had_the_cpu(second, Source::Bpf);
    assert_eq!(await_workers(guest, 0).len(), 0);
}

/// Latencies come with the kernel's events of their time, which name who left the CPU and the timers that went off.
fn who_had_the_cpu(mut second: Second, source: Source) {
    let mut traces: Vec<(u64, Trace)> = Vec::new();
    while traces.len() < 12 {
        match second.hear(PATIENCE) {
            FromProbe::Outlier(outlier) => traces.push((outlier.value_ns, outlier.trace.unwrap())),
            FromProbe::Done(done) => panic!("{done:?}"),
            _ => {}
        }
    }
    // An emulated guest reads slowly: parts of a trace are overwritten meanwhile, and reported as lost.
    traces.retain(|(_, trace)| trace.events().all(|(_, kind, _)| kind != EventKind::Lost));
    assert!(traces.len() >= 6, "of 12 traces hardly any is whole: {traces:#?}");
    let (mut interrupts, mut leaves, mut timers) = (0, 0, 0);
    for (value, trace) in &traces {
        assert_eq!(trace.source, source);
        let kinds = |of: fn(u64, u64) -> bool| -> Vec<EventKind> {
            trace.events().filter(|(at, ..)| of(*at, *value)).map(|(_, kind, _)| kind).collect()
        };
        // The thread that leaves the CPU next had it at the end.
        let (kinds, later) = (kinds(|at, value| at <= value), kinds(|at, value| at > value));
        assert!(later.len() <= 1 && later.iter().all(|kind| kind.is_switch()), "{value}: {trace:?}");
        interrupts += usize::from(kinds.iter().any(|kind| {
            matches!(kind, EventKind::VectorBegins | EventKind::VectorEnds | EventKind::InterruptEnds)
        }));
        leaves += usize::from(kinds.iter().any(|kind| kind.is_switch()));
        timers += usize::from(trace.timers.iter().any(|function| function == "hrtimer_wakeup"));
    }
    // In every wake-up the timer interrupts, its function wakes the thread, and somebody leaves the CPU.
    let most = traces.len() - 2;
    assert!(
        interrupts >= most && leaves >= most && timers >= most,
        "{interrupts} {leaves} {timers}: {traces:#?}"
    );
    second.say(&ToProbe::Stop);
    while !matches!(second.hear(PATIENCE), FromProbe::Done(_)) {}
    second.connection.say(&ToProbe::Quit).unwrap();
}

/// The one who waits for its end removes the instance.
fn who_keeps_alone(guest: &Remote, first: &mut Conversation) {
    let mut second = Second::start(guest);
    second.keep(true);
    assert_eq!(says(guest, KEPT), "1");
    second.child.kill();
    await_workers(guest, 0);
    await_gone(guest);
    assert_undone_on(first, "0");
}

/// The process that made the instance removes it at the end, as ever.
fn who_removes_alone(guest: &Remote, first: &mut Conversation) {
    let mut second = Second::start(guest);
    second.keep(true);
    kill_worker(guest);
    second.say(&ToProbe::Stop);
    while !matches!(second.hear(PATIENCE), FromProbe::Done(_)) {}
    second.connection.say(&ToProbe::Quit).unwrap();
    await_gone(guest);
    assert_undone_on(first, "0");
}

/// The run's guardian fulfils its promise.
fn who_keeps_and_who_removes(guest: &Remote, first: &mut Conversation) {
    let guardian = first.guardian().within(guest, "guest").unwrap();
    let promise = undo_of_blame("", |path| guest.text(path)).unwrap();
    let promise = guardian.promise(promise).unwrap();
    let mut second = Second::start(guest);
    second.keep(false);
    kill_worker(guest);
    second.child.kill();
    await_workers(guest, 0);
    assert_eq!(says(guest, KEPT), "1", "nobody is left who could have removed it");
    drop(promise);
    await_gone(guest);
    assert_undone_on(first, "0");
}
