//! Environments that die, on the command line.

use clap::Args;
use tactus_model::outcome::restart::MOST_RESTARTS;

/// How often what died is started again; the same word for one measurement and for a plan.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct RestartOption {
    /// Start an environment again that dies while it is measured, at most so often in a scenario, and go on with what is
    /// left of the measurement: the time between is a gap. Of latencies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_RESTARTS)))]
    pub restart: Option<u32>,
}
