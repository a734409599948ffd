use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;
use tactus_application::Application as Marking;
use tactus_application::layout::{CAPACITY, Header, MOST_CAPACITY, RING_OFFSET};
use tactus_model::catalogue::measure::MarkedValue;

use super::header::{BYTES, RECORD};
use super::*;

const P: u64 = 1_000;

fn asked(value: MarkedValue) -> Asked {
    Asked { value, interval_ns: P, cpu: 0 }
}

/// A record as an application writes it.
fn record(number: u64, due: u64, start: u64, end: u64) -> Vec<u8> {
    [number, due, start, end, 0].into_iter().flat_map(u64::to_ne_bytes).collect()
}

/// The values of cycles (due, start, end), and the records left out.
fn read(value: MarkedValue, cycles: &[(u64, u64, u64)], end: u64) -> (Vec<Marked>, LeftOut) {
    let mut reader = Cycles::after(0, asked(value), (0, end));
    let bytes: Vec<u8> = (1..)
        .zip(cycles)
        .flat_map(|(number, (due, start, end))| record(number, *due, *start, *end))
        .collect();
    let mut got = Vec::new();
    reader.take(&bytes, 0, u64::MAX / 2, &mut |marked| got.push(marked));
    reader.finish(&mut |marked| got.push(marked));
    (got, reader.left_out)
}

fn cycle(at: u64, value: u64, left: u64) -> Marked {
    Marked::Cycle { at, value, left }
}

#[test]
fn each_value_is_between_the_marks_that_its_word_says() {
    let cycles = [(1_000, 1_010, 1_300), (2_000, 2_005, 2_100)];
    let of = |value| read(value, &cycles, 3_000).0;
    assert_eq!(of(MarkedValue::Response), [cycle(1_300, 300, 0), cycle(2_100, 100, 0)]);
    assert_eq!(of(MarkedValue::Start), [cycle(1_300, 10, 0), cycle(2_100, 5, 0)]);
    assert_eq!(of(MarkedValue::Execution), [cycle(1_300, 290, 0), cycle(2_100, 95, 0)]);
    let without_due = [(0, 1_010, 1_300), (0, 5_000, 5_100)];
    assert_eq!(
        read(MarkedValue::Response, &without_due, 6_000).0,
        [cycle(1_300, 290, 0), cycle(5_100, 100, 0)]
    );
}

#[test]
fn due_times_that_a_late_cycle_swallowed_are_behind_it() {
    // Due at 1000 and ended at 4500: 2000, 3000 and 4000 passed, and the next one is that of 5000.
    let (got, left_out) = read(MarkedValue::Response, &[(1_000, 1_000, 4_500), (5_000, 5_000, 5_100)], 6_000);
    assert_eq!(got, [cycle(4_500, 3_500, 3), cycle(5_100, 100, 0)]);
    assert_eq!(left_out, LeftOut::default());
}

#[test]
fn cycles_that_are_done_late_count_as_those_that_were_left_out_and_have_their_own_values() {
    let cycles = [
        (1_000, 1_000, 4_500),
        (2_000, 4_500, 4_600),
        (3_000, 4_600, 4_700),
        (4_000, 4_700, 4_800),
        (5_000, 5_000, 5_100),
    ];
    let (got, left_out) = read(MarkedValue::Response, &cycles, 6_000);
    let behind = |at, value| Marked::Behind { at, value };
    assert_eq!(
        got,
        [
            cycle(4_500, 3_500, 0),
            behind(4_600, 2_600),
            behind(4_700, 1_700),
            behind(4_800, 800),
            cycle(5_100, 100, 0)
        ]
    );
    assert_eq!(left_out, LeftOut::default());
    let (executed, _) = read(MarkedValue::Execution, &cycles, 6_000);
    assert!(executed.iter().all(|marked| matches!(marked, Marked::Cycle { .. })), "it has no due times");
}

#[test]
fn due_times_at_which_nothing_was_marked_are_told_of() {
    let (got, left_out) = read(MarkedValue::Response, &[(1_000, 1_000, 1_100), (4_000, 4_000, 4_100)], 5_000);
    assert_eq!(got, [cycle(1_100, 100, 2), cycle(4_100, 100, 0)]);
    assert_eq!(left_out.unmarked, 2);
}

#[test]
fn due_times_after_the_end_do_not_count() {
    // Three passed, and only that of 2000 came before the end; there is a next cycle, or none.
    let cycles = [(1_000, 1_000, 4_500), (5_000, 5_000, 5_100)];
    assert_eq!(read(MarkedValue::Response, &cycles, 2_500).0, [cycle(4_500, 3_500, 1)]);
    assert_eq!(read(MarkedValue::Response, &cycles[..1], 2_500).0, [cycle(4_500, 3_500, 1)]);
    assert_eq!(read(MarkedValue::Response, &cycles[..1], 9_000).0, [cycle(4_500, 3_500, 7)]);
}

#[test]
fn only_what_was_due_within_the_measurement_counts() {
    let mut reader = Cycles::after(0, asked(MarkedValue::Response), (2_000, 4_000));
    let bytes: Vec<u8> = (1..=5).flat_map(|n| record(n, n * P, n * P, n * P + 10)).collect();
    let mut got = Vec::new();
    reader.take(&bytes, 0, 9_000, &mut |marked| got.push(marked));
    reader.finish(&mut |marked| got.push(marked));
    assert_eq!(got, [cycle(2_010, 10, 0), cycle(3_010, 10, 0)]);
}

#[test]
fn times_that_contradict_each_other_are_left_out_with_the_reason() {
    let now = u64::MAX / 2;
    for (cycles, said) in [
        (vec![(1_000, 1_100, 1_050)], "ended 50 ns before it began"),
        (vec![(1_000, 900, 1_050)], "began 100 ns before it was due"),
        (vec![(1_000, 1_000, now + 7)], "ends 7 ns after it was read"),
        (vec![(1_000, 1_000, 1_500), (2_000, 1_400, 2_100)], "before the one before it ended"),
        (vec![(3_000, 3_000, 3_500), (2_000, 3_600, 3_700)], "was due 1000 ns before"),
    ] {
        let (got, left_out) = read(MarkedValue::Response, &cycles, 9_000);
        let why = left_out.first_wrong.unwrap();
        assert!(why.contains(said) && left_out.wrong == 1 && got.len() == cycles.len() - 1, "{why}");
    }
    let (got, left_out) = read(MarkedValue::Start, &[(0, 5, 6)], 9_000);
    assert!(got.is_empty() && left_out.wrong == 1);
}

#[test]
fn what_was_written_over_is_lost_and_counted() {
    let mut reader = Cycles::after(0, asked(MarkedValue::Response), (0, u64::MAX));
    let mut bytes: Vec<u8> = (1..=6).flat_map(|n| record(n, n * P, n * P, n * P + 10)).collect();
    // The third has another's number, the fourth is being written.
    bytes[2 * RECORD..2 * RECORD + 8].copy_from_slice(&67_u64.to_ne_bytes());
    bytes[3 * RECORD..3 * RECORD + 8].copy_from_slice(&0_u64.to_ne_bytes());
    let mut got = Vec::new();
    // Nothing before the second is known to be whole.
    reader.take(&bytes, 2, u64::MAX / 2, &mut |marked| got.push(marked));
    reader.finish(&mut |marked| got.push(marked));
    assert_eq!((got.len(), reader.left_out.lost, reader.next()), (3, 3, 7));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_every_record_is_counted_once(
        bytes in proptest::collection::vec(any::<u8>(), 0..40 * RECORD),
        near in any::<bool>(), after in any::<u64>(), value in 0..3_usize, whole in 0_u64..10, now in any::<u64>(),
        span in any::<(u64, u64)>(),
    ) {
        let mut bytes = bytes;
        let after = after >> 1;
        if near {
            // Records with the right numbers, whose times are anything.
            for (n, record) in (after + 1..).zip(bytes.chunks_exact_mut(RECORD)) {
                record[..8].copy_from_slice(&n.to_ne_bytes());
            }
        }
        let value = [MarkedValue::Response, MarkedValue::Start, MarkedValue::Execution][value];
        let mut reader = Cycles::after(after, asked(value), span);
        let mut got = 0_u64;
        reader.take(&bytes, after.saturating_add(whole), now, &mut |_| got += 1);
        reader.finish(&mut |_| got += 1);
        let records = (bytes.len() / RECORD) as u64;
        prop_assert_eq!(reader.next(), after + 1 + records);
        prop_assert!(got + reader.left_out.lost + reader.left_out.wrong <= records);
        if span == (0, u64::MAX) {
            prop_assert_eq!(got + reader.left_out.lost + reader.left_out.wrong, records);
        }
    }

    #[test]
    fn no_header_makes_it_panic_and_what_is_taken_fits_its_file(
        bytes in proptest::collection::vec(any::<u8>(), BYTES), length in any::<u64>(), good in any::<bool>(),
        capacity in any::<u64>(),
    ) {
        let mut bytes: [u8; BYTES] = bytes.try_into().unwrap();
        if good {
            bytes[..24].copy_from_slice(&header()[..24]);
            bytes[offset_of!(Header, clock)..][..4].copy_from_slice(&1_u32.to_ne_bytes());
            bytes[offset_of!(Header, capacity)..][..8].copy_from_slice(&capacity.to_ne_bytes());
        }
        if let Ok(shape) = Shape::read(&bytes, length) {
            prop_assert!(shape.capacity <= MOST_CAPACITY);
            prop_assert!(RING_OFFSET as u64 + shape.capacity * RECORD as u64 <= length);
        }
    }
}

/// A header that is right.
fn header() -> [u8; BYTES] {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shared");
    let _own = Marking::open(&file, P).unwrap();
    fs::read(&file).unwrap()[..BYTES].try_into().unwrap()
}

#[test]
fn a_header_that_lies_is_refused_with_the_reason() {
    let length = RING_OFFSET as u64 + CAPACITY * RECORD as u64;
    assert_eq!(Shape::read(&header(), length).unwrap().capacity, CAPACITY);
    let wrong = |at: usize, bytes: &[u8], length| {
        let mut header = header();
        header[at..at + bytes.len()].copy_from_slice(bytes);
        Shape::read(&header, length).unwrap_err()
    };
    assert!(wrong(0, b"cactus", length).contains("does not begin"));
    assert!(wrong(8, &2_u32.to_ne_bytes(), length).contains("version 2"));
    assert!(wrong(12, &48_u32.to_ne_bytes(), length).contains("48 bytes per cycle"));
    assert!(wrong(32, &7_u32.to_ne_bytes(), length).contains("another clock"));
    for capacity in [0, 1, 3, 100, 1 << 40, u64::MAX] {
        assert!(wrong(16, &capacity.to_ne_bytes(), u64::MAX).contains("claims a ring of"), "{capacity}");
    }
    assert!(Shape::read(&header(), length - 1).unwrap_err().contains("needs"));
}

/// A file with an application, and its reader from now on.
struct Shared {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    own: Marking,
    source: Source,
}

impl Shared {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shared");
        let own = Marking::open(&path, P).unwrap();
        let source = Source::open(path.to_str().unwrap()).unwrap();
        Self { _dir: dir, path, own, source }
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        fs::File::options().write(true).open(&self.path).unwrap().write_all_at(bytes, at as u64).unwrap();
    }
}

#[test]
fn what_is_marked_is_read_once_and_what_came_before_is_not() {
    let mut shared = Shared::new();
    shared.own.mark(1, 2, 3);
    let mut cycles = shared.source.begin(asked(MarkedValue::Execution), (0, u64::MAX)).unwrap();
    let mut got = Vec::new();
    for round in 0..5_u64 {
        // More than are read at once, and round the end of the ring.
        for n in 0..CAPACITY / 2 - 7 {
            let at = 10 + (round * CAPACITY + n) * P;
            shared.own.mark(0, at, at + n % P);
        }
        let seen = shared.source.read(&mut cycles, &mut |marked| got.push(marked)).unwrap();
        assert_eq!(seen, file::Seen { new: CAPACITY / 2 - 7, closed: false });
    }
    cycles.finish(&mut |marked| got.push(marked));
    assert_eq!(got.len() as u64, 5 * (CAPACITY / 2 - 7));
    // The CPU of the test does not matter.
    assert_eq!(LeftOut { elsewhere: 0, ..cycles.left_out.clone() }, LeftOut::default());
    let Shared { own, mut source, .. } = shared;
    drop(own);
    assert!(source.read(&mut cycles, &mut |_| ()).unwrap().closed, "it is read on when it is gone");
}

#[test]
fn who_comes_too_late_counts_what_was_written_over() {
    let mut shared = Shared::new();
    let mut cycles = shared.source.begin(asked(MarkedValue::Execution), (0, u64::MAX)).unwrap();
    let marked = 3 * CAPACITY + 5;
    (0..marked).for_each(|n| shared.own.mark(0, n * 10, n * 10 + 1));
    let mut got = 0;
    shared.source.read(&mut cycles, &mut |_| got += 1).unwrap();
    cycles.finish(&mut |_| got += 1);
    assert_eq!(got + cycles.left_out.lost, marked);
    assert!(got >= CAPACITY / 2, "{got}");
}

#[test]
fn a_count_that_goes_back_or_is_impossible_ends_the_reading() {
    let written = offset_of!(Header, written);
    for (count, said) in [(0_u64, "counts 0 cycles, but had 3"), (u64::MAX, "which no program can mark")] {
        let mut shared = Shared::new();
        (0..3).for_each(|n| shared.own.mark(0, n * 10, n * 10 + 1));
        let mut cycles = shared.source.begin(asked(MarkedValue::Execution), (0, u64::MAX)).unwrap();
        shared.write(written, &count.to_ne_bytes());
        let why = shared.source.read(&mut cycles, &mut |_| ()).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn a_file_that_is_made_shorter_while_it_is_read_is_an_error_and_no_signal() {
    let mut shared = Shared::new();
    let mut cycles = shared.source.begin(asked(MarkedValue::Execution), (0, u64::MAX)).unwrap();
    (0..100).for_each(|n| shared.own.mark(0, n * 10, n * 10 + 1));
    let file = fs::File::options().write(true).open(&shared.path).unwrap();
    for length in [RING_OFFSET as u64, 10] {
        file.set_len(length).unwrap();
        let why = shared.source.read(&mut cycles, &mut |_| ()).unwrap_err();
        assert!(why.contains("ends before its ring does"), "{why}");
    }
}

#[test]
fn what_is_no_file_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    std::os::unix::fs::symlink("/dev/null", at("link")).unwrap();
    fs::write(at("short"), b"tactus\x1a\n").unwrap();
    fs::write(at("other"), vec![0; 8192]).unwrap();
    for (path, said) in [
        (at("none"), "is not there"),
        (at("link"), "is a link"),
        (at("pipe"), "is not a file"),
        (at("."), "is not a file"),
        ("/dev/null".into(), "is not a file"),
        (at("short"), "ends before"),
        (at("other"), "does not begin"),
    ] {
        let why = Source::open(&path).unwrap_err();
        assert!(why.contains(said), "{path}: {why}");
    }
}

fn table(file: &str) -> Application {
    Application { file: file.into(), patience: Some(Nanos(300_000_000)), ..Application::default() }
}

#[test]
fn an_application_that_never_comes_or_marks_nothing_is_waited_for_and_the_reason_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shared");
    let why = |interval| {
        let marks = Marks::new(&table(path.to_str().unwrap()), interval, 0).unwrap();
        marks.wait(sys::now());
        marks.inbox().trouble()
    };
    assert!(why(P).unwrap().contains("is not there"));
    let own = Marking::open(&path, P).unwrap();
    let silent = why(P).unwrap();
    assert!(silent.contains("no cycle is marked in it") && silent.contains("process"), "{silent}");
    assert!(why(2 * P).unwrap().contains("a period of 1us, but the plan's interval is 2us"));
    drop(own);
    for wrong in ["control", "", "/a\0b"] {
        assert!(
            Marks::new(&table(wrong), P, 0).unwrap_err().reason.contains("not an absolute path"),
            "{wrong:?}"
        );
    }
}

#[test]
fn an_application_that_marks_is_found_and_one_of_another_clock_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shared");
    for (behind, said) in [(0, None), (3_600_000_000_000, Some("another clock"))] {
        let mut own = Marking::open(&path, P).unwrap();
        let marks = Marks::new(&table(path.to_str().unwrap()), P, 0).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100 {
                    let end = sys::now().saturating_sub(behind);
                    own.mark(0, end.saturating_sub(1), end);
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            marks.wait(sys::now());
        });
        let why = marks.inbox().trouble();
        assert_eq!(why.is_some(), said.is_some(), "{why:?}");
        assert!(said.is_none_or(|said| why.unwrap().contains(said)));
    }
}
