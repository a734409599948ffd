//! Arguments of `tactus cyclictest`: cyclictest's own.

use std::path::PathBuf;

use clap::Args;
use tactus_model::Nanos;

use super::values::seconds;

/// Arguments of `cyclictest`.
#[derive(Debug, Args)]
// Of an option that is there twice the last one counts, as with getopt.
#[command(disable_help_flag = true, args_override_self = true)]
pub struct Cyclictest {
    /// Thread N on CPU N, or on the CPUs of a list in turn. Threads are always bound, even without this
    /// option
    #[arg(short = 'a', long, value_name = "CPUS", num_args = 0..=1, default_missing_value = "all")]
    pub affinity: Option<String>,
    /// Stop when a latency exceeds this, and stop ftrace with it if the kernel traces
    #[arg(short = 'b', long, value_name = "US")]
    pub breaktrace: Option<u64>,
    /// How much longer the interval of each further thread is [default: 500; 0 with a histogram]
    #[arg(short = 'd', long, value_name = "US")]
    pub distance: Option<u64>,
    /// Duration; a bare number is seconds. Default: until interrupted
    #[arg(short = 'D', long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<Nanos>,
    /// Print a histogram of values below this, with all rows
    #[arg(short = 'h', long, value_name = "US")]
    pub histogram: Option<u64>,
    /// The same, with a column of sums
    #[arg(short = 'H', long, value_name = "US", conflicts_with = "histogram")]
    pub histofall: Option<u64>,
    /// Write the histogram to this file
    #[arg(long, value_name = "FILE")]
    pub histfile: Option<PathBuf>,
    /// Time between two wake-ups of the first thread
    #[arg(short = 'i', long, value_name = "US", default_value_t = 1000)]
    pub interval: u64,
    /// Write the results as cyclictest's JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Number of wake-ups of the first thread; 0: until interrupted
    #[arg(short = 'l', long, value_name = "N", default_value_t = 0)]
    pub loops: u64,
    /// Print the lines again only when the largest latency has grown
    #[arg(short = 'M', long = "refresh_on_max")]
    pub refresh_on_max: bool,
    /// Print ns
    #[arg(short = 'N', long)]
    pub nsecs: bool,
    /// Real-time priority. Without it, and without --policy, threads are not real-time
    #[arg(short = 'p', long, value_name = "PRIO")]
    pub priority: Option<u32>,
    /// Scheduling policy: fifo, rr, other or normal
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Give each further thread a priority one lower
    #[arg(long)]
    pub priospread: bool,
    /// Print only the last lines
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// The same as -a -t
    #[arg(short = 'S', long)]
    pub smp: bool,
    /// Number of threads; without a number one per CPU [default: 1]
    #[arg(short = 't', long, value_name = "N", num_args = 0..=1, default_missing_value = "0")]
    pub threads: Option<usize>,
    /// Leave the system as it is (cpu_dma_latency is not held, ftrace is not stopped)
    #[arg(long, alias = "laptop")]
    pub default_system: bool,
    #[command(flatten)]
    pub idle: Idle,
    #[command(flatten)]
    pub lacking: Lacking,
    /// Keep the bundle in this directory, for `tactus report` (an option of tactus only)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// Options that are taken and change nothing: it is so in any case.
#[derive(Debug, Args)]
pub struct Idle {
    /// Lock the memory: always done
    #[arg(short = 'm', long)]
    mlockall: bool,
    /// Wait by clock_nanosleep: always done
    #[arg(short = 'n', long, hide = true)]
    nanosleep: bool,
    /// Print lines without a buffer: always done
    #[arg(short = 'u', long)]
    unbuffered: bool,
    /// CPUs of the main thread: threads that do not measure always stay off the measured CPUs
    #[arg(long, value_name = "CPUS", num_args = 0..=1, default_missing_value = "")]
    mainaffinity: Option<String>,
    /// Print less of what -v would print
    #[arg(short = 'o', long, value_name = "N", hide = true)]
    oscope: Option<u64>,
}

/// Options for which tactus has nothing: each is refused by name.
#[derive(Debug, Args)]
pub struct Lacking {
    #[arg(short = 'A', long, value_name = "US", hide = true)]
    pub aligned: Option<u64>,
    #[arg(long, value_name = "US", num_args = 0..=1, default_missing_value = "0", hide = true)]
    pub secaligned: Option<u64>,
    #[arg(short = 'c', long, default_value_t = 0, hide = true)]
    pub clock: u32,
    #[arg(short = 'F', long, hide = true)]
    pub fifo: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub latency: Option<u32>,
    #[arg(short = 'r', long, hide = true)]
    pub relative: bool,
    #[arg(short = 'R', long, hide = true)]
    pub resolution: bool,
    #[arg(short = 's', long, hide = true)]
    pub system: bool,
    #[arg(long, hide = true)]
    pub smi: bool,
    #[arg(long, hide = true)]
    pub spike: Option<u64>,
    #[arg(long, hide = true)]
    pub spike_nodes: Option<u64>,
    #[arg(long, hide = true)]
    pub tracemark: bool,
    #[arg(short = 'v', long, hide = true)]
    pub verbose: bool,
    #[arg(short = 'x', long = "posix_timers", hide = true)]
    pub posix_timers: bool,
}
