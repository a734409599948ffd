//! Facts: raw readings of a system, one per path, as the probe found them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// The longest text of one reading, in bytes; more is cut and marked.
pub const MAX_READING: usize = 16 * 1024;

/// All readings of one environment, by name. A name is the path that was read (`/proc/cmdline`), or a word with a colon
/// for a reading without a file (`uname:release`, `sched:affinity`, `cpu:tsc_hz`). No reading is longer than
/// [`MAX_READING`], whatever its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// It exists and could not be read; with the system's reason.
    Unreadable(String),
    /// It does not exist.
    Absent,
}

impl Reading {
    /// A text, cut to [`MAX_READING`] bytes.
    fn of(mut text: String) -> Self {
        if cut(&mut text) { Self::Cut(text) } else { Self::Text(text) }
    }
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut readings = BTreeMap::<String, Reading>::deserialize(from)?;
        for reading in readings.values_mut() {
            match reading {
                Reading::Text(text) if text.len() > MAX_READING => {
                    *reading = Reading::of(std::mem::take(text));
                }
                Reading::Text(_) | Reading::Absent => {}
                Reading::Cut(text) | Reading::Unreadable(text) => {
                    cut(text);
                }
            }
        }
        Ok(Self(readings))
    }
}

/// Cuts a text to [`MAX_READING`] bytes. Returns whether it was longer.
fn cut(text: &mut String) -> bool {
    let longer = text.len() > MAX_READING;
    if longer {
        let end = (0..=MAX_READING).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
    }
    longer
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
        self.0.insert(name.into(), Reading::of(text.into()));
    }

    /// The texts of a reading that is too long for one: `name:0`, `name:1` and so on, in the order of
    /// their numbers.
    pub fn parts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        (0u32..).map_while(move |n| self.0.get(&format!("{name}:{n}"))).filter_map(|reading| match reading {
            Reading::Text(text) | Reading::Cut(text) => Some(text.as_str()),
            Reading::Unreadable(_) | Reading::Absent => None,
        })
    }

    /// Keeps lines in parts: `name:0`, `name:1` and so on, up to the number that they need. No line is cut, except one
    /// longer than [`MAX_READING`]. There is always a first part.
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
    fn a_reading_of_others_that_is_longer_than_any_is_cut_and_marked() {
        let long = "\u{e9}".repeat(MAX_READING);
        let said = serde_json::json!({
            "a": { "text": &long }, "b": { "cut": &long }, "c": { "unreadable": &long }, "d": { "text": "short" }, "e": "absent",
        });
        let facts: Facts = serde_json::from_value(said).unwrap();
        let half = "\u{e9}".repeat(MAX_READING / 2);
        let wanted = [
            ("a", Reading::Cut(half.clone())),
            ("b", Reading::Cut(half.clone())),
            ("c", Reading::Unreadable(half)),
            ("d", Reading::Text("short".into())),
            ("e", Reading::Absent),
        ];
        assert_eq!(facts.0, wanted.map(|(name, reading)| (name.to_owned(), reading)).into());
        let again: Facts = serde_json::from_str(&serde_json::to_string(&facts).unwrap()).unwrap();
        assert_eq!(again, facts);
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
