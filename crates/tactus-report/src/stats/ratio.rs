//! A value against the same one of another environment.

use tactus_model::outcome::{Better, ValueResult};

/// One value over another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueRatio {
    /// The quotient.
    pub estimate: f64,
    /// Where it lies with at least 90 % certainty; `None`: one of the two has too few repeats for an interval.
    pub interval: Option<(f64, f64)>,
    /// Whether the larger value is the worse one.
    better: Better,
}

/// `own` over `theirs`, which measured the same item; `None` where they are no such values.
///
/// Each of the two 95 % intervals misses its median in at most 5 % of all cases, so that both hold in at least 90 %
/// (Bonferroni); then the quotient is within that of their ends.
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
        better: own.better,
    })
}

impl ValueRatio {
    /// `worse` or `better`, where the interval leaves out 1.
    #[must_use]
    pub fn word(&self) -> Option<&'static str> {
        let (low, high) = self.interval?;
        match (low > 1.0, high < 1.0, self.better) {
            (true, _, Better::Lower) | (_, true, Better::Higher) => Some("worse"),
            (true, _, Better::Higher) | (_, true, Better::Lower) => Some("better"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::Item;
    use tactus_model::outcome::{Repeats, Unit};

    use super::*;

    fn value(better: Better, kept: &[f64]) -> ValueResult {
        let item = Item { name: "item", unit: Unit::Us, better, about: "" };
        ValueResult::of(&item, &mut Repeats { kept: kept.to_vec(), dropped: 0, batch: 1 }).unwrap()
    }

    #[test]
    fn a_ratio_is_worse_or_better_only_when_its_interval_leaves_out_one() {
        let few = [9.9, 10.0, 10.0, 10.0, 10.1, 10.0, 10.0, 10.0, 10.0];
        let more = few.map(|value| value * 1.5);
        for (better, word) in [(Better::Lower, "worse"), (Better::Higher, "better")] {
            let ratio = value_ratio(&value(better, &more), &value(better, &few)).unwrap();
            assert!((ratio.estimate - 1.5).abs() < 1e-9);
            assert_eq!(ratio.word(), Some(word));
            let same = value_ratio(&value(better, &few), &value(better, &few)).unwrap();
            assert_eq!(same.word(), None, "{same:?}");
        }
    }

    #[test]
    fn too_few_repeats_have_a_ratio_without_an_interval_and_nothing_over_zero_has_none() {
        let short = value(Better::Lower, &[1.0, 1.0]);
        let ratio = value_ratio(&short, &short).unwrap();
        assert_eq!((ratio.interval, ratio.word()), (None, None));
        assert_eq!(value_ratio(&short, &value(Better::Lower, &[0.0])), None);
        let other = ValueResult { item: "another".into(), ..short.clone() };
        assert_eq!(value_ratio(&short, &other), None);
    }
}
