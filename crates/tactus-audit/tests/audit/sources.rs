//! The table of what the sources of the checks say, in the book, beside the catalogue.

use std::collections::BTreeMap;

use tactus_audit::{Source, all};

const TABLE: &str = include_str!("../../../../docs/reference/audit-sources.md");

/// The verdict of each check.
fn verdicts() -> BTreeMap<&'static str, &'static str> {
    let rows = TABLE.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        (cells.len() == 6 && !cells[1].is_empty() && !["check", "---"].contains(&cells[1]))
            .then(|| (cells[1], cells[2]))
    });
    rows.collect()
}

#[test]
fn every_check_stands_in_the_table_of_sources() {
    let verdicts = verdicts();
    let missing: Vec<&str> =
        all().map(|(_, check)| check.id).filter(|id| !verdicts.contains_key(id)).collect();
    assert!(missing.is_empty(), "no row for {}", missing.join(", "));
    let gone: Vec<&&str> = verdicts.keys().filter(|id| tactus_audit::find(id).is_none()).collect();
    assert!(gone.is_empty(), "no check for {gone:?}");
}

#[test]
fn the_table_of_sources_counts_its_own_verdicts() {
    for verdict in ["right", "fixed", "in part", "not beyond", "not read"] {
        let count = verdicts().values().filter(|one| **one == verdict).count();
        assert!(count > 0 && TABLE.contains(&format!("- **{verdict}** ({count}):")), "{verdict}: {count}");
    }
    for (id, verdict) in verdicts() {
        assert!(
            ["right", "fixed", "in part", "not beyond", "not read"].contains(&verdict),
            "{id}: {verdict}"
        );
    }
}

#[test]
fn what_rests_on_the_five_documents_alone_is_not_called_right() {
    let verdicts = verdicts();
    for (_, check) in all() {
        let beyond = check.sources.iter().any(|source| source.is_beyond());
        assert!(beyond || verdicts[check.id] != "right", "{}", check.id);
    }
}

/// TuneD's own profiles (`profiles/` of its source) that the checks rest on.
const TUNED: [&str; 6] = [
    "cpu-partitioning",
    "latency-performance",
    "network-latency",
    "realtime",
    "realtime-virtual-guest",
    "realtime-virtual-host",
];

#[test]
fn every_source_beyond_the_five_documents_is_a_file_a_commit_a_profile_or_a_named_guide() {
    let mut beyond = 0;
    for (_, check) in all() {
        assert!(!check.sources.is_empty(), "{} has no source", check.id);
        for source in check.sources.iter().filter(|source| source.is_beyond()) {
            beyond += 1;
            match source {
                Source::Tuned(profile) => assert!(TUNED.contains(profile), "{}: {profile}", check.id),
                Source::Kernel(place) => {
                    assert!(place.contains('/') || place.starts_with("commit "), "{}: {place}", check.id);
                }
                Source::Guide(name) => {
                    assert!(name.starts_with(char::is_alphabetic) && name.len() > 3, "{}: {name}", check.id);
                }
                other => panic!("{}: {other} is none of these", check.id),
            }
        }
    }
    assert!(beyond > 100, "{beyond}");
}
