//! How an instrument proves itself: the values of its threads during a known fault, and the checks of its clock.

use serde::{Deserialize, Serialize};

use crate::clock::ClockCheck;
use crate::latency::{HIGHEST_NS, Latency, Sparse, Totals};
use crate::series::SeriesKey;

/// The times at which a probe was told to prove its instrument and at which it had, CLOCK_MONOTONIC in ns, and its
/// checks of that clock. The host side's clock gives these times as well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proven {
    /// When it was told; 0: it does not say.
    pub told_ns: u64,
    /// When it had.
    pub proven_ns: u64,
    /// The checks of its clock.
    pub clock: ClockCheck,
}

/// The counts of a series in a stretch of time, in the form of a tick's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Exact.
    pub total: Totals,
    /// Histogram.
    pub counts: Sparse,
}

impl Counted {
    /// The largest value of the histogram, in ns; `None`: it is empty, or lacks some of the counts.
    #[must_use]
    // Not copied to each of its callers: the probe is small.
    #[inline(never)]
    pub fn largest(&self) -> Option<u64> {
        let mut latency = Latency { totals: self.total, ..Latency::new() };
        self.counts.add_to(&mut latency.raw).ok()?;
        (latency.totals.cycles > 0 && latency.lost() == 0 && latency.raw.len() == latency.totals.cycles)
            .then(|| latency.raw.max().min(latency.totals.max_ns))
    }
}

/// The values of a measuring thread during a known fault, counted and sent like measured ones: the receiver judges the
/// decoded values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The measuring activity.
    pub activity: u32,
    /// The thread.
    pub series: SeriesKey,
    /// Which of the controls it is.
    pub stage: Stage,
    /// The word of the plan for the injected fault.
    pub by: String,
    /// How long the fault held the CPU while the thread was due, in ns.
    pub injected_ns: u64,
    /// How often it had to be tried.
    pub attempts: u32,
    /// The values of the thread just before, without the fault.
    pub quiet: Counted,
    /// Its values with the fault.
    pub held: Counted,
}

impl Trial {
    /// The control that it comes to.
    #[must_use]
    // Not copied to each of its callers: the probe is small.
    #[inline(never)]
    pub fn control(&self) -> Control {
        let control = Control {
            activity: self.activity,
            series: self.series.clone(),
            injected_ns: self.injected_ns,
            seen_ns: self.held.largest().unwrap_or(0),
            // Noise that is not known may be any.
            noise_ns: self.quiet.largest().unwrap_or(u64::MAX),
            passed: false,
            attempts: self.attempts,
            by: self.by.clone(),
            stage: self.stage,
        };
        Control { passed: control.is_seen(), ..control }
    }
}

/// Which of the controls of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Before it: of the size that the plan gives it.
    #[default]
    Before,
    /// Before it: so short that the place may be too noisy for it.
    Fine,
    /// After it.
    After,
}

/// A known fault, and the instrument's view of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// The measuring activity.
    pub activity: u32,
    /// The thread that should have seen it.
    pub series: SeriesKey,
    /// How long the fault really held the CPU while the thread was due, in ns.
    pub injected_ns: u64,
    /// The largest latency that arrived of the thread then, in ns.
    pub seen_ns: u64,
    /// The largest latency of the same thread just before, without the fault: the noise, in ns; `u64::MAX` if it is
    /// unknown.
    pub noise_ns: u64,
    /// Whether it was seen at its size ([`Control::is_seen`]).
    pub passed: bool,
    /// How often it had to be tried.
    pub attempts: u32,
    /// The word of the plan for the injected fault.
    #[serde(default = "hog")]
    pub by: String,
    /// Which of the controls it was.
    #[serde(default)]
    pub stage: Stage,
}

impl Control {
    /// How long the fault held the CPU; `None`: it was not made.
    #[must_use]
    pub fn injected(&self) -> Option<u64> {
        known(self.injected_ns)
    }

    /// The latency seen from it; `None`: no value arrived, or it was not made.
    #[must_use]
    pub fn seen(&self) -> Option<u64> {
        known(self.seen_ns)
    }

    /// The noise; `None`: it is unknown.
    #[must_use]
    pub fn noise(&self) -> Option<u64> {
        (self.noise_ns <= HIGHEST_NS).then_some(self.noise_ns)
    }

    /// Whether the noise is so low that a fault of this size must stand out.
    #[must_use]
    pub const fn is_resolvable(&self) -> bool {
        self.noise_ns <= self.injected_ns / 4
    }

    /// Whether the noise is more than half of the injected latency, so that the seen value proves nothing.
    #[must_use]
    pub const fn is_drowned(&self) -> bool {
        self.noise_ns > self.injected_ns / 2
    }

    /// Whether the seen latency matches the injected one. It must be at least nine tenths of it, and must not exceed it
    /// by more than a tenth or the noise, whichever is more. The noise may be at most half of the injected latency. The
    /// judge calls this instead of trusting `passed`.
    #[must_use]
    pub const fn is_seen(&self) -> bool {
        let tenth = self.injected_ns / 10;
        let above = if self.noise_ns > tenth { self.noise_ns } else { tenth };
        self.injected_ns > 0
            && !self.is_drowned()
            && self.seen_ns >= self.injected_ns - tenth
            && self.seen_ns - (self.injected_ns - tenth) <= tenth + above
    }
}

/// A length of a fault: 0, or longer than any histogram holds, stands for an unknown length.
fn known(ns: u64) -> Option<u64> {
    (1..=HIGHEST_NS).contains(&ns).then_some(ns)
}

fn hog() -> String {
    "hog".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_judged_by_the_histogram_that_arrived_and_not_by_its_totals_alone() {
        let counted = |values: &[u64]| {
            let mut latency = Latency::new();
            values.iter().for_each(|value| latency.record(*value, 0));
            Counted { total: latency.totals, counts: Sparse::of(&latency.raw) }
        };
        let series = SeriesKey { cpu: 0, thread: 0, priority: 95, kind: "thread".into() };
        let (quiet, held) = (counted(&[4_000, 9_000]), counted(&[5_000, 1_004_321]));
        let good = Trial {
            activity: 0,
            series,
            stage: Stage::Before,
            by: hog(),
            injected_ns: 1_000_000,
            attempts: 1,
            quiet,
            held,
        };
        let control = good.control();
        assert_eq!((control.seen_ns, control.passed), (1_004_321, true));
        assert!(control.noise_ns.abs_diff(9_000) <= 9, "{control:?}");
        // A histogram that lost the very sample, one that scaled it, and one that is not there.
        let total = good.held.total;
        for counts in [counted(&[5_000]).counts, counted(&[5_000, 502_000]).counts, Sparse::default()] {
            let control = Trial { held: Counted { total, counts }, ..good.clone() }.control();
            assert!(!control.passed, "{control:?}");
        }
        let unknown = Trial { quiet: Counted::default(), ..good };
        assert!(!unknown.control().passed, "without a word of the noise nothing is proven");
    }

    #[test]
    fn a_control_is_seen_within_a_tenth_or_the_noise_where_the_place_is_quieter_than_half_of_it() {
        let seen = |injected_ns, seen_ns, noise_ns| {
            let series = SeriesKey { cpu: 0, thread: 0, priority: 95, kind: "thread".into() };
            // Whatever is said of it.
            let proven = true;
            let control = Control {
                activity: 0,
                series,
                injected_ns,
                seen_ns,
                noise_ns,
                passed: proven,
                attempts: 1,
                by: hog(),
                stage: Stage::Before,
            };
            control.is_seen()
        };
        assert!(seen(1_000_000, 1_030_000, 40_000) && seen(1_000_000, 900_000, 0));
        assert!(seen(1_000_000, 1_450_000, 450_000), "the place is that loud");
        assert!(!seen(1_000_000, 1_200_000, 40_000));
        assert!(!seen(1_000_000, 0, 40_000), "1 ms seen as nothing");
        assert!(!seen(1_000_000, 14_000_000, 40_000), "1 ms seen as 14 ms");
        assert!(!seen(1_000_000, 2_700_000, 3_000_000), "3 ms of noise prove anything");
        assert!(!seen(0, 0, 0), "nothing was injected");
        assert!(!seen(1_000_000, u64::MAX, u64::MAX));
    }
}
