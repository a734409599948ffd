use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::state::tests::two_at_once;

fn server() -> SocketAddr {
    serve(address(":0").unwrap(), Shared::new(two_at_once(3)), "1.2.3").unwrap()
}

fn asked(at: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    // A server that has heard enough may close before all is sent.
    let _ = stream.write_all(request);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn an_address_without_a_host_is_this_machine_alone() {
    for text in [":9464", "9464", "localhost:9464", "127.0.0.1:9464"] {
        assert_eq!(address(text).unwrap().to_string(), "127.0.0.1:9464", "{text}");
    }
    assert_eq!(address("[::1]:1").unwrap().to_string(), "[::1]:1");
    assert_eq!(address("0.0.0.0:80").unwrap().to_string(), "0.0.0.0:80");
    for text in ["", ":", "x", ":99999", "host:80", "1.2.3.4", "127.0.0.1:x", "::1:80:x"] {
        assert!(address(text).is_err(), "{text}");
    }
}

#[test]
fn metrics_are_there_for_get_and_nothing_else_is() {
    let at = server();
    let metrics = asked(at, b"GET /metrics HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(metrics.contains(CONTENT_TYPE) && metrics.ends_with("# EOF\n"));
    assert!(asked(at, b"GET /metrics?x=1 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    assert!(asked(at, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let head = asked(at, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(asked(at, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(asked(at, b"GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(asked(at, b"\x16\x03\x01 hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

#[test]
fn a_page_of_a_strangers_whose_name_leads_here_reads_nothing() {
    let at = server();
    for host in ["evil.example", "evil.example:9464", "10.0.0.1", "", "127.0.0.1.evil.example", "[::1"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(asked(at, request.as_bytes()).starts_with("HTTP/1.1 403 "), "{host}");
    }
    for host in ["127.0.0.1:9464", "[::1]:9464", "LOCALHOST", "127.9.9.9"] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(asked(at, request.as_bytes()).starts_with("HTTP/1.1 200 "), "{host}");
    }
}

#[test]
fn who_sends_too_much_or_nothing_is_cut_and_others_are_answered() {
    let at = server();
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(1 << 20));
    let answer = asked(at, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(request::HEADERS + 1));
    assert!(asked(at, many.as_bytes()).starts_with("HTTP/1.1 400 "));
}

#[test]
fn who_says_nothing_keeps_nobody_out() {
    let at = server();
    let request = b"GET /metrics HTTP/1.1\r\n\r\n";
    let mut silent: Vec<TcpStream> =
        (0..20 * connections::MOST).map(|_| TcpStream::connect(at).unwrap()).collect();
    // Half a head is not more than none.
    silent.iter_mut().for_each(|stream| drop(stream.write_all(b"GET /metr")));
    for _ in 0..2 {
        assert!(asked(at, request).starts_with("HTTP/1.1 200 "), "the first try is answered");
    }
    assert_eq!(silent[0].read(&mut [0; 1]).unwrap_or(0), 0, "the first one had to go");
}

/// Sends the same event until the receiver is gone.
struct Told(std::sync::mpsc::Sender<()>);

impl Events for Told {
    fn next(&mut self) -> Next {
        std::thread::sleep(std::time::Duration::from_millis(10));
        match self.0.send(()) {
            Ok(()) => Next::Event("state", "a\nb".into()),
            Err(_) => Next::End,
        }
    }
}

struct Telling(std::sync::mpsc::Sender<()>);

impl Site for Telling {
    fn answer(&self, request: &Request) -> Answer {
        match request.path.as_str() {
            "/events" => Answer::events(Told(self.0.clone())),
            _ => Answer::text(200, "text/plain", "x".repeat(1 << 24)),
        }
    }
}

/// A server that tells something, until the other end of the channel is dropped.
fn telling() -> (SocketAddr, std::sync::mpsc::Receiver<()>) {
    let (sender, told) = std::sync::mpsc::channel();
    (listen(TcpListener::bind("127.0.0.1:0").unwrap(), "telling", Telling(sender)).unwrap(), told)
}

fn follow(at: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\n\r\n").unwrap();
    let mut begins = [0; 12];
    stream.read_exact(&mut begins).unwrap();
    let begins = String::from_utf8_lossy(&begins).into_owned();
    (stream, begins)
}

#[test]
fn who_follows_takes_no_place_of_who_asks_and_too_many_are_told_so() {
    let (at, _told) = telling();
    let mut followers: Vec<_> = (0..connections::MOST_FOLLOWERS).map(|_| follow(at)).collect();
    assert!(followers.iter().all(|(_, begins)| begins == "HTTP/1.1 200"), "{followers:?}");
    assert_eq!(follow(at).1, "HTTP/1.1 503");
    assert!(asked(at, b"HEAD / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"), "others are answered");
    // A client that goes makes room for another; the server notices it with the next event.
    drop(followers.pop());
    while follow(at).1 != "HTTP/1.1 200" {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn events_go_on_until_there_are_no_more() {
    let (at, told) = telling();
    let (mut stream, _) = follow(at);
    told.iter().take(3).for_each(drop);
    drop(told);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("Content-Type: text/event-stream\r\n") && !rest.contains("Content-Length"),
        "{rest}"
    );
    assert!(rest.matches("event: state\ndata: a\ndata: b\n\n").count() >= 3, "{rest}");
}

#[test]
fn who_takes_nothing_of_what_he_asked_for_keeps_nobody_out() {
    let (at, _told) = telling();
    let lazy: Vec<TcpStream> = (0..connections::MOST)
        .map(|_| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(b"GET /large HTTP/1.1\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let request = b"HEAD / HTTP/1.1\r\n\r\n";
    while !asked(at, request).starts_with("HTTP/1.1 200 ") {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(lazy);
}
