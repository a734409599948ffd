//! Which of a guest's largest latencies are the host's: times in which the thread of the virtual CPU was kept
//! from running, by the host's own scheduling record of it.

use tactus_model::bundle::{Contents, RowResult, Wait, Waits};
use tactus_model::message::{Note, Outlier};

use crate::units::latency_or_none;

/// How many of the largest latencies are looked at.
const LARGEST: usize = 10;
/// How much later than it was measured a tick may arrive, in ns: the two clocks are compared by it.
const LATE_NS: i64 = 20_000_000;

/// The host's part in a guest's largest latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// How many of the largest latencies were looked at.
    pub of: usize,
    /// How many of them the host explains: meanwhile the thread was kept from running for at least half of
    /// the latency.
    pub host: usize,
    /// The largest of those, in ns.
    pub largest_ns: u64,
    /// How long the thread was kept from running then, in ns.
    pub waited_ns: u64,
}

/// The host's part in a row's largest latencies; `None` where the host has no record of its CPUs' threads, or
/// nothing was measured.
#[must_use]
pub fn attribution(result: &RowResult) -> Option<Attribution> {
    let waits = result.waits.as_ref()?;
    let mut outliers: Vec<&Outlier> = result.series().iter().flat_map(|series| &series.outliers).collect();
    outliers.sort_by_key(|outlier| std::cmp::Reverse(outlier.value_ns));
    outliers.truncate(LARGEST);
    let explained: Vec<(u64, u64)> = outliers
        .iter()
        .filter_map(|outlier| Some((outlier.value_ns, explanation(outlier, waits)?)))
        .collect();
    let (largest_ns, waited_ns) = explained.first().copied().unwrap_or((0, 0));
    (!outliers.is_empty()).then_some(Attribution {
        of: outliers.len(),
        host: explained.len(),
        largest_ns,
        waited_ns,
    })
}

/// How long the thread was kept from running while a latency lasted, in ns, where that is half of it or more.
fn explanation(outlier: &Outlier, waits: &Waits) -> Option<u64> {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let slack = LATE_NS.saturating_add(signed(waits.look_ns));
    let (to, value) = (signed(outlier.at_ns), signed(outlier.value_ns));
    let meets = |wait: &&Wait| {
        let from = wait.at_ns.saturating_sub(signed(wait.waited_ns));
        wait.cpu == outlier.series.cpu
            && from <= to.saturating_add(slack)
            && wait.at_ns.saturating_add(slack) >= to.saturating_sub(value)
    };
    let longest = waits.longest.iter().filter(meets).map(|wait| wait.waited_ns).max()?;
    (longest >= outlier.value_ns / 2).then_some(longest)
}

/// The same in sentences: one for the single measurement of an environment, one for all where it has several.
#[must_use]
pub fn attribution_notes(contents: &Contents) -> Vec<(String, Note)> {
    let mut places: Vec<(&str, Vec<(&str, Attribution)>)> = Vec::new();
    for result in contents.rows.iter().map(|row| &row.result) {
        let Some(found) = attribution(result) else { continue };
        match places.iter_mut().find(|(place, _)| *place == result.environment) {
            Some((_, known)) => known.push((&result.name, found)),
            None => places.push((&result.environment, vec![(&result.name, found)])),
        }
    }
    let note = |(place, found): (&str, Vec<(&str, Attribution)>)| {
        let text = match found.as_slice() {
            [(name, one)] => single(name, *one),
            all => several(all),
        };
        (place.to_owned(), Note::info(text))
    };
    places.into_iter().map(note).collect()
}

const RECORD: &str = "the host's scheduling record of its vCPU threads";

fn single(name: &str, Attribution { of, host, largest_ns, waited_ns }: Attribution) -> String {
    if host == 0 {
        return format!(
            "{name}: {RECORD} explains none of the {of} largest latencies: they are the guest's own, or its hypervisor's"
        );
    }
    format!(
        "{name}: {host} of the {of} largest latencies are the host's, and not the guest kernel's: by {RECORD} the \
         thread was kept from running meanwhile (of the largest of them, {}, for {})",
        latency_or_none(Some(largest_ns)),
        latency_or_none(Some(waited_ns)),
    )
}

fn several(all: &[(&str, Attribution)]) -> String {
    let (of, host) = all.iter().fold((0, 0), |(of, host), (_, one)| (of + one.of, host + one.host));
    let each: Vec<String> = all
        .iter()
        .filter(|(_, one)| one.host > 0)
        .map(|(name, one)| format!("{} in {name}", one.host))
        .collect();
    let Some((_, largest)) = all.iter().filter(|(_, one)| one.host > 0).max_by_key(|(_, one)| one.largest_ns)
    else {
        return format!(
            "{RECORD} explains none of the {of} largest latencies ({} measurements): they are the guest's own, or \
             its hypervisor's",
            all.len()
        );
    };
    format!(
        "{host} of the {of} largest latencies of its {} measurements are the host's, and not the guest kernel's: by \
         {RECORD} the thread was kept from running meanwhile (of the largest of them, {}, for {}): {}",
        all.len(),
        latency_or_none(Some(largest.largest_ns)),
        latency_or_none(Some(largest.waited_ns)),
        each.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use tactus_model::series::SeriesKey;

    use super::*;

    fn outlier(cpu: u32, at_ms: u64, value_ms: u64) -> Outlier {
        let series = SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() };
        Outlier { activity: 0, series, at_ns: at_ms * 1_000_000, value_ns: value_ms * 1_000_000 }
    }

    fn waits(longest: &[(u32, i64, u64)]) -> Waits {
        let wait = |(cpu, at_ms, ms): &(u32, i64, u64)| Wait {
            cpu: *cpu,
            at_ns: at_ms * 1_000_000,
            waited_ns: ms * 1_000_000,
            stopped: false,
        };
        Waits { look_ns: 10_000_000, totals: Vec::new(), longest: longest.iter().map(wait).collect() }
    }

    #[test]
    fn a_latency_is_the_hosts_when_the_thread_waited_for_most_of_it() {
        let waits = waits(&[(1, 1_005, 50)]);
        assert_eq!(explanation(&outlier(1, 1_000, 51), &waits), Some(50_000_000));
        assert_eq!(explanation(&outlier(0, 1_000, 51), &waits), None, "another CPU's thread");
        assert_eq!(explanation(&outlier(1, 2_000, 51), &waits), None, "at another time");
        assert_eq!(explanation(&outlier(1, 1_000, 150), &waits), None, "less than half of it");
    }

    #[test]
    fn absurd_times_are_no_overflow() {
        let waits = waits(&[(1, i64::MIN / 1_000_000, u64::MAX / 1_000_000), (1, i64::MAX / 1_000_000, 1)]);
        let outlier = Outlier { at_ns: u64::MAX, value_ns: u64::MAX, ..outlier(1, 0, 0) };
        let _ = explanation(&outlier, &waits);
    }
}
