//! Arguments of `tactus run`.

use std::path::{Path, PathBuf};

use clap::Args;
use tactus_model::Nanos;
use tactus_model::cpus::CpuRequest;

use super::baseline::Baseline;
use super::blame::BlameOptions;
use super::detach::Detach;
use super::limits::Limits;
use super::lock::Lock;
use super::open::Open;
use super::printed::Printed;
use super::restart::RestartOption;
use super::screen::Screen;
use super::values::{interval, seconds, slice};
use crate::{load, place, vocabulary};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// A study by name, or a plan file; without it: the host, a container and a virtual machine. A plan is a
    /// program that runs with your rights: read a stranger's plan first
    #[arg(value_parser = Open(vocabulary::studies), hide_possible_values = true)]
    pub plan: Option<String>,
    /// Time between two wake-ups (the period of your loop); a bare number is microseconds
    #[arg(short = 'i', long, value_name = "US", value_parser = interval)]
    pub interval: Option<Nanos>,
    /// Where to measure: kinds of environments (host, podman, qemu...), or addresses of running ones
    /// (docker:NAME). Default: the host, a container and a virtual machine
    #[arg(long = "in", value_name = "PLACE,...", value_delimiter = ',', conflicts_with = "plan", value_parser = Open(place::words), hide_possible_values = true)]
    pub places: Vec<String>,
    /// CPUs to measure on: a list, `auto`, `isolated`, `all`, `!0`. Default: auto
    #[arg(short = 'a', long = "cpus", value_name = "CPUS", conflicts_with = "plan")]
    pub cpus: Option<CpuRequest>,
    /// Load in each environment, which is also measured idle; repeat it for several. Parameters as in
    /// cache:bytes=8M, a program as in 'command:stress-ng --malloc 1'; `tactus explain` lists the loads.
    /// Default: scheduler
    #[arg(long, value_name = "LOAD", conflicts_with = "plan", value_parser = Open(load::words), hide_possible_values = true)]
    pub load: Vec<String>,
    /// Duration of each scenario; a bare number is seconds. Default without a plan: 10s
    #[arg(short = 'D', long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<Nanos>,
    /// Directory of the bundle: a new one, or an empty one that no other user can write to; default: ./tactus-PLAN-TIME
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue this bundle: complete scenarios are kept, the rest is measured now; if there is no bundle,
    /// like --out
    #[arg(long, value_name = "BUNDLE", conflicts_with = "out")]
    pub into: Option<PathBuf>,
    /// Continue a bundle that was begun on another machine
    #[arg(long, requires = "into")]
    pub force: bool,
    /// Run the commands of the bundle's own plan, which someone else may have written; not needed if you also
    /// give the plan
    #[arg(long, requires = "into")]
    pub trust: bool,
    /// Host state of the plan to use, instead of the one that tactus detects
    #[arg(long, value_name = "STATE")]
    pub host_state: Option<String>,
    /// Number of runs of every scenario, in rounds of random order: 8 or more separate effects from
    /// run-to-run variation
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Measure every scenario in slices of this length, in rounds of random order: drift of the machine then
    /// affects all scenarios alike. Without a plan, idle and loaded take turns anyway: 9 to 30 slices of 1 s or
    /// more. They do not with --repeat, --stop-above, or a limit together with -D or --long
    #[arg(long, value_name = "TIME", value_parser = slice)]
    pub interleave: Option<Nanos>,
    #[command(flatten)]
    pub restart: RestartOption,
    #[command(flatten)]
    pub blame: BlameOptions,
    /// Measure 10 minutes in each scenario
    #[arg(long, conflicts_with_all = ["duration", "quick", "plan"])]
    pub long: bool,
    /// Use the short durations of a plan or study, for a first look
    #[arg(long)]
    pub quick: bool,
    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Only these scenarios or environments; separate several with commas, or repeat --only
    #[arg(long, value_name = "NAME,...")]
    pub only: Vec<String>,
    /// Leave the system as it is while measuring (cpu_dma_latency is not held, no counter of the processor is used,
    /// ftrace is not stopped)
    #[arg(long)]
    pub no_side_effects: bool,
    #[command(flatten)]
    pub baseline: Baseline,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub lock: Lock,
    #[command(flatten)]
    pub screen: Screen,
    #[command(flatten)]
    pub detach: Detach,
    /// Also print the quantiles of the wake-ups that happened, where periods were missed
    #[arg(long)]
    pub raw: bool,
    #[command(flatten)]
    pub printed: Printed,
}

impl Run {
    /// The bundle that was named.
    pub fn place(&self) -> Option<&Path> {
        self.into.as_deref().or(self.out.as_deref())
    }
}
