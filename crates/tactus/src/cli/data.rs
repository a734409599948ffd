//! Arguments of `collect`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `collect`.
#[derive(Debug, Args)]
pub struct Collect {
    /// Bundles, directories that bundles lie in, and archives of bundles (.tar.gz)
    #[arg(required = true, value_name = "BUNDLE|DIR|ARCHIVE")]
    pub bundles: Vec<PathBuf>,
    /// The data set, a directory; it is made where there is none. What is there already is skipped
    #[arg(long, value_name = "DATA")]
    pub into: PathBuf,
    /// What became of each bundle, as JSON on stdout
    #[arg(long)]
    pub json: bool,
}
