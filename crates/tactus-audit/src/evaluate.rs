//! The audit of one system.

use std::cmp::Reverse;

use tactus_model::change;
use tactus_model::finding::{Audit, Finding, Role, State};

use super::actions::actions;
use super::sentence::cpus_or_none;
use super::{Applies, Arch, Check, Judgement, Subject, all};

/// Asks every check, and sorts what they say: findings first, the worst first.
#[must_use]
pub fn audit(subject: &Subject<'_>) -> Audit {
    let mut findings: Vec<Finding> =
        all().map(|(family, check)| finding(family, check, judge(check, subject), subject)).collect();
    findings.sort_by_key(|finding| (order(finding.state), Reverse(finding.severity)));
    let actions = actions(subject, &findings);
    Audit { role: subject.role, isolation: subject.isolation.clone(), findings, actions }
}

fn order(state: State) -> u8 {
    match state {
        State::Finding => 0,
        State::Unreadable => 1,
        State::Unknowable => 2,
        State::Ok => 3,
        State::NotApplicable => 4,
    }
}

/// The judgement of a check on a subject.
fn judge(check: &Check, subject: &Subject<'_>) -> Judgement {
    if !check.applies.iter().any(|applies| concerns(*applies, subject.role)) {
        return Judgement::not_applicable(format!("it does not apply to a {}", subject.role));
    }
    if !subject.is(check.arch) {
        let whose = match check.arch {
            Arch::Intel => "Intel processors",
            Arch::X86 => "x86 processors",
            Arch::Arm64 => "64-bit Arm processors",
            Arch::Any => "any processor",
        };
        return Judgement::not_applicable(format!("it applies to {whose} only"));
    }
    if check.hardware && subject.virtualized {
        return Judgement::unknowable(
            "this system runs on a hypervisor, which decides what this system sees of it",
        );
    }
    match (check.judge)(subject) {
        Ok(judgement) | Err(judgement) => judgement,
    }
}

fn concerns(applies: Applies, role: Role) -> bool {
    match role {
        Role::Host => matches!(applies, Applies::Host | Applies::Hypervisor),
        Role::Guest => applies == Applies::Guest,
        Role::Container => applies == Applies::Container,
    }
}

fn finding(family: &str, check: &Check, judgement: Judgement, subject: &Subject<'_>) -> Finding {
    let found = judgement.state == State::Finding;
    let words = |text: &str| if found { fill(text, subject) } else { String::new() };
    Finding {
        id: check.id.to_owned(),
        state: judgement.state,
        severity: judgement.severity.unwrap_or(check.severity),
        family: family.to_owned(),
        title: check.title.to_owned(),
        message: judgement.said,
        read: judgement.read,
        expected: fill(check.expected, subject),
        why: words(check.why),
        fix: judgement.fix.unwrap_or_else(|| words(check.fix)),
        risk: words(check.risk),
    }
}

/// Puts the CPUs of this system into a text.
fn fill(text: &str, subject: &Subject<'_>) -> String {
    text.replace("CPUs {isolated}", &cpus_or_none(subject.isolated()))
        .replace("CPUs {housekeeping}", &cpus_or_none(subject.housekeeping()))
        .replace("{isolated}", &subject.isolated().to_string())
        .replace("{housekeeping}", &subject.housekeeping().to_string())
        .replace("{housekeeping_mask}", &change::to_mask(subject.housekeeping()))
}
