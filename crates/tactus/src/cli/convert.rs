//! Arguments of `tactus convert`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::limits::Limits;
use super::open::Open;
use crate::vocabulary;

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Files of other tools, packed (gzip, xz, zstd) or not, - for stdin; the format is detected. With --to:
    /// one bundle, or one such file
    #[arg(required_unless_present = "formats", value_name = "FILE|BUNDLE|-")]
    pub inputs: Vec<PathBuf>,
    /// List the formats that tactus reads and writes, with the command that makes each
    #[arg(long)]
    pub formats: bool,
    /// Write this format: cyclictest-json, cyclictest-histogram, oslat-json, hlog, csv, parquet, openmetrics. Default: a bundle
    #[arg(long, alias = "format", value_name = "FORMAT", value_parser = Open(vocabulary::exports), hide_possible_values = true)]
    pub to: Option<String>,
    /// Output: the new bundle (default: ./tactus-import-TIME); with --to a file, or - for stdout (the
    /// default), or a directory for a format of several files
    #[arg(long, value_name = "BUNDLE|FILE|DIR|-")]
    pub out: Option<PathBuf>,
    /// Name of the scenario and environment of a file; repeat it for several files. Default: the name of the
    /// file
    #[arg(long, value_name = "NAME", conflicts_with = "to")]
    pub name: Vec<String>,
    /// Unit of files that do not name one (ns for cyclictest's text with -N), or of written cyclictest
    /// formats. Default: us, ns for histogram logs
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<Unit>,
    /// Write only these scenarios or environments; repeat the option, or separate names by commas
    #[arg(long, value_name = "NAME,...", requires = "to")]
    pub only: Vec<String>,
    /// As cyclictest's -h: values of this many units or more get no row, and count as overflows
    #[arg(long, value_name = "UNITS", requires = "to")]
    pub histogram: Option<u64>,
    /// Read what is left of a damaged bundle, and report the damage
    #[arg(long, requires = "to")]
    pub damaged: bool,
    #[command(flatten)]
    pub limits: Limits,
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
