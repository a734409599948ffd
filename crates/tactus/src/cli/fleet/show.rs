//! Arguments of `fleet show`.

use std::path::PathBuf;

use clap::Args;
use tactus_model::Nanos;

/// Arguments of `fleet show`.
#[derive(Debug, Args)]
pub struct FleetShow {
    /// The data set, as `tactus fleet collect` wrote it
    pub data: PathBuf,
    /// The deadline: a machine with a larger latency misses it. Default: the requirements of the plans
    #[arg(long, value_name = "TIME")]
    pub max: Option<Nanos>,
    /// Number of worst machines to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub worst: usize,
    /// Only look at machines that ran within this time before the newest run; drift is searched in all of the
    /// time
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    pub days: u32,
    /// Number of days without a run after which a machine is missing
    #[arg(long, value_name = "DAYS", default_value_t = 3)]
    pub missing_after: u32,
    /// The expected machines: a file with a name or key in each line, # begins a comment
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// As a JSON document
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Format: text, json, html, markdown. Default: by the name of --out, else text
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Output: a file, or - for stdout
    #[arg(long, value_name = "FILE|-", default_value = "-")]
    pub out: PathBuf,
}
