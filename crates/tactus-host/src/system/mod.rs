//! The one door to the machine: files and commands. Everything else in this crate goes through it,
//! so that it can be tested on recorded machines.

mod real;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use real::Real;

/// A command to be run, with everything that matters about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables added to the environment; the marker of the run is one of them.
    pub env: Vec<(String, String)>,
    /// How long it may take; only for [`System::run`].
    pub patience: Option<Duration>,
}

impl Invocation {
    /// A command from its words.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Whether it exited with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Its own words about what went wrong: the last lines of stderr, else of stdout.
    #[must_use]
    pub fn words(&self) -> String {
        let stream = if self.stderr.is_empty() { &self.stdout } else { &self.stderr };
        let text = String::from_utf8_lossy(stream);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

/// A command that runs.
pub trait Child: Send {
    /// Its process id.
    fn pid(&self) -> u32;
    /// Its stdout; once.
    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>>;
    /// Its stdin; once.
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>>;
    /// What it wrote to stderr until now (the last 64 KiB).
    fn stderr(&self) -> String;
    /// Its exit code if it has ended (`Some(None)`: by a signal).
    ///
    /// # Errors
    /// Those of wait(2).
    fn try_wait(&mut self) -> io::Result<Option<Option<i32>>>;
    /// Kills it and waits for its end.
    fn kill(&mut self);
}

/// A machine: its files and its commands.
pub trait System: Send + Sync {
    /// The bytes of a file.
    ///
    /// # Errors
    /// Those of the file system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Writes a file, making it if needed.
    ///
    /// # Errors
    /// Those of the file system.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// The entries of a directory, sorted.
    ///
    /// # Errors
    /// Those of the file system.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether the path exists.
    fn exists(&self, path: &Path) -> bool;
    /// Where a program is, by PATH (and the sbin directories).
    fn find_program(&self, name: &str) -> Option<PathBuf>;
    /// Runs a command to its end.
    ///
    /// # Errors
    /// When it cannot be started, or `TimedOut` when it took longer than its patience (it is then
    /// killed).
    fn run(&self, command: &Invocation) -> io::Result<Finished>;
    /// Starts a command with pipes on stdin, stdout and stderr.
    ///
    /// # Errors
    /// When it cannot be started.
    fn spawn(&self, command: &Invocation) -> io::Result<Box<dyn Child>>;
    /// Whether this process is root there.
    fn is_root(&self) -> bool;

    /// The text of a file, if it can be read.
    fn text(&self, path: &str) -> Option<String> {
        self.read(Path::new(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}
