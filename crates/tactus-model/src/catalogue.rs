//! The words of a plan and what they mean: one entry per measurement, load and fault, from which
//! help, `tactus explain` and the book are made.

/// What a word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// What a probe measures.
    Measurement,
    /// What runs beside it.
    Load,
    /// An injected disturbance.
    Fault,
}

/// An entry of the catalogue.
#[derive(Debug)]
pub struct Word {
    /// The word of the plan.
    pub name: &'static str,
    /// What it names.
    pub family: Family,
    /// One line.
    pub summary: &'static str,
    /// What it does, how to read its numbers, what its keys are.
    pub text: &'static str,
}

/// Everything a probe can be told to do. A test in the probe holds its files against this table.
pub static WORDS: &[Word] = &[
    Word {
        name: "timer",
        family: Family::Measurement,
        summary: "cyclic wake-up latency, as cyclictest measures it",
        text: "One thread per CPU sleeps until an absolute time (clock_nanosleep, CLOCK_MONOTONIC), every \
`interval`, and notes how late it woke, in ns. A wake-up later than one interval swallows periods: they are \
counted as overruns and put back in the corrected quantiles.\n\n\
Keys: threads = N (per CPU, each one priority lower; default 1), break = \"100us\" (stop when exceeded).",
    },
    Word {
        name: "spin",
        family: Family::Measurement,
        summary: "polled gaps, as oslat and hwlat see them",
        text: "One thread per CPU reads the clock in a tight loop and notes every gap between two readings, in \
ns. A gap is time that something else took from the CPU: an interrupt, a system management interrupt, a hypervisor. \
It polls `busy` per cent of each second, so that the rest of the system can breathe.\n\n\
Keys: busy = 95 (per cent of each second).",
    },
    Word {
        name: "scheduler",
        family: Family::Load,
        summary: "groups of senders and receivers, as hackbench",
        text: "Groups of processes exchange small messages over UNIX sockets or pipes: wake-ups, context \
switches and run-queue locks in plenty.\n\n\
Keys: groups = 2, pairs = 10 (senders and receivers per group), size = 100 (bytes), pipes = false.",
    },
    Word {
        name: "cpu",
        family: Family::Load,
        summary: "one busy thread per CPU",
        text: "Threads of ordinary priority that compute without end.\n\nKeys: busy = 100 (per cent of the time).",
    },
    Word {
        name: "hog",
        family: Family::Fault,
        summary: "a SCHED_FIFO task above the measuring threads",
        text: "A task one priority above the measuring threads (99 at most) holds a CPU for `length`, every \
`every`. Nothing is changed in the kernel; it ends with the probe.\n\nKeys: length = \"1ms\", every = \"100ms\".",
    },
];

/// The entry of a word.
#[must_use]
pub fn word(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}
