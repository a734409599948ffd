//! Verdicts for a CI server: a suite for each environment, a test case for each requirement of a scenario.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{CompareDocument, ComparedEntry, Judgement, LimitEntry, Outcome, Side, Verdict};
use tactus_model::event::RowStatus;

use super::RenderError;
use crate::stats::{Line, comparison};
use crate::units::{clean, latency, number};

/// The verdicts of a bundle as JUnit XML. A limit that is broken fails its case. A requirement that is inconclusive, and a
/// measurement that failed, are errors: a server that counts what was skipped as passed would be told that they hold. What
/// could not be tried is skipped. A measurement of which nothing is required has one case: that it was made.
///
/// # Errors
/// When the XML cannot be written.
pub fn render(contents: &Contents) -> Result<String, RenderError> {
    let mut report = Report::new(clean(contents.plan.title.as_deref().unwrap_or(&contents.manifest.plan)));
    let mut suites: Vec<TestSuite> = Vec::new();
    for line in comparison(contents) {
        let Some(row) = contents.rows.get(line.row) else { continue };
        let name = clean(&row.result.environment);
        let at = suites.iter().position(|suite| suite.name.as_str() == name).unwrap_or_else(|| {
            suites.push(TestSuite::new(name));
            suites.len() - 1
        });
        suites[at].add_test_cases(cases(&line, &row.result));
    }
    report.add_test_suites(suites);
    Ok(report.to_string()?)
}

/// A comparison as JUnit XML: a suite for each scenario, a test case for each quantity. A regression fails its case; what is
/// inconclusive or not judged is an error: it was not shown to hold.
///
/// # Errors
/// When the XML cannot be written.
pub fn comparison_of(document: &CompareDocument) -> Result<String, RenderError> {
    let names: Vec<String> = document.conditions.iter().map(|own| clean(&own.name)).collect();
    let mut report = Report::new(names.join(" against "));
    report.add_test_suites(document.scenarios.iter().map(compared));
    let mut missing = TestSuite::new("scenarios");
    for one in &document.unmatched {
        let said = format!("in {} alone", one.only_in);
        missing.add_test_case(TestCase::new(clean(&one.name), error(&said)));
    }
    // What nobody asked of a quantity.
    let of_all = match document.outcome {
        Judgement::Pass => TestCaseStatus::success(),
        Judgement::Inconclusive => error(&document.reason),
        Judgement::Regression => failure(&document.reason),
    };
    missing.add_test_case(TestCase::new("all together", of_all));
    report.add_test_suite(missing);
    Ok(report.to_string()?)
}

fn compared(one: &ComparedEntry) -> TestSuite {
    let mut suite = TestSuite::new(clean(&format!("{}: {} ({})", one.with, one.name, one.environment)));
    for of in &one.quantities {
        let status = match of.outcome {
            Some(Judgement::Pass) => TestCaseStatus::success(),
            Some(Judgement::Regression) => failure(&of.reason),
            Some(Judgement::Inconclusive) | None => error(&of.reason),
        };
        let mut case = TestCase::new(clean(&of.quantity), status);
        case.set_classname(clean(&one.name));
        suite.add_test_case(case);
    }
    suite
}

fn failure(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(clean(reason));
    status
}

fn cases(line: &Line, result: &RowResult) -> Vec<TestCase> {
    let case = |what: &str, status: TestCaseStatus| {
        let mut case = TestCase::new(clean(&format!("{}: {what}", line.name)), status);
        case.set_classname(clean(&result.environment));
        case
    };
    match (&line.verdict, result.status) {
        (None, RowStatus::Measured) => vec![case("measured", TestCaseStatus::success())],
        (None, RowStatus::Failed) => vec![case("measured", error(reason(line)))],
        (_, RowStatus::Skipped) => vec![case("measured", skipped(reason(line)))],
        (Some(verdict), _) if verdict.limits.is_empty() => {
            vec![case("requirement", error(&verdict.reason))]
        }
        (Some(verdict), _) => {
            let of = |entry: &LimitEntry| {
                let mut case = case(&name(entry), status(verdict, entry));
                if entry.warns && entry.side != Side::Kept {
                    case.set_system_out(clean(&verdict.reason));
                }
                case
            };
            verdict.limits.iter().map(of).collect()
        }
    }
}

fn reason(line: &Line) -> &str {
    line.reason.as_deref().unwrap_or("no reason was kept")
}

/// `max: limit 40 us`.
fn name(entry: &LimitEntry) -> String {
    let limit = match entry.unit.as_str() {
        "ns" => latency(entry.limit),
        unit => format!("{} {unit}", number(entry.limit)),
    };
    let warns = if entry.warns { " (warns)" } else { "" };
    format!("{}: limit {}{warns}", entry.quantity, limit.trim_end())
}

fn status(verdict: &Verdict, entry: &LimitEntry) -> TestCaseStatus {
    match entry.side {
        Side::Broken if !entry.warns => failure(&verdict.reason),
        Side::Kept if verdict.outcome == Outcome::Inconclusive => error(&verdict.reason),
        Side::Open if !entry.warns => error(&verdict.reason),
        _ => TestCaseStatus::success(),
    }
}

fn error(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message(clean(reason)).set_type("inconclusive");
    status
}

fn skipped(reason: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(clean(reason));
    status
}
