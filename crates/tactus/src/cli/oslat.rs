//! Arguments of `tactus oslat`: oslat's own.

use std::path::PathBuf;

use clap::Args;
use tactus_model::Nanos;

use super::values::seconds;

/// Arguments of `oslat`.
#[derive(Debug, Args)]
// Of an option that is there twice the last one counts, as with getopt.
#[command(disable_help_flag = true, args_override_self = true)]
pub struct Oslat {
    /// Rows of the table; the last one also counts everything larger
    #[arg(short = 'b', long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(4..=1024))]
    pub bucket_size: u64,
    /// CPUs to poll [default: all]
    #[arg(short = 'c', long, value_name = "CPUS")]
    pub cpu_list: Option<String>,
    /// Duration, as in 60, 20m, 2H
    #[arg(short = 'D', long, value_name = "TIME", default_value = "1", value_parser = time)]
    pub duration: Nanos,
    /// Priority with SCHED_FIFO. Without it threads are not real-time
    #[arg(short = 'f', long, value_name = "PRIO", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub rtprio: Option<u32>,
    /// Write the results as oslat's JSON to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print only the table
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Stop at a gap of this length or longer, and stop ftrace with it if the kernel traces
    #[arg(short = 'T', long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..))]
    pub trace_threshold: Option<u64>,
    /// Leave out rows of zeros
    #[arg(short = 'z', long)]
    pub zero_omit: bool,
    /// CPU of the main thread: threads that do not measure always stay off the measured CPUs
    #[arg(short = 'C', long, value_name = "CPU", default_value_t = 0)]
    pub cpu_main_thread: u32,
    /// Work beside reading the clock: only `no` is supported
    #[arg(short = 'w', long, value_name = "NAME", default_value = "no")]
    pub workload: String,
    #[command(flatten)]
    pub unneeded: Unneeded,
    /// Keep the bundle in this directory, for `tactus report` (an option of tactus only)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// Options that are taken and change nothing, or for which tactus has nothing.
#[derive(Debug, Args)]
pub struct Unneeded {
    /// Begin the rows at the smallest gap: refused
    #[arg(short = 'B', long, hide = true)]
    pub bias: bool,
    /// Memory of the workload: unused, the workload is `no`
    #[arg(short = 'm', long, value_name = "SIZE", hide = true)]
    workload_mem: Option<String>,
    /// One thread alone calibrates the clock: always done
    #[arg(short = 's', long)]
    single_preheat: bool,
}

/// A time, its unit in either case.
fn time(text: &str) -> Result<Nanos, String> {
    match seconds(&text.to_ascii_lowercase())? {
        Nanos(0) => Err("use 1 or more".into()),
        time => Ok(time),
    }
}
