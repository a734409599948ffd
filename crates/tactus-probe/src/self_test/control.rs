//! The default control: a known disturbance that every measuring thread must see at its size, before anything is
//! measured, and once more after it.
//!
//! A hog holds each measuring CPU until a known time after its threads were due. The threads must then wake late by
//! that time. Their values are counted and sent like all others ([`Trial`]), and the host side judges the decoded
//! values. The probe applies the same rule to decide whether to try again, because other disturbances may interfere.

use std::sync::Arc;
use std::time::Duration;

use tactus_measure::lane::{Lane, Order, Run};
use tactus_measure::series::Series;
use tactus_measure::thread::CONTROL_PRIORITY;
use tactus_model::message::{Counted, Note, NoteKind, Refusal, STAND_IN, Stage, Trial};
use tactus_model::scheduling::Policy;

use super::hog::{Held, Hog, Hold};
use crate::sys;

/// How long the hog holds the CPU, in ns: the first of these that is at least twice the noise of the place.
const SIZES_NS: [u64; 4] = [1_000_000, 4_000_000, 16_000_000, 64_000_000];
/// The same of the fine control.
const FINE_NS: u64 = 50_000;
/// How long before a due time the hog starts, in ns, by attempt. A hog that itself wakes late must start earlier, or it
/// runs after the thread has already been served.
const LEADS_NS: [u64; 8] = [100_000, 100_000, 200_000, 200_000, 300_000, 300_000, 400_000, 400_000];
/// How long the threads stay due after the hog should have ended, in ns, by attempt. On a loaded machine, above all in
/// an emulated guest, the hog itself may be late, and then no thread was due while it ran.
const TAILS_NS: [u64; 8] =
    [2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000, 64_000_000, 128_000_000, 256_000_000];
/// The longest interval of a control, in ns: a thread that is to wake once a second need not be waited for.
const LONGEST_NS: u64 = 1_000_000;
/// Undisturbed time before the hog, in ns, to measure the noise.
const QUIET_NS: u64 = 8_000_000;
/// From an order to the first due time, in ns: time for the threads to hear of it.
const HEAD_START_NS: u64 = 3_000_000;
/// How long a hog is waited for that does not come.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a control is tried until a thread is said not to have seen it.
const fn attempts(stage: Stage) -> usize {
    match stage {
        Stage::Before => LEADS_NS.len(),
        // A place that is too loud for it stays so.
        Stage::Fine => 4,
        Stage::After => 6,
    }
}

/// The control of the threads of one CPU.
pub struct CpuControl {
    lanes: Vec<Arc<Lane>>,
    hog: Hog,
    trials: Vec<Trial>,
    /// A thread did not come back.
    stuck: bool,
    /// The last order of the hog.
    number: u32,
}

impl CpuControl {
    /// Prepares the hog of a CPU above all of `lanes`, which are that CPU's.
    ///
    /// # Errors
    /// When SCHED_FIFO is refused to the hog.
    pub fn prepare(cpu: u32, lanes: Vec<Arc<Lane>>) -> Result<Self, Refusal> {
        let highest = lanes.iter().map(|lane| priority(lane)).max().unwrap_or(0);
        let hog = Hog::start(cpu, (highest + 1).min(99))?;
        Ok(Self { lanes, hog, trials: Vec::new(), stuck: false, number: 0 })
    }

    fn begin(&mut self, stage: Stage) {
        let trial = |lane: &Arc<Lane>| Trial {
            activity: lane.spec.activity,
            series: lane.spec.series.clone(),
            stage,
            by: if lane.reading.is_some() { STAND_IN } else { "hog" }.into(),
            injected_ns: 0,
            attempts: 0,
            quiet: Counted::default(),
            held: Counted::default(),
        };
        self.trials = self.lanes.iter().map(trial).collect();
    }

    fn is_open(&self) -> bool {
        !self.stuck && self.trials.iter().any(|trial| !trial.control().passed)
    }

    /// One interval for all threads of the CPU: a hog then meets all of them at once.
    fn interval(&self) -> u64 {
        let own = |lane: &Arc<Lane>| match lane.spec.interval_ns {
            0 => LONGEST_NS,
            interval => interval.min(LONGEST_NS),
        };
        self.lanes.iter().map(own).max().unwrap_or(LONGEST_NS)
    }

    fn order(&self, start: u64, end: u64) {
        let interval_ns = self.interval();
        for lane in &self.lanes {
            lane.give(Order::Run(Run { start, end, interval_ns, control: true, open: false }));
        }
    }

    /// Waits for the threads and takes their counts.
    fn collect(&mut self, series: Vec<Series>, end: u64) -> Vec<Counted> {
        let patience = Duration::from_nanos(end.saturating_sub(sys::now())) + PATIENCE;
        self.stuck |= !self.lanes.iter().all(|lane| lane.wait_finished(patience));
        series.into_iter().map(Series::counted).collect()
    }

    fn series(&self) -> Vec<Series> {
        self.lanes.iter().map(|lane| Series::uncounted(Arc::clone(lane))).collect()
    }

    /// The due time of the threads that the hog is to hold, after `start`.
    fn due(&self, start: u64, lead: u64) -> u64 {
        start + (lead + self.interval()).next_multiple_of(self.interval())
    }

    fn hold(&mut self, due: u64, lead: u64, size_ns: u64) {
        self.number += 1;
        self.hog.hold(Hold { number: self.number, from: due - lead, until: due + size_ns, size_ns });
    }

    /// Takes an attempt if it is better than those before.
    fn take(
        &mut self,
        start: u64,
        held: Option<Held>,
        quiet: Vec<Counted>,
        seen: Vec<Counted>,
        size_ns: u64,
    ) {
        let interval_ns = self.interval();
        for (((lane, trial), quiet), seen) in self.lanes.iter().zip(&mut self.trials).zip(quiet).zip(seen) {
            if trial.control().passed {
                continue;
            }
            trial.attempts += 1;
            let interval_ns = if lane.gaps.is_some() { 0 } else { interval_ns };
            // One that met less than half of the hog shows nothing.
            let injected = held.and_then(|held| held.injected(start, interval_ns));
            if let Some(injected_ns) = injected.filter(|injected| *injected >= size_ns / 2) {
                let new = Trial { injected_ns, quiet, held: seen, ..trial.clone() };
                // Of two that were not seen the one from the quieter moment says more.
                if trial.injected_ns == 0
                    || new.control().passed
                    || new.control().noise_ns < trial.control().noise_ns
                {
                    *trial = new;
                }
            }
        }
    }
}

fn priority(lane: &Lane) -> u32 {
    if lane.spec.policy == Policy::Deadline { CONTROL_PRIORITY } else { lane.spec.series.priority }
}

/// How long the hog must hold the CPU to stand out of this noise, in ns.
fn size(stage: Stage, noise_ns: u64) -> u64 {
    let loud = |size: &&u64| **size / 2 >= noise_ns;
    let longest = SIZES_NS[SIZES_NS.len() - 1];
    if stage == Stage::Fine { FINE_NS } else { SIZES_NS.iter().find(loud).copied().unwrap_or(longest) }
}

/// Runs a control on all CPUs at once, again until every thread has seen it or has had its attempts.
#[inline(never)]
pub fn run(cpus: &mut [CpuControl], stage: Stage) -> (Vec<Trial>, Vec<Note>) {
    cpus.iter_mut().for_each(|cpu| cpu.begin(stage));
    for (lead, tail) in LEADS_NS.into_iter().zip(TAILS_NS).take(attempts(stage)) {
        let lead = if stage == Stage::Fine { lead / 4 } else { lead };
        let mut open: Vec<&mut CpuControl> = cpus.iter_mut().filter(|cpu| cpu.is_open()).collect();
        if open.is_empty() {
            break;
        }
        let mut measured = Vec::new();
        let start = sys::now() + HEAD_START_NS;
        for cpu in &mut open {
            let (series, end) = (cpu.series(), start + QUIET_NS.max(5 * cpu.interval()));
            cpu.order(start, end);
            measured.push((series, end));
        }
        let quiet: Vec<Vec<Counted>> =
            open.iter_mut().zip(measured).map(|(cpu, (series, end))| cpu.collect(series, end)).collect();
        let start = sys::now() + HEAD_START_NS;
        let mut orders = Vec::new();
        for (cpu, quiet) in open.iter_mut().zip(&quiet) {
            let noise = quiet.iter().map(|one| one.largest().unwrap_or(u64::MAX)).max().unwrap_or(0);
            let (size_ns, due) = (size(stage, noise), cpu.due(start, lead));
            let (series, end) = (cpu.series(), due + size_ns + 3 * cpu.interval() + tail);
            if !cpu.stuck {
                cpu.order(start, end);
                cpu.hold(due, lead, size_ns);
            }
            orders.push((series, end, size_ns));
        }
        for ((cpu, quiet), (series, end, size_ns)) in open.iter_mut().zip(quiet).zip(orders) {
            if cpu.stuck {
                continue;
            }
            let seen = cpu.collect(series, end);
            let held = cpu.hog.held(cpu.number, PATIENCE);
            cpu.take(start, held, quiet, seen, size_ns);
        }
    }
    let mut notes: Vec<Note> = Vec::new();
    if stage == Stage::Before {
        notes.extend(deadline_note(cpus.iter().flat_map(|cpu| &cpu.lanes)));
    }
    let trials: Vec<Trial> = cpus.iter_mut().flat_map(|cpu| std::mem::take(&mut cpu.trials)).collect();
    notes.extend(trials.iter().filter(|trial| trial.injected_ns == 0 && stage != Stage::Fine).map(never_met));
    (trials, notes)
}

/// A note on the limits of a control of SCHED_DEADLINE threads.
pub fn deadline_note<'a>(mut lanes: impl Iterator<Item = &'a Arc<Lane>>) -> Option<Note> {
    lanes.any(|lane| lane.spec.policy == Policy::Deadline).then(|| {
        Note::info(format!(
            "the self-test was made with the threads at SCHED_FIFO {CONTROL_PRIORITY}: nothing can be above \
                SCHED_DEADLINE"
        ))
    })
}

/// Nothing could be injected on `place`.
pub fn no_control(place: &str, refusal: Refusal) -> Note {
    Note {
        kind: NoteKind::Obstacle,
        text: format!("no self-test on {place}: {}", refusal.reason),
        hint: refusal.hint,
        unknowable: None,
    }
}

/// A control that says nothing of the instrument: the hog itself came too late, every time.
fn never_met(trial: &Trial) -> Note {
    Note::obstacle(
        format!(
            "the self-test on CPU {} never met a wake-up in {} attempts: its FIFO spinner came too late each \
             time, so it shows nothing",
            trial.series.cpu, trial.attempts
        ),
        "give the environment more of its CPUs, or measure again with less other work",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_place_is_loud_the_hog_holds_longer() {
        let before = |noise| size(Stage::Before, noise);
        assert_eq!((before(4_000), before(500_000), before(500_001)), (1_000_000, 1_000_000, 4_000_000));
        assert_eq!((before(3_000_000), before(u64::MAX)), (16_000_000, 64_000_000));
        assert_eq!(size(Stage::Fine, u64::MAX), FINE_NS, "there is no other fine one");
    }
}
