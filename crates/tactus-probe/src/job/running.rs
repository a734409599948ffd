//! A job that runs: from the common beginning to the last word.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tactus_measure::card::Card;
use tactus_measure::ftrace::Ftrace;
use tactus_measure::lane::{Order, Run};
use tactus_measure::reading::Reading;
use tactus_measure::series::Series;
use tactus_measure::stat::Stat;
use tactus_model::message::{BreakdownOf, Done, End, FromProbe, Note, Refusal, ToProbe, Unknowable, Value};
use tactus_model::outcome::ValueResult;
use tactus_model::own_groups::Throttles;

use super::Prepared;
use crate::blame;
use crate::channel::{Channel, Incoming, SessionEnd};
use crate::clock_check::Jumps;
use crate::memory::Memory;
use crate::sys;
use crate::toggle::Toggle;
use crate::worker::Ended;

/// How often the rings are emptied, in ns; they hold four seconds.
const DRAIN_NS: u64 = 100_000_000;
/// Outliers of each series that are said at the end over a narrow channel.
const FEW_OUTLIERS: usize = 8;
/// Time between the common beginning's being known and the beginning, in ns: each thread looks for it
/// once a millisecond.
const HEAD_START_NS: u64 = 3_000_000;
/// How long a last wake-up may be late.
const LAST_WAKE_UP: Duration = Duration::from_secs(30);

/// A job that runs.
pub struct Running {
    job: Prepared,
    series: Vec<Series>,
    began: u64,
    /// The times at which loads run and stop in turn.
    toggle: Option<Toggle>,
    failed: Option<String>,
    jumps: Jumps,
    /// The note on counters that did not start.
    refused: Option<Note>,
    /// How often the quota of its cgroups had stopped it before.
    throttles: Throttles,
}

/// How often the quota of its cgroups has stopped this process.
fn throttles() -> Throttles {
    let table = tactus_facts::text("/proc/self/cgroup").unwrap_or_default();
    Throttles::look(&table, tactus_facts::text)
}

impl Running {
    /// Starts loads and faults, and then the measuring threads.
    ///
    /// Threads are due one after the other: the first due time of number `i` of `n` lies `i/n` of an interval after the
    /// first one's. So their wake-ups do not coincide and disturb each other. cyclictest uses different intervals
    /// instead.
    pub fn start(mut job: Prepared) -> Self {
        let failed = job.workers.iter_mut().find_map(|worker| worker.go().err());
        let mut failed = failed;
        job.cards().for_each(Card::warm_up);
        let waiting_since = sys::now();
        job.readings().for_each(|reading| reading.wait(waiting_since));
        failed = failed.or_else(|| job.readings().find_map(|reading| reading.inbox().trouble()));
        let mut jumps = Jumps::default();
        jumps.look();
        let lanes: Vec<_> = job.threads.iter().map(|thread| Arc::clone(&thread.lane)).collect();
        for (index, lane) in lanes.iter().enumerate() {
            if !lane.is_finished() {
                failed.get_or_insert_with(|| format!("{} did not return from the self-test", lane.title()));
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
        let stat = Stat::now();
        let mut series: Vec<_> = lanes.iter().map(|lane| Series::begin(Arc::clone(lane), &stat)).collect();
        // Both before the beginning is known: the threads wait for it.
        let refused = job.processor.begin();
        let throttles = throttles();
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
            if let Some((blame, above)) = &job.blame
                && series.lane.card.is_none()
                && let Some(witness) = blame::OfCpu::of(blame, series.lane.spec.series.cpu)
            {
                series.set_witness(Box::new(witness), *above);
            }
        }
        let toggle = job.lock_in.map(|lock_in| Toggle::new(lock_in.seed, began));
        if toggle.is_some() {
            job.workers.iter().for_each(|worker| worker.let_run(false));
        }
        Self { job, series, began, toggle, failed, jumps, refused, throttles }
    }

    /// Measures until the end. Returns the job for the control after it, or how the conversation ended if it ended
    /// meanwhile.
    ///
    /// # Errors
    /// When the stream breaks.
    pub fn perform(mut self, channel: &mut Channel) -> io::Result<Result<Prepared, SessionEnd>> {
        channel.begins(self.began);
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
            // If the line was pulled out, no message would end this job.
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
                // Data that waits for a narrow channel is sent first; the next tick then covers more time.
                if !channel.is_busy() {
                    self.report(channel, None)?;
                }
                next_tick += self.job.tick_ns * (1 + (now - next_tick) / self.job.tick_ns);
            }
            let turn = self.toggle.as_ref().map_or(u64::MAX, Toggle::next);
            let until = next_drain.min(next_tick).min(end_at).min(turn).saturating_sub(sys::now());
            match channel.next(Some(until))? {
                Incoming::Nothing | Incoming::Message(ToProbe::Call(_) | ToProbe::Clock(_)) => {}
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
                Ok(Ended::Values(values, breakdowns, notes)) => {
                    say_values(channel, activity, values)?;
                    for breakdown in breakdowns {
                        channel.say(&FromProbe::Breakdown(BreakdownOf { activity, breakdown }))?;
                    }
                    notes.into_iter().try_for_each(|note| channel.note(note))?;
                }
                Ok(Ended::Fault(injected)) => channel.say(&FromProbe::Injected(injected))?,
                Ok(Ended::Before) => {}
                Err(words) => channel.note(Note::obstacle(words, "check whether everything is as it was"))?,
            }
        }
        let grown = self.job.memory.as_ref().and_then(Memory::grown);
        let traced = self.job.common.ftrace.get().and_then(Ftrace::stopped);
        let throttled = throttles().since(&self.throttles);
        let notes = grown.into_iter().chain(self.refused.take()).chain(traced).chain(throttled);
        notes.into_iter().try_for_each(|note| channel.note(note))?;
        for card in self.job.card_counts().collect::<Vec<_>>() {
            channel.say(&FromProbe::Card(card))?;
        }
        let cards = self.job.cards().flat_map(Card::account);
        for note in cards.chain(self.job.readings().flat_map(Reading::account)).collect::<Vec<_>>() {
            channel.note(note)?;
        }
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

    /// At the end of the duration the threads end by themselves; otherwise they are told to. A thread that does not end
    /// is kept from its CPU: its current latency is the largest of all, and remains unknown.
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
                format!(
                    "{title} was kept from its CPU for {seconds} s or more at the end: how late it woke \
                    is unknown"
                )
            });
        }
    }

    /// Sends a tick of every series. `end`: the time at which a last tick ends; others end when their
    /// ring was emptied, which is later for the later ones where this thread is kept waiting.
    fn report(&mut self, channel: &mut Channel, end: Option<u64>) -> io::Result<()> {
        self.jumps.look();
        let stat = Stat::now();
        // No thread measures any more when the processor is asked.
        let counted = end.map(|_| self.job.processor.end());
        for series in &mut self.series {
            let at_ns = end.unwrap_or_else(sys::now).saturating_sub(self.began);
            let cpu = series.lane.spec.series.cpu;
            let of_cpu = counted.as_ref().map(|counted| counted.get(&cpu).copied().unwrap_or_default());
            let (tick, outliers) = series.tick(at_ns, &stat, of_cpu);
            // Other programs may also write on a narrow channel's line: a total survives the loss of ticks.
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
        let cards = self.job.cards().find_map(Card::trouble);
        if let Some(words) =
            cards.or_else(|| self.job.readings().find_map(|reading| reading.inbox().trouble()))
        {
            self.failed.get_or_insert(words);
        }
        for worker in &mut self.job.workers {
            worker.listen();
            worker.take_notes().into_iter().try_for_each(|note| channel.note(note))?;
            match worker.ended() {
                Some(words) if worker.measures() => self.failed = Some(words),
                Some(words) => {
                    let note = Note::obstacle(words, "the measurement continues without it");
                    let unknowable = worker.loads().then_some(Unknowable::Load);
                    channel.note(Note { unknowable, ..note })?;
                }
                None => {}
            }
        }
        if let Some(thread) = self.job.threads.iter().find(|t| t.lane.failed.load(Ordering::Acquire) != 0) {
            let errno = thread.lane.failed.load(Ordering::Acquire).cast_signed();
            let error = io::Error::from_raw_os_error(errno);
            self.failed = Some(format!(
                "{} could not be scheduled again after the self-test: {error}",
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
                    let what = match lane.gaps {
                        Some(_) => format!("had a gap of {value} ns"),
                        None => format!("woke {value} ns late"),
                    };
                    format!(
                        "{} {what}, more than the {} ns at which it stops",
                        lane.title(),
                        lane.spec.limit_ns
                    )
                })
            }),
            End::Complete | End::Stopped => None,
        }
    }
}

/// Reports the values of an activity's items.
fn say_values(channel: &mut Channel, activity: u32, values: Vec<ValueResult>) -> io::Result<()> {
    values.into_iter().try_for_each(|value| channel.say(&FromProbe::Value(Value { activity, value })))
}
