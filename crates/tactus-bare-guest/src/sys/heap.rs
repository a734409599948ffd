//! Memory to allocate: for what is said and heard, never while a latency is taken.

use linked_list_allocator::Heap;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

const BYTES: usize = 8 << 20;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: only the allocator below has its address.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));

struct Allocator(UnsafeCell<Heap>);

// SAFETY: there is one CPU, and handlers of interrupts do not allocate (their code has no access to anything that does).
unsafe impl Sync for Allocator {}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator(UnsafeCell::new(Heap::empty()));

/// Makes the memory allocatable. Once, before anything else.
pub fn begin() {
    // SAFETY: called once by `start`, before the first allocation; only the allocator uses MEMORY.
    unsafe { (*ALLOCATOR.0.get()).init(MEMORY.0.get().cast(), BYTES) }
}

// SAFETY: the heap hands out each part of MEMORY once, and is never entered twice at a time (see `Sync`).
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: one CPU, no handler allocates.
        let heap = unsafe { &mut *self.0.get() };
        heap.allocate_first_fit(layout).map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; the caller got `at` from `alloc` with this layout.
        unsafe { (*self.0.get()).deallocate(NonNull::new_unchecked(at), layout) }
    }
}
