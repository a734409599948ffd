//! Names of bundles in addresses (RFC 3986): any bytes, of which all but letters, digits and `-._~` are written `%HH`.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// A name as it stands in an address.
pub fn encoded(name: &OsStr) -> String {
    let mut text = String::new();
    for byte in name.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(*byte));
            }
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// The name in an address; `None` if it has no valid one.
pub fn decoded(text: &str) -> Option<OsString> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_as_it_was() {
        let all: Vec<u8> = (0..=255).collect();
        for name in [&b"first"[..], b"a b/..%2e?x=1#y", "\u{202e}\u{e9}".as_bytes(), &all, b""] {
            let text = encoded(OsStr::from_bytes(name));
            assert!(
                text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)),
                "{text}"
            );
            assert_eq!(decoded(&text).unwrap().as_bytes(), name);
        }
    }

    #[test]
    fn what_is_half_a_byte_is_no_name() {
        for text in ["%", "a%2", "%zz", "%+1"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
