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

    /// The texts of a reading that is too long for one: `name:0`, `name:1` and so on, in the order of
    /// their numbers.
    pub fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        (0u32..).map_while(move |n| self.0.get(&format!("{name}:{n}"))).filter_map(|reading| match reading {
            Reading::Text(text) | Reading::Cut(text) => Some(text.as_str()),
            Reading::Unreadable(_) | Reading::Absent => None,
        })
    }

    /// Keeps lines in as many parts as they need: `name:0`, `name:1` and so on, none of them cut
    /// (but a line that is longer than [`MAX_READING`]). There is always a first part.
    pub fn keep_parts<I: IntoIterator<Item = S>, S: AsRef<str>>(&mut self, name: &str, lines: I) {
        let mut part = String::new();
        let mut n = 0;
        for line in lines {
            let line = line.as_ref();
            if !part.is_empty() && part.len() + 1 + line.len() > MAX_READING {
                self.keep(format!("{name}:{n}"), std::mem::take(&mut part));
                n += 1;
            }
            if !part.is_empty() {
                part.push('\n');
            }
            part.push_str(line);
        }
        self.keep(format!("{name}:{n}"), part);
    }

    /// The names that begin so, with their readings, in the order of the names. Cheap: the names are
    /// sorted.
    pub fn under<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = (&'a str, &'a Reading)> {
        self.0
            .range::<str, _>((std::ops::Bound::Included(beginning), std::ops::Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(beginning))
            .map(|(name, reading)| (name.as_str(), reading))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_from_parts_in_their_order_and_whole() {
        let lines: Vec<_> = (0..3000).map(|n| format!("line {n} of many")).collect();
        let mut facts = Facts::default();
        facts.keep_parts("many", &lines);
        assert!(facts.0.len() > 2 && facts.0.values().all(|reading| matches!(reading, Reading::Text(_))));
        let back: Vec<_> = facts.parts("many").flat_map(str::lines).map(str::to_owned).collect();
        assert_eq!(back, lines);
    }

    #[test]
    fn names_are_found_by_their_beginning() {
        let mut facts = Facts::default();
        for name in
            ["/sys/a", "/sys/module/kvm/x", "/sys/module/kvm/y", "/sys/module/kvm_intel/z", "uname:release"]
        {
            facts.keep(name, "1");
        }
        let names: Vec<_> = facts.under("/sys/module/kvm/").map(|(name, _)| name).collect();
        assert_eq!(names, ["/sys/module/kvm/x", "/sys/module/kvm/y"]);
    }
}
