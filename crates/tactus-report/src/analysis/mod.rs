//! What the numbers say: figures, differences, effects, verdicts.

mod bootstrap;
mod comparison;
mod conditions;
mod control;
mod distribution;
mod document;
mod effect;
mod headline;
mod matrix;
mod paired;
mod proof;
mod published;
mod remarks;
mod systems;
mod tables;
mod timeline;
mod verdict;

pub use bootstrap::{ENOUGH, Interval, Slots};
pub use comparison::{Against, Delta, Figures, Line, comparison, load_words};
pub use conditions::{conditions, conditions_by_id};
pub use control::{control, control_sentence, seen};
pub use distribution::{Bins, distribution};
pub use document::document;
pub use effect::{Change, Claim, Effect, Maximum, Quantity, claims, effect};
pub use headline::headline;
pub use matrix::{left_out, matrices};
pub use paired::{Paired, paired};
pub use proof::{Answer, Proven, Worth, caution, proofs};
pub use published::published;
pub use remarks::{Remark, remarks};
pub use systems::systems;
pub use tables::{Table, tables};
pub use timeline::{Bin, Timeline, timeline};
pub use verdict::{CYCLES_FOR_A_VERDICT, verdict};
