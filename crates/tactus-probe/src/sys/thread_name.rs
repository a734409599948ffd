//! Names of threads. The C library's `pthread_setname_np` (musl) names other threads, too, by a path that it makes with
//! `snprintf`: with that come all of printf, floating point and all, which nothing else here needs (10 KB). The standard
//! library, which calls it, names the thread that runs alone.
#![expect(unsafe_code, reason = "the name is the C library's")]

use core::ffi::{c_char, c_int};

/// Names the thread that runs; of another one it is refused.
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
