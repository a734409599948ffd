//! Children, and what this process has to itself.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
};

/// Forks a child that does `work` and exits; returns its process id. Only for a process with one
/// thread: the child may then do anything.
///
/// # Errors
/// Those of fork(2).
pub fn fork(work: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the process has one thread (`worker` is a separate program), so that no lock can be held by a thread that
    // the child does not have.
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

/// Executes an open program, with only these arguments and this environment. Returns only on failure, with the reason.
pub fn execute(program: &File, words: &[CString], environment: &[CString]) -> io::Error {
    let list = |of: &[CString]| -> Vec<*const libc::c_char> {
        of.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (words, environment) = (list(words), list(environment));
    // SAFETY: both lists end with a null pointer, and they and what they point to live until the call returns.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            words.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Lets all descriptors but stdin, stdout and stderr end with the next exec, also those that were handed on to us.
///
/// # Errors
/// When they are not known.
pub fn close_others_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<libc::c_int>().ok());
        if let Some(number) = number.filter(|number| *number > libc::STDERR_FILENO) {
            // SAFETY: sets a flag of a descriptor, and fails if the descriptor does not exist; no memory is handed
            // over.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

/// Names this thread, by the first 15 bytes; a process has the name of its first thread.
pub fn set_name(name: &str) {
    if let Ok(name) = CString::new(name) {
        // The name has no effect on the thread, so a failure does not matter.
        let _ = rustix::thread::set_name(&name);
    }
}

/// CPU time of all children that have ended and were waited for, in ns.
pub fn children_time() -> u64 {
    // SAFETY: all zero is a valid rusage, which is this thread's own; the kernel writes no more.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| {
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1_000
    };
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// Gives the children forked from now on a separate process namespace, which ends with its first process. `false` if
/// that is not allowed.
pub fn separate_processes() -> bool {
    // SAFETY: changes what later forks of this process do and nothing else; no memory is handed over.
    unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 }
}

/// Gives this process a separate mount namespace. Only for a process with one thread.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: unshares the mounts alone; no memory and no descriptor is touched.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ties a child to this process: the kernel kills it when this process dies. The child also gets none of the
/// capabilities that this program's file was given. A user without capabilities must be able to end it, and may not
/// look into a process that has more capabilities.
pub fn die_with_parent(process: &mut std::process::Command) -> &mut std::process::Command {
    use std::os::unix::process::CommandExt;
    let tie = || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        hand_on_nothing()
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { process.pre_exec(tie) }
}

/// Leaves this thread only the capabilities of its new file, or of root, after exec.
fn hand_on_nothing() -> io::Result<()> {
    // A kernel that reports no capabilities, or has no ambient ones, passes none on.
    let Ok(sets) = capabilities(None) else { return Ok(()) };
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    if sets.inheritable.is_empty() {
        return Ok(());
    }
    Ok(set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..sets })?)
}
