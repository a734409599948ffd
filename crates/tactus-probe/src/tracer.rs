//! A tracer of the kernel in a separate instance of tracefs, which has its own trace and is removed at the end.
//! Settings that all instances share are restored.

use std::fs;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use tactus_model::CpuSet;
use tactus_model::process_files;
use tactus_model::undo::block::{self, Shared};
use tactus_model::undo::{MARKER, Undo};

use crate::sys::{self, SchedAttr};
use crate::tracefs::{self, at, read, wrong};
use crate::work::promise;

/// Number of tries to end a tracer that another process still reads, and the time between two tries: a process that
/// died may not have closed everything yet.
const TRIES: u32 = 50;
const AGAIN: Duration = Duration::from_millis(20);

/// Why a tracer cannot be had.
#[derive(Debug)]
pub struct NotToBeHad {
    /// In words.
    pub why: String,
    /// It may be available later: another process has it now.
    pub busy: bool,
}

impl From<String> for NotToBeHad {
    fn from(why: String) -> Self {
        Self { why, busy: false }
    }
}

/// A tracer and its changes.
pub struct Tracer {
    /// Which.
    pub which: &'static block::Tracer,
    /// Its instance, below tracefs.
    instance: String,
    /// Whether its instance exists.
    claimed: bool,
    /// Files below tracefs and their former values, in the order in which they were written.
    former: Vec<(Shared, String)>,
}

/// Whether a word is among others.
pub fn has(words: &str, wanted: &str) -> bool {
    words.split_whitespace().any(|word| word == wanted)
}

/// Writes a file of tracefs.
///
/// # Errors
/// Why it cannot be written, in words.
pub fn write(path: &str, value: &str) -> Result<(), String> {
    let path = at(path);
    fs::write(&path, value).map_err(|error| wrong(&[&path, ": ", value].concat(), &error))
}

/// The tracers of this kernel.
///
/// # Errors
/// Why they cannot be read, in words.
pub fn tracers() -> Result<String, String> {
    tracefs::read_first("available_tracers")
}

impl Tracer {
    /// Makes its instance, in which nothing runs yet.
    ///
    /// # Errors
    /// When the kernel lacks it, or it is in use. Nothing is then changed.
    pub fn claim(which: &'static block::Tracer) -> Result<Self, NotToBeHad> {
        let tracers = tracers()?;
        let name = which.name;
        if !has(&tracers, name) {
            let has = tracers.trim();
            return Err(["this kernel has no ", name, " tracer (it has ", has, ")"].concat().into());
        }
        // Made before the others are looked at: of two runs that begin at once at least one finds the other.
        let run = std::env::var(MARKER).unwrap_or_default();
        let own = which.instance(&run);
        let path = at(&own);
        if let Err(error) = fs::create_dir(&path) {
            let busy = error.kind() == ErrorKind::AlreadyExists;
            return Err(NotToBeHad { why: wrong(&path, &error), busy });
        }
        promise(&Undo::RemoveEmpty(path.into()));
        let tracer = Self { which, instance: own, claimed: true, former: Vec::new() };
        tracer.alone()?;
        tracer.own("tracing_on", "0")?;
        Ok(tracer)
    }

    /// Checks that no other instance runs it, or is about to.
    fn alone(&self) -> Result<(), NotToBeHad> {
        let mut places = vec![(String::new(), false)];
        for entry in fs::read_dir(at("instances")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let place = ["instances/", &name].concat();
            if place != self.instance {
                places.push(([&place, "/"].concat(), self.which.is_ours(&name)));
            }
        }
        for (place, ours) in places {
            let current = read(&[&*place, "current_tracer"].concat()).unwrap_or_default();
            let name = self.which.name;
            if ours || collide(name, current.trim()) {
                let current = if ours { name } else { current.trim() };
                let why = ["the ", current, " tracer is in use in ", &at(&place)].concat();
                return Err(NotToBeHad { why, busy: true });
            }
        }
        Ok(())
    }

    /// A file of the instance, below tracefs.
    pub fn path(&self, file: &str) -> String {
        [&*self.instance, "/", file].concat()
    }

    /// Writes a file of the instance.
    ///
    /// # Errors
    /// Why it cannot be written, in words.
    pub fn own(&self, file: &str, value: &str) -> Result<(), String> {
        write(&self.path(file), value)
    }

    /// Writes a file that all instances share; `former` is what puts it back.
    ///
    /// # Errors
    /// Why it cannot be written, in words.
    pub fn change(&mut self, file: Shared, former: String, value: &str) -> Result<(), String> {
        self.keep(file, former);
        write(file.path(), value)
    }

    /// Keeps the former value of a file, here and with the process that restores it if this one is killed.
    pub fn keep(&mut self, file: Shared, former: String) {
        promise(&Undo::Write { path: at(file.path()).into(), value: former.clone() });
        self.former.push((file, former));
    }

    /// The same of a file that says what puts it back, if it does not say so already.
    ///
    /// # Errors
    /// Why it cannot be read or written, in words.
    pub fn set(&mut self, file: Shared, value: &str) -> Result<(), String> {
        let former = read(file.path())?;
        if former == value { Ok(()) } else { self.change(file, former, value) }
    }

    /// Gives its threads on these CPUs SCHED_FIFO with a priority, and says on which that was done.
    pub fn schedule(&self, cpus: &CpuSet, priority: u32) -> CpuSet {
        let mut done = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(thread) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            let cpu = comm.trim().strip_prefix(self.which.threads).and_then(|cpu| cpu.parse::<u32>().ok());
            let stat = || fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            if let Some(cpu) = cpu.filter(|cpu| cpus.contains(*cpu))
                && process_files::is_of_kernel(&stat())
                && sys::set_scheduler_of(thread, SchedAttr::fifo(priority)).is_ok()
            {
                done.push(cpu);
            }
        }
        done.into_iter().collect()
    }

    /// Whether there is anything to be ended.
    pub const fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// Ends it, restores everything and removes the instance. A second call does nothing.
    ///
    /// # Errors
    /// In words, the changes that could not be restored.
    pub fn end(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.claimed) {
            return Ok(());
        }
        // Its threads end here. The instance is removed last: as long as it exists, others can see that changes are
        // left.
        let mut result = self.patiently("current_tracer", |path| fs::write(path, "nop"));
        while let Some((file, former)) = self.former.pop() {
            result = result.and(write(file.path(), &former));
        }
        result.and(self.patiently("", |path| fs::remove_dir(path)))
    }

    /// Does something to the instance, and tries again as long as another process reads it.
    fn patiently(&self, file: &str, what: impl Fn(&str) -> Result<(), Error>) -> Result<(), String> {
        let path = at(self.path(file).trim_end_matches('/'));
        let mut result = what(&path);
        for _ in 0..TRIES {
            if !matches!(&result, Err(error) if error.raw_os_error() == Some(libc::EBUSY)) {
                break;
            }
            std::thread::sleep(AGAIN);
            result = what(&path);
        }
        result.map_err(|error| wrong(&path, &error))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // The result has been reported already, or cannot be.
        let _ = self.end();
    }
}

/// Whether a tracer cannot be used beside another: hwlat and osnoise get along with each other; timerlat shares its settings
/// with osnoise.
fn collide(own: &str, other: &str) -> bool {
    let same = |name| matches!(name, "osnoise" | "timerlat");
    own == other || same(own) && same(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timerlat_and_osnoise_share_settings_and_are_not_used_beside_each_other() {
        for (one, other) in [("timerlat", "timerlat"), ("timerlat", "osnoise"), ("osnoise", "timerlat")] {
            assert!(collide(one, other), "{one} beside {other}");
        }
        for (one, other) in
            [("timerlat", "nop"), ("timerlat", "hwlat"), ("hwlat", "osnoise"), ("osnoise", "")]
        {
            assert!(!collide(one, other), "{one} beside {other}");
        }
    }
}
