//! Arguments of `tactus fleet job`, which engines start.

use std::path::PathBuf;

use clap::Args;
use tactus_model::Nanos;

use crate::cli::values::duration;

/// Arguments of `fleet job`.
#[derive(Debug, Args)]
pub struct FleetJob {
    /// The plan
    #[arg(long, value_name = "FILE")]
    pub plan: String,
    /// The expected SHA-256 of the plan, in hex
    #[arg(long = "plan-sha256", value_name = "HEX")]
    pub plan_sha256: Option<String>,
    /// The bundle to begin or continue
    #[arg(long, value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Path of the bundle after it was fetched: if it exists, there is nothing to do
    #[arg(long, value_name = "BUNDLE")]
    pub home: Option<PathBuf>,
    /// Also write the finished bundle as one file
    #[arg(long, value_name = "FILE")]
    pub archive: Option<PathBuf>,
    /// Write the SHA-256 of that file to this one, for engines that keep a short result of a job
    #[arg(long, value_name = "FILE", requires = "archive")]
    pub word: Option<PathBuf>,
    /// Also print the finished bundle as text on stdout, for engines that keep a job's output; write its
    /// manifest to this file, unless it is longer than an engine keeps
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Move from the control group to the root of the controller `cpu` that is mounted here, if groups have
    /// no budget for real-time threads
    #[arg(long, value_name = "DIR")]
    pub join: Option<PathBuf>,
    /// How long to wait for another measurement of this machine
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Nanos,
    /// Further arguments of `tactus run`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}
