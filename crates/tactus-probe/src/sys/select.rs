//! select(2).
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Descriptors of which select(2) is asked which can be written.
pub struct Writable {
    set: libc::fd_set,
    /// The largest descriptor and one.
    end: libc::c_int,
}

impl Writable {
    /// # Errors
    /// When a descriptor is larger than select can take.
    pub fn of<'a>(descriptors: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<Self> {
        // SAFETY: all zero is a set without any descriptor.
        let mut writable = Self { set: unsafe { std::mem::zeroed() }, end: 0 };
        for descriptor in descriptors {
            let number = descriptor.as_raw_fd();
            if usize::try_from(number).is_ok_and(|number| number >= libc::FD_SETSIZE) {
                return Err(io::Error::from_raw_os_error(libc::EBADF));
            }
            // SAFETY: the set has a bit for every number below FD_SETSIZE.
            unsafe { libc::FD_SET(number, &raw mut writable.set) };
            writable.end = writable.end.max(number + 1);
        }
        Ok(writable)
    }

    /// How many of them can be written now. Does not wait.
    ///
    /// # Errors
    /// EBADF when one of them has been closed.
    #[inline]
    pub fn select(&self) -> io::Result<usize> {
        let (mut set, mut now) = (self.set, libc::timeval { tv_sec: 0, tv_usec: 0 });
        let none = std::ptr::null_mut();
        // SAFETY: `set` and `now` are live and this thread's own; the kernel reads and writes no more.
        let ready = unsafe { libc::select(self.end, none, &raw mut set, none, &raw mut now) };
        usize::try_from(ready).map_err(|_| io::Error::last_os_error())
    }
}
