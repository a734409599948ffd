//! The document of `tactus audit --json`: a stable contract.

use std::collections::BTreeMap;

use serde::Serialize;
use tactus_model::bundle::{FORMAT, Format};
use tactus_model::finding::{Action, By, Finding, Role, State};

use super::Audited;

/// Audits as a document.
#[derive(Debug, Serialize)]
pub struct AuditDocument<'a> {
    /// Version of this contract: that of the bundles which this tactus writes.
    format: Format,
    /// One entry per environment.
    audits: Vec<Entry<'a>>,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    environment: &'a str,
    role: Role,
    /// CPUs for real-time work, as a cpulist.
    isolated: String,
    housekeeping: String,
    /// How the CPUs for real-time work were chosen.
    by: By,
    /// How many findings of each severity, and checks of each other state.
    summary: BTreeMap<String, usize>,
    /// Actions that fix the findings; empty in audits of older versions.
    actions: &'a [Action],
    findings: &'a [Finding],
}

/// The document of audits.
#[must_use]
pub fn document<'a>(audits: &[Audited<'a>]) -> AuditDocument<'a> {
    let entry = |audited: &Audited<'a>| {
        let audit = audited.audit;
        let mut summary = BTreeMap::new();
        for finding in &audit.findings {
            let word = match finding.state {
                State::Finding => finding.severity.to_string(),
                state => state.key().to_owned(),
            };
            *summary.entry(word).or_default() += 1;
        }
        Entry {
            environment: audited.environment,
            role: audit.role,
            isolated: audit.isolation.isolated.to_string(),
            housekeeping: audit.isolation.housekeeping.to_string(),
            by: audit.isolation.by,
            summary,
            actions: &audit.actions,
            findings: &audit.findings,
        }
    };
    AuditDocument { format: FORMAT, audits: audits.iter().map(entry).collect() }
}
