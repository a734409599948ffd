//! `tactus convert`, of a bundle that was measured here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{beside_others, json, output, stderr, stdout, tactus};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A bundle of two threads, measured for two seconds.
fn measured(dir: &Path) -> PathBuf {
    let out = dir.join("bundle");
    let result =
        output(tactus().args(["measure", "-i", "1000", "-D", "2s", "--no-side-effects", "--out"]).arg(&out));
    assert!(out.join("manifest.json").exists(), "{}", stderr(&result));
    out
}

#[test]
fn what_was_measured_is_exported_in_every_format_and_imported_again() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let bundle = measured(dir.path());
    let shown = json(&output(tactus().arg("report").arg(&bundle).arg("--json")));
    let all = &shown["scenarios"][0]["all"];
    let export = |words: &[&str]| output(tactus().arg("convert").arg(&bundle).args(words));
    for (format, file) in
        [("cyclictest-json", "a.json"), ("cyclictest-histogram", "b.txt"), ("hlog", "c.hlog")]
    {
        let file = dir.path().join(file);
        let mut words = vec!["--to", format, "--out", file.to_str().unwrap()];
        words.extend(if format == "hlog" { None } else { Some(["--unit", "ns"]) }.into_iter().flatten());
        let result = export(&words);
        assert_eq!(result.status.code(), Some(0), "{format}: {}", stderr(&result));
        assert!(stdout(&result).is_empty() && stderr(&result).contains("written: "), "{}", stderr(&result));
        let again = dir.path().join(format!("{format}-again"));
        let unit = if format == "cyclictest-histogram" { &["--unit", "ns"][..] } else { &[] };
        let result = output(tactus().arg("convert").arg(&file).args(unit).arg("--out").arg(&again));
        assert_eq!(result.status.code(), Some(0), "{format}: {}", stderr(&result));
        let again = json(&output(tactus().arg("report").arg(&again).arg("--json")));
        for figure in ["cycles", "p50_ns", "p99_ns", "p999_ns"] {
            assert_eq!(again["scenarios"][0]["all"][figure], all[figure], "{format}: {figure}");
        }
        assert_eq!(again["scenarios"][0]["evidence"], "imported");
    }
    let tables = dir.path().join("tables");
    for format in ["csv", "parquet"] {
        let result = export(&["--to", format, "--out", tables.to_str().unwrap()]);
        assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    }
    let mut wanted = Vec::new();
    for table in ["findings", "histograms", "scenarios", "series", "ticks", "values"] {
        wanted.extend([format!("{table}.csv"), format!("{table}.parquet")]);
    }
    assert_eq!(names(&tables), wanted);
    // Every tick of every series, and their cycles add up.
    let text = fs::read_to_string(tables.join("ticks.csv")).unwrap();
    let columns: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let at = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let (mut sums, mut ticks): (BTreeMap<String, u64>, usize) = (BTreeMap::new(), 0);
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        *sums.entry(cells[at("series")].to_owned()).or_default() +=
            cells[at("cycles")].parse::<u64>().unwrap();
        ticks += 1;
    }
    assert_eq!(sums.values().sum::<u64>(), all["cycles"].as_u64().unwrap());
    assert!(ticks >= sums.len());
    let metrics = export(&["--to", "openmetrics"]);
    assert_eq!(metrics.status.code(), Some(0), "{}", stderr(&metrics));
    assert!(stdout(&metrics).ends_with("# EOF\n"));
}

#[test]
fn what_cannot_be_exported_is_refused_with_what_can() {
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-format/tests/fixtures/import");
    let bundle = dir.path().join("bundle");
    let result = output(
        tactus()
            .arg("convert")
            .args([format!("{files}/cyclictest.json"), format!("{files}/oslat.json")])
            .arg("--out")
            .arg(&bundle),
    );
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let refused = |words: &[&str], said: &str, hint: &str| {
        let result = output(tactus().arg("convert").arg(&bundle).args(words));
        assert_eq!(result.status.code(), Some(2), "{words:?}");
        let text = stderr(&result);
        assert!(text.contains(said) && text.contains(hint), "{text}");
    };
    refused(
        &["--to", "xlsx"],
        "`xlsx` is not a format that tactus writes",
        "hint: use one of cyclictest-json,",
    );
    refused(&["--to", "csv"], "it becomes 6 files: scenarios.csv", "hint: name a directory with --out DIR");
    refused(&["--to", "hlog"], "it becomes 2 files: 01-cyclictest.hlog", "or one scenario with --only");
    refused(&["--to", "csv", "--only", "nobody"], "no environment or scenario `nobody`", "hint: ");
    // One of the two, and what lay beyond its histogram.
    let words = ["--to", "cyclictest-json", "--only", "cyclictest", "--histogram", "110"];
    let result = output(tactus().arg("convert").arg(&bundle).args(words));
    assert_eq!(result.status.code(), Some(0), "{}", stderr(&result));
    let document: serde_json::Value = serde_json::from_slice(&result.stdout).unwrap();
    let written: serde_json::Value =
        serde_json::from_slice(&fs::read(format!("{files}/cyclictest.json")).unwrap()).unwrap();
    for thread in ["0", "1"] {
        for key in ["histogram", "cycles", "min", "max", "avg", "cpu"] {
            assert_eq!(document["thread"][thread][key], written["thread"][thread][key], "{thread}: {key}");
        }
    }
    assert!(stderr(&result).contains("7 values are beyond the histogram"), "{}", stderr(&result));
    assert!(document["cmdline:"].as_str().unwrap().contains("evidence: imported"));
}
