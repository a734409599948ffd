//! A value against the same one of another environment.

use tactus_model::outcome::ValueResult;

/// One value over another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRatio {
    /// The quotient.
    pub estimate: f64,
    /// Where it lies with at least 90 % certainty; `None`: one of the two has too few repeats for an interval.
    pub interval: Option<(f64, f64)>,
}

/// `own` over `theirs`, which measured the same item; `None` if they cannot be compared.
///
/// Each of the two 95 % intervals misses its median in at most 5 % of all cases, so that both hold in at
/// least 90 % (Bonferroni). Then the quotient lies between the quotients of their ends.
#[must_use]
pub fn value_ratio(own: &ValueResult, theirs: &ValueResult) -> Option<ValueRatio> {
    if !own.is_of(theirs) || own.unit != theirs.unit || theirs.value <= 0.0 {
        return None;
    }
    let ends = |of: &ValueResult| Some((of.low?, of.high?));
    let interval = ends(own).zip(ends(theirs)).filter(|(_, (low, _))| *low > 0.0);
    Some(ValueRatio {
        estimate: own.value / theirs.value,
        interval: interval.map(|((low, high), (least, most))| (low / most, high / least)),
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::Item;
    use tactus_model::outcome::{Better, Repeats, Unit};

    use super::*;

    fn value(kept: &[f64]) -> ValueResult {
        let item = Item { name: "item", unit: Unit::Us, better: Better::Lower, about: "" };
        ValueResult::of(&item, &mut Repeats { kept: kept.to_vec(), dropped: 0, batch: 1 }).unwrap()
    }

    #[test]
    fn a_ratio_lies_between_the_ends_of_both_intervals() {
        let few = [9.9, 10.0, 10.0, 10.0, 10.1, 10.0, 10.0, 10.0, 10.0];
        let ratio = value_ratio(&value(&few.map(|value| value * 1.5)), &value(&few)).unwrap();
        assert!((ratio.estimate - 1.5).abs() < 1e-9);
        let (low, high) = ratio.interval.unwrap();
        assert!(low <= 1.5 && 1.5 <= high && high / low < 1.1, "{low} {high}");
    }

    #[test]
    fn too_few_repeats_have_a_ratio_without_an_interval_and_nothing_over_zero_has_none() {
        let short = value(&[1.0, 1.0]);
        assert_eq!(value_ratio(&short, &short).unwrap().interval, None);
        assert_eq!(value_ratio(&short, &value(&[0.0])), None);
        let other = ValueResult { item: "another".into(), ..short.clone() };
        assert_eq!(value_ratio(&short, &other), None);
    }
}
