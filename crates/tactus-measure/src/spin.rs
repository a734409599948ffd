//! `spin`: polled gaps. The thread reads the clock without pause and counts every gap between two readings, as oslat
//! and the hwlat tracer do.
//!
//! It polls in slices of [`SLICE_NS`], `busy` per cent of each, less a [`MARGIN_NS`]. The kernel throttles real-time
//! tasks that take 95 per cent of a second, and this would be measured as a gap. The thread sleeps for the rest of a
//! slice; the sleep is not a gap. A slice that begins late is a gap: tasks that waited for the poller to sleep have the
//! CPU then.

use tactus_model::catalogue::{Measure, measure};
use tactus_model::message::{Note, Refusal};

use crate::clock::{Scale, Source};
use crate::lane::{Lane, Run};
use crate::ring::Sample;
use crate::sys;
use crate::{Measurement, Wanted, stranger};

/// How often it sleeps, in ns.
const SLICE_NS: u64 = 100_000_000;
/// It polls less than it was told to by this much in each slice, in ns.
const MARGIN_NS: u64 = 250_000;
/// It wakes this long before a slice, in ns: the duration of a wake-up is not a gap. Within [`MARGIN_NS`], so that it
/// does not poll more than it was told to.
const EARLY_NS: u64 = 100_000;
/// The kernel's own limit for real-time tasks, in per cent.
const USUAL_BUSY: u32 = 95;

/// The measurement.
pub struct Spin;

impl Measurement for Spin {
    fn name(&self) -> &'static str {
        measure::Spin::NAME
    }

    fn kind(&self, _measure: &Measure) -> &'static str {
        "gap"
    }

    fn counts_gaps(&self) -> bool {
        true
    }

    fn wanted(&self, measure: &Measure) -> Result<Wanted, Refusal> {
        let Measure::Spin(spin) = measure else {
            return Err(stranger(measure));
        };
        let limit_ns = spin.break_at.map(|limit| limit.0);
        Ok(Wanted { threads: 1, periodic: false, limit_ns, busy: spin.busy() })
    }

    fn notes(&self, measure: &Measure) -> Vec<Note> {
        let mut notes = vec![Source::find().note()];
        let busy = self.wanted(measure).map_or(USUAL_BUSY, |wanted| wanted.busy);
        let budget = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
        if busy > USUAL_BUSY && budget.trim() != "-1" {
            notes.push(Note::obstacle(
                format!(
                    "polling {busy} % of the time exceeds the kernel's limit for real-time tasks \
                     (sched_rt_runtime_us = {}): its throttling will appear as gaps",
                    budget.trim()
                ),
                "leave busy at 95, or write -1 to /proc/sys/kernel/sched_rt_runtime_us",
            ));
        }
        notes
    }

    fn run(&self, lane: &Lane, run: Run) {
        match Source::find() {
            Source::Ticks(scale) => poll(lane, run, scale, sys::ticks, sys::sleep_until),
            Source::Clock => poll(lane, run, Scale::ONE, sys::now, sys::sleep_until),
        }
    }
}

fn poll(lane: &Lane, run: Run, scale: Scale, read: impl Fn() -> u64, sleep: impl Fn(u64) -> bool) {
    let Some(gaps) = lane.gaps.as_ref() else { return };
    let mut writer = lane.ring.writer(0, run.end);
    let always = lane.spec.busy == 100;
    let on = if always {
        SLICE_NS
    } else {
        (SLICE_NS / 100 * u64::from(lane.spec.busy)).saturating_sub(MARGIN_NS).max(MARGIN_NS)
    };
    let limit = match lane.spec.limit_ns {
        _ if run.control => u64::MAX,
        u64::MAX => u64::MAX,
        ns => scale.ticks(ns),
    };
    let mut begin = run.start;
    // If all threads begin together, a late one is late. Otherwise earlier due times do not belong to this thread.
    let first = if run.open { begin } else { begin.max(sys::now()) };
    let mut last = wait(lane, first, scale, &read, &sleep);
    while begin < run.end && !lane.stopped() {
        let base = read();
        let base_ns = sys::now();
        let until = base + scale.ticks((begin + on).min(run.end).saturating_sub(base_ns));
        while last < until && !lane.stopped() {
            let now = read();
            let gap = now.saturating_sub(last);
            gaps.count(gap);
            if gap >= gaps.floor() || gap > limit {
                let (at, value) = (base_ns + scale.ns(now.saturating_sub(base)), scale.ns(gap));
                writer.push(Sample { at, value });
                if gap > limit {
                    lane.exceeded(value, at);
                    return;
                }
            }
            last = now;
        }
        let due;
        (begin, due) = next_slice(begin, sys::now(), SLICE_NS - on);
        if always {
            continue;
        }
        if due >= run.end {
            sleep(run.end);
            return;
        }
        last = wait(lane, due, scale, &read, &sleep);
    }
}

/// Waits until a slice is due. Returns the reading of the polled clock from which gaps count: the last one before the
/// due time. If the thread came too late for that, it returns the time at which it was to wake up.
fn wait(lane: &Lane, due: u64, scale: Scale, read: &impl Fn() -> u64, sleep: &impl Fn(u64) -> bool) -> u64 {
    // A thread that arrives after the due time was not to wake up before it.
    let early = if sys::now() < due { due.saturating_sub(EARLY_NS) } else { due };
    while !sleep(early) && sys::now() < early && !lane.stopped() {}
    let mut before = early;
    loop {
        let now = sys::now();
        if now >= due || lane.stopped() {
            return read().saturating_sub(scale.ticks(now.saturating_sub(before)));
        }
        before = now;
    }
}

/// The slice after the one that began at `begin`, and when to poll in it, in ns. Slices stay on the grid of the first
/// one and end on it; one that ended late makes the next one shorter, because between two there is always a rest.
const fn next_slice(begin: u64, now: u64, rest: u64) -> (u64, u64) {
    let passed = now.saturating_sub(begin) / SLICE_NS;
    let begin = begin + SLICE_NS * if passed > 1 { passed } else { 1 };
    let rested = now.saturating_add(rest);
    (begin, if begin > rested { begin } else { rested })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tactus_model::scheduling::Policy;
    use tactus_model::series::SeriesKey;

    use super::*;
    use crate::gaps::{Counted, GapHistogram};
    use crate::lane::Spec;

    fn lane() -> Lane {
        let spec = Spec {
            activity: 0,
            series: SeriesKey { cpu: 0, thread: 0, priority: 0, kind: "gap".into() },
            interval_ns: 0,
            policy: Policy::Other,
            limit_ns: u64::MAX,
            busy: USUAL_BUSY,
            reads_on: None,
        };
        Lane::new(spec, Some(GapHistogram::new(u64::MAX)), Arc::default())
    }

    const MS: u64 = 1_000_000;

    /// The counts of a run of `length`, in ns, that was to begin `before` ago, by a thread that oversleeps by `late`.
    fn counted(length: u64, before: u64, late: u64, open: bool) -> Counted {
        let lane = lane();
        let start = sys::now() - before;
        let run = Run { start, end: start + length, interval_ns: 0, control: false, open };
        let sleep = |until| sys::sleep_until(until + late);
        poll(&lane, run, Scale::ONE, sys::now, sleep);
        lane.gaps.unwrap().since(&mut Vec::new())
    }

    #[test]
    fn a_slice_that_begins_late_begins_with_a_gap() {
        let all = counted(350 * MS, 0, 40 * MS, true);
        assert!(all.max >= 40 * MS, "{all:?}");
        // The time in which the thread was kept away also counts as observed.
        let planned = 350 * MS / 100 * u64::from(USUAL_BUSY);
        assert!(all.sum >= planned / 100 * 99, "{} of {planned}", all.sum);
    }

    #[test]
    fn who_comes_late_to_the_common_beginning_is_late_and_a_late_order_is_no_gap() {
        assert!(counted(80 * MS, 50 * MS, 0, true).max >= 50 * MS);
        let began = sys::now();
        let late_order = counted(80 * MS, 50 * MS, 0, false);
        assert!(late_order.sum <= sys::now() - began, "only what was after the order");
    }

    #[test]
    fn what_is_due_after_the_end_is_no_gap() {
        // The second slice would begin after the end: the thread sleeps, and oversleeps, once more.
        let all = counted(97 * MS, 0, 60 * MS, true);
        let late = all.buckets.iter().filter(|(gap, _)| *gap >= 55 * MS);
        assert_eq!(late.map(|(_, many)| many).sum::<u64>(), 1, "{all:?}");
    }

    #[test]
    fn slices_stay_on_their_grid_however_late_the_thread_is() {
        const REST: u64 = 5_250_000;
        let mut begin = 7;
        for late in [0, 90_000, 4_000_000, 1, 99_000_000] {
            begin = next_slice(begin, begin + SLICE_NS - REST + late, REST).0;
        }
        assert_eq!(begin, 7 + 5 * SLICE_NS);
    }

    #[test]
    fn between_two_slices_there_is_a_rest_and_a_long_gap_leaves_slices_out() {
        const REST: u64 = 5_250_000;
        assert_eq!(next_slice(0, SLICE_NS - REST, REST), (SLICE_NS, SLICE_NS));
        assert_eq!(next_slice(0, SLICE_NS + 1, REST), (SLICE_NS, SLICE_NS + 1 + REST));
        assert_eq!(next_slice(0, 3 * SLICE_NS + 1, REST), (3 * SLICE_NS, 3 * SLICE_NS + 1 + REST));
        assert_eq!(next_slice(0, SLICE_NS + 1, 0), (SLICE_NS, SLICE_NS + 1), "one that polls always goes on");
    }

    #[test]
    fn an_invalid_part_of_a_second_is_refused() {
        let spin = |busy| Measure::Spin(measure::Spin { busy, break_at: None });
        assert_eq!(Spin.wanted(&spin(None)).unwrap().busy, USUAL_BUSY);
        assert!(spin(Some(0)).check().is_err());
        assert!(spin(Some(101)).check().is_err());
    }
}
