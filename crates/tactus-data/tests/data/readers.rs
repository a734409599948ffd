//! A data set in the hands of others: DuckDB, pandas and Polars, the HdrHistogram of Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tactus_data::table::TABLES;

use crate::collected::collected;
use crate::made::{TICKS, made};
use crate::python::python;

/// The result of the readers.
pub fn asked(python: &Path, what: &str, data: &Path) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/readers.py");
    let out = Command::new(python).arg(script).arg(what).arg(data).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// A data set of three machines on two days.
fn data(dir: &Path) -> PathBuf {
    let bundles = dir.join("bundles");
    std::fs::create_dir_all(&bundles).unwrap();
    for (number, day) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)] {
        made(number, day).write(&bundles.join(format!("{number}-{day}")));
    }
    let data = dir.join("data");
    assert_eq!(collected(&[&bundles], &data).1.taken, 5);
    data
}

#[test]
fn duckdb_pandas_and_polars_read_the_tables_alike() {
    let Some(python) = python("duckdb, pandas, polars, pyarrow") else { return };
    let dir = tempfile::tempdir().unwrap();
    let found = asked(&python, "tables", &data(dir.path()));
    for table in TABLES {
        let found = &found[table.name];
        let columns: Vec<&str> = (table.columns)().iter().map(|column| column.name).collect();
        assert_eq!(found["columns"], json!(columns), "{}", table.name);
        assert_eq!(found["same"], true, "{}: {found:#}", table.name);
        let counts: Vec<u64> =
            found["rows"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).collect();
        assert!(counts.windows(2).all(|pair| pair[0] == pair[1] && pair[0] > 0), "{}: {found:#}", table.name);
        for column in (table.columns)() {
            let wanted = match column.kind.words().1 {
                "STRING" => "VARCHAR",
                "INT64" => "BIGINT",
                "BINARY" => "BLOB",
                "TIMESTAMP(us, UTC)" => "TIMESTAMP WITH TIME ZONE",
                other => other,
            };
            assert_eq!(found["types"][column.name], wanted, "{}: {}", table.name, column.name);
        }
    }
    assert_eq!(found["run"]["rows"]["duckdb"], 5);
    assert_eq!(found["series"]["rows"]["duckdb"], 10);
    // Two intervals of ten seconds and one of five, of each series.
    assert_eq!(found["interval"]["rows"]["duckdb"], 30);
}

/// Half a gigabyte, and needs Java. `TACTUS_SPARK=PYTHON cargo test -p tactus-data spark -- --ignored`
#[test]
#[ignore = "TACTUS_SPARK names a Python that has pyspark"]
fn spark_reads_the_tables_too() {
    let python = std::env::var_os("TACTUS_SPARK").expect("TACTUS_SPARK names a Python that has pyspark");
    let dir = tempfile::tempdir().unwrap();
    let found = asked(Path::new(&python), "spark", &data(dir.path()));
    for table in TABLES {
        let found = &found[table.name];
        let columns: Vec<&str> = (table.columns)().iter().map(|column| column.name).collect();
        assert_eq!(found["columns"], json!(columns), "{}", table.name);
        for column in (table.columns)() {
            let wanted = match column.kind.words().1 {
                "INT64" => "bigint".to_owned(),
                "TIMESTAMP(us, UTC)" => "timestamp".to_owned(),
                other => other.to_lowercase(),
            };
            assert_eq!(found["types"][column.name], wanted, "{}: {}", table.name, column.name);
        }
    }
    assert_eq!(
        (&found["run"]["rows"], &found["series"]["rows"], &found["interval"]["rows"]),
        (&5.into(), &10.into(), &30.into())
    );
    assert_eq!(found["joined"].as_array().unwrap().len(), 3, "{}", found["joined"]);
}

#[test]
fn histograms_of_a_machine_over_days_are_added_up_by_the_library_of_python() {
    let Some(python) = python("duckdb, hdrh.histogram") else { return };
    let dir = tempfile::tempdir().unwrap();
    let found = asked(&python, "histograms", &data(dir.path()));
    let counts = 2 * (200 * TICKS + 1);
    assert_eq!(found["node001"]["cpu1"][0], 2 * counts / 2, "{found:#}");
    let most = found["node001"]["cpu2"][1].as_u64().unwrap();
    assert!(most.abs_diff(30_000) <= 30, "{found:#}");
}

/// Each query of the book runs, and gives the right answer for this data set.
#[test]
fn the_queries_of_the_book_are_run_by_duckdb_as_they_stand_there() {
    let Some(python) = python("duckdb") else { return };
    let dir = tempfile::tempdir().unwrap();
    let bundles = dir.path().join("bundles");
    std::fs::create_dir_all(&bundles).unwrap();
    for day in 1..=5 {
        for number in 1..=3 {
            // The third one stops, the second one gets other firmware and a longer command line, the first one misses.
            if number == 3 && day > 1 {
                continue;
            }
            let mut own = made(number, day);
            if number == 2 && day > 3 {
                own.machine.bios = Some("Maker 3.0".into());
                own.facts[0].1 = "quiet isolcpus=1".into();
            }
            if number == 1 && day == 5 {
                own.max_ns[1] = 180_000;
            }
            own.write(&bundles.join(format!("{number}-{day}")));
        }
    }
    let data = dir.path().join("data");
    collected(&[&bundles], &data);
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/data-set.md");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/readers.py");
    let out = Command::new(python).arg(script).arg("queries").arg(&data).arg(book).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let found: Vec<Vec<Vec<String>>> = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(found.len(), 10);
    let first = |query: usize| found[query][0].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((found[0].len(), first(0)), (1, vec!["node001", "180.0"]));
    assert_eq!((found[1].len(), &first(1)[..5]), (10, &["node001", "host", "idle", "2", "180.0"][..]));
    assert_eq!(found[2].iter().map(|row| row[3].parse::<u32>().unwrap()).sum::<u32>(), 3);
    assert_eq!(first(3), ["cpu-not-isolated", "1", "2"]);
    assert_eq!(found[4].len(), 4, "two CPUs of each of the two that ran more than once");
    assert_eq!((found[5].len(), first(5)[1]), (1, "node003"));
    assert_eq!((found[6].len(), first(6)[0], first(6)[3]), (1, "node002", "Maker 3.0"));
    assert_eq!((found[7].len(), first(7)[3]), (1, "/proc/cmdline"));
    let now: Vec<&str> = found[8].iter().map(|row| row[2].as_str()).collect();
    assert_eq!(now, ["quiet", "quiet isolcpus=1", "quiet"]);
    assert_eq!((found[9].len(), first(9)[2]), (3, "11"));
}
