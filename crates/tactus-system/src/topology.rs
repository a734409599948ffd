//! The CPUs of a machine, as its files tell them.

use tactus_model::facts::Facts;
use tactus_model::topology::Topology;

use crate::System;

/// The CPUs of this machine.
#[must_use]
pub fn topology(system: &dyn System) -> Topology {
    let mut facts = Facts::default();
    let mut keep = |path: &str| {
        if let Some(text) = system.text(path) {
            facts.keep(path, text);
        }
    };
    for name in ["online", "isolated", "nohz_full"] {
        keep(&format!("/sys/devices/system/cpu/{name}"));
    }
    keep("/proc/self/status");
    let online: tactus_model::CpuSet =
        system.text("/sys/devices/system/cpu/online").and_then(|t| t.parse().ok()).unwrap_or_default();
    for cpu in online.iter() {
        keep(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
    }
    if let Some(allowed) = facts.field("/proc/self/status", "Cpus_allowed_list", ':').map(str::to_owned) {
        facts.keep("sched:affinity", allowed);
    }
    Topology::of(&facts)
}
