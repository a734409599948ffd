//! What numbers say together: differences, effects, tests, distributions. Each test names its source.

mod bootstrap;
mod by_lot;
mod comparison;
mod distribution;
mod effect;
mod paired;
mod rank_sum;
mod ratio;
mod timeline;

pub use bootstrap::{ENOUGH, Interval, Slots};
pub use by_lot::{Drawn, Stratum, at_most, drawn};
pub use comparison::{Against, Delta, Line, comparison, delta};
pub use distribution::{Bins, distribution};
pub use effect::{Change, Claim, Effect, Maximum, Quantity, claims, effect};
pub use paired::{Paired, paired};
pub use rank_sum::{Ratio, Test};
pub use ratio::{ValueRatio, value_ratio};
pub use timeline::{Bin, Timeline, timeline};
