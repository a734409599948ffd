//! An environment whose probe speaks over the stdin and stdout of a child.

use std::time::{Duration, Instant};

use tactus_model::message::Note;
use tactus_system::guardian::Promise;
use tactus_system::{Child, last_lines};

use crate::{Running, StartError, Stream};

/// How long a probe may take to quit after it was told to.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the end of the child is awaited when its stream has ended.
const END: Duration = Duration::from_secs(1);

/// A child, and what is to be taken back when it has not ended well.
pub struct Piped {
    child: Box<dyn Child>,
    promises: Vec<Promise>,
    notes: Vec<Note>,
}

impl Piped {
    /// Takes over a child.
    pub fn new(child: Box<dyn Child>, promises: Vec<Promise>, notes: Vec<Note>) -> Self {
        Self { child, promises, notes }
    }

    /// Waits for the child's own end.
    fn wait(&mut self, patience: Duration) -> Option<Option<i32>> {
        let until = Instant::now() + patience;
        loop {
            if let Ok(Some(code)) = self.child.try_wait() {
                return Some(code);
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Running for Piped {
    fn take_stream(&mut self) -> Option<Stream> {
        Some(Stream { reader: self.child.take_stdout()?, writer: self.child.take_stdin()? })
    }

    fn after_hello(&mut self) -> Result<Vec<Note>, StartError> {
        Ok(std::mem::take(&mut self.notes))
    }

    fn last_words(&mut self) -> Option<String> {
        let end = match self.wait(END) {
            None => "it is still running".to_owned(),
            // A container tool's way to say it, as a shell's.
            Some(Some(code @ 129..=159)) => format!("it was killed by signal {}", code - 128),
            Some(Some(code)) => format!("it ended with exit code {code}"),
            Some(None) => "it was killed by a signal".to_owned(),
        };
        let words = last_lines(&self.child.stderr(), 8);
        Some(if words.is_empty() { end } else { format!("{end}: {words}") })
    }

    fn stop(&mut self) {
        let code = self.wait(STOP_TIMEOUT);
        if code.is_none() {
            self.child.kill();
        }
        // After a good end the tool itself has removed what it made.
        let clean = code == Some(Some(0));
        for promise in self.promises.drain(..).rev() {
            if clean {
                promise.forget();
            } else {
                drop(promise);
            }
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.child.kill();
    }
}
