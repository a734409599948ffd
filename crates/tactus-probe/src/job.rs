//! A job: its threads and workers are prepared, proven, run, and gone at the end.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tactus_measure::clock::Source;
use tactus_measure::ftrace::Ftrace;
use tactus_measure::gaps::GapHistogram;
use tactus_measure::lane::{Common, Lane, Order, Run, Spec};
use tactus_measure::series::{SMALLEST_GAP, Series};
use tactus_measure::thread::{Measuring, allowed};
use tactus_measure::{counters, refuse};
use tactus_model::Nanos;
use tactus_model::catalogue::Fault;
use tactus_model::clock::ClockCheck;
use tactus_model::message::{
    Activity, Done, End, FromProbe, Job, LockIn, Note, Refusal, Stage, ToProbe, Value, What,
};
use tactus_model::outcome::ValueResult;
use tactus_model::scheduling::Policy;
use tactus_model::series::SeriesKey;

use crate::channel::{Channel, Incoming, SessionEnd};
use crate::clock_check::Jumps;
use crate::housekeeping::House;
use crate::memory::Memory;
use crate::processor::Processor;
use crate::self_test::SelfTest;
use crate::settings::Applied;
use crate::toggle::Toggle;
use crate::work::{Pace, out_of_range};
use crate::worker::{Ended, Worker};
use crate::{sys, values};

/// How often the rings are emptied, in ns; they hold four seconds.
const DRAIN_NS: u64 = 100_000_000;
/// Outliers of each series that are said at the end over a narrow channel.
const FEW_OUTLIERS: usize = 8;
/// Time between the common beginning's being known and the beginning, in ns: each thread looks for it
/// once a millisecond.
const HEAD_START_NS: u64 = 3_000_000;

/// How long a last wake-up may be late.
const LAST_WAKE_UP: Duration = Duration::from_secs(30);

/// A job whose threads wait for their orders. Dropping it ends them and everything beside them.
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
            if runs_beside(&activity.what) {
                let mut worker = Worker::start(activity, above, pace)?;
                notes.append(&mut worker.take_notes());
                workers.push(worker);
            }
        }
        let common = Arc::<Common>::default();
        let mut threads = Vec::new();
        for activity in &job.activities {
            threads.extend(start_threads(activity, &common, &mut notes)?);
        }
        let test = SelfTest::prepare(&job.control, above, &threads, &mut notes);
        let (mut latency, mut processor) = (None, Processor::default());
        if !threads.is_empty() && !job.no_side_effects {
            latency = hold_cpu_latency(&mut notes);
            let cpus = threads.iter().map(|thread| thread.lane.spec.series.cpu).collect();
            processor = Processor::find(&cpus, job.cache_misses, &mut notes);
            watch_for_break(job, &threads, &common, &mut notes);
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
            _latency: latency,
            memory,
            _house: house,
            applied,
        })
    }

    /// What the reader must know before it runs.
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

    /// Runs the control that is the next, if there is one, and says how it went. Returns what was found of the clock.
    ///
    /// # Errors
    /// When the stream breaks.
    #[inline(never)]
    pub fn prove(&mut self, channel: &mut Channel) -> io::Result<ClockCheck> {
        // That of the last measurement was to end it.
        self.common.stop.store(false, Ordering::Release);
        let (clock, trials, notes) = self.test.run(&self.threads);
        trials.into_iter().try_for_each(|trial| channel.say(&FromProbe::Trial(trial)))?;
        notes.into_iter().try_for_each(|note| channel.note(note))?;
        Ok(clock)
    }
}

fn check(job: &Job) -> Result<(), Refusal> {
    if job.tick_ns == 0 || job.duration_ns == 0 {
        return Err(refusal("a job of no duration or without ticks", "give both a time above zero"));
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
fn runs_beside(what: &What) -> bool {
    match what {
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
    notes: &mut Vec<Note>,
) -> Result<Vec<Measuring>, Refusal> {
    let What::Measure { measure, interval_ns, priority, policy } = &activity.what else {
        return Ok(Vec::new());
    };
    if runs_beside(&activity.what) {
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
        return Err(refusal(format!("{} has no period to give to SCHED_DEADLINE", entry.name()), "use fifo"));
    }
    let real_time = matches!(policy, Policy::Fifo | Policy::Rr);
    if real_time && (*priority > 99 || *priority < wanted.threads) {
        return Err(refusal(
            format!("priority {priority} leaves no room for {} threads per CPU", wanted.threads),
            "use a priority up to 99 and at least as high as the number of threads",
        ));
    }
    notes.extend(entry.notes(measure));
    if *policy == Policy::Other && wanted.periodic {
        notes.extend(timer_slack());
    }
    let mut threads = Vec::new();
    for cpu in activity.cpus.iter() {
        for thread in 0..wanted.threads {
            let priority = if real_time { priority - thread } else { 0 };
            let spec = Spec {
                activity: activity.id,
                series: SeriesKey { cpu, thread, priority, kind: entry.kind().to_owned() },
                interval_ns: if wanted.periodic { *interval_ns } else { 0 },
                policy: *policy,
                limit_ns: wanted.limit_ns.unwrap_or(u64::MAX),
                busy: wanted.busy,
            };
            let gaps =
                entry.counts_gaps().then(|| GapHistogram::new(Source::find().scale().ticks(SMALLEST_GAP)));
            let lane = Arc::new(Lane::new(spec, gaps, Arc::clone(common)));
            threads.push(Measuring::start(lane, entry)?);
        }
    }
    Ok(threads)
}

/// What is measured of an ordinary thread: the kernel lets it wake late by its timer slack (prctl(2),
/// PR_SET_TIMERSLACK), so that it can wake several at once. Real-time threads have none.
fn timer_slack() -> Option<Note> {
    let slack = rustix::thread::current_timer_slack().ok().filter(|slack| *slack > 1)?;
    Some(Note::info(format!(
        "a thread of SCHED_OTHER has a timer slack of {} here, as every ordinary program: the kernel may wake it so \
         much later, and the latencies hold it",
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

/// A job that runs.
pub struct Running {
    job: Prepared,
    series: Vec<Series>,
    began: u64,
    /// Where loads are let run and stopped in turn.
    toggle: Option<Toggle>,
    failed: Option<String>,
    jumps: Jumps,
    /// What there is to say of counters that did not begin.
    refused: Option<Note>,
}

impl Running {
    /// Starts loads and faults, and then the measuring threads.
    ///
    /// Threads are due one after the other: the first due time of number `i` of `n` lies `i/n` of an
    /// interval after the first one's, so that their wake-ups do not disturb each other by being one
    /// event (cyclictest spreads its threads by different intervals instead).
    pub fn start(mut job: Prepared) -> Self {
        let failed = job.workers.iter_mut().find_map(|worker| worker.go().err());
        let mut failed = failed;
        let mut jumps = Jumps::default();
        jumps.look();
        let lanes: Vec<_> = job.threads.iter().map(|thread| Arc::clone(&thread.lane)).collect();
        for (index, lane) in lanes.iter().enumerate() {
            if !lane.is_finished() {
                failed.get_or_insert_with(|| format!("{} did not come back from the control", lane.title()));
                continue;
            }
            let interval_ns = lane.spec.interval_ns;
            let start = interval_ns * index as u64 / lanes.len() as u64;
            lane.give(Order::Run(Run {
                start,
                end: job.duration_ns,
                interval_ns,
                control: false,
                open: true,
            }));
        }
        let stat = counters::stat();
        let mut series: Vec<_> = lanes.iter().map(|lane| Series::begin(Arc::clone(lane), &stat)).collect();
        // Both before the beginning is known: the threads wait for it.
        let refused = job.processor.begin();
        if let Some(memory) = &mut job.memory {
            memory.reserve(series.len());
        }
        let began = sys::now() + HEAD_START_NS;
        job.common.beginning.store(began, Ordering::Release);
        let end = began.saturating_add(job.duration_ns);
        for series in &mut series {
            series.set_span(began, end);
            if let Some(lock_in) = job.lock_in {
                series.keep_windows(lock_in.window_ns);
            }
        }
        let toggle = job.lock_in.map(|lock_in| Toggle::new(lock_in.seed, began));
        if toggle.is_some() {
            job.workers.iter().for_each(|worker| worker.let_run(false));
        }
        Self { job, series, began, toggle, failed, jumps, refused }
    }

    /// Measures until the end; returns how the conversation ended, where it ended with it, and else what is left of the
    /// job for the control after it.
    ///
    /// # Errors
    /// When the stream breaks.
    pub fn perform(mut self, channel: &mut Channel) -> io::Result<Result<Prepared, SessionEnd>> {
        let end_at = self.began.saturating_add(self.job.duration_ns);
        let drain_ns = DRAIN_NS.min(self.job.tick_ns);
        let mut next_tick = self.began + self.job.tick_ns;
        let mut next_drain = self.began + drain_ns;
        let mut end_of_session = None;
        let end = loop {
            let now = sys::now();
            if self.failed.is_some() {
                break End::Failed;
            }
            if self.job.threads.iter().any(|thread| thread.lane.broke.load(Ordering::Relaxed) > 0) {
                break End::Break;
            }
            if now >= end_at {
                break End::Complete;
            }
            // Nobody would end what was begun over a line that was pulled out.
            if channel.is_deserted() {
                break End::Stopped;
            }
            if now >= next_drain {
                self.series.iter_mut().for_each(Series::drain);
                self.look_after(channel)?;
                next_drain = now + drain_ns;
            }
            if let Some(toggle) = self.toggle.as_mut().filter(|toggle| now >= toggle.next()) {
                toggle.turn(now);
                self.job.workers.iter().for_each(|worker| worker.let_run(toggle.is_on()));
            }
            // A tick that coincides with the end is the last one, which is sent below.
            if now >= next_tick {
                // What waits for a narrow channel is said first: the next tick is then a longer one.
                if !channel.is_busy() {
                    self.report(channel, None)?;
                }
                next_tick += self.job.tick_ns * (1 + (now - next_tick) / self.job.tick_ns);
            }
            let turn = self.toggle.as_ref().map_or(u64::MAX, Toggle::next);
            let until = next_drain.min(next_tick).min(end_at).min(turn).saturating_sub(sys::now());
            match channel.next(Some(until))? {
                Incoming::Nothing | Incoming::Message(ToProbe::Call(_)) => {}
                Incoming::Message(ToProbe::Stop) => break End::Stopped,
                Incoming::Message(ToProbe::Quit) => {
                    end_of_session = Some(SessionEnd::Quit);
                    break End::Stopped;
                }
                Incoming::Message(ToProbe::Greet) => {
                    end_of_session = Some(SessionEnd::Greeted);
                    break End::Stopped;
                }
                Incoming::Ended => return Ok(Err(SessionEnd::Ended)),
                Incoming::Message(ToProbe::Prove | ToProbe::Go) => {
                    channel.note(Note::info("the job already runs"))?;
                }
                Incoming::Message(ToProbe::Job(_)) => {
                    let reason = "a job already runs; stop it first".to_owned();
                    channel.say(&FromProbe::Refused(Refusal { reason, hint: None }))?;
                }
            }
        };
        let broke_at = self.job.common.broke_at.load(Ordering::Acquire);
        let ended_at = if broke_at > 0 { broke_at } else { sys::now() };
        let measured_ns = ended_at.min(end_at).saturating_sub(self.began);
        self.end_threads(end == End::Complete);
        self.report(channel, Some(self.began + measured_ns))?;
        self.say_totals(channel, measured_ns)?;
        // One that ended since the last look has not loaded, or measured, until the end.
        self.look_after(channel)?;
        let end = if self.failed.is_some() { End::Failed } else { end };
        let reason = self.reason(end);
        let mut load_rounds = Vec::new();
        let let_run = self.toggle.take().map(Toggle::into_times);
        for worker in self.job.workers.drain(..) {
            let activity = worker.activity();
            if let Some(load) = let_run.clone().and_then(|at| worker.let_run_at(at)) {
                channel.say(&FromProbe::Injected(load))?;
            }
            match worker.stop() {
                Ok(Ended::Load(activity, rounds)) => load_rounds.push((activity, rounds)),
                Ok(Ended::Values(values, notes)) => {
                    say_values(channel, activity, values)?;
                    notes.into_iter().try_for_each(|note| channel.note(note))?;
                }
                Ok(Ended::Fault(injected)) => channel.say(&FromProbe::Injected(injected))?,
                Ok(Ended::Before) => {}
                Err(words) => channel.note(Note::obstacle(words, "see whether everything is as it was"))?,
            }
        }
        let grown = self.job.memory.as_ref().and_then(Memory::grown);
        let traced = self.job.common.ftrace.get().and_then(Ftrace::stopped);
        grown.into_iter().chain(self.refused.take()).chain(traced).try_for_each(|note| channel.note(note))?;
        // Again, at another time: what disturbs a line comes in bursts.
        self.say_totals(channel, measured_ns)?;
        // No thread measures and no load runs any more.
        for note in self.job.applied.take_back() {
            channel.note(note)?;
        }
        let jump_ns = self.jumps.largest_ns;
        channel.say(&FromProbe::Done(Done { end, reason, measured_ns, load_rounds, jump_ns }))?;
        Ok(end_of_session.map_or(Ok(self.job), Err))
    }

    /// At the end of the duration the threads end by themselves; else they are told to. One that does not end is
    /// kept from its CPU: the latency that it is in is the largest of all, and nobody will know it.
    fn end_threads(&mut self, by_themselves: bool) {
        if !by_themselves {
            self.job.common.stop.store(true, Ordering::Release);
        }
        for thread in &self.job.threads {
            if !thread.lane.wait_finished(Duration::from_millis(50)) {
                thread.lane.nudge();
            }
        }
        let until = Instant::now() + LAST_WAKE_UP;
        let left = || until.saturating_duration_since(Instant::now());
        let kept = self.job.threads.iter().find(|thread| !thread.lane.wait_finished(left()));
        if let Some(thread) = kept {
            self.job.common.stop.store(true, Ordering::Release);
            let (title, seconds) = (thread.lane.title(), LAST_WAKE_UP.as_secs());
            self.failed.get_or_insert_with(|| {
                format!("{title} was kept from its CPU for {seconds} s and more at the end: how late it woke is not known")
            });
        }
    }

    /// Sends a tick of every series. `end`: the time at which a last tick ends; others end when their
    /// ring was emptied, which is later for the later ones where this thread is kept waiting.
    fn report(&mut self, channel: &mut Channel, end: Option<u64>) -> io::Result<()> {
        self.jumps.look();
        let stat = counters::stat();
        // No thread measures any more when the processor is asked.
        let counted = end.map(|_| self.job.processor.end());
        for series in &mut self.series {
            let at_ns = end.unwrap_or_else(sys::now).saturating_sub(self.began);
            let cpu = series.lane.spec.series.cpu;
            let of_cpu = counted.as_ref().map(|counted| counted.get(&cpu).copied().unwrap_or_default());
            let (tick, outliers) = series.tick(at_ns, &stat, of_cpu);
            // Where frames are few and dear, others write on the line, too.
            if channel.is_narrow() || end.is_some() {
                channel.say(&FromProbe::Total(
                    series.total(at_ns, end.is_some() && series.lane.is_finished()),
                ))?;
            }
            channel.say(&FromProbe::Tick(tick))?;
            if let Some(windows) = series.windows(end.is_some()) {
                channel.say(&FromProbe::Windows(windows))?;
            }
            let most = if channel.is_narrow() { FEW_OUTLIERS } else { usize::MAX };
            for outlier in outliers.into_iter().take(most) {
                channel.say(&FromProbe::Outlier(outlier))?;
            }
        }
        for worker in &mut self.job.workers {
            let values = worker.take_values();
            say_values(channel, worker.activity(), values)?;
        }
        Ok(())
    }

    /// Says what every series has come to in the end.
    fn say_totals(&self, channel: &mut Channel, measured_ns: u64) -> io::Result<()> {
        let of = |series: &Series| FromProbe::Total(series.total(measured_ns, series.lane.is_finished()));
        self.series.iter().try_for_each(|series| channel.say(&of(series)))
    }

    fn look_after(&mut self, channel: &mut Channel) -> io::Result<()> {
        for worker in &mut self.job.workers {
            worker.listen();
            worker.take_notes().into_iter().try_for_each(|note| channel.note(note))?;
            match worker.ended() {
                Some(words) if worker.measures() => self.failed = Some(words),
                Some(words) => channel.note(Note::obstacle(words, "the measurement goes on without it"))?,
                None => {}
            }
        }
        if let Some(thread) = self.job.threads.iter().find(|t| t.lane.failed.load(Ordering::Acquire) != 0) {
            let errno = thread.lane.failed.load(Ordering::Acquire).cast_signed();
            let error = io::Error::from_raw_os_error(errno);
            self.failed = Some(format!(
                "{} could not be scheduled again after the control: {error}",
                thread.lane.title()
            ));
        }
        Ok(())
    }

    fn reason(&mut self, end: End) -> Option<String> {
        match end {
            End::Failed => self.failed.take(),
            End::Break => self.job.threads.iter().find_map(|thread| {
                let lane = &thread.lane;
                let value = lane.broke.load(Ordering::Relaxed);
                (value > 0).then(|| {
                    format!(
                        "{} woke {value} ns late, more than the {} ns of `break`",
                        lane.title(),
                        lane.spec.limit_ns
                    )
                })
            }),
            End::Complete | End::Stopped => None,
        }
    }
}

/// Says what the items of an activity came to.
fn say_values(channel: &mut Channel, activity: u32, values: Vec<ValueResult>) -> io::Result<()> {
    values.into_iter().try_for_each(|value| channel.say(&FromProbe::Value(Value { activity, value })))
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
        assert!(why(&Job { tick_ns: 0, ..job(&cpu, 1_000_000, 95, 1) }).contains("no duration"));
    }
}
