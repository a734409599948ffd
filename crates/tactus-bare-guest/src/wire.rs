//! Frames: how messages pass the serial line (docs/design/wire.md).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use serde_json::Value;

use crate::json::quoted;

static CRC32: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

/// The longest frame, in bytes.
const LONGEST: usize = 512;
/// The bytes of a frame around its piece of a message, at most.
const AROUND: usize = r#"{"q":18446744073709551615,"p":[99999,99999],"x":"","c":"89abcdef"}"#.len() + 1;
/// The longest message that is heard, in bytes.
const LONGEST_HEARD: usize = 1 << 20;

/// Both directions of the conversation.
#[derive(Default)]
pub struct Wire {
    next: u64,
    line: Vec<u8>,
    parts: String,
    part: u64,
}

impl Wire {
    /// The bytes of a message.
    pub fn encode(&mut self, message: &str) -> Vec<u8> {
        if message.len() + AROUND < LONGEST {
            let line = format!(r#"{{"q":{},"m":{message}"#, self.next);
            return self.seal(line);
        }
        // The guest's messages are ASCII: a cut never splits a character, and a quote takes two bytes at most.
        let pieces = message.as_bytes().chunks((LONGEST - AROUND) / 2);
        let (of, mut bytes) = (pieces.len(), Vec::new());
        for (number, piece) in pieces.enumerate() {
            let piece = quoted(core::str::from_utf8(piece).unwrap_or_default());
            let line = format!(r#"{{"q":{},"p":[{number},{of}],"x":{piece}"#, self.next);
            bytes.extend(self.seal(line));
        }
        bytes
    }

    /// Ends a frame with its checksum.
    fn seal(&mut self, mut line: String) -> Vec<u8> {
        self.next += 1;
        let crc = CRC32.checksum(line.as_bytes());
        line += &format!(",\"c\":\"{crc:08x}\"}}\n");
        line.into_bytes()
    }

    /// Takes a byte, and returns the message that it completed.
    pub fn hear(&mut self, byte: u8) -> Option<Value> {
        if byte != b'\n' {
            // No valid frame is longer than this: a longer line is noise, and its end will not parse as a frame.
            if self.line.len() < LONGEST {
                self.line.push(byte);
            }
            return None;
        }
        let line = core::mem::take(&mut self.line);
        let line = core::str::from_utf8(&line).ok()?.trim_end();
        let (said, crc) = line.strip_suffix("\"}")?.rsplit_once(r#","c":""#)?;
        if u32::from_str_radix(crc, 16).ok()? != CRC32.checksum(said.as_bytes()) {
            return None;
        }
        let mut frame: Value = serde_json::from_str(line).ok()?;
        if let Some(message) = frame.get_mut("m") {
            return Some(message.take());
        }
        let (number, of) = (frame["p"][0].as_u64()?, frame["p"][1].as_u64()?);
        if number == 0 {
            self.parts.clear();
            self.part = 0;
        }
        if number != self.part || self.parts.len() > LONGEST_HEARD {
            return None;
        }
        self.parts.push_str(frame["x"].as_str()?);
        self.part += 1;
        if self.part < of {
            return None;
        }
        serde_json::from_str(&core::mem::take(&mut self.parts)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(bytes: &[u8]) -> Vec<Value> {
        let mut wire = Wire::default();
        bytes.iter().filter_map(|byte| wire.hear(*byte)).collect()
    }

    #[test]
    fn a_message_of_any_length_comes_back_in_frames_that_are_short_enough() {
        for numbers in [1, 60, 5000] {
            let message =
                format!(r#"{{"t":"tick","by":"\"","counts":{:?}}}"#, (0..numbers).collect::<Vec<_>>());
            let bytes = Wire::default().encode(&message);
            assert!(bytes.split(|byte| *byte == b'\n').all(|frame| frame.len() < LONGEST), "{numbers}");
            assert_eq!(hear(&bytes), [serde_json::from_str::<Value>(&message).unwrap()], "{numbers}");
        }
    }

    #[test]
    fn what_is_no_frame_or_was_hurt_on_its_way_is_not_heard() {
        let good = Wire::default().encode(r#"{"t":"go"}"#);
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            assert!(hear(&bytes).is_empty(), "{at}: {}", String::from_utf8_lossy(&bytes));
        }
        let long = [b"noise\n\xff\xfe\n{}\n".as_slice(), &[b'x'; 2 * LONGEST], b"\n", &good].concat();
        assert_eq!(hear(&long).len(), 1);
    }
}
