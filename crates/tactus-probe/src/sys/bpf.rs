//! BPF programs, and what has a performance event run them.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use super::{Request, descriptor};

/// Lets a clock begin.
///
/// # Errors
/// Those of the kernel.
pub fn enable(clock: &OwnedFd) -> io::Result<()> {
    /// PERF_EVENT_IOC_ENABLE.
    const ENABLE: Request = 0x2400;
    // SAFETY: a request without memory.
    let result = unsafe { libc::ioctl(clock.as_raw_fd(), ENABLE, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has a performance event run a program: each interrupt of a clock; a tracepoint on every CPU, whatever CPU the event
/// was opened for.
///
/// # Errors
/// Those of the kernel.
pub fn run_at(event: &OwnedFd, program: &OwnedFd) -> io::Result<()> {
    /// PERF_EVENT_IOC_SET_BPF.
    const SET_BPF: Request = 0x4004_2408;
    // SAFETY: the request takes a descriptor and no memory.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_BPF, program.as_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// bpf(2) with a command that makes a descriptor.
///
/// # Safety
/// The memory behind the pointers in the attributes must be live and as long as they say. Memory that the kernel may
/// write must not be borrowed elsewhere.
unsafe fn bpf<T>(command: u32, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the attributes are live and of the size that is named; the rest is the caller's.
    descriptor(unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    })
}

fn address<T>(of: &[T]) -> u64 {
    of.as_ptr().expose_provenance() as u64
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// bpf(2) with a command that makes no descriptor, and may write results into its attributes.
///
/// # Safety
/// As for [`bpf`].
unsafe fn bpf_only<T>(command: u32, mut attributes: T) -> io::Result<()> {
    // SAFETY: the attributes are live, of the given size, and only this function has them; the rest is up to the
    // caller.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(&mut attributes), size_of::<T>()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first attributes of BPF_MAP_CREATE (0).
#[repr(C)]
struct Map {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
}

/// BPF_MAP_TYPE_ARRAY.
const ARRAY: u32 = 2;

/// A map whose one value is this text, for good: what helpers take as a constant.
///
/// # Errors
/// Those of bpf(2).
pub fn constant(text: &std::ffi::CStr) -> io::Result<OwnedFd> {
    /// The attributes of BPF_MAP_UPDATE_ELEM (2); the first is all that BPF_MAP_FREEZE (22) has.
    #[repr(C)]
    struct Element {
        map: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    /// BPF_F_RDONLY_PROG.
    const PROGRAMS_ONLY_READ: u32 = 1 << 7;
    let text = text.to_bytes_with_nul();
    let attributes =
        Map { kind: ARRAY, key: 4, value: length(text.len())?, entries: 1, flags: PROGRAMS_ONLY_READ };
    // SAFETY: the attributes point at nothing.
    let map = unsafe { bpf(0, &attributes)? };
    let number = map.as_raw_fd().cast_unsigned();
    let element = Element { map: number, key: address(&[0_u32]), value: address(text), flags: 0 };
    // SAFETY: key and value are live, and as long as the map was made for.
    unsafe { bpf_only(2, element)? };
    // SAFETY: the attributes point at nothing.
    unsafe { bpf_only(22, number)? };
    Ok(map)
}

/// Runs a program of a raw tracepoint once, here, with this one argument of it.
///
/// # Errors
/// Those of bpf(2); EINVAL before Linux 5.10.
pub fn run(program: &OwnedFd, argument: u64) -> io::Result<()> {
    /// The first attributes of BPF_PROG_TEST_RUN (10).
    #[repr(C)]
    struct Run {
        program: i32,
        result: u32,
        data: [u32; 2],
        data_at: [u64; 2],
        times: [u32; 2],
        arguments: [u32; 2],
        arguments_at: [u64; 2],
        flags: [u32; 2],
    }
    let arguments = [argument];
    let attributes = Run {
        program: program.as_raw_fd(),
        result: 0,
        data: [0; 2],
        data_at: [0; 2],
        times: [0; 2],
        arguments: [length(size_of_val(&arguments))?, 0],
        arguments_at: [address(&arguments), 0],
        flags: [0; 2],
    };
    // SAFETY: the arguments are live and as long as is said; nothing but results in the attributes is written.
    unsafe { bpf_only(10, attributes) }
}

/// Words that programs share with this process, as long as it lives.
pub struct Mapped {
    start: *mut core::ffi::c_void,
    words: usize,
}

impl Mapped {
    /// A map with one value of this many words, and the value's memory.
    ///
    /// # Errors
    /// EPERM without CAP_BPF, E2BIG or ENOMEM when a map cannot be that large; those of mmap(2).
    pub fn new(words: usize) -> io::Result<(OwnedFd, Self)> {
        use rustix::mm::{MapFlags, ProtFlags};
        const MMAPABLE: u32 = 1 << 10;
        let bytes = words * size_of::<AtomicU64>();
        let attributes = Map { kind: ARRAY, key: 4, value: length(bytes)?, entries: 1, flags: MMAPABLE };
        // SAFETY: the attributes point at nothing.
        let map = unsafe { bpf(0, &attributes)? };
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping touches no other memory.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, rights, flags, &map, 0)? };
        Ok((map, Self { start, words }))
    }

    /// Its words.
    pub const fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is as long as the map's value (up to the end of a page) and aligned to a page. It is zero
        // at first, which is a valid word, and the kernel writes words. It lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.words) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping, and no reference into it lives longer than `self`.
        let _ = unsafe { rustix::mm::munmap(self.start, self.words * size_of::<AtomicU64>()) };
    }
}

/// A map with one value of this many words, and its memory, which programs share with this process. The memory lives as
/// long as the process.
///
/// # Errors
/// Those of [`Mapped::new`].
pub fn memory(words: usize) -> io::Result<(OwnedFd, &'static [AtomicU64])> {
    let (map, mapped) = Mapped::new(words)?;
    let mapped = std::mem::ManuallyDrop::new(mapped);
    // SAFETY: as for `words`; it is never unmapped.
    Ok((map, unsafe { std::slice::from_raw_parts(mapped.start.cast(), words) }))
}

/// Gives the kernel the types of a program (Documentation/bpf/btf.rst).
///
/// # Errors
/// Those of bpf(2).
pub fn types(types: &[u32]) -> io::Result<OwnedFd> {
    /// The first attributes of BPF_BTF_LOAD (18).
    #[repr(C)]
    struct Types {
        types: u64,
        log: u64,
        size: u32,
        log_size: u32,
    }
    let attributes = Types { types: address(types), log: 0, size: length(size_of_val(types))?, log_size: 0 };
    // SAFETY: `types` is live and as long as is said.
    unsafe { bpf(18, &attributes) }
}

/// The event that runs a program (`enum bpf_prog_type`).
#[derive(Clone, Copy)]
pub enum Kind {
    /// A tracepoint.
    Tracepoint = 5,
    /// A performance event.
    PerfEvent = 7,
    /// A tracepoint, as the kernel's own code calls it.
    RawTracepoint = 17,
}

/// Attaches a program to a tracepoint on every CPU, until the returned descriptor is closed. Needs no tracefs.
///
/// # Errors
/// ENOENT without such a tracepoint; EPERM without CAP_BPF and CAP_PERFMON.
pub fn run_at_tracepoint(name: &std::ffi::CStr, program: &OwnedFd) -> io::Result<OwnedFd> {
    /// The attributes of BPF_RAW_TRACEPOINT_OPEN (17).
    #[repr(C)]
    struct Attach {
        name: u64,
        program: i32,
        unused: u32,
    }
    let name = address(name.to_bytes_with_nul());
    let attributes = Attach { name, program: program.as_raw_fd(), unused: 0 };
    // SAFETY: the name is live and ends with a zero.
    unsafe { bpf(17, &attributes) }
}

/// Loads a program. `functions`: its types, and the beginning of each function with the number of its type. The
/// verifier's messages are written to `log`, as far as they fit.
///
/// # Errors
/// Those of bpf(2).
pub fn program(
    kind: Kind,
    instructions: &[u64],
    functions: Option<(&OwnedFd, &[[u32; 2]])>,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    /// The first attributes of BPF_PROG_LOAD (5).
    #[repr(C)]
    struct Program {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        version: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach_type: u32,
        types: i32,
        function_size: u32,
        functions: u64,
        function_count: u32,
        line_size: u32,
    }
    /// As tactus is; in the kernel the second holds.
    const LICENSE: &[u8] = b"Dual MIT/GPL\0";
    let (types, functions) =
        functions.map_or((0, &[] as _), |(types, functions)| (types.as_raw_fd(), functions));
    let attributes = Program {
        kind: kind as u32,
        count: length(instructions.len())?,
        instructions: address(instructions),
        license: address(LICENSE),
        log_level: u32::from(!log.is_empty()),
        log_size: length(log.len())?,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr().expose_provenance() as u64 },
        version: 0,
        flags: 0,
        name: *b"tactus\0\0\0\0\0\0\0\0\0\0",
        interface: 0,
        attach_type: 0,
        types,
        function_size: 8,
        functions: address(functions),
        function_count: length(functions.len())?,
        line_size: 0,
    };
    // SAFETY: all that is pointed at is live and as long as is said; `log` alone is written, as far as it goes.
    unsafe { bpf(5, &attributes) }
}
