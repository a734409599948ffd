//! Arguments of commands that can continue after their terminal closes.

use clap::Args;

/// Whether a run continues after its terminal closes.
#[derive(Debug, Default, Args)]
pub struct Detach {
    /// Continue after this terminal closes: this command prints the path of the bundle and returns as soon
    /// as the run has begun; `tactus watch` follows the run, `tactus watch --stop` ends it
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub detach: bool,
    /// This process is the detached run
    #[arg(long, hide = true)]
    pub detached: bool,
}
