//! The largest latencies of short windows of time on disk: a line of CSV for those of one tick of one series.

use std::fs::File;
use tactus_model::message::Windows;
use tactus_model::series::SeriesKey;
use tactus_model::windows::{MOST_WINDOWS, RowWindows};
use tactus_system::Directory;

use super::lines::{Line, Lines};
use super::room::Room;
use super::{BundleError, limits};

/// The file of a row.
pub const FILE: &str = "windows.csv";

/// The last column stands for a number for each window.
const COLUMNS: &str = "cpu,thread,priority,kind,began_ns,first,max_ns...\n";

/// Writes the windows of a row.
#[derive(Debug)]
pub struct WindowLog {
    dir: Directory,
    room: Room,
    file: Option<File>,
    /// How many of each series are written: no more than will be read.
    written: Vec<(SeriesKey, usize)>,
}

impl WindowLog {
    /// In the directory of a row. The file appears with the first window.
    pub fn new(dir: Directory, room: Room) -> Self {
        Self { dir, room, file: None, written: Vec::new() }
    }

    /// Appends windows. Returns whether there was room.
    pub fn add(&mut self, windows: &Windows) -> Result<bool, BundleError> {
        let Windows { series, began_ns, first, maxima, .. } = windows;
        let at = self.written.iter().position(|(key, _)| key == series).unwrap_or(self.written.len());
        if at == self.written.len() {
            self.written.push((series.clone(), 0));
        }
        let written = &mut self.written[at].1;
        if *written >= MOST_WINDOWS || maxima.is_empty() {
            return Ok(true);
        }
        let SeriesKey { cpu, thread, priority, .. } = series;
        let kind = super::ticks::column(&series.kind);
        let mut text = if self.file.is_none() { COLUMNS.to_owned() } else { String::new() };
        text += &format!("{cpu},{thread},{priority},{kind},{began_ns},{first}");
        for max in maxima {
            text += &format!(",{max}");
        }
        text.push('\n');
        let done = self.room.append_to(&mut self.file, || self.dir.append(FILE), text.as_bytes());
        let done = done.map_err(BundleError::of(&self.dir, FILE))?;
        if done {
            *written += maxima.len();
        }
        Ok(done)
    }

    /// Makes what was written last through a power cut.
    pub fn sync(&self) -> Result<(), BundleError> {
        let Some(file) = &self.file else { return Ok(()) };
        self.room.may(file.sync_data()).map(drop).map_err(BundleError::of(&self.dir, FILE))
    }
}

/// Reads the windows of the row in `dir`, whose name in sentences is `name`.
pub fn read(dir: &Directory, name: &str, damage: &mut Vec<String>) -> RowWindows {
    let mut all = RowWindows::default();
    match Lines::open(dir, FILE).and_then(|lines| read_lines(lines, &mut all)) {
        Ok(0) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Ok(bad) => damage.push(format!("scenarios/{name}/{FILE}: {bad} lines cannot be read")),
        Err(error) => damage.push(format!("scenarios/{name}/{FILE}: the rest cannot be read: {error}")),
    }
    all
}

/// Returns how many lines are invalid.
fn read_lines<R: std::io::BufRead>(mut lines: Lines<R>, all: &mut RowWindows) -> std::io::Result<usize> {
    let (mut bad, mut kept) = (0, 0);
    while let Some(line) = lines.next()? {
        match line {
            Line::Whole(line) if line == COLUMNS.trim_ascii().as_bytes() => {}
            Line::Whole(line) if kept < limits::WINDOWS => match read_line(line, all) {
                Some(windows) => kept += windows,
                None => bad += 1,
            },
            _ => bad += 1,
        }
    }
    Ok(bad)
}

/// Returns how many windows it has.
fn read_line(line: &[u8], all: &mut RowWindows) -> Option<usize> {
    let mut fields = std::str::from_utf8(line).ok()?.split(',');
    let mut number = || fields.next()?.parse::<u32>().ok();
    let (cpu, thread, priority) = (number()?, number()?, number()?);
    let key = SeriesKey { cpu, thread, priority, kind: fields.next()?.to_owned() };
    let (began_ns, first) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let maxima = fields.map(|field| field.parse().ok()).collect::<Option<Vec<u64>>>()?;
    // A series of few windows takes more memory than these.
    let kept = maxima.len() + 16;
    all.add(&key, began_ns, first, maxima.into_iter());
    Some(kept)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "windows are spoiled beside their door")]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn windows(cpu: u32, first: u64, maxima: &[u64]) -> Windows {
        let series = SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() };
        Windows { activity: 0, series, began_ns: 77, first, maxima: maxima.to_vec() }
    }

    fn written(dir: &Path) -> RowWindows {
        let mut log = WindowLog::new(Directory::open(dir).unwrap(), Room::unkept());
        let mut wanted = RowWindows::default();
        for (first, cpu) in [(10, 1), (10, 2), (20, 1), (20, 2)] {
            let one = windows(cpu, first, &[5, 0, 7_000_000_000, 4]);
            log.add(&one).unwrap();
            wanted.add(&one.series, 77, first, one.maxima.into_iter());
        }
        log.sync().unwrap();
        wanted
    }

    #[test]
    fn windows_come_back_as_they_were_and_four_seconds_are_the_most() {
        let (dir, mut damage) = (tempfile::tempdir().unwrap(), Vec::new());
        let wanted = written(dir.path());
        let found = read(&Directory::open(dir.path()).unwrap(), "01-row", &mut damage);
        assert_eq!((&found, damage.len()), (&wanted, 0));
        assert_eq!(found.series.values().next().unwrap().largest(22, 22), Some(u32::MAX));
        let (none, mut damage) = (tempfile::tempdir().unwrap(), Vec::new());
        let found = read(&Directory::open(none.path()).unwrap(), "02-row", &mut damage);
        assert_eq!((found, damage.len()), (RowWindows::default(), 0));
    }

    #[test]
    fn a_day_is_written_down_for_two_hours() {
        let (dir, mut damage) = (tempfile::tempdir().unwrap(), Vec::new());
        let mut log = WindowLog::new(Directory::open(dir.path()).unwrap(), Room::unkept());
        (0..86_400).for_each(|second| assert!(log.add(&windows(1, second * 10, &[5_000; 10])).unwrap()));
        assert!(fs::metadata(dir.path().join(FILE)).unwrap().len() < 1 << 20);
        let found = read(&Directory::open(dir.path()).unwrap(), "01-row", &mut damage);
        assert_eq!(found.series.values().next().unwrap().len(), MOST_WINDOWS);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(at in 0..200_usize, bytes in prop::collection::vec(any::<u8>(), 0..60), cut in 0..300_usize) {
            let (dir, mut damage) = (tempfile::tempdir().unwrap(), Vec::new());
            written(dir.path());
            let path = dir.path().join(FILE);
            let mut text = fs::read(&path).unwrap();
            text.iter_mut().skip(at).zip(&bytes).for_each(|(old, new)| *old = *new);
            text.truncate(cut);
            fs::write(&path, &text).unwrap();
            let _ = read(&Directory::open(dir.path()).unwrap(), "01-row", &mut damage);
        }
    }
}
