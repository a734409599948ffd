//! The guardian: undoes the changes of a run, however the run ends.
//!
//! tactus starts it in a separate session, without the run's mark, and holds the other end of its stdin. tactus sends
//! each undo before it makes the change. When the pipe closes, the guardian writes back settings, ends every process of
//! the run, undoes what is outstanding, newest first, and removes the journal. Failed undos stay in the journal, and
//! `tactus-probe undo` or the next command tries again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use rustix::process::setsid;
use tactus_model::undo::{Entry, MARKER, Owned, is_over, kill_marked, outstanding, settings_first, undo};

use crate::actions::LocalSystem;
use crate::sys;

/// Watches over a run until its pipe closes, and then undoes. Returns the exit code: 0 when
/// everything is undone.
pub fn watch(journal: &Path, marker: &str) -> u8 {
    if std::env::var_os(MARKER).is_some() {
        return without_mark();
    }
    // If it already leads its group, it is out of the run's reach anyway.
    let _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        sys::on_signal(signal, sys::OnSignal::Ignore);
    }
    let _ = std::env::set_current_dir("/");
    let mut told = Vec::new();
    // An error also ends the input: everything received until then counts.
    let _ = io::stdin().read_to_end(&mut told);
    finish(journal, &String::from_utf8_lossy(&told), Some(marker))
}

/// Undoes the journal that a power cut or a killed guardian left. Returns the exit code.
pub fn recover(journal: &Path) -> u8 {
    if !journal.exists() {
        crate::stderr::say!("tactus-probe: there is no journal {}", journal.display());
        return 2;
    }
    finish(journal, "", None)
}

/// Starts itself again without the run's mark: it must not be ended as a process of the run.
fn without_mark() -> u8 {
    use std::os::unix::process::CommandExt;
    let error = Command::new("/proc/self/exe").args(std::env::args_os().skip(1)).env_remove(MARKER).exec();
    crate::stderr::say!("tactus-probe: guardian: /proc/self/exe: {error}");
    2
}

fn finish(journal: &Path, told: &str, marker: Option<&str>) -> u8 {
    let (written, mut record) = match open(journal) {
        Ok((text, file)) => (text, Some(file)),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                crate::stderr::say!("tactus-probe: guardian: {}: {error}", journal.display());
            }
            (String::new(), None)
        }
    };
    let refused = record.is_none() && journal.exists();
    // A line may stand in the journal and have been told, or only one of both when the run died
    // between them. A cut last line of the journal must not swallow the first that was told.
    let open = outstanding(&[&*written, "\n", told].concat());
    if let Some(file) = record.as_mut()
        && !written.is_empty()
        && !written.ends_with('\n')
    {
        let _ = file.write_all(b"\n");
    }
    settings_first(&open, &LocalSystem);
    // Should the journal not be readable, this much is known.
    if let Some(marker) = marker {
        let _ = kill_marked(marker, &LocalSystem);
    }
    let mut left = 0;
    for (id, how) in open {
        match undo(&how, &LocalSystem) {
            Ok(()) => note_done(record.as_mut(), id),
            Err(error) => {
                crate::stderr::say!("tactus-probe: guardian: not undone: {how}: {error}");
                if is_over(&how, &error) {
                    note_done(record.as_mut(), id);
                } else {
                    left += 1;
                }
            }
        }
    }
    if left > 0 || refused {
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

/// The journal and its text, if only this user can have written it.
fn open(journal: &Path) -> io::Result<(String, File)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut file = OpenOptions::new().read(true).append(true).custom_flags(flags).open(journal)?;
    let found = file.metadata()?;
    let owned = Owned { user: found.uid(), mode: found.mode(), links: found.nlink() };
    let own = owned.is_own_file(rustix::process::geteuid().as_raw());
    own.map_err(|why| {
        io::Error::new(io::ErrorKind::PermissionDenied, ["it is not trusted: ", &why].concat())
    })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), file))
}

fn note_done(record: Option<&mut File>, id: u64) {
    if let (Some(file), Ok(line)) = (record, serde_json::to_string(&Entry::Done { id })) {
        let _ = writeln!(file, "{line}");
        let _ = file.sync_data();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tactus_model::undo::Undo;

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
        assert_eq!(finish(&journal, &line(1, Undo::Remove(told.clone())), None), 0);
        assert!(!told.exists() && !written.exists() && !journal.exists());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_journal_that_others_may_write_or_that_is_a_link_undoes_nothing() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let place = place("forged");
        let (journal, link, victim) = (place.join("journal"), place.join("link"), place.join("victim"));
        fs::write(&victim, "x").unwrap();
        fs::write(&journal, line(0, Undo::Remove(victim.clone()))).unwrap();
        symlink(&journal, &link).unwrap();
        assert_eq!(recover(&link), 2);
        fs::set_permissions(&journal, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(recover(&journal), 2);
        assert!(victim.exists() && journal.exists());
        fs::set_permissions(&journal, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(recover(&journal), 0);
        assert!(!victim.exists() && !journal.exists());
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
        assert_eq!(finish(&journal, "", None), 2);
        assert_eq!(fs::read_to_string(&file).unwrap(), "then");
        let left = outstanding(&fs::read_to_string(&journal).unwrap());
        assert_eq!(left, [(0, Undo::RemoveEmpty(full.clone()))]);
        fs::remove_file(full.join("guest")).unwrap();
        assert_eq!(recover(&journal), 0);
        assert!(!full.exists() && !journal.exists());
        fs::remove_dir_all(place).unwrap();
    }
}
