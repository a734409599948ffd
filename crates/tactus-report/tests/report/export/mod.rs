//! Bundles in the formats of the field: written values come back, values that cannot be written are named,
//! and the field's readers accept the files.

pub mod python;
mod readers;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tactus_format::export::table::{Cell, TABLES};
use tactus_format::export::{EXPORTS, Export, Logs, Options, Source, TakeInterval, TakeTick};
use tactus_format::import;
use tactus_model::buckets::{Counts, bucket_of};
use tactus_model::bundle::{Contents, Row};
use tactus_report::document;

use crate::common::{self, Shape, Span, measured, planned};

/// A bundle whose logs are gone; the data folded from them is still there.
struct NoLogs;

impl Logs for NoLogs {
    fn ticks(&self, _: usize, _: &mut TakeTick<'_>) -> io::Result<bool> {
        Ok(false)
    }

    fn intervals(&self, _: usize, _: &mut TakeInterval<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// The written bytes, to be looked at afterwards.
#[derive(Clone, Default)]
struct Sheet(Arc<Mutex<Vec<u8>>>);

impl Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The formats that are text.
pub const FORMATS_OF_EXPORT: [&str; 6] =
    ["cyclictest-json", "cyclictest-histogram", "oslat-json", "hlog", "csv", "openmetrics"];

/// The files of a bundle by their names, and the notes beside them.
pub fn exported(
    contents: &Contents,
    format: &str,
    options: Options,
) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let document = document(contents);
    let numbers: Vec<usize> = (0..contents.rows.len()).collect();
    let source = Source { contents, document: &document, numbers: &numbers, logs: &NoLogs };
    let format: &Export = EXPORTS.iter().find(|export| export.name == format).unwrap();
    let mut files = BTreeMap::new();
    for part in format.parts(&source) {
        let sheet = Sheet::default();
        format.write(&source, &part, options, Box::new(sheet.clone())).unwrap();
        let bytes = sheet.0.lock().unwrap().clone();
        files.insert(part.name.clone(), bytes);
    }
    (files, format.notes(&source, options))
}

fn texts(contents: &Contents, format: &str) -> String {
    let (files, notes) = exported(contents, format, Options::default());
    let mut text = String::new();
    for (name, bytes) in files {
        text += &format!("== {name}\n{}", String::from_utf8(bytes).unwrap());
    }
    notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

/// A few values of two threads, values of another measurement, and one that was skipped.
fn small() -> Contents {
    let mut contents = common::overheads();
    let span = Span { ticks: 2, samples: 12, per_interval: 1, series: 2 };
    let timer = planned("host, \"idle\"", "host", "host", Vec::new());
    contents.rows.truncate(1);
    contents.rows.push(measured(timer, tactus_model::Evidence::Emulated, Shape::LOADED, span, 5));
    contents.rows.push(common::this_machine().rows.pop().unwrap());
    contents.audits.insert("host".into(), common::audits::audit());
    contents
}

#[test]
fn cyclictests_formats_have_its_keys_and_columns() {
    insta::assert_snapshot!(texts(&small(), "cyclictest-json"));
    insta::assert_snapshot!(texts(&small(), "cyclictest-histogram"));
}

#[test]
fn oslats_format_has_its_keys_and_says_what_are_no_gaps() {
    insta::assert_snapshot!(texts(&small(), "oslat-json"));
}

#[test]
fn metrics_say_what_was_measured_and_what_it_is_worth() {
    insta::assert_snapshot!(texts(&small(), "openmetrics"));
}

#[test]
fn tables_have_a_row_for_each_of_what_they_are_about() {
    insta::assert_snapshot!(texts(&small(), "csv"));
}

/// Every series of every row that measured latencies, as it is read back.
fn read_back(
    contents: &Contents,
    format: &str,
    options: Options,
    compare: impl Fn(&Row, usize, &import::Series),
) -> usize {
    let (files, _) = exported(contents, format, options);
    let rows: Vec<&Row> = contents.rows.iter().filter(|row| !row.result.series().is_empty()).collect();
    assert_eq!(files.len(), rows.len());
    for (row, bytes) in rows.iter().zip(files.values()) {
        let unit_ns = options.unit_ns.filter(|_| format != "hlog");
        let recordings = import::read(bytes.as_slice(), import::Options { unit_ns }).unwrap();
        assert_eq!((recordings.len(), recordings[0].series.len()), (1, row.result.series().len()));
        for (number, series) in recordings[0].series.iter().enumerate() {
            compare(row, number, series);
        }
    }
    rows.len()
}

/// The bundle's counts of a series.
fn counted(row: &Row, number: usize) -> BTreeMap<u64, u64> {
    let key = &row.result.series()[number].key;
    let tag = if row.result.series_share_cpus() { key.to_string() } else { key.cpu.to_string() };
    row.histograms.series[&tag].buckets().collect()
}

fn found(series: &import::Series) -> BTreeMap<u64, u64> {
    series.counts.buckets().collect()
}

fn bundles() -> Vec<Contents> {
    vec![common::this_machine(), common::study(), common::hostile(), small()]
}

#[test]
fn in_ns_what_is_imported_again_is_the_same_histogram() {
    let options = Options { unit_ns: Some(1), histogram: None, ..Options::default() };
    for contents in bundles() {
        for format in ["cyclictest-json", "cyclictest-histogram", "hlog"] {
            let rows = read_back(&contents, format, options, |row, number, series| {
                let summary = &row.result.series()[number].summary;
                assert_eq!(found(series), counted(row, number), "{format}");
                assert_eq!(series.totals.cycles, summary.cycles, "{format}");
                assert_eq!(series.beyond, 0, "{format}");
                if format != "hlog" {
                    assert_eq!(
                        (Some(series.totals.min_ns), Some(series.totals.max_ns)),
                        (summary.min_ns, summary.max_ns)
                    );
                }
            });
            assert!(rows > 0);
        }
    }
}

#[test]
fn in_us_values_are_cut_off_and_no_more_is_lost() {
    for contents in bundles() {
        for format in ["cyclictest-json", "cyclictest-histogram"] {
            read_back(&contents, format, Options::default(), |row, number, series| {
                let summary = &row.result.series()[number].summary;
                let mut wanted = Counts::default();
                for (value, count) in counted(row, number) {
                    let us = value.min(summary.max_ns.unwrap()) / 1_000;
                    wanted.add(bucket_of(us * 1_000), count);
                }
                assert_eq!(found(series), wanted.pack().buckets().collect(), "{format}");
                assert_eq!(series.totals.max_ns, summary.max_ns.unwrap() / 1_000 * 1_000);
            });
        }
    }
}

#[test]
fn in_oslats_rows_every_value_is_counted_as_the_next_whole_us() {
    for contents in bundles() {
        read_back(&contents, "oslat-json", Options::default(), |row, number, series| {
            let summary = &row.result.series()[number].summary;
            let mut wanted = Counts::default();
            for (value, count) in counted(row, number) {
                let us = value.min(summary.max_ns.unwrap()) / 1_000 + 1;
                wanted.add(bucket_of(us * 1_000), count);
            }
            assert_eq!(found(series), wanted.pack().buckets().collect());
            assert_eq!(series.totals.max_ns, (summary.max_ns.unwrap() / 1_000 + 1) * 1_000);
        });
    }
}

#[test]
fn what_lies_beyond_the_histogram_is_counted_there_and_comes_back_at_the_largest_value() {
    // In the small bundle a tenth of the values lie there, and of one thread all.
    for (histogram, all) in [(3, false), (1, true)] {
        let options = Options { unit_ns: None, histogram: Some(histogram), ..Options::default() };
        for format in ["cyclictest-json", "cyclictest-histogram"] {
            let contents = small();
            read_back(&contents, format, options, |row, number, series| {
                let counts = counted(row, number);
                let over: u64 = counts.iter().filter(|(v, _)| **v / 1_000 >= histogram).map(|(_, n)| n).sum();
                assert_eq!(series.beyond, over, "{format}");
                assert!(over > 0 && (over == counts.values().sum::<u64>()) == all, "{over}");
                assert_eq!(series.latency().raw.len(), series.totals.cycles);
            });
        }
    }
}

#[test]
fn what_a_format_cannot_say_is_said_beside_it() {
    let contents = small();
    for format in ["cyclictest-json", "cyclictest-histogram", "hlog"] {
        let (_, notes) = exported(&contents, format, Options::default());
        let has = |text: &str| notes.iter().any(|note| note.contains(text));
        assert!(has("scenario 1, `host, services` is left out: it contains values"), "{format}: {notes:?}");
        assert!(has("is left out: nothing was measured: neither crun nor runc"), "{format}: {notes:?}");
    }
    let (_, notes) = exported(&common::this_machine(), "cyclictest-json", Options::default());
    assert!(notes.iter().any(|note| note.contains("the verdicts are not in it")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("periods that late wake-ups missed")), "{notes:?}");
}

#[test]
fn evidence_is_in_every_format() {
    for export in EXPORTS {
        let (files, _) = exported(&small(), export.name, Options::default());
        if export.name == "parquet" {
            // Compressed; its readers are asked below.
            continue;
        }
        let all: String = files.values().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
        assert!(all.contains("emulated"), "{}", export.name);
    }
}

/// The convention of those who plot: lines without `#`, column n + 2 is core n, a line `# Thread ` for each core.
#[test]
fn scripts_that_plot_cyclictests_text_find_what_they_look_for() {
    let contents = small();
    let (files, _) = exported(&contents, "cyclictest-histogram", Options::default());
    let text = String::from_utf8(files.into_values().next().unwrap()).unwrap();
    let cores = text.lines().filter(|line| line.starts_with("# Thread ")).count();
    assert_eq!(cores, 2);
    let rows: Vec<Vec<u64>> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    assert!(rows.iter().all(|row| row.len() == cores + 1));
    let row = contents.rows.iter().find(|row| !row.result.series().is_empty()).unwrap();
    for core in 0..cores {
        let sum: u64 = rows.iter().map(|row| row[core + 1]).sum();
        assert_eq!(sum, row.result.series()[core].summary.cycles);
    }
    let max = text.lines().find_map(|line| line.strip_prefix("# Max Latencies: ")).unwrap();
    assert!(max.split(' ').all(|word| word.len() == 5 && word.parse::<u64>().is_ok()), "{max}");
}

#[test]
fn cells_are_of_their_columns_and_texts_of_strangers_stay_in_them() {
    for contents in bundles() {
        let document = document(&contents);
        let numbers: Vec<usize> = (0..contents.rows.len()).collect();
        let source = Source { contents: &contents, document: &document, numbers: &numbers, logs: &NoLogs };
        for table in TABLES {
            (table.rows)(&source, &mut |cells| {
                assert_eq!(cells.len(), table.columns.len(), "{}", table.name);
                for (cell, column) in cells.iter().zip(table.columns) {
                    assert!(cell.is(column.kind), "{}: {} has {cell:?}", table.name, column.name);
                }
                Ok(())
            })
            .unwrap();
        }
    }
    let (files, _) = exported(&common::hostile(), "cyclictest-json", Options::default());
    for (name, bytes) in files {
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b)), "{name}");
        serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
    }
    let (files, _) = exported(&common::hostile(), "hlog", Options::default());
    for bytes in files.values() {
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.lines().all(|line| line.starts_with(['#', '"']) || line.starts_with("Tag=")), "{text}");
    }
}

/// A bundle in which a stranger has chosen every name.
fn named(words: &str) -> Contents {
    let mut contents = small();
    let manifest = &mut contents.manifest;
    for name in [
        &mut manifest.plan,
        &mut manifest.tactus,
        &mut manifest.machine.name,
        &mut manifest.machine.processor,
        &mut manifest.machine.kernel,
    ] {
        *name = words.into();
    }
    for row in &mut contents.rows {
        (row.result.name, row.result.environment) = (words.into(), words.into());
        row.result.reason = row.result.reason.is_some().then(|| words.into());
    }
    contents.facts.insert(words.into(), common::facts(words, words));
    contents
}

#[test]
fn what_is_exported_drives_no_terminal_and_gives_a_ci_server_no_orders() {
    let words =
        "a\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{200b}b\r\n::error::c\u{2028}##vso[task.setvariable]d";
    for export in EXPORTS.iter().filter(|export| !export.is_directory()) {
        let (files, _) = exported(&named(words), export.name, Options::default());
        for (name, bytes) in files {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("owned"), "{}: {name}", export.name);
            let driving = |c: char| c != '\n' && c != '\t' && tactus_model::text::drives_a_terminal(c);
            let bad = text.lines().find(|line| {
                line.contains(driving) || line.contains("##vso") || line.trim_start().starts_with("::")
            });
            assert_eq!(bad, None, "{}: {name}", export.name);
        }
    }
}

#[test]
fn no_spreadsheet_computes_what_a_stranger_has_named() {
    let formulas =
        ["=HYPERLINK(\"http://x\")", "+1+cmd|x", "-1+1", "@SUM(1)", " =1", "\t=1", "\r=1", "\u{ff1d}1"];
    for words in formulas {
        let (files, _) = exported(&named(words), "csv", Options::default());
        let table = String::from_utf8(files["scenarios.csv"].clone()).unwrap();
        let quoted = words.replace('"', "\"\"");
        assert!(table.contains(&format!("'{quoted}")), "{table}");
        for before in [",", "\n", "\""] {
            assert!(!table.contains(&format!("{before}{quoted}")), "{words:?}: {table}");
        }
    }
    let (files, _) = exported(&named("host, 1+1=2"), "csv", Options::default());
    assert!(String::from_utf8(files["scenarios.csv"].clone()).unwrap().contains("\"host, 1+1=2\""));
}

#[test]
fn rows_that_are_asked_for_keep_their_numbers() {
    let mut contents = common::this_machine();
    contents.rows.drain(..2);
    let document = document(&contents);
    let numbers: Vec<usize> = (2..2 + contents.rows.len()).collect();
    let source = Source { contents: &contents, document: &document, numbers: &numbers, logs: &NoLogs };
    let mut found = Vec::new();
    (TABLES[0].rows)(&source, &mut |cells| {
        found.push(cells[0] == Cell::from(numbers[found.len()] + 1));
        Ok(())
    })
    .unwrap();
    assert_eq!(found, [true; 5]);
}
