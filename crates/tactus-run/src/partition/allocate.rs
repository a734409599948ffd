//! How what resctrl offers is divided between the measured CPUs and the others: a pure function.

use std::collections::BTreeSet;

use tactus_model::CpuSet;
use tactus_model::partition::{Partition, Percent};

use super::resctrl_info::{Cache, Memory, Offer};

/// The texts for the two groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// The measured CPUs.
    pub measured_cpus: CpuSet,
    /// The others.
    pub other_cpus: CpuSet,
    /// Lines of `schemata` for the measured CPUs.
    pub measured: String,
    /// Lines of `schemata` for the others.
    pub others: String,
    /// The result, in words.
    pub words: Vec<String>,
}

/// Groups that are made beside the default one.
const MADE: u32 = 2;

/// Divides the caches in `domains`, which are those of the measured CPUs; `None`: all caches.
///
/// # Errors
/// Why it cannot be done, in words.
pub fn divide(
    offer: &Offer,
    wanted: Partition,
    measured: &CpuSet,
    online: &CpuSet,
    domains: Option<&BTreeSet<u32>>,
) -> Result<Division, String> {
    let mut division = Division {
        measured_cpus: measured.clone(),
        other_cpus: online.minus(measured),
        ..Division::default()
    };
    if wanted.cache.is_none() && wanted.memory.is_none() {
        return Err("`partition` contains neither `cache` nor `memory`".into());
    }
    if measured.is_empty() || division.other_cpus.is_empty() {
        return Err(format!(
            "all CPUs ({online}) are measured, or none: there are no two groups to divide between"
        ));
    }
    if let Some(theirs) = offer.others.first() {
        return Err(format!("another program has made resctrl groups (`{theirs}`); remove them first"));
    }
    if let Some(part) = wanted.cache {
        let cache = offer
            .cache
            .as_ref()
            .ok_or("this processor cannot divide its caches (no L3 or L2 in schemata)")?;
        share_cache(&mut division, cache, part, domains)?;
    }
    if let Some(part) = wanted.memory {
        let memory = offer
            .memory
            .as_ref()
            .ok_or("this processor cannot limit memory bandwidth (no MB in schemata)")?;
        hold_back(&mut division, memory, part, domains)?;
    }
    if offer.groups <= MADE {
        return Err(format!("it has {} groups (num_closids) and {} are needed", offer.groups, MADE + 1));
    }
    Ok(division)
}

fn share_cache(
    division: &mut Division,
    cache: &Cache,
    part: Percent,
    domains: Option<&BTreeSet<u32>>,
) -> Result<(), String> {
    let all = cache.ways.count_ones();
    // Masks that are put together from both ends must be those of a whole.
    if cache.ways != low(all) {
        return Err(format!("the ways of its cache are not contiguous (cbm_mask {:x})", cache.ways));
    }
    let most = all.checked_sub(cache.least).filter(|most| *most >= cache.least).ok_or_else(|| {
        format!("its cache has {all} ways and a group needs {}: it cannot be divided", cache.least)
    })?;
    let ours = ((all * part.0 + 50) / 100).clamp(cache.least, most);
    // Devices use one end of the cache, if any: the other one is better.
    let (at_the_low_end, at_the_high_end) = (low(ours), cache.ways & !low(all - ours));
    let measured = if at_the_low_end & cache.devices == 0 || at_the_high_end & cache.devices != 0 {
        at_the_low_end
    } else {
        at_the_high_end
    };
    let others = cache.ways & !measured;
    let own: Vec<u32> = of_measured(cache.domains.iter().copied(), domains);
    if own.is_empty() {
        return Err("none of its caches belongs to the measured CPUs".into());
    }
    for resource in &cache.resources {
        division.measured += &line(resource, &own, &format!("{measured:x}"));
        division.others += &line(resource, &own, &format!("{others:x}"));
    }
    let level = cache.level;
    division.words.push(format!(
        "CPUs {} have {ours} of the {all} ways of their level {level} cache to themselves (mask {measured:x}, asked \
         for {part}), CPUs {} the others ({others:x})",
        division.measured_cpus, division.other_cpus,
    ));
    let devices = measured & cache.devices;
    if devices != 0 {
        division
            .words
            .push(format!("devices also fill {devices:x} of the measured CPUs' ways (shareable_bits)"));
    }
    Ok(())
}

fn hold_back(
    division: &mut Division,
    memory: &Memory,
    part: Percent,
    domains: Option<&BTreeSet<u32>>,
) -> Result<(), String> {
    if let Some((_, now)) = memory.now.iter().find(|(_, now)| **now != 100) {
        return Err(format!(
            "its memory bandwidth is not counted in per cent, or is already limited (MB = {now}): AMD counts \
             in eighths of a GB/s"
        ));
    }
    let given = part.0.next_multiple_of(memory.step).clamp(memory.least, 100);
    let own = of_measured(memory.now.keys().copied(), domains);
    if own.is_empty() {
        return Err("none of its memory domains belongs to the measured CPUs".into());
    }
    division.others += &line("MB", &own, &given.to_string());
    division.words.push(format!(
        "CPUs {} may take {given} % of the memory bandwidth (asked for {part})",
        division.other_cpus
    ));
    Ok(())
}

/// `count` bits from the lowest.
const fn low(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

fn of_measured(all: impl Iterator<Item = u32>, domains: Option<&BTreeSet<u32>>) -> Vec<u32> {
    all.filter(|id| domains.is_none_or(|domains| domains.contains(id))).collect()
}

fn line(resource: &str, domains: &[u32], value: &str) -> String {
    let domains: Vec<String> = domains.iter().map(|id| format!("{id}={value}")).collect();
    format!("{resource}:{}\n", domains.join(";"))
}
