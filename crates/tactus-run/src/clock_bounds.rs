//! Bounds on the rate of a probe's clock against this machine's, by messages and the times when they were sent and
//! received.
//!
//! Nothing is assumed of how long a message travels. Two rules hold for any line. First, take a message of the probe
//! that has arrived here, and a later message from here to the probe. Between sending the first and receiving the
//! second, the probe's clock must advance by at least the time between the two here. Second, between receiving a
//! message and answering it, the probe's clock advances at most by the time from sending to the arrival of the answer
//! here. A clock that breaks one of them is wrong, or stood still.

use tactus_model::clock::{ClockCheck, Rate};
use tactus_model::message::Proven;
use tactus_model::number::{float, whole};

/// How far from this machine's clock another may be, in parts per million: crystals differ by a hundred, the guesses of a
/// kernel that could not calibrate by some thousands.
const WITHIN_PPM: u64 = 10_000;
/// The difference of two good clocks, in parts per million of a time: what a clock lacks beyond it, it stood still for.
const DRIFT_PPM: u64 = 1_000;
/// More than any rate.
const UNKNOWN_PPM: u64 = 1_000_000_000;

/// A moment on both clocks, in ns: those of this machine and of the probe.
#[derive(Clone, Copy, Debug)]
struct Moment {
    here: u64,
    there: u64,
}

/// The messages so far, with their times on both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockBounds {
    /// The last moment of the probe that was heard of.
    heard: Option<Moment>,
    /// When it was told to prove itself.
    told: Option<u64>,
    /// The first time that it was told something and reported when.
    first_told: Option<Moment>,
    /// How long it stood still in all, and how long of it before the last moment that was heard of, in ns.
    stood: u64,
    stood_before: u64,
}

impl ClockBounds {
    /// The probe has said what its clock is.
    pub fn hello(&mut self, here: u64, there: u64) {
        *self = Self { heard: Some(Moment { here, there }), ..Self::default() };
    }

    /// It is told to prove itself, now.
    pub const fn tell(&mut self, here: u64) {
        self.told = Some(here);
    }

    /// It stood still for `ns`. That is known, and is left out of the rate.
    pub const fn stood(&mut self, ns: u64) {
        self.stood = self.stood.saturating_add(ns);
    }

    /// It has, and that is heard now. Returns what follows for its clock.
    pub fn proven(&mut self, here: u64, proven: &Proven) -> ClockCheck {
        let (Some(told), true) = (self.told.take(), proven.told_ns > 0) else { return ClockCheck::default() };
        let told = Moment { here: told, there: proven.told_ns };
        let most = self.heard.map(|heard| {
            (
                told.here.saturating_sub(heard.here).saturating_sub(self.stood - self.stood_before),
                told.there.saturating_sub(heard.there),
            )
        });
        let first = *self.first_told.get_or_insert(told);
        let passed = here.saturating_sub(first.here).saturating_sub(self.stood);
        let least = (passed, proven.proven_ns.saturating_sub(first.there));
        self.heard = Some(Moment { here, there: proven.proven_ns });
        self.stood_before = self.stood;
        let rate = Rate {
            against: "the clock of the machine that tactus runs on".into(),
            least_ppm: ppm(least).unwrap_or(0),
            most_ppm: most.and_then(ppm).unwrap_or(UNKNOWN_PPM),
            within_ppm: WITHIN_PPM,
        };
        let (passed, counted) = most.unwrap_or((0, 0));
        let good = passed - passed / 1_000_000 * DRIFT_PPM;
        ClockCheck { rates: vec![rate], jump_ns: good.saturating_sub(counted), ..ClockCheck::default() }
    }
}

/// The ratio of the second time to the first, in parts per million; `None`: the first is too short.
fn ppm((here, there): (u64, u64)) -> Option<u64> {
    const LEAST_NS: u64 = 1_000_000;
    (here >= LEAST_NS).then(|| whole(float(there) / float(here) * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A probe whose clock runs at `rate`, over a line with the delays `there` to it and `back` from it. It says
    /// hello, is told after 300 ms, and proves itself in 200 ms; and once more a minute later.
    fn checks(rate: f64, there: u64, back: u64) -> Vec<ClockCheck> {
        let clock = |ns: u64| 77 * MS + whole(float(ns) * rate);
        let mut fit = ClockBounds::default();
        fit.hello(back, clock(0));
        [300 * MS, 60_300 * MS]
            .map(|tell| {
                let tell = tell + back;
                fit.tell(tell);
                let (told, proven) = (tell + there, tell + there + 200 * MS);
                fit.proven(
                    proven + back,
                    &Proven { told_ns: clock(told), proven_ns: clock(proven), ..Proven::default() },
                )
            })
            .to_vec()
    }

    fn wrong(rate: f64, there: u64, back: u64) -> Vec<bool> {
        checks(rate, there, back).iter().map(|check| check.refusal().is_some()).collect()
    }

    #[test]
    fn a_clock_at_half_or_ten_times_the_rate_is_refused_at_once() {
        assert_eq!(wrong(0.5, MS, MS), [true, true]);
        assert_eq!(wrong(10.0, MS, MS), [true, true]);
        let half = checks(0.5, MS, MS)[0].refusal().unwrap();
        assert!(half.contains("its clock runs at 0.50 of the rate of the clock of the machine"), "{half}");
    }

    #[test]
    fn a_slow_line_refuses_no_good_clock() {
        for (there, back) in [(0, 0), (2_000 * MS, 5_000 * MS), (5_000 * MS, 0), (0, 5_000 * MS)] {
            for rate in [1.0, 0.9995, 1.0005] {
                let checks = checks(rate, there, back);
                assert!(
                    checks.iter().all(|check| check.refusal().is_none() && !check.jumped()),
                    "{checks:?}"
                );
            }
        }
    }

    #[test]
    fn a_machine_that_was_paused_while_it_measured_lacks_that_time() {
        let mut fit = ClockBounds::default();
        fit.hello(0, 5_000 * MS);
        fit.tell(100 * MS);
        let proven = |told_ns, proven_ns| Proven { told_ns, proven_ns, ..Proven::default() };
        let before = fit.proven(300 * MS, &proven(5_101 * MS, 5_299 * MS));
        assert!(!before.jumped(), "{before:?}");
        // A minute passes here, and half a second less there.
        fit.tell(60_300 * MS);
        let after = fit.proven(60_500 * MS, &proven(64_801 * MS, 65_000 * MS));
        assert!(after.jumped() && after.jump_ns.abs_diff(438 * MS) < 20 * MS, "{after:?}");
    }

    #[test]
    fn a_standstill_that_is_known_is_no_wrong_rate() {
        let mut fit = ClockBounds::default();
        fit.hello(0, 0);
        let proven = |told_ns, proven_ns| Proven { told_ns, proven_ns, ..Proven::default() };
        let mut at = [300 * MS, 500 * MS];
        for paused in [0, 8_000 * MS, 0, 20_000 * MS] {
            // Ten seconds here, during which the clock stood still for `paused`.
            at = at.map(|at| at + 10_000 * MS + paused);
            fit.stood(paused);
            let there = at.map(|at| at - fit.stood);
            fit.tell(at[0]);
            let check = fit.proven(at[1], &proven(there[0], there[1]));
            assert!(check.refusal().is_none() && !check.jumped(), "{paused}: {check:?}");
        }
    }

    #[test]
    fn what_does_not_say_when_it_was_told_says_nothing_of_its_clock() {
        let mut fit = ClockBounds::default();
        fit.hello(5, 5);
        fit.tell(9 * MS);
        assert_eq!(fit.proven(70 * MS, &Proven::default()), ClockCheck::default());
    }
}
