//! Instructions of BPF programs (Documentation/bpf/standardization/instruction-set.rst).

/// `bpf_ktime_get_ns`: CLOCK_MONOTONIC.
pub const TIME: i32 = 5;
/// `bpf_get_current_pid_tgid`: the thread's id in its lower half, that of the first namespace.
pub const THREAD: i32 = 14;

/// An instruction.
pub fn code(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let [c, r] = [code, to | from << 4];
    let [a, b] = offset.to_ne_bytes();
    let [d, e, f, g] = value.to_ne_bytes();
    u64::from_ne_bytes([c, r, a, b, d, e, f, g])
}

/// A call of a helper of the kernel.
pub fn call(helper: i32) -> u64 {
    code(0x85, 0, 0, 0, helper)
}

/// `to = from`, between registers.
pub fn copy(to: u8, from: u8) -> u64 {
    code(0xbf, to, from, 0, 0)
}

/// `to = value`.
pub fn set(to: u8, value: i32) -> u64 {
    code(0xb7, to, 0, 0, value)
}

/// `to = *(from + offset)`.
pub fn load(to: u8, from: u8, offset: i16) -> u64 {
    code(0x79, to, from, offset, 0)
}

/// `*(to + offset) = from`.
pub fn store(to: u8, from: u8, offset: i16) -> u64 {
    code(0x7b, to, from, offset, 0)
}

/// `to += from`.
pub fn add(to: u8, from: u8) -> u64 {
    code(0x0f, to, from, 0, 0)
}

/// The end of a function.
pub const EXIT: u64 = 0x95;
/// The register with the frame's address, which must not be written.
pub const FRAME: u8 = 10;

/// `to =` the address of the one value of a map, by its descriptor. A second instruction, of zeros, belongs to it.
pub fn map_value(to: u8, map: i32) -> u64 {
    code(0x18, to, 2, 0, map)
}

/// The offset of a word of a record.
pub fn word(number: usize) -> i16 {
    i16::try_from(number * 8).unwrap_or_default()
}
