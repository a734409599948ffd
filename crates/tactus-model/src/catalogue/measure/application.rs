//! `application`: the cycles of a user's own program.

use crate::catalogue::declare::word;
use crate::duration::Nanos;
use crate::wire::row::choice;

word! {
    /// The program marks when each of its cycles was due, when it began and when it ended, in a file that it maps into its
    /// memory: by `tactus.h` in C and C++, by the crate `tactus-application` in Rust, with a few lines and no system call.
    /// The probe reads that file from a thread of ordinary priority on a CPU that keeps house, never from one that is
    /// measured, and writes nothing to it. The program must run in the environment itself; `{ load = { kind = "command", ... } }`
    /// starts it there. `cpus` says where its thread is, and `interval` what its period is; where the program says another
    /// period, or marks on another CPU, that is said.
    ///
    /// The measurement begins when cycles are seen. A due time that comes while an earlier cycle still runs is an overrun:
    /// where the program leaves that cycle out, it is put back in the corrected quantiles, and where it makes it later, its
    /// own value stands there. A cycle that was lost, because the ring was written over before it was read, or whose times
    /// contradict each other, is left out, and a note says how many; nothing passes then. A program that ends or marks
    /// nothing any more ends the measurement; what was measured until then stays.
    ///
    /// The self-test is a stand-in: a thread of the probe marks cycles of its own, is held for a known time, and what is read
    /// of it must show that. The program itself is held by nobody; whether it marks in the right places nobody can prove.
    #[derive(Default)]
    pub struct Application = Measure "application": "the cycles of your own program, which it marks itself" {
        /// Whole path of the file, as the environment has it: `/dev/shm/control`.
        pub file: String;
        /// What is measured of a cycle: from its due time to its end (`response`), from its due time to its start
        /// (`start`), or from its start to its end (`execution`, which has no periods that could be missed).
        pub value: Option<MarkedValue> = MarkedValue::Response;
        /// How long the program may mark nothing: until the first cycle, and after any.
        pub patience: Option<Nanos> = Nanos(10_000_000_000), 100_000_000..=20_000_000_000;
    }
    counts "cycles";
}

choice! {
    /// What is measured of a marked cycle.
    pub enum MarkedValue {
        /// From its due time, or from its start where it has none, to its end.
        Response = "response",
        /// From its due time to its start.
        Start = "start",
        /// From its start to its end.
        Execution = "execution",
    }
}
