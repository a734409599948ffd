//! Sizes of memory with their unit, as `512KiB`, and ranges of them, as `1KiB..64MiB` or `1KiB..4xLLC`.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// From the one size to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest.
    pub least: Bytes,
    /// The largest.
    pub most: Most,
}

/// The largest of a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    /// A given size: `64MiB`.
    Size(Bytes),
    /// This many times the last-level cache, as far as memory allows.
    Caches {
        /// How many times.
        times: u32,
        /// The cache.
        cache: Cache,
    },
}

/// The last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The measuring probe looks it up: `4xLLC`.
    Own,
    /// It has this size: `4x32MiB`.
    Size(Bytes),
    /// The machine does not say how large it is: `4xunknown`, which is [`Most::UNKNOWN`].
    Unknown,
}

const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError(String);

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a size: write a number and B, KiB, MiB, GiB or TiB, as `512KiB`; a range as \
             `1KiB..64MiB`, or `1KiB..4xLLC` (times the last-level cache)",
            self.0
        )
    }
}

impl std::error::Error for SizeError {}

impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let wrong = || SizeError(text.to_owned());
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, bytes)| Some((text.trim().strip_suffix(unit)?, bytes)))
            .ok_or_else(wrong)?;
        let number: u64 = number.trim().parse().map_err(|_| wrong())?;
        number.checked_mul(*unit).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, bytes) = UNITS
            .iter()
            .find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes))
            .unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl FromStr for Sizes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let wrong = || SizeError(text.to_owned());
        let (least, most) = text.split_once("..").ok_or_else(wrong)?;
        let (least, most): (Bytes, Most) = (least.parse()?, most.parse()?);
        if most.bytes().is_none_or(|most| least <= most) { Ok(Self { least, most }) } else { Err(wrong()) }
    }
}

impl Most {
    /// The size used when the machine does not report its caches.
    pub const UNKNOWN: Bytes = Bytes(64 << 20);

    /// The size; `None`: the measuring probe looks it up.
    #[must_use]
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Size(bytes) => Some(bytes),
            Self::Caches { times, cache: Cache::Size(cache) } => {
                Some(Bytes(cache.0.saturating_mul(times.into())))
            }
            Self::Caches { cache: Cache::Unknown, .. } => Some(Self::UNKNOWN),
            Self::Caches { cache: Cache::Own, .. } => None,
        }
    }
}

/// The last-level cache, in a plan.
const CACHE: &str = "LLC";
/// One of which the machine says nothing.
const UNKNOWN: &str = "unknown";

impl FromStr for Most {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let Some((times, cache)) = text.split_once('x') else { return text.parse().map(Self::Size) };
        let times = times.trim().parse::<u32>().ok().filter(|times| *times > 0);
        let times = times.ok_or_else(|| SizeError(text.to_owned()))?;
        let cache = match cache.trim() {
            CACHE => Cache::Own,
            UNKNOWN => Cache::Unknown,
            size => Cache::Size(size.parse()?),
        };
        Ok(Self::Caches { times, cache })
    }
}

impl fmt::Display for Most {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => bytes.fmt(f),
            Self::Caches { times, cache: Cache::Size(cache) } => write!(f, "{times}x{cache}"),
            Self::Caches { times, cache: Cache::Own } => write!(f, "{times}x{CACHE}"),
            Self::Caches { times, cache: Cache::Unknown } => write!(f, "{times}x{UNKNOWN}"),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.least, self.most)
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_as_it_is_written() {
        for (text, bytes) in [("512KiB", 512 << 10), ("1B", 1), ("3GiB", 3 << 30), ("1025B", 1025), ("0B", 0)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        for wrong in ["", "KiB", "512", "512kb", "-1B", "1.5MiB", "99999999999999999999B", "99999999TiB"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_is_read_as_it_is_written_from_the_smaller_to_the_larger() {
        let sizes: Sizes = "1KiB..64MiB".parse().unwrap();
        assert_eq!(sizes, Sizes { least: Bytes(1 << 10), most: Most::Size(Bytes(64 << 20)) });
        assert_eq!(sizes.to_string(), "1KiB..64MiB");
        assert_eq!(serde_json::from_str::<Sizes>("\"4KiB..4KiB\"").unwrap().most, Most::Size(Bytes(4 << 10)));
        for wrong in ["", "..", "1KiB", "1KiB..", "64MiB..1KiB", "1..2", "1KiB..2KiB..4KiB"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_largest_may_be_so_many_times_a_cache_whether_that_is_known_or_not() {
        for (text, times, cache) in [
            ("1KiB..4xLLC", 4, Cache::Own),
            ("1KiB..2x48MiB", 2, Cache::Size(Bytes(48 << 20))),
            ("1KiB..4xunknown", 4, Cache::Unknown),
        ] {
            let sizes: Sizes = text.parse().unwrap();
            assert_eq!(sizes.most, Most::Caches { times, cache });
            assert_eq!(sizes.to_string(), text);
        }
        let most = |text: &str| text.parse::<Sizes>().unwrap().most.bytes();
        assert_eq!((most("1KiB..4xLLC"), most("1KiB..2x48MiB")), (None, Some(Bytes(96 << 20))));
        assert_eq!(most("1KiB..4xunknown"), Some(Most::UNKNOWN));
        for wrong in [
            "1KiB..0xLLC",
            "1KiB..xLLC",
            "1KiB..4x",
            "1KiB..4xL2",
            "1KiB..-1xLLC",
            "1MiB..2x64KiB",
            "128MiB..4xunknown",
            "4xLLC",
        ] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
