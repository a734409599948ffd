//! Words of figures and verdicts, which are no entries of a table.

/// A word, and what it means.
pub struct Term {
    pub word: &'static str,
    /// Other words for it.
    pub also: &'static [&'static str],
    pub about: &'static str,
}

/// What a table, a verdict or a note speaks of.
pub const TERMS: &[Term] = &[
    Term {
        word: "latency",
        also: &["wake-up"],
        about: "The time from the moment for which a thread had asked to be woken to the moment at which it ran, in us. It is \
what `timer` measures, as cyclictest does.",
    },
    Term {
        word: "max",
        also: &["maximum", "worst-case"],
        about: "The largest latency that was measured. It is exact, and belongs to the time that was measured: a longer run \
can only raise it. `--max 100us` makes a verdict of it; `--tail 100us/24h` asks for a time that was not measured.",
    },
    Term {
        word: "p99",
        also: &["p50", "p99.9", "p99.99", "p99.999", "quantile", "percentile", "median"],
        about: "The latency that 99 of 100 wake-ups did not exceed (p50: half of them; p99.9: 999 of 1000), within 0.1 %. Where \
periods were missed there are two: of the wake-ups that happened, and corrected for missed periods.",
    },
    Term {
        word: "overruns",
        also: &["missed", "corrected", "coordinated-omission", "period"],
        about: "Periods that passed while a wake-up was late by one interval or more: each is a missed period. A row with missed \
periods has them counted as if each had been woken for (corrected for coordinated omission), which is what somebody who \
depends on every period sees.",
    },
    Term {
        word: "evidence",
        also: &["emulated", "bare-metal", "inside-a-vm", "virtual-host", "imported"],
        about: "What kind of machine a row was measured on. Bare metal: its figures are the machine's. Inside a VM (virtual host): \
a verdict holds as seen inside this virtual machine. Emulated: the path works, and its times say nothing about hardware, so that there is \
no verdict. Imported: another tool measured, without a self-test.",
    },
    Term {
        word: "verdict",
        also: &["pass", "fail", "inconclusive"],
        about: "Pass, fail or inconclusive, with its reason. It is inconclusive where too little was measured, where the \
self-test was not passed, or where the place is emulated; then it says what would be enough. Exit status 0, 1 and 3.",
    },
    Term {
        word: "self-test",
        also: &["control", "instrument", "fifo-spinner"],
        about: "Before and after a measurement a disturbance of known length is injected (in a plan: `control`; left out: a SCHED_FIFO \
thread that spins for 1 ms above the measuring one, a `hog`), and must be measured at its size. Without that a row has no verdict.",
    },
    Term {
        word: "exceedance",
        also: &["tail", "bound"],
        about: "The share of wake-ups that were later than a latency. The tail bound is what is exceeded less than once in a time \
that was not measured, from the largest values of blocks of the run; it is provisional where the blocks are too few.",
    },
];

/// The entry of a word, or of another word for it.
pub fn find(word: &str) -> Option<&'static Term> {
    TERMS.iter().find(|term| term.word == word || term.also.contains(&word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_word_has_one_meaning() {
        let mut seen = BTreeSet::new();
        for term in TERMS {
            for word in std::iter::once(&term.word).chain(term.also) {
                assert!(seen.insert(*word), "{word} is there twice");
                assert_eq!(find(word).map(|found| found.word), Some(term.word));
            }
        }
        assert!(find("nonsense").is_none());
    }
}
