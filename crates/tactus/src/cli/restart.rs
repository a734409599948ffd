//! Environments that die, on the command line.

use clap::Args;
use tactus_model::outcome::restart::MOST_RESTARTS;

/// Number of restarts; the same word for one measurement and for a plan.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct RestartOption {
    /// Restart an environment that dies while it is measured, up to N times in a scenario, and measure the
    /// rest; the time between is a gap. Latencies only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_RESTARTS)))]
    pub restart: Option<u32>,
}
