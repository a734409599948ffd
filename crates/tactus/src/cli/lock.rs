//! Arguments of what measures a machine that may be measured already.

use clap::Args;
use tactus_model::Nanos;

use super::values::duration;

/// What happens where another run measures this machine.
#[derive(Debug, Default, Args)]
pub struct Lock {
    /// If another run measures this machine, wait for its end, up to this long; without this option that is
    /// an error
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Nanos>,
    /// Measure although another run measures this machine: both disturb each other
    #[arg(long, conflicts_with = "wait")]
    pub beside: bool,
}
