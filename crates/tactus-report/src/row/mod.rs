//! What one row of a bundle says: its figures, its name, its control, its verdict.

mod alike;
mod asked;
mod attribution;
mod audit_summary;
mod complete;
mod conditions;
mod control;
mod entry;
mod grounds;
mod judged;
mod latency_verdict;
mod name;
mod published;
mod remarks;
mod standing;
mod summary;
mod tail;
mod value_verdict;
mod verdict;

pub use asked::{MOST_ROWS, apart, asked, is_first_run, rows_of, state, title_of};
pub use attribution::{Attribution, attribution};
pub use audit_summary::{intended, summary};
pub use complete::{bounded_rate, rate_words};
pub(crate) use complete::{fewest_periods, lacking};
pub use conditions::{audit_anchor, conditions, conditions_by_id};
pub use control::{control, control_sentence, controls};
pub use entry::entry;
pub use grounds::never_made;
pub use judged::{Quantity, is_corrected};
pub use name::{device, inside, load_words, place, scenario_title, title};
pub use published::{PublishedValue, published, published_value};
pub use remarks::{Remark, remarks};
pub use standing::{CYCLES_FOR_A_VERDICT, standing};
pub use summary::{figures, has_numbers, left_out, reason};
pub use tail::{NoTail, provisional, tail};
pub use verdict::{enough, verdict};
