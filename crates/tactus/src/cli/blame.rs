//! Blame of latencies, on the command line.

use clap::Args;
use tactus_model::Nanos;

use super::values::microseconds;

/// What is kept of large latencies; the same words for one measurement and for a plan.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct BlameOptions {
    /// Record what had the CPU during the ten largest latencies of each thread and every latency above this,
    /// by BPF at the kernel's tracepoints of switches and interrupts; a bare number is microseconds
    #[arg(long, value_name = "US", value_parser = microseconds, conflicts_with = "no_side_effects")]
    pub blame_above: Option<Nanos>,
    /// As --blame-above, and stop a measurement of wake-ups at the first latency above this
    #[arg(long, value_name = "US", value_parser = microseconds,
        conflicts_with_all = ["no_side_effects", "blame_above"])]
    pub stop_above: Option<Nanos>,
}
