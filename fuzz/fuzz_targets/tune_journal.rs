//! The journal of tuning: any bytes are read without a panic, and what is in force is taken back once, on a machine that
//! refuses nothing and has nothing.

#![cfg_attr(fuzzing, no_main)]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tactus_system::{Memory, System};
use tactus_tune::revert::{Back, revert};
use tactus_tune::transaction::{Kept, Log};

const JOURNAL: &str = "/var/lib/tactus/tune/journal.jsonl";

fuzz_target!(|bytes: &[u8]| {
    let Ok(log) = Log::parse(&String::from_utf8_lossy(bytes)) else { return };
    let kept = Kept::of(&log.entries);
    for entry in &log.entries {
        assert!(!entry.action.to_string().is_empty());
        let _ = kept.has(entry);
    }
    let machine =
        Memory::new().root().file("/proc/sys/kernel/random/boot_id", "this-boot\n").file(JOURNAL, bytes);
    let reverted = revert(&machine, Back { force: true, ..Back::default() });
    // Where nothing is left of it, nor of what an earlier call had left, nothing is in force any more.
    let over = reverted.as_ref().is_ok_and(|reverted| {
        reverted.left.is_empty()
            && reverted.recovered.as_ref().is_none_or(|recovered| recovered.left.is_empty())
    });
    assert!(!over || !machine.exists(Path::new(JOURNAL)), "{reverted:?}");
});
