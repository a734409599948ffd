//! The one system call that no safe crate offers.

use std::io;

/// sched_setscheduler(2) with SCHED_FIFO. By the raw system call: musl's function is ENOSYS.
///
/// # Errors
/// Those of the call.
pub fn make_fifo(thread: u32, priority: u32) -> io::Result<()> {
    let parameters = libc::c_int::try_from(priority).map_err(|_| io::ErrorKind::InvalidInput)?;
    // struct sched_param of the kernel is one int.
    let parameters = [parameters];
    // SAFETY: the third argument points to a live int, which is all that the kernel reads.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, libc::SCHED_FIFO, parameters.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
