//! Ways between environments.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::wire::row::{Word, choice};

/// A way that messages take between two environments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPath {
    /// What it is made of.
    pub kind: PathKind,
    /// The largest packet, in bytes, on what is made for it. Default 1500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// What a guest has at its end, on `tap`. Default `virtio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<GuestDevice>,
    /// For `nic`: the network interface of each end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nics: Option<[String; 2]>,
}

choice! {
    /// What a path is made of.
    pub enum PathKind {
        /// The loopback of one environment.
        Loopback = "loopback",
        /// A cable: two interfaces, one in each namespace.
        Veth = "veth",
        /// The same by way of a bridge on the near side.
        Bridge = "bridge",
        /// An interface of its own on the near end of the cable.
        Macvlan = "macvlan",
        /// The device of a guest, on a bridge with the cable.
        Tap = "tap",
        /// Two interfaces of this machine that a cable joins.
        Nic = "nic",
    }
}

choice! {
    /// What a guest has at its end.
    pub enum GuestDevice {
        /// virtio, emulated by QEMU itself: no vhost, no ioeventfd.
        Virtio = "virtio",
        /// virtio in the host's kernel.
        Vhost = "vhost",
        /// A NIC of Intel's, emulated register by register.
        E1000 = "e1000",
        /// A NIC of the machine, given to the guest.
        Vfio = "vfio",
    }
}

impl PathKind {
    /// Whether its near end is a guest's device.
    #[must_use]
    pub const fn is_for_guests(self) -> bool {
        matches!(self, Self::Tap)
    }
}

impl fmt::Display for PathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.word())
    }
}

impl NetworkPath {
    /// The largest packet where none is given.
    pub const MTU: u32 = 1500;

    /// The largest packet.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.mtu.unwrap_or(Self::MTU)
    }
}
