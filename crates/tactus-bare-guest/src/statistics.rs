//! The value of repeats, as the probe has it (`tactus-model`, `outcome/median.rs`): their median, with the interval that
//! holds the true one with 95 % whatever their distribution. In whole numbers: this guest has no floating point.

use alloc::collections::BinaryHeap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::json::Object;

/// Repeats up to which the ranks of the interval are counted exactly.
const EXACT: u64 = 70;

/// A number of thousandths, as JSON has it.
pub fn thousandths(number: u64) -> String {
    alloc::format!("{}.{:03}", number / 1000, number % 1000)
}

/// The words of a value: of the repeats of an item, each in ps. It orders them.
pub fn value(object: Object, repeats: &mut Vec<u64>) -> Object {
    let middle = median(repeats);
    let ends = rank(repeats.len() as u64).map(|rank| (repeats[rank - 1], repeats[repeats.len() - rank]));
    let end = |end: Option<u64>| end.map_or_else(|| "null".into(), thousandths);
    let mut distances: Vec<u64> = repeats.iter().map(|repeat| repeat.abs_diff(middle)).collect();
    object
        .json("samples", repeats.len())
        .json("value", thousandths(middle))
        .json("low", end(ends.map(|ends| ends.0)))
        .json("high", end(ends.map(|ends| ends.1)))
        .json("min", thousandths(repeats.first().copied().unwrap_or(0)))
        .json("max", thousandths(repeats.last().copied().unwrap_or(0)))
        .json("deviation", thousandths(median(&mut distances)))
        .json("variation", thousandths(variation(repeats)))
}

/// The median. Orders the repeats: by a heap, whose code is a tenth of that of `sort`.
fn median(repeats: &mut Vec<u64>) -> u64 {
    *repeats = BinaryHeap::from(core::mem::take(repeats)).into_sorted_vec();
    let upper = repeats.len() / 2;
    let Some(high) = repeats.get(upper) else { return 0 };
    if repeats.len().is_multiple_of(2) { repeats[upper - 1].midpoint(*high) } else { *high }
}

/// The rank, from 1, of the repeats that bound the interval; `None` for fewer than six repeats.
fn rank(n: u64) -> Option<usize> {
    let rank = if n > EXACT {
        // n/2 - 0.98 sqrt(n), rounded down.
        (50 * n - (9604 * n - 1).isqrt() - 1) / 100
    } else {
        // The largest rank so that no more than 1/40 of all 2^n outcomes have fewer below the median.
        let (mut outcomes, mut below, mut rank) = (1_u128, 0, 0);
        while 40 * (below + outcomes) <= 1 << n {
            below += outcomes;
            outcomes = outcomes * u128::from(n - rank) / u128::from(rank + 1);
            rank += 1;
        }
        rank
    };
    (rank > 0).then_some(rank as usize)
}

/// The standard deviation over the mean, in thousandths.
fn variation(repeats: &[u64]) -> u64 {
    let n = repeats.len() as u128;
    let sum: u128 = repeats.iter().copied().map(u128::from).sum();
    if n < 2 || sum == 0 {
        return 0;
    }
    // Of n times each, so that the mean is a whole number.
    let squares: u128 = repeats
        .iter()
        .map(|repeat| (u128::from(*repeat) * n).abs_diff(sum))
        .map(|d| d / n)
        .map(|d| d * d)
        .sum();
    let deviation = (squares / (n - 1)).isqrt();
    u64::try_from(deviation * 1000 * n / sum).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_published_tables() {
        // J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, appendix A.
        for (n, j) in
            [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (25, 8), (30, 10), (50, 18), (70, 27)]
        {
            assert_eq!(rank(n), Some(j), "{n}");
        }
        assert!((0..6).all(|n| rank(n).is_none()));
        assert_eq!((rank(100), rank(10_000)), (Some(40), Some(4902)));
    }

    #[test]
    fn a_value_is_a_median_with_what_is_around_it() {
        let mut repeats: Vec<u64> = (0..=100).rev().map(|n| n * 1000).collect();
        let words = value(Object::new(), &mut repeats).end();
        let told: serde_json::Value = serde_json::from_str(&words).unwrap();
        for (name, expected) in [
            ("samples", 101.0),
            ("value", 50.0),
            ("low", 39.0),
            ("high", 61.0),
            ("min", 0.0),
            ("max", 100.0),
            ("deviation", 25.0),
            ("variation", 0.586),
        ] {
            assert_eq!(told[name].as_f64(), Some(expected), "{name}");
        }
        let told: serde_json::Value =
            serde_json::from_str(&value(Object::new(), &mut vec![1500, 2501]).end()).unwrap();
        assert_eq!((told["value"].as_f64(), &told["low"]), (Some(2.0), &serde_json::Value::Null));
    }

    #[test]
    fn the_coefficient_of_variation_is_that_of_a_sample() {
        // Mean 5, sum of squares 32 of 8: sqrt(32/7)/5 = 0.4276.
        assert_eq!(variation(&[2, 4, 4, 4, 5, 5, 7, 9].map(|n| n * 1_000_000)), 427);
        assert_eq!([variation(&[]), variation(&[3]), variation(&[0, 0])], [0; 3]);
    }
}
