//! An audit in the terminal.

use std::fmt::Write;

use tactus_model::finding::{Audit, Finding, Severity, State};

use super::{Audited, intended, judged_as, summary};
use crate::part::Tone;
use crate::render::text::{Page, Style};
use crate::units::clean;

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The most effective actions, and a line for each other finding: one screen.
    Brief,
    /// The same, and why each other check has no finding.
    BriefAll,
    /// Findings in full, everything else by name.
    Findings,
    /// Everything in full.
    All,
}

impl Detail {
    fn is_brief(self) -> bool {
        matches!(self, Self::Brief | Self::BriefAll)
    }
}

/// Column of the text behind the words `read`, `why`, `fix`.
const INDENT: &str = "          ";

/// Audits for a terminal: what fixes most first, then findings, worst first, and the summary last.
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
    let role = judged_as(audited.environment, audit);
    page.item(
        "audit of ",
        Some(Tone::Heading),
        &format!("{}{role}: {}", audited.environment, intended(audit)),
    );
    if detail.is_brief() {
        brief(page, audit, detail);
    } else {
        actions(page, audit, detail);
        for finding in audit.found() {
            page.gap();
            write(page, finding);
        }
    }
    let rest = [State::Unreadable, State::Unknowable, State::Ok, State::NotApplicable];
    for state in rest {
        let of: Vec<&Finding> = audit.findings.iter().filter(|finding| finding.state == state).collect();
        if of.is_empty() || detail == Detail::Brief {
            continue;
        }
        page.gap();
        if matches!(detail, Detail::All | Detail::BriefAll) || state == State::Unreadable {
            for finding in of {
                page.item(
                    &format!("{state:<17}"),
                    Some(Tone::Quiet),
                    &format!("{}: {}", finding.id, finding.message),
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

/// The brief form. A finding that stands alone in an action gets a separate line, and so does a blocker.
fn brief(page: &mut Page, audit: &Audit, detail: Detail) {
    let said = |page: &mut Page, finding: &Finding| {
        let lead = format!("{:<9} ", finding.severity);
        page.item(&lead, Some(tone(finding.severity)), &format!("{}: {}", finding.id, finding.message));
    };
    if audit.actions.is_empty() {
        // A bundle of an older version, or a part of the checks.
        audit.found().for_each(|finding| said(page, finding));
        return;
    }
    let alone = |finding: &Finding| {
        audit.actions.iter().any(|action| action.fixes.len() == 1 && action.fixes.contains(&finding.id))
    };
    actions(page, audit, detail);
    let is_told = |finding: &&Finding| {
        finding.severity == Severity::Blocker || (alone(finding) && finding.severity > Severity::Info)
    };
    let told: Vec<&Finding> = audit.found().filter(is_told).collect();
    // The heading takes the place of an empty line: all of it fits one screen.
    if told.is_empty() {
        page.gap();
    } else {
        page.line("Blockers, and findings that need a separate fix (`tactus explain ID`):");
    }
    told.into_iter().for_each(|finding| said(page, finding));
}

/// Actions that fix several findings, or have a command, in the order of the audit.
fn actions(page: &mut Page, audit: &Audit, detail: Detail) {
    let told = audit.actions.iter().filter(|action| action.fixes.len() > 1 || !action.command.is_empty());
    for (n, action) in told.enumerate() {
        if n == 0 {
            page.gap();
        }
        let of =
            |id: &String| audit.found().find(|finding| finding.id == *id).map(|finding| finding.severity);
        let counts: Vec<String> = [Severity::Blocker, Severity::Major, Severity::Minor, Severity::Info]
            .into_iter()
            .map(|severity| (severity, action.fixes.iter().filter(|id| of(id) == Some(severity)).count()))
            .filter(|(_, count)| *count > 0)
            .map(|(severity, count)| {
                let s = if severity == Severity::Blocker && count > 1 { "s" } else { "" };
                format!("{count} {severity}{s}")
            })
            .collect();
        let fixes = if action.severity == Severity::Info { "" } else { "fixes " };
        let title =
            format!("{} ({fixes}{}: {})", clean(&action.title), action.fixes.len(), counts.join(", "));
        page.item(&format!("{:>2}. ", n + 1), Some(tone(action.severity)), &title);
        if !action.command.is_empty() {
            // Not wrapped: it is to be copied.
            let _ = writeln!(page.out, "    {}", clean(&action.command));
        }
        // A command names the checks that it takes; one screen has no room for the others.
        let named: Vec<&str> = action.command.split([' ', ',']).collect();
        let others: Vec<&str> =
            action.fixes.iter().map(String::as_str).filter(|id| !named.contains(id)).collect();
        if action.command.is_empty() {
            page.item("    ", Some(Tone::Quiet), &others.join(", "));
        } else if !detail.is_brief() && !others.is_empty() {
            page.item("    ", Some(Tone::Quiet), &format!("also: {}", others.join(", ")));
        }
    }
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Blocker => Tone::Bad,
        Severity::Major => Tone::Doubt,
        Severity::Minor | Severity::Info => Tone::Quiet,
    }
}

fn write(page: &mut Page, finding: &Finding) {
    let lead = format!("{:<9} ", finding.severity);
    page.item(&lead, Some(tone(finding.severity)), &format!("{}: {}", finding.id, finding.title));
    page.item(INDENT, None, &finding.message);
    for read in &finding.read {
        let value = if read.value.is_empty() { "(empty)" } else { &read.value };
        page.item(&format!("{INDENT}read      "), None, &format!("{} = {value}", read.path));
    }
    for (name, text) in [
        ("expected", &finding.expected),
        ("why", &finding.why),
        ("fix", &finding.fix),
        ("risk", &finding.risk),
    ] {
        if !text.is_empty() {
            page.item(&format!("{INDENT}{name:<10}"), None, text);
        }
    }
}
