//! Tests of the parts that all formats share. The report crate tests what each format writes of whole
//! bundles, because it makes the documents.

use std::collections::BTreeSet;
use std::path::Path;

use super::table::{TABLES, page};
use super::*;

#[test]
#[expect(clippy::disallowed_methods, reason = "the sources are looked at")]
fn every_file_of_a_format_and_of_a_table_stands_in_its_list() {
    let here = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/export"));
    let files = |dir: &Path, not: &[&str]| -> BTreeSet<String> {
        std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "rs"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().replace('_', "-"))
            .filter(|name| !not.contains(&name.as_str()))
            .collect()
    };
    let names: BTreeSet<String> = EXPORTS.iter().map(|export| export.name.to_owned()).collect();
    assert_eq!(files(here, &["cyclictest", "oslat", "rt-tests", "series", "table", "tests"]), names);
    let tables: BTreeSet<String> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    assert_eq!(files(&here.join("table"), &[]), tables);
}

#[test]
fn every_column_has_one_name_and_says_what_it_is() {
    for table in TABLES {
        let names: BTreeSet<&str> = table.columns.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        for column in table.columns {
            assert!(column.about.trim().ends_with('.'), "{}: {}", table.name, column.name);
        }
    }
}

/// The page of the book is made from the columns; `UPDATE_DOCS=1` writes it anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "the book is compared with the code")]
fn the_book_says_what_the_columns_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tables.md");
    let made = page();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(path, &made).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(published == made, "docs/reference/tables.md is out of date: run with UPDATE_DOCS=1");
}
