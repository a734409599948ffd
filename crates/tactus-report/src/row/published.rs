//! The figures that a study's document published, by scenario.

use tactus_model::Nanos;
use tactus_model::document::Published;
use tactus_model::plan::{Plan, Reference};

/// What the plan's references say about a scenario, and about an environment of it; several references
/// add up, the first one that gives a figure counts. Where a document has threads only, the figures of the
/// whole are theirs.
#[must_use]
pub fn published(plan: &Plan, scenario: &str, environment: &str) -> Option<Published> {
    let mut found: Option<Published> = None;
    let of = |reference: &&Reference| {
        reference.scenario == scenario && reference.environment.as_ref().is_none_or(|own| own == environment)
    };
    for reference in plan.reference.iter().filter(of) {
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
                first.source = format!("{}; {}", first.source, reference.source);
            }
        }
    }
    found
}
