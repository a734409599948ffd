//! The page of memory in which a guest shows its clock to this machine, without the delay of a channel's interrupts.
//!
//! This machine writes the number of a question. The guest writes when it saw the question, and then, again and again,
//! the time of its clock. Words have 32 bits, are [`APART`] bytes apart and in the machine's byte order, which is the
//! same on both sides. Related words are written between two changes of [`SEQUENCE`], which is odd meanwhile.

/// Its length in bytes.
pub const BYTES: usize = 4096;
/// Distance of two words, in bytes: large enough that a processor never fetches both at once.
pub const APART: usize = 128;

/// The number of the question: this machine's word. 0: no question; the guest ends.
pub const QUESTION: usize = 0;
/// Odd while the guest writes the words below.
pub const SEQUENCE: usize = 1;
/// The question that they answer.
pub const ANSWERED: usize = 2;
/// When the guest saw it, in ns of its CLOCK_MONOTONIC: the lower half, and the upper one behind it.
pub const HEARD: usize = 3;
/// The time of its clock when this was written, in the same form.
pub const SAID: usize = 5;
/// All of them.
pub const WORDS: usize = 7;

/// How long a guest shows its clock to a machine that does not end it, in ns.
pub const LONGEST_NS: u64 = 1_000_000_000;
/// The device that it is in: QEMU's `ivshmem-plain`.
pub const DEVICE: &str = "1af4:1110";
