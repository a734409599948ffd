//! Arguments of `tactus fleet`.

mod job;
mod place;
mod run;
mod show;

use clap::{Args, Subcommand};

pub use job::FleetJob;
pub use place::{FleetCollect, FleetStatus};
pub use run::{FleetRender, FleetRun, Wanted};
pub use show::FleetShow;

/// Arguments of `fleet`.
#[derive(Debug, Args)]
pub struct Fleet {
    #[command(subcommand)]
    pub what: FleetCommand,
}

/// The subcommand of `fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Measure many machines through an engine (Slurm, Ansible, Kubernetes), one job each, and fetch the
    /// bundles; repeat it to continue
    Run(FleetRun),
    /// Write what `fleet run` would give the engine, and start nothing
    Render(FleetRender),
    /// Ask the engine for the progress of a fleet
    Status(FleetStatus),
    /// Fetch and verify the bundles that are ready; with --into put bundles of many machines into one data
    /// set
    Collect(FleetCollect),
    /// Show which machines of a data set miss the deadline, are worst, drift, are missing or were changed, and
    /// what they have in common
    Show(FleetShow),
    /// The command that a job runs on a machine; safe to repeat
    #[command(hide = true)]
    Job(FleetJob),
}
