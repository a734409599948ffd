//! Pitfalls of a machine that carries virtual machines.

use std::collections::HashSet;

use tactus_model::CpuSet;
use tactus_model::threads::{Policy, Thread};

use super::context::Look;
use super::{Pitfall, Scope};

pub static PITFALLS: &[Pitfall] = &[
    Pitfall {
        number: 11,
        title: "QEMU's helpers starve on the CPU of a FIFO vCPU",
        text: "vhost, kvm-pit and emulator threads on the CPU of a FIFO vCPU run only when it idles, if ever. The \
guest waits for I/O that cannot be served. Pin them to housekeeping CPUs.",
        scope: Scope::Plan(|look| {
            starving(look).map(|(helper, vcpu)| {
                format!("{} ({}) may run on the CPU of {} ({})", helper.name, helper.tid, vcpu.name, vcpu.tid)
            })
        }),
        settings: &["vcpu-fifo", "emulator-pin", "vhost-placement", "iothread-pin"],
    },
    Pitfall {
        number: 12,
        title: "a machine whose vCPUs are all FIFO hangs",
        text: "If all vCPUs spin, nothing in the guest makes progress, unless one vCPU does housekeeping and the \
emulator thread runs elsewhere. Leave vCPU 0 to SCHED_OTHER, or pin the emulator to housekeeping CPUs.",
        scope: Scope::Plan(|look| {
            look.machines().iter().find_map(|machine| {
                let fifo = machine.vcpus.iter().all(|vcpu| look.policy(vcpu) == Policy::Fifo);
                let own: HashSet<&CpuSet> = machine.vcpus.iter().map(|vcpu| &*vcpu.cpus).collect();
                let own = own.into_iter().fold(CpuSet::default(), |all, cpus| all.or(cpus));
                let shared = machine.others.iter().any(|other| !other.cpus.and(&own).is_empty());
                let first = machine.vcpus.first()?;
                (fifo && shared)
                    .then(|| format!("all {} vCPUs of process {}", machine.vcpus.len(), first.pid))
            })
        }),
        settings: &["vcpu-fifo"],
    },
    Pitfall {
        number: 13,
        title: "cpu-pm=on lets a guest reach deep idle states",
        text: "MWAIT and HLT of the guest then put the real CPU to sleep, to the deepest state that the machine \
allows. Limit the idle states on the host.",
        scope: Scope::Plan(|look| {
            let process = processes(look).find(|(_, line)| line.contains("cpu-pm=on"))?;
            Some(format!("process {} has cpu-pm=on", process.0))
        }),
        settings: &["guest-idle-ownership", "c-states", "c-state-per-cpu"],
    },
    Pitfall {
        number: 14,
        title: "hint-dedicated and PLE off stall guests that share CPUs",
        text: "A vCPU that spins for a lock with a preempted holder spins for its whole time slice. Use them only \
for vCPUs with dedicated CPUs.",
        scope: Scope::Plan(|look| {
            let ple = look.plans_module("ple_gap") == Some("0")
                || look.plans_module("pause_filter_count") == Some("0");
            let hint = processes(look).any(|(_, line)| line.contains("kvm-hint-dedicated=on"));
            if !ple && !hint {
                return None;
            }
            let machines = look.machines();
            let vcpus: Vec<&Thread> =
                machines.iter().flat_map(|machine| machine.vcpus.iter().copied()).collect();
            let mut seen = CpuSet::default();
            for vcpu in vcpus {
                if !vcpu.cpus.and(&seen).is_empty() {
                    return Some(format!("{} ({}) shares its CPUs with another vCPU", vcpu.name, vcpu.tid));
                }
                seen = seen.or(&vcpu.cpus);
            }
            None
        }),
        settings: &["ple_gap", "ple", "kvm-hint-dedicated"],
    },
];

/// Helpers that share a CPU with a FIFO vCPU and are not above it.
fn starving<'a>(look: &Look<'a>) -> Option<(&'a Thread, &'a Thread)> {
    look.machines().into_iter().find_map(|machine| {
        // Very many threads have few sets of CPUs.
        let fifo =
            first_of_each(machine.vcpus.iter().copied().filter(|vcpu| look.policy(vcpu) == Policy::Fifo));
        first_of_each(machine.others.iter().copied()).into_iter().find_map(|other| {
            // A helper that may also run elsewhere gets along; one that may not does not.
            let vcpu =
                fifo.iter().find(|vcpu| !other.cpus.is_empty() && other.cpus.minus(&vcpu.cpus).is_empty())?;
            Some((other, *vcpu))
        })
    })
}

/// The first thread of each set of CPUs.
fn first_of_each<'a>(threads: impl Iterator<Item = &'a Thread>) -> Vec<&'a Thread> {
    let mut seen = HashSet::new();
    threads.filter(|thread| seen.insert(&*thread.cpus)).collect()
}

/// Processes of virtual machines with their arguments.
fn processes<'a>(look: &Look<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    look.subject.facts.under("vm:").filter_map(|(name, _)| {
        let pid = name.strip_prefix("vm:")?.strip_suffix(":cmdline")?;
        Some((pid, look.subject.facts.text(name)?))
    })
}
