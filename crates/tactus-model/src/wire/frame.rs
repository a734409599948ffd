//! Frames: how messages pass a pipe, a virtio port or a UART that a kernel also prints on.
//!
//! A frame is one line of at most [`MAX_FRAME`] bytes, itself valid JSON:
//!
//! ```text
//! {"q":17,"m":{...},"c":"89abcdef"}            a whole message
//! {"q":18,"p":[0,3],"x":"...","c":"89abcdef"}  a part of one that is longer
//! ```
//!
//! `q` counts frames from 0. `c` is the CRC-32 (IEEE, eight hex digits) of the line up to `,"c":`. Parts of a message
//! have successive `q`. Other lines are foreign text. A gap in `q` counts as lost frames, and a message that lost a
//! part is lost as a whole.

use crc::{CRC_32_ISO_HDLC, Crc, Table};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The CRC-32 of IEEE 802.3, with the table of a KiB: one of sixteen would be a sixtieth of the probe.
static CRC32: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

/// The longest frame, in bytes, with its newline.
pub const MAX_FRAME: usize = 512;

/// The longest message that is put together from parts, in bytes; a longer one is refused as damaged. The longest that
/// a probe sends is a tick with samples in every bucket of both histograms, some 800 KB. Its reader may temporarily
/// take thirty times that memory.
pub const MAX_MESSAGE: usize = 1024 * 1024;

/// The longest line of foreign text that is kept, in bytes.
const MAX_FOREIGN: usize = 4096;

const TAIL: usize = r#","c":"89abcdef"}"#.len();

/// Writes messages as frames.
#[derive(Debug, Default)]
pub struct Encoder {
    next: u64,
}

impl Encoder {
    /// An encoder whose first frame has number 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The frames of one message, one after the other.
    ///
    /// # Errors
    /// When the message cannot be written as JSON.
    pub fn encode<M: Serialize>(&mut self, message: &M) -> Result<Vec<u8>, serde_json::Error> {
        let json = serde_json::to_string(message)?;
        let head = format!(r#"{{"q":{},"m":"#, self.next);
        if head.len() + json.len() + TAIL < MAX_FRAME {
            return Ok(self.seal(head + &json));
        }
        let chunks = chunks(
            &json,
            MAX_FRAME - TAIL - r#"{"q":18446744073709551615,"p":[99999,99999],"x":"""#.len() - 1,
        );
        let mut frames = Vec::with_capacity(json.len() * 5 / 4);
        for (index, chunk) in chunks.iter().enumerate() {
            let text = serde_json::to_string(chunk)?;
            let line = format!(r#"{{"q":{},"p":[{index},{}],"x":{text}"#, self.next, chunks.len());
            frames.extend(self.seal(line));
        }
        Ok(frames)
    }

    fn seal(&mut self, mut line: String) -> Vec<u8> {
        self.next += 1;
        let crc = CRC32.checksum(line.as_bytes());
        line.push_str(&format!(",\"c\":\"{crc:08x}\"}}\n"));
        line.into_bytes()
    }
}

/// Cuts `json` so that each piece, escaped as a JSON string, has at most `room` bytes.
fn chunks(json: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, c) in json.char_indices() {
        let width = match c {
            '"' | '\\' => 2,
            c if (c as u32) < 0x20 => 6,
            c => c.len_utf8(),
        };
        if used + width > room {
            pieces.push(&json[start..at]);
            (start, used) = (at, 0);
        }
        used += width;
    }
    pieces.push(&json[start..]);
    pieces
}

/// The items that a reader finds in its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<M> {
    /// A message.
    Message(M),
    /// A line that is not a frame: a message of the kernel, or damage.
    Foreign(String),
    /// Frames that were sent and did not arrive.
    Lost(u64),
    /// A frame that arrived whole and says nothing this version knows.
    Unknown(String),
}

#[derive(serde::Deserialize)]
struct Frame<'a> {
    q: u64,
    #[serde(borrow)]
    m: Option<&'a serde_json::value::RawValue>,
    p: Option<(u32, u32)>,
    x: Option<String>,
}

/// Reads frames out of any stream of bytes, however it is cut.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    overlong: bool,
    expected: Option<u64>,
    parts: Option<Parts>,
}

#[derive(Debug)]
struct Parts {
    of: u32,
    got: u32,
    text: String,
}

impl Decoder {
    /// A decoder that takes the first frame it sees as the first that was sent, unless that frame's
    /// number says otherwise.
    #[must_use]
    pub fn new() -> Self {
        Self { expected: Some(0), ..Self::default() }
    }

    /// Takes in bytes and returns the items that they complete.
    pub fn feed<M: DeserializeOwned>(&mut self, bytes: &[u8]) -> Vec<Item<M>> {
        let mut items = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            self.keep(&rest[..end]);
            rest = &rest[end + 1..];
            self.complete(&mut items);
        }
        self.keep(rest);
        items
    }

    /// The rest when the stream has ended: a last line without its newline.
    pub fn finish<M: DeserializeOwned>(&mut self) -> Vec<Item<M>> {
        let mut items = Vec::new();
        if !self.line.is_empty() {
            self.complete(&mut items);
        }
        items
    }

    fn keep(&mut self, bytes: &[u8]) {
        // A frame may stand at the end of a long line of console text: keep the end of the line.
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_FOREIGN {
            self.overlong = true;
            let cut = self.line.len() - MAX_FOREIGN;
            self.line.drain(..cut);
        }
    }

    fn complete<M: DeserializeOwned>(&mut self, items: &mut Vec<Item<M>>) {
        let line = std::mem::take(&mut self.line);
        let overlong = std::mem::take(&mut self.overlong);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\r');
        let Some((before, frame)) = frame_in(text) else {
            if !text.trim().is_empty() {
                let mark = if overlong { "[...]" } else { "" };
                items.push(Item::Foreign(format!("{mark}{text}")));
            }
            return;
        };
        if !before.trim().is_empty() {
            items.push(Item::Foreign(before.to_owned()));
        }
        self.count(frame.q, items);
        match (frame.m, frame.p, frame.x) {
            (Some(message), None, None) => {
                self.parts = None;
                items.push(read_message(message.get()));
            }
            (None, Some((index, of)), Some(text)) => self.part(index, of, &text, items),
            _ => items.push(Item::Unknown(text.to_owned())),
        }
    }

    fn count<M>(&mut self, q: u64, items: &mut Vec<Item<M>>) {
        if let Some(expected) = self.expected
            && q != expected
        {
            self.parts = None;
            // A smaller number is a probe that started again: nothing can be said to be lost.
            if q > expected {
                items.push(Item::Lost(q - expected));
            }
        }
        self.expected = q.checked_add(1);
    }

    fn part<M: DeserializeOwned>(&mut self, index: u32, of: u32, text: &str, items: &mut Vec<Item<M>>) {
        if index == 0 {
            self.parts = Some(Parts { of, got: 0, text: String::new() });
        }
        // Without its beginning the rest of a message is of no use; its loss was counted by number.
        let Some(parts) = self.parts.as_mut() else { return };
        if parts.of != of || parts.got != index || parts.text.len() + text.len() > MAX_MESSAGE {
            self.parts = None;
            return;
        }
        parts.text.push_str(text);
        parts.got += 1;
        if parts.got == parts.of {
            let message = std::mem::take(&mut parts.text);
            self.parts = None;
            items.push(read_message(&message));
        }
    }
}

fn read_message<M: DeserializeOwned>(json: &str) -> Item<M> {
    serde_json::from_str(json).map_or_else(|_| Item::Unknown(json.to_owned()), Item::Message)
}

/// The frame at the end of a line, and the foreign text before it.
fn frame_in(text: &str) -> Option<(&str, Frame<'_>)> {
    let body_end = text.len().checked_sub(TAIL)?;
    let (body, tail) = text.is_char_boundary(body_end).then(|| text.split_at(body_end))?;
    let crc = tail.strip_prefix(r#","c":""#)?.strip_suffix("\"}")?;
    let crc = u32::from_str_radix(crc, 16).ok()?;
    // Kernel text may stand before the frame on the same line.
    body.match_indices(r#"{"q":"#).find_map(|(start, _)| {
        // A line full of beginnings would have the whole of it summed up from each of them.
        if text.len() - start > MAX_FRAME || CRC32.checksum(&body.as_bytes()[start..]) != crc {
            return None;
        }
        let frame = serde_json::from_str(&text[start..]).ok()?;
        Some((&text[..start], frame))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::catalogue::measure::os::UNIX_BANDWIDTH;
    use crate::message::{self, FromProbe};
    use crate::outcome::{Repeats, ValueResult};

    fn all(bytes: &[u8]) -> Vec<Item<Value>> {
        let mut decoder = Decoder::new();
        let mut items = decoder.feed(bytes);
        items.extend(decoder.finish());
        items
    }

    fn long() -> Value {
        json!({ "text": "\"quotes\" and \\ and \u{1} and ü ".repeat(200) })
    }

    #[test]
    fn a_short_message_is_one_line_of_json() {
        let bytes = Encoder::new().encode(&json!({"a": 1})).unwrap();
        let line = String::from_utf8(bytes).unwrap();
        assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
        assert_eq!(all(line.as_bytes()), [Item::Message(json!({"a": 1}))]);
    }

    #[test]
    fn a_long_message_travels_in_parts_that_each_fit() {
        let bytes = Encoder::new().encode(&long()).unwrap();
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            assert!(line.len() <= MAX_FRAME, "{}", line.len());
            assert!(serde_json::from_slice::<Value>(line).is_ok());
        }
        assert_eq!(all(&bytes), [Item::Message(long())]);
    }

    #[test]
    fn a_frame_is_found_among_the_kernels_own_words() {
        let mut encoder = Encoder::new();
        let mut stream = b"[    0.000000] Linux version 6.1\r\n[    1.2] random: ".to_vec();
        stream.extend(encoder.encode(&json!(1)).unwrap());
        stream.extend(b"\r\nsecond word\n");
        stream.extend(encoder.encode(&json!(2)).unwrap());
        let items = all(&stream);
        let messages: Vec<_> = items.iter().filter(|i| matches!(i, Item::Message(_))).collect();
        assert_eq!(messages, [&Item::Message(json!(1)), &Item::Message(json!(2))]);
        assert!(items.contains(&Item::Foreign("second word".into())));
    }

    #[test]
    fn a_dropped_frame_is_counted_and_takes_its_whole_message_with_it() {
        let mut encoder = Encoder::new();
        let bytes = encoder.encode(&long()).unwrap();
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        lines.remove(1);
        let mut stream = lines.concat();
        stream.extend(encoder.encode(&json!("next")).unwrap());
        assert_eq!(all(&stream), [Item::Lost(1), Item::Message(json!("next"))]);
    }

    #[test]
    fn a_frame_with_one_wrong_bit_is_foreign_text() {
        let mut encoder = Encoder::new();
        let mut bytes = encoder.encode(&json!({"max": 1234})).unwrap();
        let at = bytes.iter().position(|b| *b == b'4').unwrap();
        bytes[at] = b'5';
        bytes.extend(encoder.encode(&json!(2)).unwrap());
        let items = all(&bytes);
        assert!(matches!(items[0], Item::Foreign(_)), "{items:?}");
        assert_eq!(items[1..], [Item::Lost(1), Item::Message(json!(2))]);
    }

    #[test]
    fn a_message_that_is_longer_than_any_of_a_probe_is_not_put_together() {
        let endless = json!({ "text": "x".repeat(MAX_MESSAGE) });
        let mut encoder = Encoder::new();
        let mut bytes = encoder.encode(&endless).unwrap();
        bytes.extend(encoder.encode(&json!("next")).unwrap());
        assert_eq!(all(&bytes), [Item::Message(json!("next"))]);
        let mut full = crate::latency::histogram();
        for bucket in 0..crate::buckets::BUCKETS {
            full.record(crate::buckets::value_of(bucket).min(crate::latency::HIGHEST_NS)).unwrap();
        }
        let counts = crate::latency::Sparse::of(&full);
        let both = json!({ "counts": counts, "missed": counts });
        assert_eq!(all(&Encoder::new().encode(&both).unwrap()), [Item::Message(both)]);
    }

    #[test]
    fn only_the_length_of_a_frame_is_looked_at_for_one() {
        let mut line = "{\"q\":".repeat(600);
        line.push_str(&String::from_utf8(Encoder::new().encode(&json!(7)).unwrap()).unwrap());
        assert_eq!(all(line.as_bytes()).last(), Some(&Item::Message(json!(7))));
        let long = format!("{{\"q\":0,\"m\":\"{}\"", "x".repeat(2 * MAX_FRAME));
        let sealed = format!("{long},\"c\":\"{:08x}\"}}\n", CRC32.checksum(long.as_bytes()));
        assert!(matches!(all(sealed.as_bytes())[..], [Item::Foreign(_)]), "no frame is so long");
    }

    proptest! {
        #[test]
        fn messages_arrive_whole_however_the_stream_is_cut(
            texts in proptest::collection::vec(".{0,900}", 1..6), cut in 1usize..97,
        ) {
            let mut encoder = Encoder::new();
            let bytes: Vec<u8> = texts.iter().flat_map(|t| encoder.encode(t).unwrap()).collect();
            let mut decoder = Decoder::new();
            let mut got = Vec::new();
            for piece in bytes.chunks(cut) {
                got.extend(decoder.feed::<String>(piece));
            }
            prop_assert_eq!(got, texts.into_iter().map(Item::Message).collect::<Vec<_>>());
        }

        #[test]
        fn a_value_is_the_same_to_the_last_bit_at_the_other_end(
            activity in any::<u32>(), dropped in any::<u64>(), kept in proptest::collection::vec(1e-6..1e12f64, 1..40),
            cut in 1usize..97,
        ) {
            let mut repeats = Repeats { kept, dropped, batch: 7 };
            let value = ValueResult::of(&UNIX_BANDWIDTH, &mut repeats).unwrap();
            let said = FromProbe::Value(message::Value { activity, value });
            let bytes = Encoder::new().encode(&said).unwrap();
            let mut decoder = Decoder::new();
            let got: Vec<_> = bytes.chunks(cut).flat_map(|piece| decoder.feed::<FromProbe>(piece)).collect();
            prop_assert_eq!(got, [Item::Message(said)]);
        }

        #[test]
        fn no_stream_makes_the_reader_panic_or_invent_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let items = all(&bytes);
            let messages = items.iter().filter(|i| matches!(i, Item::Message(_))).count();
            prop_assert_eq!(messages, 0);
        }
    }
}
