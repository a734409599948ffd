//! A measurement that continued in a new start of its environment after that had died.

use serde::{Deserialize, Serialize};

use crate::duration::Nanos;

/// Limit of the restarts of one environment in one scenario.
pub const MOST_RESTARTS: u32 = 100;

/// An environment died while it was measured, and was started again. The later part of the measurement follows the part
/// that had arrived, and the time between them is a gap. Times of a row are in measured time, which does not include
/// the gap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restart {
    /// The end of the last tick that arrived, in ns of measured time.
    pub at_ns: u64,
    /// Number of the first tick after it.
    pub first_tick: u64,
    /// From the arrival of that last tick until it was measured again, in ns of CLOCK_BOOTTIME of the machine that runs the
    /// plan.
    pub gap_ns: u64,
    /// Why it died, in its own words.
    pub reason: String,
}

impl Restart {
    /// A sentence on it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let seconds = |ns: u64| format!("{:.1} s", Nanos(ns).seconds());
        format!(
            "it died after {} ({}), and was started again: measuring continued after {}, a gap that is in no \
                latency",
            seconds(self.at_ns),
            headline(&self.reason),
            seconds(self.gap_ns)
        )
    }
}

/// The first line of an environment's last words, without what announces those after it.
#[must_use]
pub fn headline(words: &str) -> &str {
    let first = words.lines().next().unwrap_or_default().trim_end();
    match first.strip_suffix(':') {
        Some(announces) => announces.rsplit_once(';').map_or(announces, |(before, _)| before),
        None => first,
    }
}

/// How long it was not measured before a moment of measured time, in ns, of what followed `from_ns`.
#[must_use]
pub fn gaps_between(restarts: &[Restart], from_ns: u64, at_ns: u64) -> u64 {
    // A file from another source may name any number of restarts.
    let known = restarts.iter().take(MOST_RESTARTS as usize);
    let before = known.filter(|restart| restart.at_ns >= from_ns && restart.at_ns < at_ns);
    before.fold(0, |sum: u64, restart| sum.saturating_add(restart.gap_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restart(at_ns: u64, gap_ns: u64) -> Restart {
        Restart { at_ns, first_tick: 0, gap_ns, reason: "killed by signal 9".into() }
    }

    #[test]
    fn gaps_before_a_moment_add_up_and_no_number_of_them_is_too_large() {
        let two = [restart(10, 5), restart(20, 7)];
        let before = |at| gaps_between(&two, 0, at);
        assert_eq!([before(10), before(11), before(20), before(21)], [0, 5, 5, 12]);
        assert_eq!(gaps_between(&two, 11, 30), 7, "that of another slice is not counted");
        assert_eq!(gaps_between(&vec![restart(0, u64::MAX); 100_000], 0, 1), u64::MAX);
    }

    #[test]
    fn of_many_lines_the_first_is_said() {
        let words =
            "QEMU was killed by a signal; the last lines of its console:\n[ 1.9] clk: disabled\n[ 2.0] x";
        assert_eq!(headline(words), "QEMU was killed by a signal");
        assert_eq!(headline("exit code 3; QEMU said: no"), "exit code 3; QEMU said: no");
        assert_eq!((headline(""), headline("\n"), headline(":")), ("", "", ""));
    }

    #[test]
    fn what_is_said_has_the_moment_the_reason_and_the_length() {
        let said = restart(12_340_000_000, 4_200_000_000).sentence();
        assert!(said.starts_with("it died after 12.3 s (killed by signal 9)"), "{said}");
        assert!(said.contains("measuring continued after 4.2 s"), "{said}");
    }
}
