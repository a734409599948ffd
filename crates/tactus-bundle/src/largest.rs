//! Limits the largest latencies of a row. A report compares each of them with each wait of a virtual CPU, and
//! names the threads of a trace again for each of their moments. A run keeps a few of them; a stranger's
//! bundle may have more.

use std::cmp::Reverse;

use tactus_model::bundle::{RowResult, Wait, Waits};
use tactus_model::message::Outlier;
use tactus_model::outcome::Outcome;
use tactus_model::trace::LONGEST_THREAD;

use super::limits::{OUTLIERS, WAITS};
use super::names::cut;

/// Leaves of them what a run keeps, and says what is left out.
pub(crate) fn limit(file: &str, row: &mut RowResult, damage: &mut Vec<String>) {
    let (mut more, mut traces) = (0, 0);
    if let Outcome::Latency(own) = &mut row.outcome {
        for outliers in own.series.iter_mut().map(|series| &mut series.outliers) {
            more += largest(outliers, OUTLIERS, |outlier: &Outlier| outlier.value_ns);
            let cut = outliers.iter_mut().filter_map(|outlier| outlier.trace.as_mut()?.limit().then_some(()));
            traces += cut.count();
        }
    }
    let (waits, names) = row.waits.as_mut().map_or((0, 0), limit_waits);
    for (count, what) in [
        (more, "of its largest latencies exceed the number that a run keeps, and are left out"),
        (traces, "of its traces are too long, and are cut"),
        (waits, "of its waits exceed the number that a run keeps, and are left out"),
        (names, "names of its waits are too long, and are cut"),
    ] {
        if count > 0 {
            damage.push(format!("{file}: {count} {what}"));
        }
    }
}

/// How many waits, and names of them, there were too many of.
fn limit_waits(waits: &mut Waits) -> (usize, usize) {
    let Waits { look_ns: _, totals: _, longest, cut_ns } = waits;
    let left_out = largest(longest, WAITS, |wait: &Wait| wait.waited_ns);
    if left_out > 0 {
        // A wait that is left out here may explain a latency: a search must not conclude that there was no
        // wait.
        *cut_ns = (*cut_ns).max(longest.last().map(|wait| wait.waited_ns));
    }
    let named = longest.iter_mut().filter_map(|wait| wait.by.as_mut());
    (left_out, named.filter_map(|name| cut(name, LONGEST_THREAD)).count())
}

/// Keeps the `most` largest; returns how many are left out. If all fit, they keep their order.
fn largest<T>(all: &mut Vec<T>, most: usize, size: impl Fn(&T) -> u64) -> usize {
    let more = all.len().saturating_sub(most);
    if more > 0 {
        all.sort_by_key(|one| Reverse(size(one)));
        all.truncate(most);
        all.shrink_to_fit();
    }
    more
}
