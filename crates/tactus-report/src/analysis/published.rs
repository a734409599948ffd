//! The figures that a study's document published, by scenario.

use tactus_model::Nanos;
use tactus_model::document::Published;
use tactus_model::plan::Plan;

/// What the plan's references say about a scenario; several references add up, the first one that
/// gives a figure counts.
#[must_use]
pub fn published(plan: &Plan, scenario: &str) -> Option<Published> {
    let mut found: Option<Published> = None;
    for reference in plan.reference.iter().filter(|reference| reference.scenario == scenario) {
        let ns = |value: Option<Nanos>| value.map(|Nanos(ns)| ns);
        let (min_ns, mean_ns, max_ns) = (ns(reference.min), ns(reference.mean), ns(reference.max));
        match &mut found {
            None => found = Some(Published { min_ns, mean_ns, max_ns, source: reference.source.clone() }),
            Some(first) => {
                first.min_ns = first.min_ns.or(min_ns);
                first.mean_ns = first.mean_ns.or(mean_ns);
                first.max_ns = first.max_ns.or(max_ns);
                first.source = format!("{}; {}", first.source, reference.source);
            }
        }
    }
    found
}
