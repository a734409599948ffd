//! The head of a request, with the parts that a server needs.

use std::net::IpAddr;

use httparse::{Header, Status};

/// Most headers of a request.
pub(super) const HEADERS: usize = 64;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// As it was sent: `GET`.
    pub method: String,
    /// The path as it was sent, without what stands behind a question mark.
    pub path: String,
    query: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// A head as far as it has arrived; `Ok(None)`: more is to come; `Err`: it is invalid.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, ()> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Err(_) => Err(()),
            Ok(Status::Partial) => Ok(None),
            Ok(Status::Complete(_)) => {
                let target = request.path.unwrap_or_default();
                let (path, query) = target.split_once('?').unwrap_or((target, ""));
                let text = |header: &Header<'_>| {
                    (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
                };
                Ok(Some(Self {
                    method: request.method.unwrap_or_default().to_owned(),
                    path: path.to_owned(),
                    query: query.to_owned(),
                    headers: request.headers.iter().map(text).collect(),
                }))
            }
        }
    }

    /// The first header of this name, which is written in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value for this name after the question mark, as it was sent; the first, if there are two.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| match pair.split_once('=') {
            Some((own, value)) => (own == name).then_some(value),
            None => (pair == name).then_some(""),
        })
    }

    /// All cookies of this name. There may be several, of other paths and domains.
    pub fn cookies<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let all =
            self.headers.iter().filter(|(own, _)| own == "cookie").flat_map(|(_, value)| value.split(';'));
        all.filter_map(move |pair| {
            pair.trim().split_once('=').filter(|(own, _)| *own == name).map(|(_, value)| value)
        })
    }

    /// Whether `Host` names this machine: by a loopback address, or `localhost`. A request without it is not
    /// from a browser.
    pub(super) fn is_for_here(&self) -> bool {
        self.headers.iter().filter(|(name, _)| name == "host").all(|(_, host)| is_here(host))
    }
}

/// Whether a `Host` is this machine. Only a port may follow its name.
fn is_here(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(parts) => parts,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request {
        Request::parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_head_has_a_path_what_is_behind_it_and_headers_of_any_case() {
        let request =
            request("GET /a/b?x=1&y&x=2 HTTP/1.1\r\nHOST: here\r\nCookie: a=1; b=2\r\nCookie: b=3\r\n\r\n");
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/a/b"));
        assert_eq!([request.query("x"), request.query("y"), request.query("z")], [Some("1"), Some(""), None]);
        assert_eq!((request.header("host"), request.header("accept")), (Some("here"), None));
        assert_eq!(request.cookies("b").collect::<Vec<_>>(), ["2", "3"]);
        assert_eq!(request.cookies("c").count(), 0);
    }

    #[test]
    fn what_is_no_head_is_refused_and_a_part_of_one_is_waited_for() {
        assert!(Request::parse(b"GET / HT").unwrap().is_none());
        assert!(Request::parse(b"").unwrap().is_none());
        assert!(Request::parse(b"\x16\x03\x01 hello\r\n\r\n").is_err());
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS + 1));
        assert!(Request::parse(many.as_bytes()).is_err());
    }

    #[test]
    fn two_hosts_are_both_to_be_here() {
        assert!(request("GET / HTTP/1.0\r\n\r\n").is_for_here());
        assert!(request("GET / HTTP/1.1\r\nHost: localhost:1\r\nHost: [::1]\r\n\r\n").is_for_here());
        for here in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:9000", "[::1]", "[::1]:9000"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "[::1].evil.com",
            "[::1]evil.com",
            "[::1]:80.evil.com",
            "localhost:x",
            "localhost.evil.com",
            "[::2]",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
        assert!(!request("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").is_for_here());
    }
}
