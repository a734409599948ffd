//! Arguments of `tactus tune`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tactus_model::CpuSet;

use super::audit::Role;
use super::tune_files::TuneFiles;

/// Arguments of `tune`.
#[derive(Debug, Args)]
pub struct Tune {
    #[command(subcommand)]
    pub what: TuneCommand,
}

/// The subcommand of `tune`.
#[derive(Debug, Subcommand)]
pub enum TuneCommand {
    /// Print each change of a profile: present value, new value, how it is set, its risk and its pitfalls
    Plan(TunePlan),
    /// Apply a profile: what can be set now, and with --persist what the next boot needs
    Apply(TuneApply),
    /// Compare the system with what was applied, also after a reboot
    Verify(TuneVerify),
    /// Restore everything that was changed, byte for byte
    Revert(TuneRevert),
    /// Compare two profiles with each other and with the present settings
    Diff(TuneDiff),
    /// Write files for other programs: boot loader, TuneD, libvirt, QEMU, containers, clusters
    Files(TuneFiles),
}

/// Which settings.
#[derive(Clone, Debug, Args)]
pub struct Choose {
    /// Only these settings, by the ids of their checks; separate several with commas
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// All but these settings
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Also these settings: outside the profile, or left out by the plan because they weaken a safety feature
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub with: Vec<String>,
    /// Only TuneD's values, without the additions of tactus
    #[arg(long)]
    pub plain: bool,
    /// Interrupts of the real-time work itself, by number: they stay where they are. Interrupts that are
    /// allowed only on isolated CPUs always stay
    #[arg(long, value_name = "IRQ,...", value_delimiter = ',')]
    pub own_irq: Vec<u32>,
    /// Interrupts to move off the isolated CPUs although they are allowed nowhere else
    #[arg(long, value_name = "IRQ,...", value_delimiter = ',')]
    pub move_irq: Vec<u32>,
}

/// Arguments of `tune plan`.
#[derive(Debug, Args)]
pub struct TunePlan {
    /// realtime, realtime-virtual-host, realtime-virtual-guest, cpu-partitioning or cpu-partitioning-isolcpus
    #[arg(long, value_name = "PROFILE", default_value = "realtime")]
    pub profile: String,
    /// CPUs for real-time work; default: the isolated CPUs, else all except those of the first core
    #[arg(long, value_name = "CPUS")]
    pub isolate: Option<CpuSet>,
    #[command(flatten)]
    pub choose: Choose,
    /// The role of the system
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<Role>,
    /// Plan for another system, from its recorded facts: a bundle that measured the host, or a file of facts
    #[arg(long, value_name = "BUNDLE|FILE")]
    pub from: Option<PathBuf>,
    /// Print every line: settings that hold already, each thread and each file
    #[arg(long)]
    pub all: bool,
    /// As a JSON document (a stable contract)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tune apply`.
#[derive(Debug, Args)]
pub struct TuneApply {
    /// realtime, realtime-virtual-host, realtime-virtual-guest, cpu-partitioning or cpu-partitioning-isolcpus
    #[arg(long, value_name = "PROFILE", required_unless_present = "again")]
    pub profile: Option<String>,
    /// CPUs for real-time work
    #[arg(long, value_name = "CPUS", required_unless_present = "again")]
    pub isolate: Option<CpuSet>,
    #[command(flatten)]
    pub choose: Choose,
    /// Apply again what was applied before: after a reboot, or after something was changed
    #[arg(long, conflicts_with_all = ["profile", "isolate", "only", "without", "with", "plain", "own_irq", "move_irq"])]
    pub again: bool,
    /// Also write what the next boot needs, in separate files
    #[arg(long)]
    pub persist: bool,
    /// Overwrite what another tool has set since
    #[arg(long)]
    pub force: bool,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `tune verify`.
#[derive(Debug, Args)]
pub struct TuneVerify {
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tune revert`.
#[derive(Debug, Args)]
pub struct TuneRevert {
    /// Overwrite what another tool has set since
    #[arg(long)]
    pub force: bool,
    /// Keep what another tool has set since, and forget the former value
    #[arg(long, conflicts_with = "force")]
    pub leave: bool,
    /// Print what would be reverted, and revert nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `tune diff`.
#[derive(Debug, Args)]
pub struct TuneDiff {
    /// A profile
    pub one: String,
    /// Another
    pub other: String,
    /// CPUs for real-time work; default: the isolated CPUs, else all except those of the first core
    #[arg(long, value_name = "CPUS")]
    pub isolate: Option<CpuSet>,
    /// Also list what is the same in both
    #[arg(long)]
    pub all: bool,
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}
