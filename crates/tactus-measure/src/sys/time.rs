//! Clocks, and the sleep until a due time.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec. musl and glibc read these clocks through the vDSO.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned()
}

/// CLOCK_MONOTONIC, in ns.
#[inline]
pub fn now() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread, in ns: in a process that has one, that of the process.
pub fn own_time() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of another process, in ns; 0 when it has gone.
pub fn time_of(process: u32) -> u64 {
    /// `CPUCLOCK_SCHED`: the scheduler's count (linux/posix-timers.h).
    const SCHED: libc::clockid_t = 2;
    read_clock((!process.cast_signed() << 3) | SCHED)
}

/// CLOCK_BOOTTIME, in ns: CLOCK_MONOTONIC and the time in which the system was suspended.
pub fn boottime() -> u64 {
    read_clock(libc::CLOCK_BOOTTIME)
}

/// CLOCK_REALTIME, in ns since the epoch.
pub fn realtime() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// Sleeps until CLOCK_MONOTONIC says `due` (in ns). Returns `false` when a signal ended it early.
#[inline]
pub fn sleep_until(due: u64) -> bool {
    let time = rustix::time::Timespec {
        tv_sec: (due / SECOND).cast_signed(),
        tv_nsec: (due % SECOND).cast_signed(),
    };
    rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &time).is_ok()
}

/// The processor's own clock: TSC, or the virtual counter of arm64. The instruction waits for those
/// before it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn ticks() -> u64 {
    let mut cpu = 0;
    // SAFETY: every x86_64 processor on which Linux reports rdtscp has it; the caller has checked the flag
    // (`clock::Source::find`).
    unsafe { core::arch::x86_64::__rdtscp(&raw mut cpu) }
}

/// The processor's own clock: TSC, or the virtual counter of arm64. The instruction waits for those
/// before it.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn ticks() -> u64 {
    let value: u64;
    // SAFETY: reading the virtual counter is allowed to user space on Linux and has no effect.
    unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) value, options(nostack, nomem)) };
    value
}

/// The frequency of the processor's counter, in Hz, if the processor reports it.
#[cfg(target_arch = "aarch64")]
pub fn ticks_per_second() -> Option<u64> {
    let value: u64;
    // SAFETY: reading the counter's frequency is allowed to user space on Linux and has no effect.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) value, options(nostack, nomem)) };
    (value > 0).then_some(value)
}

/// The frequency of the processor's counter, in Hz, if the processor reports it.
#[cfg(target_arch = "x86_64")]
pub const fn ticks_per_second() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_after_its_due_time() {
        let due = now() + 1_000_000;
        assert!(sleep_until(due));
        assert!(now() >= due);
    }
}
