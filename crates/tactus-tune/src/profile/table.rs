//! The profiles by name.

use super::Profile;
use super::base::{LATENCY_PERFORMANCE, NETWORK_LATENCY};
use super::partitioning::{CPU_PARTITIONING, WITH_ISOLCPUS};
use super::realtime::{REALTIME, VIRTUAL_GUEST, VIRTUAL_HOST};

/// The four profiles.
pub static PROFILES: &[&Profile] = &[&REALTIME, &VIRTUAL_HOST, &VIRTUAL_GUEST, &CPU_PARTITIONING];

/// The names that messages list.
#[must_use]
pub fn names() -> Vec<&'static str> {
    PROFILES.iter().copied().chain([&WITH_ISOLCPUS]).map(|profile| profile.name).collect()
}

/// The profile of this name: one of [`PROFILES`], one that they inherit, or
/// `cpu-partitioning-isolcpus`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Profile> {
    PROFILES
        .iter()
        .copied()
        .chain([&LATENCY_PERFORMANCE, &NETWORK_LATENCY, &WITH_ISOLCPUS])
        .find(|profile| profile.name == name)
}
