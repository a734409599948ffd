//! The record that the programs write for a thread: they know its words by their numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// When it left the guest, in ns; 0: it is in the guest, or has not been seen to leave.
pub const AT: usize = 0;
/// The slot of the reason for that.
pub const SLOT: usize = 1;
/// The set of instructions that reasons are of.
pub const ISA: usize = 2;
/// The first word of the slots.
pub const SLOTS: usize = 3;
/// Words of a slot: how often, for how long together, the longest.
pub const SLOT_WORDS: usize = 3;
/// The last reason with a separate slot. The numbers of VMX (Intel SDM, volume 3, appendix C) end far below. Those of
/// SVM (AMD APM, volume 2, appendix C) are up to 0x403, except a few negative ones.
pub const LAST_REASON: usize = 0x407;
/// Words of a thread; the last slot is for all other reasons.
pub const WORDS: usize = SLOTS + (LAST_REASON + 2) * SLOT_WORDS;
/// Threads for which there is memory: 3 MiB, of the 4 MiB that older kernels give to a map.
pub const MOST_THREADS: usize = 128;

/// The record of a thread.
#[derive(Clone, Copy)]
pub struct Record(&'static [AtomicU64]);

/// The counts of a reason.
pub struct Kind {
    /// How often it left the guest for it, and came back.
    pub count: u64,
    /// For how long, in ns, all together.
    pub ns: u64,
    /// The longest time, in ns.
    pub longest_ns: u64,
}

impl Record {
    /// In memory of [`WORDS`].
    pub const fn new(words: &'static [AtomicU64]) -> Self {
        Self(words)
    }

    fn word(self, number: usize) -> u64 {
        self.0.get(number).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// The set of instructions.
    pub fn isa(self) -> u64 {
        self.word(ISA)
    }

    /// Tells what came of each reason that came.
    pub fn kinds(self, mut tell: impl FnMut(usize, Kind)) {
        for reason in 0..=LAST_REASON + 1 {
            let kind = self.of(reason);
            if kind.count > 0 {
                tell(reason, kind);
            }
        }
    }

    /// The counts of a reason; the number after [`LAST_REASON`] stands for all others.
    pub fn of(self, reason: usize) -> Kind {
        let at = SLOTS + reason * SLOT_WORDS;
        Kind { count: self.word(at), ns: self.word(at + 1), longest_ns: self.word(at + 2) }
    }
}
