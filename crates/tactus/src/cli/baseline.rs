//! Arguments of runs that are kept to be held against, and of those that are held against one.

use clap::Args;

/// What a run is a baseline for, and which it is held against.
#[derive(Debug, Default, Args)]
pub struct Baseline {
    /// Keep the bundle as the baseline of this name, among this user's baselines; a name with a / is a directory of
    /// baselines of your own
    #[arg(long, value_name = "NAME|DIR", conflicts_with_all = ["out", "into"])]
    pub save_baseline: Option<String>,
    /// Hold the run against the baseline of this name, or against a bundle: exit code 1 where something became worse, 3
    /// where that is not certain (as `tactus compare --gate`). The newest complete run of that name counts
    #[arg(long, value_name = "NAME|BUNDLE")]
    pub baseline: Option<String>,
}
