//! Durations as people write them: `200us`, `4ms`, `24h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time in nanoseconds, written and read as a number with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// Units, longest first, with their length in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit.
    #[error("`{0}` has no unit; write it as in `200us`, `4ms`, `10s`, `5min`, `24h`")]
    NoUnit(String),
    /// A unit that tactus does not know.
    #[error("`{unit}` in `{text}` is not a unit of time; use ns, us, ms, s, min, h or d")]
    WrongUnit {
        /// The whole text.
        text: String,
        /// The part that should have been a unit.
        unit: String,
    },
    /// No number where one was expected.
    #[error("`{0}` is not a duration; write it as in `200us`, `4ms`, `10s`, `5min`, `24h`")]
    NoNumber(String),
    /// More than 2^64 ns.
    #[error("`{0}` is longer than 584 years")]
    TooLong(String),
}

impl Nanos {
    /// Whole microseconds as a duration.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// Whole milliseconds as a duration.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Whole seconds as a duration.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// The length in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        crate::number::float(self.0) / 1e9
    }
}

impl From<Nanos> for Duration {
    fn from(value: Nanos) -> Self {
        Self::from_nanos(value.0)
    }
}

impl FromStr for Nanos {
    type Err = DurationError;

    /// Reads one number (with an optional decimal part) and one unit; several may follow each other
    /// (`1h30min`), as long as each unit is shorter than the one before.
    fn from_str(text: &str) -> Result<Self, DurationError> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(DurationError::NoNumber(text.into()));
        }
        let mut total: u64 = 0;
        let mut shortest = u64::MAX;
        while !rest.is_empty() {
            let digits =
                rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(rest.len());
            let (number, tail) = rest.split_at(digits);
            let tail = tail.trim_start();
            let letters = tail.find(|c: char| !(c.is_alphabetic() || c == 'µ')).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            let number = number.replace('_', "");
            if number.is_empty()
                || number.starts_with('.')
                || number.ends_with('.')
                || number.matches('.').count() > 1
            {
                return Err(DurationError::NoNumber(text.into()));
            }
            let length = unit_length(unit).ok_or_else(|| {
                if unit.is_empty() {
                    DurationError::NoUnit(text.into())
                } else {
                    DurationError::WrongUnit { text: text.into(), unit: unit.into() }
                }
            })?;
            if length >= shortest {
                return Err(DurationError::NoNumber(text.into()));
            }
            shortest = length;
            let part = scaled(&number, length).ok_or_else(|| DurationError::TooLong(text.into()))?;
            total = total.checked_add(part).ok_or_else(|| DurationError::TooLong(text.into()))?;
            rest = tail.trim_start();
        }
        Ok(Self(total))
    }
}

fn unit_length(unit: &str) -> Option<u64> {
    let unit = match unit {
        "µs" | "μs" => "us",
        "m" => "min",
        other => other,
    };
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length)
}

/// `number` (digits with at most one point) times `length`, exact; digits below a nanosecond are cut.
fn scaled(number: &str, length: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut total = whole.checked_mul(length)?;
    let mut place = length;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(u64::from(digit.to_digit(10)?) * place)?;
    }
    Some(total)
}

impl fmt::Display for Nanos {
    /// The shortest exact way to write it: the longest unit that divides it without a rest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, length) = UNITS
            .iter()
            .copied()
            .find(|(_, length)| self.0 != 0 && self.0.is_multiple_of(*length))
            .unwrap_or(("ns", 1));
        write!(f, "{}{unit}", self.0 / length)
    }
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Nanos;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with a unit, such as \"200us\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Nanos, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, ns) in [
            ("200us", 200_000),
            ("4ms", 4_000_000),
            ("24h", 86_400_000_000_000),
            ("1.5ms", 1_500_000),
            ("1h30min", 5_400_000_000_000),
            ("10 s", 10_000_000_000),
            ("5m", 300_000_000_000),
            ("7µs", 7_000),
            ("0s", 0),
        ] {
            assert_eq!(text.parse::<Nanos>().expect(text), Nanos(ns), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_says_what_would_be() {
        for (text, says) in [
            ("200", "has no unit"),
            ("200uz", "`uz`"),
            ("", "is not a duration"),
            ("us", "is not a duration"),
            ("-5us", "is not a duration"),
            ("5us5us", "is not a duration"),
            ("99999999999999999999h", "584 years"),
            ("1..5s", "is not a duration"),
        ] {
            let error = text.parse::<Nanos>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ns in any::<u64>()) {
            prop_assert_eq!(Nanos(ns).to_string().parse::<Nanos>().unwrap(), Nanos(ns));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,40}") {
            let _ = text.parse::<Nanos>();
        }
    }
}
