//! A job: its threads and workers are prepared and proven. How they run, and are gone at the end, is in `running`.

mod running;
mod tracing;

use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tactus_measure::card::Card;
use tactus_measure::clock::Source;
use tactus_measure::ftrace::Ftrace;
use tactus_measure::gaps::GapHistogram;
use tactus_measure::lane::{Common, Lane, Spec};
use tactus_measure::reading::Reading;
use tactus_measure::refuse;
use tactus_measure::series::SMALLEST_GAP;
use tactus_measure::thread::{Measuring, allowed};
use tactus_model::catalogue::Fault;
use tactus_model::clock::ClockCheck;
use tactus_model::message::{Activity, CardOf, FromProbe, Job, LockIn, Note, Refusal, Stage, What};
use tactus_model::scheduling::Policy;
use tactus_model::series::SeriesKey;
use tactus_model::{CpuSet, Nanos};

pub use running::Running;

use crate::answer::answers;
use crate::blame::Blame;
use crate::channel::Channel;
use crate::housekeeping::House;
use crate::memory::Memory;
use crate::processor::Processor;
use crate::self_test::SelfTest;
use crate::settings::Applied;
use crate::values;
use crate::work::{Pace, out_of_range};
use crate::worker::Worker;

/// A job whose threads wait for their orders. Dropping it ends them and all other parts of it.
pub struct Prepared {
    threads: Vec<Measuring>,
    test: SelfTest,
    processor: Processor,
    workers: Vec<Worker>,
    common: Arc<Common>,
    notes: Vec<Note>,
    duration_ns: u64,
    tick_ns: u64,
    lock_in: Option<LockIn>,
    /// The source that knows who has the measured CPUs, and the latency in ns above which it is asked for each.
    blame: Option<(Rc<Blame>, u64)>,
    _latency: Option<File>,
    memory: Option<Memory>,
    _house: House,
    /// The last to be dropped: the former values come back when nothing of the job is left.
    applied: Applied,
}

fn refusal(reason: impl Into<String>, hint: &str) -> Refusal {
    Refusal { reason: reason.into(), hint: Some(hint.to_owned()) }
}

impl Prepared {
    /// Prepares everything that a job needs.
    ///
    /// # Errors
    /// Why it cannot be done here. Nothing is then left of it.
    pub fn new(job: &Job) -> Result<Self, Refusal> {
        check(job)?;
        let mut notes = Vec::new();
        let applied = Applied::new(&job.changes, job.restore, &mut notes)?;
        let house = House::enter(&job.housekeeping, &mut notes);
        let above = highest_priority(job).map_or(99, |priority| (priority + 1).min(99));
        let seed = job.lock_in.map(|lock_in| lock_in.seed);
        let pace = Pace { duration_ns: job.duration_ns, tick_ns: job.tick_ns, seed };
        let mut workers = Vec::new();
        for activity in &job.activities {
            if runs_beside(activity) {
                let mut worker = Worker::start(activity, above, pace)?;
                notes.append(&mut worker.take_notes());
                // The card raises interrupts before all others begin: it warms up, and proves itself.
                if answers(activity) {
                    worker.go().map_err(|why| refusal(why, "check the guest's console"))?;
                }
                workers.push(worker);
            }
        }
        workers.extend(tracing::start(&job.activities, pace, &mut notes)?);
        let common = Arc::<Common>::default();
        let mut threads = Vec::new();
        for activity in &job.activities {
            threads.extend(start_threads(activity, &common, &job.housekeeping, &mut notes)?);
        }
        let test = SelfTest::prepare(&job.control, above, &threads, &mut notes);
        let (mut latency, mut processor, mut blame) = (None, Processor::default(), None);
        if !threads.is_empty() && !job.no_side_effects {
            latency = hold_cpu_latency(&mut notes);
            let cpus = threads.iter().map(|thread| thread.lane.spec.series.cpu).collect();
            processor = Processor::find(&cpus, job.cache_misses, &mut notes);
            watch_for_break(job, &threads, &common, &mut notes);
            blame = begin_blame(job, &threads, &mut notes);
        }
        // Last of all, so that it covers all of the above.
        let memory = (!threads.is_empty()).then(|| Memory::lock(&mut notes));
        Ok(Self {
            threads,
            test,
            processor,
            workers,
            common,
            notes,
            duration_ns: job.duration_ns,
            tick_ns: job.tick_ns,
            lock_in: job.lock_in,
            blame,
            _latency: latency,
            memory,
            _house: house,
            applied,
        })
    }

    /// The cards of its threads.
    fn cards(&self) -> impl Iterator<Item = &Card> {
        self.threads.iter().filter_map(|thread| thread.lane.card.as_deref())
    }

    /// The sources that its threads read.
    fn readings(&self) -> impl Iterator<Item = &dyn Reading> {
        self.threads.iter().filter_map(|thread| thread.lane.reading.as_deref())
    }

    /// The counts of the cards' interrupts.
    fn card_counts(&self) -> impl Iterator<Item = CardOf> {
        let lanes = self.threads.iter().map(|thread| &thread.lane);
        lanes.filter_map(|lane| {
            Some(CardOf { activity: lane.spec.activity, counts: lane.card.as_ref()?.counts() })
        })
    }

    /// The notes that the reader needs before it runs.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Whether the control that comes before measuring has not been run yet.
    pub fn is_unproven(&self) -> bool {
        self.test.stage == Some(Stage::Before)
    }

    /// Whether there is a control after measuring.
    pub fn is_to_prove_again(&self) -> bool {
        self.test.stage == Some(Stage::After)
    }

    /// Runs the next control, if there is one, and reports its result. Returns the checks of the clock.
    ///
    /// # Errors
    /// When the stream breaks.
    #[inline(never)]
    pub fn prove(&mut self, channel: &mut Channel) -> io::Result<ClockCheck> {
        // The last measurement may have set it, to end.
        self.common.stop.store(false, Ordering::Release);
        let (clock, trials, notes) = self.test.run(&self.threads);
        trials.into_iter().try_for_each(|trial| channel.say(&FromProbe::Trial(trial)))?;
        notes.into_iter().try_for_each(|note| channel.note(note))?;
        Ok(clock)
    }
}

fn check(job: &Job) -> Result<(), Refusal> {
    if job.tick_ns == 0 || job.duration_ns == 0 {
        return Err(refusal("a job without duration or without ticks", "both must be longer than 0"));
    }
    for activity in &job.activities {
        if activity.cpus.is_empty() {
            return Err(refusal(format!("activity {} has no CPU", activity.id), "name at least one"));
        }
        if let What::Measure { measure, .. } = &activity.what {
            measure.check().map_err(|error| out_of_range(measure.kind(), &error))?;
        }
        if let Some(cpu) = activity.cpus.iter().find(|cpu| !refuse::may_use(*cpu, allowed())) {
            return Err(refuse::cpu(cpu, allowed()));
        }
    }
    Ok(())
}

/// Whether a worker does it, and not threads on lanes.
fn runs_beside(activity: &Activity) -> bool {
    match &activity.what {
        _ if answers(activity) => true,
        What::Measure { measure, .. } => values::find(measure).is_some(),
        What::Load(_) | What::Fault(_) => true,
    }
}

fn highest_priority(job: &Job) -> Option<u32> {
    job.activities
        .iter()
        .filter_map(|activity| match &activity.what {
            What::Measure { priority, policy: Policy::Fifo | Policy::Rr, .. } => Some(*priority),
            What::Measure { policy: Policy::Other, .. } => Some(0),
            _ => None,
        })
        .max()
}

fn start_threads(
    activity: &Activity,
    common: &Arc<Common>,
    house: &CpuSet,
    notes: &mut Vec<Note>,
) -> Result<Vec<Measuring>, Refusal> {
    let What::Measure { measure, interval_ns, priority, policy } = &activity.what else {
        return Ok(Vec::new());
    };
    if runs_beside(activity) {
        return Ok(Vec::new());
    }
    let entry = tactus_measure::find(measure).ok_or_else(|| {
        refusal(format!("this probe has no measurement `{}`", measure.kind()), "use a newer probe")
    })?;
    let wanted = entry.wanted(measure)?;
    if wanted.periodic && !(1_000..=3_600_000_000_000).contains(interval_ns) {
        return Err(refusal(format!("an interval of {interval_ns} ns is out of range"), "use 1us to 1h"));
    }
    if *policy == Policy::Deadline && !wanted.periodic {
        return Err(refusal(format!("{} has no period for SCHED_DEADLINE", entry.name()), "use fifo"));
    }
    let real_time = matches!(policy, Policy::Fifo | Policy::Rr);
    if real_time && (*priority > 99 || *priority < wanted.threads) {
        return Err(refusal(
            format!("priority {priority} leaves no room for {} threads per CPU", wanted.threads),
            "use a priority up to 99 and at least as high as the number of threads",
        ));
    }
    notes.extend(entry.notes(measure));
    if measure.only_reads() && *policy != Policy::Other {
        return Err(refusal(
            "a thread that only reads has ordinary priority; the threads that it reads about have their own",
            "leave `policy` out, or write \"other\"",
        ));
    }
    if *policy == Policy::Other && wanted.periodic && !measure.only_reads() {
        notes.extend(timer_slack());
    }
    let card = entry.card(measure, activity, notes)?.map(Arc::new);
    // The handler of a device is measured where it runs; the raising thread is on another CPU.
    let raised_on = match card.as_ref().and_then(|card| card.is_answered_on()) {
        None => None,
        Some(cpu) => Some(beside(cpu, house).ok_or_else(|| {
            let hint = "one thread raises the card's interrupts and polls, the other answers: give the \
                environment two CPUs";
            refusal(format!("the only CPU is {cpu}"), hint)
        })?),
    };
    if let Some(cpu) = raised_on {
        notes.push(Note::info(format!(
            "the card's interrupts are raised on CPU {cpu}, which also sees their answers; a self-test \
                delays that CPU"
        )));
    }
    if let Some((card, cpu)) = card.as_ref().zip(raised_on.or(activity.cpus.first())) {
        notes.push(card.own_part(cpu));
    }
    let mut threads = Vec::new();
    for cpu in activity.cpus.iter() {
        for thread in 0..wanted.threads {
            let priority = if real_time { priority - thread } else { 0 };
            let reading = entry.reading(measure, *interval_ns, cpu)?;
            let reads_on = reading.as_ref().map(|_| reader(cpu, house, notes)).or(raised_on);
            let spec = Spec {
                activity: activity.id,
                series: SeriesKey { cpu, thread, priority, kind: entry.kind(measure).to_owned() },
                interval_ns: if wanted.periodic { *interval_ns } else { 0 },
                policy: *policy,
                limit_ns: wanted.limit_ns.unwrap_or(u64::MAX),
                busy: wanted.busy,
                reads_on,
            };
            let gaps =
                entry.counts_gaps().then(|| GapHistogram::new(Source::find().scale().ticks(SMALLEST_GAP)));
            let mut lane = Lane::new(spec, gaps, Arc::clone(common));
            lane.card = card.clone();
            lane.reading = reading;
            let lane = Arc::new(lane);
            threads.push(Measuring::start(Arc::clone(&lane), entry)?);
            if *policy == Policy::Other && threads.len() == 1 {
                notes.extend(refuse::kept_nice(lane.tid.load(Ordering::Acquire)));
            }
        }
    }
    Ok(threads)
}

/// Another CPU than `cpu`: a housekeeping one if possible.
fn beside(cpu: u32, house: &CpuSet) -> Option<u32> {
    let other = |set: &CpuSet| set.and(allowed()).iter().find(|other| *other != cpu);
    other(house).or_else(|| other(allowed()))
}

/// The CPU of a thread that reads the measured values of `cpu`.
fn reader(cpu: u32, house: &CpuSet, notes: &mut Vec<Note>) -> u32 {
    beside(cpu, house).unwrap_or_else(|| {
        notes.push(Note::obstacle(
            format!("the only CPU is {cpu}: the reader of the latencies takes time from it"),
            "give the environment a housekeeping CPU",
        ));
        cpu
    })
}

/// A note on measurements with ordinary threads: the kernel lets them wake late by their timer slack (prctl(2),
/// PR_SET_TIMERSLACK), so that it can wake several at once. Real-time threads have none.
fn timer_slack() -> Option<Note> {
    let slack = rustix::thread::current_timer_slack().ok().filter(|slack| *slack > 1)?;
    Some(Note::info(format!(
        "a thread of SCHED_OTHER has a timer slack of {} here, like every ordinary program: the kernel may \
         wake it that much later, and the latencies include it",
        Nanos(slack)
    )))
}

/// Keeps the CPUs out of deep sleep as long as the file is open, as cyclictest does.
fn hold_cpu_latency(notes: &mut Vec<Note>) -> Option<File> {
    const PATH: &str = "/dev/cpu_dma_latency";
    let held = File::options().write(true).open(PATH).and_then(|mut file| {
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(file)
    });
    match held {
        Ok(file) => {
            notes.push(Note::side_effect(format!(
                "{PATH} is held at 0: the CPUs do not enter deep idle states"
            )));
            Some(file)
        }
        Err(error) => {
            notes.push(Note::obstacle(
                format!("{PATH} cannot be held at 0 ({error}): wake-ups from deep idle states are measured"),
                "run as root, and give a container the device (--device=/dev/cpu_dma_latency)",
            ));
            None
        }
    }
}

/// Has the kernel's events on the measured CPUs written down. Not on those of an interrupt card, whose values are of two
/// clocks.
fn begin_blame(job: &Job, threads: &[Measuring], notes: &mut Vec<Note>) -> Option<(Rc<Blame>, u64)> {
    let above = job.blame_above?;
    let lanes = threads.iter().map(|thread| &thread.lane).filter(|lane| lane.card.is_none());
    let cpus: CpuSet = lanes.clone().map(|lane| lane.spec.series.cpu).collect();
    if cpus.is_empty() {
        return None;
    }
    // Those of a program that marks its cycles.
    let wakes = lanes.clone().any(|lane| lane.reading.is_some());
    let (blame, note) = Blame::begin(&cpus, wakes, job.blame_by);
    notes.extend(note);
    Some((blame?, above))
}

/// Finds the trace that is to be stopped when a latency exceeds its limit. Not where a fault of this job may be one
/// of the kernel's tracers.
fn watch_for_break(job: &Job, threads: &[Measuring], common: &Common, notes: &mut Vec<Note>) {
    let traces = |activity: &Activity| matches!(activity.what, What::Fault(Fault::Block(_)));
    if threads.iter().all(|thread| thread.lane.spec.limit_ns == u64::MAX) || job.activities.iter().any(traces)
    {
        return;
    }
    if let Some(ftrace) = Ftrace::find() {
        notes.push(ftrace.note());
        let _ = common.ftrace.set(ftrace);
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::CpuSet;
    use tactus_model::catalogue::Measure;
    use tactus_model::catalogue::measure::Timer;
    use tactus_model::control::ControlBy;

    use super::*;

    fn job(cpus: &str, interval_ns: u64, priority: u32, threads: u32) -> Job {
        let measure = Measure::Timer(Timer { threads: Some(threads), break_at: None });
        let what = What::Measure { measure, interval_ns, priority, policy: Policy::Fifo };
        Job {
            duration_ns: 1,
            tick_ns: 1,
            control: ControlBy::Nothing,
            no_side_effects: true,
            housekeeping: CpuSet::default(),
            activities: vec![Activity::new(0, cpus.parse().unwrap(), what)],
            changes: Vec::new(),
            restore: false,
            budget: 0,
            cache_misses: false,
            blame_above: None,
            blame_by: None,
            lock_in: None,
        }
    }

    fn why(job: &Job) -> String {
        Prepared::new(job).err().unwrap().reason
    }

    #[test]
    fn jobs_that_make_no_sense_are_refused_with_the_reason() {
        let cpu = allowed().first().unwrap().to_string();
        assert!(why(&job(&cpu, 10, 95, 1)).contains("an interval of 10 ns"));
        assert!(why(&job(&cpu, 1_000_000, 100, 1)).contains("priority 100"));
        assert!(why(&job(&cpu, 1_000_000, 2, 3)).contains("no room for 3 threads"));
        assert!(why(&job("", 1_000_000, 95, 1)).contains("has no CPU"));
        assert!(why(&job("4000", 1_000_000, 95, 1)).contains("CPU 4000 is not online"));
        assert!(why(&Job { tick_ns: 0, ..job(&cpu, 1_000_000, 95, 1) }).contains("without duration"));
    }
}
