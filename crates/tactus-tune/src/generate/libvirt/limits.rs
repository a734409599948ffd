//! The limits of a user's domain: quotas and bandwidths are removed, other limits stay and are named.

use super::edit::{Setting, What};
use super::tree::{Element, Tree};

/// Quotas that stop vCPUs, or the threads that they wait for, and a limit of their memory's bandwidth.
pub fn removed(tree: &Tree) -> Vec<Setting> {
    let no = |path, with, check| Setting { check, why: String::new(), what: What::No(path, with) };
    let quotas: [&'static [&'static str]; 4] = [
        &["cputune", "quota"],
        &["cputune", "global_quota"],
        &["cputune", "emulator_quota"],
        &["cputune", "iothread_quota"],
    ];
    let mut all: Vec<Setting> =
        quotas.into_iter().map(|path| no(path, Vec::new(), "ctr-cfs-quota")).collect();
    let slow = |one: &&Element| {
        let share = |node: &Element| node.attribute("bandwidth").and_then(|share| share.parse::<u32>().ok());
        tree.children(one, "node").filter_map(share).any(|share| share < 100)
    };
    let tunes = tree.find(&["cputune"]).map(|tune| tree.children(tune, "memorytune").filter(slow));
    let vcpus = tunes.into_iter().flatten().filter_map(|one| one.attribute("vcpus"));
    let path: &'static [&'static str] = &["cputune", "memorytune"];
    all.extend(vcpus.map(|vcpus| no(path, vec![("vcpus", vcpus.to_owned())], "resctrl-mba")));
    all
}

/// Limits of the guest that stay, because only its owner knows whether they are wanted.
pub fn kept(tree: &Tree) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(tune) = tree.find(&["cputune"]) {
        for one in tree.children(tune, "cachetune") {
            let of = |cache: &Element| {
                let says = |name| cache.attribute(name).unwrap_or("?").to_owned();
                format!("{} {} of L{}", says("size"), cache.attribute("unit").unwrap_or("B"), says("level"))
            };
            let sizes: Vec<String> = tree.children(one, "cache").map(of).collect();
            if !sizes.is_empty() {
                notes.push(format!(
                    "resctrl-cat: <cachetune> limits vCPUs {} to {}, and stays; check that it is enough",
                    one.attribute("vcpus").unwrap_or("?"),
                    sizes.join(", ")
                ));
            }
        }
    }
    for name in ["soft_limit", "swap_hard_limit"] {
        if tree.find(&["memtune", name]).is_some() {
            notes
                .push(format!("mem-lock: <memtune> has <{name}>, which limits the guest's memory and stays"));
        }
    }
    if tree.find(&["blkiotune"]).is_some() {
        notes.push("io-path: <blkiotune> limits the guest's disks and stays".into());
    }
    let Some(devices) = tree.find(&["devices"]) else { return notes };
    for disk in tree.children(devices, "disk").filter(|disk| tree.children(disk, "iotune").next().is_some()) {
        let target = tree.children(disk, "target").next().and_then(|target| target.attribute("dev"));
        notes.push(format!("io-path: <iotune> limits disk {} and stays", target.unwrap_or("?")));
    }
    let limited = |one: &&Element| tree.children(one, "bandwidth").next().is_some();
    let nets = tree.children(devices, "interface").filter(limited).count();
    if nets > 0 {
        notes.push(format!("io-path: <bandwidth> limits {nets} of the guest's interfaces and stays"));
    }
    notes
}
