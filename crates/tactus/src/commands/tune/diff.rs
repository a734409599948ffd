//! `tactus tune diff`: two profiles against each other, and against now.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use tactus_model::change::Change;
use tactus_tune::plan::Choice;

use super::{here, made, named, part};
use crate::cli::TuneDiff;
use crate::exit::{Exit, Failure};
use crate::output;

/// A line of the comparison: a stable contract.
#[derive(Debug, Serialize)]
struct Row {
    target: String,
    check: String,
    now: Option<String>,
    one: Option<String>,
    other: Option<String>,
}

pub fn diff(arguments: &TuneDiff) -> Result<Exit, Failure> {
    let (one, other) = (named(&arguments.one)?, named(&arguments.other)?);
    let facts = here()?;
    // The profiles as they are, without the choices for this system.
    let changes = |profile| -> Result<Vec<Change>, Failure> {
        let choice = Choice { plain: true, ..Choice::default() };
        let plan = made(&facts, part(&facts, profile), profile, arguments.isolate.clone(), &choice)?;
        let withheld = plan.withheld.into_iter().map(|withheld| withheld.change);
        Ok(plan.entries.into_iter().map(|step| step.change).chain(withheld).collect())
    };
    let rows = rows(changes(one)?, changes(other)?, arguments.all);
    if arguments.json {
        output::json(&rows)?;
        return Ok(Exit::Good);
    }
    let mut text = String::new();
    for row in &rows {
        let value = |value: &Option<String>| match value.as_deref() {
            None => "-".to_owned(),
            Some("") => "set".to_owned(),
            Some(value) => value.to_owned(),
        };
        let _ = writeln!(text, "{}  ({})", row.target, row.check);
        for (name, is) in [("now", &row.now), (one.name, &row.one), (other.name, &row.other)] {
            let _ = writeln!(text, "  {name:<24} {}", value(is));
        }
    }
    if rows.is_empty() {
        let _ = writeln!(text, "{} and {} set the same on this system", one.name, other.name);
    }
    output::text(&text)?;
    Ok(Exit::Good)
}

fn rows(one: Vec<Change>, other: Vec<Change>, all: bool) -> Vec<Row> {
    let mut order: Vec<String> = Vec::new();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (first, change) in
        one.into_iter().map(|change| (true, change)).chain(other.into_iter().map(|change| (false, change)))
    {
        let target = change.target.to_string();
        let row = rows.entry(target.clone()).or_insert_with(|| {
            order.push(target.clone());
            Row { target, check: change.check, now: change.now, one: None, other: None }
        });
        if first {
            row.one = Some(change.then);
        } else {
            row.other = Some(change.then);
        }
    }
    order
        .into_iter()
        .filter_map(|target| rows.remove(&target))
        .filter(|row| all || row.one != row.other)
        .collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::change::{Effect, Target};

    use super::*;

    fn change(parameter: &str, then: &str) -> Change {
        let target = Target::Kernel { parameter: parameter.into() };
        Change { check: "x".into(), target, now: None, then: then.into(), effect: Effect::Boot }
    }

    #[test]
    fn only_what_differs_is_shown_unless_all_is_asked_for() {
        let sides = || {
            (
                vec![change("nohz", "on"), change("isolcpus", "2-3")],
                vec![change("nohz", "on"), change("intel_pstate", "disable")],
            )
        };
        let names = |all| {
            let (one, other) = sides();
            rows(one, other, all).into_iter().map(|row| (row.target, row.one, row.other)).collect::<Vec<_>>()
        };
        assert_eq!(
            names(false),
            [
                ("kernel parameter isolcpus".into(), Some("2-3".into()), None),
                ("kernel parameter intel_pstate".into(), None, Some("disable".into())),
            ]
        );
        assert_eq!(names(true).len(), 3);
    }
}
