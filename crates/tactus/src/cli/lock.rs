//! Arguments of what measures a machine that may be measured already.

use clap::Args;
use tactus_model::Nanos;

use super::values::duration;

/// What happens where another run measures this machine.
#[derive(Debug, Default, Args)]
pub struct Lock {
    /// Where this machine is being measured already: wait for the end of that, so long at most; otherwise it is an error
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Option<Nanos>,
    /// Measure although this machine is being measured already, and although both disturb each other
    #[arg(long, conflicts_with = "wait")]
    pub beside: bool,
}
