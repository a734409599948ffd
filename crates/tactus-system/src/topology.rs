//! The CPUs of a machine, as its files tell them.

use std::path::Path;

use tactus_model::CpuSet;
use tactus_model::facts::Facts;
use tactus_model::isolation::{self, Files};
use tactus_model::topology::Topology;

use crate::System;

/// The CPUs of this machine.
#[must_use]
pub fn topology(system: &dyn System) -> Topology {
    let mut seen = Seen { system, facts: Facts::default() };
    for name in ["online", "isolated", "nohz_full"] {
        seen.text(&format!("/sys/devices/system/cpu/{name}"));
    }
    seen.text("/proc/self/status");
    isolation::look(&mut seen);
    let online: Option<CpuSet> =
        seen.text("/sys/devices/system/cpu/online").and_then(|text| text.parse().ok());
    for cpu in online.unwrap_or_default().iter() {
        seen.text(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
    }
    let mut facts = seen.facts;
    if let Some(allowed) = facts.field("/proc/self/status", "Cpus_allowed_list", ':').map(str::to_owned) {
        facts.keep("sched:affinity", allowed);
    }
    Topology::of(&facts)
}

/// The files of a system that were read.
struct Seen<'a> {
    system: &'a dyn System,
    facts: Facts,
}

impl Files for Seen<'_> {
    fn text(&mut self, path: &str) -> Option<String> {
        let text = self.system.text(path)?;
        self.facts.keep(path, text.clone());
        Some(text)
    }

    fn names(&mut self, directory: &str) -> Vec<String> {
        let entries = self.system.list(Path::new(directory)).unwrap_or_default();
        entries.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
    }

    fn keep(&mut self, name: &str, text: &str) {
        self.facts.keep(name, text);
    }
}
