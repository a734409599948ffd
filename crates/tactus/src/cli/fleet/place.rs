//! Arguments of the commands about a fleet that is there.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `fleet status`.
#[derive(Debug, Args)]
pub struct FleetStatus {
    /// The fleet's directory
    #[arg(value_name = "FLEET")]
    pub fleet: PathBuf,
    /// Also list machines whose bundles were fetched
    #[arg(long)]
    pub all: bool,
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet collect`.
#[derive(Debug, Args)]
pub struct FleetCollect {
    /// The fleet's directory; with --into: bundles, directories with bundles, and archives of bundles (.tar.gz)
    #[arg(required = true, value_name = "FLEET|BUNDLE|DIR|ARCHIVE")]
    pub from: Vec<PathBuf>,
    /// Put the bundles into this data set, a directory of Parquet tables; it is made if it does not exist, and bundles that it
    /// has already are skipped
    #[arg(long, value_name = "DATA")]
    pub into: Option<PathBuf>,
    /// Print the state of each machine, or what became of each bundle, as JSON
    #[arg(long)]
    pub json: bool,
}
