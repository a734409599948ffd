//! The median of repeats, with an interval that supposes nothing about how they are distributed.
//!
//! Of `n` independent samples the number below the true median is binomial with `p = 1/2`. So the median
//! lies between the `j`-th smallest and the `j`-th largest with the probability `1 - 2 P(Bin(n, 1/2) < j)`;
//! `j` is the largest for which that is 95 % or more (H. A. David, H. N. Nagaraja, Order Statistics, 3rd
//! edition, 2003, section 7.1). Beyond 70 samples `j = n/2 - 0.98 sqrt(n)`, rounded down, is the same to
//! within one rank (J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010,
//! section 2.2 and its appendix).

use crate::number::{float, whole};

/// The probability that the interval leaves out on each side.
const TAIL: f64 = 0.025;
/// Samples up to which ranks are counted exactly.
const EXACT: usize = 70;

/// The middle of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// Ends of its 95 % interval; `None`: fewer than six samples.
    pub interval: Option<(f64, f64)>,
    /// Smallest and largest sample.
    pub range: (f64, f64),
    /// Median of the samples' distances from the median.
    pub deviation: f64,
}

/// The median of samples that are numbers; `None` without samples. Sorts them.
#[must_use]
pub fn median(samples: &mut [f64]) -> Option<Median> {
    let value = middle(samples)?;
    let (first, last) = (*samples.first()?, *samples.last()?);
    let interval = rank(samples.len()).and_then(|j| {
        let (low, high) = (samples.get(j - 1)?, samples.get(samples.len() - j)?);
        Some((*low, *high))
    });
    let mut distances: Vec<f64> = samples.iter().map(|sample| (sample - value).abs()).collect();
    Some(Median { value, interval, range: (first, last), deviation: middle(&mut distances)? })
}

fn middle(samples: &mut [f64]) -> Option<f64> {
    samples.sort_unstable_by(f64::total_cmp);
    let upper = samples.len() / 2;
    let high = *samples.get(upper)?;
    let low = if samples.len().is_multiple_of(2) { *samples.get(upper - 1)? } else { high };
    Some(low.midpoint(high))
}

/// The rank, from 1, of the samples that bound the interval.
fn rank(n: usize) -> Option<usize> {
    let samples = float(u64::try_from(n).ok()?);
    if n > EXACT {
        return usize::try_from(whole((samples / 2.0 - 0.98 * samples.sqrt()).floor())).ok();
    }
    // P(Bin(n, 1/2) = k) from the one before, beginning with 2^-n.
    let (mut probability, mut below) = (0.5_f64.powi(i32::try_from(n).ok()?), 0.0);
    let (mut rank, mut k) = (0, 0.0);
    while below + probability <= TAIL {
        below += probability;
        rank += 1;
        probability *= (samples - k) / (k + 1.0);
        k += 1.0;
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_published_tables() {
        // Le Boudec, appendix A: n, j of the 95 % interval.
        for (n, j) in
            [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10), (50, 18), (70, 27)]
        {
            assert_eq!(rank(n), Some(j), "{n}");
        }
        assert!((0..6).all(|n| rank(n).is_none()));
        assert_eq!(rank(100), Some(40));
        assert_eq!(rank(10_000), Some(4902));
    }

    #[test]
    fn a_median_lies_within_its_interval_and_that_within_its_range() {
        let mut samples: Vec<f64> = (0..101).rev().map(f64::from).collect();
        let median = median(&mut samples).unwrap();
        assert_eq!((median.value, median.range, median.deviation), (50.0, (0.0, 100.0), 25.0));
        assert_eq!(median.interval, Some((39.0, 61.0)));
        assert_eq!(super::median(&mut [3.0, 1.0]).unwrap().value, 2.0);
        assert_eq!(super::median(&mut [3.0, 1.0]).unwrap().interval, None);
        assert_eq!(super::median(&mut []), None);
    }

    #[test]
    fn one_wild_sample_does_not_move_it() {
        let mut samples = [10.0, 10.0, 11.0, 9.0, 10.0, 10.0, 1e9];
        let median = median(&mut samples).unwrap();
        assert_eq!((median.value, median.deviation), (10.0, 0.0));
        assert_eq!(median.range.1, 1e9);
    }

    #[test]
    fn the_interval_of_few_and_of_many_samples_holds_the_true_median_as_often_as_it_says() {
        // A sequence without a pattern, of which the true median is 0.5.
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            float(state >> 11) / float(1 << 53)
        };
        for n in [9, 40, 200] {
            let held = (0..2_000).filter(|_| {
                let mut samples: Vec<f64> = (0..n).map(|_| next()).collect();
                let (low, high) = median(&mut samples).unwrap().interval.unwrap();
                low <= 0.5 && 0.5 <= high
            });
            let held = held.count();
            assert!(held >= 1_860, "{n}: {held} of 2000");
        }
    }
}
