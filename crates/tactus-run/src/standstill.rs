//! When the clock of an environment stood still, by the arrival of its ticks: it was paused, or this machine slept.
//!
//! A tick arrives when it has ended, or later. One that is held up on its way is late, and those after it are not: they
//! come at once. After a standstill all are late by its length, for good.

use std::collections::VecDeque;

use tactus_model::Nanos;
use tactus_model::clock::{Hole, MOST_HOLES};

/// The shortest standstill that is looked for, in ns: busy lines are late by less.
const LEAST_NS: u64 = 500_000_000;
/// How long ticks must go on to arrive late before that is a standstill, in ns.
const SURE_NS: u64 = 10_000_000_000;
/// How many there must be of them, at the least, where the measurement ends before.
const SURE_TICKS: u32 = 3;
/// Those that are told one by one.
const TOLD: usize = 5;
/// The number of earlier ticks; the soonest of them counts.
const BEFORE: usize = 16;

/// The standstills of a clock.
#[derive(Debug, Default)]
pub struct Standstills {
    /// How late the last ticks were, in ns, against any fixed moment.
    before: VecDeque<i128>,
    /// When the last tick ended.
    last_ns: u64,
    /// Possible standstills.
    open: Vec<Open>,
    found: Vec<Hole>,
}

#[derive(Debug)]
struct Open {
    at_ns: u64,
    /// When the first of those after it arrived.
    since: u64,
    /// How late the ticks before it were at least.
    base: i128,
    /// How much later those after it were at least.
    length: i128,
    ticks: u32,
}

impl Standstills {
    /// A tick that ended `at_ns` after the beginning has arrived at `now`, in ns, of this machine's clock that also
    /// counts while the machine sleeps.
    pub fn add(&mut self, at_ns: u64, now: u64) {
        let late = i128::from(now) - i128::from(at_ns);
        let least = i128::from(LEAST_NS);
        for open in &mut self.open {
            open.length = open.length.min(late - open.base);
            open.ticks = open.ticks.saturating_add(1);
        }
        self.open.retain(|open| open.length >= least);
        let sure = |open: &mut Open| now.saturating_sub(open.since) >= SURE_NS && open.ticks >= SURE_TICKS;
        let sure: Vec<Open> = self.open.extract_if(.., sure).collect();
        self.keep(sure);
        let base = self.before.iter().min().copied();
        if let Some(base) = base.filter(|base| late - base >= least) {
            if self.open.len() + self.found.len() < MOST_HOLES {
                self.open.push(Open { at_ns: self.last_ns, since: now, base, length: late - base, ticks: 0 });
            }
            self.before.clear();
        }
        if self.before.len() == BEFORE {
            self.before.pop_front();
        }
        self.before.push_back(late);
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// The measurement has ended: returns the holes in the order of time.
    pub fn end(&mut self) -> Vec<Hole> {
        let open = std::mem::take(&mut self.open);
        self.keep(open.into_iter().filter(|open| open.ticks >= SURE_TICKS));
        self.before.clear();
        self.last_ns = 0;
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|hole| hole.at_ns);
        found
    }

    fn keep(&mut self, sure: impl IntoIterator<Item = Open>) {
        let hole = |open: Open| {
            let length_ns = u64::try_from(open.length).unwrap_or(u64::MAX);
            Hole { at_ns: open.at_ns, length_ns }
        };
        self.found.extend(sure.into_iter().map(hole));
    }
}

/// The sentence about them.
pub fn sentence(holes: &[Hole]) -> String {
    let seconds = |ns: u64| format!("{:.1} s", Nanos(ns).seconds());
    let mut told: Vec<String> = holes
        .iter()
        .take(TOLD)
        .map(|hole| format!("for {} after {}", seconds(hole.length_ns), seconds(hole.at_ns)))
        .collect();
    if holes.len() > TOLD {
        told.push(format!("{} times more", holes.len() - TOLD));
    }
    format!(
        "its clock stood still during the measurement: {}: the system was suspended or paused; that time is \
         a gap, and in no latency",
        told.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    /// `ticks` ticks of two series, a second long. `late` says by how much the n-th arrives late, `stood` how long
    /// the clock has stood still before it.
    fn found(ticks: u64, late: impl Fn(u64) -> u64, stood: impl Fn(u64) -> u64) -> Vec<Hole> {
        let mut standstills = Standstills::default();
        for n in 1..=ticks {
            for series in 0..2 {
                let at_ns = n * S + series * 100_000;
                standstills.add(at_ns, 3600 * S + at_ns + stood(n) + late(n) + (n * 7919 % 13) * MS);
            }
        }
        standstills.end()
    }

    fn about(found: &[Hole], expected: &[(u64, u64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (hole, (at, length)) in found.iter().zip(expected) {
            assert!(hole.at_ns.abs_diff(at * S) < 10 * MS, "{found:?}");
            assert!(hole.length_ns.abs_diff(length * MS) < 20 * MS, "{found:?}");
        }
    }

    #[test]
    fn a_pause_is_found_where_it_was_and_as_long_as_it_was() {
        about(&found(60, |_| 0, |n| if n > 20 { 8 * S } else { 0 }), &[(20, 8_000)]);
        let twice = |n| {
            if n > 40 {
                11 * S
            } else if n > 5 {
                4 * S
            } else {
                0
            }
        };
        about(&found(60, |_| 0, twice), &[(5, 4_000), (40, 7_000)]);
        // Near the end there are few ticks that say so.
        about(&found(60, |_| 0, |n| if n > 57 { S } else { 0 }), &[(57, 1_000)]);
    }

    #[test]
    fn ticks_that_are_held_up_and_then_come_at_once_are_no_pause() {
        let held = |n: u64| if (20..30).contains(&n) { (30 - n) * S } else { 0 };
        assert_eq!(found(60, held, |_| 0), []);
        // Each third tick comes two seconds late all the time.
        assert_eq!(found(60, |n| if n.is_multiple_of(3) { 2 * S } else { 0 }, |_| 0), []);
        assert_eq!(found(60, |_| 0, |n| n * MS), [], "a clock that drifts by a thousandth");
        assert_eq!(found(3600, |_| 0, |n| (3600 - n) * MS), [], "and the other way");
    }

    #[test]
    fn standstills_are_told_with_their_place_and_length() {
        let hole = Hole { at_ns: 3_600 * S, length_ns: 8_040 * MS };
        let said = sentence(&[hole]);
        assert!(said.contains("for 8.0 s after 3600.0 s: the system was suspended or paused"), "{said}");
        assert!(sentence(&[hole; 60]).contains(", 55 times more: "));
    }

    #[test]
    fn one_late_tick_at_the_very_end_says_nothing_and_hostile_times_take_no_memory() {
        assert_eq!(found(60, |n| if n == 60 { 5 * S } else { 0 }, |_| 0), []);
        let mut standstills = Standstills::default();
        for n in 0..100_000u64 {
            let wild = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            standstills.add(if n.is_multiple_of(2) { wild } else { 0 }, wild.rotate_left(17));
            standstills.add(n, n * 10 * S);
        }
        assert!(standstills.end().len() <= MOST_HOLES);
    }
}
