//! `GET /metrics`, and nothing else: few connections at a time, short requests, and who is slow is cut.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use httparse::{Request, Status};

use crate::metrics::{CONTENT_TYPE, text};
use crate::shared::Shared;

/// Most connections at a time; more are closed at once.
const CONNECTIONS: usize = 8;
/// Most bytes of a request's head.
const HEAD: usize = 8 << 10;
/// Most headers of one.
const HEADERS: usize = 64;
/// How long a request and its answer may take together.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where is to be listened: `ADDRESS:PORT`; without an address (`:9464`, `9464`) on this machine alone.
///
/// # Errors
/// In words, when it says no place.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let number =
        || port.parse::<u16>().map_err(|_| format!("`{text}` is no ADDRESS:PORT, as in 127.0.0.1:9464"));
    match host {
        "" | "localhost" => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), number()?)),
        _ => text.parse().map_err(|_| {
            format!("`{text}`: an address is written in numbers, as in 0.0.0.0:9464 or [::1]:9464")
        }),
    }
}

/// Answers in threads of its own, on the CPUs of who calls this, until the program ends.
///
/// # Errors
/// When nobody can listen there.
pub fn serve(at: SocketAddr, shared: Shared, version: &'static str) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(at)?;
    let bound = listener.local_addr()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        let open = Arc::new(AtomicUsize::new(0));
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // No descriptor is left, say: somebody may give one back.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
                open.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (shared, own) = (shared.clone(), Open(Arc::clone(&open)));
            let answers = move || {
                let _own = own;
                let _ = answer(stream, &shared, version, bound);
            };
            // Where no thread can be had, the connection is closed.
            let _ = std::thread::Builder::new().name("metrics".into()).spawn(answers);
        }
    })?;
    Ok(bound)
}

/// One of the connections that are open.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(mut stream: TcpStream, shared: &Shared, version: &str, bound: SocketAddr) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let (code, kind, body) = match head(&mut stream, until)? {
        None => (400, "text/plain", "no request that is understood\n".to_owned()),
        Some(head) => match head.refused(bound) {
            Some((code, why)) => (code, "text/plain", format!("{why}\n")),
            None => (200, CONTENT_TYPE, text(&shared.lock(), version)),
        },
    };
    let words = match code {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        _ => "Method Not Allowed",
    };
    let length = body.len();
    let allow = if code == 405 { "Allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {code} {words}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}\
         X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    write(&mut stream, head.as_bytes(), until)?;
    write(&mut stream, body.as_bytes(), until)
}

/// What is asked.
struct Head {
    method: String,
    path: String,
    host: Option<String>,
}

impl Head {
    /// Why it gets no metrics.
    fn refused(&self, bound: SocketAddr) -> Option<(u16, &'static str)> {
        if bound.ip().is_loopback() && !self.host.as_deref().is_none_or(is_here) {
            // A page of a stranger's, whose name leads here since a moment ago, must not read it.
            return Some((403, "only for who asks for this machine by its own name"));
        }
        match (self.method.as_str(), self.path.split('?').next()) {
            ("GET", Some("/metrics")) => None,
            (_, Some("/metrics")) => Some((405, "GET alone")),
            _ => Some((404, "there is /metrics alone")),
        }
    }
}

/// Whether a `Host` names the machine that is asked: by a number, or `localhost`.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => name,
        None => host.split(':').next().unwrap_or(host),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The head of a request; none: it is none, or too long.
fn head(stream: &mut TcpStream, until: Instant) -> io::Result<Option<Head>> {
    let mut bytes = Vec::with_capacity(1024);
    let mut part = [0; 1024];
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        let count = match stream.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&part[..count]);
        match parsed(&bytes) {
            Err(()) => return Ok(None),
            Ok(Some(head)) => return Ok(Some(head)),
            Ok(None) if bytes.len() >= HEAD => return Ok(None),
            Ok(None) => {}
        }
    }
}

/// A head as far as it is there; `Ok(None)`: there is more to come.
fn parsed(bytes: &[u8]) -> Result<Option<Head>, ()> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Err(_) => Err(()),
        Ok(Status::Partial) => Ok(None),
        Ok(Status::Complete(_)) => {
            let host = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
            Ok(Some(Head {
                method: request.method.unwrap_or_default().to_owned(),
                path: request.path.unwrap_or_default().to_owned(),
                host: host.map(|header| String::from_utf8_lossy(header.value).into_owned()),
            }))
        }
    }
}

/// Writes all of it, or fails when the time is over.
fn write(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.flush()
}

/// What is left until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests;
