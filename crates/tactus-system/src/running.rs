//! The runs in progress on this machine. A run that writes a bundle takes a name, so that commands that follow or end
//! it can find it.
//!
//! Each run has a [name](listening) made of its bundle's device and inode, as long as it lives. A recorded process
//! number alone may belong to another process by now, but the kernel knows which process listens. A file beside the
//! run's journal contains the path of the bundle, for commands that name no bundle. The guardian removes that file.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tactus_model::undo::Undo;

use crate::guardian::Guardian;
use crate::listening::{self, Answered, Listener};
use crate::{Directory, System, own, state_dir};

/// How the names of files end that say where a run's bundle lies.
const ENDING: &str = "bundle";

/// The signal that asks a run to end like the first Ctrl-C. Unlike Ctrl-C, it may come again.
pub const END: i32 = Signal::USR1.as_raw();

/// Marks a run as in progress until it is dropped.
#[derive(Debug)]
pub struct Running {
    _name: Answered,
}

impl Running {
    /// Says that this process writes this bundle; nothing where another process does already.
    ///
    /// # Errors
    /// When that cannot be said.
    pub fn announce(
        bundle: &Directory,
        guardian: &Guardian,
        system: &dyn System,
    ) -> io::Result<Option<Self>> {
        let Some(name) = listening::take_and_answer(&name(bundle)?)? else { return Ok(None) };
        let path = std::path::absolute(bundle.path())?;
        let listed = format!("{}.{}.{ENDING}", guardian.id(), std::process::id());
        let listed = state_dir(system)?.join(listed);
        guardian.promise(Undo::Remove(listed.clone()))?.defer();
        system.install(&listed, path.as_os_str().as_bytes(), 0o600)?;
        Ok(Some(Self { _name: name }))
    }
}

/// A run in progress: exactly this process, never a later one with the same number.
#[derive(Debug)]
pub struct Run {
    process: u32,
    user: u32,
    handle: OwnedFd,
}

impl Run {
    /// The run that writes this bundle; nothing where none does.
    ///
    /// # Errors
    /// When it cannot be asked for, or runs in another PID namespace.
    pub fn of(bundle: &Directory) -> io::Result<Option<Self>> {
        let name = name(bundle)?;
        let Some(found) = listening::who(&name)? else { return Ok(None) };
        let Listener { process: Some(process), user, handle } = found else {
            let words = "the run is in another PID namespace, such as that of a container";
            return Err(io::Error::new(io::ErrorKind::Unsupported, words));
        };
        if let Some(handle) = handle {
            return Ok(Some(Self { process, user, handle }));
        }
        let number = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        let handle = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // A process that still has the name has had it all the time, and so also its number: the handle belongs to no
        // other process. One exception: the process has ended and its child has its socket. That child cannot belong to
        // another user.
        let again = listening::who(&name)?;
        let same = again.is_some_and(|again| (again.process, again.user) == (Some(process), user));
        Ok((same && own::user_of(process) == Some(user)).then_some(Self { process, user, handle }))
    }

    /// Its process.
    #[must_use]
    pub const fn process(&self) -> u32 {
        self.process
    }

    /// Its user.
    #[must_use]
    pub const fn user(&self) -> u32 {
        self.user
    }

    /// Whether it belongs to this user, or for root to the user who called sudo.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        own::is_mine(self.user)
    }

    /// Waits for its end, as long as this at most, or until a signal comes; whether it has ended.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn ends_within(&self, patience: Duration) -> io::Result<bool> {
        let patience = Timespec::try_from(patience).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&patience)) {
            Ok(0) | Err(Errno::INTR) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks it to end as the first Ctrl-C does: it keeps its results.
    ///
    /// # Errors
    /// `PermissionDenied` if the run belongs to another user; it is not asked then. Those of pidfd_send_signal(2).
    pub fn ask_to_end(&self) -> io::Result<()> {
        if !self.is_mine() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        match pidfd_send_signal(&self.handle, Signal::USR1) {
            // It has just ended.
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// This user's runs in progress, with their bundles.
#[must_use]
pub fn runs(system: &dyn System) -> Vec<(PathBuf, Run)> {
    listed(system, |_| true)
}

/// The bundle that a process of this user writes; `None` if it does not write one yet, or no longer.
#[must_use]
pub fn bundle_of(process: u32, system: &dyn System) -> Option<PathBuf> {
    let own = format!(".{process}.{ENDING}");
    let found = listed(system, |name| name.as_encoded_bytes().ends_with(own.as_bytes()));
    found.into_iter().find(|(_, run)| run.process() == process).map(|(bundle, _)| bundle)
}

/// Runs whose files have such names.
fn listed(system: &dyn System, is_meant: impl Fn(&OsStr) -> bool) -> Vec<(PathBuf, Run)> {
    let Some(dir) = state_dir(system).ok().filter(|dir| system.is_own_dir(dir).is_ok()) else {
        return Vec::new();
    };
    let listed = system.list(&dir).unwrap_or_default();
    let listed = listed.into_iter().filter(|path| {
        path.extension() == Some(OsStr::new(ENDING)) && path.file_name().is_some_and(&is_meant)
    });
    let run = |path: PathBuf| {
        let bundle = PathBuf::from(OsStr::from_bytes(&system.read_own(&path).ok()?));
        let run = Run::of(&Directory::open(&bundle).ok()?).ok()??;
        Some((bundle, run))
    };
    listed.filter_map(run).collect()
}

fn name(bundle: &Directory) -> io::Result<Vec<u8>> {
    let (device, inode) = bundle.identity()?;
    Ok(format!("tactus/run/{device:x}-{inode:x}").into_bytes())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Real;

    #[test]
    fn a_run_is_found_by_any_path_to_its_bundle_and_only_while_it_runs() {
        let dir = tempfile::tempdir().unwrap();
        let bundle = Directory::create(&dir.path().join("bundle")).unwrap();
        let other = Directory::create(&dir.path().join("other")).unwrap();
        assert!(Run::of(&bundle).unwrap().is_none());
        let guardian = Guardian::start(&Real).unwrap();
        let running = Running::announce(&bundle, &guardian, &Real).unwrap().unwrap();
        assert!(Running::announce(&bundle, &guardian, &Real).unwrap().is_none(), "one run writes a bundle");
        let way = dir.path().join("other/../bundle");
        let run = Run::of(&Directory::open(&way).unwrap()).unwrap().unwrap();
        assert_eq!(run.process(), std::process::id());
        assert!(run.is_mine() && !run.ends_within(Duration::ZERO).unwrap());
        assert!(Run::of(&other).unwrap().is_none());
        let own = |path: &Path| path == bundle.path();
        assert!(runs(&Real).iter().any(|(path, run)| own(path) && run.process() == std::process::id()));
        assert_eq!(bundle_of(std::process::id(), &Real).as_deref(), Some(bundle.path()));
        assert_eq!(bundle_of(1, &Real), None);
        drop(running);
        assert!(Run::of(&bundle).unwrap().is_none());
        assert!(!runs(&Real).iter().any(|(path, _)| own(path)), "a file that is left names no run");
        assert_eq!(bundle_of(std::process::id(), &Real), None);
        let listed = format!("{}.{}.{ENDING}", guardian.id(), std::process::id());
        let listed = state_dir(&Real).unwrap().join(listed);
        assert!(Real.exists(&listed));
        guardian.finish();
        assert!(!Real.exists(&listed));
    }

    #[test]
    fn a_file_that_names_what_no_run_writes_names_no_run() {
        let guardian = Guardian::start(&Real).unwrap();
        let dir = state_dir(&Real).unwrap();
        for (name, text) in
            [("nowhere", "/nonexistent"), ("empty", ""), ("cut", "\0\u{fffd}"), ("here", "/tmp")]
        {
            let path = dir.join(format!("{}-{name}.{ENDING}", guardian.id()));
            guardian.promise(Undo::Remove(path.clone())).unwrap().defer();
            Real.install(&path, text.as_bytes(), 0o600).unwrap();
        }
        assert!(
            runs(&Real).iter().all(|(path, _)| path != Path::new("/tmp") && !path.as_os_str().is_empty())
        );
        guardian.finish();
    }
}
