//! Arguments of the commands about a fleet that is there.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `fleet status`.
#[derive(Debug, Args)]
pub struct FleetStatus {
    /// The fleet's directory
    #[arg(value_name = "FLEET")]
    pub fleet: PathBuf,
    /// Those too whose bundles are here
    #[arg(long)]
    pub all: bool,
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet collect`.
#[derive(Debug, Args)]
pub struct FleetCollect {
    /// The fleet's directory
    #[arg(value_name = "FLEET")]
    pub fleet: PathBuf,
    /// The state of each machine as a JSON document
    #[arg(long)]
    pub json: bool,
}
