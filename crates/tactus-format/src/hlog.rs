//! Logs of HdrHistogram (interval logs, format 1.3) as they are written here: into every bundle, and where one is
//! exported.

use std::io;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use tactus_model::histograms::Place;

/// The first lines of a log whose first interval began at this time; `None` if it is unknown. `Interval_Max`
/// is in ms, as the reference implementation writes it.
#[must_use]
pub fn header(start: Option<SystemTime>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        "#[Logged with tactus {version}, values in ns]\n\
         #[Histogram log format version 1.3]\n"
    );
    if let Some(start) = start {
        let seconds = start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        text += &format!(
            "#[StartTime: {seconds:.3} (seconds since epoch)]\n\
             #[BaseTime: {seconds:.3} (seconds since epoch)]\n"
        );
    }
    text += "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
    text
}

/// One line of a log: what a series measured in an interval.
///
/// # Errors
/// When a count is larger than a log can hold (2^63 - 1): a line with another one would be a wrong figure.
pub fn line(tag: &str, place: Place, counted: &Histogram<u64>) -> io::Result<String> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)?;
    let (start, length) = (Duration::from_nanos(place.start_ns), Duration::from_nanos(place.length_ns));
    // A tag with a comma or a blank in it would be other columns.
    let tag = Tag::new(tag).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("`{tag}` cannot be the tag of a histogram"))
    })?;
    log.write_histogram(counted, start, length, Some(tag)).map_err(|error| {
        let words = format!("a histogram of {} cannot be logged: {error}", tag.as_str());
        io::Error::new(io::ErrorKind::InvalidData, words)
    })?;
    drop(log);
    // The builder repeats its own header before every line; ours stands at the top of the file.
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect())
}
