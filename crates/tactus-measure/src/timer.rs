//! `timer`: cyclic wake-up latency. The thread sleeps until an absolute time and notes how late it
//! woke, as cyclictest does.

use tactus_model::catalogue::{Measure, measure};
use tactus_model::message::Refusal;

use crate::lane::{Lane, Run};
use crate::ring::Sample;
use crate::sys;
use crate::{Measurement, Wanted, stranger};

/// The measurement.
pub struct Timer;

impl Measurement for Timer {
    fn name(&self) -> &'static str {
        measure::Timer::NAME
    }

    fn kind(&self, _measure: &Measure) -> &'static str {
        "thread"
    }

    fn wanted(&self, measure: &Measure) -> Result<Wanted, Refusal> {
        let Measure::Timer(timer) = measure else {
            return Err(stranger(measure));
        };
        Ok(Wanted {
            threads: timer.threads(),
            periodic: true,
            limit_ns: timer.break_at.map(|limit| limit.0),
            busy: 0,
        })
    }

    fn run(&self, lane: &Lane, run: Run) {
        let mut writer = lane.ring.writer(run.interval_ns, run.end);
        let limit = if run.control { u64::MAX } else { lane.spec.limit_ns };
        let mut due = first_due(run, sys::now());
        while due < run.end {
            let whole = sys::sleep_until(due);
            let now = sys::now();
            // A wake-up that was due counts, even if its thread is told to end because of this late wake-up.
            if !whole && now < due {
                if lane.stopped() {
                    return;
                }
                continue;
            }
            let late = now.saturating_sub(due);
            writer.push(Sample { at: now, value: late });
            if late > limit {
                lane.exceeded(late, now);
                return;
            }
            if lane.stopped() {
                return;
            }
            // The next due time that is still to come; those up to now were swallowed.
            due += (1 + late / run.interval_ns) * run.interval_ns;
        }
    }
}

/// The first due time of a run. If all threads begin together, it is the run's start. Otherwise it is the first one
/// that lies ahead when the thread arrives: an earlier one would measure how long the order took.
pub(crate) const fn first_due(run: Run, now: u64) -> u64 {
    if run.open || now <= run.start || run.interval_ns == 0 {
        return run.start;
    }
    run.start + (now - run.start).div_ceil(run.interval_ns) * run.interval_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_order_is_not_measured_as_a_late_wake_up() {
        let run = Run { start: 1_000, end: 9_000, interval_ns: 100, control: false, open: false };
        assert_eq!(first_due(run, 500), 1_000);
        assert_eq!(first_due(run, 1_000), 1_000);
        assert_eq!(first_due(run, 1_001), 1_100);
        assert_eq!(first_due(run, 1_250), 1_300);
    }

    #[test]
    fn who_comes_late_to_the_common_beginning_is_late() {
        let run = Run { start: 1_000, end: 9_000, interval_ns: 100, control: false, open: true };
        assert_eq!(first_due(run, 1_250), 1_000);
    }
}
