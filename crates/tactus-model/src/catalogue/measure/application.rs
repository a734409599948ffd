//! `application`: the cycles of a user's own program.

use crate::catalogue::declare::word;
use crate::duration::Nanos;
use crate::wire::row::choice;

word! {
    /// The program marks when each of its cycles was due, began and ended, in a file that it maps into its memory. It
    /// uses `tactus.h` in C and C++, or the crate `tactus-application` in Rust. Marking takes a few lines and no system
    /// call. A thread of the probe with ordinary priority reads the file. That thread runs on a housekeeping CPU, never
    /// on a measured one, and writes nothing to the file. The program must run in the environment itself; `{ load = {
    /// kind = "command", ... } }` starts it there. `cpus` says where its thread runs, and `interval` gives its period.
    /// If the program declares another period, it is refused. If it marks on another CPU, a note says so.
    ///
    /// The measurement begins at the first cycles. A due time that comes while an earlier cycle still runs is an
    /// overrun. If the program skips that cycle, the corrected quantiles include it again. If the program runs it late,
    /// its measured value counts. A cycle is left out if its record was overwritten before it was read, or if its times
    /// contradict each other. A note then says how many were left out, and the result never passes. A program that ends
    /// or stops marking ends the measurement; the values up to then stay.
    ///
    /// The self-test uses a stand-in: a thread of the probe marks cycles, is delayed for a known time, and must show
    /// that delay. The program itself is not delayed. No test can show that it marks in the right places.
    #[derive(Default)]
    pub struct Application = Measure "application": "the cycles of your own program, which it marks itself" {
        /// Absolute path of the file in the environment: `/dev/shm/control`.
        pub file: String;
        /// The measured time of a cycle. `response` is from its due time to its end, `start` is from its due time to
        /// its start, and `execution` is from its start to its end. `execution` has no periods that could be missed.
        pub value: Option<MarkedValue> = MarkedValue::Response;
        /// Longest time without a mark: before the first cycle, and after any cycle.
        pub patience: Option<Nanos> = Nanos(10_000_000_000), 100_000_000..=20_000_000_000;
    }
    counts "cycles";
}

choice! {
    /// The measured time of a marked cycle.
    pub enum MarkedValue {
        /// From its due time, or from its start where it has none, to its end.
        Response = "response",
        /// From its due time to its start.
        Start = "start",
        /// From its start to its end.
        Execution = "execution",
    }
}
