//! Sets of CPUs, written as the kernel's cpulists: `0,2-5`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The highest CPU number that tactus accepts (the kernel's own limit is 8191 on x86).
pub const MAX_CPU: u32 = 8191;

/// A set of CPU numbers.
///
/// It takes only as much memory as its text (or as the ranges of its pattern), also if the text comes from another
/// source. It holds ranges from their first to their last CPU, in rising order, with at least one missing CPU between
/// two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet(Vec<(u32, u32)>);

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
    /// A number above the last CPU: of the machine if that is known, otherwise of all that Linux supports.
    #[error("CPU {0} is above the highest there is ({1})")]
    TooHigh(String, u32),
    /// A word for the last CPU, when that is unknown.
    #[error("`{part}` depends on the machine's last CPU, which is unknown here: write its number")]
    NoLast {
        /// The part.
        part: String,
    },
}

impl CpuSet {
    /// The set of one CPU.
    #[must_use]
    pub fn one(cpu: u32) -> Self {
        Self(vec![(cpu, cpu)])
    }

    /// The CPUs in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// How many CPUs are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0
            .iter()
            .map(|(first, last)| usize::try_from(last - first).map_or(usize::MAX, |more| more + 1))
            .sum()
    }

    /// Whether the set has no CPU.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.get(self.behind(cpu)).is_some_and(|(first, _)| *first <= cpu)
    }

    /// The lowest CPU.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|(first, _)| *first)
    }

    /// The highest CPU.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.0.last().map(|(_, last)| *last)
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: u32) {
        self.insert_range(cpu, cpu);
    }

    /// The CPUs of `self` that are not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = Self::default();
        for (first, last) in &self.0 {
            let mut from = Some(*first);
            for (start, end) in &other.0[other.behind(*first)..] {
                let Some(begin) = from.filter(|_| start <= last) else { break };
                if begin < *start {
                    left.0.push((begin, start - 1));
                }
                from = end.checked_add(1).map(|next| next.max(begin));
            }
            if let Some(begin) = from.filter(|begin| begin <= last) {
                left.0.push((begin, *last));
            }
        }
        left
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.minus(&self.minus(other))
    }

    /// The CPUs that are in either set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut all = self.clone();
        other.0.iter().for_each(|(first, last)| all.insert_range(*first, *last));
        all
    }

    /// The first `count` CPUs of the set.
    #[must_use]
    pub fn take(&self, count: usize) -> Self {
        self.iter().take(count).collect()
    }

    /// The first range that does not end before `cpu`.
    fn behind(&self, cpu: u32) -> usize {
        self.0.partition_point(|(_, last)| *last < cpu)
    }

    fn insert_range(&mut self, first: u32, last: u32) {
        // Ranges that it touches are merged with it.
        let from = self.behind(first.saturating_sub(1));
        let to = self.0.partition_point(|(start, _)| *start <= last.saturating_add(1));
        let touched = &self.0[from..to.max(from)];
        let first = touched.first().map_or(first, |(start, _)| first.min(*start));
        let last = touched.last().map_or(last, |(_, end)| last.max(*end));
        self.0.splice(from..to.max(from), [(first, last)]);
    }
}

/// As lists of numbers are ordered.
impl Ord for CpuSet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for CpuSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::default();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// Reads a cpulist. The empty text is the empty set, as in sysfs.
    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let mut set = Self::default();
        if !text.trim().is_empty() {
            for part in text.split(',') {
                set.add(text, part.trim(), None)?;
            }
        }
        Ok(set)
    }
}

/// Lists as the kernel reads them (`bitmap_parselist` of lib/bitmap-str.c): numbers, ranges, `all`, `N` for the last
/// CPU, and `0-15:2/4` for the first two of each four.
impl CpuSet {
    /// Reads the list of a kernel parameter on a machine whose CPUs go from 0 to `last`.
    ///
    /// # Errors
    /// Where the kernel refuses the list. It then does without the whole parameter.
    pub fn of_parameter(text: &str, last: u32) -> Result<Self, CpuSetError> {
        let mut set = Self::default();
        for part in text.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|part| !part.is_empty())
        {
            set.add(text, part, Some(last))?;
        }
        Ok(set)
    }

    /// Adds the CPUs of one part of a list. `last` is the machine's last CPU, if known.
    fn add(&mut self, text: &str, part: &str, last: Option<u32>) -> Result<(), CpuSetError> {
        let bad = || CpuSetError::NotACpu { text: text.into(), part: part.into() };
        let end = || last.ok_or_else(|| CpuSetError::NoLast { part: part.into() });
        let number = |digits: &str| -> Result<u32, CpuSetError> {
            let digits = digits.trim();
            if digits == "N" {
                return end();
            }
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad());
            }
            digits.parse().map_err(|_| CpuSetError::TooHigh(digits.into(), MAX_CPU))
        };
        let (range, pattern) = part.split_once(':').map_or((part, None), |(range, of)| (range, Some(of)));
        let (first, to) = match range.split_once('-') {
            _ if range.eq_ignore_ascii_case("all") => (0, end()?),
            None => number(range).map(|cpu| (cpu, cpu))?,
            Some((from, to)) => (number(from)?, number(to)?),
        };
        let highest = last.unwrap_or(MAX_CPU);
        if let Some(above) = [to, first].into_iter().find(|cpu| *cpu > highest) {
            return Err(CpuSetError::TooHigh(above.to_string(), highest));
        }
        if to < first {
            return Err(CpuSetError::Backwards { part: part.into() });
        }
        let Some(pattern) = pattern else {
            self.insert_range(first, to);
            return Ok(());
        };
        let (used, group) = pattern.split_once('/').ok_or_else(bad)?;
        let (used, group) = (number(used)?, number(group)?);
        if group == 0 || used > group {
            return Err(bad());
        }
        if used > 0 {
            let starts = (first..=to).step_by(usize::try_from(group).unwrap_or(usize::MAX));
            starts.for_each(|start| self.insert_range(start, to.min(start.saturating_add(used - 1))));
        }
        Ok(())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
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
    /// The CPU beside `first`: the next of those that `auto` gives, else a housekeeping one.
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
    use std::collections::BTreeSet;

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
            ("2-N", "`2-N` depends on the machine's last CPU"),
            ("all", "`all` depends on"),
            ("0-7:1", "`0-7:1`"),
            ("0-7:1/0", "`0-7:1/0`"),
            ("0-7:3/2", "`0-7:3/2`"),
            ("0-7:/2", "`0-7:/2`"),
        ] {
            let error = text.parse::<CpuSet>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn the_list_of_a_parameter_is_read_as_the_kernel_reads_it() {
        let read = |text| CpuSet::of_parameter(text, 15).map(|set| set.to_string());
        for (text, cpus) in [
            ("", ""),
            ("2-N", "2-15"),
            ("N", "15"),
            ("N-N,0", "0,15"),
            ("all", "0-15"),
            ("ALL", "0-15"),
            ("all:1/4", "0,4,8,12"),
            ("0-15:2/4", "0,1,4,5,8,9,12,13"),
            ("0-5:2/4", "0,1,4,5"),
            ("0-4:2/4", "0,1,4"),
            ("3:1/1", "3"),
            ("0-7:0/2", ""),
            ("0-N:1/N", "0,15"),
            ("0-7:1/99999", "0"),
            (",1,,2 3,\t", "1-3"),
        ] {
            assert_eq!(read(text), Ok(cpus.to_owned()), "{text}");
        }
        for text in
            ["2-16", "16", "n", "2-n", "allx", "all-3", "0-7:2", "0-7:2/", "5-2", "N-1", "0-7:1/0", "-1"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        let above = read("2-63").unwrap_err().to_string();
        assert_eq!(above, "CPU 63 is above the highest there is (15)");
    }

    #[test]
    fn requests_name_sets_that_only_the_machine_can_resolve() {
        for text in ["auto", "isolated", "first", "neighbour", "all", "!0", "2-3"] {
            assert_eq!(text.parse::<CpuRequest>().unwrap().to_string().replace("2,3", "2-3"), text);
        }
    }

    #[test]
    fn a_short_text_is_a_small_set_however_many_cpus_it_has() {
        let all: CpuSet = "0-8191,5,0-8191,17-20".parse().unwrap();
        assert_eq!((all.0.len(), all.len(), all.last()), (1, 8192, Some(8191)));
        let ends: CpuSet = [0, u32::MAX, u32::MAX - 1].into_iter().collect();
        assert_eq!(ends.minus(&CpuSet::one(u32::MAX)), [0, u32::MAX - 1].into_iter().collect());
    }

    /// CPUs that lie close together, so that ranges meet.
    fn some_cpus() -> impl Strategy<Value = BTreeSet<u32>> {
        proptest::collection::btree_set(0u32..40, 0..30)
    }

    fn of(cpus: &BTreeSet<u32>) -> CpuSet {
        // In no order.
        let (even, odd): (Vec<u32>, Vec<u32>) = cpus.iter().partition(|cpu| *cpu % 2 == 0);
        even.into_iter().rev().chain(odd).collect()
    }

    proptest! {
        #[test]
        fn a_set_is_read_back_as_it_was_written(cpus in proptest::collection::btree_set(0u32..=MAX_CPU, 0..80)) {
            let set = of(&cpus);
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }

        #[test]
        fn sets_of_ranges_are_those_of_their_numbers(one in some_cpus(), other in some_cpus(), cpu in 0u32..41) {
            let (a, b) = (of(&one), of(&other));
            let numbers = |set: &CpuSet| set.iter().collect::<BTreeSet<u32>>();
            prop_assert_eq!(&numbers(&a), &one);
            prop_assert!(a.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", a);
            prop_assert_eq!(a.iter().rev().collect::<Vec<_>>(), one.iter().rev().copied().collect::<Vec<_>>());
            prop_assert_eq!((a.len(), a.is_empty()), (one.len(), one.is_empty()));
            prop_assert_eq!((a.first(), a.last()), (one.first().copied(), one.last().copied()));
            prop_assert_eq!(a.contains(cpu), one.contains(&cpu));
            prop_assert_eq!(numbers(&a.minus(&b)), one.difference(&other).copied().collect());
            prop_assert_eq!(numbers(&a.and(&b)), one.intersection(&other).copied().collect());
            prop_assert_eq!(numbers(&a.or(&b)), one.union(&other).copied().collect());
            prop_assert_eq!(a.or(&b), b.or(&a));
            prop_assert_eq!(a.cmp(&b), one.cmp(&other));
            prop_assert_eq!(numbers(&a.take(5)), one.iter().take(5).copied().collect());
            let (all, none) = (a.or(&b), a.minus(&a));
            prop_assert!(none.is_empty());
            prop_assert_eq!(all.minus(&b), a.minus(&b));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9,\\-! a-zN:/]{0,30}", last in 0u32..=MAX_CPU) {
            let _ = text.parse::<CpuRequest>();
            if let Ok(set) = CpuSet::of_parameter(&text, last) {
                prop_assert!(set.last().is_none_or(|cpu| cpu <= last));
            }
        }

        #[test]
        fn a_list_that_names_its_numbers_is_the_same_to_the_kernel(cpus in some_cpus(), more in 0u32..9) {
            let set = of(&cpus);
            let last = set.last().unwrap_or(0) + more;
            prop_assert_eq!(CpuSet::of_parameter(&set.to_string(), last), Ok(set));
        }

        #[test]
        fn a_pattern_takes_the_first_of_each_group(
            first in 0u32..40, length in 0u32..40, used in 0u32..9, more in 0u32..9, end in 0u32..9
        ) {
            let (last, group) = (first + length, used + more);
            let list = format!("{first}-{last}:{used}/{group}");
            let taken = (first..=last).filter(|cpu| (cpu - first) % group.max(1) < used).collect();
            let right = (group > 0).then_some(taken);
            prop_assert_eq!(CpuSet::of_parameter(&list, last + end).ok(), right.clone());
            prop_assert_eq!(list.parse().ok(), right.clone());
            // `N` is the last CPU.
            prop_assert_eq!(CpuSet::of_parameter(&format!("{first}-N:{used}/{group}"), last).ok(), right);
        }
    }
}
