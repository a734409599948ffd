//! Classes of control applications, and what each allows: how long its cycle is, how much a response may vary, and
//! which part of the cycle it may take.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::duration::Nanos;

/// A plan's part on fitness: classes beside those that tactus has, and the conclusion of its document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fitness {
    /// The document's own statement on what its figures are enough for, with its place in the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Classes of the user. One with the name of a built-in class replaces it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class: Vec<Class>,
}

/// A class of applications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Written")]
pub struct Class {
    /// Its name on a command line: letters, digits and hyphens.
    pub name: String,
    /// Its name in a table; left out: `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The shortest and the longest cycle of its applications.
    pub cycle: Span,
    /// The jitter that the most demanding and the least demanding of them allows.
    pub jitter: Span,
    /// Largest part of a cycle that a response may take, in per cent.
    pub share: u32,
    /// The source of its figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Class {
    /// Its name in a table.
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// From one length of time to another; written `"500us"` where both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The shorter one.
    pub from: Nanos,
    /// The longer one.
    pub to: Nanos,
}

/// Both ends, as they are written where they differ.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Ends {
    from: Nanos,
    to: Nanos,
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { from, to } = *self;
        if from == to { from.serialize(serializer) } else { Ends { from, to }.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SpanVisitor;
        impl<'de> Visitor<'de> for SpanVisitor {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time as in \"500us\", or { from = \"10us\", to = \"1ms\" }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                let one: Nanos = text.parse().map_err(E::custom)?;
                Ok(Span { from: one, to: one })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Span, A::Error> {
                let Ends { from, to } = Ends::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Span { from, to })
            }
        }
        deserializer.deserialize_any(SpanVisitor)
    }
}

/// A class as it is written, before its values are looked at.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    title: Option<String>,
    cycle: Span,
    jitter: Span,
    #[serde(default = "whole")]
    share: u32,
    #[serde(default)]
    source: Option<String>,
}

/// All of the cycle.
const fn whole() -> u32 {
    100
}

/// The longest name of a class.
const LONGEST: usize = 40;

impl TryFrom<Written> for Class {
    type Error = String;

    fn try_from(Written { name, title, cycle, jitter, share, source }: Written) -> Result<Self, String> {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || name.len() > LONGEST || !name.chars().all(letter) {
            return Err(format!(
                "`{}` is not a name of a class: write letters, digits and hyphens, at most {LONGEST}",
                name.escape_debug()
            ));
        }
        for (what, span) in [("cycle", cycle), ("jitter", jitter)] {
            if span.from > span.to {
                return Err(format!("the {what} of class `{name}` begins above its end"));
            }
            if span.from.0 == 0 {
                return Err(format!("the {what} of class `{name}` is 0: no measurement keeps that"));
            }
        }
        if !(1..=100).contains(&share) {
            return Err(format!("the share of class `{name}` is {share}: write a percentage from 1 to 100"));
        }
        Ok(Self { name, title, cycle, jitter, share, source })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(class: Value) -> Result<Class, String> {
        serde_json::from_value(class).map_err(|error| error.to_string())
    }

    #[test]
    fn a_class_is_read_as_it_is_written() {
        let text = json!({ "name": "my-loop", "cycle": "500us", "jitter": { "from": "5us", "to": "20us" }, "share": 30 });
        let class = read(text.clone()).unwrap();
        assert_eq!(class.cycle, Span { from: Nanos::from_us(500), to: Nanos::from_us(500) });
        assert_eq!((class.jitter.from, class.jitter.to), (Nanos::from_us(5), Nanos::from_us(20)));
        assert_eq!(class.title(), "my-loop");
        assert_eq!(serde_json::to_value(&class).unwrap(), text);
    }

    #[test]
    fn a_response_may_take_all_of_a_cycle_unless_the_class_says_less() {
        assert_eq!(read(json!({ "name": "a", "cycle": "1ms", "jitter": "1us" })).unwrap().share, 100);
    }

    #[test]
    fn a_class_that_is_impossible_or_has_no_usable_name_is_refused() {
        for (class, said) in [
            (json!({ "name": "a b", "cycle": "1ms", "jitter": "1us" }), "is not a name of a class"),
            (json!({ "name": "", "cycle": "1ms", "jitter": "1us" }), "is not a name of a class"),
            (json!({ "name": "a", "cycle": "0us", "jitter": "1us" }), "the cycle of class `a` is 0"),
            (json!({ "name": "a", "cycle": "1ms", "jitter": "0us" }), "the jitter of class `a` is 0"),
            (
                json!({ "name": "a", "cycle": { "from": "2ms", "to": "1ms" }, "jitter": "1us" }),
                "begins above its end",
            ),
            (
                json!({ "name": "a", "cycle": "1ms", "jitter": "1us", "share": 0 }),
                "a percentage from 1 to 100",
            ),
            (
                json!({ "name": "a", "cycle": "1ms", "jitter": "1us", "share": 101 }),
                "a percentage from 1 to 100",
            ),
            (json!({ "name": "a", "cycle": "1ms" }), "missing field `jitter`"),
            (json!({ "name": "a", "cycle": 5, "jitter": "1us" }), "a length of time as in"),
            (json!({ "name": "a", "cycle": "1ms", "jitter": "1us", "slack": 3 }), "unknown field `slack`"),
        ] {
            let error = read(class).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
