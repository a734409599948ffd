//! `tactus import`, on what other instruments wrote, and on what one writes now.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{beside_others, json, output, stderr, stdout, tactus};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/import");

/// Every figure of the document of a bundle that these files become.
fn imported(out: &Path, files: &[&str]) -> serde_json::Value {
    let result = output(tactus().arg("import").args(files).arg("--out").arg(out));
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    json(&output(tactus().arg("show").arg(out).arg("--json")))
}

#[test]
fn files_of_other_instruments_are_a_bundle_like_any_other_and_judge_nothing() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("bundle");
    let mut files: Vec<String> =
        fs::read_dir(FILES).unwrap().map(|entry| entry.unwrap().path().display().to_string()).collect();
    files.sort();
    let document = imported(&out, &files.iter().map(String::as_str).collect::<Vec<_>>());
    let scenarios = document["scenarios"].as_array().unwrap();
    // rtla timerlat has three contexts.
    assert_eq!(scenarios.len(), files.len() + 2);
    for scenario in scenarios {
        assert_eq!(scenario["evidence"], "imported", "{scenario:#}");
        assert_eq!(scenario["status"], "measured", "{scenario:#}");
        assert!(scenario["verdict"].is_null(), "{scenario:#}");
    }
    for format in ["html", "text", "markdown", "json", "svg"] {
        let result = output(tactus().arg("report").arg(&out).args(["--format", format, "--out", "-"]));
        assert_eq!(result.status.code(), Some(0), "{format}: {}", stderr(&result));
        assert!(!result.stdout.is_empty(), "{format}");
    }
    let fitness = output(tactus().arg("fitness").arg(&out).args(["--require", "plc"]));
    assert_eq!(fitness.status.code(), Some(3), "{}", stdout(&fitness));
}

#[test]
fn a_file_that_is_spoiled_is_refused_with_its_place_and_leaves_no_bundle() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("run.json"), dir.path().join("bundle"));
    fs::write(&file, "{\"thread\": {\"0\": {\"cycles\": 3,\n\"avg\": nan}}}").unwrap();
    let result = output(tactus().arg("import").arg(&file).arg("--out").arg(&out));
    assert_eq!(result.status.code(), Some(2));
    assert!(stderr(&result).contains("run.json: line 2: column "), "{}", stderr(&result));
    assert!(!out.exists());
}

/// What cyclictest measures now is in its two files, and in the bundle.
#[test]
fn what_cyclictest_measures_here_is_what_is_imported() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let run = Command::new("cyclictest")
        .args([
            "-q",
            "-l",
            "300",
            "-i",
            "500",
            "-t",
            "2",
            "-h",
            "60",
            "--json=run.json",
            "--histfile=run.txt",
        ])
        .current_dir(dir.path())
        .output();
    let Ok(run) = run else {
        assert!(std::env::var_os("TACTUS_TEST_ALL").is_none(), "cyclictest is not installed");
        eprintln!("skipped: cyclictest is not installed");
        return;
    };
    assert!(run.status.success(), "{run:?}");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let written: serde_json::Value = serde_json::from_slice(&fs::read(file("run.json")).unwrap()).unwrap();
    let document = imported(&dir.path().join("bundle"), &[&file("run.json"), &file("run.txt")]);
    for scenario in document["scenarios"].as_array().unwrap() {
        for (number, series) in scenario["series"].as_array().unwrap().iter().enumerate() {
            let thread = &written["thread"][number.to_string()];
            assert_eq!(series["cycles"], thread["cycles"], "{series:#}");
            assert_eq!(series["max_ns"], thread["max"].as_u64().unwrap() * 1_000, "{series:#}");
            assert_eq!(series["min_ns"], thread["min"].as_u64().unwrap() * 1_000, "{series:#}");
            assert_eq!(series["lost"], 0, "{series:#}");
        }
    }
}
