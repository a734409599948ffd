//! The resctrl features of a machine, as Documentation/arch/x86/resctrl.rst describes its files.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::resctrl::{self, ROOT, entries};
use tactus_system::System;

/// A cache that can be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 3, or 2 where the third level cannot be divided.
    pub level: u32,
    /// Its names in `schemata`: `L3`, or `L3CODE` and `L3DATA`.
    pub resources: Vec<String>,
    /// All its ways, one bit each (`cbm_mask`).
    pub ways: u64,
    /// The least number of ways of a group (`min_cbm_bits`).
    pub least: u32,
    /// Ways that devices fill, too (`shareable_bits`).
    pub devices: u64,
    /// Its domains.
    pub domains: BTreeSet<u32>,
}

/// Memory bandwidth that can be held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The least part, in per cent (`min_bandwidth`).
    pub least: u32,
    /// The distance between two parts, in per cent (`bandwidth_gran`).
    pub step: u32,
    /// The present limit of every domain. If it is a percentage, 100 is the whole.
    pub now: BTreeMap<u32, u64>,
}

/// The resources that can be divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The last-level cache.
    pub cache: Option<Cache>,
    /// Memory bandwidth.
    pub memory: Option<Memory>,
    /// Groups that there can be, the default one among them (the least `num_closids`).
    pub groups: u32,
    /// Groups that somebody made.
    pub others: Vec<String>,
}

impl Offer {
    /// Reads it, where resctrl is mounted.
    pub fn read(system: &dyn System) -> Self {
        let info = |resource: &str, file: &str| system.text(&format!("{ROOT}info/{resource}/{file}"));
        let number = |resource: &str, file: &str| info(resource, file)?.trim().parse::<u32>().ok();
        let mask = |resource: &str, file: &str| resctrl::mask(&info(resource, file)?);
        let schemata = system.text(&format!("{ROOT}schemata")).unwrap_or_default();
        let cache = [3, 2].into_iter().find_map(|level| {
            let resources: Vec<String> = ["", "CODE", "DATA"]
                .iter()
                .map(|part| format!("L{level}{part}"))
                .filter(|resource| mask(resource, "cbm_mask").is_some_and(|mask| mask != 0))
                .collect();
            let first = resources.first()?;
            let domains: BTreeSet<u32> = entries(&schemata)
                .filter(|entry| entry.resource == *first)
                .map(|entry| entry.domain)
                .collect();
            (!domains.is_empty()).then_some(Cache {
                level,
                ways: mask(first, "cbm_mask")?,
                least: number(first, "min_cbm_bits").unwrap_or(1).max(1),
                devices: mask(first, "shareable_bits").unwrap_or(0),
                domains,
                resources,
            })
        });
        let now: BTreeMap<u32, u64> = entries(&schemata)
            .filter(|entry| entry.resource == "MB")
            .filter_map(|entry| Some((entry.domain, entry.value.parse().ok()?)))
            .collect();
        let memory = (!now.is_empty()).then(|| Memory {
            least: number("MB", "min_bandwidth").unwrap_or(1),
            step: number("MB", "bandwidth_gran").unwrap_or(1).max(1),
            now,
        });
        let used = cache.iter().flat_map(|cache| &cache.resources).map(String::as_str);
        let used = used.chain(memory.is_some().then_some("MB"));
        let groups = used.filter_map(|resource| number(resource, "num_closids")).min().unwrap_or(0);
        Self { cache, memory, groups, others: others(system) }
    }
}

/// Names of the groups below the root.
fn others(system: &dyn System) -> Vec<String> {
    let entries = system.list(std::path::Path::new(ROOT)).unwrap_or_default();
    let names = entries.iter().filter_map(|path| path.file_name()?.to_str());
    names
        .filter(|name| !matches!(*name, "info" | "mon_groups" | "mon_data"))
        .filter(|name| system.exists(std::path::Path::new(&format!("{ROOT}{name}/schemata"))))
        .map(str::to_owned)
        .collect()
}
