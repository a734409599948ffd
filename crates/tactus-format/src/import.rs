//! Files of other instruments: recognised by their content, read whole or refused with the place. Pure: bytes
//! in, recordings out.
//!
//! A file with impossible contents is refused, not repaired: nothing of it is dropped silently. Files of
//! lines are read as a stream; of a document at most [`MOST_DOCUMENT`] bytes are held. A thread takes the
//! memory of one histogram, however long it measured.

mod bare_guest;
mod conditions;
mod cyclictest;
mod error;
mod formats;
mod hlog;
mod hwlat;
mod jitterdebugger;
mod json;
mod linuxcnc;
mod oslat;
mod pairs;
mod perf_sched;
mod plain;
mod prefix;
mod recording;
mod rt_tests;
mod rtc_testbench;
mod rteval;
mod rtla;
mod rtla_top;
mod runs;
mod stress_ng;
mod sysjitter;
mod text;
mod unpack;
mod xenomai;

use std::io::Read;

pub use error::{ImportError, Place};
pub use formats::{Declared, FORMATS};
pub use recording::{Ended, Policy, Recording, Series, Values};

use formats::Format;
use prefix::Prefix;
use text::Lines;
use unpack::{Packing, TELLING};

/// Longest document (JSON, XML) that is read, in bytes.
pub const MOST_DOCUMENT: u64 = 64 << 20;

/// How much of a file is looked at to recognise it, in bytes.
const LOOKED_AT: usize = 16 << 10;

/// Facts that a file cannot state itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// One unit of its numbers, in ns, where it does not say it: microseconds for cyclictest's text, ns for a log of
    /// histograms.
    pub unit_ns: Option<u64>,
}

fn known() -> String {
    let mut tools: Vec<&str> = Vec::new();
    let own = FORMATS.iter().filter(|one| one.made_by.contains(' '));
    own.flat_map(|one| one.tool.split(", ")).for_each(|tool| {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    });
    format!(
        "`tactus convert --formats` lists the {} tools that tactus can import, with their commands",
        tools.len()
    )
}

/// Reads a file, packed or not: one recording for each kind of values in it.
///
/// # Errors
/// When it is of no known format, or has impossible contents; with the place. The place in a packed file is
/// that in its unpacked contents.
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
    let input: Box<dyn Read + '_> = Box::new(beginning.as_slice().chain(input));
    let (input, beginning) = without_prefix(input, &beginning, 0)?;
    let format = recognize(&beginning)?;
    let recordings = match format {
        Format::BareGuest => bare_guest::read(input),
        Format::Json => documents(input),
        Format::Xml => rteval::read(input),
        Format::HistogramLog => hlog::read(Lines::new(input), options.unit_ns),
        Format::Rtla => rtla::read(Lines::new(input)),
        Format::RtlaTop => rtla_top::read(Lines::new(input)),
        Format::Oslat => oslat::read(Lines::new(input)),
        Format::Hwlat => hwlat::read(Lines::new(input)),
        Format::Pairs => pairs::read(Lines::new(input)),
        Format::Xenomai => xenomai::read(Lines::new(input)),
        Format::StressNg => stress_ng::read(Lines::new(input)),
        Format::Sysjitter => sysjitter::read(Lines::new(input)),
        Format::LinuxCnc => linuxcnc::read(Lines::new(input)),
        Format::PerfLatency => perf_sched::latency(Lines::new(input)),
        Format::PerfTimehist => perf_sched::timehist(Lines::new(input)),
        Format::RtcTestbench => rtc_testbench::log(Lines::new(input)),
        Format::JitterLive => {
            // The output at its end has more than the lines before.
            let all = json::whole(input)?;
            match json::begin(&all) {
                Some(_) => documents(all.as_slice()),
                None => jitterdebugger::verbose(Lines::new(all.as_slice())),
            }
        }
        Format::JitterCsv => jitterdebugger::csv(Lines::new(input), options.unit_ns),
        Format::Cyclictest => cyclictest::read(Lines::new(input), options.unit_ns),
        Format::JitterRaw => jitterdebugger::raw(input, options.unit_ns),
    }?;
    let empty = |recording: &Recording| recording.series.is_empty() && recording.found_nothing.is_none();
    match recordings.iter().all(empty) {
        true => Err(ImportError::whole("it has no measured values")),
        false => Ok(recordings),
    }
}

/// The most prefixes that stand before one another: a quote of a log of a container.
const MOST_PREFIXES: usize = 3;

/// The input and its beginning without what a log put before every line.
fn without_prefix<'a>(
    mut input: Box<dyn Read + 'a>,
    first: &[u8],
    taken: usize,
) -> Result<(Box<dyn Read + 'a>, Vec<u8>), ImportError> {
    let indented = || Some(Prefix::Indent).filter(|prefix| recognize(first).is_err() && prefix.fits(first));
    let found = Prefix::of(first).or_else(indented).filter(|_| taken < MOST_PREFIXES);
    let Some(prefix) = found else { return Ok((input, first.to_vec())) };
    input = prefix.off(input);
    let first = beginning(&mut input, LOOKED_AT)?;
    let again: Box<dyn Read + 'a> = Box::new(std::io::Cursor::new(first.clone()).chain(input));
    without_prefix(again, &first, taken + 1)
}

/// The recordings of JSON documents: each is a run, but those of RTC-Testbench are messages of one.
fn documents(input: impl Read) -> Result<Vec<Recording>, ImportError> {
    let (mut found, mut messages, mut by_interval) = (runs::Runs::default(), Vec::new(), true);
    json::each(input, |mut one| {
        by_interval &= one.reference.is_some();
        match one.reference.take().or_else(|| one.testbench.take()).filter(|_| found.all.is_empty()) {
            Some(message) => messages.push(message),
            None if messages.is_empty() => found.add(document(one)?).map_err(ImportError::whole)?,
            None => return Err(unknown_document()),
        }
        Ok(())
    })?;
    if messages.is_empty() { Ok(found.all) } else { rtc_testbench::messages(&messages, by_interval) }
}

/// The recordings of a JSON document.
fn document(document: json::Document) -> Result<Vec<Recording>, ImportError> {
    match document {
        json::Document { thread: Some(_), .. } => rt_tests::read(document),
        json::Document { cpu: Some(_), .. } => jitterdebugger::results(document),
        _ => Err(unknown_document()),
    }
}

fn unknown_document() -> ImportError {
    let what = "it has no `thread` and no `cpu`: no known instrument writes such JSON";
    ImportError::whole(what).hint(known())
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
    if let Some(format) = formats::of_lines(start) {
        return Ok(format);
    }
    if json::begin(start).is_some() && formats::looks_like(start).is_none() {
        return Ok(Format::Json);
    }
    if jitterdebugger::is_raw(beginning) {
        return Ok(Format::JitterRaw);
    }
    Err(match formats::looks_like(start) {
        Some((tool, help)) => {
            ImportError::whole(format!("it looks like the output of {tool}, which tactus does not read"))
                .hint(help)
        }
        None => ImportError::whole("its format is unknown").hint(known()),
    })
}

#[cfg(test)]
mod tests;
