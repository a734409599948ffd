//! Arguments of `tactus tune files`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tactus_model::CpuSet;
use tactus_tune::generate::{Page, Size};

use super::open::Open;
use crate::vocabulary;

/// Arguments of `tune files`.
#[derive(Debug, Args)]
pub struct TuneFiles {
    /// grub, tuned, libvirt, qemu, docker, podman, nova, kubernetes, kubernetes-job or kubevirt; `tactus
    /// explain` describes each
    #[arg(value_parser = Open(vocabulary::generators), hide_possible_values = true)]
    pub what: String,
    /// realtime, realtime-virtual-host, realtime-virtual-guest, cpu-partitioning or cpu-partitioning-isolcpus. Default: realtime, for guests
    /// realtime-virtual-host
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// CPUs for real-time work; default: the isolated CPUs, else all except those of the first core
    #[arg(long, value_name = "CPUS")]
    pub isolate: Option<CpuSet>,
    /// Settings outside the profile, or left out because they weaken a safety feature, by the ids of their
    /// checks
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub with: Vec<String>,
    /// Virtual CPUs, or a container's CPUs; default: one for each isolated core of one NUMA node
    #[arg(long, value_name = "N")]
    pub vcpus: Option<usize>,
    /// The guest's memory; default: 4G
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Page size of that memory: 1G, 2M or 4K. Default for guests: the largest that the machine has and that
    /// fits; for containers: 4K
    #[arg(long, value_name = "SIZE")]
    pub pages: Option<Page>,
    /// What executes the guest: kvm, or tcg (emulation, without some features)
    #[arg(long, value_enum, value_name = "ACCEL")]
    pub accel: Option<Accel>,
    /// The guest's or container's name. Default: rt-guest, rt-container
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Change this libvirt domain instead of making one; only with libvirt
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// For a machine whose facts were recorded: a bundle, or a file of facts
    #[arg(long, value_name = "BUNDLE|FILE")]
    pub from: Option<PathBuf>,
    /// Output: a directory, a file (if there is only one), or - for stdout
    #[arg(long, value_name = "FILE|DIR|-", default_value = "-")]
    pub out: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Print the files with their texts as a JSON document, and write nothing
    #[arg(long, conflicts_with = "out")]
    pub json: bool,
}

/// What executes a guest.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Accel {
    /// The processor
    Kvm,
    /// QEMU
    Tcg,
}
