//! The predicted size of a bundle is about its real one. One test, in a separate process: it looks at its
//! memory.
#![expect(clippy::disallowed_methods, reason = "files are weighed beside the door")]

use std::fs;
use std::path::Path;

use tactus_bundle::Writer;
use tactus_bundle::size::{recording_bytes, row_bytes};
use tactus_model::bundle::{Machine, RowResult, Slice};
use tactus_model::event::{RunStatus, Ticked};
use tactus_model::latency::{Latency, Sparse};
use tactus_model::message::{ThreadCounters, Tick};
use tactus_model::plan::Plan;
use tactus_model::series::{SeriesKey, Thread};

const TICK_NS: u64 = 1_000_000_000;
const INTERVAL_NS: u64 = 200_000;

/// Seconds of 5000 wake-ups. Their latencies have the shape of a core with some load: most within a
/// microsecond of each other, and a tail (xorshift64*, sums of twelve for a normal law).
fn seconds(many: usize) -> Vec<Latency> {
    let mut state = 4_711_u64;
    let mut unit = move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        f64::from(u32::try_from(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32).unwrap())
            / f64::from(u32::MAX)
    };
    let mut second = || {
        let mut all = Latency::new();
        for _ in 0..5_000 {
            let normal = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
            let spread = if unit() < 0.01 { 0.6 } else { 0.12 };
            all.record(tactus_model::number::whole(6_000.0 * (spread * normal).exp()), INTERVAL_NS);
        }
        all
    };
    (0..many).map(|_| second()).collect()
}

fn key(cpu: u32) -> SeriesKey {
    SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() }
}

/// Writes rows; returns their size on disk, and the predicted one.
fn write(dir: &Path, rows: &[RowResult], drawn: &[Latency]) -> (u64, u64) {
    let writer = Writer::create(dir, &Plan::default(), rows, Machine::default()).unwrap();
    let before = weight(dir);
    for (n, row) in rows.iter().enumerate() {
        let mut log = writer.begin_row(n, row, TICK_NS).unwrap();
        let cpus: Vec<u32> = row.threads.iter().flatten().map(|thread| thread.cpu).collect();
        let mut totals = vec![Latency::new(); cpus.len()];
        for n in 0..row.planned_ns / TICK_NS {
            for (at, cpu) in cpus.iter().enumerate() {
                let now = &drawn[(usize::try_from(n).unwrap() * 7 + 11 * at) % drawn.len()];
                totals[at].totals.add(&now.totals);
                let tick = Tick {
                    activity: 0,
                    series: key(*cpu),
                    n,
                    at_ns: (n + 1) * TICK_NS + u64::from(*cpu) * 13_000,
                    now: now.totals,
                    total: totals[at].totals,
                    counts: Sparse::of(&now.raw),
                    missed: Sparse::of(&now.missed),
                    thread: ThreadCounters::default(),
                };
                log.tick(&Ticked::of(0, tick, Some(8_000 + n % 97))).unwrap();
            }
        }
        log.finish().unwrap();
    }
    let said = rows.iter().map(|row| row_bytes(row, TICK_NS)).sum();
    let taken = weight(dir) - before;
    writer.finish(RunStatus::Complete).unwrap();
    (taken, said)
}

fn weight(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let of = |entry: fs::DirEntry| {
        let data = entry.metadata().unwrap();
        if data.is_dir() { weight(&entry.path()) } else { data.len() }
    };
    entries.map(of).sum()
}

/// The most memory that this process ever had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap()
}

#[test]
fn a_bundle_takes_about_what_it_is_said_to_take_and_so_does_recording_it() {
    let drawn = seconds(64);
    let row = |cpus: u32, planned_s: u64| RowResult {
        planned_ns: planned_s * TICK_NS,
        interval_ns: INTERVAL_NS,
        threads: Some((0..cpus).map(|cpu| Thread { cpu, thread: 0 }).collect()),
        ..RowResult::unmeasured("simulated", "host", "host")
    };
    let sliced = |number| RowResult {
        slice: Some(Slice { number, of: 144, whole_ns: 86_400 * TICK_NS, tick_ns: TICK_NS }),
        ..row(8, 600)
    };
    let cases = [vec![row(8, 1800)], vec![row(2, 7200)], (1..=3).map(sliced).collect::<Vec<_>>()];
    for rows in cases {
        let dir = tempfile::tempdir().unwrap();
        let (taken, said) = write(dir.path(), &rows, &drawn);
        assert!(taken <= 2 * said, "{taken} bytes are more than twice the {said} that were said");
        assert!(said <= 3 * taken, "{said} bytes were said, and it is {taken}");
        eprintln!("{} rows: {taken} bytes, said {said}", rows.len());
    }
    let (peak, said) = (peak(), recording_bytes(8) + 64 * 540_000);
    assert!(peak <= 2 * said, "{peak} bytes of memory are more than twice the {said} that were said");
}
