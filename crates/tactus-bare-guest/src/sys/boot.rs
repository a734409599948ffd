//! From the first instruction to Rust.
//!
//! A hypervisor that loads a kernel by PVH (QEMU's `-kernel` with an ELF image, Xen, Cloud Hypervisor) looks for a note
//! named `Xen` of type 18: the physical address where to begin, in 32-bit protected mode, without paging, with interrupts
//! off and `ebx` pointing at a *start info* (the command line, what memory there is), which this guest does not need: it
//! keeps to the memory that its image asked for. No firmware, no boot loader, no real mode.
//! <https://xenbits.xen.org/docs/unstable/misc/pvh.html>
//!
//! From there to 64 bits it takes four things: page tables, PAE, the long mode bit of EFER, and paging switched on.
//! (Intel SDM, volume 3, 10.8.5 "Initializing IA-32e Mode".)

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

    .section .text.boot, "ax", @progbits
    .code32
    .global pvh_entry
pvh_entry:
    cld
    mov esp, offset boot_stack_top

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
extern "C" fn start() -> ! {
    super::heap::begin();
    super::interrupts::begin();
    crate::session::run()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    // The place says enough, and all words of all panics would take room in the image.
    if let Some(place) = info.location() {
        crate::serial::say(format_args!("tactus-bare-guest: panic at {}:{}\n", place.file(), place.line()));
    }
    super::cpu::power_off()
}
