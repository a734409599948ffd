//! Findings of the audit of each environment.

use tactus_model::bundle::Contents;
use tactus_model::document::{AuditEntry, Document};
use tactus_model::finding::{Audit, Severity, State};

use super::Section;
use crate::part::{Cell, Finding, Head, Item, List, Part, Reader, Table, Tone};
use crate::row::{audit_anchor, conditions, intended, judged_as, summary};
use crate::units::{clean, listed, wrapped};

/// The section.
pub struct Audits;
/// Its entry.
pub static ENTRY: Audits = Audits;

impl Section for Audits {
    fn name(&self) -> &'static str {
        "audits"
    }

    fn heading(&self) -> &'static str {
        "Audit"
    }

    fn about(&self) -> &'static str {
        "Settings of each system that affect the numbers above. `tactus explain ID` \
         prints a check in full."
    }

    fn folded(&self, contents: &Contents, _: &[Part]) -> Option<String> {
        let said = |(name, audit): (&String, &Audit)| {
            format!("{}: {}", clean(name), summary(audit).split(';').next().unwrap_or_default())
        };
        Some(listed(&contents.audits.iter().map(said).collect::<Vec<_>>(), "; "))
    }

    fn applies(&self, contents: &Contents) -> bool {
        !contents.audits.is_empty()
    }

    fn parts(&self, contents: &Contents, reader: Reader) -> Vec<Part> {
        match reader {
            Reader::Terminal => vec![Part::List(brief(contents))],
            Reader::Markdown => contents.audits.iter().flat_map(|of| told(contents, of)).collect(),
            Reader::Page => contents.audits.iter().flat_map(|of| full(contents, of)).collect(),
        }
    }

    fn fill(&self, contents: &Contents, document: &mut Document) {
        document.audits = contents.audits.iter().map(|(name, audit)| entry(name, audit)).collect();
    }
}

fn entry(environment: &str, audit: &Audit) -> AuditEntry {
    AuditEntry {
        environment: environment.to_owned(),
        role: audit.role,
        isolated: audit.isolation.isolated.to_string(),
        unknown: audit.count(State::Unknowable) + audit.count(State::Unreadable),
        findings: audit.found().cloned().collect(),
    }
}

/// The role in which the machine is judged; the kind of other environments says theirs.
fn role(contents: &Contents, environment: &str, audit: &Audit) -> String {
    let is_machine = contents.plan.environment.get(environment).is_some_and(|spec| spec.kind == "host");
    if is_machine { judged_as(environment, audit) } else { String::new() }
}

/// A line for each environment.
fn brief(contents: &Contents) -> List {
    let said = contents.audits.keys().filter_map(|name| Some((name, conditions(contents, name)?)));
    let item = |(name, sentence): (&String, String)| {
        let role = contents.audits.get(name).map(|audit| role(contents, name, audit)).unwrap_or_default();
        Item::led(format!("audit of {name}{role}:"), Tone::Doubt, sentence)
    };
    let mut items: Vec<Item> = said.map(item).collect();
    if let Some(last) = items.last_mut() {
        let how =
            "`tactus audit --from BUNDLE --full` prints what was read, why it matters and how to fix it";
        last.hint = Some(how.into());
    }
    List { items, led: true }
}

/// The findings of an environment as a table.
fn told(contents: &Contents, (environment, audit): (&String, &Audit)) -> Vec<Part> {
    let Some(sentence) = conditions(contents, environment) else { return Vec::new() };
    let row = |finding: &tactus_model::finding::Finding| {
        [finding.severity.to_string(), clean(&finding.id), clean(&finding.message)].map(Cell::from).to_vec()
    };
    let rows: Vec<Vec<Cell>> = audit.found().map(row).collect();
    let mut parts = vec![
        Part::Heading(format!("{}{}", clean(environment), role(contents, environment, audit)), None),
        Part::Remark(format!("Measured with {sentence}.")),
    ];
    if !rows.is_empty() {
        parts.push(Part::Table(Table::whole("", Head::all(["severity", "check", "what"]), rows)));
    }
    parts
}

/// The findings of an environment in full, and the outcomes of the other checks.
fn full(_: &Contents, (environment, audit): (&String, &Audit)) -> Vec<Part> {
    let mut parts = vec![
        Part::Heading(clean(environment), Some(audit_anchor(environment))),
        Part::Remark(format!(
            "Audited{}; {}: {}",
            judged_as(environment, audit),
            clean(&intended(audit)),
            clean(&summary(audit))
        )),
    ];
    let (grave, small): (Vec<_>, Vec<_>) = audit.found().partition(|found| found.severity >= Severity::Major);
    parts.extend(grave.into_iter().map(|found| Part::Finding(finding(found))));
    if !small.is_empty() {
        let title = format!("minor and info: {}", small.len());
        parts.push(Part::Folded(
            title,
            small.into_iter().map(|found| Part::Finding(finding(found))).collect(),
        ));
    }
    let of = |state| -> Vec<&str> {
        audit.findings.iter().filter(|own| own.state == state).map(|own| own.id.as_str()).collect()
    };
    for state in [State::Unreadable, State::Unknowable] {
        let names = of(state);
        if !names.is_empty() {
            let reasons = if state == State::Unreadable {
                " (`tactus audit --from BUNDLE --all` gives the reasons)"
            } else {
                ""
            };
            parts.push(Part::Remark(format!("{state}: {}{reasons}", clean(&names.join(", ")))));
        }
    }
    // Checks that ask nothing of the reader are folded.
    let silent = [State::Ok, State::NotApplicable].map(|state| (state, of(state)));
    let told: Vec<String> = silent.iter().map(|(state, names)| format!("{state}: {}", names.len())).collect();
    let lists = silent.iter().filter(|(_, names)| !names.is_empty()).map(|(state, names)| {
        Part::Source(state.to_string(), wrapped(&clean(&names.join(", ")), 100).join("\n"))
    });
    let lists: Vec<Part> = lists.collect();
    if !lists.is_empty() {
        parts.push(Part::Folded(format!("{} (checks)", told.join(", ")), lists));
    }
    parts
}

fn finding(finding: &tactus_model::finding::Finding) -> Finding {
    let read = finding.read.iter().map(|read| {
        let value = clean(&read.value);
        let value = if value.is_empty() { "(empty)" } else { value.as_str() };
        ("read", format!("{} = {value}", clean(&read.path)))
    });
    let rest = [
        ("expected", &finding.expected),
        ("why", &finding.why),
        ("fix", &finding.fix),
        ("risk", &finding.risk),
    ];
    let rest = rest.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, clean(text)));
    Finding {
        severity: finding.severity.to_string(),
        tone: match finding.severity {
            Severity::Blocker => Tone::Bad,
            Severity::Major => Tone::Doubt,
            Severity::Minor | Severity::Info => Tone::Quiet,
        },
        name: clean(&finding.id),
        said: clean(&finding.message),
        parts: std::iter::once(("problem", clean(&finding.title))).chain(read).chain(rest).collect(),
    }
}
