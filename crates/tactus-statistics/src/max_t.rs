//! Many quantities that were measured in the same pairs of runs: which of them differ.
//!
//! The order within a pair was drawn at random. Without a difference each pair could equally have come out
//! the other way around, in all quantities at once. The test goes through all ways in which the pairs could
//! have come out, and notes the largest statistic among all quantities of each (P. H. Westfall, S. S. Young,
//! *Resampling-Based Multiple Testing*, 1993, section 2.3: maxT). A statistic above 95 % of these is a
//! difference. With 95 % a table contains no false difference, whatever the noise is and however the
//! quantities depend on each other.

use tactus_model::number::float;
use tactus_model::random::SplitMix64;

/// The difference of one quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simultaneous {
    /// Mean of its pairs' differences.
    pub estimate: f64,
    /// Half the width of the interval that holds together with those of all others.
    pub margin: f64,
    /// Pairs that it was measured in.
    pub pairs: usize,
}

impl Simultaneous {
    /// Whether the interval leaves out zero.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.estimate.abs() > self.margin
    }
}

/// Added to each standard error, in the unit of the differences (logarithms: a tenth of a per cent). Without
/// it, numbers that happen to be alike to the last digit would pass for certain (the "fudge factor" of V. G.
/// Tusher, R. Tibshirani, G. Chu, 2001).
const LEAST_ERROR: f64 = 0.001;
/// The most pairs of which all ways are gone through; for more pairs [`DRAWN`] ways are used.
const EXACT: usize = 14;
/// Ways that are drawn.
const DRAWN: usize = 8192;

/// Each quantity's difference: `quantities` has a value for each pair, `None` where it was not measured. `None` for a
/// quantity that was measured in too few pairs to say anything at this error; see [`least`].
#[must_use]
pub fn simultaneous(quantities: &[Vec<Option<f64>>], error: f64) -> Vec<Option<Simultaneous>> {
    let pairs = quantities.iter().map(Vec::len).max().unwrap_or(0);
    let usable = |values: &&Vec<Option<f64>>| values.iter().flatten().count() >= least(error);
    let kept: Vec<&Vec<Option<f64>>> = quantities.iter().filter(usable).collect();
    let mut largest: Vec<f64> = ways(pairs)
        .map(|way| kept.iter().map(|values| Statistic::of(values, &way).t().abs()).fold(0.0, f64::max))
        .collect();
    largest.sort_by(|a, b| b.total_cmp(a));
    let above = allowed(error, largest.len());
    let critical = largest.get(above).copied().unwrap_or(f64::INFINITY);
    let as_measured = vec![false; pairs];
    let of = |values: &Vec<Option<f64>>| {
        usable(&values).then(|| {
            let own = Statistic::of(values, &as_measured);
            Simultaneous { estimate: own.mean, margin: critical * own.error, pairs: own.count }
        })
    };
    quantities.iter().map(of).collect()
}

/// How many pairs it takes for anything to be shown at this error.
#[must_use]
pub fn least(error: f64) -> usize {
    (1..=EXACT).find(|pairs| allowed(error, 1 << (pairs - 1)) > 0).unwrap_or(EXACT)
}

/// How many of `ways` ways may have a statistic that is at least equal.
fn allowed(error: f64, ways: usize) -> usize {
    let share = error * float(ways as u64);
    (0..ways).take_while(|n| float(*n as u64 + 1) <= share).count()
}

/// Which pairs are turned around; the first way turns none of them. A way and its opposite have the same
/// statistic.
fn ways(pairs: usize) -> Box<dyn Iterator<Item = Vec<bool>>> {
    if pairs <= EXACT {
        let half = 1_u32 << pairs.saturating_sub(1);
        return Box::new((0..half).map(move |way| (0..pairs).map(|pair| way >> pair & 1 == 1).collect()));
    }
    let mut random = SplitMix64::new(1);
    let drawn = (1..DRAWN).map(move |_| (0..pairs).map(|_| random.draw() >> 63 == 1).collect());
    Box::new(std::iter::once(vec![false; pairs]).chain(drawn))
}

/// Mean over its standard error.
struct Statistic {
    mean: f64,
    error: f64,
    count: usize,
}

impl Statistic {
    fn of(values: &[Option<f64>], way: &[bool]) -> Self {
        let turned =
            || values.iter().zip(way).filter_map(|(value, turn)| value.map(|v| if *turn { -v } else { v }));
        let count = turned().count();
        let n = float(count as u64);
        let mean = turned().sum::<f64>() / n;
        let squares: f64 = turned().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n + LEAST_ERROR * LEAST_ERROR).sqrt();
        Self { mean, error, count }
    }

    fn t(&self) -> f64 {
        self.mean / self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// A table of a thing against itself: every run has a level, which some quantities share. A third of the
    /// tables is bursty, and some quantities have few different values.
    fn alike(random: &mut Random, quantities: usize, pairs: usize) -> Vec<Vec<Option<f64>>> {
        let bursty = random.unit() < 0.3;
        let levels: Vec<f64> = (0..pairs).map(|_| random.normal() * 0.02).collect();
        let mut quantity = |n: usize| -> Vec<Option<f64>> {
            let value = |level: &f64| {
                let own = random.normal() * 0.01;
                let burst = if bursty && random.unit() < 0.1 { random.normal() * 0.5 } else { 0.0 };
                let value = if n.is_multiple_of(2) { level + own } else { own } + burst;
                if n.is_multiple_of(5) { (value / 0.01).round() * 0.01 } else { value }
            };
            levels.iter().map(value).map(Some).collect()
        };
        (0..quantities).map(&mut quantity).collect()
    }

    #[test]
    fn a_table_of_a_thing_against_itself_shows_a_difference_as_rarely_as_promised() {
        let mut random = Random::new(7);
        let trials = 400;
        let shows = |_: &usize| {
            let found = simultaneous(&alike(&mut random, 30, 8), 0.05);
            assert!(found.iter().all(Option::is_some));
            found.into_iter().flatten().any(|one| one.is_shown())
        };
        let wrong = (0..trials).filter(shows).count();
        // 5 % of 400 are 20; 36 is four standard deviations more.
        assert!(wrong <= 36, "{wrong} of {trials}");
    }

    #[test]
    fn a_difference_of_a_few_deviations_is_shown_among_thirty_quantities_that_do_not_differ() {
        let mut random = Random::new(8);
        let mut found = 0;
        for _ in 0..50 {
            let mut table = alike(&mut random, 30, 8);
            table.push((0..8).map(|_| Some(0.06 + random.normal() * 0.01)).collect());
            let last = simultaneous(&table, 0.05).pop().flatten().unwrap();
            found += usize::from(last.is_shown());
            assert!(last.estimate - last.margin < last.estimate + last.margin);
        }
        assert!(found >= 40, "{found} of 50");
    }

    #[test]
    fn so_few_pairs_are_needed_as_can_come_out_alike_by_chance_rarely_enough() {
        for (error, pairs) in [(0.05, 6), (0.05 / 2.0, 7), (0.05 / 5.0, 8), (0.05 / 7.0, 9)] {
            assert_eq!(least(error), pairs, "{error}");
        }
        let five = vec![Some(1.0); 5];
        assert_eq!(simultaneous(&[five], 0.05), [None]);
        let six = simultaneous(&[vec![Some(1.0); 6]], 0.05)[0].unwrap();
        assert!(six.is_shown() && six.pairs == 6 && (six.estimate - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_missing_in_a_pair_is_left_out_and_what_is_missing_in_most_says_nothing() {
        let mut holes = vec![Some(0.5); 9];
        holes[3] = None;
        let mostly = [vec![Some(0.5); 3], vec![None; 6]].concat();
        let found = simultaneous(&[holes, mostly, Vec::new()], 0.05);
        assert_eq!(found[0].map(|one| (one.pairs, one.is_shown())), Some((8, true)));
        assert_eq!(found[1..], [None, None]);
        assert!(simultaneous(&[], 0.05).is_empty());
    }

    #[test]
    fn numbers_that_are_alike_to_the_last_digit_are_no_difference_and_many_pairs_take_no_time() {
        let mut table = alike(&mut Random::new(9), 30, 8);
        table.extend([vec![Some(0.0005); 8], vec![Some(0.0); 8]]);
        let same = simultaneous(&table, 0.05).split_off(30);
        assert!(same.into_iter().flatten().all(|one| !one.is_shown()));
        let many = simultaneous(&vec![vec![Some(0.1); 100]; 30], 0.05);
        assert!(many.into_iter().flatten().all(|one| one.is_shown()));
    }
}
