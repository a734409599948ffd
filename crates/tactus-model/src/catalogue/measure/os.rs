//! `os`: what elementary services of the operating system cost.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;

word! {
    /// A worker process on the first CPU of the activity runs each operation in batches of a half to one millisecond.
    /// Batches of `fork` and `fork and exec` are shorter. The items take turns until the duration is over. A value is
    /// the median of the repeats, with an interval that contains it with 95 % certainty for any distribution. A repeat
    /// is dropped and counted if something else had the CPU for more than a fiftieth of it. Items on TCP allow half of
    /// it, because the kernel does part of their work in interrupts. Repeats are also dropped around a time at which a
    /// hypervisor took the CPU, or the processor's clock changed by more than a twentieth. The worker has ordinary
    /// scheduling unless the plan names a `policy`, and rests a tenth of the time.
    ///
    /// Its partner processes run on the same CPU. Context switches among several processes are a curve over their
    /// number. A requirement or a published figure is compared with the value of the most processes.
    #[derive(Default)]
    pub struct Os = Measure "os": "what system calls, signals, page faults, processes, context switches and bytes between \
processes cost" {
        /// Number of TCP descriptors of the item `select on TCP fds`.
        pub descriptors: Option<u32> = 100, 1..=1000;
    }
    yields [
        SYSTEM_CALL, CLOCK_READ, SIGNAL_INSTALL, SIGNAL_HANDLER, PAGE_FAULT, SELECT, FORK, FORK_EXEC, CONTEXT_SWITCH,
        PIPE_LATENCY, PIPE_BANDWIDTH, UNIX_LATENCY, UNIX_BANDWIDTH, TCP_LATENCY, TCP_BANDWIDTH, CONTEXT_SWITCHES,
        CONTEXT_SWITCHES_16K, CONTEXT_SWITCHES_64K
    ];
}

/// A system call.
pub const SYSTEM_CALL: Item =
    Item::lower("system call", Unit::Ns, "getppid(2), which does nothing but enter and leave the kernel");

/// Reading the clock.
pub const CLOCK_READ: Item = Item::lower(
    "clock read",
    Unit::Ns,
    "clock_gettime(CLOCK_MONOTONIC): no system call where the clock can be read without the kernel",
);

/// Setting the handler of a signal.
pub const SIGNAL_INSTALL: Item =
    Item::lower("signal install", Unit::Ns, "sigaction(2) with a handler (`lat_sig install` of lmbench)");

/// A signal.
pub const SIGNAL_HANDLER: Item = Item::lower(
    "signal handler",
    Unit::Us,
    "a process sends itself a signal whose handler returns, less the sending alone (`lat_sig catch` of lmbench)",
);

/// Memory that is not there yet.
pub const PAGE_FAULT: Item = Item::lower(
    "page fault",
    Unit::Ns,
    "the first write into a page of anonymous memory, of the smallest size that the kernel has",
);

/// Looking for input on many sockets.
pub const SELECT: Item = Item::lower(
    "select on TCP fds",
    Unit::Us,
    "select(2) on `descriptors` descriptors of a TCP connection, all of which can be written (`lat_select -n 100 tcp` of \
lmbench)",
);

/// A process.
pub const FORK: Item =
    Item::lower("fork", Unit::Us, "a child is forked, ends, and is waited for (`lat_proc fork` of lmbench)");

/// A program.
pub const FORK_EXEC: Item = Item::lower(
    "fork and exec",
    Unit::Us,
    "a child is forked, executes a static program that ends at once, and is waited for (`lat_proc exec` of lmbench)",
);

/// From one task to another.
pub const CONTEXT_SWITCH: Item = Item::lower(
    "context switch",
    Unit::Ns,
    "two processes on one CPU hand a byte back and forth through pipes; half of a round trip, with its \
write(2) and read(2)",
);

/// There and back through a pipe.
pub const PIPE_LATENCY: Item = Item::lower(
    "pipe latency",
    Unit::Us,
    "a byte goes to another process through a pipe and one comes back through a second (`lat_pipe` of lmbench)",
);

/// Bytes through a pipe.
pub const PIPE_BANDWIDTH: Item = Item::higher(
    "pipe bandwidth",
    Unit::MegabytesPerSecond,
    "a process writes 64 KiB at a time into a pipe and another one reads them (`bw_pipe` of lmbench)",
);

/// There and back through a UNIX socket.
pub const UNIX_LATENCY: Item = Item::lower(
    "AF_UNIX latency",
    Unit::Us,
    "a byte goes to another process through a UNIX stream socket and one comes back (`lat_unix` of lmbench)",
);

/// Bytes through a UNIX socket.
pub const UNIX_BANDWIDTH: Item = Item::higher(
    "AF_UNIX bandwidth",
    Unit::MegabytesPerSecond,
    "a process writes 64 KiB at a time into a UNIX stream socket and another one reads them (`bw_unix` of \
lmbench)",
);

/// There and back through TCP.
pub const TCP_LATENCY: Item = Item::lower(
    "TCP latency",
    Unit::Us,
    "a byte goes to another process through TCP on the loopback and one comes back (`lat_tcp` of lmbench)",
);

/// Bytes through TCP.
pub const TCP_BANDWIDTH: Item = Item::higher(
    "TCP bandwidth",
    Unit::MegabytesPerSecond,
    "a process writes 64 KiB at a time into a TCP connection on the loopback and another one reads them (`bw_tcp` of \
lmbench)",
);

/// From one of several tasks to the next.
pub const CONTEXT_SWITCHES: Item = Item::lower(
    "context switch, ring",
    Unit::Ns,
    "2 to 16 processes on one CPU hand a byte around in a ring of pipes. The value is the time from one to \
the next, with its write(2) and read(2), which `lat_ctx` of lmbench subtracts",
);

/// The same, with memory.
pub const CONTEXT_SWITCHES_16K: Item = Item::lower(
    "context switch, ring, 16 KiB each",
    Unit::Ns,
    "the same, but each process reads its 16 KiB, a word of each line, before it hands the byte on",
);

/// The same, with more of it.
pub const CONTEXT_SWITCHES_64K: Item =
    Item::lower("context switch, ring, 64 KiB each", Unit::Ns, "the same with 64 KiB each");
