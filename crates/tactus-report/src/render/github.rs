//! Verdicts as annotations of a GitHub workflow: a line for each requirement that does not pass, and for each measurement
//! that failed (docs.github.com, "Workflow commands for GitHub Actions").

use std::fmt::Write;

use tactus_model::bundle::Contents;
use tactus_model::document::{CompareDocument, Judgement, Outcome};
use tactus_model::event::RowStatus;

use crate::answer::answer;
use crate::part::Tone;
use crate::row::{Runs, broke};
use crate::stats::comparison;
use crate::units::{beginning, clean, told};

/// The longest title and message of an annotation, in characters.
const TITLE: usize = 200;
const MESSAGE: usize = 2_000;

/// The answer in the first line. Then `::error title=host, loaded::...` for a broken limit or a failure, and
/// `::notice` for a pass. `::warning` stands for a broken warning limit, and for an inconclusive, early ended
/// or skipped measurement.
#[must_use]
pub fn render(contents: &Contents) -> String {
    let mut out = String::new();
    let mut say = |command: &str, title: &str, message: &str| {
        let (title, message) = (beginning(title, TITLE), beginning(message, MESSAGE));
        let (title, message) = (property(&clean(&title)), data(&clean(&message)));
        let _ = writeln!(out, "::{command} title={title}::{message}");
    };
    let answer = answer(contents);
    let command = match answer.tone {
        Tone::Bad => "error",
        Tone::Doubt => "warning",
        Tone::Good | Tone::Quiet | Tone::Heading => "notice",
    };
    say(command, &answer.led(), &answer.sentence);
    for damage in &contents.damage {
        say("warning", "bundle", &format!("damaged: {damage}"));
    }
    let all = Runs::new(contents);
    for line in comparison(contents) {
        let runs = all.of(line.row);
        let has_failed = runs.iter().any(|run| run.result.status == RowStatus::Failed);
        match (broke(contents, runs), &line.verdict) {
            (Some(broke), _) if has_failed => say("error", &line.name, &broke),
            (Some(broke), None) => say("warning", &line.name, &broke),
            _ => {}
        }
        match (&line.verdict, line.status) {
            // Of several runs those that were measured have a verdict.
            (_, RowStatus::Skipped) if !line.has_numbers() => {
                let reason = line.reason.as_deref().unwrap_or_default();
                say("warning", &line.name, &format!("skipped: {}", told(reason)));
            }
            (Some(verdict), _) if !(has_failed && verdict.outcome == Outcome::Inconclusive) => {
                let command = match verdict.outcome {
                    Outcome::Pass => "notice",
                    Outcome::Warn | Outcome::Inconclusive => "warning",
                    Outcome::Fail => "error",
                };
                say(command, &line.name, &format!("{}: {}", verdict.outcome.word(), verdict.reason));
            }
            _ => {}
        }
    }
    out
}

/// A comparison: a line for each quantity that does not pass, and one for all together.
#[must_use]
pub fn comparison_of(document: &CompareDocument) -> String {
    let mut out = String::new();
    let mut line = |outcome: Option<Judgement>, title: &str, message: &str| {
        let command = match outcome {
            Some(Judgement::Pass) => "notice",
            Some(Judgement::Regression) => "error",
            Some(Judgement::Inconclusive) | None => "warning",
        };
        let _ = writeln!(out, "::{command} title={}::{}", property(&clean(title)), data(&clean(message)));
    };
    let said = format!("{}: {}", document.outcome.word(), document.reason);
    line(Some(document.outcome), "comparison", &said);
    for one in &document.scenarios {
        for of in one.quantities.iter().filter(|of| of.outcome != Some(Judgement::Pass)) {
            let word = of.outcome.map_or("not judged", Judgement::word);
            let times = of.ratio.map(|ratio| format!(" ({ratio:.3} times)")).unwrap_or_default();
            let title = format!("{}, {}", one.name, of.quantity);
            line(of.outcome, &title, &format!("{word}: {}{times}", of.reason));
        }
    }
    out
}

/// The text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_command_is_escaped() {
        assert_eq!(property("host, 5 %: a\nb"), "host%2C 5 %25%3A a%0Ab");
        assert_eq!(data("a, b: 5 %\r\n"), "a, b: 5 %25%0D%0A");
    }
}
