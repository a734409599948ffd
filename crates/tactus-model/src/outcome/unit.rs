//! Units of values, and quantities as people write them: `4us`, `2000MB/s`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The unit of a value. Decimal prefixes: a MB is 10^6 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Microseconds.
    #[serde(rename = "us")]
    Us,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
    /// Megabytes a second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Gigabytes a second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// Operations a second.
    #[serde(rename = "/s")]
    PerSecond,
    /// Operations a second for each MHz of the processor's clock.
    #[serde(rename = "/s/MHz")]
    PerSecondPerMegahertz,
    /// Millions of cycles a second.
    #[serde(rename = "MHz")]
    Megahertz,
    /// Megabits a second.
    #[serde(rename = "Mb/s")]
    MegabitsPerSecond,
    /// Gigabits a second.
    #[serde(rename = "Gb/s")]
    GigabitsPerSecond,
    /// Parts of a hundred.
    #[serde(rename = "%")]
    Percent,
    /// Hardware threads that are busy.
    #[serde(rename = "threads")]
    Threads,
    /// The same for each gigabit a second that they carry.
    #[serde(rename = "threads/(Gb/s)")]
    ThreadsPerGigabit,
    /// How often for each message.
    #[serde(rename = "/message")]
    PerMessage,
}

/// The dimension of a unit: quantities of one dimension can be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Time,
    Bandwidth,
    Count,
    CountPerClock,
    Clock,
    DataRate,
    Part,
    Threads,
    ThreadsPerDataRate,
    CountPerMessage,
}

impl Unit {
    const ALL: [Self; 14] = [
        Self::Ns,
        Self::Us,
        Self::Ms,
        Self::MegabytesPerSecond,
        Self::GigabytesPerSecond,
        Self::PerSecond,
        Self::PerSecondPerMegahertz,
        Self::Megahertz,
        Self::MegabitsPerSecond,
        Self::GigabitsPerSecond,
        Self::Percent,
        Self::Threads,
        Self::ThreadsPerGigabit,
        Self::PerMessage,
    ];

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::MegabytesPerSecond => "MB/s",
            Self::GigabytesPerSecond => "GB/s",
            Self::PerSecond => "/s",
            Self::PerSecondPerMegahertz => "/s/MHz",
            Self::Megahertz => "MHz",
            Self::MegabitsPerSecond => "Mb/s",
            Self::GigabitsPerSecond => "Gb/s",
            Self::Percent => "%",
            Self::Threads => "threads",
            Self::ThreadsPerGigabit => "threads/(Gb/s)",
            Self::PerMessage => "/message",
        }
    }

    /// Its dimension, and its size in that one's smallest unit.
    const fn size(self) -> (Dimension, f64) {
        match self {
            Self::Ns => (Dimension::Time, 1.0),
            Self::Us => (Dimension::Time, 1e3),
            Self::Ms => (Dimension::Time, 1e6),
            Self::MegabytesPerSecond => (Dimension::Bandwidth, 1.0),
            Self::GigabytesPerSecond => (Dimension::Bandwidth, 1e3),
            Self::PerSecond => (Dimension::Count, 1.0),
            Self::PerSecondPerMegahertz => (Dimension::CountPerClock, 1.0),
            Self::Megahertz => (Dimension::Clock, 1.0),
            Self::MegabitsPerSecond => (Dimension::DataRate, 1.0),
            Self::GigabitsPerSecond => (Dimension::DataRate, 1e3),
            Self::Percent => (Dimension::Part, 1.0),
            Self::Threads => (Dimension::Threads, 1.0),
            Self::ThreadsPerGigabit => (Dimension::ThreadsPerDataRate, 1.0),
            Self::PerMessage => (Dimension::CountPerMessage, 1.0),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The smaller one: times.
    Lower,
    /// The larger one: throughput.
    Higher,
}

impl Better {
    /// Whether `value` is at least as good as `bound`.
    #[must_use]
    pub fn keeps(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Lower => value <= bound,
            Self::Higher => value >= bound,
        }
    }
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a quantity; write a number with its unit: `4us`, `2000MB/s` (ns, us, ms, MB/s, GB/s, /s, \
/s/MHz, MHz, Mb/s, Gb/s, %, threads, threads/(Gb/s), /message)"
)]
pub struct QuantityError(String);

impl Quantity {
    /// The number in another unit; `None` if that has another dimension.
    #[must_use]
    pub fn number_in(self, unit: Unit) -> Option<f64> {
        let ((dimension, from), (other, to)) = (self.unit.size(), unit.size());
        // One factor, so that a unit given in itself stays the number that it was.
        (dimension == other).then(|| self.value * (from / to))
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = || QuantityError(text.to_owned());
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let value: f64 = number.parse().map_err(|_| error())?;
        let unit = Unit::ALL.into_iter().find(|known| known.as_str() == unit.trim()).ok_or_else(error)?;
        Ok(Self { value, unit })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.value, self.unit)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_they_are_written() {
        for text in [
            "4us", "3.48us", "2000MB/s", "0.5GB/s", "120ns", "1ms", "9000/s", "5/s/MHz", "3400MHz",
            "9.5Gb/s", "2%",
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), text);
        }
        assert_eq!("3.5 us".parse::<Quantity>().unwrap(), Quantity { value: 3.5, unit: Unit::Us });
        for text in ["", "us", "4", "4 parsecs", "-4us", "4us5", "1.2.3us", "1e3us", "infus"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn units_of_one_dimension_are_compared() {
        let number = |text: &str, unit| text.parse::<Quantity>().unwrap().number_in(unit);
        assert_eq!(number("4us", Unit::Ns), Some(4000.0));
        assert_eq!(number("250ns", Unit::Us), Some(0.25));
        assert_eq!(number("2GB/s", Unit::MegabytesPerSecond), Some(2000.0));
        assert_eq!(number("3.48us", Unit::Us), Some(3.48));
        assert_eq!(number("4us", Unit::MegabytesPerSecond), None);
        assert_eq!(number("4/s", Unit::PerSecondPerMegahertz), None);
        assert_eq!(number("2Gb/s", Unit::MegabitsPerSecond), Some(2000.0));
        assert_eq!(number("2Gb/s", Unit::GigabytesPerSecond), None, "bits are no bytes");
    }

    #[test]
    fn every_unit_is_told_by_the_word_that_it_is_written_with() {
        for unit in Unit::ALL {
            assert_eq!(serde_json::to_string(&unit).unwrap(), format!("\"{unit}\""));
        }
    }

    #[test]
    fn a_bound_is_kept_from_its_good_side() {
        assert!(
            Better::Lower.keeps(4.0, 4.0) && Better::Lower.keeps(3.0, 4.0) && !Better::Lower.keeps(5.0, 4.0)
        );
        assert!(
            Better::Higher.keeps(4.0, 4.0)
                && Better::Higher.keeps(5.0, 4.0)
                && !Better::Higher.keeps(3.0, 4.0)
        );
    }
}
