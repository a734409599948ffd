//! Arguments of `tactus compare`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The base, and what is held against it: each a bundle, or a directory of bundles, which are runs of one condition
    #[arg(required = true, value_name = "BUNDLE|DIR")]
    pub conditions: Vec<PathBuf>,
    /// As a regression gate: exit code 0 where nothing is worse than its margin allows, 1 where something is, 3 where
    /// neither is certain. The base is a baseline, and must hold against itself where it has 10 runs
    #[arg(long, conflicts_with = "itself")]
    pub gate: bool,
    /// Hold a baseline of 10 runs or more against itself: exit code 1 where it may be none, 3 where that cannot be said
    #[arg(long = "self", id = "itself")]
    pub itself: bool,
    /// Judge what was measured under emulation, too: it says nothing about hardware
    #[arg(long)]
    pub judge_emulated: bool,
    /// Search for whatever differs, in every thread too: candidates, no verdicts
    #[arg(long, conflicts_with = "itself")]
    pub all: bool,
    /// How much worse quantities may be: p50=10%,p99=10%,p99.9=25%,maximum=50%,values=10%, unless said otherwise
    #[arg(long, value_name = "QUANTITY=PERCENT,...", value_delimiter = ',')]
    pub margin: Vec<String>,
    /// Only these scenarios or environments; several with commas between them, or --only several times
    #[arg(long, value_name = "NAME,...")]
    pub only: Vec<String>,
    /// As a JSON document (a stable contract: docs/schema)
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// The format: text, json, html, markdown, junit, github
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: String,
    /// Where to: a file, or - for stdout
    #[arg(long, value_name = "FILE|-", default_value = "-")]
    pub out: PathBuf,
}
