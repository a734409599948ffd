//! What other instruments left in files: recognised by its content, read whole or refused with the place. Pure: bytes
//! in, recordings out.
//!
//! A file that says something that cannot be is refused, not repaired: nothing of it is dropped silently. Files of
//! lines are read as a stream; of a document at most [`MOST_DOCUMENT`] bytes are held. What is kept of a thread is the
//! counts of one histogram, however long it measured.

mod bare_guest;
mod cyclictest;
mod error;
mod hlog;
mod jitterdebugger;
mod json;
mod plain;
mod recording;
mod rt_tests;
mod rteval;
mod rtla;
mod text;
mod unpack;

use std::io::{BufRead, Read};

pub use error::{ImportError, Place};
pub use recording::{Recording, Series, Values};

use text::Lines;
use unpack::{Packing, TELLING};

/// Longest document (JSON, XML) that is read, in bytes.
pub const MOST_DOCUMENT: u64 = 64 << 20;

/// How much of a file is looked at to recognise it, in bytes.
const LOOKED_AT: usize = 16 << 10;

/// What a file cannot say by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// One unit of its numbers, in ns, where it does not say it: microseconds for cyclictest's text, ns for a log of
    /// histograms.
    pub unit_ns: Option<u64>,
}

/// A format that is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    BareGuest,
    Json,
    Xml,
    HistogramLog,
    Rtla,
    JitterCsv,
    Cyclictest,
    JitterRaw,
}

/// What can be read, in words.
const KNOWN: &str = "cyclictest (JSON, -h and -H and --histfile, -v, its last lines), other rt-tests and oslat \
(JSON), rtla timerlat hist and osnoise hist, jitterdebugger (results.json, samples.raw, CSV), rteval's summary.xml, \
logs of HdrHistogram, and what tactus's guest without an operating system says on a serial line";

fn known() -> String {
    format!("what can be imported: {KNOWN}")
}

/// Reads a file, packed or not: one recording for each kind of values in it.
///
/// # Errors
/// When it is of no known format, or says what cannot be; with the place, which of a packed file is that in what was
/// packed.
pub fn read(mut input: impl Read, options: Options) -> Result<Vec<Recording>, ImportError> {
    let first = beginning(&mut input, TELLING)?;
    let input = first.as_slice().chain(input);
    match Packing::of(&first) {
        Some(packing) => unpacked(packing.unpack(input)?, options),
        None => unpacked(input, options),
    }
}

/// The first bytes of a file, or all of a short one.
fn beginning(input: &mut impl Read, most: usize) -> Result<Vec<u8>, ImportError> {
    let mut beginning = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let looked = input.by_ref().take(most).read_to_end(&mut beginning);
    looked.map_err(|error| ImportError::whole(error.to_string()))?;
    Ok(beginning)
}

fn unpacked(mut input: impl Read, options: Options) -> Result<Vec<Recording>, ImportError> {
    let beginning = beginning(&mut input, LOOKED_AT)?;
    let format = recognize(&beginning)?;
    let input = beginning.as_slice().chain(input);
    let recordings = match format {
        Format::BareGuest => bare_guest::read(input),
        Format::Json => document(json::read(input)?),
        Format::Xml => rteval::read(input),
        Format::HistogramLog => hlog::read(Lines::new(input), options.unit_ns),
        Format::Rtla => rtla::read(Lines::new(input)),
        Format::JitterCsv => jitterdebugger::csv(Lines::new(input), options.unit_ns),
        Format::Cyclictest => cyclictest::read(Lines::new(input), options.unit_ns),
        Format::JitterRaw => jitterdebugger::raw(input, options.unit_ns),
    }?;
    match recordings.iter().all(|recording| recording.series.is_empty()) {
        true => Err(ImportError::whole("it has no measured values")),
        false => Ok(recordings),
    }
}

/// What a document in JSON has.
fn document(document: json::Document) -> Result<Vec<Recording>, ImportError> {
    match document {
        json::Document { thread: Some(_), .. } => rt_tests::read(document),
        json::Document { cpu: Some(_), .. } => jitterdebugger::results(document),
        _ => {
            let what = "it has no `thread` and no `cpu`: no known instrument writes such JSON";
            Err(ImportError::whole(what).hint(known()))
        }
    }
}

/// The format of a file that begins so.
fn recognize(beginning: &[u8]) -> Result<Format, ImportError> {
    if beginning.is_empty() {
        return Err(ImportError::whole("it is empty"));
    }
    if beginning.starts_with(&[0xff, 0xfe]) || beginning.starts_with(&[0xfe, 0xff]) {
        return Err(ImportError::byte(0, "it is text in UTF-16: write it as UTF-8"));
    }
    if bare_guest::is_one(beginning) {
        return Ok(Format::BareGuest);
    }
    let start = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    match start.first() {
        Some(b'{') => return Ok(Format::Json),
        Some(b'<') => return Ok(Format::Xml),
        _ => {}
    }
    let lines = || start.lines().map_while(Result::ok);
    let has = |is: &dyn Fn(&str) -> bool| lines().any(|line| is(&line));
    if has(&hlog::is_line) {
        Ok(Format::HistogramLog)
    } else if has(&rtla::is_line) {
        Ok(Format::Rtla)
    } else if has(&cyclictest::is_line) {
        Ok(Format::Cyclictest)
    } else if lines().next().is_some_and(|line| jitterdebugger::is_csv(&line)) {
        Ok(Format::JitterCsv)
    } else if jitterdebugger::is_raw(beginning) {
        Ok(Format::JitterRaw)
    } else {
        Err(ImportError::whole("it is of no known format").hint(known()))
    }
}

#[cfg(test)]
mod tests;
