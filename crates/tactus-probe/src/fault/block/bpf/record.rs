//! The record of the program on one CPU, hit by hit: memory that the program writes and the worker reads. The program
//! knows these words by their numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::lot::Lots;

/// How often it blocked.
pub const COUNT: usize = 0;
/// The longest, in ns.
pub const LONGEST: usize = 1;
/// How long each is to be, in ns: written by the worker, as are the next four.
pub const LENGTH: usize = 2;
/// The period in which one random part has a block, in ns; 0: each tick of the clock is a block.
pub const EVERY: usize = 3;
/// A part of the period, in ns.
pub const PART: usize = 4;
/// How many of its parts are drawn from.
pub const PLACES: usize = 5;
/// The seed of the draws.
pub const SEED: usize = 6;
/// The last period that had a block, or in which the clocks were started.
pub const LAST: usize = 7;
/// The first word of the hits. Each has two words: when it began and how long it was, both in ns.
pub const HITS: usize = 8;
/// How many of them are kept, the first ones: two hours of one a second.
pub const KEPT: usize = 8_192;
/// All words.
pub const WORDS: usize = HITS + 2 * KEPT;

/// The record of one CPU.
#[derive(Clone, Copy)]
pub struct Record(&'static [AtomicU64]);

impl Record {
    /// In memory of [`WORDS`].
    pub const fn new(words: &'static [AtomicU64]) -> Self {
        Self(words)
    }

    fn word(self, number: usize) -> u64 {
        self.0[number].load(Ordering::Relaxed)
    }

    /// Sets the length of each block, in ns, and the draws of their moments, and drops earlier hits.
    pub fn begin(self, length: u64, lots: Option<Lots>) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.0[LENGTH].store(length, Ordering::Relaxed);
        if let Some(Lots { every_ns, part_ns, places, seed }) = lots {
            for (word, value) in [(EVERY, every_ns), (PART, part_ns), (PLACES, places), (SEED, seed)] {
                self.0[word].store(value, Ordering::Relaxed);
            }
        }
    }

    /// Lets the first block come in the period after this one.
    pub fn skip(self, period: u64) {
        self.0[LAST].store(period, Ordering::Relaxed);
    }

    /// How often it blocked.
    pub fn count(self) -> u64 {
        self.0[COUNT].load(Ordering::Acquire)
    }

    /// When each of those that are kept began, CLOCK_MONOTONIC in ns.
    pub fn began(self) -> Vec<u64> {
        let count = usize::try_from(self.count()).unwrap_or(KEPT).min(KEPT);
        (0..count).map(|hit| self.word(HITS + 2 * hit)).collect()
    }

    /// The longest, in ns; `None` where there was none.
    pub fn longest(self) -> Option<u64> {
        Some(self.word(LONGEST)).filter(|longest| *longest > 0)
    }
}
