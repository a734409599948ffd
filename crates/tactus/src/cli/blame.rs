//! Who had the CPU, on the command line.

use clap::Args;
use tactus_model::Nanos;

use super::values::microseconds;

/// What is kept of large latencies; the same words for one measurement and for a plan.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct BlameOptions {
    /// Keep who had the CPU while the ten largest latencies of each thread lasted, and every one above this, by BPF at the
    /// kernel's tracepoints of switches and interrupts; a bare number is microseconds
    #[arg(long, value_name = "US", value_parser = microseconds, conflicts_with = "no_side_effects")]
    pub blame_above: Option<Nanos>,
    /// As --blame-above, and end a measurement of wake-ups with the first one above this
    #[arg(long, value_name = "US", value_parser = microseconds,
        conflicts_with_all = ["no_side_effects", "blame_above"])]
    pub stop_above: Option<Nanos>,
}
