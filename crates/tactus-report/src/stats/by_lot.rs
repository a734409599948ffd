//! Whether something happens when a disturbance is made, where the moment of each was drawn by lot.
//!
//! In each period the disturbance could have been made at any of several places, each as likely as the others. If
//! nothing of it reaches what is measured, then what is measured there is the same wherever the lot fell: the chance
//! that a property falls to the drawn place is the share of places that have it, whatever the noise is and however its
//! values depend on each other (R. A. Fisher, "The Design of Experiments", 1935, chapter II). So many independent
//! chances make a Poisson binomial distribution, which is worked out exactly.

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
}

/// How often a property fell to the drawn place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// So often.
    pub times: usize,
    /// So often the lot alone would have it.
    pub expected: f64,
    /// The chance that the lot alone has it so often or more.
    pub chance: f64,
}

/// How often the drawn places have a property.
#[must_use]
pub fn drawn(strata: &[Stratum], has: impl Fn(&Stratum, usize) -> bool) -> Drawn {
    let mut times = 0;
    let mut shares = Vec::new();
    for stratum in strata {
        let having = (0..stratum.values.len()).filter(|place| has(stratum, *place)).count();
        times += usize::from(has(stratum, stratum.drawn));
        if having > 0 {
            shares.push(float(having as u64) / float(stratum.values.len() as u64));
        }
    }
    Drawn { times, expected: shares.iter().sum(), chance: at_least(&shares, times) }
}

/// The chance that of independent events of these chances at least `times` happen; where it is next to nothing, a bound
/// above it.
fn at_least(chances: &[f64], times: usize) -> f64 {
    let (count, mean) = (float(chances.len() as u64), chances.iter().sum::<f64>());
    let wanted = float(times as u64);
    if times == 0 || wanted <= mean {
        return 1.0;
    }
    if times > chances.len() {
        return 0.0;
    }
    // W. Hoeffding, "Probability inequalities for sums of bounded random variables", 1963, theorem 1.
    let (part, share) = (wanted / count, mean / count);
    let rest = if part < 1.0 { (1.0 - part) * ((1.0 - part) / (1.0 - share)).ln() } else { 0.0 };
    let bound = (-count * (part * (part / share).ln() + rest)).exp();
    if bound < 1e-12 {
        return bound;
    }
    // below[k]: the chance of k so far, for all k that are fewer than wanted.
    let mut below = vec![0.0; times];
    below[0] = 1.0;
    for chance in chances {
        for k in (0..times).rev() {
            let from = if k > 0 { below[k - 1] } else { 0.0 };
            below[k] = below[k] * (1.0 - chance) + from * chance;
        }
    }
    (1.0 - below.iter().sum::<f64>()).clamp(0.0, bound)
}

/// The largest part of all injections that may be seen where none of `count` was (95 %, exact: C. J. Clopper,
/// E. S. Pearson, 1934; for none of them 1 - 0.05^(1/count)).
#[must_use]
pub fn at_most(count: usize) -> f64 {
    if count == 0 { 1.0 } else { 1.0 - 0.05_f64.powf(1.0 / float(count as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_is_that_of_the_binomial_tables() {
        // P(X >= k) for n draws at 0.1: 1 - binomial cumulative tables.
        for (n, k, wanted) in
            [(10, 4, 0.012_795), (20, 6, 0.011_253), (30, 10, 0.000_454_1), (5, 5, 0.000_01)]
        {
            let found = at_least(&vec![0.1; n], k);
            assert!((found - wanted).abs() < 5e-7, "{n} {k}: {found}");
        }
        // Two of three events with chances 0.1, 0.2 and 0.5: 0.1*0.2 + 0.1*0.5 + 0.2*0.5 - 2*0.01.
        assert!((at_least(&[0.1, 0.2, 0.5], 2) - 0.15).abs() < 1e-12);
        assert!((at_least(&[0.1; 3], 0) - 1.0).abs() < 1e-12 && at_least(&[0.1; 3], 4) <= 0.0);
        assert!(at_least(&[0.1; 7200], 7200) < 1e-300 && at_least(&[1.0; 5], 5) >= 1.0);
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
        let overlapping = Stratum { reach: 9, ..stratum };
        assert!(!overlapping.stands_out(2, 1.1), "nothing is left to compare with");
    }

    #[test]
    fn twenty_nine_injections_bound_the_share_by_a_tenth() {
        assert!(at_most(28) > 0.1 && at_most(29) < 0.1);
        assert!((at_most(8) - 0.312).abs() < 0.001 && (at_most(600) - 0.005).abs() < 0.001);
        assert!(at_most(0) >= 1.0);
    }
}
