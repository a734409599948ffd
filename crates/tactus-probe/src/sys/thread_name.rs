//! Names of threads. The C library's `pthread_setname_np` (musl) also names other threads, by a path that it makes with
//! `snprintf`. That links all of printf with its floating point code, 10 KB that no other part needs. The standard
//! library, which calls it, only names the calling thread.
#![expect(unsafe_code, reason = "the name is the C library's")]

use core::ffi::{c_char, c_int};

/// Names the calling thread; naming another thread is refused.
// SAFETY: no other definition of the name is linked, and this one does what pthread_setname_np(3) says of the calling
// thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> c_int {
    // SAFETY: it has no preconditions.
    if thread != unsafe { libc::pthread_self() } {
        return libc::ENOSYS;
    }
    // SAFETY: the caller gives a string that ends with a zero; the kernel takes its first 15 bytes.
    match unsafe { libc::prctl(libc::PR_SET_NAME, name) } {
        0 => 0,
        _ => libc::EINVAL,
    }
}
