//! The environments that a disturbance in one of them reaches.

mod entry;
mod judge;
mod leak;
mod leak_word;
mod lock_in;
mod separation_figure;
mod separation_summary;
mod separation_tables;
mod slots;

pub use entry::{ENTRY, Separated};
pub use judge::{FACTOR, Judged, SLACK, Size, judge_fault, judge_load};
pub use leak::{ERROR, separation};
pub use leak_word::{anchor, known};
pub use separation_figure::leaks;
pub use slots::{slot_of, slots};
