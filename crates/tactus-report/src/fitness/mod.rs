//! Fitness of an environment for control applications: classes of them, the rule, and the limits of the
//! evidence. `docs/design/fitness.md` says why.

mod classes;
mod judge;
mod rule;

pub use classes::{ClassError, asked_classes, built_in, classes_of, joined, read};
pub use judge::{COMPUTES, LeftOut, entries, left_out};
pub use rule::{Held, Room, held};
