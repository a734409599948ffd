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

/// What to do with a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Measure many machines by the engine that they have, one job for each, and bring their bundles home; repeated, it
    /// continues where it was
    Run(FleetRun),
    /// Write what `fleet run` would give to the engine, and start nothing
    Render(FleetRender),
    /// Ask the engine how far a fleet is
    Status(FleetStatus),
    /// Fetch the bundles that have come since, and verify them; with --into put bundles of many machines into one data set
    Collect(FleetCollect),
    /// Say of the machines in a data set who misses the deadline, who is worst, what they have in common, what drifts, who
    /// is missing and who changed what
    Show(FleetShow),
    /// What a job runs on a machine; safe to repeat
    #[command(hide = true)]
    Job(FleetJob),
}
