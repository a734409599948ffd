//! A write to another system that may stop reading.

use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Writes all of it from a thread, and gives the stream back. A stream whose other end does not read would block the caller
/// without limit; the thread then stays until the stream is closed.
///
/// # Errors
/// Those of the stream; `TimedOut` if the other system has not read all of it within `patience`.
pub fn write_within(
    mut stream: Box<dyn Write + Send>,
    bytes: impl AsRef<[u8]> + Send + 'static,
    patience: Duration,
) -> io::Result<Box<dyn Write + Send>> {
    let (sender, written) = channel();
    std::thread::spawn(move || {
        let outcome = stream.write_all(bytes.as_ref()).and_then(|()| stream.flush());
        // After the timeout the receiver is gone.
        let _ = sender.send(outcome.map(|()| stream));
    });
    match written.recv_timeout(patience) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::BrokenPipe.into()),
        Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
    }
}
