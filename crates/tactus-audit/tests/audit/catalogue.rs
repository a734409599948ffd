//! The catalogue of checks beside the book.

use std::fmt::Write;

use tactus_audit::{Check, FAMILIES};

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
