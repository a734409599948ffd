//! The words of a plan and what they mean: one entry per measurement, load and fault, from which
//! help, `tactus explain` and the book are made.

pub mod os;

use crate::outcome::{Better, Unit, Yields};

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
    /// What a measurement yields; none: it is no measurement.
    pub yields: Option<Yields>,
    /// The values of a measurement that yields some, in their order.
    pub items: &'static [Item],
    /// How a plan names its peer in another environment; none: it has no peer.
    pub peer: Option<PeerKey>,
}

/// A value that a measurement yields.
#[derive(Debug)]
pub struct Item {
    /// What is measured.
    pub name: &'static str,
    /// In which unit.
    pub unit: Unit,
    /// Which of two values is the better one.
    pub better: Better,
    /// What one operation of it is.
    pub about: &'static str,
}

/// The key by which an activity names its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKey {
    /// `to`: where it sends.
    To,
    /// `from`: where that comes from which it measures.
    From,
}

/// A load or a fault, without a peer: what most entries say no more of.
const PLAIN: Word =
    Word { name: "", family: Family::Load, summary: "", text: "", yields: None, items: &[], peer: None };

/// Everything a probe can be told to do. A test in the probe holds its files against this table.
pub static WORDS: &[Word] = &[
    Word {
        name: "timer",
        family: Family::Measurement,
        summary: "cyclic wake-up latency, as cyclictest measures it",
        text: "One thread per CPU sleeps until an absolute time (clock_nanosleep, CLOCK_MONOTONIC), every \
`interval`, and notes how late it woke, in ns. A wake-up later than one interval misses periods: they are \
counted as overruns and put back in the corrected quantiles.\n\n\
Keys: threads = N (per CPU, each one priority lower; default 1), break = \"100us\" (stop when exceeded).",
        yields: Some(Yields::Latency),
        ..PLAIN
    },
    Word {
        name: "spin",
        family: Family::Measurement,
        summary: "polled gaps, as oslat and hwlat see them",
        text: "One thread per CPU reads the clock in a tight loop and notes every gap between two readings, in \
ns. A gap is time that something else took from the CPU: an interrupt, a system management interrupt, a hypervisor. \
It polls `busy` per cent of each second, so that the rest of the system can breathe.\n\n\
Keys: busy = 95 (per cent of each second).",
        yields: Some(Yields::Latency),
        ..PLAIN
    },
    os::WORD,
    Word {
        name: "scheduler",
        family: Family::Load,
        summary: "groups of senders and receivers, as hackbench",
        text: "Groups of processes exchange small messages over UNIX sockets or pipes: wake-ups, context \
switches and run-queue locks in plenty.\n\n\
Keys: groups = 2, pairs = 10 (senders and receivers per group), size = 100 (bytes), pipes = false.",
        ..PLAIN
    },
    Word {
        name: "cpu",
        family: Family::Load,
        summary: "one busy thread per CPU",
        text: "Threads of ordinary priority that compute without end.\n\nKeys: busy = 100 (per cent of the time).",
        ..PLAIN
    },
    Word {
        name: "cache",
        family: Family::Load,
        summary: "random allocation of blocks, as stress-ng --malloc",
        text: "Processes of ordinary priority, one per CPU, allocate (malloc, calloc), grow and shrink (realloc) \
and free blocks of random size up to `bytes` and write to every line of them: caches and page tables are used by \
others than the measurement. `cache` alone is what `stress-ng --malloc 1 --malloc-bytes 512k --malloc-max 32` is. \
A round is one such step.\n\n\
Keys: workers = 1 (per CPU), bytes = \"512KiB\" (largest block), blocks = 32 (at a time).",
        ..PLAIN
    },
    Word {
        name: "memory",
        family: Family::Load,
        summary: "streams through more memory than any cache holds",
        text: "A process per CPU copies one half of a buffer to the other and adds it back (the copy and triad of \
STREAM): the last-level cache is thrown out and the memory controller is busy. A round is a MiB gone through.\n\n\
Keys: bytes (of each CPU; default \"64MiB\", or twice its largest cache where that is more).",
        ..PLAIN
    },
    Word {
        name: "disk",
        family: Family::Load,
        summary: "writes, syncs and reads a file",
        text: "A process per CPU writes a file without a name, with an fsync every MiB, drops it from the page cache \
and reads it again: block layer, device interrupts and writeback. Refused where only memory can be written (tmpfs, a \
guest's initramfs). A round is 64 KiB written or read.\n\n\
Keys: directory (default: the first of /var/tmp, /tmp and / that is of use), bytes = \"16MiB\" (of each CPU).",
        ..PLAIN
    },
    Word {
        name: "network",
        family: Family::Load,
        summary: "datagrams over the loopback",
        text: "A sender and a receiver per CPU exchange UDP datagrams over the environment's own loopback: network \
soft interrupts and wake-ups, no wire. A loopback that is down is brought up where the environment was made for the \
probe; elsewhere the load is refused. A round is a datagram received.\n\n\
Keys: bytes = \"1KiB\" (of a datagram, at most 65507B).",
        ..PLAIN
    },
    Word {
        name: "command",
        family: Family::Load,
        summary: "a program of the environment (hackbench, stress-ng)",
        text: "Runs a program that the environment has, on the chosen CPUs unless it sets others itself, without \
input and without output. It is killed at the end with everything it started; that it ended before is reported. \
Refused where there is no such program: what tactus starts itself holds the probe alone. A round is a tenth of a \
second that it ran.\n\n\
Keys: run = [\"stress-ng\", \"--malloc\", \"1\"] (no shell reads it).",
        ..PLAIN
    },
    Word {
        name: "hog",
        family: Family::Fault,
        summary: "a SCHED_FIFO task above the measuring threads",
        text: "A task one priority above the measuring threads (99 at most) holds a CPU for `length`, every \
`every`. Nothing is changed in the kernel; it ends with the probe.\n\nKeys: length = \"1ms\", every = \"100ms\".",
        ..PLAIN
    },
    Word {
        name: "block",
        family: Family::Fault,
        summary: "interrupts or preemption off for a known time",
        text: "The kernel keeps interrupts off for `length`, every `every`, on exactly the CPUs asked for. It is carried \
out by the first of these that the kernel has: OSADL's /dev/blocksys, the hwlat tracer, the osnoise tracer with \
OSNOISE_IRQ_DISABLE (or OSNOISE_PREEMPT_DISABLE), the module preemptirq_delay_test; the result says by which. What was \
changed is put back at every end. A kernel that has none of them refuses it.\n\n\
Keys: length = \"4ms\", every = \"1s\", emulated = \"50ms\" (the length where the processor is emulated), off = \
\"interrupts\" (or \"preemption\"), way = \"blocksys\", \"hwlat\", \"osnoise\" or \"preemptirq-delay\".",
        ..PLAIN
    },
    Word {
        name: "overcommit",
        family: Family::Fault,
        summary: "more real-time threads than CPUs",
        text: "On each CPU `threads` SCHED_FIFO threads, the first above the measuring ones, each further one a priority \
lower. Each takes `length` of CPU time every `every`, all at the same moments: the lowest waits for the sum of the \
others. What would leave less than 5 % of a CPU is refused.\n\n\
Keys: threads = 12 (per CPU), length = \"1ms\", every = \"100ms\".",
        ..PLAIN
    },
    Word {
        name: "hold-vcpu",
        family: Family::Fault,
        summary: "one vCPU thread kept off its CPU, from the host side",
        text: "The thread that runs a virtual CPU is kept off its CPU for `length`, every `every`: alone, by \
ptrace(2), or by a SCHED_FIFO task of priority 99 on the CPU that it is pinned to (which keeps the hypervisor's other \
threads off that CPU, too). The guest's clock goes on meanwhile: what it measures is what a busy host does to it. The \
host's scheduling record of the thread says how long it was kept from running, so that the latency is not taken for \
the guest kernel's.\n\n\
Keys: length = \"50ms\", every = \"1s\", by = \"ptrace\" or \"fifo\". `cpus` are the guest's.",
        ..PLAIN
    },
];

/// The entry of a measurement: a load may have the same word.
#[must_use]
pub fn measurement(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.family == Family::Measurement && word.name == name)
}

/// The entry of a word.
#[must_use]
pub fn word(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}
