//! The catalogue of checks beside the knowledge base that it was made from, and beside the book.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use tactus_audit::{Check, FAMILIES, all};

/// Where the knowledge base is wrong: `id column: what it says, what is right, and why`.
const CORRECTED: &[(&str, &str, &str)] = &[];

const KNOWLEDGE: &str = include_str!("../knowledge-base.tsv");

/// A row of the knowledge base, by the names of its columns.
type Entry<'a> = BTreeMap<&'a str, &'a str>;

fn knowledge() -> Vec<Entry<'static>> {
    let mut lines = KNOWLEDGE.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines.next().expect("it has a heading").split('\t').collect();
    lines.map(|line| columns.iter().copied().zip(line.split('\t')).collect()).collect()
}

/// The word that the JSON of `tactus audit --list` uses.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .expect("it is a word")
}

fn words<T: Serialize>(values: &[T]) -> String {
    values.iter().map(word).collect::<Vec<_>>().join(",")
}

/// The five documents among sources; what lies beyond them the catalogue says more closely than the notes.
fn documents<'a>(sources: impl Iterator<Item = &'a str>) -> String {
    let five = [
        "intel-xeon-2015",
        "freescale-qoriq-2014",
        "redhat-openstack-2018",
        "intel-industrial-2014",
        "osadl-2023",
    ];
    let named: Vec<&str> = sources.filter(|source| five.contains(source)).collect();
    if named.is_empty() { "beyond the documents".to_owned() } else { named.join(",") }
}

fn is(check: &Check, family: &str, column: &str) -> String {
    match column {
        "family" => family.to_owned(),
        "id" => check.id.to_owned(),
        "applies" => words(check.applies),
        "sources" => documents(words(check.sources).split(',')),
        "severity" => word(check.severity),
        "arch" => word(check.arch),
        "reversible" => word(check.reversible),
        column => panic!("{column} is compared with nothing"),
    }
}

#[test]
fn every_entry_of_the_knowledge_base_is_a_check() {
    let entries = knowledge();
    assert!(entries.len() > 124, "the notes have as many");
    let missing: Vec<&str> = entries
        .iter()
        .filter(|entry| all().all(|(_, check)| check.id != entry["id"]))
        .map(|entry| entry["id"])
        .collect();
    assert!(missing.is_empty(), "no check for {}", missing.join(", "));
}

#[test]
fn every_check_says_what_the_knowledge_base_says() {
    let entries = knowledge();
    let mut wrong = Vec::new();
    for (family, check) in all() {
        let Some(entry) = entries.iter().find(|entry| entry["id"] == check.id) else {
            wrong.push(format!("{} is not in the knowledge base", check.id));
            continue;
        };
        for (column, says) in entry {
            let is = is(check, family, column);
            let says = if *column == "sources" { &*documents(says.split(',')) } else { says };
            let corrected =
                CORRECTED.iter().any(|(id, of, right)| (*id, *of, *right) == (check.id, *column, &*is));
            if is != says && !corrected {
                wrong.push(format!("{} {column}: the knowledge base says {says}, the check {is}", check.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reference in the book is made from the catalogue; `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_reference_of_checks_is_that_of_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/checks.md");
    let made = reference();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(path, &made).expect("docs/reference can be written");
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    // Not assert_eq!: two copies of the page would be printed.
    assert!(published == made, "docs/reference/checks.md is out of date: run with UPDATE_DOCS=1");
}

fn reference() -> String {
    let mut text = "# Checks\n\n\
        What `tactus audit` looks at. `tactus explain ID` prints an entry, `tactus audit --list --json` has them all. \
        ISOLATED and HOUSEKEEPING stand for the CPUs of the machine, HOUSEKEEPING_MASK for the mask of the latter.\n\n\
        This page is made from the catalogue (`UPDATE_DOCS=1 cargo test -p tactus-audit catalogue`).\n"
        .to_owned();
    for family in FAMILIES {
        let count = family.files.iter().map(|file| file.len()).sum::<usize>();
        let _ = writeln!(text, "\n## {}\n\n{count} checks.", family.title);
        for check in family.files.iter().copied().flatten() {
            entry(&mut text, check);
        }
    }
    text
}

fn entry(text: &mut String, check: &Check) {
    let _ = writeln!(text, "\n### {}\n\n{}.\n", check.id, escaped(&capital(check.title)));
    for (name, value) in check.fields() {
        let (name, value) = (capital(name), escaped(&value));
        let _ = writeln!(text, "- **{name}:** {value}");
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Commands and XML stand in these texts as they are: Markdown must not take them for its own.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '*' | '<' | '`' | '[' | ']' | '~') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}
