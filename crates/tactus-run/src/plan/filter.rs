//! The names of scenarios and environments on the command line.

use tactus_model::plan::{Plan, Scenario};

use super::resolved::Choices;
use super::{PlanError, Source};

/// The scenarios that `--only` leaves.
///
/// # Errors
/// A name, there or before a limit, that the plan does not have.
pub fn chosen<'p>(
    plan: &'p Plan,
    source: &Source,
    choices: &Choices,
) -> Result<Vec<(usize, &'p Scenario)>, PlanError> {
    let name = |scenario: &Scenario| scenario.name.clone().unwrap_or_default();
    let known: Vec<String> = plan.scenario.iter().map(name).chain(plan.environment.keys().cloned()).collect();
    let stranger = |message: String, known: Vec<&str>| PlanError {
        // A plan without a text is no file of the user's.
        file: if source.text.is_empty() { String::new() } else { source.file.clone() },
        line: None,
        key: None,
        message,
        hint: Some(format!("use one of `{}`", known.join("`, `"))),
    };
    let mut only = Vec::new();
    for text in &choices.only {
        only.extend(names_in(text, &known).map_err(|name| {
            let message = format!("--only {name}: the plan has no scenario or environment of that name");
            stranger(message, known.iter().map(String::as_str).collect())
        })?);
    }
    let unknown = |name: &&String| !name.is_empty() && !plan.environment.contains_key(*name);
    if let Some(name) = choices.require.keys().find(unknown) {
        let message = format!("a limit for `{name}`: the plan has no environment of that name");
        return Err(stranger(message, plan.environment.keys().map(String::as_str).collect()));
    }
    let wanted = |scenario: &Scenario| {
        only.is_empty()
            || only.iter().any(|only| {
                name(scenario) == *only
                    || scenario.environment.as_ref().or(plan.defaults.environment.as_ref()) == Some(only)
                    || scenario.activity.iter().any(|a| a.measure.is_some() && a.environment == *only)
            })
    };
    Ok(plan.scenario.iter().enumerate().filter(|(_, scenario)| wanted(scenario)).collect())
}

/// The names in a list with commas between them. Names may contain commas: the longest known name counts.
///
/// # Errors
/// The first unknown name.
pub fn names_in(text: &str, known: &[String]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let ends = |name: &&String| {
            rest.strip_prefix(name.as_str()).is_some_and(|r| r.is_empty() || r.trim_start().starts_with(','))
        };
        let Some(name) = known.iter().filter(ends).max_by_key(|name| name.len()) else {
            return Err(rest.split(',').next().unwrap_or(rest).trim().to_owned());
        };
        rest = rest[name.len()..].trim_start().trim_start_matches(',').trim_start();
        names.push(name.clone());
    }
    Ok(names)
}
