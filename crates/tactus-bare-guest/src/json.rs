//! JSON as it is said: an object is written member by member, once, into its text. (A tree of values that is printed
//! afterwards takes a sixth of the image.)

use alloc::string::String;
use core::fmt::{Display, Write};

/// An object that is being written.
pub struct Object(String);

impl Object {
    /// One without members.
    pub fn new() -> Self {
        Self("{".into())
    }

    /// A message of the wire, by its word.
    pub fn message(word: &str) -> Self {
        Self::new().text("t", word)
    }

    /// A member that is a number, or other JSON.
    pub fn json(mut self, name: &str, value: impl Display) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        let _ = write!(self.0, "\"{name}\":{value}");
        self
    }

    /// A member that is a text.
    pub fn text(self, name: &str, text: &str) -> Self {
        self.json(name, quoted(text))
    }

    /// A member that is a list of numbers.
    pub fn numbers(self, name: &str, numbers: &[u64]) -> Self {
        let mut list = String::from("[");
        for number in numbers {
            let _ = write!(list, "{}{number}", if list.len() > 1 { "," } else { "" });
        }
        list.push(']');
        self.json(name, list)
    }

    /// All of it.
    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A text between quotation marks. Control characters are left out: no text of this guest contains any.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars().filter(|char| *char >= ' ') {
        if matches!(char, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_json() {
        let inner = Object::new().json("low", "null").end();
        let text = Object::message("tick")
            .numbers("counts", &[1, 2])
            .json("now", inner)
            .text("by", "a \"\\\0\n")
            .end();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"t": "tick", "counts": [1, 2], "now": {"low": null}, "by": "a \"\\"})
        );
        assert_eq!(Object::new().numbers("counts", &[]).end(), r#"{"counts":[]}"#);
    }
}
