//! The ticks of a row on disk: lines of CSV, and of a long row compressed ones, which together are one table.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use tactus_model::histograms::MOST_SERIES;
use tactus_model::series::SeriesKey;
use tactus_model::ticks::{TickScalars, Ticks};
use tactus_system::Directory;

use super::lines::{Line, Lines};
use super::room::Room;
use super::{BundleError, limits};

/// The ticks that are not compressed: the last ones, or all of a short row.
pub const PLAIN: &str = "ticks.csv";
/// Earlier ticks, as gzip members one after the other.
pub const COMPRESSED: &str = "ticks.csv.gz";

const COLUMNS: &str = "cpu,thread,priority,kind,n,at_ns,cycles,overruns,min_ns,sum_ns,p99_ns,max_ns\n";

/// Bytes that are compressed together: a quarter of an hour of eight series, 10 ms of work.
const SEGMENT: usize = 256 * 1024;
/// Ticks after which it is tried again if there was no room.
const RESTS: u32 = 256;

/// Writes the ticks of a row.
#[derive(Debug)]
pub struct TickLog {
    dir: Directory,
    room: Room,
    plain: Option<File>,
    /// Bytes in the file that is not compressed.
    filled: usize,
    compressed: Option<File>,
    /// Ticks for which it is not tried again to compress: there was no room.
    rests: u32,
}

impl TickLog {
    /// In the directory of a row. Files appear with the first tick.
    pub fn new(dir: Directory, room: Room) -> Self {
        Self { dir, room, plain: None, filled: 0, compressed: None, rests: 0 }
    }

    /// Appends a tick. Returns whether there was room.
    pub fn add(&mut self, key: &SeriesKey, tick: &TickScalars) -> Result<bool, BundleError> {
        self.rests = self.rests.saturating_sub(1);
        if self.filled >= SEGMENT && self.rests == 0 && !self.compress()? {
            self.rests = RESTS;
        }
        let mut text = line(key, tick);
        if self.filled == 0 {
            text.insert_str(0, COLUMNS);
        }
        let done = self.room.append_to(&mut self.plain, || self.dir.append(PLAIN), text.as_bytes());
        let done = done.map_err(BundleError::of(&self.dir, PLAIN))?;
        if done {
            self.filled += text.len();
        }
        Ok(done)
    }

    /// Makes what was written last through a power cut.
    pub fn sync(&self) -> Result<(), BundleError> {
        let Some(file) = &self.plain else { return Ok(()) };
        self.room.may(file.sync_data()).map(drop).map_err(BundleError::of(&self.dir, PLAIN))
    }

    /// Compresses what is left, if anything was, and if there is room.
    pub fn finish(mut self) -> Result<(), BundleError> {
        if self.compressed.is_none() {
            return self.sync();
        }
        if !self.compress()? {
            return self.sync();
        }
        self.dir.remove(PLAIN).map_err(BundleError::of(&self.dir, PLAIN))
    }

    /// Compresses what is not yet. First it is on disk, then the lines go: who reads after a crash in between finds
    /// some twice, and knows them by their numbers. Returns whether there was room.
    fn compress(&mut self) -> Result<bool, BundleError> {
        let Some(plain) = &self.plain else { return Ok(true) };
        let lines = self.dir.read(PLAIN, limits::LOG).map_err(BundleError::of(&self.dir, PLAIN))?;
        let skipped = if self.compressed.is_some() { COLUMNS.len().min(lines.len()) } else { 0 };
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let done = encoder
            .write_all(&lines[skipped..])
            .and_then(|()| encoder.finish())
            .and_then(|member| {
                self.room.append_to(&mut self.compressed, || self.dir.append(COMPRESSED), &member)
            })
            .and_then(|done| match &self.compressed {
                Some(file) if done => self.room.may(file.sync_data()),
                _ => Ok(false),
            })
            .map_err(BundleError::of(&self.dir, COMPRESSED))?;
        if !done {
            return Ok(false);
        }
        plain.set_len(0).map_err(BundleError::of(&self.dir, PLAIN))?;
        self.filled = 0;
        Ok(true)
    }
}

/// A word of a probe, with unsafe characters replaced: it must not become columns or lines.
pub fn column(word: &str) -> String {
    word.chars().map(|c| if c.is_alphanumeric() || "-_. ".contains(c) { c } else { '_' }).collect()
}

fn line(key: &SeriesKey, tick: &TickScalars) -> String {
    let SeriesKey { cpu, thread, priority, kind } = key;
    let kind = column(kind);
    let TickScalars { n, at_ns, cycles, overruns, .. } = tick;
    let [min, sum, p99, max] = [tick.min_ns, tick.sum_ns, tick.p99_ns, tick.max_ns]
        .map(|value| value.map(|value| value.to_string()).unwrap_or_default());
    format!("{cpu},{thread},{priority},{kind},{n},{at_ns},{cycles},{overruns},{min},{sum},{p99},{max}\n")
}

/// Reads the ticks of the row in `dir`, whose name in sentences is `name`.
pub fn read(dir: &Directory, name: &str, ticks: &mut Ticks, damage: &mut Vec<String>) {
    each(dir, name, &mut |key, tick| ticks.add(key, tick), damage);
}

/// Calls `take` with every tick of the row; it says whether it took it. Some are there twice, after a crash: they are not
/// to be taken the second time.
pub fn each(
    dir: &Directory,
    name: &str,
    take: &mut dyn FnMut(&SeriesKey, &TickScalars) -> bool,
    damage: &mut Vec<String>,
) {
    let mut reader = Reader { take, keys: Vec::new(), numbers: HashMap::new(), at: 0, bad: 0, twice: false };
    let mut file = |file: &str, outcome: std::io::Result<()>, bad: usize| {
        match outcome {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                damage.push(format!("scenarios/{name}/{file}: the rest cannot be read: {error}"));
            }
            _ => {}
        }
        if bad > 0 {
            damage.push(format!("scenarios/{name}/{file}: {bad} lines cannot be read"));
        }
    };
    let compressed = dir.file(COMPRESSED).and_then(|from| {
        let packed = from.metadata()?.len();
        let from =
            MultiGzDecoder::new(BufReader::with_capacity(64 * 1024, limits::Capped::new(from, packed)));
        let from = limits::Capped::new(from, packed.saturating_mul(limits::UNPACKED).min(limits::LOG));
        reader.lines(Lines::of(BufReader::with_capacity(64 * 1024, from)))
    });
    reader.twice = compressed.is_ok() || !reader.keys.is_empty();
    file(COMPRESSED, compressed, std::mem::take(&mut reader.bad));
    let plain = Lines::open(dir, PLAIN).and_then(|lines| reader.lines(lines));
    file(PLAIN, plain, reader.bad);
}

struct Reader<'a> {
    take: &'a mut dyn FnMut(&SeriesKey, &TickScalars) -> bool,
    /// The series that were seen, as they are written and as they are; they take turns.
    keys: Vec<(Box<[u8]>, SeriesKey)>,
    /// Their places among those.
    numbers: HashMap<Box<[u8]>, usize>,
    at: usize,
    bad: usize,
    /// Whether lines may be there that were read already: compressed before a crash could take them away.
    twice: bool,
}

impl Reader<'_> {
    fn lines<R: std::io::BufRead>(&mut self, mut lines: Lines<R>) -> std::io::Result<()> {
        while let Some(line) = lines.next()? {
            match line {
                Line::Whole(line) if line == COLUMNS.trim_ascii().as_bytes() => {}
                Line::Whole(line) if self.line(line).is_some() => {}
                _ => self.bad += 1,
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Option<()> {
        let end_of_key = line.iter().enumerate().filter(|(_, byte)| **byte == b',').nth(3)?.0;
        let (key, scalars) = (&line[..end_of_key], &line[end_of_key + 1..]);
        let mut fields = scalars.split(|byte| *byte == b',');
        let mut next = || -> Option<Option<u64>> {
            let field = fields.next()?;
            if field.is_empty() { Some(None) } else { number(field).map(Some) }
        };
        let tick = TickScalars {
            n: next()??,
            at_ns: next()??,
            cycles: next()??,
            overruns: next()??,
            min_ns: next()?,
            sum_ns: next()?,
            p99_ns: next()?,
            max_ns: next()?,
        };
        if fields.next().is_some() {
            return None;
        }
        let at = self.series(key)?;
        ((self.take)(&self.keys[at].1, &tick) || self.twice).then_some(())
    }

    fn series(&mut self, written: &[u8]) -> Option<usize> {
        let known = self.keys.len();
        let next = if self.at + 1 < known { self.at + 1 } else { 0 };
        let takes_turns = self.keys.get(next).filter(|(key, _)| **key == *written).map(|_| next);
        self.at = match takes_turns.or_else(|| self.numbers.get(written).copied()) {
            Some(at) => at,
            None if known >= MOST_SERIES => return None,
            None => {
                self.keys.push((written.into(), key(written)?));
                self.numbers.insert(written.into(), known);
                known
            }
        };
        Some(self.at)
    }
}

fn key(written: &[u8]) -> Option<SeriesKey> {
    let mut fields = std::str::from_utf8(written).ok()?.split(',');
    let mut next = || fields.next()?.parse().ok();
    let (cpu, thread, priority) = (next()?, next()?, next()?);
    Some(SeriesKey { cpu, thread, priority, kind: fields.next()?.to_owned() })
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "ticks are spoiled beside their door")]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn key(cpu: u32) -> SeriesKey {
        SeriesKey { cpu, thread: cpu, priority: 95, kind: "thread".into() }
    }

    fn tick(n: u64, value: u64) -> TickScalars {
        let [min_ns, sum_ns, p99_ns, max_ns] = [1, 9, 3, 4].map(|times| Some(value * times));
        TickScalars {
            n,
            at_ns: (n + 1) * 1_000_000_000,
            cycles: 9,
            overruns: 1,
            min_ns,
            sum_ns,
            p99_ns,
            max_ns,
        }
    }

    fn read_all(dir: &Path) -> (Ticks, Vec<String>) {
        let (mut ticks, mut damage) = (Ticks::planned(86_400_000_000_000), Vec::new());
        read(&Directory::open(dir).unwrap(), "01-row", &mut ticks, &mut damage);
        (ticks, damage)
    }

    /// A row of two series.
    fn row(dir: &Path, length: u64) -> (TickLog, Ticks) {
        let (mut log, mut wanted) =
            (TickLog::new(Directory::open(dir).unwrap(), Room::unkept()), Ticks::planned(86_400_000_000_000));
        for n in 0..length {
            for cpu in [1, 2] {
                let tick = tick(n, 2_000 + n * 7_919 % 997 + u64::from(cpu));
                assert!(log.add(&key(cpu), &tick).unwrap());
                assert!(wanted.add(&key(cpu), &tick));
            }
        }
        (log, wanted)
    }

    #[test]
    fn a_short_row_is_one_plain_table() {
        let dir = tempfile::tempdir().unwrap();
        let (log, wanted) = row(dir.path(), 3);
        log.finish().unwrap();
        assert_eq!(read_all(dir.path()), (wanted, Vec::new()));
        let text = fs::read_to_string(dir.path().join(PLAIN)).unwrap();
        assert_eq!(text.lines().count(), 7);
        assert_eq!(text.lines().nth(1), Some("1,1,95,thread,0,1000000000,9,1,2001,18009,6003,8004"));
        assert!(!dir.path().join(COMPRESSED).exists());
    }

    #[test]
    fn a_long_row_is_one_compressed_table() {
        let dir = tempfile::tempdir().unwrap();
        let (log, wanted) = row(dir.path(), 9_000);
        log.finish().unwrap();
        assert!(read_all(dir.path()) == (wanted, Vec::new()));
        assert!(!dir.path().join(PLAIN).exists());
        let mut text = String::new();
        let file = BufReader::new(File::open(dir.path().join(COMPRESSED)).unwrap());
        MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
        assert_eq!(text.matches("cpu").count(), 1, "one line of names");
        assert_eq!(text.lines().count(), 18_001);
    }

    #[test]
    fn a_crash_costs_no_tick_wherever_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, wanted) = row(dir.path(), 9_000);
        assert!(dir.path().join(COMPRESSED).exists(), "some are compressed already");
        assert!(read_all(dir.path()) == (wanted.clone(), Vec::new()), "before the rest is");
        let plain = fs::read(dir.path().join(PLAIN)).unwrap();
        let path = dir.path().join(COMPRESSED);
        let before = usize::try_from(path.metadata().unwrap().len()).unwrap();
        assert!(log.compress().unwrap());
        fs::write(dir.path().join(PLAIN), &plain).unwrap();
        let between = read_all(dir.path());
        assert!(between == (wanted.clone(), Vec::new()), "between the compressing and the taking away");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..before.midpoint(bytes.len())]).unwrap();
        let (found, damage) = read_all(dir.path());
        assert!(found == wanted, "while it was compressed");
        assert!(damage.iter().any(|said| said.contains(COMPRESSED)), "{damage:?}");
    }

    #[test]
    fn lines_that_are_no_ticks_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (_, wanted) = row(dir.path(), 3);
        let path = dir.path().join(PLAIN);
        let good = fs::read_to_string(&path).unwrap();
        let again = good.lines().nth(1).unwrap();
        let late = format!("1,1,95,thread,7,{},9,1,2001,18009,6003,8004", u64::MAX);
        fs::write(
            &path,
            format!("{good}x\n{again}\n{again},5\n1,1,95,thread,9,,,,,,,\n{late}\n\u{fe}\n1,1,95,thr"),
        )
        .unwrap();
        let (found, damage) = read_all(dir.path());
        assert_eq!(found, wanted);
        assert_eq!(damage, ["scenarios/01-row/ticks.csv: 7 lines cannot be read"]);
    }

    #[test]
    fn what_an_instrument_does_not_tell_stays_untold_and_a_word_of_a_probe_is_no_column() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = TickLog::new(Directory::open(dir.path()).unwrap(), Room::unkept());
        let key = SeriesKey { kind: "a,b\n\"c\"".into(), ..key(1) };
        log.add(&key, &TickScalars { n: 0, at_ns: 5, cycles: 3, max_ns: Some(7), ..TickScalars::default() })
            .unwrap();
        log.finish().unwrap();
        let (found, damage) = read_all(dir.path());
        assert!(damage.is_empty(), "{damage:?}");
        let (key, one) = found.iter().next().unwrap();
        assert_eq!(key.kind, "a_b__c_");
        assert_eq!((one.min_ns, one.max_ns, one.cycles, one.summed), (None, Some(7), 3, 0));
    }

    #[test]
    fn a_table_that_unpacks_to_far_more_than_ours_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&vec![b'\n'; 64 << 20]).unwrap();
        fs::write(dir.path().join(COMPRESSED), encoder.finish().unwrap()).unwrap();
        let (ticks, damage) = read_all(dir.path());
        assert!(ticks.is_empty() && damage.len() == 1 && damage[0].contains("longer than"), "{damage:?}");
    }

    #[test]
    fn series_without_end_are_counted_as_lines_that_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let lines = (0..MOST_SERIES + 3).map(|cpu| format!("{cpu},0,95,thread,0,5,1,0,1,1,1,1\n"));
        fs::write(dir.path().join(PLAIN), COLUMNS.to_owned() + &lines.collect::<String>()).unwrap();
        let (ticks, damage) = read_all(dir.path());
        assert_eq!(ticks.series.len(), MOST_SERIES);
        assert_eq!(damage, ["scenarios/01-row/ticks.csv: 3 lines cannot be read"]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            at in 0..400_usize, bytes in proptest::collection::vec(any::<u8>(), 0..80), cut in 0..600_usize, compressed in any::<bool>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let (mut log, wanted) = row(dir.path(), 5);
            if compressed {
                log.compress().unwrap();
            }
            let path = dir.path().join(if compressed { COMPRESSED } else { PLAIN });
            let whole = fs::read(&path).unwrap();
            let mut text = whole.clone();
            text.iter_mut().skip(at).zip(&bytes).for_each(|(old, new)| *old = *new);
            text.truncate(cut);
            fs::write(&path, &text).unwrap();
            let (found, damage) = read_all(dir.path());
            prop_assert!(text != whole || (damage.is_empty() && found == wanted));
            // A line that is missing as a whole is not noticed; any other loss is.
            let names_stay = text.len() > COLUMNS.len() && text[..COLUMNS.len()] == whole[..COLUMNS.len()];
            if !compressed && bytes.is_empty() && names_stay && !whole[..text.len()].ends_with(b"\n") {
                prop_assert_eq!(damage.len(), 1);
            }
        }
    }
}
