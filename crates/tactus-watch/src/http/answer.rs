//! The answers of the server.

use std::fmt::Write as _;
use std::sync::Arc;

/// An answer.
pub struct Answer {
    /// The status.
    pub code: u16,
    /// The media type.
    pub kind: &'static str,
    /// Headers beside those that every answer has.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Body,
}

/// The body of an answer.
pub enum Body {
    /// All bytes, shared between answers that are sent at the same time.
    Whole(Arc<[u8]>),
    /// The events from now on.
    Events(Box<dyn Events>),
}

/// Events for a client that follows them.
pub trait Events: Send {
    /// Waits until something is new, for about a second at most: between two calls the server notices a
    /// client that has gone.
    fn next(&mut self) -> Next;
}

/// The next event.
pub enum Next {
    /// One, with its name and its data.
    Event(&'static str, String),
    /// Nothing new.
    Nothing,
    /// There will be no more.
    End,
}

impl Answer {
    /// A text.
    #[must_use]
    pub fn text(code: u16, kind: &'static str, body: String) -> Self {
        Self::bytes(code, kind, body.into_bytes().into())
    }

    /// Bytes that others may hold as well.
    #[must_use]
    pub const fn bytes(code: u16, kind: &'static str, body: Arc<[u8]>) -> Self {
        Self { code, kind, headers: Vec::new(), body: Body::Whole(body) }
    }

    /// A sentence that explains the refusal.
    #[must_use]
    pub fn refusal(code: u16, why: &str) -> Self {
        Self::text(code, "text/plain; charset=utf-8", format!("{why}\n"))
    }

    /// The events from now on.
    #[must_use]
    pub fn events(events: impl Events + 'static) -> Self {
        Self {
            code: 200,
            kind: "text/event-stream",
            headers: Vec::new(),
            body: Body::Events(Box::new(events)),
        }
    }

    /// The same with a header. Both are one line, and never input from outside.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The head, with the empty line behind it. A client must not store the answer, or show it as another
    /// type. A page of another site must not read it, and a linked site must not learn its address.
    pub(super) fn head(&self) -> String {
        let (code, words, kind) = (self.code, words(self.code), self.kind);
        let mut head = format!("HTTP/1.1 {code} {words}\r\nContent-Type: {kind}\r\n");
        if let Body::Whole(bytes) = &self.body {
            let _ = write!(head, "Content-Length: {}\r\n", bytes.len());
        }
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head + "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
                Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n"
    }
}

/// An event as it is sent.
pub(super) fn event(name: &str, data: &str) -> String {
    let mut sent = format!("event: {name}\n");
    for line in data.lines() {
        let _ = writeln!(sent, "data: {line}");
    }
    sent + "\n"
}

const fn words(code: u16) -> &'static str {
    match code {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_several_lines_is_one_event() {
        assert_eq!(event("state", "a\nb\r\n\nc"), "event: state\ndata: a\ndata: b\ndata: \ndata: c\n\n");
        assert_eq!(event("end", ""), "event: end\n\n");
    }

    #[test]
    fn a_head_ends_with_an_empty_line_and_has_each_header_once() {
        let head = Answer::refusal(404, "none").with("Allow", "GET").head();
        assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(head.contains("Content-Length: 5\r\n") && head.contains("\r\nAllow: GET\r\n"), "{head}");
    }
}
