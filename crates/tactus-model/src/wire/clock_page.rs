//! The page of memory in which a guest shows its clock to this machine: neither waits for a channel's interrupts there.
//!
//! This machine writes the number of a question, the guest when it saw it, and then, again and again, what its clock says
//! now. Words are of 32 bits, [`APART`] bytes from each other and written in their machine's order, which is the same on both
//! sides; what belongs together is written between two changes of [`SEQUENCE`], which is odd meanwhile.

/// Its length in bytes.
pub const BYTES: usize = 4096;
/// Words are so far from each other, in bytes, that no two share what a processor fetches at once.
pub const APART: usize = 128;

/// The number of the question: this machine's word. 0: there is none, and the guest ends.
pub const QUESTION: usize = 0;
/// Odd while the guest writes the words below.
pub const SEQUENCE: usize = 1;
/// The question that they answer.
pub const ANSWERED: usize = 2;
/// When the guest saw it, in ns of its CLOCK_MONOTONIC: the lower half, and the upper one behind it.
pub const HEARD: usize = 3;
/// What its clock said when this was written, in the same way.
pub const SAID: usize = 5;
/// All of them.
pub const WORDS: usize = 7;

/// How long a guest shows its clock to somebody who does not say that it is enough, in ns.
pub const LONGEST_NS: u64 = 1_000_000_000;
/// The device that it is in: QEMU's `ivshmem-plain`.
pub const DEVICE: &str = "1af4:1110";
