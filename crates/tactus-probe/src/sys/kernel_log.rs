//! The kernel's log.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;

/// The contents of the kernel's log, with levels and times, up to the last 16 MiB.
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
