//! Arguments of runs that are kept as a baseline, and of runs that are compared with one.

use clap::Args;

/// The baseline that a run becomes, and the one it is compared with.
#[derive(Debug, Default, Args)]
pub struct Baseline {
    /// Add the bundle as a sitting to the baseline of this name, for this user; a name with a / is a path to
    /// your own directory of baselines
    #[arg(long, value_name = "NAME|DIR", conflicts_with_all = ["out", "into"])]
    pub save_baseline: Option<String>,
    /// Compare the run with the baseline of this name, or with a bundle: exit code 1 where something became
    /// worse, 3 where that is undecided (as `tactus compare --gate`). It decides from five sittings on, with
    /// --repeat 5 or more
    #[arg(long, value_name = "NAME|BUNDLE")]
    pub baseline: Option<String>,
}
