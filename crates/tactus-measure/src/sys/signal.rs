//! The actions of a process on a signal, and the signal that wakes a thread out of its sleep.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::sync::atomic::{AtomicU64, Ordering};

static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_interrupt(_signal: libc::c_int) {
    INTERRUPTED.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn on_terminate(_signal: libc::c_int) {
    // SAFETY: _exit is async-signal-safe.
    unsafe { libc::_exit(143) }
}

/// The action of a process on a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// Nothing.
    Ignore,
    /// Exit at once: PID 1 of a container has no default action.
    Exit,
    /// Wake up out of a system call and continue.
    Wake,
}

/// Sets the action of this process on `signal`.
pub fn on_signal(signal: libc::c_int, what: OnSignal) {
    let handler = match what {
        OnSignal::Ignore => libc::SIG_IGN,
        OnSignal::Exit => on_terminate as extern "C" fn(libc::c_int) as libc::sighandler_t,
        OnSignal::Wake => on_interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t,
    };
    // SAFETY: zero is a valid sigaction (no flags, empty mask); the handlers are async-signal-safe.
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
