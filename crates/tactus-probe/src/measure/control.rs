//! The default control: a known disturbance that every measuring thread must see at its size, before
//! anything is measured.
//!
//! On each measuring CPU a SCHED_FIFO thread above the measuring ones (at 99: beside them, and then
//! already running when they become due) holds the CPU for 1 ms and reads the clock as it does so.
//! A thread that was due meanwhile must wake that much late. All threads of a CPU are given the same
//! due times for it, so that one hog is there for all of them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tactus_model::message::{Control, Note, NoteKind, Refusal};
use tactus_model::scheduling::Policy;

use super::lane::{Lane, Order, Run};
use super::ring::Sample;
use super::thread::{CONTROL_PRIORITY, make_fifo};
use crate::sys;

/// How long the hog holds the CPU, in ns.
const HOG_NS: u64 = 1_000_000;
/// How much before a due time it starts, in ns, by attempt: where a hog itself wakes late it must set
/// out earlier, or it comes when the thread has already been served.
const LEADS_NS: [u64; ATTEMPTS as usize] =
    [100_000, 100_000, 200_000, 200_000, 300_000, 300_000, 400_000, 400_000];
/// How long the threads go on being due after the hog should have ended, in ns, by attempt: on a machine
/// under load (an emulated guest above all) it is the hog that comes late, and then nothing was due any
/// more while it ran.
const TAILS_NS: [u64; ATTEMPTS as usize] =
    [2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000, 64_000_000, 128_000_000, 256_000_000];
/// The longest interval of a control, in ns: a hog then always meets a due time, and a thread that is
/// to wake once a second need not be waited for.
const LONGEST_NS: u64 = HOG_NS;
/// Rounds until a thread is said not to have seen it: others disturb, too.
const ATTEMPTS: u32 = 8;
/// Undisturbed time before the hog, in ns: the noise of the place.
const QUIET_NS: u64 = 8_000_000;

/// A stretch of the CPU's time that the hog held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    from: u64,
    to: u64,
}

/// The thread that disturbs.
struct Hog {
    starts: Option<Sender<u64>>,
    held: Receiver<Held>,
    handle: Option<JoinHandle<()>>,
}

impl Hog {
    fn start(cpu: u32, priority: u32) -> Result<Self, Refusal> {
        let (starts, to_start) = channel::<u64>();
        let (tell, held) = channel();
        let (ready, is_ready) = channel();
        let failed = |why: String| Refusal { reason: why, hint: None };
        let handle = std::thread::Builder::new()
            .name(format!("hog-{cpu}"))
            .stack_size(128 * 1024)
            .spawn(move || {
                let made = make_fifo(cpu, priority);
                let fit = made.is_ok();
                let _ = ready.send(made);
                while let Some(at) = fit.then(|| to_start.recv().ok()).flatten() {
                    sys::sleep_until(at);
                    let from = sys::now();
                    let mut to = from;
                    while to < from + HOG_NS {
                        to = sys::now();
                    }
                    let _ = tell.send(Held { from, to });
                }
            })
            .map_err(|error| failed(format!("no thread could be started: {error}")))?;
        is_ready.recv().unwrap_or_else(|_| Err(failed("the hog ended before it was ready".into())))?;
        Ok(Self { starts: Some(starts), held, handle: Some(handle) })
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.starts = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// The control of the threads of one CPU.
pub struct CpuControl {
    lanes: Vec<Arc<Lane>>,
    hog: Hog,
    results: Vec<Control>,
}

impl CpuControl {
    /// Prepares the hog of a CPU above all of `lanes`, which are that CPU's.
    ///
    /// # Errors
    /// When SCHED_FIFO is refused to the hog.
    pub fn prepare(cpu: u32, lanes: Vec<Arc<Lane>>) -> Result<Self, Refusal> {
        let highest = lanes.iter().map(|lane| priority(lane)).max().unwrap_or(0);
        let hog = Hog::start(cpu, (highest + 1).min(99))?;
        let results = lanes
            .iter()
            .map(|lane| Control {
                activity: lane.spec.activity,
                series: lane.spec.series.clone(),
                injected_ns: 0,
                seen_ns: 0,
                noise_ns: 0,
                proven: false,
                attempts: 0,
                by: "hog".into(),
            })
            .collect();
        Ok(Self { lanes, hog, results })
    }

    fn proven(&self) -> bool {
        self.results.iter().all(|result| result.proven)
    }

    fn order(&self, start: u64, lead: u64, tail: u64) -> (u64, u64) {
        let longest = self.lanes.iter().map(|lane| interval(lane)).max().unwrap_or(LONGEST_NS);
        let quiet = QUIET_NS.max(5 * longest);
        let end = start + quiet + HOG_NS + 3 * longest + tail;
        for lane in &self.lanes {
            lane.give(Order::Run(Run {
                start,
                end,
                interval_ns: interval(lane),
                control: true,
                open: false,
            }));
        }
        // The largest interval is met by all lanes of the CPU at once only if they have the same; else
        // each sees the first of its own due times that the hog covers.
        (start + quiet.next_multiple_of(longest) - lead, end)
    }

    fn take(&mut self, held: Option<Held>) {
        for (lane, result) in self.lanes.iter().zip(&mut self.results) {
            let mut samples = Vec::new();
            lane.ring.drain(|sample| samples.push(sample));
            if result.proven {
                continue;
            }
            result.attempts += 1;
            let due_every = lane.gaps.is_none().then(|| interval(lane));
            if let Some(outcome) = held.and_then(|held| judge(&samples, held, due_every)) {
                (result.injected_ns, result.seen_ns, result.noise_ns) = outcome;
                result.proven = is_proven(outcome);
            }
        }
    }
}

fn priority(lane: &Lane) -> u32 {
    if lane.spec.policy == Policy::Deadline { CONTROL_PRIORITY } else { lane.spec.series.priority }
}

fn interval(lane: &Lane) -> u64 {
    if lane.spec.interval_ns == 0 { HOG_NS } else { lane.spec.interval_ns.min(LONGEST_NS) }
}

/// Injected, seen and noise of one attempt, in ns; `None` when nothing was due while the hog ran.
///
/// A wake-up at a due time within the hog's time is injected from that due time to the hog's end; one
/// that was due before and was kept waiting by the hog, the whole time: what it waited before is noise. A
/// polled gap (`due_every` is `None`) is injected the whole time.
fn judge(samples: &[Sample], held: Held, due_every: Option<u64>) -> Option<(u64, u64, u64)> {
    let begin = |sample: &Sample| sample.at - sample.value;
    let before = |sample: &&Sample| sample.at <= held.from;
    let noise = samples.iter().filter(before).map(|sample| sample.value).max().unwrap_or(0);
    if due_every.is_some() {
        // Of those that waited for the hog's end the one that was due first after it began; else, where
        // everything comes late and hog and thread are woken at once, the last that was due before.
        let waited = samples.iter().filter(|s| begin(s) < held.to && s.at >= held.to);
        let met = waited.min_by_key(|s| (begin(s) < held.from, begin(s).abs_diff(held.from)))?;
        return Some((held.to - begin(met).max(held.from), met.value, noise));
    }
    let met = samples.iter().filter(|s| s.at > held.from && begin(s) < held.to).max_by_key(|s| s.value)?;
    Some((held.to - held.from, met.value, noise))
}

/// Whether what was seen is what was injected: never less than nine tenths of it, and not more than
/// a tenth or the noise of the place above it. An attempt that met less than half of the hog proves
/// nothing.
const fn is_proven((injected, seen, noise): (u64, u64, u64)) -> bool {
    let tenth = injected / 10;
    let above = if noise > tenth { noise } else { tenth };
    injected >= HOG_NS / 2 && seen + tenth >= injected && seen <= injected + above
}

/// Runs the control on all CPUs at once, again until every thread has seen it or has had its
/// attempts.
pub fn run(mut cpus: Vec<CpuControl>) -> (Vec<Control>, Vec<Note>) {
    for (lead, tail) in LEADS_NS.into_iter().zip(TAILS_NS) {
        let start = sys::now() + 3_000_000;
        let mut end = start;
        let mut open: Vec<&mut CpuControl> = cpus.iter_mut().filter(|cpu| !cpu.proven()).collect();
        if open.is_empty() {
            break;
        }
        for cpu in &open {
            let (hog_at, cpu_end) = cpu.order(start, lead, tail);
            if let Some(starts) = &cpu.hog.starts {
                let _ = starts.send(hog_at);
            }
            end = end.max(cpu_end);
        }
        for cpu in &mut open {
            let patience = Duration::from_nanos(end.saturating_sub(sys::now())) + Duration::from_secs(5);
            for lane in &cpu.lanes {
                lane.wait_finished(patience);
            }
            let held = cpu.hog.held.recv_timeout(Duration::from_secs(5)).ok();
            cpu.take(held);
        }
    }
    let mut notes: Vec<Note> = deadline_note(cpus.iter().flat_map(|cpu| &cpu.lanes)).into_iter().collect();
    let results: Vec<Control> = cpus.into_iter().flat_map(|cpu| cpu.results).collect();
    notes.extend(results.iter().filter(|result| result.injected_ns == 0).map(never_met));
    (results, notes)
}

/// What a control cannot show of SCHED_DEADLINE threads.
pub fn deadline_note<'a>(mut lanes: impl Iterator<Item = &'a Arc<Lane>>) -> Option<Note> {
    lanes.any(|lane| lane.spec.policy == Policy::Deadline).then(|| {
        Note::info(format!(
            "the control was seen while the threads were SCHED_FIFO {CONTROL_PRIORITY}: nothing can be above SCHED_DEADLINE"
        ))
    })
}

/// Nothing could be injected on `place`.
pub fn no_control(place: &str, refusal: Refusal) -> Note {
    Note {
        kind: NoteKind::Obstacle,
        text: format!(
            "no control on {place}, so that nothing proves the instrument there: {}",
            refusal.reason
        ),
        hint: refusal.hint,
    }
}

/// A control that says nothing of the instrument: the hog itself came too late, every time.
fn never_met(result: &Control) -> Note {
    Note::obstacle(
        format!(
            "the control on CPU {} never met a wake-up in {} attempts: its hog came too late each time, so that \
             nothing is known of the instrument there",
            result.series.cpu, result.attempts
        ),
        "give the environment more of its CPUs, or measure again when less runs beside it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woke(due: u64, late: u64) -> Sample {
        Sample { at: due + late, value: late }
    }

    const HELD: Held = Held { from: 9_900_000, to: 10_900_000 };

    #[test]
    fn what_was_injected_counts_from_the_due_time_that_the_hog_met() {
        let samples = [woke(9_000_000, 50_000), woke(9_800_000, 7_000), woke(10_000_000, 905_000)];
        let outcome = judge(&samples, HELD, Some(200_000)).unwrap();
        assert_eq!(outcome, (900_000, 905_000, 50_000));
        assert!(is_proven(outcome));
    }

    #[test]
    fn a_thread_that_saw_less_than_was_done_to_it_proves_nothing_however_loud_the_place() {
        assert!(!is_proven((900_000, 10_000, 14_000_000)));
        assert!(!is_proven((900_000, 0, u64::MAX / 2)));
        assert!(!is_proven((100_000, 100_000, 0)), "too little of the hog was met");
    }

    #[test]
    fn more_than_was_done_is_believed_within_a_tenth_or_the_noise() {
        assert!(is_proven((900_000, 985_000, 1_000)));
        assert!(!is_proven((900_000, 1_200_000, 1_000)));
        assert!(is_proven((900_000, 1_200_000, 400_000)));
    }

    #[test]
    fn a_hog_that_met_no_due_time_is_no_attempt() {
        assert_eq!(judge(&[woke(8_000_000, 5), woke(11_000_000, 5)], HELD, Some(3_000_000)), None);
    }

    #[test]
    fn a_wake_up_that_was_late_before_the_hog_came_is_injected_the_hogs_time_alone() {
        let samples = [woke(5_000_000, 3_000_000), woke(8_200_000, 2_705_000)];
        let outcome = judge(&samples, HELD, Some(200_000)).unwrap();
        assert_eq!(outcome, (1_000_000, 2_705_000, 3_000_000));
        assert!(is_proven(outcome), "the place is that loud");
        assert!(!is_proven((1_000_000, 2_705_000, 100_000)), "and elsewhere it is not believed");
        let due_within = [woke(9_000_000, 1_905_000), woke(10_000_000, 905_000)];
        assert_eq!(judge(&due_within, HELD, Some(200_000)).unwrap().0, 900_000);
    }

    #[test]
    fn a_polled_gap_is_the_whole_time_of_the_hog() {
        let samples = [Sample { at: 9_000_000, value: 3_000 }, Sample { at: 10_902_000, value: 1_003_000 }];
        assert_eq!(judge(&samples, HELD, None), Some((1_000_000, 1_003_000, 3_000)));
    }
}
