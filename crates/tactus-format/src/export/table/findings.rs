//! One row per finding.

use tactus_model::finding::{Finding, State};

use super::{Table, columns};

/// The table.
pub const TABLE: Table = Table {
    name: "findings",
    about: "A row for each finding of the audit of each environment, and for each check that could not be \
        known or read there. Checks that found nothing, or do not apply, are left out.",
    columns: COLUMNS,
    rows: |source, take| {
        source.contents.audits.iter().try_for_each(|(environment, audit)| {
            let role = audit.role.to_string();
            let open = |finding: &&Finding| !matches!(finding.state, State::Ok | State::NotApplicable);
            let found = audit.findings.iter().filter(open);
            found.into_iter().try_for_each(|finding| take(&cells(&Row { environment, role: &role, finding })))
        })
    },
};

struct Row<'a> {
    environment: &'a str,
    role: &'a str,
    finding: &'a Finding,
}

columns! { row: Row<'_>;
    /// The environment, with the state of the machine if the plan declares states: `host@cpu-partitioning`.
    environment: Text = row.environment;
    /// Role of the environment: `host`, `guest` or `container`.
    role: Text = row.role;
    /// Id of the check (`tactus explain ID`).
    id: Text = &row.finding.id;
    /// `finding`; `unknowable` (it is not visible from there) or `unreadable` (the read failed). The last two do not
    /// mean that all is well.
    state: Text = row.finding.state.key().to_owned();
    /// Severity of the finding, or of a possible one: `info`, `minor`, `major` or `blocker`.
    severity: Text = row.finding.severity.to_string();
    /// The group of checks.
    family: Text = &row.finding.family;
    /// The problem in a few words.
    title: Text = &row.finding.title;
    /// What was found on this system, in a sentence.
    message: Text = &row.finding.message;
    /// What was expected.
    expected: Text = Some(&row.finding.expected).filter(|text| !text.is_empty());
    /// Why it matters.
    why: Text = Some(&row.finding.why).filter(|text| !text.is_empty());
    /// The fix on this system.
    fix: Text = Some(&row.finding.fix).filter(|text| !text.is_empty());
    /// The risk of the fix.
    risk: Text = Some(&row.finding.risk).filter(|text| !text.is_empty());
}
