//! How long a job may take, whatever is said meanwhile. Pure.

use std::time::Duration;

/// How much longer than planned a job may take. First a part of the plan, for a slow clock (one at less than nine
/// tenths of this machine's rate is refused at the end).
const PART: u32 = 4;
/// Then a fixed time, for beginning and end. A probe waits 30 s for the last wake-up of its threads, and takes some
/// seconds to end its loads and to restore its settings.
const MORE: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 120 });

/// The longest time for a job of the duration `planned`; `times`: how many times longer everything beside its
/// duration takes (on a narrow channel).
pub(crate) fn longest(planned: Duration, times: u32) -> Duration {
    planned.saturating_add(planned / PART).saturating_add(MORE.saturating_mul(times))
}

/// Whether a job that took `took` exceeds its limit.
pub(crate) fn is_over(took: Duration, planned: Duration, times: u32) -> bool {
    took > longest(planned, times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_a_quarter_more_than_planned_and_some_time_for_its_end() {
        let day = Duration::from_secs(86_400);
        assert!(!is_over(day + day / 4, day, 1));
        assert!(is_over(day + day / 4 + MORE + Duration::from_millis(1), day, 1));
        assert!(!is_over(day + day / 4 + 5 * MORE, day, 5));
        assert!(!is_over(Duration::MAX, Duration::MAX, 5), "what never ends is never late");
    }
}
