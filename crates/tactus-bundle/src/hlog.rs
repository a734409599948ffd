//! Histograms over time as a standard HdrHistogram interval log (format 1.3).

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use base64::Engine;
use flate2::{Decompress, FlushDecompress, Status};
use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
use tactus_model::buckets::BUCKETS;
use tactus_model::histograms::{MOST_SERIES, Place};
use tactus_model::latency::DIGITS;
use tactus_model::outcome::zigzag::zigzag;
use tactus_system::Directory;

use super::limits;
use super::lines::{Line, Lines};

/// The latest start and the greatest length of an interval that is read: 100 years in ns. No measurement
/// lasts that long, and sums of such times cannot overflow.
const LONGEST_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// The log of measured latencies.
pub const LATENCY: &str = "latency.hlog";
/// The log of periods that were missed meanwhile.
pub const MISSED: &str = "missed.hlog";

/// Length of the intervals of a log that can be read, in ns, and how many bytes its histograms have.
pub fn lengths(dir: &Directory, name: &str) -> io::Result<(Vec<u64>, u64)> {
    let (mut lengths, mut bytes) = (Vec::new(), 0);
    each(dir, name, |entry| {
        bytes += u64::try_from(entry.encoded_histogram().len()).unwrap_or(0);
        if lengths.len() < limits::INTERVALS {
            lengths.extend(place(entry).map(|place| place.length_ns));
        }
        true
    })?;
    Ok((lengths, bytes))
}

/// The end of each series in a log, by tag, in ns since the row began to measure.
pub fn ends(dir: &Directory, name: &str) -> io::Result<BTreeMap<String, u64>> {
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    each(dir, name, |entry| {
        let Some(place) = place(entry) else { return false };
        let tag = entry.tag().map_or("", |tag| tag.as_str());
        if ends.len() >= MOST_SERIES && !ends.contains_key(tag) {
            return false;
        }
        let end = ends.entry(tag.to_owned()).or_default();
        *end = place.end_ns().max(*end);
        true
    })?;
    Ok(ends)
}

/// Calls `take` with every interval of a log: its tag, its place, and its counts by bucket. Returns how
/// many lines could not be read, those among them that `take` refused.
pub fn read(
    dir: &Directory,
    name: &str,
    mut take: impl FnMut(&str, Place, &[(usize, u64)]) -> bool,
) -> io::Result<usize> {
    let mut decoder = Decoder::default();
    each(dir, name, |entry| {
        let (Some(place), Some(counts)) = (place(entry), decoder.counts(entry.encoded_histogram())) else {
            return false;
        };
        take(entry.tag().map_or("", |tag| tag.as_str()), place, counts)
    })
}

/// Line by line, so that one damaged line does not hide those behind it. `take` says whether it could be read.
fn each(
    dir: &Directory,
    name: &str,
    mut take: impl FnMut(&IntervalLogHistogram<'_>) -> bool,
) -> io::Result<usize> {
    let mut lines = Lines::open(dir, name)?;
    let mut bad = 0;
    let mut whole = Vec::new();
    while let Some(line) = lines.next()? {
        let taken = match line {
            Line::Whole(line) if line.starts_with(b"#") || line.starts_with(b"\"") => true,
            Line::Whole(line) => {
                whole.clear();
                whole.extend_from_slice(line);
                whole.push(b'\n');
                match IntervalLogIterator::new(&whole).next() {
                    Some(Ok(LogEntry::Interval(entry))) => take(&entry),
                    _ => false,
                }
            }
            Line::Cut(_) | Line::TooLong => false,
        };
        bad += usize::from(!taken);
    }
    Ok(bad)
}

fn place(entry: &IntervalLogHistogram<'_>) -> Option<Place> {
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).ok().filter(|ns| *ns <= LONGEST_NS);
    Some(Place { start_ns: ns(entry.start_timestamp())?, length_ns: ns(entry.duration())? })
}

/// Cookies of HdrHistogram's encoding V2, compressed and not.
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;
/// Bytes before the counts: cookie, length, offset, digits, lowest, highest, ratio.
const HEADER: usize = 40;

/// Reads encoded histograms of our layout into counts by bucket. The library's own reader makes a histogram of
/// 270 KB of each: a day of eight series has eleven thousand, and spends most of its time on zeros.
struct Decoder {
    inflate: Decompress,
    compressed: Vec<u8>,
    plain: Vec<u8>,
    counts: Vec<(usize, u64)>,
}

impl Default for Decoder {
    fn default() -> Self {
        // No histogram of our layout is longer: nine bytes for each count.
        let plain = Vec::with_capacity(HEADER + 9 * BUCKETS);
        Self { inflate: Decompress::new(true), compressed: Vec::new(), plain, counts: Vec::new() }
    }
}

impl Decoder {
    /// Reads the counts; `None` if they are damaged, or have another tool's layout.
    fn counts(&mut self, encoded: &str) -> Option<&[(usize, u64)]> {
        self.compressed.clear();
        base64::engine::general_purpose::STANDARD.decode_vec(encoded, &mut self.compressed).ok()?;
        let (cookie, rest) = self.compressed.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        if u32::from_be_bytes(*cookie) != COMPRESSED {
            return None;
        }
        self.inflate.reset(true);
        self.plain.clear();
        let status = self
            .inflate
            .decompress_vec(rest.get(..length)?, &mut self.plain, FlushDecompress::Finish)
            .ok()?;
        if status != Status::StreamEnd {
            return None;
        }
        self.counts.clear();
        decode(&self.plain, &mut self.counts)?;
        Some(&self.counts)
    }
}

fn decode(plain: &[u8], counts: &mut Vec<(usize, u64)>) -> Option<()> {
    let (header, mut rest) = plain.split_at_checked(HEADER)?;
    let word = |at: usize| header[at..at + 4].try_into().map(u32::from_be_bytes).ok();
    let long = |at: usize| header[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    let ours = word(0)? == PLAIN
        && usize::try_from(word(4)?).ok()? == rest.len()
        && word(8)? == 0
        && word(12)? == u32::from(DIGITS)
        && long(16)? == 1
        && long(32)? == 1.0_f64.to_bits();
    if !ours {
        return None;
    }
    let (mut bucket, mut total) = (0_usize, 0_u64);
    while !rest.is_empty() {
        let number = zigzag(&mut rest)?;
        if number < 0 {
            bucket = bucket.checked_add(usize::try_from(number.unsigned_abs()).ok()?)?;
            continue;
        }
        if number > 0 {
            let count = number.unsigned_abs();
            total = total.checked_add(count)?;
            counts.push((bucket, count));
        }
        bucket = bucket.checked_add(1)?;
    }
    // The library's layouts end a little behind the highest value.
    counts.last().is_none_or(|(bucket, _)| *bucket < 2 * BUCKETS).then_some(())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "logs are spoiled beside their door")]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use hdrhistogram::Histogram;
    use proptest::prelude::*;
    use tactus_format::hlog::{header, line};
    use tactus_model::Sparse;
    use tactus_model::buckets::value_of;
    use tactus_model::latency::{HIGHEST_NS, histogram};

    use super::*;

    const PLACE: Place = Place { start_ns: 1_500_000_000, length_ns: 500_000_000 };

    fn of(values: &[u64]) -> Histogram<u64> {
        let mut histogram = histogram();
        for value in values {
            histogram.saturating_record(*value);
        }
        histogram
    }

    /// A log alone in its directory.
    struct Log {
        dir: Directory,
        _there: tempfile::TempDir,
    }

    impl Log {
        fn of(text: impl AsRef<[u8]>) -> Self {
            let there = tempfile::tempdir().unwrap();
            fs::write(there.path().join(LATENCY), text).unwrap();
            Self { dir: Directory::open(there.path()).unwrap(), _there: there }
        }
    }

    /// Tags, places and histograms of a log, and how many lines could not be read.
    fn all(text: &str) -> (Vec<(String, Place, Histogram<u64>)>, usize) {
        let log = Log::of(text);
        let mut found = Vec::new();
        let bad = read(&log.dir, LATENCY, |tag, place, counts| {
            let mut histogram = histogram();
            for (bucket, count) in counts {
                histogram.saturating_record_n(value_of(*bucket), *count);
            }
            found.push((tag.to_owned(), place, histogram));
            true
        });
        (found, bad.unwrap())
    }

    fn sample() -> String {
        line("3", PLACE, &of(&[1_000, 1_001, 250_000, 12_345_678])).unwrap()
    }

    #[test]
    fn an_interval_is_read_back_as_it_was_written() {
        let (found, bad) = all(&(header(Some(SystemTime::UNIX_EPOCH)) + &sample()));
        assert_eq!((found.len(), bad), (1, 0));
        assert_eq!(found[0], ("3".into(), PLACE, of(&[1_000, 1_001, 250_000, 12_345_678])));
        let log = Log::of(sample());
        assert_eq!(lengths(&log.dir, LATENCY).unwrap().0, [PLACE.length_ns]);
        assert_eq!(ends(&log.dir, LATENCY).unwrap(), [("3".into(), PLACE.end_ns())].into());
    }

    #[test]
    fn a_cut_or_damaged_line_is_counted_and_the_rest_is_read() {
        let good = sample();
        let damaged = good.replace("HISTF", "HISUF");
        let absurd = good.replace("Tag=3,1.500,", "Tag=3,99999999999.000,");
        assert_ne!(absurd, good);
        let text = format!("{}{damaged}{good}{}", header(Some(SystemTime::UNIX_EPOCH)), &good[..40]);
        let log = Log::of(text + "\n" + &absurd);
        let mut taken = 0;
        let bad = read(&log.dir, LATENCY, |_, _, _| {
            taken += 1;
            true
        });
        assert_eq!((taken, bad.unwrap()), (1, 3));
    }

    #[test]
    fn a_count_that_a_log_cannot_hold_is_an_error_and_no_other_figure() {
        let mut many = histogram();
        many.saturating_record_n(5_000, i64::MAX.unsigned_abs());
        let most = line("3", PLACE, &many).unwrap();
        assert_eq!(all(&most).0[0].2.len(), i64::MAX.unsigned_abs());
        many.saturating_record(5_000);
        assert!(line("3", PLACE, &many).unwrap_err().to_string().contains("a histogram of 3"));
    }

    #[test]
    fn a_histogram_of_another_layout_is_refused() {
        let mut other = Histogram::new_with_bounds(1, HIGHEST_NS, 2).unwrap();
        other.record(5_000).unwrap();
        assert_eq!(all(&line("3", PLACE, &other).unwrap()).1, 1);
    }

    proptest! {
        #[test]
        fn every_histogram_is_read_as_the_library_reads_it(values in proptest::collection::vec(0..2 * HIGHEST_NS, 0..200)) {
            let wanted = of(&values);
            let (found, bad) = all(&line("cpu1/t0/thread", PLACE, &wanted).unwrap());
            prop_assert_eq!(bad, 0);
            prop_assert_eq!(Sparse::of(&found[0].2), Sparse::of(&wanted));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(at in 0..400_usize, bytes in proptest::collection::vec(any::<u8>(), 0..60), plain in proptest::collection::vec(any::<u8>(), 0..90)) {
            let mut text = sample().into_bytes();
            for (old, new) in text.iter_mut().skip(at).zip(&bytes) {
                *old = *new;
            }
            let _ = read(&Log::of(&text).dir, LATENCY, |_, _, _| true);
            // Behind a header that is ours, too, as only a forger's inflated bytes are.
            let mut forged = Vec::from(PLAIN.to_be_bytes());
            forged.extend(u32::try_from(plain.len()).unwrap().to_be_bytes());
            forged.extend([0, 0, 0, 0, 0, 0, 0, DIGITS]);
            forged.extend([1_u64.to_be_bytes(), HIGHEST_NS.to_be_bytes(), 1.0_f64.to_be_bytes()].concat());
            forged.extend(&plain);
            let _ = decode(&forged, &mut Vec::new());
        }
    }
}
