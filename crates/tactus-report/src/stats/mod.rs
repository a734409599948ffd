//! Several rows together: differences, effects, comparisons. This module takes the figures out of the bundle;
//! the statistics are those of `tactus-statistics`.

mod change;
mod comparison;
mod conditions;
mod degradation;
mod effect;
mod family;
mod half;
mod histograms;
mod measured;
mod proof;
mod ratio;
mod runs;
mod slots;
mod timeline;
mod together;
mod typical;
mod unknown;
mod valued_claim;

pub use change::Change;
pub use comparison::{Against, Delta, Line, Repeated, Run, comparison, delta};
pub use degradation::{Degraded, DegradedItem, degradations, held_against, least_rounds};
pub use effect::{Design, Effect, caution};
pub use family::{Claim, Found, claims, effects, proofs};
pub use histograms::{distribution, exceedance};
pub use proof::{PROVEN, Proven};
pub use ratio::{ValueRatio, value_ratio};
pub use runs::{is_whole, runs};
pub use slots::slots_alike;
pub use timeline::{Bin, Timeline, timeline};
pub use typical::{typical_rows, valued, values_of};
