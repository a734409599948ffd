//! Arguments of what may outlive its terminal, and of those who look for such runs.

use std::path::PathBuf;

use clap::Args;

/// Whether a run outlives its terminal.
#[derive(Debug, Default, Args)]
pub struct Detach {
    /// Go on without this terminal, which may be closed: this command returns when the bundle has begun and prints where it
    /// is; `tactus attach` follows the run, `tactus stop` ends it
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub detach: bool,
    /// This process is the one that goes on
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// Arguments of `attach`.
#[derive(Debug, Args)]
pub struct Attach {
    /// Directory of the bundle that the run writes. Default: that of your newest run that goes on
    pub bundle: Option<PathBuf>,
    /// Lines instead of the live screen
    #[arg(long)]
    pub plain: bool,
}

/// Arguments of `stop`.
#[derive(Debug, Args)]
pub struct Stop {
    /// Directory of the bundle that the run writes. Default: that of your only run that goes on
    pub bundle: Option<PathBuf>,
}
