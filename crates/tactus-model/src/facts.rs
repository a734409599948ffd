//! Facts: raw readings of a system, one per path, as the probe found them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The longest text of one reading, in bytes; more is cut and marked.
pub const MAX_READING: usize = 16 * 1024;

/// All readings of one environment, by name. A name is the path that was read
/// (`/proc/cmdline`), or a word with a colon for what is no file (`uname:release`,
/// `sched:affinity`, `cpu:tsc_hz`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(pub BTreeMap<String, Reading>);

/// One reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The whole text.
    Text(String),
    /// The beginning of a longer text.
    Cut(String),
    /// It is there and could not be read; the system's own reason.
    Unreadable(String),
    /// It is not there.
    Absent,
}

impl Facts {
    /// The text of a reading, trimmed, if there is one.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Reading::Text(text) | Reading::Cut(text) => Some(text.trim()),
            Reading::Unreadable(_) | Reading::Absent => None,
        }
    }

    /// A reading as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Keeps a reading, cut to [`MAX_READING`] bytes.
    pub fn keep(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let mut text = text.into();
        let reading = if text.len() > MAX_READING {
            let end = (0..=MAX_READING).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            Reading::Cut(text)
        } else {
            Reading::Text(text)
        };
        self.0.insert(name.into(), reading);
    }

    /// The value of `key` in a text of `key<separator>value` lines, as in `/proc/cpuinfo` (first
    /// occurrence) or `/proc/self/status`.
    #[must_use]
    pub fn field(&self, name: &str, key: &str, separator: char) -> Option<&str> {
        self.text(name)?.lines().find_map(|line| {
            let (found, value) = line.split_once(separator)?;
            (found.trim() == key).then(|| value.trim())
        })
    }

    /// Whether the system runs on a hypervisor, as the processor says it does.
    #[must_use]
    pub fn virtualized(&self) -> bool {
        self.field("/proc/cpuinfo", "flags", ':')
            .is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"))
            || self.text("/sys/hypervisor/type").is_some()
            || self.text("/proc/device-tree/hypervisor/compatible").is_some()
    }
}
