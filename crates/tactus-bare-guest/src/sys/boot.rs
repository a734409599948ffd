//! From the first instruction to Rust.
//!
//! A hypervisor that loads a kernel by PVH (QEMU's `-kernel` with an ELF image, Xen, Cloud Hypervisor) looks for a
//! note named `Xen` of type 18. The note contains the physical address of the first instruction. The guest begins
//! there in 32-bit protected mode, without paging, and with interrupts off. `ebx` points at a *start info* (the
//! command line, the memory map). The guest does not need the memory map: it uses only the memory that its image
//! asked for. There is no firmware, no boot loader and no real mode.
//!
//! <https://xenbits.xen.org/docs/unstable/misc/pvh.html>
//!
//! On bare metal a boot loader does the same by Multiboot2 (GRUB's `multiboot2`). It looks for a header within the
//! first 32 KiB of the file, and begins at the image's entry, in the same state. `eax` tells which of the two loaded
//! the guest. Both hand over a command line ([`crate::boot_info`]).
//!
//! <https://www.gnu.org/software/grub/manual/multiboot2/multiboot.html>
//!
//! From there to 64 bits it takes four things: page tables, PAE, the long mode bit of EFER, and paging switched on
//! (Intel SDM, volume 3, 10.8.5 "Initializing IA-32e Mode").

use crate::boot_info;

/// Physical memory that maps onto itself, in GiB: all that 32-bit devices can be at.
const MAPPED_GIB: usize = 4;

core::arch::global_asm!(
    r#"
    .section .note.Xen, "a", @note
    .align 4
    .long 4                     /* length of the name */
    .long 4                     /* length of what follows it */
    .long 18                    /* XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .long pvh_entry

    .section .multiboot2, "a", @progbits
    .align 8
    .long 0xe85250d6            /* MULTIBOOT2_HEADER_MAGIC */
    .long 0                     /* i386, 32-bit protected mode */
    .long 24                    /* length of the header */
    .long 0x100000000 - (0xe85250d6 + 24) /* all four add up to nothing */
    .word 0, 0                  /* the end of what it asks for */
    .long 8

    .section .text.boot, "ax", @progbits
    .code32
    .global pvh_entry
pvh_entry:
    cld
    mov esp, offset boot_stack_top
    mov esi, eax                /* who loaded it, and where what it says is: kept for Rust */
    mov ebp, ebx

    /* The lowest table: {gib} times 512 pages of 2 MiB. Present, writable, and a page of its own size. The last
       GiB has the devices' registers: neither cached nor written behind. */
    mov edi, offset page_directories
    mov eax, 0x83
    xor ecx, ecx
2:  cmp ecx, {device_pages}
    jb 3f
    or eax, 0x18
3:  mov [edi + ecx * 8], eax
    add eax, 0x200000
    inc ecx
    cmp ecx, {pages}
    jb 2b

    /* Above it: one entry for each GiB. */
    mov eax, offset page_directories + 3
    xor ecx, ecx
4:  mov [page_directory_pointers + ecx * 8], eax
    add eax, 0x1000
    inc ecx
    cmp ecx, {gib}
    jb 4b

    /* The top: its first entry is for the lowest 512 GiB. */
    mov eax, offset page_directory_pointers + 3
    mov [page_map], eax

    mov eax, cr4
    or eax, 1 << 5              /* PAE */
    mov cr4, eax
    mov eax, offset page_map
    mov cr3, eax
    mov ecx, 0xc0000080         /* EFER */
    rdmsr
    or eax, 1 << 8              /* LME: long mode, once paging is on */
    wrmsr
    mov eax, cr0
    or eax, 1 << 31             /* PG */
    mov cr0, eax

    /* Paging is on, and this is still 32-bit code: a jump to a 64-bit code segment ends that. */
    lgdt [descriptors_pointer]
    ljmp 0x08, offset long_entry

    .code64
long_entry:
    xor eax, eax
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov rsp, offset boot_stack_top
    mov edi, esi
    mov esi, ebp
    call start
5:  cli
    hlt
    jmp 5b

    .section .rodata.descriptors, "a", @progbits
    .align 8
descriptors:
    .quad 0                     /* none */
    .quad 0x00209a0000000000    /* 64-bit code */
descriptors_pointer:
    .word 15
    .long descriptors

    .section .bss.boot, "aw", @nobits
    .align 4096
page_map: .skip 4096
page_directory_pointers: .skip 4096
page_directories: .skip 4096 * {gib}
    .skip 65536
boot_stack_top:
    .text
    "#,
    gib = const MAPPED_GIB,
    pages = const MAPPED_GIB * 512,
    device_pages = const (MAPPED_GIB - 1) * 512,
);

#[unsafe(no_mangle)]
extern "C" fn start(loader: u32, info: u32) -> ! {
    super::heap::begin();
    super::interrupts::begin();
    let mut words = [0; LONGEST_COMMAND_LINE];
    let length = command_line(loader, info, &mut words);
    crate::session::run(core::str::from_utf8(&words[..length]).unwrap_or_default())
}

/// The longest command line that is read, in bytes.
const LONGEST_COMMAND_LINE: usize = 256;

/// Copies the command line that a loader handed over, and returns how long it is.
fn command_line(loader: u32, info: u32, into: &mut [u8]) -> usize {
    let at = boot_info::command_line_at(loader, info, byte_at);
    let Some(at) = at else { return 0 };
    for (length, place) in into.iter_mut().enumerate() {
        *place = byte_at(at.wrapping_add(length as u32));
        if *place == 0 {
            return length;
        }
    }
    into.len()
}

/// A byte of physical memory; of the last GiB, where devices are, nothing.
fn byte_at(at: u32) -> u8 {
    if at == 0 || at >= ((MAPPED_GIB as u32) - 1) << 30 {
        return 0;
    }
    // SAFETY: it is mapped, no device is there, and nothing else runs; every byte is a `u8`.
    unsafe { core::ptr::read_volatile(at as usize as *const u8) }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    // The place says enough, and all words of all panics would take room in the image.
    if let Some(place) = info.location() {
        crate::serial::say(format_args!("tactus-bare-guest: panic at {}:{}\n", place.file(), place.line()));
    }
    super::cpu::power_off()
}
