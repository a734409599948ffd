//! How a thread is scheduled.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;

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

    /// SCHED_IDLE: behind everything else.
    pub fn idle() -> Self {
        Self { policy: policy::IDLE, ..Self::default() }
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
    pub const IDLE: u32 = 5;
    pub const DEADLINE: u32 = 6;

    pub const NAMES: [(u32, &str); 6] =
        [(OTHER, "OTHER"), (FIFO, "FIFO"), (RR, "RR"), (3, "BATCH"), (IDLE, "IDLE"), (DEADLINE, "DEADLINE")];
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
/// Those of [`set_scheduler`]; ESRCH when the thread does not exist.
pub fn set_scheduler_of(thread: u32, attr: SchedAttr) -> io::Result<()> {
    match set(thread, attr) {
        // A process that was started with a higher nice value may not lower it without CAP_SYS_NICE. It keeps its nice
        // value.
        Err(error) if attr.policy == policy::OTHER && error.raw_os_error() == Some(libc::EPERM) => {
            set(thread, SchedAttr { nice: nice(thread)?, ..attr })
        }
        result => result,
    }
}

/// The nice value of a thread; 0 is the calling one.
///
/// # Errors
/// ESRCH when the thread does not exist.
pub fn nice(thread: u32) -> io::Result<i32> {
    // Linux also accepts a thread's id there.
    let thread = i32::try_from(thread).ok().and_then(rustix::process::Pid::from_raw);
    Ok(rustix::process::getpriority_process(thread)?)
}

fn set(thread: u32, mut attr: SchedAttr) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_ordinary_priority_says_so() {
        assert_eq!(scheduler().unwrap().policy, policy::OTHER);
    }

    #[test]
    fn a_thread_that_may_not_lower_its_nice_value_keeps_it() {
        let nice_of = std::thread::spawn(|| {
            let mut own = rustix::thread::capabilities(None).unwrap();
            rustix::process::setpriority_process(None, 5).unwrap();
            own.effective.remove(rustix::thread::CapabilitySet::SYS_NICE);
            rustix::thread::set_capabilities(None, own).unwrap();
            let refused = set(0, SchedAttr::other()).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
            set_scheduler(SchedAttr::other()).unwrap();
            nice(0).unwrap()
        });
        assert_eq!(nice_of.join().unwrap(), 5);
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
}
