//! Logs of HdrHistogram (interval logs, format 1.3 and older), whatever the layout and the encoding (V0, V1, V2) of their
//! histograms.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use flate2::{Decompress, FlushDecompress, Status};
use tactus_model::outcome::zigzag::zigzag;

use super::recording::{Rows, Stated};
use super::text::{Lines, MOST_IDLE, decimal, short, too_idle};
use super::{ImportError, Recording, Values, runs};
use crate::lines::MOST_THREADS;

/// Cookies of the encoding V2, compressed and not.
const COMPRESSED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;
/// Cookies of older versions, in which a count is a word whose size stands in these bits.
const WORD: u32 = 0xf0;
const COMPRESSED_V1: u32 = 0x1c84_9302;
const PLAIN_V1: u32 = 0x1c84_9301;
const COMPRESSED_V0: u32 = 0x1c84_9309;
const PLAIN_V0: u32 = 0x1c84_9308;
/// Bytes before the counts: cookie, length, offset, digits, lowest, highest, ratio.
const HEADER: usize = 40;
/// The same in V0: cookie, digits, lowest, highest, total.
const HEADER_V0: usize = 32;
/// The longest histogram that is unpacked, in bytes.
const LONGEST: usize = 16 << 20;
/// Most bytes of all histograms together per byte of their lines; a single one of the greatest length is
/// always allowed. Measured histograms are ten times longer than their lines, but a few crafted bytes can
/// take minutes to count.
const UNPACKED: usize = 100;
const SECOND_NS: u64 = 1_000_000_000;

/// Whether a line is one of a log.
pub(super) fn is_line(line: &str) -> bool {
    line.contains("[Histogram log format version")
        || line.starts_with("\"StartTimestamp\"")
        || line.split(',').nth_back(0).is_some_and(|last| last.starts_with("HIST") && last.len() > 30)
}

/// Reads one.
pub(super) fn read<R: Read>(lines: Lines<R>, unit_ns: Option<u64>) -> Result<Vec<Recording>, ImportError> {
    let mut writer = Writer { instrument: None, says_ns: false, room: LONGEST };
    runs::each(lines, |lines| one(lines, unit_ns, &mut writer))
}

/// The program that wrote a log, which the first run of a file names for all.
struct Writer {
    instrument: Option<String>,
    says_ns: bool,
    /// How many bytes its histograms may still have, unpacked: of all runs together.
    room: usize,
}

fn one<R: Read>(
    lines: &mut Lines<R>,
    unit_ns: Option<u64>,
    writer: &mut Writer,
) -> Result<Vec<Recording>, ImportError> {
    let mut recording = Recording::of("HdrHistogram log", Values::Wakeups);
    let mut tags: BTreeMap<String, Rows> = BTreeMap::new();
    let mut end_ns = 0;
    let mut at = lines.number.saturating_sub(lines.has_again().into());
    let mut started: Option<String> = None;
    let mut legends = 0;
    while let Some(line) = lines.next()? {
        at += 1;
        // Some programs write the whole heading again before each interval: only another time begins a run.
        if let Some(time) = line.strip_prefix("#[StartTime: ") {
            let is_other = started.as_ref().is_some_and(|before| before.as_str() != time);
            if is_other && !tags.is_empty() {
                lines.again();
                break;
            }
            started = Some(time.to_owned());
            continue;
        }
        let wrong = |what: String| ImportError::line(at, what);
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(by) = comment.strip_prefix("[Logged with ").and_then(|by| by.strip_suffix(']')) {
                writer.instrument = Some(format!("HdrHistogram log of {}", short(by)));
                writer.says_ns |= by.ends_with("values in ns");
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        if line.starts_with('"') {
            legends += 1;
            if legends > MOST_IDLE {
                return Err(wrong(too_idle()));
            }
            continue;
        }
        let (tag, end, encoded) = fields(line).map_err(wrong)?;
        if !tags.contains_key(tag) && tags.len() >= MOST_THREADS as usize {
            return Err(wrong("more tags than possible series".into()));
        }
        let rows = tags.entry(tag.to_owned()).or_default();
        writer.room = writer.room.saturating_add(encoded.len().saturating_mul(UNPACKED));
        let added = decoded(encoded).and_then(|plain| {
            writer.room = writer
                .room
                .checked_sub(plain.len())
                .ok_or("its histograms are longer than any of a log of its size")?;
            add(&plain, unit_ns.unwrap_or(1), rows)
        });
        added.map_err(wrong)?;
        end_ns = end.max(end_ns);
    }
    for (number, (tag, rows)) in tags.into_iter().enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let cpu = cpu_of(&tag);
        let series = rows
            .series(Stated::default())
            .map_err(|what| ImportError::whole(format!("tag {tag}: {what}")))?;
        recording.series.push(series.at(number, cpu));
        if cpu.is_none() && !tag.is_empty() {
            recording.notes.push(format!("thread {number} is the tag `{}`", short(&tag)));
        }
    }
    if let Some(instrument) = &writer.instrument {
        recording.instrument.clone_from(instrument);
    }
    recording.duration_ns = (end_ns > 0).then_some(end_ns);
    recording.remark();
    recording.notes.push("minimum, mean and maximum are those of its buckets".into());
    if unit_ns.is_none() && !writer.says_ns {
        let text =
            "the file does not contain its unit: its values are taken as ns (`--unit us` if they are not)";
        recording.notes.push(text.into());
    }
    Ok(vec![recording])
}

/// `[Tag=x,]0.127,1.007,2.769,HISTFAAAA...`: the tag, the end of the interval in ns, the histogram.
fn fields(line: &str) -> Result<(&str, u64, &str), String> {
    let damaged = || format!("not an interval: `{}`", short(line));
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').ok_or_else(damaged)?,
        None => ("", line),
    };
    let mut fields = rest.split(',').map(str::trim);
    let mut time = || decimal(fields.next()?, SECOND_NS);
    let (start, length) = (time().ok_or_else(damaged)?, time().ok_or_else(damaged)?);
    let (largest, encoded) = (fields.next().ok_or_else(damaged)?, fields.next().ok_or_else(damaged)?);
    if decimal(largest, 1).is_none() || fields.next().is_some() || tag.len() > 100 {
        return Err(damaged());
    }
    // Some write the time since 1970 as start: then the beginning is unknown.
    let end =
        if start > 100 * 366 * 86_400 * (SECOND_NS / 10) { length } else { start.saturating_add(length) };
    Ok((tag, end, encoded))
}

/// The CPU of a tag: tactus has `3` and `cpu3/t0/thread`.
fn cpu_of(tag: &str) -> Option<u32> {
    let first = tag.split('/').next()?;
    first.strip_prefix("cpu").unwrap_or(first).parse().ok().filter(|cpu| *cpu < 4096)
}

/// The bytes of a histogram.
fn decoded(encoded: &str) -> Result<Vec<u8>, String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
    let bytes = bytes.map_err(|error| format!("its histogram is not base64: {error}"))?;
    let word =
        |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
    let Some(cookie) = word(0) else { return Err("its histogram is cut".into()) };
    match (cookie, cookie & !WORD) {
        (PLAIN, _) | (_, PLAIN_V1 | PLAIN_V0) => return Ok(bytes),
        (COMPRESSED, _) | (_, COMPRESSED_V1 | COMPRESSED_V0) => {}
        _ => return Err("its histogram is in no encoding of HdrHistogram (V0, V1, V2)".into()),
    }
    let length = word(4).and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
    let packed = bytes.get(8..).filter(|packed| packed.len() == length).ok_or("its histogram is cut")?;
    let mut inflate = Decompress::new(true);
    let mut plain = Vec::with_capacity(4096);
    loop {
        let read = usize::try_from(inflate.total_in()).unwrap_or(usize::MAX);
        let rest = packed.get(read..).unwrap_or_default();
        let before = (inflate.total_in(), plain.len());
        // Not `Finish`: all that is not unpacked at once would then be damaged.
        let status = inflate.decompress_vec(rest, &mut plain, FlushDecompress::None);
        match status.map_err(|error| format!("its histogram cannot be unpacked: {error}"))? {
            Status::StreamEnd => return Ok(plain),
            _ if plain.len() > LONGEST => {
                return Err(format!("its histogram is longer than {LONGEST} bytes"));
            }
            _ if plain.len() == plain.capacity() => plain.reserve(plain.len()),
            _ if before == (inflate.total_in(), plain.len()) => return Err("its histogram is cut".into()),
            _ => {}
        }
    }
}

/// Adds the counts of an unpacked histogram.
fn add(plain: &[u8], unit_ns: u64, rows: &mut Rows) -> Result<(), String> {
    let cookie = plain.first_chunk::<4>().map(|word| u32::from_be_bytes(*word)).unwrap_or(0);
    let is_v0 = cookie & !WORD == PLAIN_V0;
    let (header, mut rest) =
        plain.split_at_checked(if is_v0 { HEADER_V0 } else { HEADER }).ok_or("its histogram is cut")?;
    let word = |at: usize| header[at..at + 4].iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    let (digits, lowest) = if is_v0 { (word(4), long(8)) } else { (word(12), long(16)) };
    let is_plain = cookie == PLAIN || is_v0 || cookie & !WORD == PLAIN_V1;
    let length = if is_v0 { Some(rest.len()) } else { usize::try_from(word(4)).ok() };
    // In V1 zeros at the end may be left out, or in.
    let fits = if cookie == PLAIN { length == Some(rest.len()) } else { length <= Some(rest.len()) };
    if !is_plain || !fits || (!is_v0 && word(8) != 0) {
        return Err("its histogram is damaged, or of another encoding".into());
    }
    if digits > 5 || lowest == 0 || (!is_v0 && long(32) != 1.0_f64.to_bits()) {
        return Err("its histogram has a layout that no HdrHistogram of whole numbers has".into());
    }
    let layout = Layout { half_bits: half_bits(digits), unit_bits: lowest.ilog2() };
    let gap = "its counts have an impossible gap";
    if cookie != PLAIN {
        let size = usize::try_from((cookie & WORD) >> 4).unwrap_or(0) & 0xe;
        if !matches!(size, 2 | 4 | 8) {
            return Err(format!("its counts are words of {size} bytes, which is impossible"));
        }
        let rest = &rest[..length.unwrap_or(0)];
        if !rest.len().is_multiple_of(size) {
            return Err("its counts are cut".into());
        }
        for (index, count) in (0_u64..).zip(rest.chunks_exact(size)) {
            let count = count.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            if count > 0 {
                let value = layout.largest(index).and_then(|value| value.checked_mul(unit_ns));
                rows.add(value.ok_or("it counts impossible values")?, count)?;
            }
        }
        return Ok(());
    }
    let mut index = 0_u64;
    while !rest.is_empty() {
        let number = zigzag(&mut rest).ok_or("its counts are cut")?;
        if number < 0 {
            index = index.checked_add(number.unsigned_abs()).ok_or(gap)?;
            continue;
        }
        if number > 0 {
            let value = layout.largest(index).ok_or("it counts impossible values")?;
            let value_ns = value.checked_mul(unit_ns).ok_or("it counts impossible values")?;
            rows.add(value_ns, number.unsigned_abs())?;
        }
        index = index.checked_add(1).ok_or(gap)?;
    }
    Ok(())
}

/// Bits of half the buckets that share an octave, for this number of decimal digits.
fn half_bits(digits: u32) -> u32 {
    let single: u64 = 2 * 10_u64.pow(digits);
    single.next_power_of_two().ilog2().max(1) - 1
}

struct Layout {
    half_bits: u32,
    unit_bits: u32,
}

impl Layout {
    /// The largest value of a bucket.
    fn largest(&self, index: u64) -> Option<u64> {
        let half = 1 << self.half_bits;
        let (octave, within) = match (index >> self.half_bits).checked_sub(1) {
            Some(octave) => (u32::try_from(octave).ok()?, (index & (half - 1)) + half),
            None => (0, index),
        };
        let shift = octave.checked_add(self.unit_bits).filter(|shift| *shift < 64)?;
        let next = u128::from(within + 1) << shift;
        u64::try_from(next - 1).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A histogram of three digits with these counts.
    fn plain(counts: &[u8]) -> Vec<u8> {
        let mut bytes = PLAIN.to_be_bytes().to_vec();
        bytes.extend(u32::try_from(counts.len()).unwrap().to_be_bytes());
        bytes.extend([0_u32, 3].iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend([1, u64::MAX, 1.0_f64.to_bits()].iter().flat_map(|long| long.to_be_bytes()));
        bytes.extend(counts);
        bytes
    }

    #[test]
    fn gaps_that_lead_beyond_the_last_place_there_can_be_are_a_damage_and_no_panic() {
        // Gaps of 2^63 and 2^63 - 1, and a place behind them where nothing was counted.
        let (long, shorter) = ([0xff; 9], [0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        let to_the_end = [long, shorter].concat();
        let added = |counts: &[u8]| add(&plain(counts), 1, &mut Rows::default());
        assert_eq!(added(&to_the_end), Ok(()));
        let beyond = [&to_the_end[..], &[0]].concat();
        assert_eq!(added(&beyond), Err("its counts have an impossible gap".to_owned()));
        assert!(added(&[long, long].concat()).is_err());
    }
}
