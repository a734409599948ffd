//! What will be exceeded less than once in a longer time than was measured: the tail bound.
//!
//! Extreme value theory, and only where it holds: from blocks of time that are as good as independent, above a threshold
//! where the largest have one law, by profile likelihood, and not too far (docs/design/tail.md).

mod bound;
mod extremal_index;
mod gev;
mod goodness_of_fit;
mod gpd;
mod maximize;
mod null;
mod null_tables;
mod refusal;
mod series;
mod stationarity;

pub use bound::{Bound, DAY_NS, Level, bound};
pub use gpd::{Excesses, Fit, Gpd, Range};
pub use refusal::{Blocks, Refusal};
pub use series::{
    ERROR, LEAST_BLOCKS, LEAST_EXCEEDANCES, Maxima, PROMISED_BLOCKS, Tail, Threshold, drop_for, level_drop,
};
pub use stationarity::{Against, Tested};
