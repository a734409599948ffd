//! The one room of the probe that may be unsafe: raw system calls, clocks, `fork`; below it, BPF and the heap.
//!
//! Everything else goes through the safe functions below, or through rustix.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

pub mod bpf;
pub mod heap;
pub mod perf;

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

    /// Reads `FIFO 4`, `RR 1`, `OTHER 0`, `BATCH 0` or `IDLE 0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, priority) = text.split_once(' ')?;
        let policy = policy::NAMES.iter().find(|(_, known)| *known == name)?.0;
        (policy != policy::DEADLINE).then_some(())?;
        Some(Self { policy, priority: priority.parse().ok()?, ..Self::default() })
    }
}

/// Numbers of the scheduling policies (linux/sched.h).
mod policy {
    pub const OTHER: u32 = 0;
    pub const FIFO: u32 = 1;
    pub const RR: u32 = 2;
    pub const DEADLINE: u32 = 6;

    pub const NAMES: [(u32, &str); 6] =
        [(OTHER, "OTHER"), (FIFO, "FIFO"), (RR, "RR"), (3, "BATCH"), (5, "IDLE"), (DEADLINE, "DEADLINE")];
}

impl std::fmt::Display for SchedAttr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = policy::NAMES.iter().find(|(number, _)| *number == self.policy);
        write!(f, "{} {}", known.map_or("UNKNOWN", |(_, name)| name), self.priority)
    }
}

/// Size of [`SchedAttr`] as the kernel wants it.
const ATTR_SIZE: u32 = 48;
const _: () = assert!(size_of::<SchedAttr>() == 48);

/// Sets how the calling thread is scheduled.
///
/// # Errors
/// EPERM without the right to it, EBUSY when DEADLINE has no bandwidth left.
pub fn set_scheduler(attr: SchedAttr) -> io::Result<()> {
    set_scheduler_of(0, attr)
}

/// Sets how a thread is scheduled; 0 is the calling one.
///
/// # Errors
/// Those of [`set_scheduler`]; ESRCH when there is no such thread.
pub fn set_scheduler_of(thread: u32, mut attr: SchedAttr) -> io::Result<()> {
    attr.size = ATTR_SIZE;
    // SAFETY: `attr` is a live struct of the size that it names; the call reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attr, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How the calling thread is scheduled.
///
/// # Errors
/// Those of sched_getattr(2).
pub fn scheduler() -> io::Result<SchedAttr> {
    scheduler_of(0)
}

/// How a thread is scheduled; 0 is the calling one.
///
/// # Errors
/// Those of sched_getattr(2).
pub fn scheduler_of(thread: u32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most ATTR_SIZE bytes, which is the size of `attr`.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attr, ATTR_SIZE, 0) };
    if result == 0 { Ok(attr) } else { Err(io::Error::last_os_error()) }
}

const MASK_WORDS: usize = (MAX_CPU as usize + 1) / 64;

/// The CPUs on which the calling thread may run.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn affinity() -> io::Result<CpuSet> {
    affinity_of(0)
}

/// The CPUs on which a thread may run; 0 is the calling one.
///
/// # Errors
/// Those of sched_getaffinity(2).
pub fn affinity_of(thread: u32) -> io::Result<CpuSet> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes, which `mask` has.
    let written =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, size_of_val(&mask), mask.as_mut_ptr()) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..=MAX_CPU).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// The CPUs on which any thread may run, as words of 64 bits without zeros at the end. Thousands of
/// threads are asked, so that a set is only made by those who want one.
///
/// # Errors
/// ESRCH when it has ended.
pub fn affinity_mask(thread: u32) -> io::Result<Vec<u64>> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the given number of bytes, which `mask` has.
    let written =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, size_of_val(&mask), mask.as_mut_ptr()) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    let end = mask.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    Ok(mask[..end].to_vec())
}

/// What the kernel's log holds, with levels and times, at most the last 16 MiB.
///
/// # Errors
/// EPERM when this user may not read it.
pub fn kernel_log() -> io::Result<Vec<u8>> {
    /// Numbers of syslog(2).
    const READ_ALL: libc::c_int = 3;
    const SIZE_BUFFER: libc::c_int = 10;
    const MOST: libc::c_int = 16 << 20;
    // SAFETY: asks for the size of the log; no memory is handed over.
    let size = unsafe { libc::klogctl(SIZE_BUFFER, std::ptr::null_mut(), 0) };
    if size < 0 {
        return Err(io::Error::last_os_error());
    }
    // Texts grow a little when they are written with their levels and times.
    let size = size.saturating_mul(2).clamp(1 << 12, MOST);
    let mut bytes = vec![0u8; usize::try_from(size).unwrap_or(0)];
    // SAFETY: the kernel writes at most `size` bytes, which `bytes` has.
    let length = unsafe { libc::klogctl(READ_ALL, bytes.as_mut_ptr().cast(), size) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(usize::try_from(length).unwrap_or(0));
    Ok(bytes)
}

/// Answers of CPUID by the names of their readings: eax, ebx, ecx, edx; `None` for a leaf that this
/// processor does not have.
#[cfg(target_arch = "x86_64")]
pub fn cpuid_leaves() -> Vec<(String, Option<[u32; 4]>)> {
    use core::arch::x86_64::__cpuid_count;
    const BASIC: &[u32] = &[0x0, 0x1, 0x6, 0x7, 0xa, 0x10, 0x15, 0x16];
    const HYPERVISOR: &[u32] = &[0x4000_0000, 0x4000_0001];
    const EXTENDED: &[u32] = &[0x8000_0007, 0x8000_0008];
    const HYPERVISOR_PRESENT: u32 = 1 << 31;
    let virtual_machine = __cpuid_count(1, 0).ecx & HYPERVISOR_PRESENT != 0;
    // A leaf above the highest answers as another one would (Intel's manual, volume 2, CPUID).
    let highest = |leaf: u32| match leaf {
        0x4000_0000.. if leaf < 0x8000_0000 && !virtual_machine => 0,
        // KVM said 0 for "the one above" (Documentation/virt/kvm/x86/cpuid.rst).
        0x4000_0000.. if leaf < 0x8000_0000 => __cpuid_count(0x4000_0000, 0).eax.max(0x4000_0001),
        0x8000_0000.. => __cpuid_count(0x8000_0000, 0).eax,
        _ => __cpuid_count(0, 0).eax,
    };
    [BASIC, HYPERVISOR, EXTENDED]
        .concat()
        .into_iter()
        .map(|leaf| {
            let answer = (leaf <= highest(leaf)).then(|| {
                let answer = __cpuid_count(leaf, 0);
                [answer.eax, answer.ebx, answer.ecx, answer.edx]
            });
            (format!("cpuid:{leaf:#x}:0"), answer)
        })
        .collect()
}

/// Other processors have no CPUID.
#[cfg(not(target_arch = "x86_64"))]
pub fn cpuid_leaves() -> Vec<(String, Option<[u32; 4]>)> {
    Vec::new()
}

/// Says on which CPUs the calling thread may run.
///
/// # Errors
/// EINVAL when none of them is online and allowed by the cpuset.
pub fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Says on which CPUs a thread may run; 0 is the calling one.
///
/// # Errors
/// Those of [`set_affinity`]; EINVAL also for a thread of the kernel that is bound to its CPU.
pub fn set_affinity_of(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    for cpu in cpus.iter().filter(|cpu| *cpu <= MAX_CPU) {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads the given number of bytes, which `mask` has.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, size_of_val(&mask), mask.as_ptr()) };
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

/// CPU time of this process, in ns.
pub fn own_time() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of another process, in ns; 0 when it has gone.
pub fn time_of(process: u32) -> u64 {
    /// `CPUCLOCK_SCHED`: what the scheduler counts (linux/posix-timers.h).
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

/// What is valid where all its bytes are zero, and may be changed by several at once.
pub trait Zeroed {}
impl Zeroed for Shared {}
impl Zeroed for AtomicU64 {}

/// `count` counters at 0 that children forked later share with this process. The memory lives as
/// long as the process.
///
/// # Errors
/// Those of mmap(2).
pub fn shared<T: Zeroed>(count: usize) -> io::Result<&'static [T]> {
    use rustix::mm::{MapFlags, ProtFlags};
    let length = count.max(1) * size_of::<T>();
    // SAFETY: a new anonymous mapping touches no other memory. Its pages are zero, which is a valid
    // `T`; it is aligned to a page and never unmapped.
    unsafe {
        let memory = rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
        )?;
        Ok(std::slice::from_raw_parts(memory.cast::<T>(), count))
    }
}

/// Forks a child that does `work` and exits; returns its process id. Only for a process with one
/// thread: the child may then do anything.
///
/// # Errors
/// Those of fork(2).
pub fn fork(work: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the process has one thread (`worker` is a program of its own), so that no lock can
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

/// Gives the children forked from now on a process namespace of their own: all of it ends with its
/// first process. `false` where that is not allowed.
pub fn separate_processes() -> bool {
    // SAFETY: changes what later forks of this process do and nothing else; no memory is handed over.
    unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 }
}

/// Lets what `process` starts be killed when this process dies.
pub fn die_with_parent(process: &mut std::process::Command) -> &mut std::process::Command {
    use std::os::unix::process::CommandExt;
    let tie = || Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?);
    // SAFETY: between fork and exec only a system call is made.
    unsafe { process.pre_exec(tie) }
}

/// What a system call has returned that makes a descriptor.
fn descriptor(result: libc::c_long) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    match i32::try_from(result) {
        // SAFETY: one that is not negative is new, and nobody else has it.
        Ok(fd @ 0..) => Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Descriptors of which select(2) is asked which can be written.
pub struct Writable {
    set: libc::fd_set,
    /// The largest descriptor and one.
    end: libc::c_int,
}

impl Writable {
    /// # Errors
    /// When a descriptor is larger than select can take.
    pub fn of<'a>(descriptors: impl Iterator<Item = std::os::fd::BorrowedFd<'a>>) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        // SAFETY: all zero is a set without any descriptor.
        let mut writable = Self { set: unsafe { std::mem::zeroed() }, end: 0 };
        for descriptor in descriptors {
            let number = descriptor.as_raw_fd();
            if usize::try_from(number).is_ok_and(|number| number >= libc::FD_SETSIZE) {
                return Err(io::Error::from_raw_os_error(libc::EBADF));
            }
            // SAFETY: the set has a bit for every number below FD_SETSIZE.
            unsafe { libc::FD_SET(number, &raw mut writable.set) };
            writable.end = writable.end.max(number + 1);
        }
        Ok(writable)
    }

    /// How many of them can be written now. Does not wait.
    ///
    /// # Errors
    /// EBADF when one of them has been closed.
    #[inline]
    pub fn select(&self) -> io::Result<usize> {
        let (mut set, mut now) = (self.set, libc::timeval { tv_sec: 0, tv_usec: 0 });
        let none = std::ptr::null_mut();
        // SAFETY: `set` and `now` are live and this thread's own; the kernel reads and writes no more.
        let ready = unsafe { libc::select(self.end, none, &raw mut set, none, &raw mut now) };
        usize::try_from(ready).map_err(|_| io::Error::last_os_error())
    }
}

/// What the C library calls the number of an ioctl(2).
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_ulong;
/// SIOCGIFFLAGS (linux/sockios.h).
const GET_FLAGS: Request = 0x8913;
/// SIOCSIFFLAGS.
const SET_FLAGS: Request = 0x8914;

/// Brings the loopback up.
///
/// # Errors
/// EPERM without the right to it.
pub fn raise_loopback() -> io::Result<()> {
    use std::os::fd::AsRawFd;
    /// IFF_UP, as wide as the field.
    const UP: libc::c_short = 1;
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zero is a valid `ifreq`; both requests read and write no more than it has, and its name
    // ends with a zero.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = libc::c_char::from_ne_bytes([b'l']);
        request.ifr_name[1] = libc::c_char::from_ne_bytes([b'o']);
        let mut result = libc::ioctl(socket.as_raw_fd(), GET_FLAGS, &raw mut request);
        if result == 0 {
            request.ifr_ifru.ifru_flags |= UP;
            result = libc::ioctl(socket.as_raw_fd(), SET_FLAGS, &raw mut request);
        }
        result
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives this process mounts of its own. Only for a process with one thread.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: unshares the mounts alone; no memory and no descriptor is touched.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

/// Stops a thread of another process, wherever it is; returns the signal that it was about to take (0:
/// none), for [`resume_thread`]. When this process dies the thread runs on.
///
/// # Errors
/// Those of ptrace(2): it has gone, has a tracer, or may not be traced.
pub fn stop_thread(thread: u32) -> io::Result<libc::c_int> {
    trace(libc::PTRACE_SEIZE, thread, 0)?;
    trace(libc::PTRACE_INTERRUPT, thread, 0)?;
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    if unsafe { libc::waitpid(thread.cast_signed(), &raw mut status, libc::__WALL) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if !libc::WIFSTOPPED(status) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let interrupted = status >> 16 == libc::PTRACE_EVENT_STOP;
    Ok(if interrupted { 0 } else { libc::WSTOPSIG(status) })
}

/// Lets a thread that [`stop_thread`] has stopped run on, with the signal that it was about to take.
///
/// # Errors
/// Those of ptrace(2).
pub fn resume_thread(thread: u32, signal: libc::c_int) -> io::Result<()> {
    trace(libc::PTRACE_DETACH, thread, signal)
}

#[expect(
    clippy::cast_sign_loss,
    reason = "a signal is a small positive number that the kernel takes as a pointer"
)]
fn trace(request: TraceRequest, thread: u32, data: libc::c_int) -> io::Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    let data = std::ptr::without_provenance_mut::<libc::c_void>(data as usize);
    // SAFETY: none of the requests in use reads or writes memory through its arguments.
    let result = unsafe { libc::ptrace(request, thread.cast_signed(), none, data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the C library calls a request.
#[cfg(target_env = "musl")]
type TraceRequest = libc::c_int;
#[cfg(not(target_env = "musl"))]
type TraceRequest = libc::c_uint;

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
    fn scheduling_is_written_as_it_is_read() {
        for text in ["FIFO 4", "RR 99", "OTHER 0", "BATCH 0", "IDLE 0"] {
            assert_eq!(SchedAttr::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "FIFO", "FIFO -1", "FIFO 4 ", "DEADLINE 0", "fifo 4"] {
            assert_eq!(SchedAttr::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_sleep_ends_after_its_due_time() {
        let due = now() + 1_000_000;
        assert!(sleep_until(due));
        assert!(now() >= due);
    }

    #[test]
    fn shared_counters_are_seen_across_a_fork() {
        let counters = shared::<Shared>(2).unwrap();
        let pid = std::thread::scope(|_| fork(|| counters[1].0.store(7, Ordering::Relaxed))).unwrap();
        let pid = rustix::process::Pid::from_raw(pid);
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
        assert_eq!(counters[1].0.load(Ordering::Relaxed), 7);
        assert_eq!(counters[0].0.load(Ordering::Relaxed), 0);
    }
}
