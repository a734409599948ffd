//! `tactus report --class`.

use std::path::Path;

use serde::Serialize;
use tactus_model::bundle::Row;
use tactus_model::document::{Fit, FitnessEntry};
use tactus_model::event::RowStatus;
use tactus_model::outcome::Yields;
use tactus_model::plan::Class;
use tactus_report::fitness::{ClassError, classes_of, entries, joined, read as read_classes};
use tactus_report::render::text::{self, Style};
use tactus_report::units::clean;
use tactus_system::{Directory, Real, System};

use super::read;
use crate::cli::Report;
use crate::commands::only::only;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

/// The word for all classes; none of them is required.
const ALL: &str = "all";
/// The longest file of classes that is read.
const LONGEST: u64 = 1 << 20;

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    classes: &'a [Class],
    fitness: &'a [FitnessEntry],
}

pub fn fitness(bundle: &Directory, arguments: &Report) -> Result<Exit, Failure> {
    let own = arguments.classes.as_deref().map(classes_in).transpose()?.unwrap_or_default();
    let mut contents = read(bundle, arguments.damaged)?;
    only(&mut [&mut contents], &arguments.only)?;
    let classes = joined(&classes_of(&contents.plan), &own);
    let required_of: Vec<String> = match &arguments.class[..] {
        [all] if all == ALL => Vec::new(),
        named => named.to_vec(),
    };
    for name in &required_of {
        known(&classes, name)?;
    }
    let all = entries(&contents, &classes);
    if arguments.json {
        output::json(&Document { classes: &classes, fitness: &all })?;
    } else {
        let style = Style { colour: output::colour(), width: output::width() };
        output::data(&text::fitness(&contents, &all, &classes, style))?;
    }
    Ok(required(&contents.rows, &all, &required_of))
}

/// The classes of a user's file.
fn classes_in(file: &Path) -> Result<Vec<Class>, Failure> {
    const HINT: &str = "a class is `[[class]]` with name, cycle and jitter, as in docs/guide/fitness.md";
    let wrong = |error: &dyn std::fmt::Display| Failure::say(format!("{}: {error}", file.display()), HINT);
    let bytes = Real.read_at_most(file, LONGEST).map_err(|error| wrong(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not text in UTF-8"))?;
    read_classes(&text).map_err(|error: ClassError| wrong(&error))
}

fn known(classes: &[Class], name: &str) -> Result<(), Failure> {
    if classes.iter().any(|class| class.name == name) {
        return Ok(());
    }
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    Err(Failure::say(
        format!("there is no class `{name}`"),
        format!("use any of {}, or all", names.join(", ")),
    ))
}

/// Whether every environment is fit for the required classes; published figures are left out. A skipped row does not
/// count; a failed one leaves the answer open.
fn required(rows: &[Row], all: &[FitnessEntry], required: &[String]) -> Exit {
    if required.is_empty() {
        return Exit::Good;
    }
    let (mut unfit, mut open) = (false, false);
    let own = || all.iter().filter(|entry| entry.published.is_none());
    for entry in own() {
        for class in entry.classes.iter().filter(|class| required.contains(&class.class)) {
            let why = match class.fit {
                Fit::Fit => continue,
                Fit::Unfit => class.lacks.join("; "),
                Fit::Unknowable | Fit::Emulated => class.reason.clone().unwrap_or_default(),
            };
            unfit |= class.fit == Fit::Unfit;
            open |= class.fit != Fit::Unfit;
            let (place, name, word) = (clean(&entry.scenario), &class.class, class.fit.word());
            say(format_args!("required: {place}: {word} for {name}: {}", clean(&why)));
        }
    }
    let failed =
        |row: &&Row| row.result.status == RowStatus::Failed && row.result.outcome.yields() == Yields::Latency;
    for row in rows.iter().filter(failed) {
        open = true;
        say(format_args!("required: {}: the measurement failed, and is not judged", clean(&row.result.name)));
    }
    if own().next().is_none() {
        open = true;
        say("required: there is nothing to judge in this bundle");
    }
    match (unfit, open) {
        (true, _) => Exit::Findings,
        (false, true) => Exit::Inconclusive,
        (false, false) => Exit::Good,
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::bundle::RowResult;
    use tactus_model::document::ClassEntry;
    use tactus_model::outcome::{Ending, RowEnd};

    use super::*;

    fn entry(answers: &[(&str, Fit)]) -> FitnessEntry {
        let class = |(class, fit): &(&str, Fit)| ClassEntry {
            class: (*class).into(),
            fit: *fit,
            demanding: false,
            shortest_cycle_ns: Some(10_000),
            margin: 0.5,
            lacks: Vec::new(),
            reason: None,
        };
        FitnessEntry {
            environment: "host".into(),
            to: None,
            host: None,
            scenario: "host, idle".into(),
            latency: Some("thread".into()),
            published: None,
            evidence: None,
            runs: 1,
            duration_s: Some(100.0),
            cycles: Some(100_000),
            interval_ns: Some(1_000_000),
            best_ns: 2_000,
            worst_ns: 4_000,
            jitter_ns: 2_000,
            worse_per_s: Some(0.03),
            classes: answers.iter().map(class).collect(),
        }
    }

    fn exit(all: &[FitnessEntry], classes: &[&str]) -> Exit {
        let classes: Vec<String> = classes.iter().map(|&class| class.to_owned()).collect();
        required(&[], all, &classes)
    }

    #[test]
    fn one_that_is_unfit_fails_and_one_that_is_not_known_leaves_it_open() {
        let good = entry(&[("plc", Fit::Fit), ("motion-control", Fit::Unfit)]);
        let doubtful = entry(&[("plc", Fit::Unknowable), ("motion-control", Fit::Unknowable)]);
        let emulated = entry(&[("plc", Fit::Emulated)]);
        let both = [good.clone(), doubtful];
        assert_eq!(exit(&both, &[]), Exit::Good, "nothing is required");
        assert_eq!(exit(&both[..1], &["plc"]), Exit::Good);
        assert_eq!(exit(&both, &["plc"]), Exit::Inconclusive);
        assert_eq!(exit(&both, &["plc", "motion-control"]), Exit::Findings);
        assert_eq!(exit(&[good, emulated], &["plc"]), Exit::Inconclusive);
    }

    #[test]
    fn what_is_published_is_not_required_and_nothing_to_judge_is_not_good() {
        let published = FitnessEntry { published: Some("table 3".into()), ..entry(&[("plc", Fit::Unfit)]) };
        assert_eq!(exit(std::slice::from_ref(&published), &["plc"]), Exit::Inconclusive);
        assert_eq!(exit(&[published, entry(&[("plc", Fit::Fit)])], &["plc"]), Exit::Good);
        assert_eq!(exit(&[], &["plc"]), Exit::Inconclusive);
    }

    #[test]
    fn a_row_that_failed_leaves_it_open_and_one_that_was_skipped_does_not() {
        let all = [entry(&[("plc", Fit::Fit)])];
        for (end, left) in [(RowEnd::Failed, Exit::Inconclusive), (RowEnd::Unavailable, Exit::Good)] {
            let mut result = RowResult::unmeasured("guest", "guest", "qemu");
            result.end(Ending::because(end, "it did not boot"));
            assert_eq!(required(&[Row::of(result)], &all, &["plc".to_owned()]), left);
        }
    }
}
