//! Documents in JSON, read whole.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Number;

use super::rtc_testbench::Message;
use super::text::{decimal, short};
use super::{ImportError, MOST_DOCUMENT};
use crate::lines::MOST_THREADS;

/// The common part of the field's documents.
#[derive(Deserialize)]
pub(super) struct Document {
    /// How the instrument was called. The key's colon is the instruments' own.
    #[serde(rename = "cmdline:", alias = "cmdline")]
    pub command: Option<String>,
    /// Version of rt-tests.
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    pub version: Option<String>,
    /// The machine.
    pub sysinfo: Option<Sysinfo>,
    /// Whether cyclictest counted in ns: 0 or 1.
    pub resolution_in_ns: Option<u64>,
    /// When it began, as the tool writes it.
    pub start_time: Option<String>,
    /// The data of each thread, by its number.
    pub thread: Option<Map<Thread>>,
    /// The same in jitterdebugger's, by its CPU.
    pub cpu: Option<Map<Thread>>,
    /// RTC-Testbench: the statistics of an interval.
    pub reference: Option<Message>,
    /// The same in newer versions, or those since the beginning.
    pub testbench: Option<Message>,
}

/// The machine.
#[derive(Deserialize)]
pub(super) struct Sysinfo {
    /// Host name.
    pub nodename: Option<String>,
    /// Release of the kernel.
    pub release: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Whether the kernel has PREEMPT_RT: 0 or 1.
    pub realtime: Option<u64>,
    /// jitterdebugger's unit, in ns.
    pub resolution_in_ns: Option<u64>,
}

/// The data of a thread.
#[derive(Deserialize)]
pub(super) struct Thread {
    /// Counts by value.
    pub histogram: Option<Map<u64, String>>,
    /// Values in all.
    #[serde(alias = "count")]
    pub cycles: Option<u64>,
    /// The smallest.
    pub min: Option<Number>,
    /// The largest.
    pub max: Option<Number>,
    /// The mean.
    pub avg: Option<f64>,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// oslat: how long it measured, in s.
    pub duration: Option<f64>,
    /// The thread that wakes another, in pmqtest and its kin.
    pub sender: Option<Sender>,
    /// The thread that is woken: the latencies are its.
    pub receiver: Option<Receiver>,
}

/// A thread that wakes another.
#[derive(Deserialize)]
pub(super) struct Sender {
    pub priority: Option<u32>,
    /// Values in all.
    pub samples: Option<u64>,
    /// In us.
    pub interval: Option<u64>,
}

/// A thread that another wakes.
#[derive(Deserialize)]
pub(super) struct Receiver {
    pub cpu: Option<i64>,
    pub min: Option<Number>,
    pub max: Option<Number>,
    pub avg: Option<f64>,
}

/// Entries of an object, in their order.
pub(super) struct Map<V, K = u32>(pub Vec<(K, V)>);

impl<'de, V: Deserialize<'de>, K: Deserialize<'de> + PartialEq + fmt::Debug + Key> Deserialize<'de>
    for Map<V, K>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V, K>(PhantomData<(V, K)>);
        impl<'de, V: Deserialize<'de>, K: Deserialize<'de> + PartialEq + fmt::Debug + Key> Visitor<'de>
            for Entries<V, K>
        {
            type Value = Map<V, K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with numbers as keys")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(K, V)> = Vec::new();
                while let Some(entry) = map.next_entry::<K, V>()? {
                    if !entry.0.is_sound(entries.last().map(|(key, _)| key), entries.len()) {
                        return Err(A::Error::custom(format_args!(
                            "the key {:?} does not belong here",
                            entry.0
                        )));
                    }
                    entries.push(entry);
                }
                Ok(Map(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// The requirements on a key.
pub(super) trait Key: Sized {
    /// Whether it may stand behind `last`, as the entry with this number.
    fn is_sound(&self, last: Option<&Self>, at: usize) -> bool;
}

impl Key for u32 {
    fn is_sound(&self, last: Option<&Self>, at: usize) -> bool {
        last.is_none_or(|last| last < self) && at < MOST_THREADS as usize
    }
}

impl Key for String {
    fn is_sound(&self, last: Option<&Self>, _: usize) -> bool {
        // Of any width, without leading zeros: larger values come later.
        let value = |key: &Self| decimal(key, 1_000_000);
        value(self).is_some() && last.is_none_or(|last| value(last) < value(self))
    }
}

/// The most documents of a file: RTC-Testbench writes one each second for each of its classes.
const MOST_DOCUMENTS: usize = 1 << 17;

/// Reads all that stand behind one another. Each is taken before the next one is read: a wrong one is refused at once, and
/// no two are in memory.
pub(super) fn each(
    input: impl Read,
    mut take: impl FnMut(Document) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let bytes = whole(input)?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    // Once, not for each document: the blanks behind the last one may be most of the file.
    let end = text.trim_ascii_end().len();
    // Output printed during the measurement may stand before each.
    let (mut found, mut before) = (0, begin(text).unwrap_or(0));
    loop {
        let document = &text[before..];
        let wrong = |error: &serde_json::Error| placed(document, error, lines(&text[..before]));
        let mut stream = serde_json::Deserializer::from_slice(document).into_iter::<Document>();
        match stream.next() {
            Some(one) => take(one.map_err(|error| wrong(&error))?)?,
            None => return serde_json::from_slice(document).map_err(|error| wrong(&error)).and_then(take),
        }
        found += 1;
        let next = before + stream.byte_offset();
        if next >= end {
            return Ok(());
        }
        // Whatever is no document behind the last one is damage.
        let Some(begins) = begin(&text[next..]) else {
            let error = serde_json::from_slice::<Document>(document).err();
            return Err(error.map_or_else(|| ImportError::whole("it has no document"), |error| wrong(&error)));
        };
        if found >= MOST_DOCUMENTS {
            return Err(ImportError::whole(format!("more than {MOST_DOCUMENTS} documents are not read")));
        }
        before = next + begins;
    }
}

/// Where the first line begins that is a document's. Takes as long as the text before it.
pub(super) fn begin(text: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| *byte == b'\n';
    let mut at = 0;
    loop {
        let (line, rest) = (&text[at..], text[at..].trim_ascii_start());
        let blanks = line.len() - rest.len();
        if rest.first()? == &b'{' {
            return Some(at + line[..blanks].iter().rposition(is_end).map_or(0, |end| end + 1));
        }
        at += blanks + rest.iter().position(is_end)? + 1;
    }
}

/// How many lines end in these bytes.
fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The bytes of a document.
pub(super) fn whole(input: impl Read) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    let read = input.take(MOST_DOCUMENT + 1).read_to_end(&mut bytes);
    read.map_err(|error| ImportError::whole(error.to_string()))?;
    match u64::try_from(bytes.len()).is_ok_and(|length| length <= MOST_DOCUMENT) {
        true => Ok(bytes),
        false => Err(ImportError::byte(MOST_DOCUMENT, "a document this long is not read")),
    }
}

/// The error of serde_json, with its line.
fn placed(text: &[u8], error: &serde_json::Error, before: usize) -> ImportError {
    let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    let line = short(&String::from_utf8_lossy(line));
    let line_number = u64::try_from(error.line() + before).unwrap_or(u64::MAX);
    let at = if line.is_empty() { String::new() } else { format!(": {line}") };
    ImportError::line(line_number, format!("column {}: {said}{at}", error.column()))
}
