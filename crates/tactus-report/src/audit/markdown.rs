//! An audit as Markdown (the dialect of GitHub and GitLab).

use std::fmt::Write;

use tactus_model::finding::{Finding, State};

use super::{Audited, intended, judged_as, summary};
use crate::render::markdown::text;

/// Audits to be pasted into an issue: a table of the findings, then each finding in full.
#[must_use]
pub fn markdown(audits: &[Audited<'_>]) -> String {
    let mut out = String::new();
    for Audited { environment, audit } in audits {
        let _ = writeln!(out, "## Audit of {}{}\n", text(environment), judged_as(environment, audit));
        let _ = writeln!(out, "{} · {}\n", text(&intended(audit)), text(&summary(audit)));
        for (n, action) in audit.actions.iter().enumerate() {
            let fixes = action.fixes.iter().map(|id| text(id)).collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "{}. {} ({}): {fixes}", n + 1, text(&action.title), action.severity);
            if !action.command.is_empty() {
                let _ = writeln!(out, "   {}", text(&action.command));
            }
        }
        if !audit.actions.is_empty() {
            out.push('\n');
        }
        if audit.found().next().is_some() {
            let _ = writeln!(out, "| severity | check | what |\n|---|---|---|");
        }
        for finding in audit.found() {
            let _ = writeln!(
                out,
                "| {} | {} | {} |",
                finding.severity,
                text(&finding.id),
                text(&finding.message)
            );
        }
        for finding in audit.found() {
            one(&mut out, finding);
        }
        for state in [State::Unreadable, State::Unknowable] {
            let of: Vec<&Finding> = audit.findings.iter().filter(|finding| finding.state == state).collect();
            if !of.is_empty() {
                let _ = writeln!(
                    out,
                    "\n### {}\n",
                    if state == State::Unreadable { "Unreadable" } else { "Unknowable" }
                );
            }
            for finding in of {
                let _ = writeln!(out, "- {}: {}", text(&finding.id), text(&finding.message));
            }
        }
        out.push('\n');
    }
    out
}

fn one(out: &mut String, finding: &Finding) {
    let _ = writeln!(out, "\n### {}: {}\n", text(&finding.id), text(&finding.title));
    let _ = writeln!(out, "{} ({}).\n", text(&finding.message), finding.severity);
    for read in &finding.read {
        let _ = writeln!(out, "- read: {} = {}", text(&read.path), text(&read.value));
    }
    for (name, words) in [
        ("expected", &finding.expected),
        ("why", &finding.why),
        ("fix", &finding.fix),
        ("risk", &finding.risk),
    ] {
        if !words.is_empty() {
            let _ = writeln!(out, "- {name}: {}", text(words));
        }
    }
}
