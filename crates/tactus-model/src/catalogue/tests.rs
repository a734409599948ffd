//! Checks the catalogue against its files, and every word against the code made from it.
#![expect(clippy::disallowed_methods, reason = "the sources and the book are looked at")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Entry, Family, Fault, Load, Measure, Parameter, entries, fault, find, load, measure};
use crate::control::ControlBy;
use crate::duration::Nanos;
use crate::message::What;
use crate::scheduling::Policy;
use crate::wire::row::testing::{is_known, returns};

/// As it travels to a probe.
fn what(family: Family, table: Value) -> What {
    match family {
        Family::Measure => {
            let measure = serde_json::from_value(table).unwrap();
            What::Measure { measure, interval_ns: 1_000, priority: 99, policy: Policy::Rr }
        }
        Family::Load => What::Load(serde_json::from_value(table).unwrap()),
        Family::Fault => What::Fault(serde_json::from_value(table).unwrap()),
    }
}

#[test]
fn every_file_is_in_the_table_of_its_family() {
    for (family, files, table) in [
        ("measure", measure::FILES, measure::MEASURES),
        ("load", load::FILES, load::LOADS),
        ("fault", fault::FILES, fault::FAULTS),
    ] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/catalogue").join(family);
        let there: BTreeSet<String> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .filter(|name| name != "mod")
            .collect();
        let named: BTreeSet<String> = files.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(there, named, "a file of catalogue/{family} is missing from its table");
        let words: Vec<String> = files.iter().map(|name| name.replace('_', "-")).collect();
        assert_eq!(table.iter().map(|entry| entry.name).collect::<Vec<_>>(), words);
        assert!(table.iter().all(|entry| format!("{:?}", entry.family).to_lowercase() == family));
    }
}

#[test]
fn every_word_says_what_it_does_and_what_its_keys_are() {
    // Keys of an activity beside its word, in a plan or in a message to a probe.
    let taken = ["kind", "in", "to", "from", "cpus", "interval", "interval_ns", "priority", "policy"];
    for entry in entries() {
        let name = entry.name;
        assert!(!entry.summary.is_empty() && !entry.summary.ends_with('.'), "{name}: {}", entry.summary);
        assert!(
            entry.text().iter().all(|paragraph| paragraph.len() > 40 && paragraph.ends_with('.')),
            "{name}"
        );
        let mut keys = BTreeSet::new();
        for parameter in entry.parameters {
            let key = parameter.key;
            assert!(keys.insert(key), "{name}.{key} is there twice");
            assert!(!["measure", "load", "fault"].contains(&key) && !taken.contains(&key), "{name}.{key}");
            assert!(parameter.about().ends_with('.'), "{name}.{key}: {}", parameter.about());
        }
    }
}

/// A table of an entry with every key, none of them as it is when left out.
fn whole(entry: &Entry) -> Value {
    let mut table = serde_json::Map::new();
    table.insert("kind".into(), entry.name.into());
    for parameter in entry.parameters {
        let takes = (parameter.takes)();
        let value = match takes.as_str() {
            "a number" => json!(7),
            "a time" => json!("5ms"),
            "a size" => json!("2MiB"),
            "a range of sizes" => json!("2KiB..4MiB"),
            "true or false" => json!(true),
            "a text" => json!("/var/tmp/a=b"),
            "a list of words" => json!(["stress-ng", "--malloc=1", "", "run=x"]),
            choice => json!(choice.trim_matches('"').rsplit("\" or \"").next().unwrap()),
        };
        table.insert(parameter.key.into(), value);
    }
    Value::Object(table)
}

#[test]
fn every_key_of_every_word_is_read_written_and_travels() {
    for entry in entries() {
        let table = whole(entry);
        let what = what(entry.family, table.clone());
        let again = match &what {
            What::Measure { measure, .. } => serde_json::to_value(measure),
            What::Load(load) => serde_json::to_value(load),
            What::Fault(fault) => serde_json::to_value(fault),
        };
        assert_eq!(again.unwrap(), table);
        returns(&what);
        if let What::Fault(fault) = what {
            returns(&ControlBy::Fault(fault));
        }
    }
    returns(&ControlBy::Nothing);
    returns(&ControlBy::Hog);
}

#[test]
fn what_may_be_left_out_is_left_out_of_json_too() {
    for entry in entries() {
        let mut least = json!({ "kind": entry.name });
        let read = match entry.family {
            Family::Measure => written::<Measure>(&least),
            Family::Load => written::<Load>(&least),
            Family::Fault => written::<Fault>(&least),
        };
        let may = |parameter: &Parameter| parameter.optional || parameter.default.is_some();
        assert_eq!(read.is_some(), entry.parameters.iter().all(may), "{}", entry.name);
        // But for flags, which bundles have always said.
        for flag in entry.parameters.iter().filter(|parameter| (parameter.takes)() == "true or false") {
            least[flag.key] = false.into();
        }
        assert!(read.is_none_or(|read| read == least), "{}", entry.name);
    }
}

fn written<T: DeserializeOwned + Serialize>(table: &Value) -> Option<Value> {
    serde_json::from_value::<T>(table.clone()).ok().map(|read| serde_json::to_value(read).unwrap())
}

#[test]
fn a_key_or_a_word_that_is_not_known_is_named() {
    let wrong = |error: Result<Load, serde_json::Error>| error.unwrap_err().to_string();
    let key = wrong(serde_json::from_str(r#"{"kind":"cpu","bussy":5}"#));
    assert!(key.contains("unknown field `bussy`, expected `busy`"), "{key}");
    let word = wrong(serde_json::from_str(r#"{"kind":"cup"}"#));
    assert!(word.contains("unknown variant `cup`, expected one of `scheduler`, `cpu`"), "{word}");
}

#[test]
fn a_wrong_row_gives_no_value() {
    let good = ["what=Fault", "fault=hog", "length=1", "every=2"];
    assert!(is_known::<What>(&good));
    for (at, wrong) in [(0, "what=Flood"), (1, "fault=flood"), (2, "length=x"), (3, "ever=2")] {
        let mut row = good;
        row[at] = wrong;
        assert!(!is_known::<What>(&row), "{wrong}");
    }
    assert!(!is_known::<What>(&["what=Load", "load=cpu", "busy=99999999999"]));
    assert!(!is_known::<What>(&["what=Load", "load=scheduler", "pipes=2"]));
    assert!(!is_known::<ControlBy>(&["what=Load", "load=cpu"]));
}

#[test]
fn what_is_beyond_its_bounds_is_named_with_them() {
    let why = |table: &str| serde_json::from_str::<Load>(table).unwrap().check().unwrap_err();
    let error = why(r#"{"kind":"network","bytes":"64KiB"}"#);
    assert_eq!(
        (error.to_string(), error.hint()),
        ("bytes = 64KiB is out of range".into(), "use 1B to 65507B".into())
    );
    assert_eq!(why(r#"{"kind":"cache","blocks":0}"#).to_string(), "blocks = 0 is out of range");
    assert_eq!(load::Cache::default().check(), Ok(()), "what is left out has no bounds");
    let block = fault::Block { length: Nanos(1), every: Nanos(9), emulated: None, off: None, way: None };
    assert_eq!(Fault::Block(block).check().unwrap_err().hint(), "use 1us to 1s");
}

#[test]
fn the_bounds_and_defaults_of_a_parameter_are_shown_as_a_plan_writes_them() {
    let takes = |word: &str, key: &str| {
        let entry = find(word).next().unwrap();
        entry.parameters.iter().find(|parameter| parameter.key == key).unwrap().takes()
    };
    assert_eq!(takes("timer", "threads"), "a number, 1 to 64; default 1");
    assert_eq!(takes("timer", "break"), "a time");
    assert_eq!(takes("scheduler", "pipes"), "true or false; default false");
    assert_eq!(takes("cache", "bytes"), r#"a size, 1B to 4GiB; default "512KiB""#);
    assert_eq!(takes("command", "run"), "a list of words; must be given");
    assert_eq!(takes("hold-vcpu", "by"), r#""ptrace" or "fifo"; default "ptrace""#);
}

/// The reference in the book is made from the catalogue; `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_reference_of_words_is_that_of_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/activities.md");
    let made = reference();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(path, &made).expect("docs/reference can be written");
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    // Not assert_eq!: two copies of the page would be printed.
    assert!(published == made, "docs/reference/activities.md is out of date: run with UPDATE_DOCS=1");
}

fn reference() -> String {
    let mut text = "# Measurements, loads and faults\n\n\
        What an activity of a plan can be, with the keys of its table. `tactus explain WORD` prints an entry.\n\n\
        This page is made from the catalogue (`UPDATE_DOCS=1 cargo test -p tactus-model catalogue`).\n"
        .to_owned();
    for (title, table) in
        [("Measurements", measure::MEASURES), ("Loads", load::LOADS), ("Faults", fault::FAULTS)]
    {
        let _ = writeln!(text, "\n## {title}");
        for entry in table {
            let _ = writeln!(text, "\n### {}\n\n{}.", entry.name, escaped(&capital(entry.summary)));
            for paragraph in entry.text() {
                let _ = writeln!(text, "\n{}", escaped(&paragraph));
            }
            text.push('\n');
            for parameter in entry.parameters {
                let (takes, about) = (parameter.takes(), parameter.about());
                let _ = writeln!(text, "- `{}` ({}): {}", parameter.key, escaped(&takes), escaped(&about));
            }
            if !entry.items.is_empty() {
                text.push_str("It yields:\n\n");
            }
            for item in entry.items {
                let _ = writeln!(text, "- {} ({}): {}.", escaped(item.name), item.unit, escaped(item.about));
            }
        }
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// These texts contain names of the kernel as they are: Markdown must not read them as markup. Text between backticks
/// is code in both.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(n, part)| if n % 2 == 0 { part.replace('_', "\\_") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}
