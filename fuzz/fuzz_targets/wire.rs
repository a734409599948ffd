//! The stream of a probe: arbitrary bytes, and real frames that were damaged on their way.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tactus_model::message::FromProbe;
use tactus_model::wire::{Decoder, Encoder, Item};

fuzz_target!(|data: &[u8]| {
    let Some((&cut, rest)) = data.split_first() else { return };
    whatever_arrives(rest, usize::from(cut) + 1);
    what_was_damaged(rest, usize::from(cut) + 1);
});

/// No bytes make the reader panic, and how the stream is cut changes nothing.
fn whatever_arrives(bytes: &[u8], cut: usize) {
    let mut whole = Decoder::new();
    let mut expected: Vec<Item<FromProbe>> = whole.feed(bytes);
    expected.extend(whole.finish());
    let mut pieces = Decoder::new();
    let mut found = Vec::new();
    for piece in bytes.chunks(cut) {
        found.extend(pieces.feed::<FromProbe>(piece));
    }
    found.extend(pieces.finish());
    // NaN is not JSON, so that what is equal compares equal.
    assert_eq!(found, expected, "cut into pieces of {cut}");
}

/// What comes out of damaged frames was sent, in the order in which it was sent.
fn what_was_damaged(bytes: &[u8], cut: usize) {
    let mut damage = bytes.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]);
    let sent: Vec<Value> =
        bytes.chunks(97).take(8).map(|text| Value::from(String::from_utf8_lossy(text).repeat(cut))).collect();
    let mut encoder = Encoder::new();
    let mut stream = Vec::new();
    for message in &sent {
        let frames = encoder.encode(message).expect("text is JSON");
        for frame in frames.split_inclusive(|b| *b == b'\n') {
            let mut frame = frame.to_vec();
            // One burst of at most 32 bits: CRC-32 finds every one of them, so that a message that
            // arrives wrong is the reader's fault.
            if let Some([flag, at, mask, more]) = damage.next()
                && flag & 1 == 1
            {
                let at = usize::from(at) * 2 % frame.len();
                for (byte, mask) in frame[at..].iter_mut().zip([mask, more, mask, more]) {
                    *byte ^= mask;
                }
            }
            if damage.next().is_none_or(|[flag, ..]| flag & 7 != 7) {
                stream.extend(frame);
            }
        }
    }
    let mut decoder = Decoder::new();
    let mut items: Vec<Item<Value>> = stream.chunks(cut).flat_map(|piece| decoder.feed(piece)).collect();
    items.extend(decoder.finish());
    let mut unseen = sent.iter();
    for item in items {
        if let Item::Message(message) = item {
            assert!(unseen.any(|sent| *sent == message), "never sent, or out of order: {message}");
        }
    }
}
