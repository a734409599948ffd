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
    /// The SHA-256 that it must have, in hex
    #[arg(long = "plan-sha256", value_name = "HEX")]
    pub plan_sha256: Option<String>,
    /// The bundle that is begun or gone on with
    #[arg(long, value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Where the bundle is once it was brought home: then there is nothing to do
    #[arg(long, value_name = "BUNDLE")]
    pub home: Option<PathBuf>,
    /// The finished bundle as one file, too
    #[arg(long, value_name = "FILE")]
    pub archive: Option<PathBuf>,
    /// The SHA-256 of that file in this one, for engines that keep a word of a job's
    #[arg(long, value_name = "FILE", requires = "archive")]
    pub word: Option<PathBuf>,
    /// The finished bundle as text on stdout, too, for engines that keep what a job says; and its manifest in this file,
    /// as far as it is no longer than an engine keeps
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Leave the control group for the root of the controller `cpu` that is mounted here, where a group has no time for
    /// real-time threads
    #[arg(long, value_name = "DIR")]
    pub join: Option<PathBuf>,
    /// How long to wait for another measurement of this machine
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub wait: Nanos,
    /// Further words of `tactus run`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}
