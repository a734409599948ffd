//! The checks of the clock of a measurement: a latency is no better than its clock.

use serde::{Deserialize, Serialize};

use crate::duration::Nanos;
use crate::number::float;

/// The coarsest clock that measures latencies, in ns.
pub const COARSEST_NS: u64 = 1_000;
/// The largest jump of another clock that leaves a measurement whole, in ns.
pub const LARGEST_JUMP_NS: u64 = 10_000_000;

/// The checks of a clock. A property that could not be found out is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockCheck {
    /// The smallest step that it makes, in ns; where each reading differs from the one before, at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ns: Option<u64>,
    /// Whether readings in turn were equal, so that the step is its own and not what a reading takes.
    #[serde(skip_serializing_if = "is_false")]
    pub stands: bool,
    /// Its rate against other clocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<Rate>,
    /// The times at which it stood still while it was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
    /// The largest jump of CLOCK_BOOTTIME or CLOCK_REALTIME against it while it was measured, in ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub jump_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way to ask")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way to ask")]
const fn is_false(word: &bool) -> bool {
    !*word
}

/// Limit of the holes that are reported of one clock.
pub const MOST_HOLES: usize = 64;

/// A time at which a clock stood still: the environment that measured with it was suspended or paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// When, on that clock, in ns since the measurement began; to the length of a tick.
    pub at_ns: u64,
    /// How long, in ns, as far as the arrival of ticks tells.
    pub length_ns: u64,
}

/// How fast a clock runs against another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The other one: `the TSC's 2200 MHz (CPUID 15h)`.
    pub against: String,
    /// The least that it can be, in parts per million of the other one.
    pub least_ppm: u64,
    /// The most.
    pub most_ppm: u64,
    /// How far it may be from 1000000 before it is called wrong.
    pub within_ppm: u64,
}

/// A whole, in parts per million.
const WHOLE: u64 = 1_000_000;

impl Rate {
    /// Whether the clock certainly runs at another rate.
    #[must_use]
    pub const fn is_wrong(&self) -> bool {
        let within = self.within_ppm;
        self.most_ppm.saturating_add(within) < WHOLE || self.least_ppm > WHOLE.saturating_add(within)
    }
}

impl ClockCheck {
    /// Why it cannot be used to measure; `None`: no fault is known.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        if let Some(step) = self.step_ns.filter(|step| self.stands && *step > COARSEST_NS) {
            return Some(format!("its clock moves in steps of {}", Nanos(step)));
        }
        let wrong = self.rates.iter().find(|rate| rate.is_wrong())?;
        let (ppm, word) = match wrong.most_ppm < WHOLE {
            true => (wrong.most_ppm, "less"),
            false => (wrong.least_ppm, "more"),
        };
        Some(format!(
            "its clock runs at {:.2} of the rate of {}, or {word}",
            float(ppm) / float(WHOLE),
            wrong.against
        ))
    }

    /// Whether another clock jumped so far that the measurement may have a hole in it.
    #[must_use]
    pub const fn jumped(&self) -> bool {
        self.jump_ns > LARGEST_JUMP_NS
    }

    /// How long it stood still between two of its times, in ns; both since the measurement began.
    #[must_use]
    pub fn stood_between(&self, from_ns: u64, at_ns: u64) -> u64 {
        // A file from another source may name any number of holes.
        let known = self.holes.iter().take(MOST_HOLES);
        let before = known.filter(|hole| hole.at_ns >= from_ns && hole.at_ns < at_ns);
        before.fold(0, |sum: u64, hole| sum.saturating_add(hole.length_ns))
    }

    /// Adds checks made elsewhere, or later.
    pub fn add(&mut self, other: Self) {
        // A clock is as coarse as it was at its worst.
        if other.step_ns.is_some() && (other.stands, other.step_ns) >= (self.stands, self.step_ns) {
            (self.step_ns, self.stands) = (other.step_ns, other.stands);
        }
        for rate in other.rates {
            match self.rates.iter_mut().find(|known| known.against == rate.against) {
                // One that was wrong once stays so.
                Some(known) if known.is_wrong() => {}
                Some(known) => *known = rate,
                None => self.rates.push(rate),
            }
        }
        self.holes.extend(other.holes);
        self.holes.truncate(MOST_HOLES);
        self.jump_ns = self.jump_ns.max(other.jump_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(least_ppm: u64, most_ppm: u64) -> Rate {
        Rate { against: "another".into(), least_ppm, most_ppm, within_ppm: 20_000 }
    }

    #[test]
    fn a_clock_in_steps_of_4_ms_or_at_another_rate_is_refused() {
        let clock = |step_ns, stands| ClockCheck { step_ns: Some(step_ns), stands, ..ClockCheck::default() };
        assert_eq!(clock(4_000_000, true).refusal().unwrap(), "its clock moves in steps of 4ms");
        assert_eq!(clock(1_000, true).refusal(), None);
        assert_eq!(
            clock(5_000, false).refusal(),
            None,
            "a reading takes that long, nothing is said of its steps"
        );
        let at = |rate| ClockCheck { rates: vec![rate], ..ClockCheck::default() };
        assert_eq!(
            at(rate(500_000, 500_100)).refusal().unwrap(),
            "its clock runs at 0.50 of the rate of another, or less"
        );
        assert!(
            at(rate(9_990_000, 10_000_000))
                .refusal()
                .unwrap()
                .contains("at 9.99 of the rate of another, or more")
        );
        assert_eq!(at(rate(0, 1_000_000)).refusal(), None, "it may be right");
        assert_eq!(at(rate(985_000, 1_015_000)).refusal(), None);
        let most = Rate { within_ppm: u64::MAX, ..rate(u64::MAX, u64::MAX) };
        assert_eq!(at(most).refusal(), None, "no number that somebody says is too large");
    }

    #[test]
    fn what_stood_still_before_a_moment_is_summed_up_and_no_number_of_holes_is_too_large() {
        let hole = |at_ns, length_ns| Hole { at_ns, length_ns };
        let mut clock = ClockCheck { holes: vec![hole(10, 5), hole(20, 7)], ..ClockCheck::default() };
        assert_eq!([5, 10, 11, 20, 21].map(|at| clock.stood_between(0, at)), [0, 0, 5, 5, 12]);
        clock.holes = vec![hole(0, u64::MAX); 100_000];
        assert_eq!(clock.stood_between(0, 1), u64::MAX);
        clock.add(ClockCheck { holes: vec![hole(0, 1)], ..ClockCheck::default() });
        assert_eq!(clock.holes.len(), MOST_HOLES);
    }

    #[test]
    fn what_was_found_wrong_once_stays_so() {
        let mut clock = ClockCheck { rates: vec![rate(500_000, 500_100)], ..ClockCheck::default() };
        clock.add(ClockCheck {
            rates: vec![rate(999_000, 1_001_000)],
            jump_ns: 11_000_000,
            ..ClockCheck::default()
        });
        assert!(clock.refusal().is_some() && clock.jumped());
        let mut clock = ClockCheck { step_ns: Some(40), stands: false, ..ClockCheck::default() };
        clock.add(ClockCheck { step_ns: Some(4_000_000), stands: true, ..ClockCheck::default() });
        clock.add(ClockCheck { step_ns: Some(41), stands: false, ..ClockCheck::default() });
        assert!(clock.refusal().is_some());
    }
}
