//! Facts: raw readings of the system in one pass. This crate judges nothing; the crates that read the facts do.
//! docs/design/facts.md says what each name means.
#![expect(
    clippy::disallowed_methods,
    reason = "facts are read where they are, by the probe: it is what the door of others leads to"
)]

mod audit;
mod boot;
mod config;
mod devices;
mod dmi;
mod files;
mod inflate;
mod kernel_log;
mod place;
mod processor;
mod read;
mod threads;
mod virtual_machines;

use std::io;

use tactus_model::CpuSet;
use tactus_model::facts::Facts;

pub use files::FILES;
use read::Collector;
pub use read::text;

/// Where the kernel describes the processors.
pub const CPUINFO: &str = processor::CPUINFO;

/// Answers of CPUID by the names of their readings: eax, ebx, ecx, edx; `None` for a leaf that the
/// processor does not have.
pub type Leaves = Vec<(String, Option<[u32; 4]>)>;

/// Functions for facts that are not files. The caller provides them, because they may need unsafe code.
pub struct Door {
    /// CPUs of a thread, as words of 64 bits without zeros at the end.
    pub affinity: fn(u32) -> io::Result<Vec<u64>>,
    /// The kernel's log, with levels and times.
    pub kernel_log: fn() -> io::Result<Vec<u8>>,
    /// The answers of CPUID.
    pub cpuid: fn() -> Leaves,
    /// CPUs that the process was given.
    pub allowed: CpuSet,
    /// Version of the probe.
    pub version: &'static str,
}

/// Reads everything. `cpuinfo` has been read already, from [`CPUINFO`].
pub fn collect(door: &Door, cpuinfo: io::Result<String>) -> Facts {
    let mut collector = Collector::default();
    let it = &mut collector;
    for path in FILES {
        it.file(path);
    }
    for (directory, names) in files::PATTERNS {
        it.pattern(directory, names);
    }
    processor::keep(it, cpuinfo, (door.cpuid)());
    place::keep(it, door);
    kernel_log::keep(it, (door.kernel_log)());
    config::keep(it);
    devices::keep(it);
    dmi::keep(it);
    audit::keep(it);
    let groups = threads::keep(it, door.affinity);
    virtual_machines::keep(it, &groups);
    collector.facts
}
