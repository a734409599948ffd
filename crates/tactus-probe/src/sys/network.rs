//! Network interfaces: up, and their address.
#![expect(unsafe_code, reason = "system calls that no safe crate offers")]

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use super::Request;

/// SIOCGIFFLAGS (linux/sockios.h).
const GET_FLAGS: Request = 0x8913;
/// SIOCSIFFLAGS.
const SET_FLAGS: Request = 0x8914;
/// SIOCSIFADDR.
const SET_ADDRESS: Request = 0x8916;
/// SIOCSIFNETMASK.
const SET_MASK: Request = 0x891c;

/// Brings an interface up.
///
/// # Errors
/// EPERM without the right to it, ENODEV when no interface has this name.
pub fn raise(interface: &str) -> io::Result<()> {
    /// IFF_UP, as wide as the field.
    const UP: libc::c_short = 1;
    let mut request = of(interface)?;
    ask(GET_FLAGS, &mut request)?;
    // SAFETY: every bit pattern is a valid field of the union, all of which is initialised.
    unsafe { request.ifr_ifru.ifru_flags |= UP };
    ask(SET_FLAGS, &mut request)
}

/// Gives an interface this address, in a network of four.
///
/// # Errors
/// As those of [`raise`].
pub fn give_address(interface: &str, address: Ipv4Addr) -> io::Result<()> {
    for (what, address) in [(SET_ADDRESS, address), (SET_MASK, Ipv4Addr::new(255, 255, 255, 252))] {
        let mut request = of(interface)?;
        let [first, second] = libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default().to_ne_bytes();
        let [a, b, c, d] = address.octets();
        // A `sockaddr_in`, byte by byte: the family, no port, the address.
        let socket_address = [first, second, 0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: a `sockaddr` is sixteen bytes without any meaning to the compiler.
        request.ifr_ifru.ifru_addr =
            unsafe { std::mem::transmute::<[u8; 16], libc::sockaddr>(socket_address) };
        ask(what, &mut request)?;
    }
    Ok(())
}

/// A request about an interface.
fn of(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    Ok(request)
}

fn ask(what: Request, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: `request` is live and this thread's own; these requests read and write no more than it has, and its name
    // ends with a zero.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), what, std::ptr::from_mut(request)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_an_error_and_so_is_a_name_that_is_too_long() {
        assert_eq!(raise("no-such-if").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert!(give_address("no-such-if", Ipv4Addr::LOCALHOST).is_err());
        assert_eq!(raise("sixteen-letters!").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
