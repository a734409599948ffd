//! Arguments of `tactus report`.

use std::path::PathBuf;

use clap::Args;

use super::open::Open;
use crate::vocabulary;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Directory of the bundle. Default: the newest one in this directory
    pub bundle: Option<PathBuf>,
    /// Write the page (BUNDLE/report.html, or --out FILE)
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub html: bool,
    /// Write the page and open it in a browser (xdg-open)
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub open: bool,
    /// Format: text (the default), html, json, markdown, junit, github, ktap, lava, svg, png
    #[arg(long, value_name = "FORMAT", value_parser = Open(vocabulary::formats), hide_possible_values = true)]
    pub format: Option<String>,
    /// Print JSON, a stable contract (docs/schema); the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to this file; - is stdout, the default
    #[arg(long, value_name = "FILE|-")]
    pub out: Option<PathBuf>,
    /// Print for which classes of control application the environments are fit. `all`, or names: then the exit code is 1 if
    /// an environment is not fit for one, and 3 if that is not decided
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',', conflicts_with_all = ["html", "open", "raw"])]
    pub class: Vec<String>,
    /// Read more classes from this TOML file; one with the name of a built-in class replaces it
    #[arg(long, value_name = "FILE", requires = "class")]
    pub classes: Option<PathBuf>,
    /// Show only these scenarios or environments; repeat the option, or separate names by commas
    #[arg(long, value_name = "NAME,...")]
    pub only: Vec<String>,
    /// Also show the quantiles of the wake-ups that happened, where periods were missed
    #[arg(long)]
    pub raw: bool,
    /// Read what is left of a damaged bundle, and say what is wrong with it
    #[arg(long)]
    pub damaged: bool,
}
