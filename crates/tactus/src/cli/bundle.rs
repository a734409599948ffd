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
