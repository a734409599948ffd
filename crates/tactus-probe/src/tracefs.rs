//! Files of tracefs, which is mounted for this process alone if it is not mounted yet.

use std::io::Error;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use tactus_model::undo::block::ROOTS;

use crate::sys;

/// Its mount point.
pub const ROOT: &str = ROOTS[0];

/// The path of a file of it.
pub fn at(path: &str) -> String {
    [ROOT, "/", path].concat()
}

/// The text of a file.
///
/// # Errors
/// Why it cannot be read, in words.
pub fn read(path: &str) -> Result<String, String> {
    let path = at(path);
    crate::settings::read(&path).map_err(|error| wrong(&path, &error))
}

/// The same, but mounts tracefs if needed. Call it before a second thread exists.
///
/// # Errors
/// Why it cannot be read or mounted, in words.
pub fn read_first(path: &str) -> Result<String, String> {
    read(path).or_else(|_| {
        sys::own_mounts().map_err(|error| wrong("tracefs is not mounted, nor may it be", &error))?;
        // If this fails (in a chroot "/" need not be a mount), a mount made here would appear everywhere and stay.
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .map_err(|error| wrong("private mounts are not possible", &error.into()))?;
        mount("tracefs", ROOT, "tracefs", MountFlags::empty(), None)
            .map_err(|error| wrong("tracefs cannot be mounted", &error.into()))?;
        read(path)
    })
}

/// A message about a failure with a file.
#[cold]
pub fn wrong(path: &str, error: &Error) -> String {
    [path, ": ", &error.to_string()].concat()
}
