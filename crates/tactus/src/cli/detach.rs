//! Arguments of what may outlive its terminal.

use clap::Args;

/// Whether a run outlives its terminal.
#[derive(Debug, Default, Args)]
pub struct Detach {
    /// Continue without this terminal, which may be closed: this command returns when the bundle has begun and prints where it
    /// is; `tactus watch` follows the run, `tactus watch --stop` ends it
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub detach: bool,
    /// This process is the one that goes on
    #[arg(long, hide = true)]
    pub detached: bool,
}
