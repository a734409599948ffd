//! The loopback.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::os::fd::AsRawFd;

use super::raw::Request;

/// SIOCGIFFLAGS (linux/sockios.h).
const GET_FLAGS: Request = 0x8913;
/// SIOCSIFFLAGS.
const SET_FLAGS: Request = 0x8914;

/// Brings the loopback up.
///
/// # Errors
/// EPERM without the right to it.
pub fn raise_loopback() -> io::Result<()> {
    /// IFF_UP, as wide as the field.
    const UP: libc::c_short = 1;
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zero is a valid `ifreq`; both requests read and write no more than it has, and its name
    // ends with a zero.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = libc::c_char::from_ne_bytes([b'l']);
        request.ifr_name[1] = libc::c_char::from_ne_bytes([b'o']);
        let mut result = libc::ioctl(socket.as_raw_fd(), GET_FLAGS, &raw mut request);
        if result == 0 {
            request.ifr_ifru.ifru_flags |= UP;
            result = libc::ioctl(socket.as_raw_fd(), SET_FLAGS, &raw mut request);
        }
        result
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
