//! A machine of which only the files of a run are real, and an environment that says what it is given.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tactus_environment::{Environment, Running, Setting, StartError, Stream, Usable};
use tactus_model::CpuSet;
use tactus_model::message::ToProbe;
use tactus_model::threads::Policy;
use tactus_model::wire::Decoder;
use tactus_system::{Child, Finished, Invocation, Memory, System};

/// How long a probe that has said its part waits for the next word to it before its stream ends.
const PATIENCE: Duration = Duration::from_millis(40);

/// What the environment says at its start, and after each word that it hears; then its stream ends.
pub static PARTS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// See the module.
pub static PLAYED: Played = Played;

pub struct Played;

impl Environment for Played {
    fn kind(&self) -> &'static str {
        "played"
    }

    fn about(&self) -> &'static str {
        "It says what it is given."
    }

    fn usable(&self, _: &dyn System) -> Usable {
        Usable::Yes { remark: None }
    }

    fn start(&self, _: &Setting<'_>) -> Result<Box<dyn Running>, StartError> {
        let mut parts =
            std::mem::take(&mut *PARTS.lock().unwrap_or_else(PoisonError::into_inner)).into_iter();
        let (to, words) = channel();
        let rest = parts.next().unwrap_or_default();
        let reader = Box::new(Says { parts, rest, said: 0, words });
        let writer = Box::new(Hears { decoder: Decoder::new(), to });
        Ok(Box::new(Up(Some(Stream { reader, writer }))))
    }
}

struct Up(Option<Stream>);

impl Running for Up {
    fn take_stream(&mut self) -> Option<Stream> {
        self.0.take()
    }

    fn last_words(&mut self) -> Option<String> {
        None
    }

    fn stop(&mut self) {}
}

struct Says {
    parts: std::vec::IntoIter<Vec<u8>>,
    rest: Vec<u8>,
    said: usize,
    words: Receiver<()>,
}

impl Read for Says {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.said == self.rest.len() {
            let Some(next) = self.parts.next() else { return Ok(0) };
            if self.words.recv_timeout(PATIENCE).is_err() {
                return Ok(0);
            }
            (self.rest, self.said) = (next, 0);
        }
        let read = (&self.rest[self.said..]).read(buffer)?;
        self.said += read;
        Ok(read)
    }
}

/// Counts the words that are said to it.
struct Hears {
    decoder: Decoder,
    to: Sender<()>,
}

impl Write for Hears {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for _ in self.decoder.feed::<ToProbe>(bytes) {
            self.to.send(()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Its guardian comes to a good end and does nothing: nothing is changed on this machine.
#[derive(Clone)]
pub struct Machine(pub Memory);

struct Guards;

impl Child for Guards {
    fn pid(&self) -> u32 {
        1
    }

    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        None
    }

    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        None
    }

    fn stderr(&self) -> String {
        String::new()
    }

    fn try_wait(&mut self) -> io::Result<Option<Option<i32>>> {
        Ok(Some(Some(0)))
    }

    fn kill(&mut self) {}
}

impl System for Machine {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.0.write(path, bytes)
    }

    fn install(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.0.install(path, bytes, mode)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.0.append(path, bytes)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send>>> {
        self.0.lock(path)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.0.make_dir(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(path)
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.exists(path)
    }

    fn opens(&self, path: &Path) -> bool {
        self.0.opens(path)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.0.find_program(name)
    }

    fn run(&self, command: &Invocation) -> io::Result<Finished> {
        self.0.run(command)
    }

    fn spawn(&self, _: &Invocation) -> io::Result<Box<dyn Child>> {
        Ok(Box::new(Guards))
    }

    fn place(&self, thread: u32, cpus: &CpuSet) -> io::Result<()> {
        self.0.place(thread, cpus)
    }

    fn make_fifo(&self, thread: u32, priority: u32) -> io::Result<()> {
        self.0.make_fifo(thread, priority)
    }

    fn schedule(&self, thread: u32, policy: Policy, priority: u32) -> io::Result<()> {
        self.0.schedule(thread, policy, priority)
    }

    fn is_root(&self) -> bool {
        self.0.is_root()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.variable(name)
    }

    fn share(&self) -> Arc<dyn System> {
        Arc::new(self.clone())
    }
}
