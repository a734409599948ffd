//! What one row of a bundle says: its figures, its name, its control, its verdict.

mod asked;
mod attribution;
mod audit_summary;
mod conditions;
mod control;
mod entry;
mod headline;
mod name;
mod published;
mod remarks;
mod summary;
mod verdict;

pub use asked::{apart, asked, rows_of, state};
pub use attribution::{Attribution, attribution};
pub use audit_summary::{intended, summary};
pub use conditions::{audit_anchor, conditions, conditions_by_id};
pub use control::{control, control_sentence, controls};
pub use entry::entry;
pub use headline::headline;
pub use name::{inside, load_words, title};
pub use published::published;
pub use remarks::{Remark, remarks};
pub use summary::{figures, left_out, reason};
pub use verdict::{CYCLES_FOR_A_VERDICT, verdict};
