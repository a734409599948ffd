//! `spin`: polled gaps. The thread reads the clock without pause and counts every gap between two
//! readings, as oslat and the hwlat tracer do.
//!
//! It polls in slices of [`SLICE_NS`], `busy` per cent of each, less a [`MARGIN_NS`]: the kernel
//! throttles real-time tasks that take 95 per cent of a second, and its throttling would be measured
//! as a gap. The rest of a slice it sleeps; the sleep is no gap.

use std::sync::atomic::Ordering;

use tactus_model::catalogue::{Measure, measure};
use tactus_model::message::{Note, Refusal};

use super::lane::{Lane, Run};
use super::ring::Sample;
use super::{Measurement, Wanted, stranger};
use crate::clock::{Scale, Source};
use crate::sys;

/// How often it sleeps, in ns.
const SLICE_NS: u64 = 100_000_000;
/// What it polls less than it was told to in each slice, in ns.
const MARGIN_NS: u64 = 250_000;
/// The kernel's own limit for real-time tasks, in per cent.
const USUAL_BUSY: u32 = 95;

/// The measurement.
pub struct Spin;

impl Measurement for Spin {
    fn name(&self) -> &'static str {
        measure::Spin::NAME
    }

    fn kind(&self) -> &'static str {
        "gap"
    }

    fn counts_gaps(&self) -> bool {
        true
    }

    fn wanted(&self, measure: &Measure) -> Result<Wanted, Refusal> {
        let Measure::Spin(spin) = measure else {
            return Err(stranger(measure));
        };
        Ok(Wanted { threads: 1, periodic: false, limit_ns: None, busy: spin.busy() })
    }

    fn notes(&self, measure: &Measure) -> Vec<Note> {
        let mut notes = vec![Source::find().note()];
        let busy = self.wanted(measure).map_or(USUAL_BUSY, |wanted| wanted.busy);
        let budget = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
        if busy > USUAL_BUSY && budget.trim() != "-1" {
            notes.push(Note::obstacle(
                format!(
                    "polling {busy} % of the time exceeds what the kernel grants to real-time tasks \
                     (sched_rt_runtime_us = {}): its throttling will be seen as gaps",
                    budget.trim()
                ),
                "leave busy at 95, or write -1 to /proc/sys/kernel/sched_rt_runtime_us",
            ));
        }
        notes
    }

    fn run(&self, lane: &Lane, run: Run) {
        match Source::find() {
            Source::Ticks(scale) => poll(lane, run, scale, sys::ticks),
            Source::Clock => poll(lane, run, Scale::ONE, sys::now),
        }
    }
}

fn poll(lane: &Lane, run: Run, scale: Scale, read: impl Fn() -> u64) {
    let Some(gaps) = lane.gaps.as_ref() else { return };
    let mut writer = lane.ring.writer(0, run.end);
    let on = if lane.spec.busy == 100 {
        SLICE_NS
    } else {
        (SLICE_NS / 100 * u64::from(lane.spec.busy)).saturating_sub(MARGIN_NS).max(MARGIN_NS)
    };
    let mut begin = run.start;
    if !sys::sleep_until(begin) {
        return;
    }
    while begin < run.end && !lane.stopped() {
        let base = read();
        let base_ns = sys::now();
        let until = base + scale.ticks(on.min(run.end.saturating_sub(base_ns)));
        let mut last = read();
        while last < until && !lane.stopped() {
            let now = read();
            let gap = now.saturating_sub(last);
            gaps.count(gap);
            if gap >= gaps.floor.load(Ordering::Relaxed) {
                writer.push(Sample { at: base_ns + scale.ns(now - base), value: scale.ns(gap) });
            }
            last = now;
        }
        begin += SLICE_NS;
        if lane.spec.busy < 100 {
            sys::sleep_until(begin.min(run.end));
        }
        // A slice that ended late does not make the next ones follow without a rest.
        begin = begin.max(sys::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_second_that_is_none_is_refused() {
        let spin = |busy| Measure::Spin(measure::Spin { busy });
        assert_eq!(Spin.wanted(&spin(None)).unwrap().busy, USUAL_BUSY);
        assert!(spin(Some(0)).check().is_err());
        assert!(spin(Some(101)).check().is_err());
    }
}
