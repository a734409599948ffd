//! Ways between environments.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::wire::row::{Word, choice};

/// A path of messages between two environments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NetworkPath {
    /// Its kind.
    pub kind: PathKind,
    /// The largest packet, in bytes, on the interfaces that are made for it. Default 1500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The network device of a guest, on `tap` and `macvtap`. Default `virtio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<GuestDevice>,
    /// For `nic`: the network interface of each end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nics: Option<[String; 2]>,
    /// Whether the interfaces of the path join packets that arrive (GRO). Left out: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<bool>,
    /// Whether they split packets that leave as late as possible (GSO). Left out: the kernel's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso: Option<bool>,
    /// CPUs of the machine that process the packets that arrive at them (RPS). Left out: the CPU that a packet arrives
    /// on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rps: Option<CpuSet>,
    /// For `nic`: CPUs of the machine to which the interrupts of its NICs are sent during the run. Left out: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq: Option<CpuSet>,
}

choice! {
    /// A kind of path.
    pub enum PathKind {
        /// The loopback of one environment.
        Loopback = "loopback",
        /// A cable: two interfaces, one in each namespace.
        Veth = "veth",
        /// The same through a bridge on the near side.
        Bridge = "bridge",
        /// A macvlan interface on the near end of the cable.
        Macvlan = "macvlan",
        /// A macvtap interface there, which is the device of a guest.
        Macvtap = "macvtap",
        /// A tap interface, which is the device of a guest, on a bridge with the cable.
        Tap = "tap",
        /// Two interfaces of this machine that are connected by a cable.
        Nic = "nic",
    }
}

choice! {
    /// The network device of a guest.
    pub enum GuestDevice {
        /// virtio, emulated by QEMU itself: no vhost, no ioeventfd.
        Virtio = "virtio",
        /// virtio in the host's kernel.
        Vhost = "vhost",
        /// An Intel NIC, emulated register by register.
        E1000 = "e1000",
        /// A NIC of the machine, passed through to the guest. It cannot be measured yet.
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
