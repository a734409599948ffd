//! Limits the names that a bundle has once and that every row, thread and line about them repeats. An
//! overlong name would be repeated for every thread, and a megabyte would become gigabytes.

use tactus_model::bundle::{Manifest, RowResult};
use tactus_model::plan::Plan;

/// The longest name, in bytes.
const NAME: usize = 1024;
/// The longest sentence that stands beside each row, such as where a published figure comes from, in bytes.
const SENTENCE: usize = 4096;
/// The end of a name that was cut.
const MARK: &str = " [...]";

/// Cuts the names of a manifest.
pub(crate) fn of_manifest(manifest: &mut Manifest, damage: &mut Vec<String>) {
    let machine = &mut manifest.machine;
    let names = [
        &mut manifest.plan,
        &mut manifest.tactus,
        &mut machine.name,
        &mut machine.processor,
        &mut machine.cpus,
        &mut machine.kernel,
        &mut machine.system,
    ];
    let count = names.into_iter().filter_map(|name| cut(name, NAME)).count();
    say(crate::files::MANIFEST, count, damage);
}

/// Cuts what a plan names, as the rows are.
pub(crate) fn of_plan(plan: &mut Plan, damage: &mut Vec<String>) {
    let scenarios = plan.scenario.iter_mut().flat_map(|own| own.name.as_mut());
    let compared = plan.compare.iter_mut().flat_map(|own| [&mut own.name, &mut own.base, &mut own.with]);
    let drawn = plan.figure.iter_mut().flat_map(|own| own.scenarios.iter_mut().chain([&mut own.title]));
    let pages = plan
        .page
        .iter_mut()
        .flat_map(|own| own.scenarios.iter_mut().chain([&mut own.title]).chain(own.environment.as_mut()));
    let places =
        plan.environment.values_mut().flat_map(|own| [&mut own.kind].into_iter().chain(own.inside.as_mut()));
    let separated = plan.separation.iter_mut().flat_map(|own| {
        let disturbed = own.disturbed.iter_mut();
        let disturbed = disturbed.flat_map(|at| [&mut at.scenario, &mut at.environment, &mut at.what]);
        own.environments.iter_mut().chain(&mut own.rest).chain(disturbed)
    });
    let all = scenarios.chain(compared).chain(drawn).chain(pages).chain(places).chain(separated);
    let mut count = all.filter_map(|name| cut(name, NAME)).count();
    for reference in &mut plan.reference {
        count += cut(&mut reference.scenario, NAME).into_iter().count();
        count += reference.environment.as_mut().and_then(|name| cut(name, NAME)).into_iter().count();
        count += cut(&mut reference.source, SENTENCE).into_iter().count();
    }
    say(crate::files::PLAN, count, damage);
}

/// Cuts what a row is called.
pub(crate) fn of_row(file: &str, row: &mut RowResult, damage: &mut Vec<String>) {
    let names = [&mut row.name, &mut row.environment, &mut row.kind].into_iter();
    let names = names.chain(row.host.as_mut()).chain(row.to.as_mut());
    let count = names.filter_map(|name| cut(name, NAME)).count();
    say(file, count, damage);
}

/// Longest error message of a parser: such messages repeat text from the file.
const WORDS: usize = 512;

/// Such words, up to a length.
pub(crate) fn words(error: &dyn std::fmt::Display) -> String {
    let mut text = error.to_string();
    let _ = cut(&mut text, WORDS);
    text
}

/// Cuts a text, where it is longer.
pub(crate) fn cut(text: &mut String, most: usize) -> Option<()> {
    let end = (0..=most - MARK.len()).rev().find(|at| text.is_char_boundary(*at));
    let end = end.filter(|_| text.len() > most)?;
    text.truncate(end);
    text.push_str(MARK);
    Some(())
}

fn say(file: &str, count: usize, damage: &mut Vec<String>) {
    if count > 0 {
        damage.push(format!("{file}: {count} of its names are too long, and are cut"));
    }
}
