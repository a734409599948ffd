//! Ways between environments.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::wire::row::{Word, choice};

/// A way that messages take between two environments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NetworkPath {
    /// What it is made of.
    pub kind: PathKind,
    /// The largest packet, in bytes, on what is made for it. Default 1500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// What a guest has at its end, on `tap` and `macvtap`. Default `virtio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<GuestDevice>,
    /// For `nic`: the network interface of each end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nics: Option<[String; 2]>,
    /// Whether the interfaces of the path join packets that arrive (GRO). Left out: as the kernel makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<bool>,
    /// Whether they split packets that leave as late as can be (GSO). Left out: as the kernel makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso: Option<bool>,
    /// CPUs of the machine that take in what arrives at them (RPS). Left out: the CPU that it arrives on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rps: Option<CpuSet>,
    /// For `nic`: CPUs of the machine that the interrupts of its NICs are sent to, for the run. Left out: as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq: Option<CpuSet>,
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
        /// The same as the device of a guest.
        Macvtap = "macvtap",
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
        matches!(self, Self::Macvtap | Self::Tap)
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

    /// Whether something is set on its interfaces.
    #[must_use]
    pub const fn changes_settings(&self) -> bool {
        self.gro.is_some() || self.gso.is_some() || self.rps.is_some()
    }

    /// The largest packet.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.mtu.unwrap_or(Self::MTU)
    }
}
