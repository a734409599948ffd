//! The figures that a study's document published, by scenario.

use tactus_model::Nanos;
use tactus_model::bundle::RowResult;
use tactus_model::document::Published;
use tactus_model::outcome::{ValueResult, value_of};
use tactus_model::plan::{Plan, Reference};

/// What the plan's references say about a scenario, and about an environment of it; several references
/// add up, the first one that gives a figure counts. Where a document has threads only, the figures of the
/// whole are theirs.
#[must_use]
pub fn published(plan: &Plan, scenario: &str, environment: &str) -> Option<Published> {
    let mut found: Option<Published> = None;
    let latencies = references(plan, scenario, environment).filter(|reference| reference.item.is_none());
    for reference in latencies {
        let ns = |value: Option<Nanos>| value.map(|Nanos(ns)| ns);
        let threads: Vec<[u64; 3]> =
            reference.threads.iter().map(|three| three.map(|Nanos(ns)| ns)).collect();
        let min_ns = ns(reference.min).or_else(|| threads.iter().map(|three| three[0]).min());
        let max_ns = ns(reference.max).or_else(|| threads.iter().map(|three| three[2]).max());
        let mean_ns = ns(reference.mean);
        match &mut found {
            None => {
                let source = reference.source.clone();
                found = Some(Published { min_ns, mean_ns, max_ns, threads_ns: threads, source });
            }
            Some(first) => {
                first.min_ns = first.min_ns.or(min_ns);
                first.mean_ns = first.mean_ns.or(mean_ns);
                first.max_ns = first.max_ns.or(max_ns);
                if first.threads_ns.is_empty() {
                    first.threads_ns = threads;
                }
                // In place: there may be tens of thousands of them.
                first.source.push_str("; ");
                first.source.push_str(&reference.source);
            }
        }
    }
    found
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedValue {
    /// In the unit of the measured one.
    pub value: f64,
    /// Where in the document.
    pub source: String,
}

/// What the plan's references say about an item of a row; the first one that gives it counts. Of a curve its last point is
/// what was published.
#[must_use]
pub fn published_value(plan: &Plan, result: &RowResult, of: &ValueResult) -> Option<PublishedValue> {
    let own = |reference: &&Reference| reference.item.as_ref() == Some(&of.item);
    if value_of(result.values(), &of.item).is_some_and(|whole| whole.at != of.at) {
        return None;
    }
    references(plan, &result.name, &result.environment).filter(own).find_map(|reference| {
        let value = reference.value?.number_in(of.unit)?;
        Some(PublishedValue { value, source: reference.source.clone() })
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
