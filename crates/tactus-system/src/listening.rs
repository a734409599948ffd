//! Names that belong to a process as long as it lives, and that every process can look up: abstract Unix sockets.
//!
//! Such a name needs no directory that every user may write to. It goes when its process ends, however that ends, and
//! the kernel says which process has it. A container with a separate network namespace also has separate names.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, shutdown,
    socket_with,
};

use crate::sys;

/// Limit of the processes that have asked for the owner of a name and have no answer yet. Further ones wait for a
/// place.
const ASKING: i32 = 4096;
/// They wait this long for a place.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause before the next try to answer, when this process has no descriptor left for it.
const PAUSE: Duration = Duration::from_millis(20);

/// The owner of a name.
#[derive(Debug)]
pub struct Listener {
    /// Its process; `None`: it is in another PID namespace and has no number here.
    pub process: Option<u32>,
    /// Its effective user when it took the name.
    pub user: u32,
    /// A handle of its process (pidfd), never of a later one with the same number. `None`: this kernel has no such
    /// handle (before 6.5), or the process has ended and another one has its socket.
    pub handle: Option<OwnedFd>,
}

/// Takes a name until the returned value is dropped; `None` if the name is taken. The owner never answers a query: a
/// process that asks without end can only use up the places in the queue.
///
/// # Errors
/// When no socket can be made.
pub fn take(name: &[u8]) -> io::Result<Option<OwnedFd>> {
    let socket = socket()?;
    match bind(&socket, &SocketAddrUnix::new_abstract_name(name)?) {
        Ok(()) => {
            listen(&socket, ASKING)?;
            Ok(Some(socket))
        }
        Err(Errno::ADDRINUSE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A name with a thread that hangs up on each query, so that places in the queue become free again.
#[derive(Debug)]
pub struct Answered {
    socket: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// Takes a name as [`take`] does, and answers its queries.
///
/// # Errors
/// When the socket or the thread cannot be made.
pub fn take_and_answer(name: &[u8]) -> io::Result<Option<Answered>> {
    let Some(socket) = take(name)? else { return Ok(None) };
    let listener = UnixListener::from(socket.try_clone()?);
    let thread = std::thread::Builder::new().name("tactus-name".into()).spawn(move || hang_up(&listener))?;
    Ok(Some(Answered { socket, thread: Some(thread) }))
}

/// A connected process has already learned what it asked for.
fn hang_up(listener: &UnixListener) {
    loop {
        match listener.accept() {
            Ok(_) => {}
            // By [`Answered::drop`].
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => return,
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        // From now on the name is free, and the accept(2) of a waiting thread ends (unix(7)).
        let _ = shutdown(&self.socket, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The owner of a name; `None` if the name is free. The owner does not need to answer.
///
/// # Errors
/// When the query fails: `WouldBlock` when the name is taken and others query it without end.
pub fn who(name: &[u8]) -> io::Result<Option<Listener>> {
    let socket = socket()?;
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    match connect(&socket, &SocketAddrUnix::new_abstract_name(name)?) {
        Ok(()) => {}
        Err(Errno::CONNREFUSED) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let (process, user) = sys::listener(&socket)?;
    let process = u32::try_from(process).ok().filter(|process| *process > 0);
    Ok(Some(Listener { process, user, handle: sys::listener_handle(&socket).ok() }))
}

fn socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries until no place is left, and holds all of them.
    fn crowd(name: &[u8]) -> Vec<OwnedFd> {
        let address = SocketAddrUnix::new_abstract_name(name).unwrap();
        let mut crowd = Vec::new();
        for _ in 0..900 {
            let own = socket_with(
                AddressFamily::UNIX,
                SocketType::STREAM,
                SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
                None,
            );
            let own = own.unwrap();
            let _ = connect(&own, &address);
            crowd.push(own);
        }
        crowd
    }

    #[test]
    fn who_asks_without_end_and_never_hangs_up_keeps_nobody_from_asking() {
        let name = format!("tactus/test/crowd-{}", std::process::id());
        let own = take_and_answer(name.as_bytes()).unwrap().unwrap();
        // A short queue: the crowd fills it at once.
        listen(&own.socket, 8).unwrap();
        for _ in 0..3 {
            let crowd = crowd(name.as_bytes());
            let found = who(name.as_bytes()).unwrap().unwrap();
            assert_eq!(found.process, Some(std::process::id()));
            drop(crowd);
        }
        drop(own);
        assert!(who(name.as_bytes()).unwrap().is_none());
        assert!(take(name.as_bytes()).unwrap().is_some(), "the name is free");
    }

    #[test]
    fn a_name_whose_places_are_all_taken_is_one_that_somebody_has() {
        let name = format!("tactus/test/full-{}", std::process::id());
        let own = take(name.as_bytes()).unwrap().unwrap();
        listen(&own, 8).unwrap();
        let _crowd = crowd(name.as_bytes());
        assert_eq!(who(name.as_bytes()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(take(name.as_bytes()).unwrap().is_none());
    }
}
