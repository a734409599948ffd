//! The heap of the probe: it keeps all memory that the kernel gave it.
//!
//! To take a page from a process, the kernel interrupts every CPU that runs one of its threads (a TLB shootdown). The
//! session makes its ticks in the measuring threads' address space. So an allocator that unmaps free memory, as musl's
//! does, disturbs the measurement. This one is dlmalloc with pages that it never gives back: freeing memory makes no
//! system call.
#![expect(unsafe_code, reason = "an allocator is unsafe by its traits")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// The one of this program.
#[global_allocator]
pub static HEAP: Heap = Heap::new();

/// Memory is taken from the kernel in multiples of this, in bytes.
const PIECE: usize = 256 * 1024;

/// Pages of the kernel, and how many bytes of them were taken.
struct Pages(AtomicU64);

// SAFETY: a new anonymous mapping is memory without another user, of the returned size. It stays readable and writable
// for ever, since nothing here moves or frees it.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let (any, access) = (std::ptr::null_mut(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: the kernel chooses the place, so that no other mapping is touched.
        match unsafe { mmap_anonymous(any, size, access, MapFlags::PRIVATE) } {
            Ok(memory) => {
                self.0.fetch_add(size as u64, Ordering::Relaxed);
                (memory.cast(), size, 0)
            }
            Err(_) => (std::ptr::null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }
}

/// The allocator of the program. Its lock sleeps: a thread of high priority that waits for the lock lets its holder
/// run. Measuring threads do not allocate.
pub struct Heap(Mutex<Dlmalloc<Pages>>);

impl Heap {
    /// A heap without memory.
    pub const fn new() -> Self {
        let mut pages = Dlmalloc::new_with_allocator(Pages(AtomicU64::new(0)));
        assert!(pages.set_granularity(PIECE));
        // Looking for what could be given back is of no use.
        pages.set_max_release_check_rate(0);
        Self(Mutex::new(pages))
    }

    /// Bytes that were taken from the kernel so far.
    pub fn taken(&self) -> u64 {
        self.lock().allocator().0.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Dlmalloc<Pages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: dlmalloc keeps the contract of an allocator, each call has it to itself, and nothing in it unwinds (its pages
// come without a panic). Sizes and alignments are handed on as they were given. Not inlined, because a thousand places
// allocate.
unsafe impl GlobalAlloc for Heap {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout is one of a size above zero.
        unsafe { self.lock().malloc(layout.size(), layout.align()) }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.lock().calloc(layout.size(), layout.align()) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller got `block` here, and does not use it any more. dlmalloc knows its size. Code that
        // computes sizes for it would be a fiftieth of the program.
        unsafe { self.lock().c_free(block) }
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller got `block` here with this layout, and continues with the returned block.
        unsafe { self.lock().realloc(block, layout.size(), layout.align(), size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates and frees a block, and says whether it was all zero.
    fn use_once(heap: &Heap, size: usize, zeroed: bool) -> bool {
        let layout = Layout::from_size_align(size, 64).unwrap();
        // SAFETY: the layout is not empty, and the block is used within its size until it is freed.
        unsafe {
            let block = if zeroed { heap.alloc_zeroed(layout) } else { heap.alloc(layout) };
            assert!(!block.is_null() && block.addr() % 64 == 0);
            let zero = zeroed && std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == 0);
            block.write_bytes(7, size);
            let block = heap.realloc(block, layout, size + 100);
            assert_eq!(block.add(size - 1).read(), 7);
            heap.dealloc(block, Layout::from_size_align(size + 100, 64).unwrap());
            zero
        }
    }

    #[test]
    fn memory_that_was_freed_is_used_again_and_no_more_is_taken() {
        const MOST: usize = 24 << 20;
        let heap = Heap::new();
        use_once(&heap, MOST, false);
        let taken = heap.taken();
        assert!(taken >= MOST as u64);
        for round in 1..=500 {
            use_once(&heap, MOST / round, false);
        }
        assert_eq!(heap.taken(), taken);
    }

    #[test]
    fn zeroed_memory_is_zero_though_it_was_used_before() {
        let heap = Heap::new();
        for _ in 0..3 {
            assert!(use_once(&heap, 1 << 20, true));
        }
    }
}
