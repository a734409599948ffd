//! Arguments of what measures a machine that may be measured already.

use clap::Args;
use tactus_model::Nanos;

use super::values::duration;

/// What happens where another run measures this machine.
#[derive(Debug, Default, Args)]
pub struct Lock {
    /// If another run is measuring this machine, wait up to this long for its end; without this option
    /// tactus reports an error
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Nanos>,
    /// Measure while another run is measuring this machine: the two disturb each other
    #[arg(long, conflicts_with = "wait")]
    pub beside: bool,
}
