//! Facts of machines, recorded and written: README.md beside this file says which is which.
//!
//! For unit tests and integration tests alike:
//! `#[cfg(test)] #[path = "../tests/machines/mod.rs"] mod machines;`

use std::io::Read;
use std::path::Path;

use tactus_model::facts::Facts;

/// All machines there are.
pub const MACHINES: &[&str] = &[
    "amd-epyc",
    "container-cgroup2",
    "debian-arm64",
    "debian-cloud-6-12",
    "debian-rt",
    "debian-rt-6-12",
    "debian-standard",
    "host-128",
    "hwloc-arm64-server",
    "hwloc-hybrid-lakefield",
    "hwloc-opteron",
    "hwloc-xeon-e7",
    "hwloc-xeon-smt",
    "intel-bare-tuned",
    "intel-bare-untuned",
    "intel-hybrid",
    "podman-container",
    "smt-two-nodes",
    "this-vm",
];

/// The facts of a machine, by its name.
///
/// # Panics
/// When the machine is unknown, or its file is damaged.
#[must_use]
pub fn machine(name: &str) -> Facts {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    let path = dir.join(format!("{name}.json"));
    let bytes = std::fs::read(&path).or_else(|_| {
        let packed = std::fs::read(dir.join(format!("{name}.json.gz")))?;
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    });
    let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
