//! What the audit found in each environment, on the page.

use serde::Serialize;
use tactus_model::bundle::{Contents, slug};
use tactus_model::finding::{Audit, Finding, Severity, State};

use crate::analysis::conditions;
use crate::audit::{intended, summary};
use crate::units::clean;

/// The audit of one environment.
#[derive(Debug, Serialize)]
pub struct AuditBox {
    anchor: String,
    environment: String,
    conditions: String,
    intended: String,
    summary: String,
    findings: Vec<FindingRow>,
    /// Checks that came to something else: the word, and their names.
    others: Vec<(String, String)>,
}

/// A finding in full.
#[derive(Debug, Serialize)]
struct FindingRow {
    id: String,
    severity: String,
    class: &'static str,
    title: String,
    said: String,
    read: Vec<(String, String)>,
    parts: Vec<(&'static str, String)>,
}

/// Where the audit of an environment stands on the page.
pub fn audit_anchor(environment: &str) -> String {
    format!("audit-{}", slug(environment))
}

/// The audits of all environments.
pub fn audits(contents: &Contents) -> Vec<AuditBox> {
    let of = |(environment, audit): (&String, &Audit)| AuditBox {
        anchor: audit_anchor(environment),
        environment: clean(environment),
        conditions: clean(&conditions(contents, environment).unwrap_or_default()),
        intended: clean(&intended(audit)),
        summary: clean(&summary(audit)),
        findings: audit.found().map(row).collect(),
        others: [State::Unreadable, State::Unknowable, State::Ok, State::NotApplicable]
            .into_iter()
            .map(|state| (state.to_string(), names(audit, state)))
            .filter(|(_, names)| !names.is_empty())
            .collect(),
    };
    contents.audits.iter().map(of).collect()
}

fn names(audit: &Audit, state: State) -> String {
    let names: Vec<&str> =
        audit.findings.iter().filter(|finding| finding.state == state).map(|f| f.id.as_str()).collect();
    clean(&names.join(", "))
}

fn row(finding: &Finding) -> FindingRow {
    let parts = [
        ("expected", &finding.expected),
        ("why", &finding.why),
        ("mend", &finding.mend),
        ("risk", &finding.risk),
    ];
    FindingRow {
        id: clean(&finding.id),
        severity: finding.severity.to_string(),
        class: match finding.severity {
            Severity::Blocker => "fail",
            Severity::Major => "inconclusive",
            Severity::Minor | Severity::Info => "quiet",
        },
        title: clean(&finding.title),
        said: clean(&finding.said),
        read: finding.read.iter().map(|read| (clean(&read.path), clean(&read.value))).collect(),
        parts: parts
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| (name, clean(text)))
            .collect(),
    }
}
