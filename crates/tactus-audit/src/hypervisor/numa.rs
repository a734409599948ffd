//! Whether a guest's processors, memory and devices lie together.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::CpuSet;
use tactus_model::finding::Severity;

use super::passthrough::{given, pci};
use super::vcpus::vcpus_of;
use crate::vm::{Arguments, Parameter, Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const NODES: &str = "/sys/devices/system/node/node";

pub static CHECKS: &[Check] = &[Check {
    id: "numa-locality",
    title: "a guest uses memory, devices or vCPUs of another node",
    sources: &[Source::Guide("libvirt, domain XML"), Source::Guide("Nova")],
    applies: &[Applies::Hypervisor],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::Libvirt],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "/sys/devices/system/node/node*/cpulist; the CPUs of the vCPU threads; host-nodes and policy of the memory \
backends and the node of each vfio-pci device (pci:*)",
    expected: "all vCPUs on one node, with memory bound to it and devices that belong to it",
    why: "A miss of the last-level cache that goes to another socket takes about 1.5 to 2 times the time, over a \
link that all share. A device's DMA and interrupts cross that link too.",
    fix: "libvirt: <numatune><memory mode='strict' nodeset='N'/></numatune> with <vcpupin> to CPUs of node N, and devices of \
that node. QEMU: host-nodes=N,policy=bind of the memory backend.",
    risk: "The guest does not start when the node has too little free memory (count its huge pages per node).",
    judge,
    changes: no_change,
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    let nodes: BTreeMap<u32, CpuSet> = subject
        .facts
        .under(NODES)
        .filter_map(|(name, _)| {
            let node = name.strip_prefix(NODES)?.strip_suffix("/cpulist")?.parse().ok()?;
            Some((node, subject.facts.text(name)?.parse().ok()?))
        })
        .collect();
    if subject.vms.is_empty() {
        return each(subject, |_| Err(Judgement::not_applicable("")));
    }
    match nodes.len() {
        0 => Err(Judgement::unreadable("the facts do not show which CPUs belong to which node")),
        1 => Err(Judgement::not_applicable("this machine has one node")),
        _ => each(subject, |vm| together(subject, vm, &nodes)),
    }
}

fn together(subject: &Subject<'_>, vm: &Vm, nodes: &BTreeMap<u32, CpuSet>) -> Verdict {
    vcpus_of(vm)?;
    let cpus = vm.cpus();
    let on: BTreeSet<u32> =
        nodes.iter().filter(|(_, of)| !cpus.and(of).is_empty()).map(|(node, _)| *node).collect();
    let mut faults = Vec::new();
    if on.len() != 1 {
        faults.push(format!("its vCPUs may run on nodes {}", list(&on)));
    }
    let backends: Vec<&Parameter> = vm
        .arguments
        .iter()
        .flat_map(|arguments| arguments.all("object"))
        .filter(|object| object.kind.starts_with("memory-backend-"))
        .collect();
    let mut bound = !backends.is_empty();
    for backend in &backends {
        let of = host_nodes(backend);
        if !of.is_empty() && !of.is_subset(&on) {
            faults.push(format!("its memory is bound to node {}", list(&of)));
        }
        bound &= !of.is_empty() && backend.get("policy") == Some("bind");
    }
    let mut unknown = Vec::new();
    for address in vm.arguments.iter().flat_map(Arguments::devices).filter_map(given) {
        match pci(subject.facts, &address).map(|device| device.node) {
            Some(Some(node)) if !on.contains(&node) => {
                faults.push(format!("its device {address} belongs to node {node}"));
            }
            Some(_) => {}
            None => unknown.push(address),
        }
    }
    let judgement = if !faults.is_empty() {
        let of = if on.len() == 1 { format!(", its vCPUs run on node {}", list(&on)) } else { String::new() };
        Judgement::finding(format!("{}{of}", faults.join(", ")))
    } else if !bound {
        Judgement::unreadable(
            "QEMU's arguments do not bind its memory to a node, and the facts do not show where it is",
        )
    } else if let Some(address) = unknown.first() {
        Judgement::unreadable(format!("the facts do not include PCI device {address}"))
    } else {
        Judgement::ok(format!("its vCPUs, memory and devices are on node {}", list(&on)))
    };
    let judgement = judgement.read("CPUs of its vCPUs", cpus.to_string());
    Ok(backends.iter().take(4).fold(judgement, |judgement, backend| {
        let value = format!(
            "host-nodes {}, policy {}",
            list(&host_nodes(backend)),
            backend.get("policy").unwrap_or("-")
        );
        judgement.read(format!("-object {},id={}", backend.kind, backend.name()), value)
    }))
}

/// `host-nodes=0-1`, or `"host-nodes":[0,1]` of JSON.
fn host_nodes(backend: &Parameter) -> BTreeSet<u32> {
    if let Some(list) = backend.get("host-nodes") {
        return list.parse::<CpuSet>().map(|nodes| nodes.iter().collect()).unwrap_or_default();
    }
    (0..64)
        .map_while(|n| backend.get(&format!("host-nodes.{n}")))
        .filter_map(|node| node.parse().ok())
        .collect()
}

fn list(nodes: &BTreeSet<u32>) -> String {
    if nodes.is_empty() { "-".to_owned() } else { nodes.iter().copied().collect::<CpuSet>().to_string() }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::System;
    use crate::vm::testing::{ARGUMENTS, THREADS, host};

    const ID: &str = "numa-locality";
    const CPUS: [&str; 2] =
        ["/sys/devices/system/node/node0/cpulist", "/sys/devices/system/node/node1/cpulist"];

    /// CPUs 0, 2 and 3 on node 0.
    fn two(system: System) -> System {
        system.with(&[
            (CPUS[0], "0,2-3"),
            (CPUS[1], "1"),
            ("pci:0000:3b:00.0", "0x020000 8086:1572 vfio-pci 0 12"),
        ])
    }

    #[test]
    fn vcpus_memory_and_devices_are_of_one_node() {
        assert_eq!(two(host()).said(ID), "rt (process 812): its vCPUs, memory and devices are on node 0");
        let apart = two(host()).with(&[(CPUS[0], "0,2"), (CPUS[1], "1,3")]);
        assert_eq!(
            (apart.state(ID), apart.said(ID).as_str()),
            (State::Finding, "rt (process 812): its vCPUs may run on nodes 0,1")
        );
        let remote = two(host()).and("pci:0000:3b:00.0", "0x020000 8086:1572 vfio-pci 1 12");
        assert!(
            remote.said(ID).contains("0000:3b:00.0 belongs to node 1, its vCPUs run on node 0"),
            "{}",
            remote.said(ID)
        );
        let elsewhere = two(host()).and("vm:812:cmdline", &ARGUMENTS.replace("[0]", "[1]"));
        assert!(elsewhere.state(ID) == State::Finding && elsewhere.said(ID).contains("bound to node 1"));
        let nowhere = two(host()).and("pci:0000:3b:00.0", "0x020000 8086:1572 vfio-pci -1 12");
        assert_eq!(nowhere.state(ID), State::Ok);
    }

    #[test]
    fn what_is_not_known_is_not_good() {
        let free = two(host())
            .and("vm:812:cmdline", &ARGUMENTS.replace(r#""host-nodes":[0],"policy":"bind""#, r#""x":0"#));
        assert_eq!(free.state(ID), State::Unreadable);
        assert_eq!(two(host()).without("pci:0000:3b:00.0").state(ID), State::Unreadable);
        assert_eq!(host().state(ID), State::Unreadable);
        assert_eq!(two(host()).and("threads:0", &THREADS.replace("CPU ", "x")).state(ID), State::Unreadable);
        assert_eq!(host().and(CPUS[0], "0-3").state(ID), State::NotApplicable);
    }
}
