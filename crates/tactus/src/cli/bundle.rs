//! Arguments of the commands that read a bundle.

use std::path::PathBuf;

use clap::Args;

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

/// Arguments of `fitness`.
#[derive(Debug, Args)]
pub struct Fitness {
    /// Directory of the bundle; without it: what the classes allow
    pub bundle: Option<PathBuf>,
    /// Classes of your own, in TOML; one with the name of a built-in class takes its place
    #[arg(long, value_name = "FILE")]
    pub classes: Option<PathBuf>,
    /// Only these scenarios or environments; several with commas between them, or --only several times
    #[arg(long, value_name = "NAME,...", requires = "bundle")]
    pub only: Vec<String>,
    /// Classes for which every environment must be fit: exit code 1 where one is not, 3 where that cannot be said
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',', requires = "bundle")]
    pub require: Vec<String>,
    /// As a JSON document: the classes, and the judgements as in `tactus show --json`
    #[arg(long)]
    pub json: bool,
    /// Read what is left of a damaged bundle, and say what is wrong with it
    #[arg(long, requires = "bundle")]
    pub damaged: bool,
}
