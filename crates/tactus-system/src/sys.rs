//! System calls that no safe crate offers, and the clock.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tactus_model::threads::Policy;

/// sched_setscheduler(2). By the raw system call: musl's function is ENOSYS.
///
/// # Errors
/// Those of the call.
pub fn schedule(thread: u32, policy: Policy, priority: u32) -> io::Result<()> {
    let number = match policy {
        Policy::Other => libc::SCHED_OTHER,
        Policy::Fifo => libc::SCHED_FIFO,
        Policy::Rr => libc::SCHED_RR,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Idle => libc::SCHED_IDLE,
        Policy::Deadline | Policy::Unknown => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let parameters = libc::c_int::try_from(priority).map_err(|_| io::ErrorKind::InvalidInput)?;
    // struct sched_param of the kernel is one int.
    let parameters = [parameters];
    // SAFETY: the third argument points to a live int, which is all that the kernel reads.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, number, parameters.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets a command begin in a separate session, and so a separate process group. It has no controlling terminal to type
/// into (TIOCSTI) or to write to, and input of the terminal does not reach it.
pub fn without_terminal(command: &mut Command) -> &mut Command {
    // A child of fork leads no group yet: it cannot fail.
    let leave = || rustix::process::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: between fork and exec one system call is made, and no memory is taken.
    unsafe { command.pre_exec(leave) }
}

/// The same, and it is asked to end (SIGTERM) when the thread that starts it ends: for a command that is waited for,
/// which Ctrl-C no longer reaches.
pub fn awaited(command: &mut Command) -> &mut Command {
    let tie = || Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?);
    // SAFETY: as above.
    unsafe { without_terminal(command).pre_exec(tie) }
}

/// The process that called listen(2) for what a Unix socket is connected to, and its user then (SO_PEERCRED, unix(7)).
/// Process 0: it is in another PID namespace, for which rustix has no value.
///
/// # Errors
/// Those of getsockopt(2).
pub fn listener(socket: &impl AsFd) -> io::Result<(i32, u32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of_val(&found)).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes to a live ucred, all of whose values are valid.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok((found.pid, found.uid)) } else { Err(io::Error::last_os_error()) }
}

/// A handle of that process (SO_PEERPIDFD), which no later one of its number has.
///
/// # Errors
/// Those of getsockopt(2): `ENOPROTOOPT` before Linux 6.5; `EINVAL` or `ESRCH` where the process has ended.
pub fn listener_handle(socket: &impl AsFd) -> io::Result<OwnedFd> {
    // include/uapi/asm-generic/socket.h.
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut handle: libc::c_int = -1;
    let mut length = libc::socklen_t::try_from(size_of_val(&handle)).unwrap_or(0);
    // SAFETY: the kernel writes at most `length` bytes to a live int.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut handle).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for this process, close-on-exec, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(handle) })
}

/// A second signal within this time after the first repeats the same request. For example timeout(1) signals first the
/// command and then its process group, so each signal arrives twice.
const SAME_WISH: Duration = Duration::from_secs(1);

/// From now on the first of these signals sets a flag. A later one ends the process with this exit code at once, even
/// if other code has set the flag.
///
/// # Errors
/// Those of sigaction(2).
pub fn ask_then_exit(signals: &[i32], asked: &Arc<AtomicBool>, exit_code: i32) -> io::Result<()> {
    let first_ns = Arc::new(AtomicU64::new(0));
    for &signal in signals {
        let (asked, first_ns) = (Arc::clone(asked), Arc::clone(&first_ns));
        let heard = move || {
            let now_ns = monotonic_ns();
            if !asked.load(Ordering::SeqCst) {
                first_ns.store(now_ns, Ordering::SeqCst);
                asked.store(true, Ordering::SeqCst);
            } else if u128::from(now_ns.saturating_sub(first_ns.load(Ordering::SeqCst)))
                >= SAME_WISH.as_nanos()
            {
                signal_hook::low_level::exit(exit_code);
            }
        };
        // SAFETY: the handler reads a clock, loads and stores atomics and calls _exit(2), each of which signal-safety(7) allows.
        unsafe { signal_hook::low_level::register(signal, heard) }?;
    }
    Ok(())
}

/// CLOCK_MONOTONIC now, in ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    now(ClockId::Monotonic)
}

/// CLOCK_BOOTTIME now, in ns: it also counts while the machine is suspended.
#[must_use]
pub fn boottime_ns() -> u64 {
    now(ClockId::Boottime)
}

fn now(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
