//! NUMA nodes within a socket.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::CpuSet;
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ID: &str = "cluster-topology";
const NODE: &str = "/sys/devices/system/node/node";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "real-time CPUs of one socket are in several memory nodes",
    sources: &[Source::Kernel("Documentation/filesystems/resctrl.rst")],
    applies: &[Applies::Host],
    severity: Severity::Info,
    arch: Arch::X86,
    set: &[SetBy::Firmware, SetBy::Placement],
    reversible: Reversible::Reboot,
    hardware: true,
    reads: "/sys/devices/system/node/node*/cpulist, /sys/devices/system/cpu/cpu*/topology/physical_package_id",
    expected: "the isolated CPUs of a socket in one node, or one node in each socket",
    why: "With sub-NUMA clustering (Intel) or nodes per socket (AMD NPS) a socket is several nodes. A CPU reaches \
memory and cache of its node faster than those of another. The scheduler moves tasks between these nodes more \
readily than between sockets. A guest whose CPUs or memory span several nodes loses both.",
    fix: "Give each guest CPUs and memory of one node. Or turn off SNC (set NPS1) in the firmware's setup.",
    risk: "With one node per socket the average memory access is slower, and more neighbours share a cache.",
    judge: clusters,
    changes: no_change,
}];

fn clusters(subject: &Subject<'_>) -> Verdict {
    let mut nodes: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for (path, reading) in subject.facts.under(NODE) {
        let Some(number) = path.trim_start_matches(NODE).strip_suffix("/cpulist") else { continue };
        let (Ok(number), Reading::Text(text) | Reading::Cut(text)) = (number.parse::<u32>(), reading) else {
            continue;
        };
        let Ok(cpus) = text.parse::<CpuSet>() else {
            return Err(Judgement::unreadable(format!("{path} contains {}", text.trim())));
        };
        // Nodes of memory alone (CXL, HBM) have no CPUs.
        if !cpus.is_empty() {
            nodes.insert(number, cpus);
        }
    }
    if nodes.is_empty() {
        return Err(Judgement::not_applicable("the kernel reports no memory nodes"));
    }
    let mut sockets: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    let mut isolated: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for (node, cpus) in &nodes {
        for cpu in cpus.and(&subject.topology.online).iter() {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
            let Some(socket) = subject.facts.number(&path) else {
                return Err(Judgement::unreadable(format!("the socket of CPU {cpu} is unknown")));
            };
            sockets.entry(socket).or_default().insert(*node);
            if subject.isolated().contains(cpu) {
                isolated.entry(socket).or_default().insert(*node);
            }
        }
    }
    let most = sockets.values().map(BTreeSet::len).max().unwrap_or(0);
    let spread = isolated.iter().find(|(_, nodes)| nodes.len() > 1);
    let judgement = match spread {
        Some((socket, nodes)) => {
            let nodes = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            Judgement::finding(format!(
                "the real-time CPUs of socket {socket} are in the memory nodes {nodes}"
            ))
        }
        None if most <= 1 => Judgement::ok("each socket is one memory node"),
        None => Judgement::ok(format!(
            "sockets have up to {most} memory nodes, and the real-time CPUs of each are in one"
        )),
    };
    Ok(nodes.into_iter().take(16).fold(judgement, |judgement, (node, cpus)| {
        judgement.read(format!("{NODE}{node}/cpulist"), cpus.to_string())
    }))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, System, arm, guest, intel};

    fn machine(nodes: &[&str], sockets: [&str; 4]) -> System {
        let mut system = intel(&[]);
        for (node, cpus) in nodes.iter().enumerate() {
            system = system.and(&format!("{NODE}{node}/cpulist"), cpus);
        }
        for (cpu, socket) in sockets.iter().enumerate() {
            system =
                system.and(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"), socket);
        }
        system
    }

    #[test]
    fn one_node_in_each_socket_or_isolated_cpus_in_one_node_are_good() {
        assert_eq!(machine(&["0-3"], ["0"; 4]).state(ID), State::Ok);
        assert_eq!(machine(&["0-1", "2-3", ""], ["0"; 4]).state(ID), State::Ok);
        assert_eq!(machine(&["0,2", "1,3"], ["0", "1", "0", "1"]).said(ID), "each socket is one memory node");
    }

    #[test]
    fn isolated_cpus_across_nodes_of_a_socket_are_told() {
        let bad = machine(&["0,2", "1,3"], ["0"; 4]).finding(ID);
        assert_eq!((bad.state, bad.severity), (State::Finding, Severity::Info));
        assert_eq!(bad.message, "the real-time CPUs of socket 0 are in the memory nodes 0, 1");
    }

    #[test]
    fn what_is_not_told_is_not_judged() {
        assert_eq!(intel(&[]).state(ID), State::NotApplicable);
        assert_eq!(arm(&[]).state(ID), State::NotApplicable);
        assert_eq!(guest(&[]).role(Role::Host).state(ID), State::Unknowable);
        assert_eq!(intel(&[(&format!("{NODE}0/cpulist"), "0-3")]).state(ID), State::Unreadable);
        for text in HOSTILE {
            assert_ne!(machine(&[text], ["0"; 4]).state(ID), State::Ok, "{text}");
        }
    }
}
