//! All words that `tactus explain` knows.

use tactus_audit as audit;
use tactus_environment::ENVIRONMENTS;
use tactus_fleet::ENGINES;
use tactus_format::export::EXPORTS;
use tactus_model::catalogue::{fault, load, measure};
use tactus_report::render::FORMATS;
use tactus_run::plan::STUDIES;
use tactus_tune::generate::GENERATORS;

use crate::glossary::TERMS;

/// All words that are explained, and those for which others are written.
pub fn words() -> Vec<&'static str> {
    let families = [measure::MEASURES, load::LOADS, fault::FAULTS];
    let mut words: Vec<&str> = ENVIRONMENTS.iter().map(|environment| environment.kind()).collect();
    words.extend(families.iter().flat_map(|family| family.iter()).map(|entry| entry.name));
    words.extend(STUDIES.iter().map(|study| study.name));
    words.extend(GENERATORS.iter().map(|generator| generator.name));
    words.extend(ENGINES.iter().map(|engine| engine.name()));
    words.extend(FORMATS.iter().map(|format| format.name));
    words.extend(EXPORTS.iter().map(|format| format.name));
    words.extend(audit::all().map(|(_, check)| check.id));
    words.extend(TERMS.iter().flat_map(|term| std::iter::once(term.word).chain(term.also.iter().copied())));
    words
}

/// The studies that ship with tactus.
pub fn studies() -> Vec<&'static str> {
    STUDIES.iter().map(|study| study.name).collect()
}

/// The formats of a report.
pub fn formats() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// The formats of an export.
pub fn exports() -> Vec<&'static str> {
    EXPORTS.iter().map(|format| format.name).collect()
}

/// The engines that start jobs on many machines.
pub fn engines() -> Vec<&'static str> {
    ENGINES.iter().map(|engine| engine.name()).collect()
}

/// The names of the generators of files.
pub fn generators() -> Vec<&'static str> {
    GENERATORS.iter().map(|generator| generator.name).collect()
}

#[cfg(test)]
mod tests {
    use tactus_report::answer::PUBLISHED;
    use tactus_run::plan::{Source, parse};

    use super::*;

    /// The published range in the answer of a run is that of the studies: the smallest and the largest maximum of
    /// hosts and of guests, where nothing was injected.
    #[test]
    fn the_scale_of_an_answer_is_that_of_the_published_figures() {
        let mut all: Vec<(String, u64)> = Vec::new();
        for study in STUDIES {
            let plan = parse(&Source::new(study.name, study.text)).unwrap();
            for own in &plan.reference {
                let scenario = own.scenario.to_lowercase();
                let injected = ["separation", "caches", "twelve"].iter().any(|word| scenario.contains(word));
                let threads = own.threads.iter().filter_map(|thread| thread.last());
                let maxima = own.max.iter().chain(threads).map(|max| max.0);
                if !injected && study.name != "intel-industrial-2014" {
                    all.extend(maxima.map(|max| (scenario.clone(), max)));
                }
            }
        }
        let guest = |name: &str| ["vm", "guest"].iter().any(|word| name.contains(word));
        for (place, is) in [("hosts", false), ("KVM guests", true)] {
            let own: Vec<u64> =
                all.iter().filter(|(name, _)| guest(name) == is).map(|(_, max)| *max).collect();
            let said = PUBLISHED.iter().find(|one| one.place == place).unwrap();
            let found = (own.iter().min().copied(), own.iter().max().copied());
            assert_eq!(found, (Some(said.least_ns), Some(said.most_ns)), "{place}: {all:?}");
        }
    }
}
