//! The catalogue's description of a word.

use std::fmt;
use std::ops::RangeInclusive;

use super::value::Value;
use crate::outcome::{Better, Unit};

/// The family of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A measurement of a probe.
    Measure,
    /// A load beside it.
    Load,
    /// An injected disturbance.
    Fault,
}

impl Family {
    /// `a load`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Measure => "a measurement",
            Self::Load => "a load",
            Self::Fault => "a fault",
        }
    }
}

/// An entry of the catalogue.
#[derive(Debug)]
pub struct Entry {
    /// The word of the plan.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// One line.
    pub summary: &'static str,
    /// Its description and how to read its numbers, as in the source: see [`paragraphs`].
    pub text: &'static str,
    /// The keys of its table.
    pub parameters: &'static [Parameter],
    /// The samples of a measurement of latency: `wake-ups`.
    pub counts: Option<&'static str>,
    /// The values of a measurement that yields some, in their order.
    pub items: &'static [Item],
    /// The key by which a plan names its peer in another environment; `None`: it has no peer.
    pub peer: Option<PeerKey>,
}

/// A value that a measurement yields.
#[derive(Debug)]
pub struct Item {
    /// Its name.
    pub name: &'static str,
    /// In which unit.
    pub unit: Unit,
    /// Which of two values is the better one.
    pub better: Better,
    /// The meaning of one operation of it.
    pub about: &'static str,
}

impl Item {
    /// One of which less is better.
    #[must_use]
    pub const fn lower(name: &'static str, unit: Unit, about: &'static str) -> Self {
        Self { name, unit, better: Better::Lower, about }
    }

    /// One of which more is better.
    #[must_use]
    pub const fn higher(name: &'static str, unit: Unit, about: &'static str) -> Self {
        Self { name, unit, better: Better::Higher, about }
    }
}

/// The key by which an activity names its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKey {
    /// `to`: the environment to which it sends.
    To,
    /// `from`: the environment whose messages it measures.
    From,
}

/// A key of a word's table.
#[derive(Debug)]
pub struct Parameter {
    /// The key.
    pub key: &'static str,
    /// Its description, as in the source: see [`paragraphs`].
    pub about: &'static str,
    /// The values that it takes: `a number`.
    pub takes: fn() -> String,
    /// Whether it may be left out.
    pub optional: bool,
    /// Its default, as a plan writes it.
    pub default: Option<fn() -> String>,
    /// Smallest and largest value, in its unit.
    pub bounds: Option<RangeInclusive<u64>>,
    /// A number with its unit.
    pub shown: fn(u64) -> String,
}

impl Entry {
    /// Its text in paragraphs.
    #[must_use]
    pub fn text(&self) -> Vec<String> {
        paragraphs(self.text)
    }
}

impl Parameter {
    /// Its description, in one line.
    #[must_use]
    pub fn about(&self) -> String {
        paragraphs(self.about).join(" ")
    }

    /// The values that it takes and its default: `a number, 1 to 64; default 1`.
    #[must_use]
    pub fn takes(&self) -> String {
        let mut text = (self.takes)();
        if let Some(bounds) = &self.bounds {
            let [least, most] = [bounds.start(), bounds.end()].map(|number| (self.shown)(*number));
            text += &format!(", {least} to {most}");
        }
        match self.default {
            Some(default) => text += &format!("; default {}", default()),
            None if !self.optional => text += "; must be given",
            None => {}
        }
        text
    }
}

/// The paragraphs of a documentation: an empty line ends one.
fn paragraphs(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in text.lines().map(str::trim) {
        match all.last_mut() {
            Some(last) if !line.is_empty() => {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(line);
            }
            _ => all.push(String::new()),
        }
    }
    all.retain(|paragraph| !paragraph.is_empty());
    all
}

/// A parameter beyond its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The parameter.
    pub key: &'static str,
    /// The value that was given.
    pub value: String,
    /// The smallest allowed value.
    pub least: String,
    /// The largest allowed value.
    pub most: String,
}

impl OutOfRange {
    /// A hint with the allowed values.
    #[must_use]
    pub fn hint(&self) -> String {
        format!("use {} to {}", self.least, self.most)
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} is out of range", self.key, self.value)
    }
}

impl std::error::Error for OutOfRange {}

/// Whether a value that is given lies within its bounds, if it has any.
pub(super) fn within<T: Value>(
    key: &'static str,
    value: &T,
    bounds: Option<RangeInclusive<u64>>,
) -> Result<(), OutOfRange> {
    match (value.number(), bounds) {
        (Some(number), Some(bounds)) if !bounds.contains(&number) => Err(OutOfRange {
            key,
            value: T::shown(number),
            least: T::shown(*bounds.start()),
            most: T::shown(*bounds.end()),
        }),
        _ => Ok(()),
    }
}
