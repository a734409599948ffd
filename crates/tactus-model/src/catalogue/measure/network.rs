//! `network`: a stream of datagrams to a peer and back, and its cost.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;
use crate::size::Bytes;

word! {
    /// UDP datagrams go from the environment to its peer (`to`), over the `path` of the plan. Without a path they go to
    /// the environment itself, over its loopback. Four turns repeat until the duration is over: rest, a stream to the
    /// peer (TX), a stream from it (RX), and single messages that come back at once. A stream takes a fortieth of the
    /// duration, at least 100 ms and at most 1 s. The rest and the single messages take a quarter of that. A value is
    /// the median over the turns, with its 95 % interval.
    ///
    /// Each flow has a socket and a process at each end. These may run on all CPUs that the activity has there.
    /// Throughput is that of the payload at the receiver, from the first message of a turn to its last, and never more
    /// than what was sent in the turn. (A receiver that was kept off its CPU reads its queue at once, which would look
    /// faster.) Messages are numbered. A message that does not arrive is lost. A message that arrives after a later one
    /// is reordered.
    ///
    /// The load is that of the whole machine: all time that its CPUs were busy, for any reason. It is the user, nice,
    /// system, hardirq and softirq time of /proc/stat; guests count as user. `load at rest` is the part that is not
    /// caused by the network. A turn is dropped and counted if a hypervisor took more than a fiftieth of the CPUs'
    /// time.
    #[derive(Default)]
    pub struct Network = Measure "network": "UDP throughput, loss, load of the machine and round trip, to a peer and back" {
        /// Payload of a datagram, in bytes. With the headers, 1472 bytes fill an Ethernet frame.
        pub message: Option<Bytes> = Bytes(1472), 16..=65_507;
        /// Number of streams at once.
        pub flows: Option<u32> = 1, 1..=64;
        /// Payload that all streams together send, in Mb/s. Left out: as fast as the sender can.
        pub rate: Option<u32>, 1..=1_000_000;
        /// TCP port of the peer.
        pub port: Option<u32> = 5202, 1..=65_535;
    }
    yields [
        TX_THROUGHPUT, TX_LOSS, TX_REORDERED, TX_LOAD, TX_LOAD_PER_RATE, TX_GUEST_LOAD, TX_SWITCHES,
        TX_USER, TX_SYSTEM, TX_HARDIRQ, TX_SOFTIRQ, TX_GUEST,
        RX_THROUGHPUT, RX_LOSS, RX_REORDERED, RX_LOAD, RX_LOAD_PER_RATE, RX_GUEST_LOAD, RX_SWITCHES,
        RX_USER, RX_SYSTEM, RX_HARDIRQ, RX_SOFTIRQ, RX_GUEST,
        ROUND_TRIP, LOAD_AT_REST
    ];
    peer To;
}

/// Items of a stream in one direction.
macro_rules! stream {
    ($way:literal, $whence:literal: $throughput:ident, $loss:ident, $reordered:ident, $load:ident, $per_rate:ident,
     $in_guest:ident, $switches:ident, $user:ident, $system:ident, $hardirq:ident, $softirq:ident, $guest:ident) => {
        /// What arrives.
        pub const $throughput: Item = Item::higher(
            concat!($way, " throughput"),
            Unit::MegabitsPerSecond,
            concat!("payload that arrives of a stream ", $whence),
        );
        /// What does not.
        pub const $loss: Item =
            Item::lower(concat!($way, " loss"), Unit::Percent, "messages that were sent and did not arrive");
        /// What comes too late.
        pub const $reordered: Item = Item::lower(
            concat!($way, " reordered"),
            Unit::Percent,
            "messages that arrived after one that was sent later",
        );
        /// What it takes.
        pub const $load: Item = Item::lower(
            concat!($way, " load"),
            Unit::Threads,
            "hardware threads of the machine that are busy meanwhile",
        );
        /// What it takes of what arrives.
        pub const $per_rate: Item = Item::lower(
            concat!($way, " load per rate"),
            Unit::ThreadsPerGigabit,
            "the load for each Gb/s that arrives",
        );
        /// What the guest knows of it.
        pub const $in_guest: Item = Item::lower(
            concat!($way, " load in guest"),
            Unit::Threads,
            "virtual CPUs that are busy meanwhile, as the guest counts; only where a guest measures",
        );
        /// How often the machine turned to something else.
        pub const $switches: Item = Item::lower(
            concat!($way, " context switches"),
            Unit::PerMessage,
            "context switches of the whole machine for each message that arrives",
        );
        /// Where the time goes.
        pub const $user: Item = Item::lower(
            concat!($way, " load: user"),
            Unit::Threads,
            "of the load, what is in user mode (user and nice)",
        );
        /// See above.
        pub const $system: Item = Item::lower(
            concat!($way, " load: system"),
            Unit::Threads,
            "of the load, what is in system calls and in threads of the kernel",
        );
        /// See above.
        pub const $hardirq: Item = Item::lower(
            concat!($way, " load: hardirq"),
            Unit::Threads,
            "of the load, what is in handlers of interrupts",
        );
        /// See above.
        pub const $softirq: Item = Item::lower(
            concat!($way, " load: softirq"),
            Unit::Threads,
            "of the load, what is in soft interrupts, which carry the network",
        );
        /// See above.
        pub const $guest: Item =
            Item::lower(concat!($way, " load: guest"), Unit::Threads, "of the load, what is in virtual CPUs");
    };
}

stream!("TX", "to the peer": TX_THROUGHPUT, TX_LOSS, TX_REORDERED, TX_LOAD, TX_LOAD_PER_RATE, TX_GUEST_LOAD, TX_SWITCHES,
    TX_USER, TX_SYSTEM, TX_HARDIRQ, TX_SOFTIRQ, TX_GUEST);
stream!("RX", "from the peer": RX_THROUGHPUT, RX_LOSS, RX_REORDERED, RX_LOAD, RX_LOAD_PER_RATE, RX_GUEST_LOAD, RX_SWITCHES,
    RX_USER, RX_SYSTEM, RX_HARDIRQ, RX_SOFTIRQ, RX_GUEST);

/// There and back.
pub const ROUND_TRIP: Item = Item::lower(
    "round trip",
    Unit::Us,
    "a message of 64 bytes goes to the peer, which sends it back at once: the mean round trip",
);

/// The load of other processes.
pub const LOAD_AT_REST: Item = Item::lower(
    "load at rest",
    Unit::Threads,
    "hardware threads of the machine that are busy while nothing is sent",
);
