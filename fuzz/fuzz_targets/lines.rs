//! Lines of instruments that are no probe: no bytes make the reader panic, how they are cut changes
//! nothing, and what comes out is sound.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tactus_environment::kind::serial::read_all;
use tactus_format::lines::Format;
use tactus_model::latency::histogram;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let format = if choice & 1 == 0 { Format::Cyclictest } else { Format::Demo };
    let ticks = read_all(format, [bytes]);
    assert_eq!(read_all(format, bytes.chunks(usize::from(choice) + 1)), ticks);
    for tick in ticks {
        assert!(tick.total.min_ns <= tick.total.max_ns, "{:?}", tick.total);
        let mut counts = histogram();
        if tick.counts.add_to(&mut counts).is_ok() {
            assert!(counts.len() <= tick.total.cycles, "{:?}", tick.total);
        }
    }
});
