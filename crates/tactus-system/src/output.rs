//! The output of a command.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::child::ends_within;
use super::command::MOST_OUTPUT;

/// How long reading the rest of the pipe may take after the end of the command, on a loaded machine.
const REST: Duration = Duration::from_secs(5);

/// One of its streams, which a thread reads.
pub struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    /// Begins to read. Bytes beyond [`MOST_OUTPUT`] and one more are thrown away: the writer must never block.
    pub fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            if let Some(pipe) = pipe {
                read(pipe, &kept);
            }
        });
        Self { bytes, reader }
    }

    /// The output up to the end of the command. A child of the command may keep the stream open; it is not waited for.
    pub fn end(self) -> Vec<u8> {
        ends_within(&self.reader, REST);
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn read(mut pipe: impl Read, kept: &Mutex<Vec<u8>>) {
    let most = usize::try_from(MOST_OUTPUT).unwrap_or(usize::MAX).saturating_add(1);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut buffer) {
            // The output ends at an error.
            Ok(0) => return,
            Ok(n) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = most - kept.len().min(most);
                kept.extend_from_slice(&buffer[..n.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
