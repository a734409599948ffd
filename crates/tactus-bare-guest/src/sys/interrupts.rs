//! Interrupts and exceptions: where the processor jumps when something happens (Intel SDM, volume 3, chapter 7).
//!
//! The interrupt descriptor table has an entry for each of 256 vectors. Those below 32 are exceptions: in this guest none
//! is expected, and one ends it with a line that says which. The rest is free; a handler is put there by [`handle`].

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::size_of;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::apic::{self, CARD, ITSELF, SPURIOUS, TIMER};
use super::cpu;

global_asm!(
    r#"
    /* Each exception: its number, and where the stack was. Some push an error code; what was interrupted is then one
       word further. Nothing returns from here. */
    .section .text.interrupts, "ax", @progbits
    .global exception_entries
    .balign 32
exception_entries:
    .set vector, 0
    .rept 32
    .balign 32
    mov edi, vector
    mov rsi, rsp
    and rsp, -16
    call exception
    .set vector, vector + 1
    .endr

    /* Each interrupt: the time stamp before anything else, then what a C function may change, then the function.
       The processor pushed five words on a stack that it aligned, we push nine: aligned again, as a call wants it. */
    .macro interrupt name, vector
    .global \name
\name:
    push rax
    push rdx
    rdtsc
    push rcx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    shl rdx, 32
    or rdx, rax
    mov rsi, rdx
    mov edi, \vector
    cld
    call interrupt
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rcx
    pop rdx
    pop rax
    iretq
    .endm

    interrupt timer_entry, 0x40
    interrupt self_entry, 0x41
    interrupt card_entry, 0x42

    .global spurious_entry
spurious_entry:
    iretq
    .text
    "#
);

unsafe extern "C" {
    fn exception_entries();
    fn timer_entry();
    fn self_entry();
    fn card_entry();
    fn spurious_entry();
}

/// One entry of the table: an address in three pieces, a code segment, and what kind of gate it is.
#[derive(Clone, Copy)]
#[repr(C)]
struct Gate {
    low: u16,
    segment: u16,
    kind: u16,
    middle: u16,
    high: u32,
    zero: u32,
}

impl Gate {
    const NONE: Self = Self { low: 0, segment: 0, kind: 0, middle: 0, high: 0, zero: 0 };

    /// An interrupt gate (interrupts are off in it), present.
    const fn to(address: usize) -> Self {
        Self {
            low: address as u16,
            segment: 0x08,
            kind: 0x8e00,
            middle: (address >> 16) as u16,
            high: (address >> 32) as u32,
            zero: 0,
        }
    }
}

#[repr(align(16))]
struct Gates(UnsafeCell<[Gate; 256]>);

// SAFETY: written by `begin` before interrupts are on, and read by the processor alone afterwards.
unsafe impl Sync for Gates {}

static GATES: Gates = Gates(UnsafeCell::new([Gate::NONE; 256]));

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    at: *const Gate,
}

/// Fills the table, shows it to the processor, and switches the old interrupt controllers off. Once, at the beginning.
pub fn begin() {
    // SAFETY: called once by `start`, interrupts are off.
    let gates = unsafe { &mut *GATES.0.get() };
    for (vector, gate) in gates.iter_mut().take(32).enumerate() {
        *gate = Gate::to(exception_entries as *const () as usize + vector * ENTRY_BYTES);
    }
    for (vector, entry) in [
        (TIMER, timer_entry as *const ()),
        (ITSELF, self_entry as *const ()),
        (CARD, card_entry as *const ()),
        (SPURIOUS, spurious_entry as *const ()),
    ] {
        gates[usize::from(vector)] = Gate::to(entry as usize);
    }
    let pointer = Pointer { limit: (256 * size_of::<Gate>() - 1) as u16, at: gates.as_ptr() };
    // SAFETY: the table is static, and its entries lead to the code above.
    unsafe { asm!("lidt [{}]", in(reg) &raw const pointer, options(readonly, nostack)) };
    // The two 8259A: mask every line. Otherwise a timer that the guest never started would interrupt the measurement.
    cpu::outb(0x21, 0xff);
    cpu::outb(0xa1, 0xff);
    handle(ITSELF, apic::count_of_itself);
    apic::begin();
}

/// The alignment of exception entries, in bytes.
const ENTRY_BYTES: usize = 32;

/// The handler of each vector from [`TIMER`] on, which gets the time stamp of its beginning; 0: none.
static HANDLERS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// A handler of an interrupt. It gets the time stamp counter as it was before anything else. It must not allocate.
pub type Handler = fn(u64);

/// Has `handler` called for an interrupt from now on.
pub fn handle(vector: u8, handler: Handler) {
    HANDLERS[usize::from(vector - TIMER)].store(handler as usize, Ordering::Release);
}

#[unsafe(no_mangle)]
extern "C" fn interrupt(vector: u32, at: u64) {
    let handler = HANDLERS[(vector - u32::from(TIMER)) as usize].load(Ordering::Acquire);
    if handler != 0 {
        // SAFETY: only `handle` stores there, and it stores a `Handler`.
        let handler: Handler = unsafe { core::mem::transmute(handler) };
        handler(at);
    }
    apic::done();
}

#[unsafe(no_mangle)]
extern "C" fn exception(vector: u32, stack: *const u64) -> ! {
    // SAFETY: the processor pushed at least three words there.
    let words = unsafe { core::slice::from_raw_parts(stack, 3) };
    crate::serial::say(format_args!(
        "tactus-bare-guest: exception {vector}, on the stack {:#x} {:#x} {:#x}\n",
        words[0], words[1], words[2]
    ));
    cpu::power_off()
}
