//! Parts of a shared cache and of memory bandwidth that are kept for the measured CPUs, and their use.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpus::CpuSet;

/// A part of a whole, as `50%`: 1 to 99 per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(pub u32);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
        match number {
            Some(percent @ 1..=99) => Ok(Self(percent)),
            _ => Err(format!("`{text}` is not a share: write 1% to 99%")),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// How the machine's caches and memory bandwidth are divided between the measured CPUs and the
/// others, by resctrl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The part of the last-level cache that the measured CPUs have to themselves; the others have the
    /// rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Percent>,
    /// The part of the memory bandwidth that the others may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Percent>,
}

/// When something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before the groups were made.
    Before,
    /// While they were there.
    With,
    /// After they were removed.
    After,
}

/// Cache that a group of CPUs held, and bytes that it moved to and from memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheUse {
    /// The phase of the partition.
    pub phase: Phase,
    /// The group: `all`, `measured` or `others`.
    pub group: String,
    /// The CPUs.
    pub cpus: CpuSet,
    /// Bytes of the cache that it held then (`llc_occupancy`); none: not counted here.
    pub occupancy_bytes: Option<u64>,
    /// Bytes moved to and from memory since the group is counted (`mbm_total_bytes`); none: not counted
    /// here.
    pub memory_bytes: Option<u64>,
}

/// Cache that a group of CPUs held, over all readings in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheHeld {
    /// The phase of the partition.
    pub phase: Phase,
    /// The group.
    pub group: String,
    /// The CPUs.
    pub cpus: CpuSet,
    /// Number of readings.
    pub looks: usize,
    /// The least and the most that it held, in bytes; none: not counted here.
    pub occupancy_bytes: Option<(u64, u64)>,
    /// The first and the last count of bytes moved to and from memory; none: not counted here.
    pub memory_bytes: Option<(u64, u64)>,
}

impl CacheHeld {
    /// Adds a look to the record of its group and phase.
    pub fn add(all: &mut Vec<Self>, one: &CacheUse) {
        let same = |held: &&mut Self| held.phase == one.phase && held.group == one.group;
        let Some(held) = all.iter_mut().find(same) else {
            all.push(Self {
                phase: one.phase,
                group: one.group.clone(),
                cpus: one.cpus.clone(),
                looks: 1,
                occupancy_bytes: one.occupancy_bytes.map(|bytes| (bytes, bytes)),
                memory_bytes: one.memory_bytes.map(|bytes| (bytes, bytes)),
            });
            return;
        };
        held.looks += 1;
        if let Some(bytes) = one.occupancy_bytes {
            let (least, most) = held.occupancy_bytes.unwrap_or((bytes, bytes));
            held.occupancy_bytes = Some((least.min(bytes), most.max(bytes)));
        }
        if let Some(bytes) = one.memory_bytes {
            let (first, _) = held.memory_bytes.unwrap_or((bytes, bytes));
            held.memory_bytes = Some((first, bytes));
        }
    }

    /// Bytes moved to and from memory between the first look and the last; none: not counted here, or looked at
    /// once.
    #[must_use]
    pub fn moved_bytes(&self) -> Option<u64> {
        let (first, last) = self.memory_bytes.filter(|_| self.looks > 1)?;
        last.checked_sub(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_between_nothing_and_everything() {
        assert_eq!("50%".parse(), Ok(Percent(50)));
        assert_eq!(" 1 % ".parse(), Ok(Percent(1)));
        for wrong in ["", "%", "0%", "100%", "50", "-1%", "1.5%", "99999999999%"] {
            assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
        }
    }
}
