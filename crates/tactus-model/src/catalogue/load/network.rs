//! `network`: datagrams.

use crate::catalogue::declare::word;
use crate::size::Bytes;

word! {
    /// A sender and a receiver per CPU exchange UDP datagrams over the environment's own loopback: network
    /// soft interrupts and wake-ups, no wire. A loopback that is down is brought up where the environment was
    /// made for the probe; elsewhere the load is refused. A round is a datagram received.
    #[derive(Default)]
    pub struct Network = Load "network": "datagrams over the loopback" {
        /// Size of a datagram. IPv4 leaves 65507 bytes of 64 KiB to it.
        pub bytes: Option<Bytes> = Bytes(1 << 10), 1..=65_507;
    }
}
