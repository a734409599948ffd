//! The socket that carries a guest's channel.

use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::StartError;

/// How the reason begins when a guest runs and does not speak.
pub const SILENT: &str = "the guest said nothing";

/// A socket that QEMU will connect to: nothing can be missed that way, and nobody has to wait for a
/// file to appear.
///
/// # Errors
/// When it cannot be made.
pub fn listen(path: &Path) -> Result<UnixListener, StartError> {
    // Left by a guest that was tried before in the same workspace.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).and_then(|listener| {
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
/// Why there is none.
pub fn first_byte(heard: &mut Vec<u8>, stream: &mut UnixStream, patience: Duration) -> Result<(), String> {
    let mut byte = [0; 1];
    match stream.set_read_timeout(Some(patience)).and_then(|()| stream.read(&mut byte)) {
        Ok(1..) => {
            heard.extend(byte);
            stream.set_read_timeout(None).map_err(|error| format!("the probe's stream: {error}"))
        }
        Ok(0) => Err("the guest ended before its first word".into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(format!("{SILENT} for {} s", patience.as_secs_f64()))
        }
        Err(error) => Err(format!("the probe's stream broke: {error}")),
    }
}
