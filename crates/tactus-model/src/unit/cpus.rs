//! Sets of CPUs, written as the kernel's cpulists: `0,2-5`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The highest CPU number that tactus accepts (the kernel's own limit is 8191 on x86).
pub const MAX_CPU: u32 = 8191;

/// A set of CPU numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet(BTreeSet<u32>);

/// Why a text is not a cpulist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    /// A part that is neither a number nor a range.
    #[error("`{part}` in `{text}` is not a CPU or a range of CPUs; write a list as in `0,2-5`")]
    NotACpu {
        /// The whole text.
        text: String,
        /// The part that could not be read.
        part: String,
    },
    /// A range whose end lies before its start.
    #[error("the range `{part}` runs backwards")]
    Backwards {
        /// The range.
        part: String,
    },
    /// A number that no Linux machine has.
    #[error("CPU {0} is above the highest that Linux knows ({MAX_CPU})")]
    TooHigh(u64),
}

impl CpuSet {
    /// The set of one CPU.
    #[must_use]
    pub fn one(cpu: u32) -> Self {
        Self(BTreeSet::from([cpu]))
    }

    /// The CPUs in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// How many CPUs are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has no CPU.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The lowest CPU.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// The highest CPU.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: u32) {
        self.0.insert(cpu);
    }

    /// The CPUs of `self` that are not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs that are in either set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// The first `count` CPUs of the set.
    #[must_use]
    pub fn take(&self, count: usize) -> Self {
        Self(self.0.iter().copied().take(count).collect())
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// Reads a cpulist. The empty text is the empty set, as in sysfs.
    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let mut set = BTreeSet::new();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Ok(Self(set));
        }
        for part in trimmed.split(',') {
            let bad = || CpuSetError::NotACpu { text: text.into(), part: part.into() };
            let number = |digits: &str| -> Result<u32, CpuSetError> {
                let digits = digits.trim();
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(bad());
                }
                let value: u64 = digits.parse().map_err(|_| CpuSetError::TooHigh(u64::MAX))?;
                u32::try_from(value).ok().filter(|cpu| *cpu <= MAX_CPU).ok_or(CpuSetError::TooHigh(value))
            };
            match part.split_once('-') {
                None => {
                    set.insert(number(part)?);
                }
                Some((from, to)) => {
                    let (from, to) = (number(from)?, number(to)?);
                    if to < from {
                        return Err(CpuSetError::Backwards { part: part.into() });
                    }
                    set.extend(from..=to);
                }
            }
        }
        Ok(Self(set))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut first = true;
        while let Some(start) = cpus.next() {
            let mut end = start;
            while cpus.next_if(|next| *next == end + 1).is_some() {
                end += 1;
            }
            let comma = if first { "" } else { "," };
            first = false;
            match end - start {
                0 => write!(f, "{comma}{start}")?,
                1 => write!(f, "{comma}{start},{end}")?,
                _ => write!(f, "{comma}{start}-{end}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// CPUs as a plan asks for them, before the machine is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuRequest {
    /// Exactly these.
    List(CpuSet),
    /// All usable CPUs but these: `!0`.
    Not(CpuSet),
    /// The CPUs that the kernel was told to isolate.
    Isolated,
    /// Whatever the machine is best measured on.
    Auto,
    /// The first of the CPUs that `auto` gives.
    First,
    /// The CPU beside `first`: the next of those that `auto` gives, else one that keeps house.
    Neighbour,
    /// Every CPU of the environment.
    All,
}

impl FromStr for CpuRequest {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "isolated" => Ok(Self::Isolated),
            "first" => Ok(Self::First),
            "neighbour" => Ok(Self::Neighbour),
            "all" => Ok(Self::All),
            other => match other.strip_prefix('!') {
                Some(list) => Ok(Self::Not(list.parse()?)),
                None => Ok(Self::List(other.parse()?)),
            },
        }
    }
}

impl fmt::Display for CpuRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(set) => set.fmt(f),
            Self::Not(set) => write!(f, "!{set}"),
            Self::Isolated => f.write_str("isolated"),
            Self::Auto => f.write_str("auto"),
            Self::First => f.write_str("first"),
            Self::Neighbour => f.write_str("neighbour"),
            Self::All => f.write_str("all"),
        }
    }
}

impl Serialize for CpuRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpulists_are_read_as_the_kernel_writes_them() {
        let set: CpuSet = "0,2-5,8\n".parse().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2, 3, 4, 5, 8]);
        assert_eq!(set.to_string(), "0,2-5,8");
        assert!("".parse::<CpuSet>().unwrap().is_empty());
        assert_eq!("0,1".parse::<CpuSet>().unwrap().to_string(), "0,1");
    }

    #[test]
    fn what_is_not_a_cpulist_is_named() {
        for (text, says) in [
            ("0-", "`0-`"),
            ("x", "`x`"),
            ("5-2", "backwards"),
            ("0-99999999", "8191"),
            ("0,,1", "``"),
            ("+1", "`+1`"),
        ] {
            let error = text.parse::<CpuSet>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn requests_name_sets_that_only_the_machine_can_resolve() {
        for text in ["auto", "isolated", "first", "neighbour", "all", "!0", "2-3"] {
            assert_eq!(text.parse::<CpuRequest>().unwrap().to_string().replace("2,3", "2-3"), text);
        }
    }

    proptest! {
        #[test]
        fn a_set_is_read_back_as_it_was_written(cpus in proptest::collection::btree_set(0u32..=MAX_CPU, 0..80)) {
            let set = CpuSet(cpus);
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9,\\-! a-z]{0,30}") {
            let _ = text.parse::<CpuRequest>();
        }
    }
}
