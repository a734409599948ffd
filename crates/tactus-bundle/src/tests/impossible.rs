//! Figures that cannot be: a reader has none of them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tactus_model::outcome::RowStatus;

use super::bundle;
use crate::{Trust, read};

/// Changes what the only row says.
fn change(dir: &Path, change: impl FnOnce(&mut Value)) {
    let path = dir.join("scenarios/01-host-idle/result.json");
    let mut result: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut result);
    fs::write(&path, result.to_string()).unwrap();
}

/// Changes a figure of the only row, for all its threads.
fn say(dir: &Path, key: &str, value: Value) {
    change(dir, |result| result["all"][key] = value);
}

#[test]
fn figures_that_cannot_be_are_those_of_the_logs_and_that_is_said() {
    for (key, value) in [
        ("max_ns", json!(u64::MAX)),
        ("max_ns", json!(3_600_000_000_000_u64)),
        ("max_ns", Value::Null),
        ("overruns", json!(1_000_000_000_000_000_000_u64)),
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
        assert!(
            result.reason.as_ref().unwrap().contains("its figures are impossible"),
            "{:?}",
            result.reason
        );
        assert!(
            contents.damage.iter().any(|said| said.contains("figures are impossible")),
            "{:?}",
            contents.damage
        );
    }
}

#[test]
fn a_time_that_cannot_be_is_that_of_the_logs() {
    for measured_ns in [0, 36_000_000_000_000_u64] {
        let dir = tempfile::tempdir().unwrap();
        let total = bundle(dir.path(), 10, 10, true).summary();
        change(dir.path(), |result| result["measured_ns"] = json!(measured_ns));
        let contents = read(dir.path(), Trust::Damaged).unwrap();
        let result = &contents.rows[0].result;
        assert_eq!((result.measured_ns, result.all().unwrap().max_ns), (10_000_000_000, total.max_ns));
        let said = |said: &String| said.contains("figures are impossible");
        assert!(contents.damage.iter().any(said), "{:?}", contents.damage);
    }
}

#[test]
fn missed_periods_that_were_not_counted_are_unknown() {
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 10, true);
    change(dir.path(), |result| result["measurement"] = json!({ "kind": "spin" }));
    let overruns = |dir: &Path| {
        let contents = read(dir, Trust::Damaged).unwrap();
        let result = &contents.rows[0].result;
        (result.series()[0].summary.overruns, result.all().and_then(|all| all.overruns))
    };
    assert_eq!(overruns(dir.path()), (None, None), "what polls has no periods");
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 10, true);
    change(dir.path(), |result| {
        result["measurement"] = json!({ "kind": "timer" });
        result["status"] = json!("failed");
        result["ended"] = json!("failed");
        let empty = serde_json::to_value(tactus_model::latency::Latency::new().summary()).unwrap();
        result["series"][0]["summary"] = empty;
        result["all"] = Value::Null;
    });
    assert_eq!(overruns(dir.path()), (None, None), "nothing was measured");
}

#[test]
fn periods_of_no_length_are_not_missed() {
    let dir = tempfile::tempdir().unwrap();
    bundle(dir.path(), 10, 10, true);
    change(dir.path(), |result| {
        result["interval_ns"] = json!(0);
        result["all"]["overruns"] = json!(81);
    });
    let contents = read(dir.path(), Trust::Damaged).unwrap();
    assert!(contents.damage.iter().any(|said| said.contains("there is no period")), "{:?}", contents.damage);
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
