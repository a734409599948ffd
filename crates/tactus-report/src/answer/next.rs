//! The one thing that would help most, by what the audit found.

use tactus_model::bundle::Contents;
use tactus_model::finding::{Action, Audit, Role, Severity};

use crate::part::Next;
use crate::units::clean;

/// What to do first: of the audit's groups the one that fixes the worst, and of those most.
pub fn step(contents: &Contents) -> Option<Next> {
    let hosts = contents.audits.values().filter(|audit| audit.role == Role::Host);
    let audit = hosts.chain(contents.audits.values()).next()?;
    let weight = |action: &Action| {
        let grave = action.fixes.iter().filter(|id| grave(audit, id)).count();
        (action.severity, grave)
    };
    // Of those that weigh as much the first one, which the audit puts first.
    let first = audit.actions.iter().filter(|action| action.severity > Severity::Info);
    let action = first.rev().max_by_key(|action| weight(action))?;
    Some(Next { title: clean(&action.title), command: clean(&action.command), why: worth(audit, action) })
}

fn grave(audit: &Audit, id: &str) -> bool {
    audit.found().any(|finding| finding.id == id && finding.severity >= Severity::Major)
}

/// "fixes smt, watchdogs and 3 more, major at the worst; what it is worth here was not measured".
fn worth(audit: &Audit, action: &Action) -> String {
    const NAMED: usize = 3;
    let names: Vec<&str> = action.fixes.iter().take(NAMED).map(String::as_str).collect();
    let more = match action.fixes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = match audit.role {
        Role::Host => "",
        Role::Guest => "in the guest, ",
        Role::Container => "in the container, ",
    };
    format!(
        "{word}fixes {}{more}, {} at the worst; its gain here was not measured, as \
         `tactus prove` does",
        clean(&names.join(", ")),
        action.severity
    )
}
