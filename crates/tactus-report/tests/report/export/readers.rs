//! Exported files in the hands of the field's readers: DuckDB, pandas and Polars, the parser of prometheus_client, the
//! HdrHistogram of Python.
#![expect(clippy::disallowed_methods, reason = "other programs read what was written")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::python::python;
use super::*;

/// The result of the readers.
fn asked(python: &Path, what: &str, paths: &[PathBuf]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report/export/readers.py");
    let out = Command::new(python).arg(script).arg(what).args(paths).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn written(dir: &Path, contents: &Contents, format: &str) -> Vec<PathBuf> {
    let (files, _) = exported(contents, format, Options::default());
    let write = |(name, bytes): (String, Vec<u8>)| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    files.into_iter().map(write).collect()
}

#[test]
fn duckdb_pandas_and_polars_read_the_tables_alike() {
    let Some(python) = python("duckdb, pandas, polars, pyarrow") else { return };
    for contents in bundles().into_iter().chain([common::empty()]) {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), &contents, "parquet");
        written(dir.path(), &contents, "csv");
        let found = asked(&python, "tables", &[dir.path().to_owned()]);
        for table in TABLES {
            let found = &found[table.name];
            let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            assert_eq!(found["columns"], json!(columns), "{}", table.name);
            assert_eq!(found["same"], true, "{}: {found:#}", table.name);
            let counts: Vec<u64> =
                found["rows"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).collect();
            assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{}: {found:#}", table.name);
            for column in table.columns {
                let wanted = match column.kind.words().1 {
                    "STRING" => "VARCHAR",
                    "INT64" => "BIGINT",
                    "TIMESTAMP(us, UTC)" => "TIMESTAMP WITH TIME ZONE",
                    other => other,
                };
                assert_eq!(found["types"][column.name], wanted, "{}: {}", table.name, column.name);
            }
            for sums in found["sums"].as_object().unwrap().values() {
                assert!(sums[0] == sums[1] && sums[1] == sums[2], "{}: {sums}", table.name);
            }
        }
        let rows = contents.rows.iter();
        let names: Vec<&str> = rows.clone().map(|row| row.result.name.as_str()).collect();
        assert_eq!(found["scenarios"]["names"], json!(names));
        assert_eq!(found["scenarios"]["names, csv"], json!(names));
        let cycles: u64 = rows.clone().filter_map(|row| row.result.all()).map(|all| all.cycles).sum();
        assert_eq!(found["scenarios"]["sums"]["cycles"][0], cycles);
        assert_eq!(found["series"]["sums"]["cycles"][0], cycles);
        let counted: u64 = rows
            .flat_map(|row| row.histograms.series.values())
            .map(tactus_model::buckets::Packed::total)
            .sum();
        assert_eq!(found["histograms"]["sums"]["count"][0], counted);
    }
}

#[test]
fn the_reference_parser_takes_the_metrics_and_finds_what_was_counted() {
    let Some(python) = python("prometheus_client") else { return };
    for contents in bundles().into_iter().chain([common::empty()]) {
        let dir = tempfile::tempdir().unwrap();
        let files = written(dir.path(), &contents, "openmetrics");
        let found = asked(&python, "metrics", &files);
        assert_eq!(found["tactus_build"]["type"], "info");
        let series: Vec<_> = contents.rows.iter().flat_map(|row| row.result.series()).collect();
        let samples = |family: &str, name: &str| -> Vec<f64> {
            let samples = found[family]["samples"].as_array().into_iter().flatten();
            samples.filter(|sample| sample[0] == name).map(|sample| sample[2].as_f64().unwrap()).collect()
        };
        let counts = samples("tactus_latency_seconds", "tactus_latency_seconds_count");
        let wanted: Vec<f64> =
            series.iter().map(|one| tactus_model::number::float(one.summary.cycles)).collect();
        assert_eq!(counts, wanted);
        let maxima = samples("tactus_latency_max_seconds", "tactus_latency_max_seconds");
        for (found, one) in maxima.iter().zip(&series) {
            let wanted = tactus_model::number::float(one.summary.max_ns.unwrap()) / 1e9;
            assert!((found - wanted).abs() < 1e-12);
        }
        assert_eq!(maxima.len(), series.len());
        let overruns: f64 = samples("tactus_overruns", "tactus_overruns_total").iter().sum();
        let wanted: u64 = series.iter().map(|one| one.summary.missed()).sum();
        assert!((overruns - tactus_model::number::float(wanted)).abs() < 0.5);
    }
}

#[test]
fn the_histogram_library_of_python_reads_the_logs() {
    let Some(python) = python("hdrh.histogram, hdrh.log") else { return };
    for contents in bundles() {
        let dir = tempfile::tempdir().unwrap();
        let files = written(dir.path(), &contents, "hlog");
        let found = asked(&python, "log", &files);
        let rows = contents.rows.iter().filter(|row| !row.result.series().is_empty());
        for (row, tags) in rows.zip(found.as_array().unwrap()) {
            assert_eq!(tags.as_object().unwrap().len(), row.histograms.series.len(), "{tags:#}");
            for (tag, counts) in &row.histograms.series {
                let mut wanted = tactus_model::latency::histogram();
                counts.add_to(&mut wanted);
                let wanted = json!([wanted.len(), wanted.max(), wanted.value_at_quantile(0.5)]);
                assert_eq!(tags[tag], wanted, "{}", row.result.name);
            }
        }
    }
}

#[test]
fn a_log_that_the_histogram_library_of_python_wrote_is_imported() {
    let Some(python) = python("hdrh.histogram, hdrh.log") else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("another.hlog");
    let counted = asked(&python, "write", std::slice::from_ref(&path));
    let file = std::fs::File::open(path).unwrap();
    let recording = import::read(file, import::Options::default()).unwrap().remove(0);
    assert_eq!(recording.duration_ns, Some(3_500_000_000), "from the base to the end of the third second");
    assert_eq!(recording.series.len(), counted.as_object().unwrap().len());
    for series in &recording.series {
        let raw = series.latency().raw;
        let found = json!([raw.len(), raw.max(), raw.value_at_quantile(0.5)]);
        assert_eq!(counted[series.cpu.unwrap().to_string()], found, "{counted:#}");
    }
}
