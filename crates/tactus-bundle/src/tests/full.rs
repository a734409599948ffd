//! File systems that are full: small ones in memory, as root.

use std::fs;
use std::path::Path;
use std::process::Command;

use tactus_model::bundle::Machine;
use tactus_model::event::{Event, RunStatus, Stamped, Ticked};
use tactus_model::latency::Latency;
use tactus_model::message::{Note, Windows};
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, RowEnd, SeriesResult};
use tactus_model::plan::Plan;

use super::{TICK_NS, row, tick};
use crate::room::RESERVE;
use crate::{LeftOut, Trust, Writer, read};

/// A file system of this size, as long as it lives.
struct Small(tempfile::TempDir);

impl Small {
    fn of(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(dir.path());
        if mount.output().is_ok_and(|done| done.status.success()) {
            return Some(Self(dir));
        }
        assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "no tmpfs can be mounted");
        eprintln!("SKIPPED: no tmpfs can be mounted");
        None
    }

    /// Takes all the remaining room, except for that of a file of a byte.
    fn fill(&self) {
        let mut bytes = 1 << 20;
        while bytes > 0 {
            let path = self
                .0
                .path()
                .join(format!("filled-{bytes}-{}", fs::read_dir(self.0.path()).unwrap().count()));
            let whole = fs::write(&path, vec![1; bytes]).is_ok();
            if !whole {
                let _ = fs::remove_file(&path);
                bytes /= 2;
            }
        }
    }

    fn make_room(&self) {
        for entry in fs::read_dir(self.0.path()).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().starts_with("filled") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// A run of 300 ticks on a file system that is full between these two of them. What was left out, and what was measured.
fn run(small: &Small, dir: &Path, from: u64, to: u64) -> (LeftOut, Latency) {
    let mut result = row(3_000);
    let mut writer = Writer::create(dir, &Plan::default(), &[result.clone()], Machine::default()).unwrap();
    result.end(Ending::because(RowEnd::Died, "the run died while this was measured"));
    let mut log = writer.begin_row(0, &result, TICK_NS).unwrap();
    let mut total = Latency::new();
    for n in 0..300 {
        match n {
            _ if n == from => small.fill(),
            _ if n == to => small.make_room(),
            _ => {}
        }
        let tick = tick(n, &mut total);
        let series = tick.series.clone();
        let windows = Windows { activity: 0, series, began_ns: 5, first: 10 * n, maxima: vec![1; 10] };
        log.windows(&windows).unwrap();
        let ticked = Ticked::of(0, tick, None);
        let note = Note::info(format!("tick {n}"));
        writer.event(&Stamped { at_ms: 5, event: Event::Noted { environment: None, note } }).unwrap();
        log.tick(&ticked).unwrap();
        log.sync().unwrap();
        writer.sync().unwrap();
    }
    let left_out = log.finish().unwrap();
    result.notes.extend(left_out.note());
    let series = vec![SeriesResult {
        key: tick(0, &mut Latency::new()).series,
        summary: total.summary(),
        counters: tactus_model::message::ThreadCounters::default(),
        outliers: Vec::new(),
        whole: true,
    }];
    result.outcome = Outcome::Latency(LatencyOutcome { series, all: Some(total.summary()) });
    result.measured_ns = 300 * TICK_NS;
    result.end(Ending::complete());
    writer.result(0, &result).unwrap();
    assert_eq!(writer.news().is_some(), left_out != LeftOut::default(), "it is told");
    assert!(writer.news().is_none(), "and once");
    writer.finish(RunStatus::Complete).unwrap();
    (left_out, total)
}

#[test]
fn on_a_full_disk_what_is_recorded_over_time_pauses_and_everything_that_was_counted_is_there() {
    // Full to the end, and for a while.
    for (from, to) in [(100, u64::MAX), (100, 200)] {
        let Some(small) = Small::of("2m") else { return };
        let dir = small.0.path().join("bundle");
        let (left_out, total) = run(&small, &dir, from, to);
        let contents = read(&dir, Trust::Whole).unwrap();
        assert_eq!(contents.damage, [] as [String; 0], "each record is whole");
        let row = &contents.rows[0];
        let counted: u64 = row.histograms.series.values().map(tactus_model::buckets::Packed::total).sum();
        assert_eq!(counted, total.totals.cycles, "the histograms have all of it");
        assert_eq!(row.result.all(), Some(&total.summary()));
        // A page that was begun had room for some more of them.
        let lacking = to.min(300) - from;
        assert!((lacking / 4..=lacking).contains(&left_out.ticks), "{left_out:?}");
        let ticks: u64 = row.ticks.iter().map(|(_, stretch)| stretch.cycles / 3).sum();
        assert_eq!(ticks, 300 - left_out.ticks);
        assert!((100..300).contains(&contents.notes.len()), "{}", contents.notes.len());
        let said = &row.result.notes[0].text;
        assert!(
            said.contains(&format!("{} report intervals between 1", left_out.ticks)) && said.contains("full"),
            "{said}"
        );
        assert!(!dir.join(RESERVE).exists());
    }
}

#[test]
fn with_room_nothing_is_left_out_and_a_run_that_cannot_say_how_it_ends_does_not_begin() {
    let Some(small) = Small::of("2m") else { return };
    let dir = small.0.path().join("bundle");
    let (left_out, _) = run(&small, &dir, u64::MAX, u64::MAX);
    assert_eq!((left_out, left_out.note()), (LeftOut::default(), None));
    let Some(small) = Small::of("96k") else { return };
    let dir = small.0.path().join("bundle");
    let error = Writer::create(dir.as_path(), &Plan::default(), &[row(10)], Machine::default()).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("full")), "{error}");
    assert!(!dir.join(RESERVE).exists(), "what could not be kept is not in the way");
    assert_eq!(read(&dir, Trust::Damaged).unwrap().manifest.status, RunStatus::Interrupted);
}
