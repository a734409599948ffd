//! Code that shows a result computes none: no renderer, section or figure calls the statistics.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Modules that show results.
const SHOW: [&str; 4] = ["figure", "part", "render", "section"];

/// Results of the statistics, which may be shown.
const RESULTS: [&str; 5] = ["Bins", "Bound", "Difference", "Exceedance", "Level"];

/// Files that still call the statistics, with the items they use. Remove a file that no longer does; add
/// none.
const STILL: [(&str, &[&str]); 5] = [
    ("figure/tail.rs", &["Tail"]),
    ("section/separation/judge.rs", &["Stratum", "at_most", "chance", "drawn", "paired"]),
    ("section/separation/leak.rs", &["Stratum", "at_most"]),
    ("section/separation/lock_in.rs", &["Stratum"]),
    ("section/technologies/judgement.rs", &["Test"]),
];

/// The names that a text uses of the crate of statistics.
fn used(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices("tactus_statistics::") {
        let path = &text[at..];
        let end = path.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(path.len());
        let list = path[end..].strip_prefix('{').and_then(|list| list.split('}').next());
        let last = path[..end].rsplit("::").next().unwrap_or_default();
        let all = list.map_or_else(|| vec![last], |list| list.split(',').collect());
        names.extend(all.into_iter().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned));
    }
    names
}

#[expect(clippy::disallowed_methods, reason = "a test reads the sources")]
fn look(directory: &Path, found: &mut Vec<(String, BTreeSet<String>)>, root: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            look(&path, found, root);
        } else if path.extension().is_some_and(|is| is == "rs") {
            let mut names = used(&fs::read_to_string(&path).unwrap());
            names.retain(|name| !RESULTS.contains(&name.as_str()));
            if !names.is_empty() {
                found.push((path.strip_prefix(root).unwrap().display().to_string(), names));
            }
        }
    }
}

#[test]
fn what_shows_results_calls_no_statistics_but_where_it_still_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    SHOW.iter().for_each(|room| look(&root.join(room), &mut found, &root));
    found.sort();
    let still = |(file, names): &(&str, &[&str])| {
        ((*file).to_owned(), names.iter().map(ToString::to_string).collect::<BTreeSet<_>>())
    };
    assert_eq!(found, STILL.iter().map(still).collect::<Vec<_>>());
}

#[test]
fn every_way_to_name_the_statistics_is_seen() {
    let text = "use tactus_statistics::{ERROR, holm};\nuse tactus_statistics::tail::bound;\nlet p = \
                tactus_statistics::median(of);\nuse tactus_statistics::tail::{\n    Tail,\n};";
    let names: Vec<String> = used(text).into_iter().collect();
    assert_eq!(names, ["ERROR", "Tail", "bound", "holm", "median"]);
}
