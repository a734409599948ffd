//! The figures that a study's document published, by scenario.

use std::borrow::Cow;

use tactus_model::Nanos;
use tactus_model::bundle::RowResult;
use tactus_model::document::Published;
use tactus_model::outcome::{ValueResult, value_of};
use tactus_model::plan::{Plan, Reference};

/// Longest words, in bytes, about where in the document figures come from: they stand beside each row and each of its values.
const SOURCE: usize = 512;

/// The published figures of a scenario, and of an environment of it. Several references add up; the first one
/// that gives a figure counts. If a document has figures of threads only, they stand for the whole.
#[must_use]
pub fn published(plan: &Plan, scenario: &str, environment: &str) -> Option<Published> {
    let latencies: Vec<&Reference> =
        references(plan, scenario, environment).filter(|reference| reference.item.is_none()).collect();
    latencies.first()?;
    let first = |figure: fn(&Reference) -> Option<u64>| latencies.iter().copied().find_map(figure);
    let threads = latencies.iter().find(|reference| !reference.threads.is_empty());
    Some(Published {
        min_ns: first(|of| ns(of.min).or_else(|| of.threads.iter().map(|[min, ..]| min.0).min())),
        mean_ns: first(|of| ns(of.mean)),
        max_ns: first(|of| ns(of.max).or_else(|| of.threads.iter().map(|[.., max]| max.0).max())),
        threads_ns: threads
            .map(|of| of.threads.iter().map(|three| three.map(|Nanos(ns)| ns)).collect())
            .unwrap_or_default(),
        source: joined(&latencies),
    })
}

fn ns(value: Option<Nanos>) -> Option<u64> {
    value.map(|Nanos(ns)| ns)
}

/// The sources of figures, one after the other; the plan has those that do not fit.
fn joined(references: &[&Reference]) -> String {
    let mut source = String::new();
    for (n, reference) in references.iter().enumerate() {
        let between = if n == 0 { "" } else { "; " };
        if n > 0 && source.len() + between.len() + reference.source.len() > SOURCE {
            return format!("{source}; and {} more in the plan", references.len() - n);
        }
        source.push_str(between);
        source.push_str(&shown(&reference.source));
    }
    source
}

/// Where one comes from.
fn shown(source: &str) -> Cow<'_, str> {
    if source.len() <= SOURCE {
        return Cow::Borrowed(source);
    }
    let end = (0..=SOURCE).rev().find(|at| source.is_char_boundary(*at)).unwrap_or_default();
    let (beginning, _) = source.split_at(end);
    Cow::Owned(format!("{beginning} [...]"))
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedValue<'a> {
    /// In the unit of the measured one.
    pub value: f64,
    /// Where in the document.
    pub source: Cow<'a, str>,
}

/// The published figure of an item of a row; the first reference that gives it counts. For a curve the last
/// point is the published one.
#[must_use]
pub fn published_value<'a>(
    plan: &'a Plan,
    result: &'a RowResult,
    of: &ValueResult,
) -> Option<PublishedValue<'a>> {
    if plan.reference.is_empty() || value_of(result.values(), &of.item).is_some_and(|whole| whole.at != of.at)
    {
        return None;
    }
    let own = |reference: &&Reference| reference.item.as_ref() == Some(&of.item);
    references(plan, &result.name, &result.environment).filter(own).find_map(|reference| {
        let value = reference.value?.number_in(of.unit)?;
        Some(PublishedValue { value, source: shown(&reference.source) })
    })
}

/// The references to a scenario, or to an environment of it.
fn references<'a>(
    plan: &'a Plan,
    scenario: &'a str,
    environment: &'a str,
) -> impl Iterator<Item = &'a Reference> {
    plan.reference.iter().filter(move |reference| {
        reference.scenario == scenario && reference.environment.as_ref().is_none_or(|own| own == environment)
    })
}
