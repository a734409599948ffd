//! The `trace_pipe` of a CPU. Reading a line consumes it, so the readers of its two contexts share one pipe.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, Weak};

use tactus_model::undo::MARKER;
use tactus_model::undo::block::{ROOTS, TIMERLAT};

use super::line::{Context, Latency, Lines, Said, read};
use crate::reading::lock;

/// Limit of the bytes in one look: a pipe that fills faster than it is emptied must not block its reader.
const MOST_BYTES: usize = 16 << 20;
/// Limit of the latencies that wait for a reader.
const MOST_WAITING: usize = 1 << 20;

/// The counts and errors of a pipe for the report.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// How often the kernel said that it had written over events.
    pub overwritten: u64,
    /// Lines that are not a latency, and the first of them.
    pub strange: u64,
    /// See `strange`.
    pub first: String,
}

/// One that is open.
#[derive(Debug)]
pub struct Pipe {
    pub(super) file: File,
    lines: Lines,
    waiting: [Option<Vec<Latency>>; 2],
    /// Latencies that found no room.
    full: bool,
    told: Told,
}

/// The open pipes, each with its CPU: two activities do not know of each other.
static OPEN: Mutex<Vec<(u32, Weak<Mutex<Pipe>>)>> = Mutex::new(Vec::new());

/// Opens the pipe of a CPU for a reader of a context, or shares an open one.
///
/// # Errors
/// Why it cannot be opened, in words.
pub fn open(cpu: u32, context: Context) -> Result<Arc<Mutex<Pipe>>, String> {
    let mut all = lock(&OPEN);
    all.retain(|(_, pipe)| pipe.strong_count() > 0);
    let open = all.iter().find(|(of, _)| *of == cpu).and_then(|(_, pipe)| pipe.upgrade());
    let pipe = match open {
        Some(pipe) => pipe,
        None => {
            let run = std::env::var(MARKER).unwrap_or_default();
            let path = format!("{}/{}/per_cpu/cpu{cpu}/trace_pipe", ROOTS[0], TIMERLAT.instance(&run));
            // One that waits in the kernel would be woken from the CPU that is measured.
            let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            let file = file.map_err(|error| format!("{path}: {error}"))?;
            let pipe = Arc::new(Mutex::new(Pipe::of(file)));
            all.push((cpu, Arc::downgrade(&pipe)));
            pipe
        }
    };
    drop(all);
    lock(&pipe).want(context);
    Ok(pipe)
}

impl Pipe {
    pub(super) fn of(file: File) -> Self {
        Self { file, lines: Lines::default(), waiting: [None, None], full: false, told: Told::default() }
    }

    /// Keeps the latencies of a context from now on.
    pub(super) fn want(&mut self, context: Context) {
        self.waiting[context as usize].get_or_insert_default();
    }

    /// Reads the available lines, and takes the latencies of a context, in their order.
    ///
    /// # Errors
    /// When it cannot be read, or a reader did not take its latencies in time.
    pub fn take(&mut self, context: Context) -> Result<Vec<Latency>, String> {
        let (mut buffer, mut bytes) = ([0; 16 << 10], 0);
        while bytes < MOST_BYTES {
            let read = match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("its trace cannot be read: {error}")),
            };
            bytes += read;
            self.feed(&buffer[..read]);
        }
        if self.full {
            return Err("its latencies were not read in time".into());
        }
        Ok(self.waiting[context as usize].as_mut().map(std::mem::take).unwrap_or_default())
    }

    /// The counts and errors so far.
    pub fn told(&self) -> Told {
        self.told.clone()
    }

    fn feed(&mut self, bytes: &[u8]) {
        let Self { lines, waiting, full, told, .. } = self;
        lines.feed(bytes, &mut |line| match read(line) {
            Said::Latency(latency) => {
                let Some(waiting) = &mut waiting[latency.context as usize] else { return };
                if waiting.len() < MOST_WAITING {
                    waiting.push(latency);
                } else {
                    *full = true;
                }
            }
            Said::Lost(_) => told.overwritten += 1,
            Said::Nothing => {}
            Said::Strange => {
                if told.strange == 0 {
                    told.first = line.trim().chars().take(80).collect();
                }
                told.strange += 1;
            }
        });
    }
}
