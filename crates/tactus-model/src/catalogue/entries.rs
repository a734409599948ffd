//! The entries of all families.

use super::{Entry, fault, load, measure};

/// Every entry, by family.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    [measure::MEASURES, load::LOADS, fault::FAULTS].into_iter().flatten().copied()
}

/// The entries of a word: a measurement and a load may share one.
pub fn find(name: &str) -> impl Iterator<Item = &'static Entry> {
    entries().filter(move |entry| entry.name == name)
}
