//! Verdicts for a CI server: a suite for each environment, a test case for each requirement of a scenario.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use tactus_model::Evidence;
use tactus_model::bundle::{Contents, RowResult};
use tactus_model::document::{CompareDocument, ComparedEntry, Judgement, LimitEntry, Outcome, Side, Verdict};
use tactus_model::event::RowStatus;
use tactus_model::outcome::RowEnd;

use super::RenderError;
use crate::answer::{Asked, answer, asked, without_rows};
use crate::compare::title;
use crate::row::{Runs, all_found_nothing, broke, figure_words, taken_words};
use crate::stats::{Line, comparison};
use crate::units::clean;

/// The verdicts of a bundle as JUnit XML: a case for each required limit, also if it was not measured. A
/// broken limit fails its case. An inconclusive one is an error, even if the measurement was skipped or
/// failed: a server that counts skipped cases as passed would report that the limit holds.
///
/// A measurement without a requirement has one case: that each of its runs is complete. It is skipped if this
/// machine cannot make the measurement. It is an error if the run measured nothing at all, or was interrupted
/// before it. A passed case prints its base and load. The property `answer` of each suite is the answer to
/// the whole run.
///
/// # Errors
/// When the XML cannot be written.
pub fn render(contents: &Contents) -> Result<String, RenderError> {
    Ok(run(contents).to_string()?)
}

/// The verdicts of a bundle, and behind them what became worse than a baseline: a case for each quantity.
///
/// # Errors
/// When the XML cannot be written.
pub fn with_comparison(contents: &Contents, document: &CompareDocument) -> Result<String, RenderError> {
    let mut report = run(contents);
    add_comparison(&mut report, document);
    Ok(report.to_string()?)
}

fn run(contents: &Contents) -> Report {
    let mut report = Report::new(clean(contents.plan.title.as_deref().unwrap_or(&contents.manifest.plan)));
    let mut suites: Vec<TestSuite> = Vec::new();
    let all = Runs::new(contents);
    let lines = comparison(contents);
    let has_any = lines.iter().any(Line::has_numbers);
    for line in lines {
        let Some(row) = contents.rows.get(line.row) else { continue };
        let runs = all.of(line.row);
        let waiting = runs.iter().filter(|run| run.result.ended == RowEnd::Waiting).count();
        let not_begun = || format!("the run was interrupted before {waiting} of {} runs", runs.len());
        let broke = broke(contents, runs).or_else(|| (waiting > 0).then(not_begun));
        let name = clean(&row.result.environment);
        let at = suites.iter().position(|suite| suite.name.as_str() == name).unwrap_or_else(|| {
            suites.push(TestSuite::new(name));
            suites.len() - 1
        });
        // A run that measured nothing, or was interrupted before this, has not shown that it holds.
        let may_skip = has_any && row.result.ended != RowEnd::Waiting;
        let nothing = all_found_nothing(runs).is_some() && broke.is_none();
        let mut own = match nothing && line.verdict.is_none() {
            true => vec![nothing_to_see(&line, &row.result)],
            false => cases(&line, &row.result, broke.as_deref(), may_skip),
        };
        // All limits share one measurement, so its time counts once.
        let lasted = line.lasted().fold(0, u64::saturating_add);
        own.iter_mut().take(1).for_each(|case| _ = case.set_time(Duration::from_nanos(lasted)));
        for case in &mut own {
            properties(&line, case);
        }
        suites[at].add_test_cases(own);
    }
    if suites.is_empty() {
        let mut suite = TestSuite::new(clean(&contents.manifest.plan));
        suite.add_test_case(TestCase::new("measured", error(&without_rows(contents))));
        suites.push(suite);
    }
    if let Some(first) = contents.damage.first() {
        let mut suite = TestSuite::new("bundle");
        suite.add_test_case(TestCase::new("whole", error(&format!("the bundle is damaged: {first}"))));
        suites.push(suite);
    }
    let answer = clean(&answer(contents).line());
    suites.iter_mut().for_each(|suite| _ = suite.add_property(("answer", answer.as_str())));
    report.add_test_suites(suites);
    report
}

/// The figures of a measurement as properties of its cases: in ns where a name ends so.
fn properties(line: &Line, case: &mut TestCase) {
    if let Some(all) = &line.figures {
        let corrected = &all.corrected;
        let figures = [
            ("cycles", Some(all.cycles)),
            ("missed", all.overruns),
            ("p50_ns", corrected.p50_ns),
            ("p99_ns", corrected.p99_ns),
            ("p999_ns", corrected.p999_ns),
            ("max_ns", all.max_ns),
        ];
        for (name, figure) in figures {
            if let Some(figure) = figure {
                case.add_property((name, figure.to_string().as_str()));
            }
        }
    }
    // A file of another tool does not say what ran beside it.
    if line.evidence != Some(Evidence::Imported) {
        case.add_property(("load", clean(&line.load).as_str()));
    }
    if let Some(evidence) = line.evidence {
        case.add_property(("evidence", evidence.to_string().as_str()));
    }
}

/// A comparison as JUnit XML: a suite for each scenario, a test case for each quantity. A regression fails
/// its case. An inconclusive or unjudged quantity is an error: it was not shown to hold.
///
/// # Errors
/// When the XML cannot be written.
pub fn comparison_of(document: &CompareDocument) -> Result<String, RenderError> {
    let mut report = Report::new(title(document));
    add_comparison(&mut report, document);
    Ok(report.to_string()?)
}

fn add_comparison(report: &mut Report, document: &CompareDocument) {
    report.add_test_suites(document.scenarios.iter().map(compared));
    let mut missing = TestSuite::new("scenarios");
    for one in &document.unmatched {
        let said = format!("in {} alone", one.only_in);
        missing.add_test_case(TestCase::new(clean(&one.name), error(&said)));
    }
    // The outcome of the whole comparison, which no single quantity has.
    let of_all = match document.outcome {
        Judgement::Pass => TestCaseStatus::success(),
        Judgement::Inconclusive => error(&document.reason),
        Judgement::Regression => failure(&document.reason),
    };
    missing.add_test_case(TestCase::new("all together", of_all));
    report.add_test_suite(missing);
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

/// The case of a measurement that was made and found nothing, as no noise above a threshold.
fn nothing_to_see(line: &Line, result: &RowResult) -> TestCase {
    let mut case = TestCase::new(clean(&format!("{}: measured", line.name)), TestCaseStatus::success());
    case.set_classname(clean(&result.environment)).set_system_out(clean(reason(line)));
    case
}

fn cases(line: &Line, result: &RowResult, broke: Option<&str>, may_skip: bool) -> Vec<TestCase> {
    let case = |what: &str, status: TestCaseStatus| {
        let mut case = TestCase::new(clean(&format!("{}: {what}", line.name)), status);
        case.set_classname(clean(&result.environment));
        case
    };
    match (&line.verdict, line.status) {
        (None, RowStatus::Measured) if !line.has_numbers() => vec![case("measured", error(reason(line)))],
        (None, RowStatus::Skipped) if !line.has_numbers() && !may_skip => {
            vec![case("measured", error(&format!("skipped: {}", reason(line))))]
        }
        (None, RowStatus::Skipped) if !line.has_numbers() => {
            vec![case("measured", skipped(reason(line)))]
        }
        (None, _) => {
            vec![case("measured", broke.map_or_else(TestCaseStatus::success, error))]
        }
        (Some(verdict), _) => {
            let asked = result.require.as_ref().map(asked).unwrap_or_default();
            if asked.is_empty() {
                return vec![case("requirement", error(&verdict.reason))];
            }
            let of = |asked: &Asked| {
                let of_it =
                    |entry: &&LimitEntry| entry.quantity == asked.quantity && entry.warns == asked.warns;
                let entry = verdict.limits.iter().find(of_it);
                let mut case = case(&name_of(asked), status(verdict, asked, entry));
                // A case that does not pass has the reason in its message.
                if matches!(case.status, TestCaseStatus::Success { .. }) {
                    case.set_system_out(clean(&verdict.reason));
                }
                case
            };
            asked.iter().map(of).collect()
        }
    }
}

/// `max: limit 40 us`.
fn name_of(asked: &Asked) -> String {
    let warns = if asked.warns { " (warns)" } else { "" };
    format!("{}: limit {}{warns}", asked.quantity, asked.limit)
}

fn reason(line: &Line) -> &str {
    line.reason.as_deref().unwrap_or("no reason was recorded")
}

/// The outcome of a limit in a few words. The whole reason, which covers all limits, follows it.
fn status(verdict: &Verdict, asked: &Asked, entry: Option<&LimitEntry>) -> TestCaseStatus {
    let Some(entry) = entry else {
        let said = format!("{} was not judged", asked.quantity);
        // If no limit was judged, the warning limits were not judged either.
        let none = verdict.outcome == Outcome::Inconclusive && verdict.limits.is_empty();
        return if asked.warns && !none {
            TestCaseStatus::success()
        } else {
            described(error(&said), &verdict.reason)
        };
    };
    let (quantity, limit) = (&entry.quantity, &asked.limit);
    let open = || error(&format!("{quantity} of at most {limit} is undecided"));
    match entry.side {
        Side::Broken if !entry.warns => described(
            failure(&format!("{quantity} {}, limit {limit}", figure_words(entry, entry.low))),
            &entry.reason,
        ),
        Side::Kept if verdict.outcome == Outcome::Inconclusive => {
            let said =
                format!("{quantity} {} is within {limit}, but this result cannot pass", taken_words(entry));
            described(error(&said), &entry.reason)
        }
        // A limit that only warns lets a row pass, with a warning; where the row does not pass it is as open as the rest.
        Side::Open if !entry.warns || verdict.outcome != Outcome::Warn => described(open(), &entry.reason),
        Side::Broken if verdict.outcome == Outcome::Inconclusive => described(open(), &entry.reason),
        _ => TestCaseStatus::success(),
    }
}

fn described(mut status: TestCaseStatus, reason: &str) -> TestCaseStatus {
    status.set_description(clean(reason));
    status
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
