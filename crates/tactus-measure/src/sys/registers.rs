//! Registers of a device: words of 32 bits, of little-endian order.
#![expect(unsafe_code, reason = "mapped memory of a device is reached by its address")]

use std::ffi::c_void;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Registers are mapped in whole pages of this many bytes.
const PAGE: u32 = 4096;

/// Registers. An access reads or writes exactly one of them, and is never left out.
#[derive(Debug)]
pub struct Registers(Way);

#[derive(Debug)]
enum Way {
    /// In the memory of this process, from register `first` on.
    Mapped { memory: *mut c_void, bytes: usize, first: u32 },
    /// By pread(2) and pwrite(2).
    ByCalls { file: OwnedFd, offset: u64 },
}

// SAFETY: it is memory of a device that is there as long as the value is, and is reached by single words alone.
unsafe impl Send for Registers {}
// SAFETY: as above; which of two words that are written at once comes first is the device's matter.
unsafe impl Sync for Registers {}

impl Registers {
    /// The registers from `least` to `most`; number 0 lies at `offset` of a device's file.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(super) fn map(file: BorrowedFd, offset: u64, least: u32, most: u32) -> io::Result<Self> {
        let first = least / PAGE * PAGE;
        let pages = u64::from((most - first) / PAGE) + 1;
        let bytes = usize::try_from(pages * u64::from(PAGE)).map_err(io::Error::other)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping touches no other memory.
        let memory = unsafe {
            mmap(std::ptr::null_mut(), bytes, rights, MapFlags::SHARED, file, offset + u64::from(first))?
        };
        Ok(Self(Way::Mapped { memory, bytes, first }))
    }

    /// Each access is a system call.
    pub(crate) const fn by_calls(file: OwnedFd, offset: u64) -> Self {
        Self(Way::ByCalls { file, offset })
    }

    /// Whether an access is one of the processor, and no system call.
    #[must_use]
    pub const fn are_mapped(&self) -> bool {
        matches!(self.0, Way::Mapped { .. })
    }

    /// The value of the register at this place. An unreadable one has 32 ones, as a device that has gone returns.
    ///
    /// # Panics
    /// When it lies outside of the mapped registers.
    #[inline]
    #[must_use]
    pub fn read(&self, at: u32) -> u32 {
        match &self.0 {
            // SAFETY: `word` gives a place within the mapping, which lives as long as `self`, and is aligned.
            Way::Mapped { .. } => u32::from_le(unsafe { self.word(at).read_volatile() }),
            Way::ByCalls { file, offset } => {
                let mut word = [0xff; 4];
                let _ = rustix::io::pread(file, &mut word, offset + u64::from(at));
                u32::from_le_bytes(word)
            }
        }
    }

    /// Writes to the register at this place.
    ///
    /// # Panics
    /// As [`Self::read`].
    #[inline]
    pub fn write(&self, at: u32, value: u32) {
        match &self.0 {
            // SAFETY: as in `read`.
            Way::Mapped { .. } => unsafe { self.word(at).write_volatile(value.to_le()) },
            Way::ByCalls { file, offset } => {
                let _ = rustix::io::pwrite(file, &value.to_le_bytes(), offset + u64::from(at));
            }
        }
    }

    /// The address of a mapped register.
    #[inline]
    fn word(&self, at: u32) -> *mut u32 {
        let Way::Mapped { memory, bytes, first } = &self.0 else { return std::ptr::null_mut() };
        let from = at.checked_sub(*first).and_then(|from| usize::try_from(from).ok());
        let from = from.filter(|from| from % 4 == 0 && from + 4 <= *bytes);
        let from = from.expect("a register that was asked for");
        // SAFETY: it lies within the mapping.
        unsafe { memory.cast::<u8>().add(from).cast() }
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        if let Way::Mapped { memory, bytes, .. } = self.0 {
            // SAFETY: this value owns the mapping, and no borrow of it is left.
            let _ = unsafe { munmap(memory, bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// The same file both ways: a device's memory could be any.
    fn both() -> (Registers, Registers) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * 4096).unwrap();
        let mapped = Registers::map(file.as_fd(), 4096, 0x60, 0x1004).unwrap();
        (mapped, Registers::by_calls(file.into(), 4096))
    }

    #[test]
    fn a_register_is_one_little_endian_word_whichever_way_it_is_reached() {
        let (mapped, by_calls) = both();
        assert!(mapped.are_mapped() && !by_calls.are_mapped());
        mapped.write(0x60, 0x1234_5678);
        assert_eq!(by_calls.read(0x60), 0x1234_5678);
        by_calls.write(0x1004, 7);
        assert_eq!((mapped.read(0x1004), mapped.read(0x1000), mapped.read(0x64)), (7, 0, 0));
        assert_eq!(by_calls.read(0x4000), u32::MAX, "what is not there says ones");
    }

    #[test]
    #[should_panic(expected = "a register that was asked for")]
    fn no_access_goes_beyond_what_is_mapped() {
        let _ = both().0.read(0x2000);
    }
}
