//! The interrupt card of a guest: what QEMU and the card behind it share (docs/design/card.md).

use std::path::{Path, PathBuf};

use tactus_system::System;
use tactus_system::ivshmem::Ivshmem;

use crate::StartError;

/// A card that a guest can take. Dropping it ends it.
pub struct Card {
    socket: PathBuf,
    _server: Ivshmem,
}

impl Card {
    /// Makes one, to be had at `socket`.
    ///
    /// # Errors
    /// When the machine does not give what it needs.
    pub fn make(socket: &Path, system: &dyn System) -> Result<Self, StartError> {
        let served = system.listen(socket).and_then(Ivshmem::serve);
        let server = served.map_err(|error| StartError {
            reason: format!("the interrupt card at {} cannot be created: {error}", socket.display()),
            hint: None,
        })?;
        Ok(Self { socket: socket.to_owned(), _server: server })
    }

    /// Where it is to be had.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}
