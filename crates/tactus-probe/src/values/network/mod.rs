//! `network`: streams of datagrams between two probes, and their cost.
//!
//! Both ends are workers: [`near`] measures, and [`far`] carries out its orders, which come over a TCP connection on
//! the same path. Each has [`flows`], a socket and a process for each stream. docs/design/network.md gives the reasons.

mod control;
mod far;
mod flows;
mod machine;
mod near;

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::AtomicU64;

use tactus_model::catalogue::Item;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Network as Table;
use tactus_model::message::{Activity, Link, LinkEnd, Refusal, What};

use self::far::Far;
use self::flows::{Flows, Wait};
use self::near::Near;
use super::{Make, Measurement, partner};
use crate::load::network::with_loopback;
use crate::sys::{self, Shared};
use crate::work::{Pace, Work, over};

/// The measurement.
pub struct Network;

/// Bytes that IPv4 and UDP put before the payload.
const HEADERS: u64 = 28;

impl Measurement for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn uses_all_cpus(&self) -> bool {
        true
    }

    fn items(&self) -> &'static [(Item, Make)] {
        &[]
    }

    fn own_work(
        &self,
        activity: &Activity,
        pace: Pace,
        finish: &'static Shared,
    ) -> Option<Result<Work, Refusal>> {
        match &activity.what {
            What::Measure { measure: Measure::Network(table), .. } => {
                Some(work(table, activity.link, pace, finish))
            }
            _ => None,
        }
    }
}

fn work(table: &Table, link: Option<Link>, pace: Pace, finish: &'static Shared) -> Result<Work, Refusal> {
    let Some(link) = link else { return both(table, pace, finish) };
    let flows = open(table, link)?;
    if link.end == LinkEnd::Far {
        let far = Far::open(link, flows)?;
        return Ok(Box::new(move |_| {
            if let Err(error) = far.serve(&finish.0) {
                over(&format!("the far end: {error}"));
            }
        }));
    }
    let table = table.clone();
    Ok(Box::new(move |rounds| {
        let went =
            Near::connect(link, flows, &table, pace).and_then(|near| near.run(pace, &finish.0, rounds));
        if let Err(error) = went {
            over(&format!("the peer at {}: {error}", link.other));
        }
    }))
}

/// Both ends, on the loopback of this environment.
fn both(table: &Table, pace: Pace, finish: &'static Shared) -> Result<Work, Refusal> {
    let here = Ipv4Addr::LOCALHOST;
    let link = Link { end: LinkEnd::Far, own: here, other: here, port: 0, machine: Some(LinkEnd::Near) };
    let far = Far::open(link, open(table, link)?)?;
    let port = far.port().map_err(|error| refuse(format!("the loopback: {error}"), ""))?;
    let near = Link { end: LinkEnd::Near, port, ..link };
    let (flows, table) = (open(table, near)?, table.clone());
    Ok(Box::new(move |rounds| {
        // The far end ends with this process: told to finish, it would go while the near end still asks it.
        let ends = partner(|| far.serve(&AtomicU64::new(0)))
            .and_then(|_| Near::connect(near, flows, &table, pace))
            .and_then(|near| near.run(pace, &finish.0, rounds));
        if let Err(error) = ends {
            over(&format!("the loopback: {error}"));
        }
    }))
}

/// Sockets for the flows, where the way to the other end takes such messages.
fn open(table: &Table, link: Link) -> Result<Flows, Refusal> {
    let Link { own, other, .. } = link;
    let mtu = with_loopback(|| mtu(own, other)).or_else(|error| {
        address(own, error)?;
        mtu(own, other)
    });
    let mtu = mtu.map_err(|error| {
        let hint = "the address must be one of this environment, and a route must lead to the other: `ip address`, `ip route`";
        refuse(format!("network: no route from {own} to {other}: {error}"), hint)
    })?;
    let message = table.message().0;
    if message + HEADERS > mtu {
        let whole = message + HEADERS;
        return Err(refuse(
            format!(
                "network: messages of {message} bytes ({whole} with their headers) do not fit into the MTU of {mtu} from {own} to {other}"
            ),
            &format!("use `message = \"{}B\"` at most, or a larger MTU", mtu.saturating_sub(HEADERS)),
        ));
    }
    let wait = if table.rate.is_some() { Wait::Blocked } else { Wait::Paused };
    Flows::open(own, table.flows(), message, wait)
        .map_err(|error| refuse(format!("network: sockets at {own}: {error}"), ""))
}

/// Gives this environment its address, if the environment was made for the probe and ends with it: a guest.
fn address(own: Ipv4Addr, error: io::Error) -> io::Result<()> {
    // The session is PID 1, and so the whole environment.
    if std::os::unix::process::parent_id() != 1 || error.kind() != io::ErrorKind::AddrNotAvailable {
        return Err(error);
    }
    let interfaces =
        std::fs::read_dir("/sys/class/net")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let Some(interface) = interfaces.min_by_key(|name| name == "lo").filter(|name| name != "lo") else {
        return Err(io::Error::new(error.kind(), "it has no interface but its loopback"));
    };
    sys::give_address(&interface, own)?;
    sys::raise(&interface)
}

/// The largest packet that goes from here to there in one piece, as far as this end knows.
fn mtu(own: Ipv4Addr, other: Ipv4Addr) -> io::Result<u64> {
    let socket = UdpSocket::bind((own, 0))?;
    // Nothing is sent; the discard port is any.
    socket.connect((other, 9))?;
    Ok(rustix::net::sockopt::ip_mtu(&socket)?.into())
}

fn refuse(reason: String, hint: &str) -> Refusal {
    Refusal { reason, hint: (!hint.is_empty()).then(|| hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use tactus_model::size::Bytes;

    use super::*;

    fn refusal(table: &Table, link: Link) -> String {
        let finish = sys::shared::<Shared>(1).unwrap().first().unwrap();
        let refusal = work(table, Some(link), Pace::default(), finish).err().unwrap();
        format!("{}; {}", refusal.reason, refusal.hint.unwrap_or_default())
    }

    fn link(own: [u8; 4], port: u16) -> Link {
        let other = Ipv4Addr::LOCALHOST;
        Link { end: LinkEnd::Far, own: own.into(), other, port, machine: None }
    }

    #[test]
    fn a_port_that_is_taken_and_an_address_of_somebody_else_are_refused_with_the_reason() {
        let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let words = refusal(&Table::default(), link([127, 0, 0, 1], port));
        assert!(words.contains(&format!("port {port}")) && words.contains("port = ..."), "{words}");
        let words = refusal(&Table::default(), link([192, 0, 2, 1], 0));
        assert!(words.contains("from 192.0.2.1") && words.contains("ip address"), "{words}");
    }

    #[test]
    fn a_message_that_the_way_does_not_take_in_one_piece_is_refused_with_both_sizes() {
        let here = Ipv4Addr::LOCALHOST;
        let most = mtu(here, here).unwrap() - HEADERS;
        let table = |bytes| Table { message: Some(Bytes(bytes)), ..Table::default() };
        assert!(open(&table(most.min(65_507)), link([127, 0, 0, 1], 0)).is_ok());
        let words = refusal(&table(most + 1), link([127, 0, 0, 1], 0));
        assert!(words.contains(&format!("MTU of {}", most + HEADERS)), "{words}");
    }
}
