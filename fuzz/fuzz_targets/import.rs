//! Files of other instruments: no bytes make a reader panic or take memory, and what comes out is sound.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tactus_format::import::{Options, read};

fuzz_target!(|data: &[u8]| {
    for unit_ns in [None, Some(1)] {
        let Ok(recordings) = read(data, Options { unit_ns }) else { continue };
        for series in recordings.iter().flat_map(|recording| &recording.series) {
            let (latency, totals) = (series.latency(), series.totals);
            assert!(latency.raw.len() <= totals.cycles, "{series:?}");
            assert!(totals.cycles == 0 || totals.min_ns <= totals.max_ns, "{totals:?}");
            assert!(series.beyond <= totals.cycles, "{series:?}");
        }
    }
});
