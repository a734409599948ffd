//! Directories and files that are this user's alone: what tactus keeps on a machine, and believes when it finds it again.
#![expect(clippy::disallowed_methods, reason = "this is the door")]

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use tactus_model::process_files;
use tactus_model::undo::Owned;

/// Makes a private directory of this user, and its parents. An existing one must belong to this user. Nothing is made
/// on an untrusted path.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|step| fs::symlink_metadata(step).is_err());
    if let Some(first) = missing.last() {
        check_way(first)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check_directory(path)
}

/// Checks that a directory is private to this user, and that no other user could replace it on its path.
pub fn check_directory(path: &Path) -> io::Result<()> {
    check_way(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir: File =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| not_ours(path, error.into()))?.into();
    owned(&dir.metadata()?).is_own_directory(user()).map_err(|why| refused(&why))
}

/// Opens a file of this user in a private directory; `OFlags::CREATE` makes it.
pub fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    check_directory(path.parent().unwrap_or(Path::new("/")))?;
    // Must not wait for the writer of a pipe that another user has put there.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: File = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| not_ours(path, error.into()))?
        .into();
    owned(&file.metadata()?).is_own_file(user()).map_err(|why| refused(&why))?;
    Ok(file)
}

/// The bytes of a file of ours.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OFlags::RDONLY)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Everything above a path, as it is written and as it is without links.
fn check_way(path: &Path) -> io::Result<()> {
    let above = path.parent().unwrap_or(path);
    let real = fs::canonicalize(above)?;
    above.ancestors().chain(real.ancestors()).try_for_each(|step| check_step(step, user()))
}

fn check_step(step: &Path, user: u32) -> io::Result<()> {
    if step.as_os_str().is_empty() {
        return Ok(());
    }
    let kept = owned(&fs::symlink_metadata(step)?).keeps_names(user);
    kept.map_err(|why| refused(&format!("of {}: {why}", step.display())))
}

/// The real path of a file or directory, if only root and this user (or the caller of sudo) can have put it there and
/// can write to it. Its contents may then be trusted and run as this user.
pub fn believed(path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    let found = owned(&fs::metadata(&real)?);
    if !is_ours(found.user) {
        return Err(refused(&format!("{} belongs to user {}", real.display(), found.user)));
    }
    if found.mode & 0o022 != 0 {
        let mode = found.mode & 0o7777;
        return Err(refused(&format!("others may write to {} (mode {mode:o})", real.display())));
    }
    for step in real.ancestors().skip(1) {
        let owner = fs::symlink_metadata(step)?.uid();
        check_step(step, if is_ours(owner) { owner } else { user() })?;
    }
    Ok(real)
}

/// Whether this is this user, or for root the user who called sudo.
pub fn is_mine(user: u32) -> bool {
    let me = geteuid();
    let caller = || std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    user == me.as_raw() || (me.is_root() && caller() == Some(user))
}

/// Whether what this user makes is as good as one's own.
pub fn is_ours(user: u32) -> bool {
    user == 0 || is_mine(user)
}

/// The effective user of a process that is there.
pub fn user_of(process: u32) -> Option<u32> {
    let path = PathBuf::from(format!("/proc/{process}/status"));
    let status = process_files::read(&path).ok()?;
    effective_user(&String::from_utf8_lossy(&status))
}

/// The effective user in a `/proc/PID/status`.
pub fn effective_user(status: &str) -> Option<u32> {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

fn user() -> u32 {
    geteuid().as_raw()
}

fn owned(found: &fs::Metadata) -> Owned {
    Owned { user: found.uid(), mode: found.mode(), links: found.nlink() }
}

/// Callers name the file.
fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("it is not trusted: {why}"))
}

/// A link of another user is refused as such; other errors stay as they are.
fn not_ours(path: &Path, error: io::Error) -> io::Error {
    let is_link = || fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if error.kind() == ErrorKind::NotFound || !is_link() { error } else { refused("it is a link") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::time::Instant;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(result: io::Result<impl Sized>) -> String {
        result.map(drop).expect_err("it is believed").to_string()
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("tactus/run");
        make_directory(&own).unwrap();
        (dir, own)
    }

    #[test]
    fn a_private_directory_may_only_be_entered_by_its_user() {
        let (_dir, own) = place();
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
        make_directory(&own).unwrap();
        mode(&own, 0o770);
        assert!(why(make_directory(&own)).contains("others may write to it (mode 770)"));
    }

    #[test]
    fn a_directory_or_journal_of_another_user_is_refused() {
        let (dir, own) = place();
        let journal = own.join("j.jsonl");
        fs::write(&journal, "x").unwrap();
        mode(&journal, 0o600);
        assert_eq!(read(&journal).unwrap(), b"x");
        if !geteuid().is_root() {
            return;
        }
        chown(&journal, Some(12_345), None).unwrap();
        assert!(why(read(&journal)).contains("it is not trusted: it belongs to user 12345"));
        chown(&journal, Some(0), None).unwrap();
        chown(&own, Some(12_345), None).unwrap();
        assert!(why(read(&journal)).contains("it is not trusted: it belongs to user 12345"));
        chown(&own, Some(0), None).unwrap();
        chown(dir.path(), Some(12_345), None).unwrap();
        assert!(
            why(make_directory(&own)).contains("it belongs to user 12345"),
            "its owner could put another one there"
        );
    }

    #[test]
    fn a_link_a_second_name_a_pipe_and_what_others_may_write_is_refused_at_once() {
        let (dir, own) = place();
        let (real, journal) = (dir.path().join("real"), own.join("j.jsonl"));
        fs::write(&real, "x").unwrap();
        mode(&real, 0o600);
        symlink(&real, &journal).unwrap();
        assert!(why(read(&journal)).contains("it is a link"));
        fs::remove_file(&journal).unwrap();
        fs::hard_link(&real, &journal).unwrap();
        assert!(why(read(&journal)).contains("it has 2 names"));
        fs::remove_file(&journal).unwrap();
        fs::rename(&real, &journal).unwrap();
        mode(&journal, 0o602);
        assert!(why(read(&journal)).contains("others may write to it"));
        fs::remove_file(&journal).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &journal, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let began = Instant::now();
        assert!(why(read(&journal)).contains("it is not a regular file") && began.elapsed().as_secs() < 5);
        let link = dir.path().join("link");
        symlink(&own, &link).unwrap();
        assert!(why(make_directory(&link)).contains("it is a link"));
    }

    #[test]
    fn below_a_directory_that_everybody_may_write_to_nothing_is_believed_or_made() {
        let (dir, own) = place();
        mode(dir.path(), 0o777);
        assert!(why(make_directory(&own)).contains("everybody may write to it"));
        let new = dir.path().join("new/tactus");
        assert!(why(make_directory(&new)).contains("everybody may write to it"));
        assert!(!dir.path().join("new").exists(), "nothing was made");
        mode(dir.path(), 0o1777);
        make_directory(&own).unwrap();
    }

    #[test]
    fn what_somebody_else_can_have_put_at_the_end_of_a_link_is_not_believed() {
        let (dir, own) = place();
        let (link, file) = (dir.path().join("build"), own.join("Makefile"));
        fs::write(&file, "").unwrap();
        mode(&file, 0o644);
        symlink(&own, &link).unwrap();
        assert_eq!(believed(&link.join("Makefile")).unwrap(), fs::canonicalize(&file).unwrap());
        mode(&file, 0o664);
        assert!(why(believed(&link.join("Makefile"))).contains("others may write to"));
        mode(&own, 0o777);
        assert!(why(believed(&link)).contains("others may write to"));
        mode(&file, 0o644);
        assert!(why(believed(&link.join("Makefile"))).contains("everybody may write to it"));
        mode(&own, 0o700);
        if geteuid().is_root() {
            chown(&own, Some(12_345), None).unwrap();
            assert!(why(believed(&link)).contains("belongs to user 12345"));
            assert!(
                why(believed(&link.join("Makefile"))).contains("belongs to user 12345"),
                "its owner could"
            );
        }
    }
}
