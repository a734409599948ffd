//! How an environment and a network path meet, and a guest and an interrupt card.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use tactus_model::catalogue::measure::AnswerBy;
use tactus_model::plan::GuestDevice;

/// The place of an environment on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The process that holds the network namespace which the environment is to be in.
    pub holder: u32,
    /// Its address there.
    pub address: Ipv4Addr,
    /// That of the other end.
    pub other: Ipv4Addr,
    /// The NIC of a guest.
    pub nic: Option<GuestNic>,
}

/// The network device of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestNic {
    /// The device that the guest sees.
    pub device: GuestDevice,
    /// The interface behind it.
    pub tap: Tap,
}

/// The host's side of a guest's network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// An interface that QEMU opens by its name.
    Named,
    /// A macvtap, which QEMU is given as descriptor 3.
    File,
}

/// A card as a guest takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCard {
    /// Where it is to be had.
    pub socket: PathBuf,
    /// The code in the guest that answers it.
    pub by: AnswerBy,
}
