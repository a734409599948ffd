//! The one file of the probe that may be unsafe: raw system calls, clocks, `fork`.
//!
//! Everything else goes through the safe functions below, or through rustix.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::cpus::MAX_CPU;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// `struct sched_attr`, first version. musl has no wrapper for it, and its `sched_setscheduler`
/// answers ENOSYS.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAttr {
    size: u32,
    /// `SCHED_*`.
    pub policy: u32,
    flags: u64,
    nice: i32,
    /// Priority of FIFO and RR.
    pub priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl SchedAttr {
    /// SCHED_OTHER.
    pub fn other() -> Self {
        Self { policy: policy::OTHER, ..Self::default() }
    }

    /// SCHED_FIFO.
    pub fn fifo(priority: u32) -> Self {
        Self { policy: policy::FIFO, priority, ..Self::default() }
    }

    /// SCHED_RR.
    pub fn rr(priority: u32) -> Self {
        Self { policy: policy::RR, priority, ..Self::default() }
    }

    /// SCHED_DEADLINE with deadline and period the same; times in ns.
    pub fn deadline(runtime: u64, period: u64) -> Self {
        Self { policy: policy::DEADLINE, runtime, deadline: period, period, ..Self::default() }
    }
}

/// Numbers of the scheduling policies (linux/sched.h).
mod policy {
    pub const OTHER: u32 = 0;
    pub const FIFO: u32 = 1;
    pub const RR: u32 = 2;
    pub const DEADLINE: u32 = 6;
}

/// Size of [`SchedAttr`] as the kernel wants it.
const ATTR_SIZE: u32 = 48;
const _: () = assert!(size_of::<SchedAttr>() == 48);

/// Sets how the calling thread is scheduled.
///
/// # Errors
/// EPERM without the right to it, EBUSY when DEADLINE has no bandwidth left.
pub fn set_scheduler(mut attr: SchedAttr) -> io::Result<()> {
    attr.size = ATTR_SIZE;
    // SAFETY: `attr` is a live struct of the size that it names; the call reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How the calling thread is scheduled.
///
/// # Errors
/// Those of sched_getattr(2).
pub fn scheduler() -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most ATTR_SIZE bytes, which is the size of `attr`.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, ATTR_SIZE, 0) };
    if result == 0 { Ok(attr) } else { Err(io::Error::last_os_error()) }
}

const MASK_WORDS: usize = (MAX_CPU as usize + 1) / 64;

/// The CPUs on which the calling thread may run.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn affinity() -> io::Result<CpuSet> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes, which `mask` has.
    let written =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..=MAX_CPU).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// Says on which CPUs the calling thread may run.
///
/// # Errors
/// EINVAL when none of them is online and allowed by the cpuset.
pub fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    for cpu in cpus.iter().filter(|cpu| *cpu <= MAX_CPU) {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads the given number of bytes, which `mask` has.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

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
    // SAFETY: every x86_64 processor that Linux offers rdtscp on has it; the caller has looked for
    // the flag (`clock::Source::find`).
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

/// How fast the processor's own clock runs, in Hz, where it says so itself.
#[cfg(target_arch = "aarch64")]
pub fn ticks_per_second() -> Option<u64> {
    let value: u64;
    // SAFETY: reading the counter's frequency is allowed to user space on Linux and has no effect.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) value, options(nostack, nomem)) };
    (value > 0).then_some(value)
}

/// How fast the processor's own clock runs, in Hz, where it says so itself.
#[cfg(target_arch = "x86_64")]
pub const fn ticks_per_second() -> Option<u64> {
    None
}

/// A counter on a cache line of its own, in memory that is shared with forked children.
#[repr(C, align(128))]
pub struct Shared(pub AtomicU64);

/// `count` counters at 0 that children forked later share with this process. The memory lives as
/// long as the process.
///
/// # Errors
/// Those of mmap(2).
pub fn shared(count: usize) -> io::Result<&'static [Shared]> {
    use rustix::mm::{MapFlags, ProtFlags};
    let length = count.max(1) * size_of::<Shared>();
    // SAFETY: a new anonymous mapping touches no other memory. Its pages are zero, which is a valid
    // `Shared`; it is aligned to a page and never unmapped.
    unsafe {
        let memory = rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
        )?;
        Ok(std::slice::from_raw_parts(memory.cast::<Shared>(), count))
    }
}

/// Forks a child that does `work` and exits; returns its process id. Only for a process with one
/// thread: the child may then do anything.
///
/// # Errors
/// Those of fork(2).
pub fn fork(work: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the process has one thread (`companion` is a program of its own), so that no lock can
    // be held by a thread that the child does not have.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            work();
            // SAFETY: ends the child at once, without running what the parent registered for exit.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid),
    }
}

static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_interrupt(_signal: libc::c_int) {
    INTERRUPTED.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn on_terminate(_signal: libc::c_int) {
    // SAFETY: _exit is async-signal-safe.
    unsafe { libc::_exit(143) }
}

/// What a process does with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// Nothing.
    Ignore,
    /// Exit at once: PID 1 of a container has no default action.
    Exit,
    /// Wake up out of a system call and go on.
    Wake,
}

/// Says what this process does with `signal`.
pub fn on_signal(signal: libc::c_int, what: OnSignal) {
    let handler = match what {
        OnSignal::Ignore => libc::SIG_IGN,
        OnSignal::Exit => on_terminate as extern "C" fn(libc::c_int) as libc::sighandler_t,
        OnSignal::Wake => on_interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t,
    };
    // SAFETY: zero is a valid sigaction (no flags, empty mask); the handlers only do what is
    // async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// Wakes a thread of this process out of its sleep ([`OnSignal::Wake`] on SIGUSR1 must be set).
pub fn wake_thread(thread: u32) {
    // SAFETY: a signal to a thread of this very process, for which a handler is set.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_can_be_read_and_set() {
        let before = affinity().unwrap();
        assert!(!before.is_empty());
        let one = before.take(1);
        set_affinity(&one).unwrap();
        assert_eq!(affinity().unwrap(), one);
        set_affinity(&before).unwrap();
        assert!(set_affinity(&CpuSet::one(MAX_CPU)).is_err(), "no machine of ours has CPU 8191");
    }

    #[test]
    fn a_thread_of_ordinary_priority_says_so() {
        assert_eq!(scheduler().unwrap().policy, policy::OTHER);
    }

    #[test]
    fn a_sleep_ends_after_its_due_time() {
        let due = now() + 1_000_000;
        assert!(sleep_until(due));
        assert!(now() >= due);
    }

    #[test]
    fn shared_counters_are_seen_across_a_fork() {
        let counters = shared(2).unwrap();
        let pid = std::thread::scope(|_| fork(|| counters[1].0.store(7, Ordering::Relaxed))).unwrap();
        let pid = rustix::process::Pid::from_raw(pid);
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
        assert_eq!(counters[1].0.load(Ordering::Relaxed), 7);
        assert_eq!(counters[0].0.load(Ordering::Relaxed), 0);
    }
}
