//! The one door to a machine: files, commands, connections, and the places of threads. It alone touches them;
//! whatever else of tactus needs a machine goes through the trait [`System`], so that it can be tested on machines
//! that are not there. Behind the door also lie the [`guardian`], which undoes, and the [`probe`] as a program.

mod boot;
mod capabilities;
mod capped;
mod child;
pub mod clock_page;
mod command;
mod connection;
mod directory;
mod facts;
mod file_lock;
pub mod guardian;
mod held;
mod house;
mod hypervisor;
pub mod ivshmem;
mod listening;
mod log;
mod machine_lock;
mod memory;
mod output;
mod own;
mod places;
pub mod probe;
mod reach;
mod real;
mod remote;
mod respawn;
mod running;
mod sparse;
mod sys;
mod topology;
mod unpacked_tree;

use std::any::Any;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tactus_model::CpuSet;
use tactus_model::size::Bytes;
use tactus_model::threads::Policy;
use tactus_model::undo::Held;

pub use boot::{BOOT_ID, boot_id};
pub use capabilities::are_handed_on;
pub use capped::at_most;
pub use command::{Finished, Invocation, last_lines};
pub use connection::Connection;
pub use directory::{Directory, Entry, Kind};
pub use facts::facts;
pub use file_lock::FileLock;
pub use hypervisor::virtualized;
pub use machine_lock::MachineLock;
pub use memory::Memory;
pub use places::{baselines_dir, cache_dir, fleets_dir, lasting_dir, state_dir};
pub use real::Real;
pub use remote::Remote;
pub use respawn::{Again, again, leave_terminal};
pub use running::{END, Run, Running, bundle_of, runs};
pub use sparse::{allocate, has_hole};
pub use sys::{ask_then_exit, boottime_ns, monotonic_ns};
pub use topology::topology;
pub use unpacked_tree::UnpackedTree;

/// How the name of a file begins that [`System::install`] has not put in its place yet. Where the power fails
/// meanwhile it stays.
pub const UNPLACED: &str = ".tactus-new-";

/// A command that runs.
pub trait Child: Send {
    /// Its process id.
    fn pid(&self) -> u32;
    /// Its stdout; once.
    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>>;
    /// Its stdin; once.
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>>;
    /// Its stderr so far (the last 64 KiB).
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
    /// The bytes of a file; of one of another process the beginning ([`tactus_model::process_files::read`]).
    ///
    /// # Errors
    /// Those of the file system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// The beginning of a file, up to `most` bytes.
    ///
    /// # Errors
    /// Those of the file system.
    fn beginning(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = self.read(path)?;
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(bytes)
    }
    /// The bytes of a regular file that the user named, up to `most`. A pipe would block until a writer comes, and a
    /// device may have no end.
    ///
    /// # Errors
    /// Those of the file system; `InvalidInput` when it is not a regular file, `FileTooLarge` when it is larger.
    fn read_regular(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let bytes = self.read(path)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most { Err(too_large(most)) } else { Ok(bytes) }
    }
    /// The bytes of a file or pipe that the user named, up to `most`.
    ///
    /// # Errors
    /// Those of the file system; `FileTooLarge` when there are more.
    fn read_at_most(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        self.read_regular(path, most)
    }
    /// The end of a regular file, up to `most` bytes: the last lines of a log.
    ///
    /// # Errors
    /// Those of the file system; `InvalidInput` when it is not a regular file.
    fn end(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = self.read(path)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        bytes.drain(..bytes.len().saturating_sub(most));
        Ok(bytes)
    }
    /// Writes a file, making it if needed.
    ///
    /// # Errors
    /// Those of the file system.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Puts a file in its place in one step and makes its directories: a reader sees all of it or nothing. `mode` is
    /// that of chmod(2). Until then the file lies beside its place, and its name begins with [`UNPLACED`].
    ///
    /// # Errors
    /// Those of the file system.
    fn install(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()>;
    /// The same for a file beneath a directory whose contents another user may change meanwhile, such as a container's.
    /// Links in the path are not followed, and missing directories are not made.
    ///
    /// # Errors
    /// Those of the file system; and where a part of the name is a link.
    fn install_beneath(&self, dir: &Path, name: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.install(&dir.join(name), bytes, mode)
    }
    /// Adds to the end of a file of ours, which only this user may read, and makes it if needed. It is on
    /// the disk when this returns.
    ///
    /// # Errors
    /// Those of the file system.
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// The bytes of a private file: only this user can have written it, and its directory is private as well.
    ///
    /// # Errors
    /// Those of the file system; `PermissionDenied` when another user could have written it.
    fn read_own(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read(path)
    }
    /// Locks a file, made if needed, against all others who lock it, as long as the returned value lives; `None` when
    /// the lock is taken.
    ///
    /// # Errors
    /// Those of the file system.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send>>>;
    /// Makes a directory that only this user may enter, with those above it.
    ///
    /// # Errors
    /// Those of the file system.
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes a private directory for files of tactus, like [`System::make_dir`]. An existing one must belong to this
    /// user alone, and its parents to root or this user.
    ///
    /// # Errors
    /// Those of the file system; `PermissionDenied` when another user could change its contents.
    fn make_own_dir(&self, path: &Path) -> io::Result<()> {
        self.make_dir(path)
    }
    /// Whether the contents of a directory of tactus can be trusted. The directory is private to this user (see
    /// [`System::make_own_dir`]), or missing and no other user could make it.
    ///
    /// # Errors
    /// Those of the file system; `PermissionDenied` when another user could have put its contents there.
    fn is_own_dir(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }
    /// The real path of a file or directory, if only root and this user can have put it there and can write to it.
    ///
    /// # Errors
    /// Those of the file system; `PermissionDenied` when another user could.
    fn believed(&self, path: &Path) -> io::Result<PathBuf> {
        if self.exists(path) { Ok(path.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
    /// The target of a link, as written in it.
    ///
    /// # Errors
    /// Those of readlink(2).
    fn link(&self, path: &Path) -> io::Result<PathBuf> {
        let _ = path;
        Err(io::ErrorKind::NotFound.into())
    }
    /// Removes a file, or a directory with its contents, but never a mounted file system (see
    /// [`tactus_model::undo::remove`]). A missing file is not an error.
    ///
    /// # Errors
    /// Those of the file system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory that is empty (a cgroup).
    ///
    /// # Errors
    /// Those of the file system.
    fn remove_empty(&self, path: &Path) -> io::Result<()> {
        Err(not_here(path))
    }
    /// Detaches the file system mounted there. A path that is not a mount is not an error.
    ///
    /// # Errors
    /// Those of umount(2).
    fn unmount(&self, path: &Path) -> io::Result<()> {
        Err(not_here(path))
    }
    /// Gives a finished file or directory its name, in place of a file that has it.
    ///
    /// # Errors
    /// Those of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// The entries of a directory, sorted.
    ///
    /// # Errors
    /// Those of the file system.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether the path exists.
    fn exists(&self, path: &Path) -> bool;
    /// Whether the file can be opened for reading and writing by this process: for devices, whose
    /// presence says nothing.
    fn opens(&self, path: &Path) -> bool;
    /// Opens a device for reading and writing, without waiting for its other side.
    ///
    /// # Errors
    /// Those of open(2).
    fn device(&self, path: &Path) -> io::Result<File> {
        Err(not_here(path))
    }
    /// Connects to a UNIX socket.
    ///
    /// # Errors
    /// Those of connect(2).
    fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        Err(not_here(path))
    }
    /// Listens at a new UNIX socket, in place of one that was left there.
    ///
    /// # Errors
    /// Those of bind(2).
    fn listen(&self, path: &Path) -> io::Result<UnixListener> {
        Err(not_here(path))
    }
    /// The path of a program, by PATH (and the sbin directories).
    fn find_program(&self, name: &str) -> Option<PathBuf>;
    /// Runs a command to its end.
    ///
    /// # Errors
    /// When it cannot be started, or `TimedOut` when it took longer than its patience (it is then
    /// killed).
    fn run(&self, command: &Invocation) -> io::Result<Finished>;
    /// Starts a command with pipes on stdin, stdout and stderr, in a separate process group: only this process gets a
    /// Ctrl-C of the terminal.
    ///
    /// # Errors
    /// When it cannot be started.
    fn spawn(&self, command: &Invocation) -> io::Result<Box<dyn Child>>;
    /// Allows a thread these CPUs and no others.
    ///
    /// # Errors
    /// Those of sched_setaffinity(2).
    fn place(&self, thread: u32, cpus: &CpuSet) -> io::Result<()>;
    /// Keeps this thread, and the threads that it starts, on these CPUs until the returned value is dropped on it.
    /// Processes that they start are not affected. Returns `None` when that is not possible.
    fn pin_to_housekeeping(&self, _cpus: &CpuSet) -> Option<Box<dyn Any>> {
        None
    }
    /// Gives a thread SCHED_FIFO with this priority (1 to 99).
    ///
    /// # Errors
    /// Those of sched_setscheduler(2).
    fn make_fifo(&self, thread: u32, priority: u32) -> io::Result<()>;
    /// Gives a thread a policy, with a priority of 1 to 99 where the policy has one, else 0.
    ///
    /// # Errors
    /// Those of sched_setscheduler(2); `InvalidInput` for SCHED_DEADLINE, which needs more than that.
    fn schedule(&self, thread: u32, policy: Policy, priority: u32) -> io::Result<()>;
    /// Holds the process that has this number now: actions on it never reach a later process with the same number.
    ///
    /// # Errors
    /// When no process has this number.
    fn hold(&self, process: u32) -> io::Result<Box<dyn Held + '_>> {
        Ok(Box::new(Elsewhere(process)))
    }
    /// Whether this process is root there.
    fn is_root(&self) -> bool;
    /// A variable of this process's environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// Its processor: `x86_64` or `aarch64`.
    fn arch(&self) -> &str {
        std::env::consts::ARCH
    }
    /// The same machine, as a shared reference without a borrow.
    fn share(&self) -> Arc<dyn System>;

    /// The text of a file, if it can be read.
    fn text(&self, path: &str) -> Option<String> {
        self.read(Path::new(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A process of a system whose processes cannot be killed from here.
struct Elsewhere(u32);

impl Held for Elsewhere {
    fn kill(&self) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("process {}: not on this system", self.0)))
    }
}

/// The error for a file longer than its limit.
#[must_use]
pub fn too_large(most: u64) -> io::Error {
    let words = format!("it is longer than {}, the limit for its kind", Bytes(most));
    io::Error::new(io::ErrorKind::FileTooLarge, words)
}

fn not_here(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{}: not on this system", path.display()))
}
