//! Bundles that an earlier tactus recorded and that were rewritten to today's format. They open, and reports
//! show what that tactus showed, except for new keys. `recorded/<name>.json` is its
//! `tactus report <name> --json`.
//!
//! `environments`: host, container, emulated guest, twelve threads on one core, gaps. `separation`: a block and cache
//! load against each other's rests. `prove`: ten pairs of a setting. `interrupted`: by Ctrl-C; `killed`: by `kill -9`,
//! each in a day's row. The machine was named `bench-01` afterwards; facts and audits are kept of the first one only.
#![expect(clippy::disallowed_methods, reason = "fixtures are read beside the door")]

use std::path::PathBuf;

use serde_json::Value;
use tactus_bundle::{Trust, read};
use tactus_model::document::{Doubt, Leak};
use tactus_report::document;

fn recorded(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name)
}

/// Where `now` lacks something of `then`, or has it otherwise.
fn differences(at: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            // Measured and judged values stay; the reason of a verdict follows the rules of today.
            let reworded = |key: &str| at.ends_with(".verdict") && key == "reason";
            for (key, value) in then.iter().filter(|(key, _)| !reworded(key)) {
                let at = format!("{at}.{key}");
                match now.get(key) {
                    Some(same) => differences(&at, value, same, found),
                    None => found.push(format!("{at} is gone")),
                }
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (n, (then, now)) in then.iter().zip(now).enumerate() {
                differences(&format!("{at}[{n}]"), then, now, found);
            }
        }
        _ if then == now => {}
        _ => found.push(format!("{at}: {then} became {now}")),
    }
}

fn is_shown_as_before(name: &str) {
    let found = changes(name);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Figures that are shown differently than before.
fn changes(name: &str) -> Vec<String> {
    let contents = read(&recorded(name), Trust::Whole).unwrap();
    // Through the same reader: it rounds what it reads.
    let now = serde_json::from_str(&serde_json::to_string(&document(&contents)).unwrap()).unwrap();
    let text = std::fs::read_to_string(recorded(&format!("{name}.json"))).unwrap();
    let then: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    differences("", &then, &now, &mut found);
    found
}

#[test]
fn a_run_in_several_environments_is_shown_as_before() {
    is_shown_as_before("environments");
}

/// Results of seconds with a disturbance against seconds at rest, which bursts of noise could imitate.
const JUDGED_BY_TIMES: [&str; 11] = [
    "injected",
    "half_at_rest",
    "half",
    "full",
    "ratio",
    "ratio_low",
    "ratio_high",
    "slots",
    "leak",
    "doubt",
    "reason",
];

#[test]
fn a_separation_without_times_of_injection_keeps_its_maxima_and_is_not_known() {
    let found = changes("separation");
    let judged = |change: &&String| {
        let key = change.split_once(": ").and_then(|(at, _)| at.strip_prefix(".separation.cells["));
        let key = key.and_then(|key| Some(key.split_once("].")?.1.split('[').next().unwrap_or_default()));
        key.is_some_and(|key| JUDGED_BY_TIMES.contains(&key))
    };
    let others: Vec<&String> = found.iter().filter(|change| !judged(change)).collect();
    assert!(others.is_empty(), "{others:#?}");
    let entry = document(&read(&recorded("separation"), Trust::Whole).unwrap()).separation.unwrap();
    for cell in &entry.cells {
        assert_eq!(cell.leak, Leak::NotKnown, "{cell:?}");
        let doubt = cell.doubt.unwrap();
        assert!(matches!(doubt, Doubt::NoTimes | Doubt::NotMeasured | Doubt::NoSuchCpu), "{cell:?}");
        assert!(!cell.reason.is_empty(), "{cell:?}");
    }
    assert!(entry.cells.iter().any(|cell| cell.doubt == Some(Doubt::NoTimes)));
}

#[test]
fn a_proof_is_shown_as_before() {
    is_shown_as_before("prove");
}

#[test]
fn an_interrupted_run_is_shown_as_before() {
    is_shown_as_before("interrupted");
}

#[test]
fn a_killed_run_is_shown_as_before() {
    is_shown_as_before("killed");
}

#[test]
fn what_is_gone_or_altered_is_told() {
    let (then, now) =
        (serde_json::json!({ "a": [1, { "b": 2 }], "c": null }), serde_json::json!({ "a": [1, { "b": 3 }] }));
    let mut found = Vec::new();
    differences("", &then, &now, &mut found);
    assert_eq!(found, [".a[1].b: 2 became 3", ".c is gone"]);
}

#[test]
fn the_files_of_a_measurement_are_its_own_also_where_another_one_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let copied =
        std::process::Command::new("cp").arg("-r").arg(recorded("prove")).arg(dir.path()).status().unwrap();
    assert!(copied.success());
    let bundle = dir.path().join("prove");
    let all = document(&read(&bundle, Trust::Whole).unwrap()).scenarios;
    let first = all[0].files.iter().find(|file| file.ends_with("result.json")).unwrap();
    std::fs::remove_file(bundle.join(first)).unwrap();
    let left = document(&read(&bundle, Trust::Damaged).unwrap()).scenarios;
    assert_eq!(left.len() + 1, all.len());
    for (entry, before) in left.iter().zip(&all[1..]) {
        assert_eq!((&entry.name, &entry.files), (&before.name, &before.files));
        assert!(entry.files.len() > 1, "{:?}", entry.files);
    }
}
