//! The file in which a program marks its cycles, as anybody may have written it: no bytes make its reader panic, and each
//! record counts once, as a cycle or as one that is left out.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use tactus_measure::marks::{Asked, Cycles, HEADER_BYTES, RECORD_BYTES, Shape};
use tactus_model::catalogue::measure::MarkedValue;

fuzz_target!(|data: &[u8]| {
    let Some((header, records)) = data.split_first_chunk::<HEADER_BYTES>() else { return };
    let _ = Shape::read(header, u64::MAX);
    for value in [MarkedValue::Response, MarkedValue::Start, MarkedValue::Execution] {
        let asked = Asked { value, interval_ns: 1_000, cpu: 0 };
        let mut cycles = Cycles::after(0, asked, (0, u64::MAX));
        let mut counted = 0_u64;
        // In two parts, of which the first may have been written over in the middle.
        let (first, second) = records.split_at(records.len() / RECORD_BYTES / 2 * RECORD_BYTES);
        cycles.take(first, u64::from(header[0]), u64::MAX / 2, &mut |_| counted += 1);
        cycles.take(second, 0, u64::MAX, &mut |_| counted += 1);
        cycles.finish(&mut |_| counted += 1);
        let all = u64::try_from(records.len() / RECORD_BYTES).unwrap();
        // What was due when the span ends, at the end of all time, is none of it.
        let told = counted + cycles.left_out.lost + cycles.left_out.wrong;
        let outside =
            u64::try_from(records.chunks_exact(RECORD_BYTES).filter(is_at_the_end).count()).unwrap();
        assert!(told <= all && told + outside >= all, "{told} of {all}, {outside} outside");
        assert_eq!(cycles.next(), all + 1);
    }
});

/// Whether a record is due, or begins without being due, at the last moment that can be written.
fn is_at_the_end(record: &&[u8]) -> bool {
    let (due, start) = (&record[8..16], &record[16..24]);
    due == [0xff; 8] || due == [0; 8] && start == [0xff; 8]
}
