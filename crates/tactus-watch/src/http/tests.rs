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
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS + 1));
    assert!(asked(at, many.as_bytes()).starts_with("HTTP/1.1 400 "));
    // As many as there may be say nothing: the next one is turned away, and when they are cut another one is heard.
    let silent: Vec<TcpStream> = (0..CONNECTIONS).map(|_| TcpStream::connect(at).unwrap()).collect();
    let until = Instant::now() + Duration::from_secs(60);
    let request = b"GET /metrics HTTP/1.1\r\n\r\n";
    let mut turned_away = false;
    loop {
        let answer = asked(at, request);
        turned_away |= answer.is_empty();
        if turned_away && answer.starts_with("HTTP/1.1 200 ") {
            break;
        }
        assert!(Instant::now() < until, "silent clients hold it up");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(silent);
}
