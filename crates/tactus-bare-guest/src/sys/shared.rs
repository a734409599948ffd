//! Memory of a device that somebody else writes to, too.

/// Words are so far from each other, in bytes, that no two share what a processor fetches at once.
const APART: usize = 128;

/// A page of it.
#[derive(Clone, Copy)]
pub struct Shared(usize);

impl Shared {
    /// A page that a device has there.
    ///
    /// # Safety
    /// It has one there, and nothing else is.
    pub const unsafe fn at(address: usize) -> Self {
        Self(address)
    }

    /// Reads a word.
    #[inline]
    pub fn read(self, word: usize) -> u32 {
        // SAFETY: within the page, aligned; a device's memory holds no value that is not one.
        unsafe { core::ptr::read_volatile((self.0 + word * APART) as *const u32) }
    }

    /// Writes a word.
    #[inline]
    pub fn write(self, word: usize, value: u32) {
        // SAFETY: as in `read`.
        unsafe { core::ptr::write_volatile((self.0 + word * APART) as *mut u32, value) }
    }
}
