//! Types and results of raw system calls.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The C library's type for the number of an ioctl(2).
#[cfg(target_env = "musl")]
pub type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
/// The C library's type for the number of an ioctl(2).
pub type Request = libc::c_ulong;

/// The descriptor in the result of a system call that makes one.
pub fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: a result that is not negative is a new descriptor without another owner.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
