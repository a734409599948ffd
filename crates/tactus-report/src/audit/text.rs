//! An audit in the terminal.

use tactus_model::finding::{Finding, Severity, State};

use super::{Audited, intended, summary};
use crate::part::Tone;
use crate::render::text::{Page, Style};
use crate::units::clean;

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// One line for a finding.
    Brief,
    /// Findings in full, everything else by name.
    Findings,
    /// Everything in full.
    All,
}

/// Column of the text behind the words `read`, `why`, `mend`.
const INDENT: &str = "          ";

/// Audits for a terminal: findings by family, worst first, and the summary last.
#[must_use]
pub fn text(audits: &[Audited<'_>], detail: Detail, style: Style) -> String {
    let mut page = Page::new(style);
    for (n, audited) in audits.iter().enumerate() {
        if n > 0 {
            page.gap();
        }
        one(&mut page, audited, detail);
    }
    page.out
}

fn one(page: &mut Page, audited: &Audited<'_>, detail: Detail) {
    let audit = audited.audit;
    let role = if audit.role.to_string() == audited.environment {
        String::new()
    } else {
        format!(" as a {}", audit.role)
    };
    page.item(
        "audit of ",
        Some(Tone::Heading),
        &format!("{}{role}: {}", audited.environment, intended(audit)),
    );
    for family in families(audit.found()) {
        page.heading(&clean(family));
        for finding in audit.found().filter(|finding| finding.family == family) {
            write(page, finding, detail);
        }
    }
    let rest = [State::Unreadable, State::Unknowable, State::Ok, State::NotApplicable];
    for state in rest {
        let of: Vec<&Finding> = audit.findings.iter().filter(|finding| finding.state == state).collect();
        if of.is_empty() || detail == Detail::Brief {
            continue;
        }
        page.gap();
        if detail == Detail::All || state == State::Unreadable {
            for finding in of {
                page.item(
                    &format!("{state:<15}"),
                    Some(Tone::Quiet),
                    &format!("{}: {}", finding.id, finding.said),
                );
            }
        } else {
            let names: Vec<&str> = of.iter().map(|finding| finding.id.as_str()).collect();
            page.item(&format!("{state}: "), Some(Tone::Quiet), &names.join(", "));
        }
    }
    page.gap();
    let tone = if audit.worst() == Some(Severity::Blocker) { Tone::Bad } else { Tone::Heading };
    page.item(&format!("{}: ", clean(audited.environment)), Some(tone), &summary(audit));
}

/// Families in the order in which the worst finding of each comes.
fn families<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<&'a str> {
    let mut families = Vec::new();
    for finding in findings {
        if !families.contains(&finding.family.as_str()) {
            families.push(finding.family.as_str());
        }
    }
    families
}

fn write(page: &mut Page, finding: &Finding, detail: Detail) {
    let tone = match finding.severity {
        Severity::Blocker => Tone::Bad,
        Severity::Major => Tone::Doubt,
        Severity::Minor | Severity::Info => Tone::Quiet,
    };
    let lead = format!("{:<9} ", finding.severity);
    if detail == Detail::Brief {
        page.item(&lead, Some(tone), &format!("{}: {}", finding.id, finding.said));
        return;
    }
    page.item(&lead, Some(tone), &format!("{}: {}", finding.id, finding.title));
    page.item(INDENT, None, &finding.said);
    for read in &finding.read {
        let value = if read.value.is_empty() { "(empty)" } else { &read.value };
        page.item(&format!("{INDENT}read      "), None, &format!("{} = {value}", read.path));
    }
    for (name, text) in [
        ("expected", &finding.expected),
        ("why", &finding.why),
        ("mend", &finding.mend),
        ("risk", &finding.risk),
    ] {
        if !text.is_empty() {
            page.item(&format!("{INDENT}{name:<10}"), None, text);
        }
    }
}
