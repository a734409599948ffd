//! `--only`: some scenarios or environments of bundles.

use std::collections::BTreeSet;

use tactus_model::bundle::{Contents, Row};
use tactus_run::plan::names_in;

use crate::exit::Failure;

/// Leaves the rows of these environments or scenarios; no names: all.
pub fn only(bundles: &mut [&mut Contents], asked: &[String]) -> Result<(), Failure> {
    let stays = chosen(&bundles.iter().map(|contents| &**contents).collect::<Vec<_>>(), asked)?;
    bundles.iter_mut().for_each(|contents| contents.rows.retain(&stays));
    Ok(())
}

/// Which rows are those of these environments or scenarios; no names: all.
pub fn chosen(bundles: &[&Contents], asked: &[String]) -> Result<impl Fn(&Row) -> bool + use<>, Failure> {
    let rows = || bundles.iter().flat_map(|contents| &contents.rows);
    let environments: BTreeSet<String> = rows().map(|row| row.result.environment.clone()).collect();
    let scenarios = rows().map(|row| row.result.name.clone());
    let known: Vec<String> = scenarios.chain(environments.iter().cloned()).collect();
    let mut names: Vec<String> = Vec::new();
    for text in asked {
        names.extend(names_in(text, &known).map_err(|stranger| {
            let environments: Vec<&str> = environments.iter().map(String::as_str).collect();
            let which = if bundles.len() == 1 { "this bundle has" } else { "these bundles have" };
            Failure::say(
                format!("{which} no environment or scenario `{stranger}`"),
                format!("the environments are {}", environments.join(", ")),
            )
        })?);
    }
    let is = move |name: &String| names.is_empty() || names.contains(name);
    Ok(move |row: &Row| is(&row.result.name) || is(&row.result.environment))
}
