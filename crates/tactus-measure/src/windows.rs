//! The largest latency of every short window of time of a series, where a separation asks for it.

use std::mem;

/// Windows that wait to be told, at most: over a narrow channel the older ones go, and are not known.
const MOST_WAITING: usize = 100;

/// The windows of a series. They lie on the clock, not on the measurement: those of all series under one kernel are the
/// same.
#[derive(Debug)]
pub struct WindowMaxima {
    length_ns: u64,
    /// The windows from `first` on; the last one is not over yet.
    first: u64,
    maxima: Vec<u64>,
    /// A sample was lost, and its window is unknown.
    spoilt: bool,
}

impl WindowMaxima {
    /// Of this length, in ns, from the first whole one on that begins at `began` or later.
    pub fn new(length_ns: u64, began: u64) -> Self {
        let length_ns = length_ns.max(1);
        Self { length_ns, first: began.div_ceil(length_ns), maxima: Vec::new(), spoilt: false }
    }

    /// Takes in a wake-up.
    pub fn take(&mut self, at: u64, value: u64) {
        let Some(own) = (at / self.length_ns).checked_sub(self.first).and_then(|n| usize::try_from(n).ok())
        else {
            return;
        };
        if own >= self.maxima.len() {
            // A clock that has jumped: no memory is enough for every window in between.
            if own - self.maxima.len() > MOST_WAITING {
                self.first = at / self.length_ns;
                self.maxima.clear();
                self.maxima.push(value);
                return;
            }
            self.maxima.resize(own + 1, 0);
        }
        self.maxima[own] = self.maxima[own].max(value);
    }

    /// Wake-ups were counted that did not come here: nothing is known of the windows from the last time until now.
    pub const fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// The windows that are over at `now`, and the number of the first; `None`: no whole window is over. All values
    /// measured until then must have been added.
    pub fn over(&mut self, now: u64) -> Option<(u64, Vec<u64>)> {
        let current = now / self.length_ns;
        let over = usize::try_from(current.checked_sub(self.first)?).ok()?;
        if mem::take(&mut self.spoilt) {
            self.maxima.clear();
            self.first = current + 1;
            return None;
        }
        let mut maxima = mem::take(&mut self.maxima);
        if over > maxima.len() + MOST_WAITING {
            self.first = current;
            return None;
        }
        maxima.resize(over.max(maxima.len()), 0);
        self.maxima = maxima.split_off(over);
        let first = mem::replace(&mut self.first, current);
        if maxima.is_empty() {
            return None;
        }
        let older = maxima.len().saturating_sub(MOST_WAITING);
        Some((first + older as u64, maxima.split_off(older)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_on_the_clock_and_each_is_told_once_when_it_is_over() {
        let mut windows = WindowMaxima::new(100, 1_030);
        assert_eq!(windows.over(1_090), None, "the first whole one has not begun");
        for (at, value) in [(1_040, 99), (1_100, 3), (1_150, 5), (1_199, 4), (1_420, 7)] {
            windows.take(at, value);
        }
        assert_eq!(windows.over(1_430), Some((11, vec![5, 0, 0])));
        windows.take(1_440, 6);
        windows.take(1_510, 2);
        assert_eq!(windows.over(1_500), Some((14, vec![7])));
        assert_eq!(windows.over(1_599), None);
        assert_eq!(windows.over(1_600), Some((15, vec![2])));
        assert_eq!(windows.over(1_800), Some((16, vec![0, 0])), "nothing woke");
    }

    #[test]
    fn a_lost_sample_spoils_the_windows_that_it_may_have_been_in() {
        let mut windows = WindowMaxima::new(100, 0);
        windows.take(50, 1);
        windows.spoil();
        assert_eq!(windows.over(310), None);
        windows.take(320, 4);
        windows.take(410, 5);
        assert_eq!(windows.over(500), Some((4, vec![5])), "the one that had begun is spoilt, too");
    }

    #[test]
    fn windows_that_are_not_fetched_and_a_clock_that_jumps_take_no_memory() {
        let mut windows = WindowMaxima::new(100, 0);
        (0..150).for_each(|n| windows.take(n * 100, n));
        let (first, maxima) = windows.over(15_000).unwrap();
        assert_eq!((first, maxima.len(), maxima[0]), (50, 100, 50));
        windows.take(1 << 60, 9);
        windows.take(5, 9);
        assert!(windows.over((1 << 60) + 100).is_some_and(|(_, maxima)| maxima == [9]));
        assert_eq!(windows.over(u64::MAX), None);
    }
}
