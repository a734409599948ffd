//! `tactus oslat` and the name `oslat`, beside the real one: the same lines, columns and keys.

use std::fs;

use serde_json::Value;

use crate::common::{alone, beside_others, output, stderr, stdout, tactus};
use crate::rt_tests::{both, called, form, keys};

#[test]
fn the_table_has_oslats_form_and_its_json_oslats_keys() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    for options in
        ["-D 1 -c 0", "--duration 1 --rtprio 1 --cpu-list 0-1 -C 0 -b 100", "-D 1 -q -f 1 --json=run.json"]
    {
        let words: Vec<&str> = options.split_whitespace().collect();
        let Some((real, ours)) = both("oslat", dir.path(), &words) else { return };
        // tactus knows how fast the clock runs without measuring for a second beforehand.
        let real = stdout(&real).replace("Pre-heat for 1 seconds...\n", "");
        let mut lines = form(&stdout(&ours));
        lines[0] = lines[0].replace("V 9.9.9", "V 9.9");
        assert_eq!(form(&real), lines, "{options}\n{}", stdout(&ours));
        assert_eq!(real.lines().count(), stdout(&ours).lines().count(), "{options}");
    }
    let read =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(dir.path().join(name)).unwrap()).unwrap() };
    let (real, own) = (read("real-run.json"), read("run.json"));
    assert_eq!(keys(&real), keys(&own));
    assert_eq!(keys(&real["thread"]["0"]), keys(&own["thread"]["0"]));
    assert_eq!(real["num_threads"], own["num_threads"]);
    let rate = |document: &Value| document["thread"]["0"]["freq"].as_i64().unwrap();
    assert!(
        rate(&real).abs_diff(rate(&own)) <= 2,
        "both poll the same clock: {} {}",
        rate(&real),
        rate(&own)
    );
    // Every reading of the clock is in a row, and the sum of what they stand for is the time.
    let thread = &own["thread"]["0"];
    let rows = thread["histogram"].as_object().unwrap();
    let largest = rows.keys().map(|row| row.parse::<u64>().unwrap()).max().unwrap();
    assert!(largest <= 32, "{own:#}");
    assert!(rows["1"].as_u64().unwrap() > 100_000, "{own:#}");
}

#[test]
fn under_oslats_name_rows_of_zeros_are_left_out_and_what_it_wrote_is_imported() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let options = ["-D", "1", "-c", "0", "-q", "-z", "-b", "1024", "--json=run.json"];
    let run = output(called("oslat", dir.path()).args(options).current_dir(dir.path()));
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let text = stdout(&run);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" (us):")).collect();
    assert!(rows.len() < 1024, "{text}");
    let (zeros, dots) =
        (rows.iter().filter(|row| row.ends_with("\t 0")), text.matches("\n    ...\n").count());
    assert!(zeros.count() == 0 && dots > 0, "{text}");
    assert!(rows.last().unwrap().contains("1024 (us):"), "{text}");
    let imported = dir.path().join("imported");
    let import = output(tactus().arg("convert").arg(dir.path().join("run.json")).arg("--out").arg(&imported));
    assert!(import.status.success(), "{}", stderr(&import));
}

#[test]
fn a_gap_that_reaches_the_threshold_ends_it_as_it_ends_oslat() {
    let Some(_alone) = alone() else { return };
    // No clock is read in no time: the first gap reaches 1 us.
    let run = output(tactus().args(["oslat", "-D", "60", "-c", "0", "-T", "1", "-q"]));
    assert_eq!(run.status.code(), Some(1), "{}", stderr(&run));
    let said = stderr(&run);
    assert!(said.contains("oslat: Trace threshold (1 us) triggered on cpu 0 with "), "{said}");
    assert!(said.ends_with("Stopping the test.\n"), "{said}");
}

#[test]
fn what_oslat_has_and_tactus_has_not_is_refused_before_anything_starts() {
    let _turn = beside_others();
    for (words, said) in [
        (["-w", "memmove"], "error: tactus does not support oslat's -w memmove"),
        (["-c", "4000"], "error: -c: "),
        (["-c", "1-"], "error: -c: "),
    ] {
        let run = output(tactus().arg("oslat").args(words));
        assert_eq!(run.status.code(), Some(2), "{words:?}");
        assert!(stderr(&run).contains(said) && stderr(&run).contains("hint: "), "{}", stderr(&run));
        assert_eq!(stdout(&run), "", "{words:?}");
    }
}
