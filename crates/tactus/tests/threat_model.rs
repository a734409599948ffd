//! `docs/design/security.md`: every proof that it names exists.
#![expect(clippy::disallowed_methods, reason = "the sources are read beside the door")]

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Every file of a directory with this ending.
fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found
}

/// Names of all tests of a file.
fn tests(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let marked = text.split("#[test]").skip(1);
    let name = |after: &str| after.split_once("fn ")?.1.split(['(', '<']).next().map(str::to_owned);
    marked.filter_map(name).collect()
}

/// The words between grave accents.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn a_sum_that_overflows_ends_the_command_as_it_is_released_too() {
    let text = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let profiles = text.split("\n[profile.").skip(1);
    let release = profiles.clone().find(|profile| profile.starts_with("release]")).unwrap();
    assert!(release.lines().any(|line| line == "overflow-checks = true"), "{release}");
    let own = profiles.filter(|profile| profile.starts_with("release.package"));
    assert!(own.clone().all(|profile| !profile.contains("overflow-checks")), "{:?}", own.collect::<Vec<_>>());
}

#[test]
fn every_promise_of_the_threat_model_names_a_proof_that_is_there() {
    let root = Path::new(ROOT);
    let text = fs::read_to_string(root.join("docs/design/security.md")).unwrap();
    let crates = files(&root.join("crates"), ".rs");
    let known: Vec<String> = crates.iter().flat_map(|path| tests(path)).collect();
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let mut rows = 0;
    for row in text.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [who, .., proof] = *cells.as_slice() else { panic!("{row}") };
        let (named, fuzzed) = proof.split_once("fuzz target").unwrap_or((proof, ""));
        for name in quoted(named) {
            let there = if let Some(target) = name.strip_prefix("make ") {
                makefile.lines().any(|line| line.starts_with(&format!("{target}:")))
            } else if name.ends_with(".rs") {
                crates.iter().any(|path| path.ends_with(name))
            } else {
                known.iter().any(|test| test == name)
            };
            assert!(there, "{who}: there is no test `{name}`");
        }
        for name in quoted(fuzzed) {
            let target = root.join(format!("fuzz/fuzz_targets/{name}.rs"));
            assert!(target.exists(), "{who}: there is no fuzz target `{name}`");
        }
        assert!(proof.contains('`') || proof.contains("no test:"), "{who}: nothing shows it");
        rows += 1;
    }
    assert!(rows >= 11, "the table was not found: {rows}");
}
