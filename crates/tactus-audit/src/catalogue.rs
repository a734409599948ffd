//! The table of all checks.

use super::{Check, hypervisor, kernel, memory, platform, sharing};

/// Checks that are shown together.
pub struct Family {
    /// Its heading.
    pub title: &'static str,
    /// Its checks, by file.
    pub files: &'static [&'static [Check]],
}

/// Every check, by family.
pub static FAMILIES: &[Family] = &[
    Family { title: "Platform and firmware", files: platform::FILES },
    Family { title: "Kernel and isolation", files: kernel::FILES },
    Family { title: "Memory and time", files: memory::FILES },
    Family { title: "Hypervisor", files: hypervisor::FILES },
    Family { title: "Cache and containers", files: sharing::FILES },
];

/// Every check with the title of its family.
pub fn all() -> impl Iterator<Item = (&'static str, &'static Check)> {
    FAMILIES
        .iter()
        .flat_map(|family| family.files.iter().copied().flatten().map(move |check| (family.title, check)))
}

/// The check of this name.
#[must_use]
pub fn find(id: &str) -> Option<&'static Check> {
    all().map(|(_, check)| check).find(|check| check.id == id)
}

/// Checks that look at a system twice: what they judge shows only by its change.
const TWICE: [&str; 5] = ["smi-count", "thermal-throttle", "steal-time", "exit-rate", "app-mlock"];

/// Whether a check judges by two looks at a system, some time apart.
#[must_use]
pub fn looks_twice(id: &str) -> bool {
    TWICE.contains(&id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::Source;

    #[test]
    fn no_two_checks_have_one_name() {
        let mut seen = BTreeSet::new();
        for (_, check) in all() {
            assert!(seen.insert(check.id), "{} is there twice", check.id);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the sources are looked at")]
    fn who_judges_by_a_second_look_is_named() {
        let mut named = BTreeSet::new();
        for room in ["platform", "kernel", "memory", "hypervisor", "sharing"] {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room);
            for entry in std::fs::read_dir(dir).unwrap() {
                let Ok(text) = std::fs::read_to_string(entry.unwrap().path()) else { continue };
                if text.contains("subject.later") {
                    let own = TWICE.into_iter().filter(|id| text.contains(&format!("\"{id}\"")));
                    let own: Vec<&str> = own.collect();
                    assert!(!own.is_empty(), "none of its checks is in the list");
                    named.extend(own);
                }
            }
        }
        assert_eq!(named, BTreeSet::from(TWICE));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the sources are looked at")]
    fn every_file_of_a_room_is_in_its_table() {
        let rooms: [(&str, &[&str]); 5] = [
            ("platform", platform::MODULES),
            ("kernel", kernel::MODULES),
            ("memory", memory::MODULES),
            ("hypervisor", hypervisor::MODULES),
            ("sharing", sharing::MODULES),
        ];
        for (room, modules) in rooms {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room);
            for entry in std::fs::read_dir(dir).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let name = name.trim_end_matches(".rs");
                assert!(name == "mod" || name == "tests" || modules.contains(&name), "{room}/{name}");
            }
        }
    }

    #[test]
    fn a_check_says_everything_that_a_reader_needs() {
        for (_, check) in all() {
            for (name, text) in [
                ("title", check.title),
                ("reads", check.reads),
                ("expected", check.expected),
                ("why", check.why),
                ("fix", check.fix),
            ] {
                assert!(!text.trim().is_empty(), "{}: {name} is empty", check.id);
            }
            assert!(!check.applies.is_empty(), "{}", check.id);
        }
    }

    #[test]
    fn no_check_is_without_a_source_that_can_be_opened() {
        for (_, check) in all() {
            assert!(!check.sources.is_empty(), "{} has no source", check.id);
            for source in check.sources.iter().filter(|source| source.is_beyond()) {
                let place = match source {
                    Source::Kernel(place) => {
                        // Of the documents those of the ABI alone have no ending.
                        let is_file = place.contains('/')
                            && (place.starts_with("Documentation/ABI/")
                                || place.rsplit('/').next().is_some_and(|n| n.contains('.')));
                        let commit = place.strip_prefix("commit ");
                        let is_commit = commit
                            .is_some_and(|id| id.len() == 12 && id.bytes().all(|b| b.is_ascii_hexdigit()));
                        assert!(is_file || is_commit, "{}: {place} is neither file nor commit", check.id);
                        place
                    }
                    Source::Tuned(place) | Source::Guide(place) => place,
                    _ => continue,
                };
                assert!(!place.trim().is_empty(), "{}: a source without a place", check.id);
            }
            let mut once = check.sources.to_vec();
            once.dedup();
            assert_eq!(once.len(), check.sources.len(), "{}: a source twice", check.id);
        }
    }
}
