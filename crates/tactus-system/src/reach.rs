//! The path to a directory that is written into: it contains no link of another user.
//!
//! The owner of a parent directory can replace any part of a path by a link at any moment. The kernel prevents this
//! only in directories that every user may write to (`fs.protected_symlinks`). So a path is walked part by part: a link
//! is followed if root, this user or the caller of sudo has made it, and refused otherwise. The result is then always
//! the directory of the named path.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::own::is_ours;

/// Limit of the links that are followed on one path, as in the kernel.
const MOST_LINKS: u32 = 40;
/// A directory on the way: nothing of it is read.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory at `path`; with `make`, missing directories are made.
///
/// # Errors
/// Those of open(2), and `PermissionDenied` when the path contains a link of another user.
pub fn reach(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let mut left = parts(path);
    let mut at = rustix::fs::openat(CWD, ".", STEP, Mode::empty())?;
    let (mut way, mut links) = (PathBuf::new(), 0);
    while let Some(part) = left.pop() {
        way.push(&part);
        if part == "/" || part == ".." {
            at = rustix::fs::openat(&at, &part, STEP, Mode::empty())?;
            continue;
        }
        let found = match look(&at, &part) {
            Err(Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&at, &part, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                look(&at, &part)?
            }
            found => found?,
        };
        let (fd, stat) = found;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => at = fd,
            FileType::Symlink if !is_ours(stat.st_uid) => return Err(led(&way, stat.st_uid)),
            FileType::Symlink if links == MOST_LINKS => return Err(Errno::LOOP.into()),
            FileType::Symlink => {
                links += 1;
                let to = rustix::fs::readlinkat(&fd, "", Vec::new())?;
                left.extend(parts(Path::new(&OsString::from_vec(to.into_bytes()))));
            }
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    Ok(rustix::fs::openat(&at, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The file of a name; links are not followed.
fn look(at: &OwnedFd, part: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(at, part, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    Ok((fd, stat))
}

/// The parts of a path, the first at the end.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

fn led(way: &Path, user: u32) -> io::Error {
    let words = format!(
        "{} is a link of another user (uid {user}), who controls where it leads: name the directory itself",
        way.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, words)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what others plant is planted beside the door")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    /// A directory, one to lead to, and whether links of others can be made here.
    fn place() -> (tempfile::TempDir, PathBuf, bool) {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().to_owned();
        fs::create_dir_all(at.join("victim/below")).unwrap();
        symlink(at.join("victim"), at.join("theirs")).unwrap();
        let others = lchown(at.join("theirs"), Some(65_534), None).is_ok();
        (root, at, others)
    }

    fn same(one: &OwnedFd, other: &Path) -> bool {
        let (one, other) = (rustix::fs::fstat(one).unwrap(), rustix::fs::stat(other).unwrap());
        (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
    }

    #[test]
    fn a_link_of_another_user_leads_nowhere_wherever_it_is_on_the_way() {
        let (_root, at, others) = place();
        if !others {
            return;
        }
        symlink("theirs/below", at.join("ours")).unwrap();
        for way in ["theirs", "theirs/below", "ours", "victim/../theirs", "theirs/new/below", "ours/new"] {
            for make in [true, false] {
                let said = reach(&at.join(way), make).unwrap_err().to_string();
                assert!(said.contains("a link of another user (uid 65534)"), "{way}: {said}");
            }
        }
        assert_eq!(fs::read_dir(at.join("victim")).unwrap().count(), 1, "nothing was made");
        assert_eq!(fs::read_dir(at.join("victim/below")).unwrap().count(), 0);
    }

    #[test]
    fn a_way_of_ones_own_leads_where_it_leads_with_links_and_without() {
        let (_root, at, _) = place();
        symlink("victim/below", at.join("near")).unwrap();
        symlink(at.join("near"), at.join("far")).unwrap();
        for way in ["victim/below", "near", "far", "far/.", "victim/./below/../below", "far/../below"] {
            assert!(same(&reach(&at.join(way), false).unwrap(), &at.join("victim/below")), "{way}");
        }
        assert!(same(&reach(&at.join("far/a/b"), true).unwrap(), &at.join("victim/below/a/b")));
        assert!(same(&reach(Path::new("/"), false).unwrap(), Path::new("/")));
        assert!(same(&reach(Path::new(""), false).unwrap(), Path::new(".")));
        assert!(same(&reach(Path::new("src/.."), false).unwrap(), Path::new(".")));
    }

    #[test]
    fn what_is_no_directory_is_missing_or_goes_in_circles_is_an_error() {
        let (_root, at, _) = place();
        fs::write(at.join("file"), "").unwrap();
        symlink("circle", at.join("circle")).unwrap();
        let kind = |way: &str, make| reach(&at.join(way), make).unwrap_err().kind();
        assert_eq!(kind("file", true), io::ErrorKind::NotADirectory);
        assert_eq!(kind("file/below", true), io::ErrorKind::NotADirectory);
        assert_eq!(kind("missing", false), io::ErrorKind::NotFound);
        assert!(reach(&at.join("circle"), true).is_err());
    }
}
