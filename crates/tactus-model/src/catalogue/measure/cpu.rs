//! `cpu`: how much a processor computes.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;

word! {
    /// Four kernels of the kind that CoreMark uses: a linked list, a matrix, a state machine and a CRC. Each runs
    /// alone, and a mix runs one of each. The mix runs on one CPU, and on all CPUs of the activity at once. The latency
    /// of divisions is also measured. Each iteration checks its result. This is not CoreMark, and its numbers are not
    /// comparable with CoreMark's. Batches, repeats and values are those of `os`.
    ///
    /// CoreMark itself is measured if `coremark` names a binary of it. The binary runs again and again, for at most
    /// half of the time. Each run that its own transcript declares valid is a repeat. A run takes 10 to 20 s. An
    /// interval needs six repeats, which takes some four minutes.
    ///
    /// The clock is measured with a chain of additions. Each addition waits for the one before and takes one cycle. On
    /// an emulated processor the value is the clock of the emulation.
    #[derive(Default)]
    pub struct Cpu = Measure "cpu": "what a processor computes: list, matrix, state machine, CRC, divisions, clock" {
        /// Absolute path of your own CoreMark 1.0 binary in the measured environment. If it cannot run there, a note
        /// says so and everything else is measured. Environments that tactus starts itself (its images, its guests)
        /// contain only the probe. Left out: CoreMark is not measured.
        pub coremark: Option<String>;
    }
    yields [
        LINKED_LIST, MATRIX, STATE_MACHINE, CRC, MIX, MIX_PER_MHZ, MIX_ALL, CLOCK, INTEGER_DIVIDE, FLOAT_DIVIDE,
        DOUBLE_DIVIDE, COREMARK
    ];
}

/// Following pointers.
pub const LINKED_LIST: Item = Item::lower(
    "linked list",
    Unit::Us,
    "a list of 64 nodes is searched for eight values, reversed and sorted",
);

/// Multiplying.
pub const MATRIX: Item =
    Item::lower("matrix", Unit::Us, "two matrices of 12 x 12 integers of 16 bits are multiplied");

/// Branches that depend on data.
pub const STATE_MACHINE: Item =
    Item::lower("state machine", Unit::Us, "a state machine parses 256 bytes of numbers in text");

/// Shifts.
pub const CRC: Item = Item::lower("CRC", Unit::Us, "CRC-16 of 256 bytes, bit by bit");

/// All of it.
pub const MIX: Item = Item::higher(
    "kernel mix",
    Unit::PerSecond,
    "iterations of all four kernels, one after the other, on one CPU",
);

/// All of it, whatever the clock.
pub const MIX_PER_MHZ: Item = Item::higher(
    "kernel mix per MHz",
    Unit::PerSecondPerMegahertz,
    "the kernel mix of a batch, divided by the clock rate that was measured right before and after it",
);

/// All of it, everywhere.
pub const MIX_ALL: Item = Item::higher(
    "kernel mix on all CPUs",
    Unit::PerSecond,
    "the kernel mix on every CPU of the activity at once: the sum",
);

/// The clock.
pub const CLOCK: Item = Item::higher("clock", Unit::Megahertz, "dependent additions, one a cycle");

/// Integers.
pub const INTEGER_DIVIDE: Item = Item::lower(
    "integer divide",
    Unit::Ns,
    "32-bit integers, each division waiting for the one before (`lat_ops` of lmbench)",
);

/// Single precision.
pub const FLOAT_DIVIDE: Item = Item::lower(
    "float divide",
    Unit::Ns,
    "single precision, each division waiting for the one before (`lat_ops` of lmbench)",
);

/// Double precision.
pub const DOUBLE_DIVIDE: Item = Item::lower(
    "double divide",
    Unit::Ns,
    "double precision, each division waiting for the one before (`lat_ops` of lmbench)",
);

/// EEMBC's.
pub const COREMARK: Item = Item::higher(
    "CoreMark",
    Unit::PerSecond,
    "iterations of a user's own CoreMark 1.0, where one is named: on one CPU, unless it was built to use more",
);
