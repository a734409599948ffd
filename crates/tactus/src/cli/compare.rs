//! Arguments of `tactus compare`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The base, then what to compare with it: bundles, or directories with the bundles (sittings) of one
    /// condition
    #[arg(required = true, value_name = "BUNDLE|DIR")]
    pub conditions: Vec<PathBuf>,
    /// Exit code 0 if nothing is worse than its margin allows, 1 if something is, 3 if undecided, as with one
    /// sitting of each. A base of 6 sittings or more must pass --self
    #[arg(long, conflicts_with = "itself")]
    pub gate: bool,
    /// Compare the halves of a baseline of 6 sittings or more: exit code 1 if it is not stable, 3 if undecided
    #[arg(long = "self", id = "itself")]
    pub itself: bool,
    /// Also judge emulated measurements, which say nothing about hardware
    #[arg(long)]
    pub judge_emulated: bool,
    /// List every difference, also in each thread: candidates, not verdicts
    #[arg(long, conflicts_with = "itself")]
    pub all: bool,
    /// How much worse each quantity may become. Default: p50=10%,p99=10%,p99.9=25%,maximum=50%,values=10%
    #[arg(long, value_name = "QUANTITY=PERCENT,...", value_delimiter = ',')]
    pub margin: Vec<String>,
    /// Only these scenarios or environments, separated by commas
    #[arg(long, value_name = "NAME,...")]
    pub only: Vec<String>,
    /// As a JSON document (a stable contract: docs/schema)
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Format: text, json, html, markdown, junit, github. Default: by the name of --out, else text
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Output: a file, or - for stdout
    #[arg(long, value_name = "FILE|-", default_value = "-")]
    pub out: PathBuf,
}
