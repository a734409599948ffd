//! The judgement of a rule.

use tactus_model::finding::{Read, Severity, State};

/// The result of a rule. Both arms are judgements: `?` ends a rule with "not applicable" or "unreadable".
pub type Verdict = Result<Judgement, Judgement>;

/// The judgement of a check on a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The state.
    pub state: State,
    /// Another severity than the check's own.
    pub severity: Option<Severity>,
    /// One sentence about this system.
    pub said: String,
    /// The readings.
    pub read: Vec<Read>,
    /// How to fix it here, where that differs from the check's own words.
    pub fix: Option<String>,
}

/// Most readings of a judgement: a machine of 512 CPUs has eight for each of them.
const MOST_READ: usize = 4096;

impl Judgement {
    /// In this state, for this reason.
    pub(super) fn new(state: State, said: impl Into<String>) -> Self {
        Self { state, severity: None, said: said.into(), read: Vec::new(), fix: None }
    }

    /// It is as it should be.
    #[must_use]
    pub fn ok(said: impl Into<String>) -> Self {
        Self::new(State::Ok, said)
    }

    /// It is not as it should be.
    #[must_use]
    pub fn finding(said: impl Into<String>) -> Self {
        Self::new(State::Finding, said)
    }

    /// It does not concern this system, and why.
    #[must_use]
    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::new(State::NotApplicable, why)
    }

    /// It cannot be known from here, and why.
    #[must_use]
    pub fn unknowable(why: impl Into<String>) -> Self {
        Self::new(State::Unknowable, why)
    }

    /// It could not be read, and why.
    #[must_use]
    pub fn unreadable(why: impl Into<String>) -> Self {
        Self::new(State::Unreadable, why)
    }

    /// [`Judgement::ok`] if `holds`, else [`Judgement::finding`].
    #[must_use]
    pub fn when(holds: bool, good: impl Into<String>, bad: impl Into<String>) -> Self {
        if holds { Self::ok(good) } else { Self::finding(bad) }
    }

    /// The more telling of two reasons to end with: what could not be read, over what is not there.
    #[must_use]
    pub fn or_refused(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if self.state != State::Unreadable => other,
            _ => self,
        }
    }

    /// Adds a reading, up to a limit.
    #[must_use]
    pub fn read(mut self, path: impl Into<String>, value: impl Into<String>) -> Self {
        match self.read.len() {
            0..MOST_READ => self.read.push(Read { path: path.into(), value: value.into() }),
            MOST_READ => self.read.push(Read { path: "more".into(), value: "not listed here".into() }),
            _ => {}
        }
        self
    }

    /// With another severity than the check's own.
    #[must_use]
    pub fn at(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// With a fix for this system.
    #[must_use]
    pub fn fix(mut self, text: impl Into<String>) -> Self {
        self.fix = Some(text.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_readings_is_cut_and_says_so() {
        let found =
            (0..100_000).fold(Judgement::finding("threads"), |found, n| found.read(n.to_string(), "FIFO 1"));
        assert_eq!(found.read.len(), MOST_READ + 1);
        assert_eq!(found.read.last().map(|last| last.value.as_str()), Some("not listed here"));
    }
}
