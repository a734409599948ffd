//! The guardian: takes back what a run changed, however the run ends.
//!
//! tactus starts it in a session of its own, without the run's mark, and holds the other end of its
//! stdin. It is told what would have to be undone before it is done. When the pipe closes, it ends
//! every process of the run, undoes what is outstanding, newest first, and removes the journal. What
//! it cannot undo stays in the journal, and `tactus-probe undo` or the next command tries again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process, setsid};
use tactus_model::undo::{Entry, MARKER, Undo, outstanding};

use crate::sys;

/// How long a command that undoes something may take.
const COMMAND: Duration = Duration::from_secs(20);
/// How long processes may take to die.
const DYING: Duration = Duration::from_secs(10);
/// How long those who undo something themselves, once they hear of the end, may take for it.
const UNDOING: Duration = Duration::from_secs(3);
/// How often a removal is tried: what a dead process held is freed a little later.
const TRIES: u32 = 20;
/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Watches over a run until its pipe closes, and then undoes. Returns the exit code: 0 when
/// everything is undone.
pub fn watch(journal: &Path, marker: &str) -> u8 {
    if std::env::var_os(MARKER).is_some() {
        return without_mark();
    }
    // It may be the leader of its group already; then it is out of the run's reach anyway.
    let _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        sys::on_signal(signal, sys::OnSignal::Ignore);
    }
    let _ = std::env::set_current_dir("/");
    let mut told = Vec::new();
    // An error is an end, too: what was told until then counts.
    let _ = io::stdin().read_to_end(&mut told);
    kill_marked(marker);
    finish(journal, &String::from_utf8_lossy(&told))
}

/// Undoes the journal that a power cut or a killed guardian left. Returns the exit code.
pub fn undo(journal: &Path) -> u8 {
    if !journal.exists() {
        crate::stderr::say!("tactus-probe: there is no journal {}", journal.display());
        return 2;
    }
    finish(journal, "")
}

/// Starts itself again without the run's mark: it must not be ended as a process of the run.
fn without_mark() -> u8 {
    use std::os::unix::process::CommandExt;
    let error = Command::new("/proc/self/exe").args(std::env::args_os().skip(1)).env_remove(MARKER).exec();
    crate::stderr::say!("tactus-probe: guardian: /proc/self/exe: {error}");
    2
}

fn finish(journal: &Path, told: &str) -> u8 {
    let written = fs::read_to_string(journal).unwrap_or_default();
    let mut seen = Vec::new();
    // A line may stand in the journal and have been told, or only one of both when the run died
    // between them. A cut last line of the journal must not swallow the first that was told.
    let open: Vec<_> = outstanding(&format!("{written}\n{told}"))
        .into_iter()
        .filter(|(id, _)| {
            let new = !seen.contains(id);
            seen.push(*id);
            new
        })
        .collect();
    let mut record = OpenOptions::new().append(true).open(journal).ok();
    if let Some(file) = record.as_mut()
        && !written.is_empty()
        && !written.ends_with('\n')
    {
        let _ = file.write_all(b"\n");
    }
    let mut left = 0;
    for (id, how) in open {
        match take_back(&how) {
            Ok(()) => note_done(record.as_mut(), id),
            Err(error) => {
                left += 1;
                crate::stderr::say!("tactus-probe: guardian: not undone: {how:?}: {error}");
            }
        }
    }
    if left > 0 {
        return 2;
    }
    match fs::remove_file(journal) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            crate::stderr::say!("tactus-probe: guardian: {}: {error}", journal.display());
            2
        }
        _ => 0,
    }
}

fn note_done(record: Option<&mut File>, id: u64) {
    if let (Some(file), Ok(line)) = (record, serde_json::to_string(&Entry::Done { id })) {
        let _ = writeln!(file, "{line}");
        let _ = file.sync_data();
    }
}

/// Takes something back, however long it must be tried.
///
/// # Errors
/// What is left after that.
pub fn take_back(how: &Undo) -> io::Result<()> {
    match how {
        Undo::KillMarked(marker) => {
            if kill_marked(marker) {
                Ok(())
            } else {
                Err(io::Error::other("processes of the run do not die"))
            }
        }
        Undo::Run(words) => {
            run(words);
            Ok(())
        }
        _ => again(|| attempt(how)),
    }
}

/// Takes back what one attempt can: everything but processes and what a command takes back.
///
/// # Errors
/// Those of the file system.
pub fn attempt(how: &Undo) -> io::Result<()> {
    match how {
        Undo::KillMarked(_) | Undo::Run(_) => Err(io::ErrorKind::InvalidInput.into()),
        Undo::Remove(path) => remove(path),
        Undo::RemoveEmpty(path) => fs::remove_dir(path),
        Undo::Unmount(path) => unmounted(path),
        Undo::Write { path, value } => OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes()),
    }
}

/// Tries until it works or is not there any more.
fn again(mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        match attempt() {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if tries >= TRIES => return Err(error),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    // A link is removed, never what it points to.
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    // What is mounted there is not ours: its mount goes, innermost first.
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let place = fs::canonicalize(path)?;
    for point in table.lines().rev().filter_map(|line| line.split(' ').nth(4)) {
        if Path::new(point).starts_with(&place) {
            unmounted(Path::new(point))?;
        }
    }
    fs::remove_dir_all(path)
}

fn unmounted(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        // It is not a mount (any more).
        Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Runs a command, for at most [`COMMAND`]; its outcome does not matter.
pub fn run(words: &[String]) {
    let Some((program, arguments)) = words.split_first() else { return };
    let child = Command::new(program)
        .args(arguments)
        .env_remove(MARKER)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return };
    let until = Instant::now() + COMMAND;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills every process that carries the mark, until there is none; `false` when some do not die. Workers
/// end with their session by themselves, and some know best what they changed: they are killed last.
fn kill_marked(marker: &str) -> bool {
    let (spared, until) = (Instant::now() + UNDOING, Instant::now() + DYING);
    loop {
        let alive = marked(marker);
        if alive.is_empty() {
            return true;
        }
        let all = Instant::now() >= spared;
        for pid in alive.iter().filter(|pid| all || !is_worker(**pid)) {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_worker(pid: Pid) -> bool {
    let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    let line = fs::read(path).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(crate::worker::ARGUMENT.as_bytes())
}

/// Processes whose environment has the mark; never this one. A zombie has no environment.
fn marked(marker: &str) -> Vec<Pid> {
    let wanted = format!("{MARKER}={marker}");
    let me = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != me)
        .filter(|pid| {
            let environ = fs::read(PathBuf::from(format!("/proc/{pid}/environ"))).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .filter_map(|pid| Pid::from_raw(pid.cast_signed()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tactus-guardian-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn line(id: u64, how: Undo) -> String {
        serde_json::to_string(&Entry::Undo { id, how }).unwrap() + "\n"
    }

    #[test]
    fn what_was_told_and_what_was_written_is_undone_and_the_journal_goes() {
        let place = place("both");
        let (journal, told, written) = (place.join("journal"), place.join("told"), place.join("written"));
        fs::write(&told, "x").unwrap();
        fs::create_dir(&written).unwrap();
        fs::write(&journal, line(0, Undo::Remove(written.clone())) + "{\"undo\":{\"id\":1,\"ho").unwrap();
        assert_eq!(finish(&journal, &line(1, Undo::Remove(told.clone()))), 0);
        assert!(!told.exists() && !written.exists() && !journal.exists());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn what_cannot_be_undone_stays_in_the_journal() {
        let place = place("stays");
        let (journal, full, file) = (place.join("journal"), place.join("full"), place.join("file"));
        fs::create_dir(&full).unwrap();
        fs::write(full.join("guest"), "").unwrap();
        fs::write(&file, "now").unwrap();
        let value = Undo::Write { path: file.clone(), value: "then".into() };
        fs::write(&journal, line(0, Undo::RemoveEmpty(full.clone())) + &line(1, value)).unwrap();
        assert_eq!(finish(&journal, ""), 2);
        assert_eq!(fs::read_to_string(&file).unwrap(), "then");
        let left = outstanding(&fs::read_to_string(&journal).unwrap());
        assert_eq!(left, [(0, Undo::RemoveEmpty(full.clone()))]);
        fs::remove_file(full.join("guest")).unwrap();
        assert_eq!(undo(&journal), 0);
        assert!(!full.exists() && !journal.exists());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_link_is_removed_and_not_what_it_points_to() {
        let place = place("link");
        fs::create_dir(place.join("kept")).unwrap();
        std::os::unix::fs::symlink(place.join("kept"), place.join("link")).unwrap();
        take_back(&Undo::Remove(place.join("link"))).unwrap();
        assert!(place.join("kept").exists() && !place.join("link").exists());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn undoing_what_is_not_there_is_no_failure() {
        for how in [
            Undo::Remove("/no/such/file".into()),
            Undo::RemoveEmpty("/no/such/directory".into()),
            Undo::Unmount("/no/such/mount".into()),
            Undo::KillMarked("nobody-carries-this".into()),
            Undo::Run(vec!["/no/such/program".into()]),
        ] {
            assert!(take_back(&how).is_ok(), "{how:?}");
        }
    }
}
