//! Words of other tools and of everyday use, for words of tactus. Those for places are in `place`. Pure.

/// Measurements by the tools of the field.
const MEASUREMENTS: &[(&str, &str)] =
    &[("cyclictest", "timer"), ("oslat", "spin"), ("hwlat", "spin"), ("hwlatdetect", "spin")];

/// Loads by the tools of the field.
const LOADS: &[(&str, &str)] = &[("hackbench", "scheduler")];

/// Profiles as they are called in speech.
const PROFILES: &[(&str, &str)] =
    &[("realtime-host", "realtime-virtual-host"), ("realtime-guest", "realtime-virtual-guest")];

/// The measurement that is meant.
pub fn measurement(word: &str) -> &str {
    meant(word, MEASUREMENTS).unwrap_or(word)
}

/// The load that is meant.
pub fn load(word: &str) -> &str {
    meant(word, LOADS).unwrap_or(word)
}

/// The profile that is meant.
pub fn profile(word: &str) -> &str {
    meant(word, PROFILES).unwrap_or(word)
}

/// The word of tactus that another one stands for, whatever it names.
pub fn any(word: &str) -> Option<&'static str> {
    [MEASUREMENTS, LOADS].into_iter().find_map(|of| meant(word, of)).or_else(|| crate::place::synonym(word))
}

fn meant(word: &str, of: &'static [(&'static str, &'static str)]) -> Option<&'static str> {
    of.iter().find(|(other, _)| *other == word).map(|(_, own)| *own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_synonym_stands_for_a_word_that_is_there() {
        let measures = tactus_model::catalogue::measure::MEASURES;
        let loads = tactus_model::catalogue::load::LOADS;
        assert!(MEASUREMENTS.iter().all(|(other, own)| {
            measures.iter().any(|entry| entry.name == *own)
                && measures.iter().all(|entry| entry.name != *other)
        }));
        assert!(LOADS.iter().all(|(other, own)| {
            loads.iter().any(|entry| entry.name == *own) && loads.iter().all(|entry| entry.name != *other)
        }));
        assert!(PROFILES.iter().all(|(other, own)| {
            tactus_tune::profile::find(own).is_some() && tactus_tune::profile::find(other).is_none()
        }));
        assert_eq!((any("hackbench"), any("kvm"), any("timer")), (Some("scheduler"), Some("qemu"), None));
    }
}
