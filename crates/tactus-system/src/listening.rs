//! Names that a process has as long as it lives, whoever looks: abstract Unix sockets.
//!
//! Such a name needs no directory that every user may write to, it is gone with the process that has it however that ends,
//! and the kernel says who that is. A container with a network namespace of its own has names of its own.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::sys;

/// How many may have asked who has a name, and are not answered.
const ASKING: i32 = 4096;

/// Who has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its process; none: it has no number here, since it is in another PID namespace.
    pub process: Option<u32>,
    /// Its effective user when it took the name.
    pub user: u32,
}

/// Takes a name until the returned value goes; nothing where somebody has it.
///
/// # Errors
/// When there are no sockets.
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

/// Who has a name; nothing where nobody has it. Nobody needs to answer.
///
/// # Errors
/// When it cannot be asked.
pub fn who(name: &[u8]) -> io::Result<Option<Listener>> {
    let socket = socket()?;
    match connect(&socket, &SocketAddrUnix::new_abstract_name(name)?) {
        Ok(()) => {}
        Err(Errno::CONNREFUSED) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let (process, user) = sys::listener(&socket)?;
    Ok(Some(Listener { process: u32::try_from(process).ok().filter(|process| *process > 0), user }))
}

fn socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}
