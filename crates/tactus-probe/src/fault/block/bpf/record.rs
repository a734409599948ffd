//! What the program did on one CPU, hit by hit: memory that it writes and the worker reads. The program knows
//! these words by their numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::lot::Lots;

/// How often it blocked.
pub const COUNT: usize = 0;
/// The longest, in ns.
pub const LONGEST: usize = 1;
/// How long each is to be, in ns: written by the worker.
pub const LENGTH: usize = 2;
/// Where the moments are drawn by lot ([`Lots`]): the period, its part, how many parts are drawn from and the seed,
/// all written by the worker. A period of 0: at each interrupt.
pub const EVERY: usize = 3;
/// See [`EVERY`].
pub const PART: usize = 4;
/// See [`EVERY`].
pub const PLACES: usize = 5;
/// See [`EVERY`].
pub const SEED: usize = 6;
/// Where the hits are: two words each, when it began and how long it was, both in ns.
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

    /// Says how long each is to be, in ns, and when, and forgets what was recorded so far.
    pub fn begin(self, length: u64, lots: Option<Lots>) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.0[LENGTH].store(length, Ordering::Relaxed);
        if let Some(Lots { every_ns, part_ns, places, seed }) = lots {
            for (word, value) in [(EVERY, every_ns), (PART, part_ns), (PLACES, places), (SEED, seed)] {
                self.0[word].store(value, Ordering::Relaxed);
            }
        }
    }

    /// How often it blocked.
    pub fn count(self) -> u64 {
        self.0[COUNT].load(Ordering::Acquire)
    }

    /// The longest, in ns; `None` where there was none.
    pub fn longest(self) -> Option<u64> {
        Some(self.word(LONGEST)).filter(|longest| *longest > 0)
    }

    /// When each began, of those that were kept, CLOCK_MONOTONIC in ns.
    pub fn at(self) -> impl Iterator<Item = u64> {
        let kept = usize::try_from(self.count()).unwrap_or(KEPT).min(KEPT);
        (0..kept).map(move |number| self.word(HITS + 2 * number))
    }
}
