//! `network`: datagrams over the loopback, a sender and a receiver per CPU. A round is a datagram
//! received.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::CpuSet;
use tactus_model::catalogue::load::Network;
use tactus_model::message::Refusal;

use super::{length, pinned, refuse};
use crate::sys;
use crate::work::{Work, over};

/// The largest datagram of IPv4, in bytes: 64 KiB without the headers.
const MOST: u64 = 65_507;

pub fn works(table: &Network, cpus: &CpuSet) -> Result<Vec<Work>, Refusal> {
    let bytes = length(table.bytes().0);
    loopback().map_err(|error| {
        let hint = "bring it up: ip link set lo up";
        refuse(format!("network: nothing can be sent over the loopback ({error})"), hint)
    })?;
    let mut works: Vec<Work> = Vec::new();
    for cpu in cpus.iter() {
        let (from, to) = ends().map_err(|error| refuse(format!("network: {error}"), ""))?;
        let receiver: Work =
            Box::new(move |rounds| over(&format!("its receiver: {}", receive(&from, rounds))));
        let sender: Work = Box::new(move |_| {
            let datagram = vec![1; bytes];
            loop {
                match to.send(&datagram) {
                    // Full queues are what a load is for.
                    Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => {
                        over(&format!("its sender: {error}"));
                    }
                    _ => {}
                }
            }
        });
        works.push(pinned(cpu, receiver));
        works.push(pinned(cpu, sender));
    }
    Ok(works)
}

/// Makes sure that the loopback carries something.
fn loopback() -> io::Result<()> {
    with_loopback(|| {
        let (_, to) = ends()?;
        to.send(&[1]).map(|_| ())
    })
}

/// Runs an operation that needs the loopback. If this environment was made for the probe and ends with it, the loopback
/// is brought up.
pub fn with_loopback<T>(what: impl Fn() -> io::Result<T>) -> io::Result<T> {
    what().or_else(|error| {
        // The session is PID 1, and so the whole environment.
        if std::os::unix::process::parent_id() != 1 {
            return Err(error);
        }
        sys::raise("lo")?;
        what()
    })
}

/// A receiving and a sending end; each receives only from the other.
#[inline(never)]
fn ends() -> io::Result<(UdpSocket, UdpSocket)> {
    let any = || UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
    let (from, to) = (any()?, any()?);
    to.connect(from.local_addr()?)?;
    from.connect(to.local_addr()?)?;
    Ok((from, to))
}

fn receive(from: &UdpSocket, rounds: &AtomicU64) -> io::Error {
    let mut datagram = vec![0; length(MOST)];
    loop {
        match from.recv(&mut datagram) {
            // The end of a test.
            Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => rounds.fetch_add(1, Ordering::Relaxed),
            Err(error) => return error,
        };
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::catalogue::Load;
    use tactus_model::size::Bytes;

    use crate::load;

    use super::*;

    #[test]
    fn a_datagram_is_one_that_the_loopback_can_carry() {
        let works = |bytes| {
            let load = Load::Network(Network { bytes: Some(Bytes(bytes)) });
            load::works(&load, &"0-1".parse().unwrap()).map(|works| works.len())
        };
        assert!(works(0).is_err());
        assert!(works(MOST + 1).is_err());
        assert_eq!(works(MOST), Ok(4), "a sender and a receiver per CPU");
    }

    #[test]
    fn what_others_send_is_not_heard() {
        let (from, to) = ends().unwrap();
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // The kernel may or may not report that no socket receives it.
        let _ = other.send_to(&[], from.local_addr().unwrap());
        to.send(&[1, 2]).unwrap();
        assert_eq!(from.recv(&mut [0; 8]).unwrap(), 2);
    }

    #[test]
    fn rounds_are_datagrams_received() {
        let (from, to) = ends().unwrap();
        for length in [1, 1_000, length(MOST), 0] {
            to.send(&vec![1; length]).unwrap();
        }
        let rounds = AtomicU64::new(0);
        assert_eq!(receive(&from, &rounds).kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(rounds.into_inner(), 3);
    }
}
