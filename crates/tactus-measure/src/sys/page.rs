//! A page of memory that other processes or devices also write to.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use tactus_model::wire::clock_page::{APART, BYTES};

/// The page. Its pages are there from the beginning: no access to it faults.
#[derive(Debug)]
pub struct Page(*mut c_void);

// SAFETY: it is memory that is there as long as the value is, and is reached by atomic words alone.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// The first page of a file of memory, of at least that length.
    ///
    /// # Errors
    /// Those of mmap(2); `InvalidData` where the file is shorter.
    pub fn of(file: BorrowedFd) -> io::Result<Self> {
        if usize::try_from(rustix::fs::fstat(file)?.st_size).is_ok_and(|bytes| bytes < BYTES) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the shared memory is shorter than a page",
            ));
        }
        Self::at(file, 0)
    }

    /// The page at this place of a device's file, which has no length. The first access to one may fault.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn at(file: BorrowedFd, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping touches no other memory.
        Ok(Self(unsafe {
            mmap(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, flags, file, offset)?
        }))
    }

    /// One of this process alone, all zero.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn own() -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new mapping touches no other memory.
        Ok(Self(unsafe {
            mmap_anonymous(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, flags)?
        }))
    }

    /// One of its words.
    ///
    /// # Panics
    /// Where it has fewer.
    #[inline]
    pub fn word(&self, number: usize) -> &AtomicU32 {
        assert!(number < BYTES / APART, "a page has {} words", BYTES / APART);
        // SAFETY: it lies within the mapping, which lives as long as `self`, is aligned, and every word of memory is a
        // valid one. Who else writes to it does so from another process or machine, or by these atomics.
        unsafe { AtomicU32::from_ptr(self.0.cast::<u8>().add(number * APART).cast()) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no borrow of it is left.
        let _ = unsafe { munmap(self.0, BYTES) };
    }
}
