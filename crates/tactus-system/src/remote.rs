//! The system of a probe, through the probe: the same code starts an environment inside another one as starts it on
//! this machine.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tactus_model::CpuSet;
use tactus_model::process_files;
use tactus_model::rpc::{Answer, Call, PIECE, READ, Verb, encode};
use tactus_model::threads::Policy;
use tactus_model::undo::{Entry, Undo};

use super::child::{KEPT, REST, collect, ends_within};
use super::command::MOST_OUTPUT;
use super::connection::{Connection, Reader, Writer};
use super::log::{self, THERE};
use super::too_large;
use super::{Child, Finished, Invocation, System, UNPLACED};
use crate::probe;

/// How long a killed child may take to end.
const DEATH: Duration = Duration::from_secs(10);
/// How long a command may take of which nothing else is said, with its output.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long it may take to read a file: each of its pieces is a call.
const FILE: Duration = Duration::from_secs(60);

/// The system that a probe is on.
#[derive(Clone)]
pub struct Remote {
    connection: Arc<Connection>,
    arch: String,
}

impl Remote {
    /// The system at the other end of a connection, whose processor is `arch`.
    #[must_use]
    pub fn new(connection: Arc<Connection>, arch: &str) -> Self {
        Self { connection, arch: arch.into() }
    }

    fn ask(&self, verb: Verb, path: &Path) -> io::Result<Answer> {
        self.connection.call(Call::new(verb, word(path)?)).map_err(|error| named(&error, path))
    }

    fn ask_with(&self, verb: Verb, path: &Path, number: u64, data: &[u8]) -> io::Result<Answer> {
        let call = Call { number, data: encode(data), ..Call::new(verb, word(path)?) };
        self.connection.call(call).map_err(|error| named(&error, path))
    }

    /// Makes a file of these bytes, in pieces.
    fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let (first, rest) = bytes.split_at(bytes.len().min(PIECE));
        self.ask_with(Verb::Create, path, mode.into(), first)?;
        rest.chunks(PIECE).try_for_each(|piece| self.ask_with(Verb::Append, path, 0, piece).map(drop))
    }

    fn undo(&self, how: Undo, path: &Path) -> io::Result<()> {
        let call = Call { undo: Some(how), ..Call::new(Verb::Undo, "") };
        self.connection.call(call).map(drop).map_err(|error| named(&error, path))
    }

    /// Tells the probe a change that it must undo when its session ends, or one that it need not undo any more.
    ///
    /// # Errors
    /// When the message cannot be sent.
    pub fn tell(&self, entry: &Entry) -> io::Result<()> {
        let call = match entry.clone() {
            Entry::Undo { id, how } => Call { child: id, undo: Some(how), ..Call::new(Verb::Promise, "") },
            Entry::Done { id } => Call { child: id, ..Call::new(Verb::Settle, "") },
        };
        self.connection.call(call).map(drop)
    }

    fn start(&self, command: &Invocation) -> io::Result<RemoteChild> {
        if command.dir.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a working directory cannot be passed on",
            ));
        }
        let program = command.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        let variables = command.env.iter().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = variables.chain(command.argv.iter().cloned()).collect();
        let (number, pid) = self
            .connection
            .spawn(words, command.env.len() as u64)
            .map_err(|error| named(&error, Path::new(program)))?;
        Ok(RemoteChild::new(Arc::clone(&self.connection), number, pid))
    }

    /// Puts a file in its place in one step.
    fn install_there(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        self.ask_with(Verb::MakeDir, dir, 0o755, &[])?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let part = dir.join(format!("{UNPLACED}{}-{name}", self.connection.number()));
        let is_probe = probe::bytes(&self.arch).is_some_and(|probe| std::ptr::eq(probe, bytes));
        let written = if is_probe {
            // A file that is already there need not be sent.
            self.ask_with(Verb::Own, &part, mode.into(), &[]).map(drop)
        } else {
            self.create(&part, bytes, mode)
        };
        written.and_then(|()| self.rename(&part, path)).inspect_err(|_| {
            // The probe removes it at the end of its session, if not now.
            let _ = self.remove(&part);
        })
    }

    /// Runs a command to its end.
    fn run_there(&self, command: &Invocation) -> io::Result<Finished> {
        let mut child = self.start(command)?;
        drop(child.take_stdin());
        let stdout = child.take_stdout().map(|pipe| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // The output ends at an error.
                let _ = pipe.take(MOST_OUTPUT + 1).read_to_end(&mut bytes);
                bytes
            })
        });
        let patience = command.patience.unwrap_or(PATIENCE);
        // One for its end and all of its output.
        let until = Instant::now() + patience;
        let left = || until.saturating_duration_since(Instant::now());
        let late = |what: &str| {
            let words = format!("{}{what} more than {patience:?}", command.argv.join(" "));
            io::Error::new(io::ErrorKind::TimedOut, words)
        };
        let Some(code) = self.connection.await_end(child.number, left()) else {
            child.kill();
            return Err(late(" took"));
        };
        // A program may end and leave its streams open.
        if stdout.as_ref().is_some_and(|thread| !ends_within(thread, left())) || !child.has_said(left()) {
            return Err(late(", which has ended, keeps writing for"));
        }
        let stdout = stdout.and_then(|thread| thread.join().ok()).unwrap_or_default();
        if u64::try_from(stdout.len()).unwrap_or(u64::MAX) > MOST_OUTPUT {
            let program = command.argv.first().map_or("", String::as_str);
            return Err(named(&too_large(MOST_OUTPUT), Path::new(program)));
        }
        Ok(Finished { code, stdout, stderr: child.all_errors() })
    }
}

/// The most bytes of a file that are read from there: the largest of /proc and /sys have some MB.
const MOST_FILE: u64 = 64 << 20;

/// A path as it travels.
fn word(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"))
}

fn named(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl System for Remote {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let most = process_files::most(path);
        let mut bytes = Vec::new();
        let until = Instant::now() + FILE;
        loop {
            let answer = self.ask_with(Verb::Read, path, bytes.len() as u64, &[])?;
            let piece = tactus_model::rpc::decode(&answer.data).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "the probe's answer is not bytes")
            })?;
            let more = answer.number == 1 && !piece.is_empty();
            if more && piece.len() < READ {
                let words = "the probe's answer is shorter than a piece of the file";
                return Err(named(&io::Error::new(io::ErrorKind::InvalidData, words), path));
            }
            bytes.extend(piece);
            // The other side may claim without end that more follows.
            if Instant::now() > until {
                let words = format!("{}: it took more than {} s to read", path.display(), FILE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_FILE {
                return Err(named(&too_large(MOST_FILE), path));
            }
            let is_enough = most.is_some_and(|most| bytes.len() as u64 >= most);
            if !more || is_enough {
                return Ok(bytes);
            }
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        log::wrote(THERE, path, bytes, self.create(path, bytes, 0))
    }

    fn install(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        log::wrote(THERE, path, bytes, self.install_there(path, bytes, mode))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut pieces = bytes.chunks(PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let last = pieces.peek().is_none();
            self.ask_with(Verb::Append, path, last.into(), piece)?;
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send>>> {
        let words = format!("{}: nothing is locked through a probe", path.display());
        Err(io::Error::new(io::ErrorKind::Unsupported, words))
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.ask_with(Verb::MakeDir, path, 0o700, &[]).map(drop)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.undo(Undo::Remove(path.into()), path);
        log::changed(THERE, format_args!("removed {}", path.display()), removed)
    }

    fn remove_empty(&self, path: &Path) -> io::Result<()> {
        self.undo(Undo::RemoveEmpty(path.into()), path)
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        self.undo(Undo::Unmount(path.into()), path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let call = Call { words: vec![word(to)?.to_owned()], ..Call::new(Verb::Rename, word(from)?) };
        self.connection.call(call).map(drop).map_err(|error| named(&error, from))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut entries: Vec<PathBuf> =
            self.ask(Verb::List, path)?.words.iter().map(|name| path.join(name)).collect();
        entries.sort();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        self.ask(Verb::Exists, path).is_ok_and(|answer| answer.number == 1)
    }

    fn opens(&self, path: &Path) -> bool {
        self.ask(Verb::Opens, path).is_ok_and(|answer| answer.number == 1)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.ask(Verb::Find, Path::new(name)).ok()?.words.pop().map(PathBuf::from)
    }

    fn run(&self, command: &Invocation) -> io::Result<Finished> {
        log::run(THERE, command, || self.run_there(command))
    }

    fn spawn(&self, command: &Invocation) -> io::Result<Box<dyn Child>> {
        let child = self.start(command)?;
        log::started(THERE, command, child.pid);
        Ok(Box::new(child))
    }

    fn place(&self, _thread: u32, _cpus: &CpuSet) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "no thread is placed through a probe"))
    }

    fn make_fifo(&self, thread: u32, priority: u32) -> io::Result<()> {
        self.schedule(thread, Policy::Fifo, priority)
    }

    fn schedule(&self, _thread: u32, _policy: Policy, _priority: u32) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "no thread is scheduled through a probe"))
    }

    fn is_root(&self) -> bool {
        let status = self.text("/proc/self/status").unwrap_or_default();
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        uid.and_then(|uid| uid.split_whitespace().nth(1)) == Some("0")
    }

    fn variable(&self, name: &str) -> Option<String> {
        let environment = self.text("/proc/self/environ")?;
        environment
            .split('\0')
            .find_map(|entry| entry.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }

    fn arch(&self) -> &str {
        &self.arch
    }

    fn share(&self) -> Arc<dyn System> {
        Arc::new(self.clone())
    }
}

/// A program that runs on the system of a probe. Dropping it kills it.
struct RemoteChild {
    connection: Arc<Connection>,
    number: u64,
    pid: u32,
    stdout: Option<Reader>,
    stdin: Option<Writer>,
    stderr: Arc<Mutex<Vec<u8>>>,
    collector: Option<JoinHandle<()>>,
}

impl RemoteChild {
    fn new(connection: Arc<Connection>, number: u64, pid: u32) -> Self {
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (kept, pipe) = (Arc::clone(&stderr), Reader::new(&connection, number, 2));
        let collector = Some(std::thread::spawn(move || collect(pipe, &kept)));
        let stdout = Some(Reader::new(&connection, number, 1));
        let stdin = Some(Writer::new(&connection, number));
        Self { connection, number, pid, stdout, stdin, stderr, collector }
    }

    /// Whether its stderr ends within this time.
    fn has_said(&self, patience: Duration) -> bool {
        self.collector.as_ref().is_none_or(|collector| ends_within(collector, patience))
    }

    /// All that it wrote to stderr (the last 64 KiB), once that has ended.
    fn all_errors(&mut self) -> Vec<u8> {
        if let Some(collector) = self.collector.take() {
            // A collector that panicked has kept the output so far.
            let _ = collector.join();
        }
        std::mem::take(&mut *self.stderr.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Child for RemoteChild {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        self.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)
    }

    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        self.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn Write + Send>)
    }

    fn stderr(&self) -> String {
        if let Some(collector) =
            self.collector.as_ref().filter(|_| self.connection.end_of(self.number).is_some())
        {
            ends_within(collector, REST);
        }
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept[kept.len().saturating_sub(KEPT)..]).into_owned()
    }

    fn try_wait(&mut self) -> io::Result<Option<Option<i32>>> {
        Ok(self.connection.end_of(self.number))
    }

    fn kill(&mut self) {
        if self.connection.end_of(self.number).is_none() {
            let kill = Call { verb: Verb::Kill, child: self.number, ..Call::default() };
            // A probe that has gone has taken its children along.
            let _ = self.connection.call(kill);
            self.connection.await_end(self.number, DEATH);
        }
    }
}

impl Drop for RemoteChild {
    fn drop(&mut self) {
        self.kill();
        drop((self.stdin.take(), self.stdout.take()));
        self.connection.forget(self.number);
    }
}
