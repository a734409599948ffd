//! Removes files and directories of tactus, and no others. It never removes the target of a link or a file system
//! mounted inside. If the path is in another process's root, it never removes the same path in this process's root.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::actions::{gone, no_mount};

/// The errno of a process that has ended, whose directory in /proc is still open.
const ESRCH: i32 = 3;

/// The operations of a file system that removing needs.
pub trait Files {
    /// The path without links.
    ///
    /// # Errors
    /// Those of realpath(3).
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// The text of /proc/self/mountinfo.
    ///
    /// # Errors
    /// Those of the file system.
    fn mountinfo(&self) -> io::Result<Vec<u8>>;
    /// Whether it is a directory; a link to one does not count.
    ///
    /// # Errors
    /// Those of lstat(2).
    fn is_directory(&self, path: &Path) -> io::Result<bool>;
    /// Removes a file that is not a directory.
    ///
    /// # Errors
    /// Those of unlink(2).
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with all that is in it.
    ///
    /// # Errors
    /// Those of the file system.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Detaches a mount.
    ///
    /// # Errors
    /// Those of umount(2).
    fn unmount(&self, path: &Path) -> io::Result<()>;
}

/// Removes a file, or a directory with its contents. File systems mounted inside are unmounted, never emptied. A
/// missing file is not an error.
///
/// # Errors
/// Those of the file system; `InvalidInput` for the root.
pub fn remove(path: &Path, files: &impl Files) -> io::Result<()> {
    if path.starts_with("/proc") {
        // The file system of another process (`/proc/PID/root/...`): its root is a link with the text "/", so that its
        // canonical path would be in this process's file system. Only a single file can be removed there.
        return match gone(files.remove_file(path)) {
            Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(()),
            result => result,
        };
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    // Its last name is not made canonical: a link is removed, never what it points to.
    let path = match files.canonical(dir) {
        Ok(dir) => dir.join(name),
        Err(error) => return gone(Err(error)),
    };
    for point in mounts_at(&files.mountinfo()?, &path) {
        no_mount(files.unmount(&point))?;
    }
    gone(files.is_directory(&path).and_then(|is_directory| {
        if is_directory { files.remove_directory(&path) } else { files.remove_file(&path) }
    }))
}

/// Mount points at and below a path, innermost first.
pub(super) fn mounts_at(mountinfo: &[u8], path: &Path) -> Vec<PathBuf> {
    let points = mountinfo.split(|byte| *byte == b'\n').filter_map(|line| line.split(|b| *b == b' ').nth(4));
    let mut points: Vec<PathBuf> = points.map(unescaped).filter(|point| point.starts_with(path)).collect();
    points.reverse();
    points
}

/// A path as the kernel writes it in its tables: blanks, tabs, newlines and backslashes are `\` and three
/// octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if let (b'\\', &[a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ref after @ ..]) = (byte, after) {
            bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = after;
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    OsString::from_vec(bytes).into()
}
