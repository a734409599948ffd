//! The conditions under which something was measured: what the audit found there.

use tactus_model::bundle::{Contents, slug};
use tactus_model::finding::{Audit, Finding, Severity, State};

/// How many findings are named before the rest is counted.
const NAMED: usize = 3;

/// "3 blockers, 9 major: CPUs are not isolated; interrupts arrive there; ... (7 more)". `None` where there was no
/// audit.
#[must_use]
pub fn conditions(contents: &Contents, environment: &str) -> Option<String> {
    Some(sentence(audited(contents, environment)?, "; ", |finding| &finding.title))
}

/// The same with the ids of the checks: "3 blockers, 9 major: isolcpus, irq-affinity, smt, 9 more".
#[must_use]
pub fn conditions_by_id(contents: &Contents, environment: &str) -> Option<String> {
    Some(sentence(audited(contents, environment)?, ", ", |finding| &finding.id))
}

fn audited<'a>(contents: &'a Contents, environment: &str) -> Option<&'a Audit> {
    contents.audits.get(environment).filter(|audit| judges(audit))
}

/// Whether anything could be judged: nothing was read in an environment without a probe, and "nothing found"
/// would sound like praise.
pub(super) fn judges(audit: &Audit) -> bool {
    audit.findings.iter().any(|finding| matches!(finding.state, State::Ok | State::Finding))
}

/// Where the audit of an environment stands on a page.
#[must_use]
pub fn audit_anchor(environment: &str) -> String {
    format!("audit-{}", slug(environment))
}

fn sentence(audit: &Audit, between: &str, name: impl Fn(&Finding) -> &str) -> String {
    let grave = || audit.found().filter(|finding| finding.severity >= Severity::Major);
    let blockers = grave().filter(|finding| finding.severity == Severity::Blocker).count();
    let majors = grave().count() - blockers;
    let plural = if blockers == 1 { "" } else { "s" };
    let counts = match (blockers, majors, audit.found().count()) {
        (0, 0, 0) => return "nothing found".into(),
        (0, 0, minor) => return format!("no blocker or major finding; {minor} minor or info"),
        (0, majors, _) => format!("{majors} major"),
        (blockers, 0, _) => format!("{blockers} blocker{plural}"),
        (blockers, majors, _) => format!("{blockers} blocker{plural}, {majors} major"),
    };
    // Worst first, as the audit sorts them.
    let mut names: Vec<String> = grave().take(NAMED).map(|finding| name(finding).to_owned()).collect();
    let more = (blockers + majors).saturating_sub(names.len());
    if more > 0 {
        names.push(format!("{more} more"));
    }
    format!("{counts}: {}", names.join(between))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Isolation, Role};

    use super::*;

    fn audit(severities: &[Severity]) -> Audit {
        let finding = |(n, severity): (usize, &Severity)| Finding {
            id: format!("check-{n}"),
            state: State::Finding,
            severity: *severity,
            family: "Kernel".into(),
            title: format!("trouble {n}"),
            message: String::new(),
            read: Vec::new(),
            expected: String::new(),
            why: String::new(),
            fix: String::new(),
            risk: String::new(),
        };
        Audit {
            role: Role::Host,
            isolation: Isolation::default(),
            findings: severities.iter().enumerate().map(finding).collect(),
            actions: Vec::new(),
        }
    }

    #[test]
    fn an_environment_of_which_nothing_was_read_has_no_conditions() {
        let of = |state: State| {
            let mut audit = audit(&[Severity::Info]);
            audit.findings[0].state = state;
            judges(&audit)
        };
        assert!(!of(State::NotApplicable) && !of(State::Unreadable) && !of(State::Unknowable));
        assert!(of(State::Ok) && of(State::Finding));
    }

    #[test]
    fn the_worst_are_named_and_the_rest_is_counted() {
        use Severity::{Blocker, Info, Major, Minor};
        let sentence = |audit: &Audit| sentence(audit, "; ", |finding| &finding.title);
        assert_eq!(sentence(&audit(&[])), "nothing found");
        assert_eq!(sentence(&audit(&[Minor])), "no blocker or major finding; 1 minor or info");
        assert_eq!(sentence(&audit(&[Minor, Info])), "no blocker or major finding; 2 minor or info");
        assert_eq!(sentence(&audit(&[Blocker])), "1 blocker: trouble 0");
        assert_eq!(
            sentence(&audit(&[Blocker, Blocker, Major, Major, Minor])),
            "2 blockers, 2 major: trouble 0; trouble 1; trouble 2; 1 more"
        );
    }
}
