//! The requirements: the limits, and where, how often and under which load they must hold.

use tactus_model::number::float;
use tactus_model::plan::Require;

use super::{Entry, Judged, distinct, short};
use crate::row::under;
use crate::units::{NONE, count, duration, exactly, latency, listed, unbroken};

/// The question in its parts.
pub fn asked(judged: &[Judged<'_>]) -> Vec<Entry> {
    let entry = |name, value: String, lines| Entry { name, value: unbroken(&short(&value)), lines };
    vec![
        entry("Required", limits(judged), 3),
        entry("Interval", intervals(judged), 1),
        entry("Where", places(judged), 2),
        entry("Load", loads(judged), 2),
    ]
}

/// The limits; where not all measurements have the same ones, with those that have them.
fn limits(judged: &[Judged<'_>]) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for one in judged {
        let (words, name) = (words(one.require), short(&one.line.name));
        match groups.iter_mut().find(|(own, _)| *own == words) {
            Some((_, names)) => names.push(name),
            None => groups.push((words, vec![name])),
        }
    }
    match groups.as_slice() {
        [(words, _)] => words.clone(),
        many => {
            let said = many.iter().map(|(words, names)| format!("{words} (of {})", listed(names, ", ")));
            said.collect::<Vec<_>>().join("; ")
        }
    }
}

/// Limits in words: `maximum 100 us, p99.9 20 us, no missed period`.
fn words(require: &Require) -> String {
    let mut said = own_words(require);
    if let Some(warn) = &require.warn {
        said.extend(own_words(warn).into_iter().map(|words| format!("{words} (warns only)")));
    }
    if said.is_empty() { NONE.into() } else { said.join(", ") }
}

fn own_words(require: &Require) -> Vec<String> {
    let limit = |ns: u64| exactly(float(ns));
    let mut said: Vec<String> = Vec::new();
    said.extend(require.max.map(|max| format!("maximum at most {}", limit(max.0))));
    said.extend(require.jitter.map(|most| format!("jitter at most {}", limit(most.0))));
    said.extend(
        require.quantiles().into_iter().map(|(name, _, most)| format!("{name} at most {}", limit(most.0))),
    );
    said.extend(require.tail.map(|tail| {
        format!("more than {} less than once in {}", limit(tail.max.0), duration(tail.horizon.0))
    }));
    said.extend(require.overruns.map(|most| match most {
        0 => "no missed period".to_owned(),
        most => format!("at most {} missed periods", count(most)),
    }));
    said.extend(require.values.iter().map(|(item, bound)| format!("{} {bound} or better", short(item))));
    said
}

/// The times between two wake-ups.
pub fn intervals(judged: &[Judged<'_>]) -> String {
    all_of(&distinct(runs(judged).filter(|ns| *ns > 0).map(|ns| latency(float(ns)))))
}

fn runs<'a>(judged: &'a [Judged<'_>]) -> impl Iterator<Item = u64> + 'a {
    judged.iter().flat_map(|one| &one.runs).map(|run| run.result.interval_ns)
}

/// Where it was measured, and what the numbers are worth: `host (bare metal)`.
fn places(judged: &[Judged<'_>]) -> String {
    all_of(&distinct(judged.iter().map(|one| {
        let evidence = one.line.evidence.map_or_else(String::new, |kind| format!(" ({kind})"));
        format!("{}{evidence}", short(&one.line.subject))
    })))
}

fn loads(judged: &[Judged<'_>]) -> String {
    all_of(&distinct(judged.iter().flat_map(|one| &one.runs).filter_map(|run| under(&run.result))))
}

/// All of them in a phrase.
pub fn all_of(all: &[String]) -> String {
    if all.is_empty() { NONE.into() } else { all.join("; ") }
}
