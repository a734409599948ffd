//! The socket that carries a guest's channel.

use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use tactus_system::System;

use crate::StartError;

/// Why a guest has no first word.
#[derive(Debug, thiserror::Error)]
pub enum NoWord {
    /// It runs, or seems to, and does not speak.
    #[error("the guest sent nothing for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// It ended.
    #[error("the guest ended before its first message")]
    Ended,
    /// Its channel does not work.
    #[error("the probe's stream broke: {0}")]
    Broken(#[from] io::Error),
}

impl NoWord {
    /// The guest did not come up; `words` are its last ones.
    #[must_use]
    pub fn with(self, words: Option<String>) -> BootError {
        let error = StartError {
            reason: format!("{self}: {}", words.unwrap_or_default()),
            hint: Some(
                "`boot_timeout` gives the guest more time; its console is kept with the results".into(),
            ),
        };
        if matches!(self, Self::Silent(_)) { BootError::Silent(error) } else { BootError::Other(error) }
    }
}

/// Why a guest did not come up.
#[derive(Debug)]
pub enum BootError {
    /// It was started and does not speak.
    Silent(StartError),
    /// Anything else.
    Other(StartError),
}

impl BootError {
    /// The same without the distinction.
    #[must_use]
    pub const fn error(&self) -> &StartError {
        match self {
            Self::Silent(error) | Self::Other(error) => error,
        }
    }
}

impl From<StartError> for BootError {
    fn from(error: StartError) -> Self {
        Self::Other(error)
    }
}

impl From<BootError> for StartError {
    fn from(error: BootError) -> Self {
        match error {
            BootError::Silent(error) | BootError::Other(error) => error,
        }
    }
}

/// A socket that QEMU will connect to: so no output is missed, and tactus need not wait for a file to appear.
///
/// # Errors
/// When it cannot be made.
pub fn listen(system: &dyn System, path: &Path) -> Result<UnixListener, StartError> {
    let listener = system.listen(path).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|error| StartError {
        reason: format!("{}: {error}", path.display()),
        hint: Some("the path of a socket has at most 107 bytes: set TACTUS_CACHE_DIR to a short one".into()),
    })
}

/// Waits for a guest's first byte and keeps it in `heard`.
///
/// # Errors
/// Why no byte came.
pub fn first_byte(heard: &mut Vec<u8>, stream: &mut UnixStream, patience: Duration) -> Result<(), NoWord> {
    let mut byte = [0; 1];
    match stream.set_read_timeout(Some(patience)).and_then(|()| stream.read(&mut byte)) {
        Ok(1..) => {
            heard.extend(byte);
            Ok(stream.set_read_timeout(None)?)
        }
        Ok(0) => Err(NoWord::Ended),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(NoWord::Silent(patience)),
        Err(error) => Err(NoWord::Broken(error)),
    }
}
