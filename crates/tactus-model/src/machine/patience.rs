//! Limits the wait for other processes. A process that maps a file of a file system that does not answer keeps its
//! memory locked. A reader of `/proc/PID/environ` then sleeps until the file system answers. Any user can cause that
//! (FUSE). So a thread reads these files, and is left behind when its time is over. Its sleep ends when this process
//! does (Linux 5.3 and later).

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one look may take.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How long processes of other users may be waited for together. A twentieth of the time that goes by is added.
const TOGETHER: Duration = Duration::from_secs(4);
/// Looks that take no longer do not count: a busy machine may also be slow.
const USUAL: Duration = Duration::from_millis(20);
/// Its stack: it opens, reads and sends.
const STACK: usize = 256 << 10;

/// The remaining part of [`TOGETHER`], and since when.
struct Purse {
    left: Duration,
    since: Option<Instant>,
}

static OTHERS: Mutex<Purse> = Mutex::new(Purse { left: TOGETHER, since: None });

/// The result of `look` at a file of a process's memory, if it comes in time.
///
/// # Errors
/// Those of `look`; `TimedOut` when it is not back.
pub fn in_time<T: Send + 'static>(
    path: &Path,
    look: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let is_others = !is_ours(path);
    let patience = if is_others { purse(|purse| purse.left.min(PATIENCE)) } else { PATIENCE };
    if patience.is_zero() {
        return Err(late("is not examined: others like it took too long"));
    }
    let (answer, answered) = sync_channel(1);
    let began = Instant::now();
    thread::Builder::new().stack_size(STACK).spawn(move || drop(answer.send(look())))?;
    let found = answered.recv_timeout(patience);
    let taken = began.elapsed();
    if is_others && taken > USUAL {
        purse(|purse| purse.left = purse.left.saturating_sub(taken));
    }
    found.unwrap_or_else(|_| Err(late("keeps its memory locked")))
}

fn late(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("its process {why}"))
}

fn purse<T>(with: impl FnOnce(&mut Purse) -> T) -> T {
    let mut purse = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let earned = purse.since.map_or(Duration::ZERO, |since| (now - since) / 20);
    purse.left = (purse.left + earned).min(TOGETHER);
    purse.since = Some(now);
    with(&mut purse)
}

/// Whether a process belongs to root or this user. The owner of its directory in `/proc` is its effective user,
/// whatever the process claims, and reading it never blocks. The root of a container is the same user, but not trusted:
/// its process has a number in a PID namespace below this one.
#[expect(clippy::disallowed_methods, reason = "processes are the same for the probe, its parts and the door")]
fn is_ours(path: &Path) -> bool {
    let owner = |path: &Path| path.metadata().as_ref().map(Metadata::uid).ok();
    let process: PathBuf = path.components().take(3).collect();
    match owner(&process) {
        Some(0) => !is_below(&process),
        user => user.is_some() && user == owner(Path::new("/proc/self")),
    }
}

/// Whether a process has numbers in more than one PID namespace; if that cannot be read (before Linux 4.1), it does
/// not.
#[expect(clippy::disallowed_methods, reason = "processes are the same for the probe, its parts and the door")]
fn is_below(process: &Path) -> bool {
    // The kernel writes it without a look at the process's memory.
    let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
    has_many_numbers(&status)
}

/// Whether a process of this `/proc/PID/status` is one of a PID namespace below.
#[must_use]
pub fn has_many_numbers(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().count() > 1)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_root_of_a_container_is_not_the_machines() {
        assert!(has_many_numbers("Name:\tinit\nUid:\t0\t0\t0\t0\nNSpid:\t700\t1\n"));
        assert!(!has_many_numbers("Name:\tsystemd\nNSpid:\t1\n"));
        assert!(!has_many_numbers("Name:\tsystemd\n"), "a kernel before 4.1");
        assert!(is_ours(Path::new("/proc/self/environ")));
    }

    /// As the kernel does it while a process's memory is locked; it ends with the test.
    fn stuck(path: &'static str) -> io::Error {
        let (held, locked) = channel::<()>();
        let error = in_time(Path::new(path), move || Ok(locked.recv().is_ok())).unwrap_err();
        drop(held);
        error
    }

    #[test]
    fn who_keeps_his_memory_locked_keeps_nobody_waiting_for_long() {
        let (began, own) = (Instant::now(), PathBuf::from(format!("/proc/{}/environ", std::process::id())));
        let (held, locked) = channel::<()>();
        let look = move || Ok(locked.recv().is_ok());
        let error = in_time(&own, look).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (io::ErrorKind::TimedOut, "its process keeps its memory locked")
        );
        drop(held);
        // No process has this number, so it does not count as this user's.
        for _ in 0..500 {
            assert_eq!(stuck("/proc/999999999/environ").kind(), io::ErrorKind::TimedOut);
        }
        assert!(began.elapsed() < PATIENCE * 25, "hundreds of them are not waited for each");
        assert_eq!(in_time(&own, || Ok(7)).unwrap(), 7, "one's own are looked at all the same");
        assert_eq!(
            in_time(&own, || Err::<(), _>(io::ErrorKind::NotFound.into())).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
