//! The tail bound: the latency that is exceeded less than once in a longer time than was measured.
//!
//! It uses extreme value theory, and only where the theory holds. Blocks of time must be practically
//! independent. Above the threshold the largest values must follow one law. The fit is by profile likelihood,
//! and the bound does not reach too far (docs/design/tail.md).

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
