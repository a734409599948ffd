//! Arguments of the commands that read a bundle, or make one of files.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::limits::Limits;
use super::open::Open;
use crate::vocabulary;

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Directory of the bundle. Default: the newest one in this directory
    pub bundle: Option<PathBuf>,
    /// Follow the run that writes it, in the live screen where there is a terminal, until it ends
    #[arg(long, conflicts_with_all = ["json", "damaged"])]
    pub follow: bool,
    /// Lines instead of the live screen
    #[arg(long, requires = "follow")]
    pub plain: bool,
    /// As a JSON document (a stable contract: docs/schema)
    #[arg(long)]
    pub json: bool,
    /// A line more in tables of latencies where periods were missed: the quantiles of the wake-ups that happened
    #[arg(long)]
    pub raw: bool,
    /// Read what is left of a damaged bundle, and say what is wrong with it
    #[arg(long)]
    pub damaged: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Directory of the bundle. Default: the newest one in this directory
    pub bundle: Option<PathBuf>,
    /// The format: html, text, json, markdown, junit, github, svg, png
    #[arg(long, value_name = "FORMAT", default_value = "html", value_parser = Open(vocabulary::formats), hide_possible_values = true)]
    pub format: String,
    /// Where to: a file, or - for stdout. Default: BUNDLE/report.html for html, stdout for the others
    #[arg(long, value_name = "FILE|-")]
    pub out: Option<PathBuf>,
    /// Open the page in a browser (xdg-open)
    #[arg(long)]
    pub open: bool,
    /// A line more in tables of latencies where periods were missed: the quantiles of the wake-ups that happened
    #[arg(long)]
    pub raw: bool,
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

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// Files of other tools, packed (gzip, xz, zstd) or not; - for stdin. What they are is seen by their content
    #[arg(required_unless_present = "formats", value_name = "FILE|-")]
    pub files: Vec<PathBuf>,
    /// Say which formats are read, with the command that makes each, its unit, and what is not in it
    #[arg(long)]
    pub formats: bool,
    /// Directory of the bundle, new or empty. Default: ./tactus-import-TIME
    #[arg(long, value_name = "BUNDLE")]
    pub out: Option<PathBuf>,
    /// What it is called: its scenario and environment. For several files once for each. Default: the name of the file
    #[arg(long, value_name = "NAME")]
    pub name: Vec<String>,
    /// The unit of files that do not say it: ns for cyclictest's text with -N. Default: us, ns for histogram logs
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<Unit>,
    #[command(flatten)]
    pub limits: Limits,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Directory of the bundle
    pub bundle: PathBuf,
    /// The format: cyclictest-json, cyclictest-histogram, oslat-json, hlog, csv, parquet, openmetrics
    #[arg(long, value_name = "FORMAT", value_parser = Open(vocabulary::exports), hide_possible_values = true)]
    pub format: String,
    /// Where to: a file, or - for stdout (the default); a directory where it becomes several files
    #[arg(long, value_name = "FILE|DIR|-")]
    pub out: Option<PathBuf>,
    /// Only these scenarios or environments; several with commas between them, or --only several times
    #[arg(long, value_name = "NAME,...")]
    pub only: Vec<String>,
    /// The unit of cyclictest's formats: us as it has them, or ns as with its -N. Default: us
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<Unit>,
    /// As cyclictest's -h: in its formats, values of so many units or more have no row, and count as overflows
    #[arg(long, value_name = "UNITS")]
    pub histogram: Option<u64>,
    /// Read what is left of a damaged bundle, and say what is wrong with it
    #[arg(long)]
    pub damaged: bool,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
}

impl Unit {
    /// One of it, in ns.
    pub const fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
        }
    }
}
