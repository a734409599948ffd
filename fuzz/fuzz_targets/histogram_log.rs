//! The reader of histogram logs below their compression, which a fuzzer does not get through: the bytes are packed into
//! lines of a log as a forger would, and the report of what was read of them is written.

#![cfg_attr(fuzzing, no_main)]

mod sample;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;
use tactus_bundle::{Trust, read};

/// What stands before the counts of a histogram of our layout: cookie, their length, offset, digits, lowest, highest,
/// ratio.
fn header(length: usize) -> Vec<u8> {
    let mut header = Vec::from(0x1c84_9313_u32.to_be_bytes());
    header.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    header.extend([0, 0, 0, 0, 0, 0, 0, 3]);
    header.extend([1_u64.to_be_bytes(), 3_600_000_000_000_u64.to_be_bytes(), 1.0_f64.to_be_bytes()].concat());
    header
}

fn packed(plain: &[u8]) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).expect("memory can be written");
    let compressed = encoder.finish().expect("memory can be written");
    let length = u32::try_from(compressed.len()).unwrap_or(u32::MAX);
    STANDARD.encode([&0x1c84_9314_u32.to_be_bytes()[..], &length.to_be_bytes(), &compressed].concat())
}

fuzz_target!(|data: &[u8]| {
    let [how, start, length, tags, lines, rest @ ..] = data else { return };
    // Whole headers are the common case; a fuzzer would look for them for a day.
    let plain = if how & 1 == 0 { [header(rest.len()), rest.to_vec()].concat() } else { rest.to_vec() };
    let counts = packed(&plain);
    let mut log = String::new();
    for line in 0..u64::from(lines % 16) {
        // From a moment to longer than anybody measures.
        let at = (u64::from(*start) << (how >> 3)).saturating_mul(line);
        let length = f64::from(*length) * f64::from(1_u32 << (how >> 3));
        let _ = writeln!(log, "Tag={},{at}.000,{length:.3},1.000,{counts}", line % u64::from(tags % 8 + 1));
    }
    // The unfinished one has ticks that are still pending beside its log.
    let own = if how & 2 == 0 { &sample::samples().finished } else { &sample::samples().unfinished };
    let name = if how & 4 == 0 { "latency.hlog" } else { "missed.hlog" };
    let path = own.dir.join("scenarios/01-host-idle").join(name);
    let before = own.files.iter().find(|(known, _)| *known == path).map(|(_, bytes)| bytes);
    fs::write(&path, log).expect("a file of the sample can be written");
    let contents = read(&own.dir, Trust::Damaged).expect("logs can be damaged");
    sample::report(&contents, rest.len());
    fs::write(&path, before.map_or(&[][..], |bytes| bytes)).expect("a file of the sample can be written");
});
