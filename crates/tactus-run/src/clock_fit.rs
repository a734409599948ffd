//! The clock of an environment against this machine's, by the arrival of its ticks.
//!
//! A tick arrives when it has ended, or later. Of all lines below the points (end, arrival) the one is taken that they
//! lie closest to: the edge of their lower hull over their mean (S. B. Moon, P. Skelly, D. Towsley, "Estimation and
//! removal of clock skew from network delay measurements", INFOCOM 1999). It uses the ticks that came soonest and none
//! that was held up.

use tactus_model::bundle::ClockFit;
use tactus_model::number::{float, whole};

/// How late even the ticks that came soonest may be, in ns: 5 ms were seen, of an emulated guest under load.
const LATE_NS: u64 = 20_000_000;
/// The same where they pass a channel of few bytes a second.
const LATE_NARROW_NS: u64 = 100_000_000;

/// The ticks of a measurement, as far as they matter.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// The lower hull of (end, arrival), by rising ends.
    hull: Vec<(u64, u64)>,
    /// Sum and number of the ends.
    sum: u128,
    count: u128,
}

impl Arrivals {
    /// A tick that ended `at_ns` after the beginning has arrived at `now` of this machine's clock, in ns.
    pub fn add(&mut self, at_ns: u64, now: u64) {
        self.sum += u128::from(at_ns);
        self.count += 1;
        // Ticks of several series end at nearly the same time; a later one that ended earlier says nothing new.
        if let Some((last, arrival)) = self.hull.last().copied()
            && at_ns <= last
        {
            if at_ns < last || now >= arrival {
                return;
            }
            self.hull.pop();
        }
        while let [.., one, two] = *self.hull.as_slice()
            && !turns_left(one, two, (at_ns, now))
        {
            self.hull.pop();
        }
        self.hull.push((at_ns, now));
    }

    /// The line; none where there was no tick. `narrow`: they passed a channel of few bytes a second.
    #[must_use]
    pub fn fit(&self, narrow: bool) -> Option<ClockFit> {
        let late_ns = if narrow { LATE_NARROW_NS } else { LATE_NS };
        let (first, last) = (*self.hull.first()?, *self.hull.last()?);
        let mean = u64::try_from(self.sum / self.count.max(1)).unwrap_or(u64::MAX);
        let over = self.hull.windows(2).find(|pair| mean <= pair[1].0);
        let (at, arrival) = first;
        let Some(&[from, to]) = over.and_then(|pair| pair.first_chunk()) else {
            return Some(ClockFit {
                began_ns: arrival.saturating_sub(at),
                ppm: 0.0,
                span_ns: 0,
                late_ns,
                error_ns: None,
            });
        };
        let rate = (float(to.1) - float(from.1)) / (float(to.0) - float(from.0));
        let began_ns = whole((float(from.1) - float(from.0) * rate).max(0.0));
        // To a thousandth: more digits say nothing, and do not come back from JSON as they were.
        let ppm = ((rate - 1.0) * 1e9).round() / 1e3;
        Some(ClockFit { began_ns, ppm, span_ns: last.0 - first.0, late_ns, error_ns: None })
    }
}

/// Whether the way over these three bends upwards at the second.
fn turns_left(one: (u64, u64), two: (u64, u64), three: (u64, u64)) -> bool {
    let step = |from: (u64, u64), to: (u64, u64)| {
        (i128::from(to.0) - i128::from(from.0), i128::from(to.1) - i128::from(from.1))
    };
    let (a, b) = (step(one, two), step(two, three));
    a.0.saturating_mul(b.1) > a.1.saturating_mul(b.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * S;

    /// Delays of ticks, in ns: mostly short, some long, never nothing.
    fn delays(seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = state >> 40;
            300_000 + if draw.is_multiple_of(5) { draw * 4 } else { draw / 16 }
        })
    }

    /// Ticks of a clock that is slower than this machine's by `ppm` parts per million.
    fn ticks(seconds: u64, ppm: f64, seed: u64) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (n, delay) in (1..=seconds).zip(delays(seed)) {
            arrivals.add(n * S, HOUR + whole(float(n * S) * (1.0 + ppm / 1e6)) + delay);
        }
        arrivals
    }

    #[test]
    fn a_clock_that_drifts_is_followed_for_hours() {
        for ppm in [-50.0, 0.0, 50.0, 200.0] {
            let fit = ticks(7200, ppm, 3).fit(false).unwrap();
            assert!((fit.ppm - ppm).abs() < 1.0 && fit.is_even(), "{ppm}: {fit:?}");
            for at in [0, 3600 * S, 7200 * S] {
                let true_ns = float(HOUR) + float(at) * (1.0 + ppm / 1e6);
                let late = fit.outside(float(at)) - true_ns;
                assert!((-1_000.0..5_000_000.0).contains(&late), "{ppm} ppm at {at}: {late}");
                assert!((fit.inside(fit.outside(float(at))) - float(at)).abs() < 1_000.0);
            }
        }
    }

    #[test]
    fn an_uneven_clock_is_told_and_a_short_run_does_not_accuse_a_good_one() {
        assert!(!ticks(60, 5_000.0, 4).fit(false).unwrap().is_even());
        assert!(!ticks(600, -700.0, 4).fit(false).unwrap().is_even());
        for seed in 0..200 {
            assert!(ticks(8, 30.0, seed).fit(false).unwrap().is_even(), "{seed}");
        }
    }

    #[test]
    fn a_tick_alone_gives_a_beginning_and_no_rate_and_none_gives_nothing() {
        assert_eq!(Arrivals::default().fit(false), None);
        let mut one = Arrivals::default();
        one.add(S, 11 * S);
        // Another series of the same tick.
        one.add(S, 10 * S);
        let fit = one.fit(true).unwrap();
        assert_eq!((fit.began_ns, fit.span_ns, fit.is_even()), (9 * S, 0, false));
    }

    #[test]
    fn no_tick_arrives_before_it_ended() {
        for seed in 0..100 {
            let (mut arrivals, mut all) = (Arrivals::default(), Vec::new());
            let mut at = 0;
            for (step, delay) in delays(seed).zip(delays(seed + 1_000)).take(60) {
                at += step * 40;
                arrivals.add(at, HOUR + at + delay);
                all.push((at, HOUR + at + delay));
            }
            let fit = arrivals.fit(false).unwrap();
            for (at, arrival) in all {
                assert!(fit.outside(float(at)) <= float(arrival) + 10_000.0, "{seed}: {fit:?}");
            }
        }
    }
}
