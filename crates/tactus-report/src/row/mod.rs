//! One row of a bundle: its figures, its name, its control, its verdict.

mod alike;
mod asked;
mod attribution;
mod audit_summary;
mod blame;
mod broke;
mod complete;
mod conditions;
mod control;
mod entry;
mod grounds;
mod judged;
mod latency_verdict;
mod limit;
mod name;
mod published;
mod quantile;
mod remarks;
mod repeats;
mod runs_verdict;
mod standing;
mod summary;
mod tail;
mod tail_refusal;
mod value_verdict;
mod verdict;

pub use asked::{MOST_ROWS, apart, asked, named, rows_of, state, title_of};
pub use attribution::{Attribution, attribution};
pub use audit_summary::{intended, judged_as, read_nothing, summary};
pub use blame::{blame, owner_name};
pub use broke::broke;
pub use complete::{CYCLES_FOR_A_VERDICT, PassNeeds, bounded_rate, pass_needs, rate_words};
pub(crate) use complete::{fewest_periods, lacking};
pub(crate) use complete::{looked_ns, time_words};
pub use conditions::{audit_anchor, conditions, conditions_by_id};
pub(crate) use control::unproven;
pub use control::{control, control_sentence, controls, controls_of, spared};
pub use entry::{entry, policy};
pub use grounds::{died, never_made};
pub use judged::{Quantity, is_corrected};
pub use limit::{came_of, figure_words, limit_words, taken, taken_words};
pub use name::{
    device, ended_load, inside, load_words, mark, place, scenario_title, title, title_and_evidence, under,
};
pub use published::{PublishedValue, published, published_value};
pub use remarks::{Remark, remarks};
pub use repeats::{Runs, worst_runs};
pub use runs_verdict::verdict_of_runs;
pub use standing::standing;
pub(crate) use summary::ended_early;
pub use summary::{all_found_nothing, figures, found_nothing, has_numbers, left_out, reason, unavailable};
pub use tail::{NoTail, not_covered, provisional, tail};
pub use verdict::{enough, missed, missed_words, verdict};
