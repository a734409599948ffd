//! The statistics of a report. Pure: numbers and histograms in, typed results out. It knows no bundle, no row and no
//! sentence: `tactus-report` takes the figures out of a bundle, calls these functions, and says what they found.
//!
//! | What is asked | Module | Source |
//! |---|---|---|
//! | Does a setting change a latency, in pairs of runs? | `signed_rank` | Wilcoxon 1945; Hodges and Lehmann 1963 |
//! | ... many quantities of the same pairs at once? | [`max_t`] | Westfall and Young 1993; Tusher, Tibshirani and Chu 2001 |
//! | ... of which pairs does the order matter? | `order_effect` | Wilcoxon 1945 |
//! | ... how large must a change be to be seen? | `detectable` | simulation of the signed-rank test |
//! | Do two sets of runs differ by more than a factor? | `two_samples`, `rank_sum` | Mann and Whitney 1947; Moses, in Hollander, Wolfe and Chicken |
//! | ... two sets of sittings of several runs each? | [`log_t`] | Gosset 1908; Hahn and Meeker 1991 |
//! | ... how many runs does that take? | `power` | normal approximation of the rank-sum test |
//! | Do quantiles of two single runs differ? | `quantile`, `slots` | Woodruff 1952; Zou and Donner 2008 |
//! | ... does the level of a run drift? | `trend` | Mann 1945; Kendall 1975 |
//! | ... how many independent values is a series worth? | `autocorrelation` | Geyer 1992; Marriott and Pope 1954 |
//! | Does something happen when a disturbance is made? | `randomization_test` | Fisher 1935; Pitman 1937; Chernoff 1952 |
//! | How often may happen what was never seen? | `clopper_pearson` | Clopper and Pearson 1934 |
//! | How many late periods must be expected? | `late_periods` | Fay and Feuer 1997; Garwood 1936 |
//! | What will be exceeded less than once in a longer time? | [`tail`] | extreme value theory: each file names its own |
//! | Many tests in one report | `holm` | Holm 1979; Bonferroni |
//! | Many tests in one search | `benjamini_hochberg` | Benjamini and Hochberg 1995 |
//!
//! Each module cites its papers in full.

mod autocorrelation;
mod benjamini_hochberg;
mod clopper_pearson;
mod contrast;
mod detectable;
mod distribution;
mod exceedance;
mod holm;
mod interval;
mod late_periods;
pub mod log_t;
pub mod max_t;
mod median;
mod order_effect;
mod power;
mod quantile;
mod random;
mod randomization_test;
mod rank_sum;
mod recorded;
mod signed_rank;
mod slots;
pub mod tail;
mod trend;
mod two_samples;
mod unknown;

pub use autocorrelation::effective_size;
pub use benjamini_hochberg::{FALSE_FINDS, benjamini_hochberg};
pub use clopper_pearson::at_most;
pub use contrast::{Contrast, Difference, judge};
pub use detectable::detectable;
pub use distribution::{Bins, distribution};
pub use exceedance::{Exceedance, exceedance};
pub use holm::{ERROR, holm};
pub use interval::Interval;
pub use late_periods::Late;
pub use log_t::LEAST as LEAST_SITTINGS;
pub use median::median;
pub use order_effect::order_p;
pub use power::{detectable_ratio, runs_needed};
pub use quantile::Quantile;
pub use random::Random;
pub use randomization_test::{Drawn, Stratum, chance, drawn};
pub use rank_sum::{Ratio, Test};
pub use recorded::Recorded;
pub use signed_rank::{Paired, least_pairs, paired, paired_p};
pub use slots::{IntervalsDiffer, OverTime, Slots, slots_alike};
pub use trend::trend_p;
pub use two_samples::{Samples, TwoSamples, least_p, typical_ratio};
pub use unknown::{ENOUGH, Unknown};
