//! The operations of a machine that undoing needs, through the door.

use std::io;
use std::path::Path;
use std::time::Duration;

use tactus_model::undo::{Actions, Held};

use crate::{Invocation, System, monotonic_ns};

/// The machine behind the door.
pub struct SystemActions<'a>(pub &'a dyn System);

impl Actions for SystemActions<'_> {
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn remove_empty(&self, path: &Path) -> io::Result<()> {
        self.0.remove_empty(path)
    }

    fn unmount(&self, path: &Path) -> io::Result<()> {
        self.0.unmount(path)
    }

    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        if self.0.exists(path) { self.0.write(path, value) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn run(&self, words: &[String], limit: Duration) -> io::Result<()> {
        self.0.run(&Invocation::new(words).within(limit)).map(drop)
    }

    fn is_believed(&self, path: &Path) -> io::Result<()> {
        self.0.believed(path).map(drop)
    }

    fn processes(&self) -> io::Result<Vec<u32>> {
        let own = std::process::id();
        let entries = self.0.list(Path::new("/proc"))?;
        let pids = entries.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok());
        Ok(pids.filter(|pid| *pid != own).collect())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn beginning(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        self.0.beginning(path, most)
    }

    fn hold(&self, pid: u32) -> io::Result<Box<dyn Held + '_>> {
        self.0.hold(pid)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_ns())
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

#[cfg(test)]
const fn here() -> SystemActions<'static> {
    SystemActions(&crate::Real)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the same tests are those of crates without a door")]
#[path = "../../../tactus-model/tests/undo/mod.rs"]
mod on_this_machine;
