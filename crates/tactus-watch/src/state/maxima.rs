//! Maxima over the whole time of a measurement, for the width of a screen.

/// Most places that are kept; a power of two.
const MOST: usize = 256;

/// The largest value of each stretch of time. If there are more ticks than stretches, neighbours are joined,
/// and no maximum is lost.
#[derive(Clone, Debug, Default)]
pub struct Maxima {
    /// In ns, the oldest first; `None` for a time without measurement.
    stretches: Vec<Option<u64>>,
    /// Ticks in each stretch; 0 before the first one.
    ticks: usize,
    /// Ticks in the last one.
    in_last: usize,
}

impl Maxima {
    /// Takes in the maximum of another tick, in ns.
    pub fn push(&mut self, max_ns: Option<u64>) {
        self.ticks = self.ticks.max(1);
        if self.in_last == self.ticks || self.stretches.is_empty() {
            if self.stretches.len() == MOST {
                let halves = self.stretches.chunks(2);
                self.stretches = halves.map(|pair| pair.iter().copied().max().flatten()).collect();
                self.ticks *= 2;
            }
            self.stretches.push(None);
            self.in_last = 0;
        }
        self.in_last += 1;
        if let Some(last) = self.stretches.last_mut() {
            *last = (*last).max(max_ns);
        }
    }

    /// The whole time in at most `columns` columns, the largest of each, in ns.
    #[must_use]
    pub fn in_columns(&self, columns: usize) -> Vec<Option<u64>> {
        if columns == 0 {
            return Vec::new();
        }
        let joined = self.stretches.len().div_ceil(columns).max(1);
        self.stretches.chunks(joined).map(|some| some.iter().copied().max().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_takes_no_more_than_a_minute_and_loses_no_maximum() {
        let mut maxima = Maxima::default();
        for tick in 0..86_400_u64 {
            maxima.push(Some(if tick == 40_000 { 1_000 } else { 7 }));
        }
        assert!(maxima.stretches.len() <= MOST && maxima.stretches.len() > MOST / 4);
        for columns in [1, 7, 80, 500] {
            let shown = maxima.in_columns(columns);
            assert!(shown.len() <= columns);
            assert_eq!(shown.iter().filter(|max| **max == Some(1_000)).count(), 1, "{columns}");
        }
        assert!(maxima.in_columns(0).is_empty());
    }

    #[test]
    fn a_tick_without_a_value_is_a_gap_and_no_zero() {
        let mut maxima = Maxima::default();
        for max in [Some(3), None, Some(5)] {
            maxima.push(max);
        }
        assert_eq!(maxima.in_columns(10), [Some(3), None, Some(5)]);
        assert_eq!(maxima.in_columns(2), [Some(3), Some(5)]);
    }
}
