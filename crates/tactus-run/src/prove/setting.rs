//! One setting on one system: what it changes, and what it is compared with.

use tactus_audit::{self as audit, Check, Subject};
use tactus_model::change::{Change, Effect, Target};

use super::default_value::default_value;

/// A setting that can be made and taken back while the system runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The changes of the check.
    pub with: Vec<Change>,
    /// The changes that unset it.
    pub without: Vec<Change>,
    /// Whether it is made here already.
    pub holds: bool,
}

/// Why a setting has no worth that could be found out here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No check has that name.
    #[error("there is no check `{0}`")]
    Unknown(String),
    /// It is nothing that is set while the system runs.
    #[error("it cannot be set while the system runs: {0}")]
    NotAtRunTime(String),
    /// This system has nothing to set.
    #[error("this system has nothing to set for it: {0}")]
    Nothing(String),
    /// It takes CPUs away from what runs.
    #[error("it takes away CPUs on which the measurement runs")]
    TakesCpus,
    /// It is made, and what it would be otherwise is not known.
    #[error("it is set already, but its default is unknown: unset it and prove again")]
    NoDefault,
}

/// Changes a probe can make and take back.
fn at_run_time(change: &Change) -> bool {
    let can = matches!(change.target, Target::File { .. } | Target::Scheduling(_) | Target::Affinity(_));
    can && change.effect == Effect::Runtime
}

/// The setting of a check on this system.
///
/// # Errors
/// Why it cannot be tested here.
pub fn find(id: &str, subject: &Subject<'_>) -> Result<Found, SettingError> {
    let check = audit::find(id).ok_or_else(|| SettingError::Unknown(id.to_owned()))?;
    let all = (check.changes)(subject);
    let with: Vec<Change> = all.iter().filter(|change| at_run_time(change)).cloned().collect();
    if with.is_empty() {
        return Err(match all.first() {
            Some(change) => SettingError::NotAtRunTime(change.target.to_string()),
            None => SettingError::Nothing(judged(check, subject)),
        });
    }
    let takes = |change: &Change| matches!(&change.target, Target::File { path, .. } if path.ends_with("/smt/control"));
    if with.iter().any(takes) {
        return Err(SettingError::TakesCpus);
    }
    let holds = with.iter().all(Change::holds);
    let back = |change: &Change| {
        let then = if holds { default_value(&change.target).map(str::to_owned) } else { change.now.clone() };
        then.map(|then| Change { now: Some(change.then.clone()), then, ..change.clone() })
    };
    let without: Option<Vec<Change>> = with.iter().map(back).collect();
    let without = without.ok_or(SettingError::NoDefault)?;
    if holds && without.iter().all(Change::holds) {
        return Err(SettingError::NoDefault);
    }
    Ok(Found { with, without, holds })
}

/// Why a check has nothing to set: what it says of this system.
fn judged(check: &Check, subject: &Subject<'_>) -> String {
    match (check.judge)(subject) {
        Ok(judgement) | Err(judgement) => judgement.said,
    }
}

/// The changes of a word of a scenario's `settings`: `thp`, or `!thp` for what it is without.
///
/// # Errors
/// Why it cannot be made here.
pub fn changes(word: &str, subject: &Subject<'_>) -> Result<Vec<Change>, SettingError> {
    match word.strip_prefix('!') {
        Some(id) => find(id, subject).map(|found| found.without),
        None => find(word, subject).map(|found| found.with),
    }
}

impl Found {
    /// The comparison in words: the first of its settings, and the number of the others.
    #[must_use]
    pub fn what(&self) -> String {
        let pair = self.with.iter().zip(&self.without).find(|(with, without)| with.then != without.then);
        let Some((with, without)) = pair else { return String::new() };
        let (tuned, other) = if self.holds { ("tuned, now", "default") } else { ("tuned", "now") };
        let more = self.with.len() - 1;
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("{}: compares {} ({tuned}) with {} ({other}){more}", with.target, with.then, without.then)
    }
}

#[cfg(test)]
mod tests {
    use tactus_audit::Intent;
    use tactus_model::facts::Facts;
    use tactus_model::finding::Role;

    use super::*;

    const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    fn found(text: &str) -> Result<Found, SettingError> {
        let mut facts = Facts::default();
        facts.keep(THP, text);
        let intent = Intent::default();
        find("thp", &Subject::new(&facts, Role::Host, &intent))
    }

    #[test]
    fn a_setting_that_is_not_made_is_compared_with_what_is_now() {
        let found = found("always [madvise] never").unwrap();
        assert!(!found.holds);
        assert_eq!((found.with[0].then.as_str(), found.without[0].then.as_str()), ("never", "madvise"));
        assert_eq!(found.what(), format!("{THP}: compares never (tuned) with madvise (now)"));
    }

    #[test]
    fn a_setting_that_is_made_is_compared_with_the_default_of_the_kernel() {
        let found = found("always madvise [never]").unwrap();
        assert!(found.holds);
        assert_eq!(found.without[0].then, "always");
        assert_eq!(found.what(), format!("{THP}: compares never (tuned, now) with always (default)"));
    }

    #[test]
    fn what_cannot_be_tested_says_why() {
        let facts = Facts::default();
        let intent = Intent::default();
        let subject = Subject::new(&facts, Role::Host, &intent);
        assert_eq!(find("nonsense", &subject), Err(SettingError::Unknown("nonsense".into())));
        assert!(matches!(find("thp", &subject), Err(SettingError::Nothing(_))));
        assert!(changes("!nonsense", &subject).is_err());
    }
}
