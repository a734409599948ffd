//! Threads of other processes: stopped, and let run again.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;

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

/// The C library's type of a request.
#[cfg(target_env = "musl")]
type TraceRequest = libc::c_int;
#[cfg(not(target_env = "musl"))]
type TraceRequest = libc::c_uint;
