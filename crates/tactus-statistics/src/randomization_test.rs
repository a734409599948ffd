//! Whether something happens when a disturbance is made, where the moment of each was drawn at random.
//!
//! In each period the disturbance could have been made at any of several places, all equally likely. If it
//! does not reach the measurement, the measured values are the same whichever place was drawn. The drawn
//! place then has each place's score with the same chance, whatever the noise is and however its values
//! depend on each other (R. A. Fisher, "The Design of Experiments", 1935, chapter II; for scores E. J. G.
//! Pitman, "Significance tests which may be applied to samples from any populations", 1937). The sum of the
//! drawn scores therefore has a known distribution, which is computed exactly. For properties, which score 0
//! or 1, it is the Poisson binomial one.

use std::collections::BTreeMap;

use tactus_model::number::float;

/// The largest values of one period: one for each place at which the disturbance could have been made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stratum {
    /// By place.
    pub values: Vec<u64>,
    /// The place that was drawn.
    pub drawn: usize,
    /// Places so far apart or less have windows of time in common.
    pub reach: usize,
}

impl Stratum {
    /// The value where the disturbance was made.
    #[must_use]
    pub fn with(&self) -> u64 {
        self.values.get(self.drawn).copied().unwrap_or(0)
    }

    /// The values of places that have nothing in common with this one.
    pub fn apart(&self, place: usize) -> impl Iterator<Item = u64> {
        let far = move |(other, _): &(usize, &u64)| other.abs_diff(place) > self.reach;
        self.values.iter().enumerate().filter(far).map(|(_, value)| *value)
    }

    /// Whether a place stands out: its value is above all others of the period by this factor.
    #[must_use]
    pub fn stands_out(&self, place: usize, factor: f64) -> bool {
        let most = self.apart(place).max();
        let own = self.values.get(place).copied().unwrap_or(0);
        most.is_some_and(|most| own > 0 && float(own) > factor * float(most))
    }

    /// A place's value as a multiple of the typical one of those apart from it; 0 if there are no others.
    #[must_use]
    pub fn times_typical(&self, place: usize) -> f64 {
        let mut apart: Vec<u64> = self.apart(place).collect();
        apart.sort_unstable();
        let own = self.values.get(place).copied().unwrap_or(0);
        apart.get(apart.len() / 2).map_or(0.0, |middle| float(own) / float((*middle).max(1)))
    }
}

/// How often the drawn places have a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// The number of periods in which they have it.
    pub times: usize,
    /// The number to expect if nothing reaches the measurement.
    pub expected: f64,
    /// The chance of this number or more if nothing reaches the measurement.
    pub chance: f64,
}

/// How often the drawn places have a property.
#[must_use]
pub fn drawn(strata: &[Stratum], has: impl Fn(&Stratum, usize) -> bool) -> Drawn {
    let scores = scores(strata, |stratum, place| usize::from(has(stratum, place)));
    let times = strata.iter().filter(|stratum| has(stratum, stratum.drawn)).count();
    Drawn { times, expected: mean(&scores), chance: at_least(&scores, times) }
}

/// The chance that the scores of the drawn places add up to this sum or more if nothing reaches the
/// measurement. A score depends on the measured values, and not on which place was drawn.
#[must_use]
pub fn chance(strata: &[Stratum], score: impl Fn(&Stratum, usize) -> usize) -> f64 {
    let sum = strata.iter().map(|stratum| score(stratum, stratum.drawn)).sum();
    at_least(&scores(strata, score), sum)
}

/// The scores above 0 that a drawn place of one period may have, each with its chance.
struct Scores(BTreeMap<usize, f64>);

impl Scores {
    fn mean(&self) -> f64 {
        self.0.iter().map(|(score, chance)| chance * float(*score as u64)).sum()
    }

    /// The mean of e to the power of `times` times the score.
    fn moment(&self, times: f64) -> f64 {
        let more = |(score, chance): (&usize, &f64)| chance * (times * float(*score as u64)).exp_m1();
        1.0 + self.0.iter().map(more).sum::<f64>()
    }
}

fn mean(scores: &[Scores]) -> f64 {
    scores.iter().map(Scores::mean).fold(0.0, |all, own| all + own)
}

/// The scores of all periods that have any.
fn scores(strata: &[Stratum], score: impl Fn(&Stratum, usize) -> usize) -> Vec<Scores> {
    let own = |stratum: &Stratum| {
        let mut places: BTreeMap<usize, u64> = BTreeMap::new();
        for score in (0..stratum.values.len()).map(|place| score(stratum, place)).filter(|score| *score > 0) {
            *places.entry(score).or_default() += 1;
        }
        let all = float(stratum.values.len() as u64);
        Scores(places.into_iter().map(|(score, places)| (score, float(places) / all)).collect())
    };
    strata.iter().map(own).filter(|own| !own.0.is_empty()).collect()
}

/// The chance that independent scores add up to at least `sum`; where it is next to nothing, or more than half, a bound
/// above it.
fn at_least(scores: &[Scores], sum: usize) -> f64 {
    let wanted = float(sum as u64);
    if sum == 0 || wanted <= mean(scores) {
        return 1.0;
    }
    if sum > scores.iter().filter_map(|own| own.0.keys().max()).sum() {
        return 0.0;
    }
    // H. Chernoff, "A measure of asymptotic efficiency for tests of a hypothesis based on the sum of observations", 1952:
    // each of these is a bound.
    let bound = |times: f64| -> f64 {
        (scores.iter().map(|own| own.moment(times).ln()).sum::<f64>() - times * wanted).exp()
    };
    let bound = (-8..=3).map(|n| bound(2.0_f64.powi(n))).fold(1.0, f64::min);
    if bound < 1e-12 {
        return bound;
    }
    // below[k]: the chance of k so far, for all k that are less than wanted.
    let mut below = vec![0.0; sum];
    below[0] = 1.0;
    let mut most = 0;
    for own in scores {
        let none = 1.0 - own.0.values().sum::<f64>();
        most = (most + own.0.keys().max().copied().unwrap_or(0)).min(sum - 1);
        for k in (0..=most).rev() {
            let from = own.0.range(..=k).map(|(score, chance)| below[k - score] * chance);
            below[k] = below[k] * none + from.sum::<f64>();
        }
    }
    (1.0 - below.iter().sum::<f64>()).clamp(0.0, bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Properties that so large parts of the places have.
    fn properties(shares: &[f64]) -> Vec<Scores> {
        shares.iter().map(|share| Scores(BTreeMap::from([(1, *share)]))).collect()
    }

    #[test]
    fn the_chance_is_that_of_the_binomial_tables() {
        // P(X >= k) for n draws at 0.1: 1 - binomial cumulative tables.
        for (n, k, wanted) in
            [(10, 4, 0.012_795), (20, 6, 0.011_253), (30, 10, 0.000_454_1), (5, 5, 0.000_01)]
        {
            let found = at_least(&properties(&vec![0.1; n]), k);
            assert!((found - wanted).abs() < 5e-7, "{n} {k}: {found}");
        }
        // Two of three events with chances 0.1, 0.2 and 0.5: 0.1*0.2 + 0.1*0.5 + 0.2*0.5 - 2*0.01.
        assert!((at_least(&properties(&[0.1, 0.2, 0.5]), 2) - 0.15).abs() < 1e-12);
        let three = properties(&[0.1; 3]);
        assert!((at_least(&three, 0) - 1.0).abs() < 1e-12 && at_least(&three, 4) <= 0.0);
        assert!(at_least(&properties(&[0.1; 7200]), 7200) < 1e-300);
        assert!(at_least(&properties(&[1.0; 5]), 5) >= 1.0);
    }

    #[test]
    fn scores_have_the_chance_that_counting_all_draws_gives() {
        let stratum = |values: [u64; 5], drawn| Stratum { values: values.to_vec(), drawn, reach: 0 };
        let strata = [
            stratum([0, 3, 0, 7, 1], 3),
            stratum([2, 2, 0, 0, 9], 0),
            stratum([0, 0, 0, 0, 0], 1),
            stratum([5, 0, 1, 0, 0], 0),
            stratum([1, 4, 4, 0, 6], 4),
        ];
        let score = |stratum: &Stratum, place: usize| usize::try_from(stratum.values[place]).unwrap();
        let sum = |places: [usize; 5]| -> usize {
            strata.iter().zip(places).map(|(stratum, place)| score(stratum, place)).sum()
        };
        let drawn = sum([3, 0, 1, 0, 4]);
        assert_eq!(drawn, 20);
        let draws = (0..5_usize.pow(5)).map(|n| [n % 5, n / 5 % 5, n / 25 % 5, n / 125 % 5, n / 625]);
        let as_much = draws.filter(|places| sum(*places) >= drawn).count();
        let wanted = float(as_much as u64) / 3125.0;
        let found = chance(&strata, score);
        assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
    }

    #[test]
    fn scores_of_two_hours_in_which_everything_is_seen_are_no_chance_and_take_no_time() {
        let stratum = Stratum { values: vec![1, 1, 4_000_000_000, 1, 1, 1, 1, 1, 1, 1], drawn: 2, reach: 0 };
        let found = chance(&vec![stratum; 7200], |stratum, place| {
            usize::try_from(stratum.values[place].ilog2()).unwrap()
        });
        assert!(found < 1e-300, "{found}");
    }

    #[test]
    fn a_property_that_every_place_has_says_nothing_of_the_drawn_one() {
        let all = Stratum { values: vec![9; 10], drawn: 3, reach: 0 };
        let found = drawn(&vec![all; 50], |stratum, place| stratum.values[place] >= 5);
        assert_eq!(found.times, 50);
        assert!((found.expected - 50.0).abs() < 1e-9 && found.chance >= 1.0, "{found:?}");
    }

    #[test]
    fn what_stands_out_does_so_from_places_that_are_apart() {
        let stratum = Stratum { values: vec![1, 1, 90, 90, 1, 80], drawn: 2, reach: 1 };
        assert!(stratum.stands_out(2, 1.1) && stratum.stands_out(3, 1.1) && !stratum.stands_out(5, 1.1));
        assert!(!stratum.stands_out(2, 1.2) && !stratum.stands_out(4, 1.1) && stratum.with() == 90);
        let times: Vec<f64> = (0..6).map(|place| stratum.times_typical(place)).collect();
        assert_eq!(times, [1.0 / 90.0, 1.0 / 80.0, 90.0, 90.0, 1.0, 80.0 / 90.0]);
        let overlapping = Stratum { reach: 9, ..stratum };
        assert!(!overlapping.stands_out(2, 1.1) && overlapping.times_typical(2) <= 0.0, "nothing is left");
    }
}
