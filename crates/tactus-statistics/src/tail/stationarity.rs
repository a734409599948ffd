//! Whether block maxima are practically independent draws from one distribution: every bound supposes that.
//!
//! Four tests, each for another kind of failure, on normal scores of the ranks, so that heavy tails weaken
//! none of them:
//!
//! - that of Ljung and Box (Biometrika 65, 1978), of ten lags: values depend on those before;
//! - that of Kwiatkowski, Phillips, Schmidt and Shin (Journal of Econometrics 54, 1992), for a level, without
//!   lags: values drift, or have long quiet and noisy times;
//! - runs of the largest tenth: they cluster;
//! - the halves, by the rank sum (Mann and Whitney, 1947): the second half differs from the first.
//!
//! Runs and ranks have exact distributions. Those of the other two under permutations are tabulated
//! ([`super::null`]): asymptotic ones err too often.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::factorial::ln_binomial;
use tactus_model::number::{float, whole};

use super::null;

/// Lags of the first test.
pub const LAGS: usize = 10;
/// The part of all blocks whose runs are counted.
const LARGEST: f64 = 0.1;

/// The kind of failure that a test looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Correlation.
    Correlation,
    /// Drift.
    Drift,
    /// Clusters of large values.
    Clusters,
    /// Another half.
    Halves,
}

impl Against {
    /// The test by its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Correlation => "Ljung-Box, 10 lags",
            Self::Drift => "KPSS, level",
            Self::Clusters => "runs of the largest tenth",
            Self::Halves => "halves",
        }
    }
}

/// How a test went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// Against what.
    pub against: Against,
    /// Its statistic.
    pub statistic: f64,
    /// The chance of as much or more, were the blocks independent and of one distribution.
    pub p: f64,
}

/// All four tests of some maxima, in order of time.
#[must_use]
pub fn tests(maxima: &[f64]) -> [Tested; 4] {
    let scores = normal_scores(maxima);
    let (q, eta) = (ljung_box(&scores, LAGS), kpss(&scores));
    let (runs, of_runs) = runs(maxima);
    let (z, of_halves) = halves(maxima);
    let tested = |against, statistic, p| Tested { against, statistic, p };
    [
        tested(Against::Correlation, q, null::ljung_box_p(q, maxima.len())),
        tested(Against::Drift, eta, null::kpss_p(eta, maxima.len())),
        tested(Against::Clusters, runs, of_runs),
        tested(Against::Halves, z, of_halves),
    ]
}

/// Ranks from 1; of equal values the mean of theirs.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for same in order.chunk_by(|one, other| values[*one].total_cmp(&values[*other]).is_eq()) {
        let rank = float(before) + f64::midpoint(float(same.len() as u64), 1.0);
        same.iter().for_each(|at| ranks[*at] = rank);
        before += same.len() as u64;
    }
    ranks
}

/// The normal quantiles at the ranks of values (B. L. van der Waerden, 1952).
pub fn normal_scores(values: &[f64]) -> Vec<f64> {
    let n = float(values.len() as u64);
    let normal = Normal::standard();
    ranks(values).into_iter().map(|rank| normal.inverse_cdf(rank / (n + 1.0))).collect()
}

/// The statistic of Ljung and Box.
pub fn ljung_box(values: &[f64], lags: usize) -> f64 {
    let n = float(values.len() as u64);
    let mean = values.iter().sum::<f64>() / n;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let all: f64 = centred.iter().map(|value| value * value).sum();
    let of = |lag: usize| -> f64 {
        let r = centred.iter().zip(&centred[lag..]).map(|(one, later)| one * later).sum::<f64>() / all;
        r * r / (n - float(lag as u64))
    };
    if all <= 0.0 { 0.0 } else { n * (n + 2.0) * (1..=lags.min(values.len() - 1)).map(of).sum::<f64>() }
}

/// The statistic of Kwiatkowski, Phillips, Schmidt and Shin for a level, without lags.
pub fn kpss(values: &[f64]) -> f64 {
    let n = float(values.len() as u64);
    let mean = values.iter().sum::<f64>() / n;
    let (mut sum, mut squares, mut all) = (0.0, 0.0, 0.0);
    for value in values {
        let own = value - mean;
        sum += own;
        squares += sum * sum;
        all += own * own;
    }
    if all <= 0.0 { 0.0 } else { squares / (n * all) }
}

/// The number of runs that the largest tenth forms, and the chance of so few. In random order `k` of `n`
/// values form `r` runs with the probability C(k-1, r-1) C(n-k+1, r) / C(n, k) (A. M. Mood, 1940).
pub fn runs(values: &[f64]) -> (f64, f64) {
    let n = values.len() as u64;
    let k = whole((LARGEST * float(n)).floor());
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(threshold) = usize::try_from(n - k).ok().filter(|_| k > 0).and_then(|at| sorted.get(at)) else {
        return (0.0, 1.0);
    };
    let is_large: Vec<bool> = values.iter().map(|value| value >= threshold).collect();
    let k = is_large.iter().filter(|large| **large).count() as u64;
    let found = is_large.chunk_by(|one, other| one == other).filter(|run| run[0]).count() as u64;
    let of = |r: u64| (ln_binomial(k - 1, r - 1) + ln_binomial(n - k + 1, r) - ln_binomial(n, k)).exp();
    (float(found), (1..=found).map(of).sum::<f64>().min(1.0))
}

/// How far apart the rank sums of the halves are, in standard deviations, and the chance of that on either
/// side.
pub fn halves(values: &[f64]) -> (f64, f64) {
    let half = values.len() / 2;
    let ranks = ranks(values);
    let (m, n) = (float(half as u64), float((values.len() - half) as u64));
    let u = ranks[..half].iter().sum::<f64>() - m * (m + 1.0) / 2.0;
    let all = m + n;
    let mut sorted = ranks;
    sorted.sort_by(f64::total_cmp);
    let tie = |same: &[f64]| {
        let t = float(same.len() as u64);
        t * t * t - t
    };
    let ties: f64 = sorted.chunk_by(|one, other| one.total_cmp(other).is_eq()).map(tie).sum();
    let variance = m * n / 12.0 * ((all + 1.0) - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return (0.0, 1.0);
    }
    let away = ((u - m * n / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    (away, 2.0 * Normal::standard().cdf(-away))
}
