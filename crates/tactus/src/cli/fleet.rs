//! Arguments of `tactus fleet`.

mod show;

use clap::{Args, Subcommand};

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
    /// Say of the machines in a data set who misses the deadline, who is worst, what they have in common, what drifts, who
    /// is missing and who changed what
    Show(FleetShow),
}
