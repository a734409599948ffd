//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tactus_model::Nanos;
use tactus_model::cpus::CpuRequest;

/// Makes a Linux machine keep time, and proves it: on the host, in containers, in virtual machines.
///
/// `tactus run --quick` measures this machine in every environment it has and writes a report.
#[derive(Debug, Parser)]
#[command(
    name = "tactus",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine in every environment it has, or perform a study or plan
    Run(Run),
    /// One measurement in one environment, with cyclictest's habits
    Measure(Measure),
    /// Show a bundle in the terminal
    Show(Show),
    /// Write a bundle's report
    Report(Report),
    /// List the environments: usable or not, and what would make the rest so
    Environments(Environments),
    /// Find, fetch and choose guest kernels
    Kernel(Kernel),
    /// Explain a word: an environment, measurement, load, fault, study or format
    Explain(Explain),
    /// Print the completion script of a shell
    Completions(Completions),
    /// Print the manual page, or write one page per command
    Man(Man),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// A study by name, or a plan file; without it: this machine, every environment it has
    pub plan: Option<String>,
    /// Directory of the bundle; default: ./tactus-PLAN-TIME
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How long every scenario measures
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Nanos>,
    /// Short durations, for a first look
    #[arg(long)]
    pub quick: bool,
    /// Only these scenarios or environments; several with commas between them, or --only several times
    #[arg(long, value_name = "NAME,...")]
    pub only: Vec<String>,
    /// Leave the system as it is while measuring (cpu_dma_latency is not held)
    #[arg(long)]
    pub no_side_effects: bool,
    /// Print the result as JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `measure`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Measure {
    /// The kind of environment to measure in
    #[arg(long = "in", value_name = "KIND", default_value = "host")]
    pub environment: String,
    /// What to measure: timer or spin
    #[arg(long, value_name = "WORD", default_value = "timer")]
    pub measurement: String,
    /// Real-time priority of the (first) measuring thread
    #[arg(short = 'p', long, value_name = "PRIO", default_value_t = 95)]
    pub priority: u32,
    /// Time between two wake-ups; a bare number is microseconds
    #[arg(short = 'i', long, value_name = "US", default_value = "200us", value_parser = microseconds)]
    pub interval: Nanos,
    /// CPUs to measure on: a list, `auto`, `isolated`, `all`, `!0`
    #[arg(short = 'a', long = "affinity", value_name = "CPUS", default_value = "auto")]
    pub cpus: CpuRequest,
    /// Measuring threads in all, dealt out over the CPUs; each further one of a CPU is one priority
    /// lower. Default: one per CPU
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<u32>,
    /// How long; a bare number is seconds
    #[arg(short = 'D', long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    pub duration: Nanos,
    /// Print a histogram up to this many microseconds, as cyclictest -h does
    #[arg(short = 'h', long = "histogram", value_name = "US")]
    pub histogram: Option<u32>,
    /// Stop when a latency exceeds this; a bare number is microseconds
    #[arg(short = 'b', long = "breaktrace", value_name = "US", value_parser = microseconds)]
    pub break_at: Option<Nanos>,
    /// How the measuring threads are scheduled
    #[arg(long, value_enum, default_value_t = Policy::Fifo)]
    pub policy: Policy,
    /// A load beside it, in the same environment: scheduler or cpu
    #[arg(long, value_name = "WORD")]
    pub load: Vec<String>,
    /// Guest kernel, for environments that boot one
    #[arg(long, value_name = "NAME|PATH")]
    pub kernel: Option<String>,
    /// Do not inject the 1 ms fault that proves the instrument
    #[arg(long)]
    pub no_control: bool,
    /// Leave the system as it is while measuring (cpu_dma_latency is not held)
    #[arg(long)]
    pub no_side_effects: bool,
    /// Keep the bundle in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No live lines
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// Scheduling policies.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Policy {
    /// SCHED_FIFO
    Fifo,
    /// SCHED_RR
    Rr,
    /// SCHED_DEADLINE
    Deadline,
    /// SCHED_OTHER
    Other,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Directory of the bundle
    pub bundle: PathBuf,
    /// As a JSON document (a stable contract: docs/schema)
    #[arg(long)]
    pub json: bool,
    /// Read what is left of a damaged bundle, and say what is wrong with it
    #[arg(long)]
    pub damaged: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Directory of the bundle
    pub bundle: PathBuf,
    /// The format: html, text, json, markdown, svg, png
    #[arg(long, value_name = "FORMAT", default_value = "html")]
    pub format: String,
    /// Where to: a file, or - for stdout. Default: BUNDLE/report.html for html, stdout for the others
    #[arg(long, value_name = "FILE|-")]
    pub out: Option<PathBuf>,
    /// Read what is left of a damaged bundle, and say what is wrong with it
    #[arg(long)]
    pub damaged: bool,
}

/// Arguments of `environments`.
#[derive(Debug, Args)]
pub struct Environments {
    /// As a JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kernel`.
#[derive(Debug, Args)]
pub struct Kernel {
    #[command(subcommand)]
    pub what: KernelCommand,
}

/// What to do with guest kernels.
#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// List the kernels that a guest can boot
    List {
        /// As a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Download a kernel with the distribution's package manager, without installing it
    Fetch {
        /// `rt`, `standard`, or a package
        #[arg(default_value = "rt")]
        name: String,
    },
    /// Choose the kernel that guests boot when the plan does not say
    Use {
        /// A name from `tactus kernel list`, or a path
        name: String,
    },
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The word; without it: all of them
    pub word: Option<String>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write one page per command into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Nanos, String> {
    let duration: Nanos =
        text.parse().map_err(|error: tactus_model::duration::DurationError| error.to_string())?;
    if duration.0 == 0 { Err("nothing can be measured in no time".into()) } else { Ok(duration) }
}

/// As cyclictest reads `-D`: a bare number is seconds.
fn seconds(text: &str) -> Result<Nanos, String> {
    bare(text, "s").map_or_else(|| duration(text), |text| duration(&text))
}

/// As cyclictest reads `-i`: a bare number is microseconds.
fn microseconds(text: &str) -> Result<Nanos, String> {
    bare(text, "us").map_or_else(|| duration(text), |text| duration(&text))
}

fn bare(text: &str, unit: &str) -> Option<String> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| format!("{text}{unit}")).filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bare_numbers_are_read_as_cyclictest_reads_them() {
        assert_eq!(seconds("10"), Ok(Nanos::from_secs(10)));
        assert_eq!(seconds("5m"), Ok(Nanos::from_secs(300)));
        assert_eq!(microseconds("200"), Ok(Nanos::from_us(200)));
        assert_eq!(microseconds("1ms"), Ok(Nanos::from_ms(1)));
        assert!(duration("10").is_err());
        assert!(seconds("0").is_err());
        assert!(seconds("").is_err());
    }
}
