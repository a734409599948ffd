//! Performance events of a CPU, whatever runs there (perf_event_open(2)).
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::os::fd::OwnedFd;

use super::descriptor;

/// `struct perf_event_attr`, first version (linux/perf_event.h).
#[repr(C)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    unused: [u64; 2],
    flags: u64,
    rest: [u64; 2],
}

const SIZE: u32 = 64;
const _: () = assert!(size_of::<Attr>() == SIZE as usize);

impl Default for Attr {
    fn default() -> Self {
        Self { kind: 0, size: SIZE, config: 0, sample_period: 0, unused: [0; 2], flags: 0, rest: [0; 2] }
    }
}

/// Counts the misses of the last-level cache on a CPU from now on, by whomever.
///
/// # Errors
/// ENOENT, ENODEV or EOPNOTSUPP without performance counters, EACCES or EPERM without the right to them.
pub fn count_cache_misses(cpu: u32) -> io::Result<OwnedFd> {
    /// PERF_COUNT_HW_CACHE_MISSES of PERF_TYPE_HARDWARE (0).
    const CACHE_MISSES: u64 = 3;
    /// It counts all the time, or says that it could not: never a part of the time.
    const PINNED: u64 = 1 << 2;
    open(cpu, &Attr { config: CACHE_MISSES, flags: PINNED, ..Attr::default() })
}

/// An event that interrupts a CPU every `period` ns once it is enabled, whatever runs there. It is the kernel's clock
/// of performance events, a timer in hard interrupt context.
///
/// # Errors
/// EACCES or EPERM without CAP_PERFMON.
pub fn cpu_clock(cpu: u32, period: u64) -> io::Result<OwnedFd> {
    /// PERF_TYPE_SOFTWARE and PERF_COUNT_SW_CPU_CLOCK.
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;
    const DISABLED: u64 = 1;
    open(
        cpu,
        &Attr {
            kind: SOFTWARE,
            config: CPU_CLOCK,
            sample_period: period,
            flags: DISABLED,
            ..Attr::default()
        },
    )
}

/// A tracepoint, by its number in tracefs. It is the place of a program; the event itself is of one CPU.
///
/// # Errors
/// EACCES or EPERM without CAP_PERFMON, EINVAL without such a tracepoint.
pub fn tracepoint(cpu: u32, id: u64) -> io::Result<OwnedFd> {
    /// PERF_TYPE_TRACEPOINT.
    const TRACEPOINT: u32 = 2;
    open(cpu, &Attr { kind: TRACEPOINT, config: id, sample_period: 1, ..Attr::default() })
}

/// An event of a CPU, closed where another program takes the process's place.
fn open(cpu: u32, attr: &Attr) -> io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: u64 = 8;
    // SAFETY: the kernel reads `attr`, a live struct of the size that it names.
    descriptor(unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const *attr, -1, cpu, -1, CLOSE_ON_EXEC)
    })
}
