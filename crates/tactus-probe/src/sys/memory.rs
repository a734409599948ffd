//! Memory that is shared with children.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::sync::atomic::AtomicU64;

/// A counter on a separate cache line, in memory that is shared with forked children.
#[repr(C, align(128))]
pub struct Shared(pub AtomicU64);

/// Types that are valid when all bytes are zero, and that several threads may change at once.
pub trait Zeroed {}
impl Zeroed for Shared {}
impl Zeroed for AtomicU64 {}

/// `count` counters at 0 that children forked later share with this process. The memory lives as
/// long as the process.
///
/// # Errors
/// Those of mmap(2).
pub fn shared<T: Zeroed>(count: usize) -> io::Result<&'static [T]> {
    use rustix::mm::{MapFlags, ProtFlags};
    let length = count.max(1) * size_of::<T>();
    // SAFETY: a new anonymous mapping touches no other memory. Its pages are zero, which is a valid
    // `T`; it is aligned to a page and never unmapped.
    unsafe {
        let memory = rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
        )?;
        Ok(std::slice::from_raw_parts(memory.cast::<T>(), count))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::process::fork;
    use super::*;

    #[test]
    fn shared_counters_are_seen_across_a_fork() {
        let counters = shared::<Shared>(2).unwrap();
        let pid = std::thread::scope(|_| fork(|| counters[1].0.store(7, Ordering::Relaxed))).unwrap();
        let pid = rustix::process::Pid::from_raw(pid);
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
        assert_eq!(counters[1].0.load(Ordering::Relaxed), 7);
        assert_eq!(counters[0].0.load(Ordering::Relaxed), 0);
    }
}
