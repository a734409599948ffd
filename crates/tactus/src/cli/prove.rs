//! Arguments of `tactus prove`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use tactus_model::{CpuSet, Nanos};

use super::lock::Lock;
use super::open::{Open, checks};
use super::printed::Printed;
use super::values::seconds;
use crate::place;

/// Arguments of `prove`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true).args(["ids", "all"]))]
pub struct Prove {
    /// Settings, by the ids of their checks (`tactus audit --list`)
    #[arg(value_name = "ID", value_parser = Open(checks), hide_possible_values = true)]
    pub ids: Vec<String>,
    /// Every setting that can be applied and reverted here
    #[arg(long)]
    pub all: bool,
    /// The kind of environment; if it boots its own kernel, boot parameters are tested too
    #[arg(long = "in", value_name = "KIND", default_value = "host", value_parser = Open(place::words), hide_possible_values = true)]
    pub environment: String,
    /// Guest kernel, for environments that boot one
    #[arg(long, value_name = "NAME|PATH")]
    pub kernel: Option<String>,
    /// Further kernel parameters of the guest
    #[arg(long, value_name = "TEXT")]
    pub cmdline: Option<String>,
    /// CPUs to measure on; default: the isolated CPUs, else all except those of the first core
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<CpuSet>,
    /// Pairs of each setting; default: enough to show an effect of two standard deviations, 10 or more. With
    /// 7 to 9 (for one setting) an effect is shown if it is significant; with fewer, only medians
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub pairs: Option<u32>,
    /// Duration of each half of a pair; a bare number is seconds
    #[arg(short = 'D', long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    pub duration: Nanos,
    /// One second for each half, for a first look
    #[arg(long, conflicts_with = "duration")]
    pub quick: bool,
    /// Measure without load
    #[arg(long)]
    pub idle: bool,
    /// Print what would be measured, and how long it would take
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub lock: Lock,
    /// Keep the bundle in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}
