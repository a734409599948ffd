//! The document of `tactus report --json`, for people and programs.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use tactus_model::bundle::Contents;
use tactus_model::text::LAVA_SIGNAL;

use super::RenderError;
use crate::document;
use crate::units::drives_a_terminal;

/// The document as indented JSON.
///
/// # Errors
/// When a number has no form in JSON, which a bundle that was read from JSON cannot hold.
pub fn render(contents: &Contents) -> Result<String, RenderError> {
    Ok(text(&document(contents))?)
}

/// A value as indented JSON that is safe to show on a terminal: characters that control one are escaped.
///
/// # Errors
/// See [`render`].
pub fn text(value: &impl Serialize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Escaped(PrettyFormatter::new())))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| serde_json::Error::io(io::Error::other(error)))
}

/// Like the pretty formatter, but escapes characters with an effect where they are shown: `\u202e`.
struct Escaped(PrettyFormatter<'static>);

impl Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut from = 0;
        for (at, c) in fragment.char_indices().filter(|(at, c)| escaped(&fragment[*at..], *c)) {
            // All of them lie below U+10000.
            write!(writer, "{}\\u{:04x}", &fragment[from..at], u32::from(c))?;
            from = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[from..])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

/// Whether a character drives a terminal, or begins an order to a CI server (`##vso[`, `<LAVA_SIGNAL_`).
fn escaped(rest: &str, c: char) -> bool {
    drives_a_terminal(c) || rest.starts_with("##") || rest.starts_with(LAVA_SIGNAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_escaped_and_says_the_same_to_a_program() {
        let said = ["a\u{1b}[31m\u{9b}b\u{7f}", "\u{202e}c\u{2069}", "\u{e9}\u{4e2d}"];
        let text = text(&said).unwrap();
        assert_eq!(
            text,
            "[\n  \"a\\u001b[31m\\u009bb\\u007f\",\n  \"\\u202ec\\u2069\",\n  \"\u{e9}\u{4e2d}\"\n]\n"
        );
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), said);
    }

    #[test]
    fn what_a_ci_server_obeys_is_escaped_and_says_the_same_to_a_program() {
        let said = ["##vso[task.prependpath]/tmp", "a ###[error]", "# 1 #", "a <LAVA_SIGNAL_TESTCASE x>"];
        let text = text(&said).unwrap();
        assert!(!text.contains("##") && !text.contains("<LAVA_") && text.contains("\\u0023#vso["), "{text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), said);
    }
}
