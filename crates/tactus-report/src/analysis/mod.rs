//! What the numbers say: figures, differences, effects, verdicts.

mod bootstrap;
mod comparison;
mod control;
mod distribution;
mod document;
mod effect;
mod headline;
mod published;
mod remarks;
mod timeline;
mod verdict;

pub use bootstrap::{ENOUGH, Interval, Slots};
pub use comparison::{Against, Delta, Figures, Line, comparison, load_words};
pub use control::{control, control_sentence, seen};
pub use distribution::{Bins, distribution};
pub use document::document;
pub use effect::{Change, Claim, Effect, Maximum, Quantity, claims, effect};
pub use headline::headline;
pub use published::published;
pub use remarks::{Remark, remarks};
pub use timeline::{Bin, Timeline, timeline};
pub use verdict::{CYCLES_FOR_A_VERDICT, verdict};
