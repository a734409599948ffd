//! The reader of bundles, and the report of what it read: one file of a real bundle is replaced, cut, overwritten or
//! longer.

#![cfg_attr(fuzzing, no_main)]

mod sample;

use std::fs;

use libfuzzer_sys::fuzz_target;
use tactus_bundle::{Trust, read};

/// Longest file that is tried: enough for every kind of line, and quick.
const LONGEST: usize = 64 * 1024;

fuzz_target!(|data: &[u8]| {
    let [choice, how, high, low, rest @ ..] = data else { return };
    if rest.len() > LONGEST {
        return;
    }
    let samples = sample::samples();
    // A finished bundle has checksums, so that only `Damaged` reads on; an unfinished one has none.
    let own = if choice & 0x80 == 0 { &samples.finished } else { &samples.unfinished };
    let (path, original) = &own.files[usize::from(choice & 0x7f) % own.files.len()];
    let at = usize::from(u16::from_be_bytes([*high, *low])).min(original.len());
    let mut changed = original.clone();
    match how % 5 {
        0 => changed = rest.to_vec(),
        1 => changed.truncate(at),
        2 => changed.iter_mut().skip(at).zip(rest).for_each(|(old, new)| *old = *new),
        3 => drop(changed.splice(at..at, rest.iter().copied())),
        _ => changed.extend(rest),
    }
    fs::write(path, &changed).expect("a file of the sample can be written");
    let _ = read(&own.dir, Trust::Whole);
    if let Ok(contents) = read(&own.dir, Trust::Damaged) {
        sample::report(&contents, rest.len());
    }
    fs::write(path, original).expect("a file of the sample can be written");
});
