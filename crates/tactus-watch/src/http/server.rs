//! Connections are taken, heard and answered.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::{Answer, Body, Events, Next, event};
use super::connections::{Connections, Place};
use super::request::Request;

/// Most bytes of a request's head.
const HEAD: usize = 8 << 10;
/// How long a head may take.
const HEARING: Duration = Duration::from_secs(5);
/// How long an answer may take to be sent, if no other client wants the place.
const SENDING: Duration = Duration::from_secs(60);
/// How long it may take to send nothing of it.
const STALLED: Duration = Duration::from_secs(5);
/// How often a client that follows hears at least that there is nothing new.
const BEAT: Duration = Duration::from_secs(15);

/// The answers of a server.
pub trait Site: Send + Sync + 'static {
    /// The answer to a `GET`. Several threads ask at a time.
    fn answer(&self, request: &Request) -> Answer;
}

/// Answers in threads of this name, on the CPUs of the caller, until the program ends. A server that listens
/// only on this machine answers only requests with a loopback name.
///
/// # Errors
/// When the thread cannot be started.
pub fn listen(listener: TcpListener, name: &'static str, site: impl Site) -> io::Result<SocketAddr> {
    let bound = listener.local_addr()?;
    let (site, here) = (Arc::new(site), bound.ip().is_loopback());
    std::thread::Builder::new().name(name.into()).spawn(move || {
        let connections = Arc::new(Connections::default());
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // For example, no descriptor is left: one may be freed.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let Some(place) = connections.take(stream) else { continue };
            let site = Arc::clone(&site);
            let answers = move || {
                let _ = answer(&place, &*site, here);
            };
            // Where no thread can be had, the connection is closed.
            let _ = std::thread::Builder::new().name(name.into()).spawn(answers);
        }
    })?;
    Ok(bound)
}

fn answer(place: &Place, site: &dyn Site, here: bool) -> io::Result<()> {
    let request = head(place.stream())?;
    place.asked()?;
    let given = match &request {
        None => Answer::refusal(400, "the request is not understood"),
        // A page of a stranger's, whose name leads here since a moment ago, must not read it.
        Some(request) if here && !request.is_for_here() => {
            Answer::refusal(403, "only requests that name this machine are answered")
        }
        Some(request) if !matches!(request.method.as_str(), "GET" | "HEAD") => {
            Answer::refusal(405, "GET alone").with("Allow", "GET, HEAD")
        }
        Some(request) => site.answer(request),
    };
    let is_head = request.is_some_and(|request| request.method == "HEAD");
    let follows = matches!(given.body, Body::Events(_)) && !is_head;
    let given = match follows && !place.follows()? {
        true => Answer::refusal(503, "too many pages are following already: close another page")
            .with("Retry-After", "10"),
        false => given,
    };
    if matches!(given.body, Body::Whole(_)) || is_head {
        place.sent()?;
    }
    let until = Instant::now() + SENDING;
    write(place.stream(), given.head().as_bytes(), until)?;
    match given.body {
        _ if is_head => Ok(()),
        Body::Whole(bytes) => write(place.stream(), &bytes, until),
        Body::Events(events) => follow(place.stream(), events),
    }
}

/// Sends events until there are no more, or the client has gone.
fn follow(mut stream: &TcpStream, mut events: Box<dyn Events>) -> io::Result<()> {
    let mut last = Instant::now();
    loop {
        let said = match events.next() {
            Next::Event(name, data) => event(name, &data),
            Next::Nothing if last.elapsed() >= BEAT => ":\n\n".to_owned(),
            Next::Nothing => String::new(),
            Next::End => return Ok(()),
        };
        if !said.is_empty() {
            write(stream, said.as_bytes(), Instant::now() + STALLED)?;
            last = Instant::now();
        }
        // A client that follows has nothing more to say; reading shows when it has gone.
        stream.set_read_timeout(Some(Duration::from_millis(1)))?;
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Err(error) if !is_nothing_yet(&error) => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The head of a request; `None` if it is invalid or too long.
fn head(mut stream: &TcpStream) -> io::Result<Option<Request>> {
    let until = Instant::now() + HEARING;
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
        match Request::parse(&bytes) {
            Err(()) => return Ok(None),
            Ok(Some(request)) => return Ok(Some(request)),
            Ok(None) if bytes.len() >= HEAD => return Ok(None),
            Ok(None) => {}
        }
    }
}

/// Writes all of it. Fails when the time is over, or when the client accepts no bytes for too long.
fn write(mut stream: &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?.min(STALLED)))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.flush()
}

/// The time left until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
