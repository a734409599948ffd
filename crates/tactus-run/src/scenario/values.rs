//! Values from probes: each tick reports every item. A day of them would be a million events, and each report
//! replaces the one before. So only reports with a substantial change are passed on.

use std::collections::BTreeMap;

use tactus_model::outcome::{Point, ValueResult};

/// The latest words of probes on the items of rows.
#[derive(Debug, Default)]
pub(super) struct Values(BTreeMap<(usize, String, Option<Point>), Latest>);

#[derive(Debug)]
struct Latest {
    value: ValueResult,
    /// Repeats that the last word had that was told; 0: none was.
    told: u64,
}

impl Values {
    /// Takes in a value, and says whether to report it: the first one, and one whose number of repeats has grown by
    /// half since the last report.
    pub fn take(&mut self, row: usize, value: &ValueResult) -> bool {
        let entry = self.0.entry((row, value.item.clone(), value.at));
        let latest = entry.or_insert_with(|| Latest { value: value.clone(), told: 0 });
        latest.value.clone_from(value);
        let tell = latest.told == 0 || value.samples >= latest.told.saturating_add(latest.told.div_ceil(2));
        if tell {
            latest.told = value.samples;
        }
        tell
    }

    /// The last words that were not told, when there will be no more.
    pub fn untold(&mut self) -> Vec<(usize, ValueResult)> {
        let all = std::mem::take(&mut self.0).into_iter();
        let untold = all.filter(|(_, latest)| latest.told != latest.value.samples);
        untold.map(|((row, ..), latest)| (row, latest.value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::measure::os::SYSTEM_CALL;
    use tactus_model::outcome::Repeats;

    use super::*;

    fn value(samples: u64) -> ValueResult {
        let kept = vec![1.0; usize::try_from(samples).unwrap()];
        ValueResult::of(&SYSTEM_CALL, &mut Repeats { kept, dropped: 0, batch: 1 }).unwrap()
    }

    #[test]
    fn repeats_beyond_all_numbers_overflow_nothing() {
        let mut values = Values::default();
        let most = ValueResult { samples: u64::MAX, ..value(1) };
        assert!(values.take(0, &most));
        assert!(!values.take(0, &value(1)));
    }

    #[test]
    fn the_first_word_is_told_then_fewer_and_fewer_and_the_last_one_always() {
        let mut values = Values::default();
        let told: Vec<u64> = (1..=1_000).filter(|n| values.take(3, &value(*n))).collect();
        assert_eq!(told, [1, 2, 3, 5, 8, 12, 18, 27, 41, 62, 93, 140, 210, 315, 473, 710]);
        let untold = values.untold();
        assert_eq!(untold.len(), 1);
        assert_eq!((untold[0].0, untold[0].1.samples), (3, 1_000));
        assert!(values.take(3, &value(4)));
        assert!(values.untold().is_empty(), "it was told");
    }
}
