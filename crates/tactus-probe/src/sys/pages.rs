//! Memory in pages of one size.
#![expect(unsafe_code, reason = "mappings are not what safe memory is made of")]

use std::io;
use std::ptr::null_mut;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// How large its pages are to be, and where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// As the kernel gives them to any program.
    Any,
    /// 4 KiB.
    Small,
    /// 2 MiB, out of the reserve.
    Large,
    /// 2 MiB where the kernel finds them (transparent huge pages).
    Transparent,
    /// 1 GiB, out of the reserve.
    Huge,
}

impl PageSize {
    /// Bytes of a page.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Any | Self::Small => 4 << 10,
            Self::Large | Self::Transparent => 2 << 20,
            Self::Huge => 1 << 30,
        }
    }
}

/// Memory of this process, which lives as long as this.
#[derive(Debug)]
pub struct Pages {
    /// Aligned to a page of its size.
    start: *mut u64,
    words: usize,
    /// The mapping.
    mapped: (*mut core::ffi::c_void, usize),
}

impl Pages {
    /// At least this many bytes, all present and 0.
    ///
    /// # Errors
    /// When the system has no such pages, or too few.
    pub fn map(bytes: usize, size: PageSize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(size.bytes());
        let flags = MapFlags::PRIVATE
            | match size {
                PageSize::Large => MapFlags::HUGETLB | MapFlags::HUGE_2MB,
                PageSize::Huge => MapFlags::HUGETLB | MapFlags::HUGE_1GB,
                PageSize::Any | PageSize::Small | PageSize::Transparent => MapFlags::empty(),
            };
        // Huge pages begin where an address is a multiple of them.
        let more = if size == PageSize::Transparent { size.bytes() } else { 0 };
        // SAFETY: a new anonymous mapping touches no other memory.
        let mapped =
            unsafe { mmap_anonymous(null_mut(), bytes + more, ProtFlags::READ | ProtFlags::WRITE, flags)? };
        let start = mapped.map_addr(|address| address.next_multiple_of(size.bytes()));
        // From here on it is given back, whatever fails.
        let own =
            Self { start: start.cast(), words: bytes / size_of::<u64>(), mapped: (mapped, bytes + more) };
        let advise = |advice| {
            // SAFETY: it is this mapping's own memory, and none of these changes what is in it.
            unsafe { madvise(start, bytes, advice) }
        };
        match size {
            // A kernel without transparent huge pages, as those with PREEMPT_RT are, does not know the advice.
            PageSize::Small => match advise(Advice::LinuxNoHugepage) {
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            },
            PageSize::Transparent => advise(Advice::LinuxHugepage)?,
            PageSize::Any | PageSize::Large | PageSize::Huge => {}
        }
        // If too few pages are left after all, this returns an error; the first access would get a signal. Kernels
        // before 5.14 do not know it.
        match advise(Advice::LinuxPopulateWrite) {
            Err(error) if error != rustix::io::Errno::INVAL => Err(error.into()),
            _ => Ok(own),
        }
    }

    /// Gives all of it back to the kernel: each page is 0 again, and there when it is next accessed.
    ///
    /// # Errors
    /// Those of madvise(2).
    pub fn forget(&mut self) -> io::Result<()> {
        // SAFETY: this value owns the mapping, no reference into it exists, and 0 is valid in it.
        unsafe { madvise(self.start.cast(), self.words * size_of::<u64>(), Advice::LinuxDontNeed)? }
        Ok(())
    }

    /// Its words.
    pub fn words(&self) -> &[u64] {
        // SAFETY: the mapping has this many words from `start`, and any bytes are valid words; it lives as long as
        // `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }

    /// Its words, to be changed.
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as for `words`; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.words) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping, and no reference into it lives longer than `self`.
        let _ = unsafe { munmap(self.mapped.0, self.mapped.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_with_a_page_and_is_all_there() {
        for size in [PageSize::Any, PageSize::Small, PageSize::Transparent] {
            let mut pages = Pages::map(3 << 20, size).unwrap();
            assert!(pages.words().as_ptr().addr().is_multiple_of(size.bytes()), "{size:?}");
            assert!(pages.words().len() * 8 >= 3 << 20);
            assert!(pages.words().iter().all(|word| *word == 0));
            pages.words_mut().fill(7);
            assert_eq!(pages.words().last(), Some(&7));
            pages.forget().unwrap();
            assert!(pages.words().iter().all(|word| *word == 0));
        }
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(Pages::map(1 << 46, PageSize::Small).is_err());
    }
}
