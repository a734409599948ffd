//! A server for few clients: `GET` of few paths, and streams of events (server-sent events). It has few
//! connections at a time, and short requests. A slow or silent client is cut when another one comes. A
//! [`Site`] makes the answers.

mod answer;
mod connections;
mod request;
mod server;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

pub use answer::{Answer, Body, Events, Next};
pub use request::Request;
pub use server::{Site, listen};

use crate::metrics::{CONTENT_TYPE, text};
use crate::shared::Shared;

/// Where is to be listened: `ADDRESS:PORT`; without an address (`:9464`, `9464`) on this machine alone.
///
/// # Errors
/// In words, when it says no place.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let number =
        || port.parse::<u16>().map_err(|_| format!("`{text}` is not ADDRESS:PORT, as in 127.0.0.1:9464"));
    match host {
        "" | "localhost" => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), number()?)),
        _ => text
            .parse()
            .map_err(|_| format!("`{text}`: write the address in numbers, as in 0.0.0.0:9464 or [::1]:9464")),
    }
}

/// Serves the metrics of a run in separate threads, on the CPUs of the caller, until the program ends.
///
/// # Errors
/// When it cannot listen at this address.
pub fn serve(at: SocketAddr, shared: Shared, version: &'static str) -> io::Result<SocketAddr> {
    listen(TcpListener::bind(at)?, "metrics", Metrics { shared, version })
}

/// `/metrics`, and nothing else.
struct Metrics {
    shared: Shared,
    version: &'static str,
}

impl Site for Metrics {
    fn answer(&self, request: &Request) -> Answer {
        match request.path.as_str() {
            "/metrics" => Answer::text(200, CONTENT_TYPE, text(&self.shared.lock(), self.version)),
            _ => Answer::refusal(404, "there is only /metrics"),
        }
    }
}

#[cfg(test)]
mod tests;
