//! Figures that cannot be: a reader has none of them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tactus_model::outcome::RowStatus;

use super::bundle;
use crate::{Trust, read};

/// Changes what the only row says of all its threads.
fn say(dir: &Path, key: &str, value: Value) {
    let path = dir.join("scenarios/01-host-idle/result.json");
    let mut result: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    result["all"][key] = value;
    fs::write(&path, result.to_string()).unwrap();
}

#[test]
fn figures_that_cannot_be_are_those_of_the_logs_and_that_is_said() {
    for (key, value) in [
        ("max_ns", json!(u64::MAX)),
        ("min_ns", json!(3_700_000)),
        ("mean_ns", json!(0.0)),
        ("p999_ns", json!(2_000_000)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let total = bundle(dir.path(), 10, 10, true).summary();
        say(dir.path(), key, value);
        let contents = read(dir.path(), Trust::Damaged).unwrap();
        let result = &contents.rows[0].result;
        let all = result.all().unwrap();
        assert_eq!((all.max_ns, all.min_ns, all.cycles), (total.max_ns, total.min_ns, total.cycles), "{key}");
        assert!(result.reason.as_ref().unwrap().contains("its figures cannot be"), "{:?}", result.reason);
        assert!(
            contents.damage.iter().any(|said| said.contains("figures cannot be")),
            "{:?}",
            contents.damage
        );
    }
}

#[test]
fn figures_that_no_log_has_either_are_none_and_the_row_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 10, true);
    say(dir.path(), "max_ns", json!(u64::MAX));
    let own = dir.path().join("scenarios/01-host-idle");
    for entry in fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.file_name().unwrap() != "result.json" {
            fs::remove_file(entry).unwrap();
        }
    }
    let contents = read(dir.path(), Trust::Damaged).unwrap();
    let result = &contents.rows[0].result;
    assert!(result.all().is_none() && result.series().is_empty());
    assert_eq!(result.status, RowStatus::Failed);
    assert!(result.reason.as_ref().unwrap().contains("longer than the measurement"), "{:?}", result.reason);
}
