//! `network`: a stream of datagrams to a peer and back, and its cost.

use crate::catalogue::Item;
use crate::catalogue::declare::word;
use crate::outcome::Unit;
use crate::size::Bytes;

word! {
    /// Datagrams of UDP go from the environment to its peer (`to`, over the `path` of the plan; without one to itself,
    /// over its loopback). In turns, again and again until the duration is over: nothing for a moment, a stream to the
    /// peer (TX), one from it (RX), and single messages that come back at once. A turn is a fortieth of the duration, at
    /// least 100 ms and at most 1 s; a value is the median over the turns, with its 95 % interval.
    ///
    /// Each flow has a socket and a process at each end, which may run on all CPUs that the activity has there. What
    /// arrives is what counts: the throughput is that of the payload at the receiver, from the first message of a turn to
    /// its last. Messages are numbered: what does not arrive is lost, what comes after a later one is reordered.
    ///
    /// The load is that of the machine: all time that its CPUs were busy (user, nice, system, hardirq and softirq of
    /// /proc/stat, guests being in user), whatever they did; `load at rest` says how much of it has nothing to do with the
    /// network. A turn during which a hypervisor took more than a fiftieth of the CPUs' time is dropped and counted.
    #[derive(Default)]
    pub struct Network = Measure "network": "UDP throughput, loss, load of the machine and round trip, to a peer and back" {
        /// Bytes that a datagram carries. With their headers, 1472 fill a frame of Ethernet.
        pub message: Option<Bytes> = Bytes(1472), 16..=65_507;
        /// Streams at once.
        pub flows: Option<u32> = 1, 1..=64;
        /// Payload that is offered by all streams together, in Mb/s. Left out: as much as the sender can.
        pub rate: Option<u32>, 1..=1_000_000;
        /// The TCP port at which the peer is spoken to.
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
    "a message of 64 bytes goes to the peer, which sends it back at once: the mean of a turn",
);

/// The load of other processes.
pub const LOAD_AT_REST: Item = Item::lower(
    "load at rest",
    Unit::Threads,
    "hardware threads of the machine that are busy while nothing is sent",
);
