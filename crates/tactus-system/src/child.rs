//! A process that we started.

use std::io::{self, Read, Write};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Child;
use super::log::{self, HERE};

/// How much of stderr is kept, in bytes.
pub const KEPT: usize = 64 * 1024;
/// How long the rest of stderr is awaited after the end: another process may hold the pipe.
pub const REST: Duration = Duration::from_millis(200);

/// A running process whose stderr a thread collects. Dropping it kills it.
pub struct RealChild {
    process: process::Child,
    /// Its words, for the log.
    line: String,
    began: Instant,
    ended: Option<Option<i32>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    collector: Option<JoinHandle<()>>,
}

impl RealChild {
    pub fn new(mut process: process::Child, line: String) -> Self {
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let collector = process.stderr.take().map(|pipe| {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || collect(pipe, &kept))
        });
        Self { process, line, began: Instant::now(), ended: None, stderr, collector }
    }
}

/// Keeps the end of what comes.
pub fn collect(mut pipe: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..n]);
                let beyond = kept.len().saturating_sub(KEPT);
                kept.drain(..beyond);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Waits for what a thread reads to end; whether it has within this time.
pub fn ends_within<T>(reads: &JoinHandle<T>, patience: Duration) -> bool {
    let began = Instant::now();
    while !reads.is_finished() {
        if began.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

impl Child for RealChild {
    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        self.process.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)
    }

    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        self.process.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn Write + Send>)
    }

    fn stderr(&self) -> String {
        if let Some(collector) = self.collector.as_ref().filter(|_| self.ended.is_some()) {
            ends_within(collector, REST);
        }
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }

    fn try_wait(&mut self) -> io::Result<Option<Option<i32>>> {
        if self.ended.is_none() {
            self.ended = self.process.try_wait()?.map(|status| status.code());
            if let Some(code) = self.ended {
                log::ended(HERE, &self.line, self.began, code);
            }
        }
        Ok(self.ended)
    }

    fn kill(&mut self) {
        if self.ended.is_none() {
            // It can only fail for a process that has ended; waiting is then all that is left.
            let _ = self.process.kill();
            let code = self.process.wait().ok().and_then(|status| status.code());
            self.ended = Some(code);
            log::ended(HERE, &self.line, self.began, code);
        }
    }
}

impl Drop for RealChild {
    fn drop(&mut self) {
        self.kill();
    }
}
