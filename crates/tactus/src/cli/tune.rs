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

/// What to do with a profile.
#[derive(Debug, Subcommand)]
pub enum TuneCommand {
    /// Print each change of a profile: now, then, how, what it risks, and the pitfalls on its way
    Plan(TunePlan),
    /// Carry a plan out: what can be set now, and with --persist what the next boot needs
    Apply(TuneApply),
    /// Compare the system with what was applied, also after a reboot
    Verify(TuneVerify),
    /// Revert exactly: what was there before is put back, byte for byte
    Revert(TuneRevert),
    /// Show two profiles against each other and against now
    Diff(TuneDiff),
    /// Write files for what is set elsewhere: boot loader, TuneD, libvirt, QEMU, containers, clusters
    Files(TuneFiles),
}

/// Which settings.
#[derive(Clone, Debug, Args)]
pub struct Choose {
    /// Only these settings, by the ids of their checks; several with commas between them
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Not these
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Also these: settings outside the profile, and those that the plan leaves out because they weaken a safety feature
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub with: Vec<String>,
    /// TuneD's values alone, nothing that tactus adds
    #[arg(long)]
    pub plain: bool,
    /// Interrupts of the real-time work itself, by their numbers: they stay where they are. Those allowed on
    /// isolated CPUs only stay in any case
    #[arg(long, value_name = "IRQ,...", value_delimiter = ',')]
    pub own_irq: Vec<u32>,
    /// Interrupts that leave the isolated CPUs though they are allowed nowhere else
    #[arg(long, value_name = "IRQ,...", value_delimiter = ',')]
    pub move_irq: Vec<u32>,
}

/// Arguments of `tune plan`.
#[derive(Debug, Args)]
pub struct TunePlan {
    /// realtime, realtime-virtual-host, realtime-virtual-guest or cpu-partitioning
    #[arg(long, value_name = "PROFILE", default_value = "realtime")]
    pub profile: String,
    /// CPUs for real-time work; default: the isolated ones, else all but the first core's
    #[arg(long, value_name = "CPUS")]
    pub isolate: Option<CpuSet>,
    #[command(flatten)]
    pub choose: Choose,
    /// The part that the system plays
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<Role>,
    /// Plan for a system whose facts were recorded
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Every line: what holds already, and each thread and file
    #[arg(long)]
    pub all: bool,
    /// As a JSON document (a stable contract)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tune apply`.
#[derive(Debug, Args)]
pub struct TuneApply {
    /// realtime, realtime-virtual-host, realtime-virtual-guest or cpu-partitioning
    #[arg(long, value_name = "PROFILE", required_unless_present = "again")]
    pub profile: Option<String>,
    /// CPUs for real-time work
    #[arg(long, value_name = "CPUS", required_unless_present = "again")]
    pub isolate: Option<CpuSet>,
    #[command(flatten)]
    pub choose: Choose,
    /// What was applied before, again: after a reboot, or when something has been changed since
    #[arg(long, conflicts_with_all = ["profile", "isolate", "only", "without", "with", "plain", "own_irq", "move_irq"])]
    pub again: bool,
    /// Also write what the next boot needs, in files of our own
    #[arg(long)]
    pub persist: bool,
    /// Overwrite what another tool has set since
    #[arg(long)]
    pub force: bool,
    /// Only say what would be done
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
    /// Let what another tool has set since be, and forget it
    #[arg(long, conflicts_with = "force")]
    pub leave: bool,
    /// Only say what would be reverted
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
    /// CPUs for real-time work; default: the isolated ones, else all but the first core's
    #[arg(long, value_name = "CPUS")]
    pub isolate: Option<CpuSet>,
    /// Also what is the same in both
    #[arg(long)]
    pub all: bool,
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}
