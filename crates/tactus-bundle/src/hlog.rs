//! Histograms over time as a standard HdrHistogram interval log (format 1.3).

use std::time::{Duration, SystemTime};

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use tactus_model::bundle::Interval;
use tactus_model::latency::{DIGITS, HIGHEST_NS, Sparse, histogram};

/// The latest start and the greatest length of an interval that is read: 100 years in ns. Nobody
/// measures that long, and sums of such times cannot overflow.
const LONGEST_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// The first lines of a log. `Interval_Max` is in ms, as the reference implementation writes it.
pub fn header(start: SystemTime) -> String {
    let seconds = start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "#[Logged with tactus {version}, values in ns]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {seconds:.3} (seconds since epoch)]\n\
         #[BaseTime: {seconds:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// One line of a log.
pub fn line(interval: &Interval) -> String {
    let mut histogram = histogram();
    // Counts of our own series are valid.
    let _ = interval.counts.add_to(&mut histogram);
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let written = IntervalLogWriterBuilder::new()
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| error.to_string())
        .and_then(|mut log| {
            let (start, length) =
                (Duration::from_nanos(interval.start_ns), Duration::from_nanos(interval.length_ns));
            log.write_histogram(&histogram, start, length, Tag::new(&interval.tag))
                .map_err(|error| error.to_string())
        });
    debug_assert!(written.is_ok(), "writing to memory: {written:?}");
    // The builder repeats its own header before every line; ours stands at the top of the file.
    String::from_utf8_lossy(&text).lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect()
}

/// The intervals of a log, and how many of its lines could not be read.
pub fn read(bytes: &[u8]) -> (Vec<Interval>, usize) {
    let mut intervals = Vec::new();
    let mut bad = 0;
    let mut deserializer = Deserializer::new();
    // Line by line, so that one damaged line does not hide those behind it.
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b"#") || line.starts_with(b"\"") || line.trim_ascii().is_empty() {
            continue;
        }
        match interval(line, &mut deserializer) {
            Some(interval) => intervals.push(interval),
            None => bad += 1,
        }
    }
    (intervals, bad)
}

fn interval(line: &[u8], deserializer: &mut Deserializer) -> Option<Interval> {
    if !line.ends_with(b"\n") {
        return None;
    }
    let Some(Ok(LogEntry::Interval(entry))) = IntervalLogIterator::new(line).next() else { return None };
    let bytes = base64::engine::general_purpose::STANDARD.decode(entry.encoded_histogram()).ok()?;
    let found: Histogram<u64> = deserializer.deserialize(&mut bytes.as_slice()).ok()?;
    // Somebody else's histogram may have another layout; a hostile one may ask for all memory.
    if found.sigfig() != DIGITS || found.high() > HIGHEST_NS.saturating_mul(2) {
        return None;
    }
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).ok().filter(|ns| *ns <= LONGEST_NS);
    Some(Interval {
        tag: entry.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default(),
        start_ns: ns(entry.start_timestamp())?,
        length_ns: ns(entry.duration())?,
        counts: Sparse::of(&found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Interval {
        let mut histogram = histogram();
        for value in [1_000, 1_001, 250_000, 12_345_678] {
            histogram.saturating_record(value);
        }
        Interval {
            tag: "3".into(),
            start_ns: 1_500_000_000,
            length_ns: 500_000_000,
            counts: Sparse::of(&histogram),
        }
    }

    #[test]
    fn an_interval_is_read_back_as_it_was_written() {
        let text = header(SystemTime::UNIX_EPOCH) + &line(&sample());
        let (intervals, bad) = read(text.as_bytes());
        assert_eq!((intervals.len(), bad), (1, 0), "{text}");
        assert_eq!((intervals[0].tag.as_str(), intervals[0].start_ns), ("3", 1_500_000_000));
        assert_eq!(intervals[0].counts, sample().counts);
    }

    #[test]
    fn a_cut_or_damaged_line_is_counted_and_the_rest_is_read() {
        let good = line(&sample());
        let damaged = good.replace("HISTF", "HISUF");
        let absurd = good.replace("Tag=3,1.500,", "Tag=3,99999999999.000,");
        assert_ne!(absurd, good);
        let text = format!("{}{damaged}{absurd}{good}{}", header(SystemTime::UNIX_EPOCH), &good[..40]);
        let (intervals, bad) = read(text.as_bytes());
        assert_eq!((intervals.len(), bad), (1, 3));
    }
}
