//! Whether values rise or fall over time, and how fast.
//!
//! Mann and Kendall's test: of all pairs of values, how many more rise than fall (H. B. Mann, "Nonparametric
//! tests against trend", Econometrica 13, 1945; M. G. Kendall, "Rank Correlation Methods", with the
//! correction for ties). It supposes nothing of the values' distribution. Values that follow their neighbours
//! count less: the variance grows by the factor by which the effective number of values is smaller. The slope
//! is the median of those of all pairs (H. Theil, 1950; P. K. Sen, 1968).

use statrs::distribution::{ContinuousCDF, Normal};
use tactus_model::number::float;
use tactus_statistics::{effective_size, median};

/// A trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Change of the value in a unit of time.
    pub slope: f64,
    /// The chance of this many pairs or more in one direction without a trend; two-sided.
    pub chance: f64,
}

/// The trend of values at their times; `None` with fewer than four, or if all times are equal.
#[must_use]
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 4 {
        return None;
    }
    let (mut sum, mut slopes) = (0.0_f64, Vec::with_capacity(n * (n - 1) / 2));
    for (at, (time, value)) in points.iter().enumerate() {
        for (later, now) in &points[at + 1..] {
            if now > value {
                sum += 1.0;
            } else if now < value {
                sum -= 1.0;
            }
            if later > time {
                slopes.push((now - value) / (later - time));
            }
        }
    }
    let slope = median(slopes)?;
    let count = float(n as u64);
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|one, other| one.total_cmp(other).is_eq())
        .map(|alike| term(float(alike.len() as u64)))
        .sum();
    let variance = (term(count) - ties) / 18.0;
    if variance <= 0.0 {
        return Some(Trend { slope, chance: 1.0 });
    }
    // The residuals of the trend show how much values follow their neighbours: the trend itself looks like
    // that.
    let rest: Vec<f64> = points.iter().map(|(time, value)| value - slope * time).collect();
    let effective = effective_size(&rest).clamp(1.0, count);
    let spread = (variance * count / effective).sqrt();
    // With a correction for continuity: the sum goes in steps of two.
    let z = ((sum.abs() - 1.0) / spread).max(0.0);
    Some(Trend { slope, chance: (2.0 * Normal::standard().sf(z)).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            float(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) / float(1 << 53)
        }
    }

    #[test]
    fn values_that_rise_have_a_trend_and_its_slope_is_not_that_of_an_outlier() {
        let mut points: Vec<(f64, f64)> =
            (0..30_u32).map(|n| (f64::from(n), 10.0 + 0.5 * f64::from(n))).collect();
        points[4].1 = 900.0;
        let found = trend(&points).unwrap();
        assert!((found.slope - 0.5).abs() < 1e-9 && found.chance < 1e-6, "{found:?}");
        assert_eq!(trend(&points[..3]), None);
        let same = vec![(1.0, 5.0); 20];
        assert!(trend(&same).is_none(), "all at one time");
        let level: Vec<(f64, f64)> = (0..20_u32).map(|n| (f64::from(n), 5.0)).collect();
        assert!((trend(&level).unwrap().chance - 1.0).abs() < 1e-12);
    }

    /// At 5 %, at most 5 % of noises may be called a trend, whether values are independent or follow their
    /// neighbours, but for the error of this test.
    #[test]
    fn noise_is_called_a_trend_as_rarely_as_promised() {
        for follows in [0.0, 0.4] {
            let (mut random, mut wrong) = (Random(4_711), 0);
            for _ in 0..2_000 {
                let mut before = 0.0;
                let points: Vec<(f64, f64)> = (0..60_u32)
                    .map(|n| {
                        before = follows * before + random.unit();
                        (f64::from(n), before)
                    })
                    .collect();
                wrong += i32::from(trend(&points).unwrap().chance <= 0.05);
            }
            // 5 % are 100; of values that follow each other the correction is rough, which the design note says.
            let most = if follows > 0.0 { 220 } else { 135 };
            assert!(wrong < most, "{wrong} of 2000 at {follows}");
        }
    }
}
