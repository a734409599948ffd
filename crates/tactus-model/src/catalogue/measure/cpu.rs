//! `cpu`: how much a processor computes.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::{Better, Unit};

word! {
    /// Four kernels of the kind that CoreMark made usual (a linked list, a matrix, a state machine, a CRC), alone and
    /// as a mix of one of each, on one CPU and on all CPUs of the activity at once; and the latency of divisions. Each
    /// iteration checks its result. It is no CoreMark, and its numbers are not comparable with CoreMark's. Batches,
    /// repeats and values are those of `os`.
    ///
    /// The clock is that of a chain of additions, each of which waits for the one before and takes one cycle: where the
    /// processor is emulated it is that of the emulation.
    #[derive(Default)]
    pub struct Cpu = Measure "cpu": "what a processor computes: list, matrix, state machine, CRC, divisions, clock" {}
    yields [
        LINKED_LIST, MATRIX, STATE_MACHINE, CRC, MIX, MIX_PER_MHZ, MIX_ALL, CLOCK, INTEGER_DIVIDE, FLOAT_DIVIDE,
        DOUBLE_DIVIDE
    ];
}

/// Following pointers.
pub const LINKED_LIST: Item = Item {
    name: "linked list",
    unit: Unit::Us,
    better: Better::Lower,
    about: "a list of 64 nodes is searched for eight values, reversed and sorted",
};

/// Multiplying.
pub const MATRIX: Item = Item {
    name: "matrix",
    unit: Unit::Us,
    better: Better::Lower,
    about: "two matrices of 12 x 12 integers of 16 bits are multiplied",
};

/// Branches that depend on data.
pub const STATE_MACHINE: Item = Item {
    name: "state machine",
    unit: Unit::Us,
    better: Better::Lower,
    about: "256 bytes of numbers in text are told apart by a state machine",
};

/// Shifts.
pub const CRC: Item =
    Item { name: "CRC", unit: Unit::Us, better: Better::Lower, about: "CRC-16 of 256 bytes, bit by bit" };

/// All of it.
pub const MIX: Item = Item {
    name: "kernel mix",
    unit: Unit::PerSecond,
    better: Better::Higher,
    about: "iterations of all four kernels, one after the other, on one CPU",
};

/// All of it, whatever the clock.
pub const MIX_PER_MHZ: Item = Item {
    name: "kernel mix per MHz",
    unit: Unit::PerSecondPerMegahertz,
    better: Better::Higher,
    about: "the kernel mix of a batch by the clock that was measured right before and after it",
};

/// All of it, everywhere.
pub const MIX_ALL: Item = Item {
    name: "kernel mix on all CPUs",
    unit: Unit::PerSecond,
    better: Better::Higher,
    about: "the kernel mix on every CPU of the activity at once: the sum",
};

/// The clock.
pub const CLOCK: Item = Item {
    name: "clock",
    unit: Unit::Megahertz,
    better: Better::Higher,
    about: "dependent additions, one a cycle",
};

/// Integers.
pub const INTEGER_DIVIDE: Item = Item {
    name: "integer divide",
    unit: Unit::Ns,
    better: Better::Lower,
    about: "32-bit integers, each division waiting for the one before (`lat_ops` of lmbench)",
};

/// Single precision.
pub const FLOAT_DIVIDE: Item = Item {
    name: "float divide",
    unit: Unit::Ns,
    better: Better::Lower,
    about: "single precision, each division waiting for the one before (`lat_ops` of lmbench)",
};

/// Double precision.
pub const DOUBLE_DIVIDE: Item = Item {
    name: "double divide",
    unit: Unit::Ns,
    better: Better::Lower,
    about: "double precision, each division waiting for the one before (`lat_ops` of lmbench)",
};
