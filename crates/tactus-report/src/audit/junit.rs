//! An audit for a CI server: a suite per environment, a test case per check.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use tactus_model::finding::{Finding, Severity, State};

use super::Audited;
use crate::units::clean;

/// Audits as JUnit XML. A finding at or above `threshold` fails its case; without a threshold no case fails.
/// A check that could not be made is skipped, with the reason.
///
/// # Errors
/// When the XML cannot be written.
pub fn junit(
    audits: &[Audited<'_>],
    threshold: Option<Severity>,
) -> Result<String, quick_junit::SerializeError> {
    let mut report = Report::new("tactus audit");
    for Audited { environment, audit } in audits {
        let mut suite = TestSuite::new(clean(environment));
        for finding in &audit.findings {
            suite.add_test_case(case(environment, finding, threshold));
        }
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn case(environment: &str, finding: &Finding, threshold: Option<Severity>) -> TestCase {
    let fails = threshold.is_some_and(|threshold| finding.severity >= threshold);
    let status = match finding.state {
        State::Finding if fails => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(clean(&finding.message)).set_type(finding.severity.to_string());
            status.set_description(details(finding));
            status
        }
        State::Unknowable | State::Unreadable | State::NotApplicable => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("{}: {}", finding.state, clean(&finding.message)));
            status
        }
        State::Finding | State::Ok => TestCaseStatus::success(),
    };
    let mut case = TestCase::new(clean(&finding.id), status);
    case.set_classname(clean(&format!("{environment}.{}", finding.family)));
    if finding.state == State::Finding && !fails {
        case.set_system_out(format!(
            "{}, below the threshold: {}",
            finding.severity,
            clean(&finding.message)
        ));
    }
    case
}

fn details(finding: &Finding) -> String {
    let mut lines: Vec<String> =
        finding.read.iter().map(|read| clean(&format!("read: {} = {}", read.path, read.value))).collect();
    for (name, text) in [("expected", &finding.expected), ("why", &finding.why), ("fix", &finding.fix)] {
        lines.push(clean(&format!("{name}: {text}")));
    }
    lines.join("\n")
}
