//! Which environments a disturbance in one of them reaches.

mod entry;
mod leak;
mod leak_word;
mod separation_figure;
mod separation_summary;
mod separation_tables;

pub use entry::{ENTRY, Separated};
pub use leak::{ERROR, FACTOR, SLACK, separation, slot_of, slots};
pub use leak_word::{anchor, known};
pub use separation_figure::leaks;
