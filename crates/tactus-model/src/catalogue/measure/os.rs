//! `os`: what elementary services of the operating system cost.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::{Better, Unit};

word! {
    /// A worker process on the first CPU of the activity does each operation in batches of about a
    /// millisecond, one item after the other, again and again until the duration is over. A value is the median
    /// of the repeats, with the interval that holds it with 95 % certainty whatever their distribution. A
    /// repeat during which something else had the CPU for more than a fiftieth of it is dropped and counted. It
    /// runs with ordinary scheduling unless the plan names a `policy`, and rests a tenth of the time.
    #[derive(Default)]
    pub struct Os = Measure "os": "what system calls, signals, select, context switches and UNIX sockets cost" {}
    yields [SYSTEM_CALL, SIGNAL_HANDLER, SELECT, CONTEXT_SWITCH, UNIX_BANDWIDTH];
}

/// A system call.
pub const SYSTEM_CALL: Item = Item {
    name: "system call",
    unit: Unit::Ns,
    better: Better::Lower,
    about: "getppid(2), which does nothing but enter and leave the kernel",
};

/// A signal.
pub const SIGNAL_HANDLER: Item = Item {
    name: "signal handler",
    unit: Unit::Us,
    better: Better::Lower,
    about: "a process sends itself a signal whose handler returns, less the sending alone (`lat_sig catch` of lmbench)",
};

/// Looking for input on many sockets.
pub const SELECT: Item = Item {
    name: "select on 100 TCP fds",
    unit: Unit::Us,
    better: Better::Lower,
    about: "select(2) on 100 descriptors of a TCP connection, all of which can be written (`lat_select -n 100 tcp` of \
lmbench)",
};

/// From one task to another.
pub const CONTEXT_SWITCH: Item = Item {
    name: "context switch",
    unit: Unit::Ns,
    better: Better::Lower,
    about: "two processes on one CPU hand a byte back and forth through pipes; half of a round trip, with its \
write(2) and read(2)",
};

/// Bytes through a UNIX socket.
pub const UNIX_BANDWIDTH: Item = Item {
    name: "AF_UNIX bandwidth",
    unit: Unit::MegabytesPerSecond,
    better: Better::Higher,
    about: "a process writes 64 KiB at a time into a UNIX stream socket and another one reads them (`bw_unix` of \
lmbench)",
};
