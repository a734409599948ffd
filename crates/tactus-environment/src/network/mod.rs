//! Ways between environments. What they are made of lies in network namespaces of its own, and ends with them;
//! docs/design/network.md says why.

mod namespace;
mod steps;
mod usable;

use tactus_model::message::Note;
use tactus_model::plan::{GuestDevice, NetworkPath};
use tactus_system::System;
use tactus_system::guardian::Guardian;

use namespace::Namespace;
pub use namespace::{enter, file};
pub use steps::TAP;
use steps::{At, FAR, Holders, NEAR, has_machine, steps};
pub use usable::usable;

use crate::StartError;
use crate::attachment::Attachment;
use crate::support::cannot;

/// A path that is there. Dropping it ends it.
pub struct Network {
    near: Namespace,
    device: Option<GuestDevice>,
    far: Namespace,
    _machine: Option<Namespace>,
    /// What the reader of its results must know.
    pub notes: Vec<Note>,
}

impl Network {
    /// Makes a path.
    ///
    /// # Errors
    /// When something cannot be made; what was made is gone again.
    pub fn make(
        name: &str,
        path: &NetworkPath,
        system: &dyn System,
        guardian: &Guardian,
    ) -> Result<Self, StartError> {
        let namespace = || Namespace::make(system, guardian);
        let (near, far) = (namespace()?, namespace()?);
        let machine = has_machine(path.kind).then(namespace).transpose()?;
        for (at, words) in steps(path, Holders { near: near.holder(), far: far.holder() }) {
            match (at, &machine) {
                (At::Near, _) | (At::Machine, None) => near.run(&words),
                (At::Far, _) => far.run(&words),
                (At::Machine, Some(machine)) => machine.run(&words),
                (At::Here, _) => here(&words, system),
            }
            .map_err(|error| {
                let reason = format!("the path {name} ({}) cannot be made: {}", path.kind, error.reason);
                StartError { reason, hint: error.hint }
            })?;
        }
        let text = match path.nics {
            Some([ref first, ref second]) => {
                format!(
                    "{name}: {first} and {second} of this machine, in network namespaces of their own; both ends share \
its CPUs"
                )
            }
            None => format!(
                "{name} ({}): network namespaces of this machine stand for two machines and the wire between them; both \
ends share its CPUs, and there is no line rate",
                path.kind
            ),
        };
        let device = path.kind.is_for_guests().then(|| path.device.unwrap_or(GuestDevice::Virtio));
        Ok(Self { near, device, far, _machine: machine, notes: vec![Note::info(text)] })
    }

    /// The place of the near end.
    #[must_use]
    pub fn near(&self) -> Attachment {
        Attachment { holder: self.near.holder(), address: NEAR, other: FAR, device: self.device }
    }

    /// The place of the far end.
    #[must_use]
    pub fn far(&self) -> Attachment {
        Attachment { holder: self.far.holder(), address: FAR, other: NEAR, device: None }
    }
}

fn here(words: &[String], system: &dyn System) -> Result<(), StartError> {
    let line = words.join(" ");
    let invocation = tactus_system::Invocation::new(words.to_vec());
    let finished = system.run(&invocation).map_err(|error| cannot(&format!("`{line}`"), error))?;
    if finished.success() { Ok(()) } else { Err(cannot(&format!("`{line}`"), finished.words())) }
}
