//! Words of figures and verdicts, which are no entries of a table.

/// A word, and what it means.
pub struct Term {
    pub word: &'static str,
    /// Other words for it.
    pub also: &'static [&'static str],
    pub about: &'static str,
}

/// The terms in tables, verdicts and notes.
pub const TERMS: &[Term] = &[
    Term {
        word: "latency",
        also: &["wake-up"],
        about: "The time from the moment when a thread should wake to the moment when it runs, in us. \
`timer` measures it, as cyclictest does.",
    },
    Term {
        word: "max",
        also: &["maximum", "worst-case"],
        about: "The largest measured latency. It is exact, and holds only for the time that was measured: a \
longer run can only raise it. `--max 100us` makes a verdict of it; `--tail 100us/24h` is a limit for a \
longer time than was measured.",
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
        about: "Periods that passed while a wake-up was late by one interval or more: each is a missed \
period. In a row with missed periods each of them counts as a late wake-up (corrected for coordinated \
omission), as an application that depends on every period would see it.",
    },
    Term {
        word: "evidence",
        also: &["emulated", "bare-metal", "inside-a-vm", "virtual-host", "imported"],
        about: "The kind of machine that a row was measured on. Bare metal: its figures are the machine's. \
Inside a VM (virtual host): a verdict holds as seen inside this virtual machine. Emulated: the path works, \
but its times say nothing about hardware, so there is no verdict. Imported: another tool measured, without a \
self-test.",
    },
    Term {
        word: "verdict",
        also: &["pass", "fail", "inconclusive"],
        about: "Pass, fail or inconclusive, with its reason. It is inconclusive if too little was measured, \
the self-test did not pass, or the environment is emulated; the reason then states what would be enough. \
Exit code 0, 1 and 3.",
    },
    Term {
        word: "self-test",
        also: &["control", "instrument", "fifo-spinner"],
        about: "Before and after a measurement tactus injects a disturbance of known length, which must be \
measured at its size. A plan chooses it with `control`; the default is a `hog`: a SCHED_FIFO thread that \
spins for 1 ms above the measuring one. Without a passed self-test a row has no verdict.",
    },
    Term {
        word: "exceedance",
        also: &["tail", "bound"],
        about: "The share of wake-ups that were later than a latency. The tail bound is exceeded less than \
once in a time that is longer than the measurement. It follows from the largest values of blocks of the run, \
and is provisional if the blocks are too few.",
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
