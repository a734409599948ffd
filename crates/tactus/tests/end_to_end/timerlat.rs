//! The kernel's own tracer of timer latency: where a guest's kernel has it, and where this machine's has not.

use std::fs;

use serde_json::Value;

use crate::common::{
    alone, json, measures_beside_others, nothing_is_left, output, skipped, stderr, stdout, tactus,
};

/// Whether this machine's kernel has the tracer.
fn is_here() -> bool {
    let tracers = fs::read_to_string("/sys/kernel/tracing/available_tracers").unwrap_or_default();
    tracers.split_whitespace().any(|tracer| tracer == "timerlat")
}

#[test]
fn a_kernel_without_the_tracer_refuses_it_with_the_reason_and_what_would_help_and_touches_nothing() {
    if is_here() {
        return eprintln!("this kernel has the tracer");
    }
    let Some(_turn) = measures_beside_others() else { return };
    let before = fs::read_dir("/sys/kernel/tracing/instances").map(Iterator::count).ok();
    let result =
        output(tactus().args(["measure", "--measurement", "timerlat", "-i", "1ms", "-D", "1s", "--json"]));
    assert_ne!(result.status.code(), Some(0), "{}", stdout(&result));
    let rows = json(&result)["scenarios"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 2, "{rows:#?}");
    for row in &rows {
        let reason = row["reason"].as_str().unwrap();
        assert_eq!(
            (&row["status"], row["series"].as_array().map(Vec::len)),
            (&"skipped".into(), Some(0)),
            "{row:#}"
        );
        assert!(reason.contains("timerlat: ") && reason.contains("CONFIG_TIMERLAT_TRACER"), "{reason}");
    }
    assert_eq!(fs::read_dir("/sys/kernel/tracing/instances").map(Iterator::count).ok(), before);
    nothing_is_left();
}

#[test]
fn a_guest_whose_kernel_has_the_tracer_is_measured_by_both_of_its_columns() {
    let Some(_alone) = alone() else { return };
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle");
    let words =
        ["measure", "--measurement", "timerlat", "--in", "qemu", "--kernel", "rt", "-i", "1ms", "-D", "5s"];
    let result = output(tactus().args(words).args(["--json", "--out"]).arg(&bundle));
    if stderr(&result).contains("cannot be measured here") {
        return skipped(&stderr(&result));
    }
    let shown = json(&result);
    let rows = shown["scenarios"].as_array().unwrap_or_else(|| panic!("{}", stderr(&result)));
    let kinds: Vec<&Value> = rows.iter().map(|row| &row["series"][0]["kind"]).collect();
    assert_eq!(kinds, ["irq", "thread"], "{shown:#}");
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{shown:#}"));
    for row in rows {
        assert_eq!((&row["status"], &row["evidence"]), (&"measured".into(), &"emulated".into()), "{row:#}");
        let all = &row["all"];
        let periods = number(&all["cycles"]) + number(&all["overruns"]);
        let threads = u64::try_from(row["series"].as_array().unwrap().len()).unwrap();
        assert!(number(&all["cycles"]) > 0 && periods <= 5_001 * threads, "{all:#}");
        assert!(row["self_test"][0]["by"].as_str().is_none_or(|by| by.contains("stand-in")), "{row:#}");
    }
    // The thread runs after the interrupt that wakes it.
    assert!(number(&rows[0]["all"]["min_ns"]) < number(&rows[1]["all"]["min_ns"]), "{shown:#}");
    let report = output(tactus().arg("report").arg(&bundle).args(["--format", "text", "--out", "-"]));
    assert!(stdout(&report).contains("timerlat's IRQ column"), "{}", stdout(&report));
    nothing_is_left();
}
