//! rtla in a guest whose kernel has its tracers, and what it printed, imported.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{good, machine};
use crate::common::{alone, skipped};
use crate::import::imported;

const RTLA: &str = "/usr/bin/rtla";
/// Emulated latencies are long: rows of 100 us. osnoise leaves a tenth of the CPUs to who reads it.
const STAGE: &str = "mount -t tracefs tracefs /sys/kernel/tracing
ROWS='-b 100 -E 100 --with-zeros -d 5s'
say timerlat /usr/bin/rtla timerlat hist -p 10000 $ROWS
say osnoise /usr/bin/rtla osnoise hist -p 1000000 -r 900000 $ROWS
";

/// The values in a column of its text, by the first word of the line: `100`, `over`, `count`, `max`.
fn column<'a>(text: &'a str, name: &str) -> BTreeMap<&'a str, u64> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Index"));
    let heading = lines.next().unwrap_or_else(|| panic!("no heading: {text}"));
    let place = heading.split_whitespace().position(|word| word == name);
    let place = place.unwrap_or_else(|| panic!("no {name}: {text}"));
    let number = |line: &'a str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.first()?.trim_end_matches(':'), words.get(place)?.parse().ok()?))
    };
    lines.take_while(|line| !line.starts_with("ALL:")).filter_map(number).collect()
}

#[test]
fn what_rtla_measures_in_a_guest_is_imported_as_it_was_printed() {
    let _alone = alone();
    if !Path::new(RTLA).exists() {
        return skipped("rtla is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let parts = match machine::parts(dir.path()) {
        Ok(parts) => parts.with(RTLA),
        Err(why) => return skipped(&why),
    };
    let told = parts.boot(dir.path(), "", STAGE, b"");
    for (tracer, kinds) in
        [("timerlat", &[("irq", "IRQ"), ("thread", "Thr")][..]), ("osnoise", &[("gap", "CPU")][..])]
    {
        let (file, text) = (dir.path().join(tracer), good(&told, tracer));
        fs::write(&file, text).unwrap();
        let bundle = dir.path().join(format!("{tracer}-bundle"));
        let document = imported(&bundle, &[&file.display().to_string()]);
        let rows = document["scenarios"].as_array().unwrap();
        let series: Vec<_> = rows.iter().flat_map(|row| row["series"].as_array().unwrap()).collect();
        for (kind, word) in kinds {
            let own: Vec<_> = series.iter().filter(|series| series["kind"] == *kind).collect();
            assert!(!own.is_empty(), "{kind}: {document:#}");
            for series in own {
                let printed = column(text, &format!("{word}-{:03}", series["cpu"].as_u64().unwrap()));
                let rows: BTreeMap<u64, u64> =
                    printed.iter().filter_map(|(row, count)| Some((row.parse().ok()?, *count))).collect();
                let count = printed["count"];
                assert!(count > 0 && rows.values().sum::<u64>() + printed["over"] == count, "{text}");
                for (key, value) in [
                    ("cycles", count),
                    ("min_ns", 1_000 * printed["min"]),
                    ("max_ns", 1_000 * printed["max"]),
                ] {
                    assert_eq!(series[key], value, "{key}: {series:#}\n{text}");
                }
                assert_eq!(series["corrected"]["count"], count, "{series:#}\n{text}");
                // The median lies in its row, within the width of a bucket; over the last it is the maximum.
                let mut so_far = 0;
                let median = rows.iter().find(|(_, count)| {
                    so_far += **count;
                    2 * so_far >= printed["count"]
                });
                let (least, most) =
                    median.map_or((printed["max"], printed["max"]), |(row, _)| (*row, row + 100));
                let found = series["p50_ns"].as_u64().unwrap();
                let wide = 1_000 * most + most;
                assert!((1_000 * least..=wide).contains(&found), "{least} to {most}: {series:#}\n{text}");
            }
        }
    }
}
