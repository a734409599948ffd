//! An audit in a line or two.

use tactus_model::finding::{Audit, By, Severity, State};

use super::conditions::judges;

/// "4 blockers, 12 major, 9 minor, 3 info; 23 ok, 30 not visible here, 4 read failed, 40 not applicable".
#[must_use]
pub fn summary(audit: &Audit) -> String {
    let mut found = Vec::new();
    for severity in [Severity::Blocker, Severity::Major, Severity::Minor, Severity::Info] {
        let count = audit.found().filter(|finding| finding.severity == severity).count();
        let plural = if severity == Severity::Blocker && count != 1 { "s" } else { "" };
        if count > 0 {
            found.push(format!("{count} {severity}{plural}"));
        }
    }
    let found = match &found[..] {
        [] if read_nothing(audit) => "nothing could be judged, because no reading of a check is there".into(),
        [] => "nothing found".into(),
        found => found.join(", "),
    };
    let others: Vec<String> = [State::Ok, State::Unknowable, State::Unreadable, State::NotApplicable]
        .into_iter()
        .map(|state| (audit.count(state), state))
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    if others.is_empty() { found } else { format!("{found}; {}", others.join(", ")) }
}

/// Whether checks lacked their readings and no other check could be judged: "nothing found" would be praise.
#[must_use]
pub fn read_nothing(audit: &Audit) -> bool {
    !judges(audit) && audit.count(State::Unreadable) + audit.count(State::Unknowable) > 0
}

/// The role in which an environment is judged, if its name does not say it: " as a guest".
#[must_use]
pub fn judged_as(environment: &str, audit: &Audit) -> String {
    let role = audit.role.to_string();
    if role == environment { String::new() } else { format!(" as a {role}") }
}

/// "real-time CPUs 2-7 (isolated at boot), housekeeping 0-1".
#[must_use]
pub fn intended(audit: &Audit) -> String {
    let isolation = &audit.isolation;
    let by = match isolation.by {
        By::Asked => "as asked",
        By::Boot => "isolated at boot",
        By::Cpuset => "isolated by a cpuset",
        By::Intended => "requested at boot, but not in effect",
        By::Assumed => "assumed, because no CPU is isolated: --isolate names others",
    };
    let none = |cpus: &tactus_model::CpuSet| if cpus.is_empty() { "none".into() } else { cpus.to_string() };
    format!(
        "real-time CPUs {} ({by}), housekeeping {}",
        none(&isolation.isolated),
        none(&isolation.housekeeping)
    )
}
