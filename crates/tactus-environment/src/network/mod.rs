//! Paths between environments. Their parts lie in separate network namespaces, and end with them;
//! docs/design/network.md says why.

mod hand_over;
mod interrupts;
mod macvtap;
mod namespace;
mod offload;
mod steps;
mod usable;

use tactus_model::message::Note;
use tactus_model::plan::{GuestDevice, NetworkPath, PathKind};
use tactus_system::System;
use tactus_system::guardian::{Guardian, Promise};

pub use hand_over::hand_over;
pub use macvtap::launch;
use namespace::{Namespace, run};
pub use namespace::{enter, file};
use steps::{At, FAR, Holders, NEAR, has_machine, steps};
pub use steps::{MAC, TAP};
pub use usable::usable;

use crate::StartError;
use crate::attachment::{Attachment, GuestNic, Tap};

/// A path that is there. Dropping it ends it.
pub struct Network {
    /// Interrupts go back before their NICs do.
    _steered: Vec<Promise>,
    near: Namespace,
    nic: Option<GuestNic>,
    far: Namespace,
    _machine: Option<Namespace>,
    /// Notes for the reader of its results.
    pub notes: Vec<Note>,
}

impl Network {
    /// Makes a path.
    ///
    /// # Errors
    /// When a part cannot be made; the other parts are removed again.
    pub fn make(
        name: &str,
        path: &NetworkPath,
        system: &dyn System,
        guardian: &Guardian,
    ) -> Result<Self, StartError> {
        let namespace = || Namespace::make(system, guardian);
        let (near, far) = (namespace()?, namespace()?);
        let machine = has_machine(path.kind).then(namespace).transpose()?;
        let nics = interrupts::nics(path, system);
        let cannot_be_made = |error: StartError| {
            let reason = format!("the path {name} ({}) cannot be created: {}", path.kind, error.reason);
            StartError { reason, hint: error.hint }
        };
        let made = steps(path, Holders { near: near.holder(), far: far.holder() });
        for (at, words) in made.into_iter().chain(offload::settings(path)) {
            match (at, &machine) {
                (At::Near, _) | (At::Machine, None) => near.run(&words),
                (At::Far, _) => far.run(&words),
                (At::Machine, Some(machine)) => machine.run(&words),
                (At::Here, _) => run(system, Vec::new(), &words),
            }
            .map_err(cannot_be_made)?;
        }
        let steered = path.irq.as_ref().map(|cpus| interrupts::steer(&nics, cpus, system, guardian));
        let steered = steered.transpose().map_err(cannot_be_made)?.unwrap_or_default();
        let text = match path.nics {
            Some([ref first, ref second]) => {
                format!(
                    "{name}: {first} and {second} of this machine, in separate network namespaces; both ends share \
its CPUs"
                )
            }
            None => format!(
                "{name} ({}): network namespaces of this machine replace two machines and the wire between \
them; both ends share its CPUs, and there is no line rate",
                path.kind
            ),
        };
        let device = path.device.unwrap_or(GuestDevice::Virtio);
        let tap = if path.kind == PathKind::Macvtap { Tap::File } else { Tap::Named };
        let nic = path.kind.is_for_guests().then_some(GuestNic { device, tap });
        Ok(Self { _steered: steered, near, nic, far, _machine: machine, notes: vec![Note::info(text)] })
    }

    /// The place of the near end.
    #[must_use]
    pub fn near(&self) -> Attachment {
        Attachment { holder: self.near.holder(), address: NEAR, other: FAR, nic: self.nic }
    }

    /// The place of the far end.
    #[must_use]
    pub fn far(&self) -> Attachment {
        Attachment { holder: self.far.holder(), address: FAR, other: NEAR, nic: None }
    }
}
