//! `tactus fleet collect` and `tactus fleet show`, of bundles that were measured here.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::{beside_others, json, output, stderr, stdout, tactus};

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let own = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &own);
        } else {
            fs::copy(entry.path(), own).unwrap();
        }
    }
}

/// As another machine would have it.
fn of_machine(bundle: &Path, name: &str, id: &str) {
    let path = bundle.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["machine"]["name"] = name.into();
    manifest["machine"]["id"] = id.into();
    manifest["machine"].as_object_mut().unwrap().remove("hardware");
    fs::write(path, serde_json::to_vec(&manifest).unwrap()).unwrap();
}

#[test]
fn bundles_of_machines_are_collected_killed_and_again_and_the_fleet_is_shown() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first");
    let result = output(
        tactus().args(["measure", "-i", "1000", "-D", "1s", "--no-side-effects", "--out"]).arg(&first),
    );
    assert!(first.join("manifest.json").exists(), "{}", stderr(&result));
    let bundles = dir.path().join("bundles");
    for number in 0..60 {
        let bundle = bundles.join(format!("node{number}"));
        copied(&first, &bundle);
        // A name that would drive a terminal is one of them.
        let name = if number == 0 { "node\u{1b}]0;x\u{7}".to_owned() } else { format!("node{number}") };
        of_machine(&bundle, &name, &format!("{number:032x}"));
    }
    fs::remove_file(bundles.join("node7/events.jsonl")).unwrap();
    let data = dir.path().join("data");
    let show = |words: &[&str]| output(tactus().args(["fleet", "show"]).arg(&data).args(words));
    // Killed at any moment: what is there can be read, and the rest comes with the next call.
    for ms in [1, 30, 80, 150, 300] {
        let mut child = tactus();
        child.args(["fleet", "collect"]).arg(&bundles).arg("--into").arg(&data).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        sleep(Duration::from_millis(ms));
        let _ = child.kill();
        child.wait().unwrap();
        if data.join("data-set.json").exists() {
            let shown = show(&["--json"]);
            let runs = json(&shown)["runs"].as_u64().unwrap();
            // Without runs the result is inconclusive.
            assert_eq!(shown.status.code(), Some(if runs == 0 { 3 } else { 0 }), "{}", stderr(&shown));
            assert!(runs <= 59, "{runs}");
        }
    }
    let result =
        output(tactus().args(["fleet", "collect"]).arg(&bundles).arg("--into").arg(&data).arg("--json"));
    assert_eq!(result.status.code(), Some(1), "{}", stderr(&result));
    let became = json(&result);
    let many = |outcome: &str| {
        became["bundles"].as_array().unwrap().iter().filter(|one| one["outcome"] == outcome).count() as u64
    };
    assert_eq!(
        (many("taken"), many("there")),
        (became["taken"].as_u64().unwrap(), became["there"].as_u64().unwrap())
    );
    assert_eq!((many("refused"), became["refused"].as_u64()), (1, Some(1)), "{became:#}");
    let said = stderr(&result);
    assert!(said.contains("node7: events.jsonl is not as the run wrote it"), "{said}");
    assert!(said.contains("1 bundles refused") && !said.contains('\u{1b}'), "{said}");
    let again =
        output(tactus().args(["fleet", "collect"]).arg(bundles.join("node1")).arg("--into").arg(&data));
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(stderr(&again).contains("0 runs collected, 1 already present"), "{}", stderr(&again));

    // A second is too short for any verdict.
    let shown = show(&["--json", "--max", "1h"]);
    assert_eq!(shown.status.code(), Some(3), "{}", stderr(&shown));
    let shown = json(&shown);
    assert_eq!((shown["runs"].as_u64(), shown["machines"].as_u64()), (Some(59), Some(59)));
    let missed = show(&["--max", "1ns", "--json"]);
    assert_eq!(missed.status.code(), Some(1), "{}", stderr(&missed));
    assert!(json(&missed)["judged"].as_array().unwrap().iter().all(|one| one["outcome"] == "missed"));
    let text = stdout(&show(&["--max", "1ns", "--worst", "60"]));
    assert!(text.contains("59 of 59 machines missed the deadline of "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let expect = dir.path().join("expect.txt");
    fs::write(&expect, "# the rack\nnode1\nnode-that-never-was\n").unwrap();
    let missing = show(&["--json", "--expect", expect.to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(3), "{}", stderr(&missing));
    let missing = json(&missing);
    assert_eq!(missing["missing"].as_array().unwrap().len(), 1, "{missing:#}");
    assert_eq!(missing["missing"][0]["name"], "node-that-never-was");
    let page = dir.path().join("fleet.html");
    let written = show(&["--format", "html", "--out", page.to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
    assert!(fs::read_to_string(&page).unwrap().contains("What this cannot show"));
    let nothing = output(tactus().args(["fleet", "show"]).arg(&bundles));
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("is not a data set of tactus"), "{}", stderr(&nothing));
}
