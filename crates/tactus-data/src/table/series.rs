//! One row per series.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tactus_format::columns;
use tactus_format::export::Measured;
use tactus_format::export::table::{Cell, Column};

use super::Table;
use super::joined::Exported;

/// The table.
pub const TABLE: Table = Table {
    name: "series",
    about: "A row for each series of each scenario: what one measuring thread saw, and what its scenario was.",
    columns: || &ALL,
    rows: Some(|taken, take| {
        let of: BTreeMap<u64, Measured<'_>> =
            taken.source.rows().map(|one| (u64::try_from(one.number).unwrap_or(u64::MAX), one)).collect();
        let own = |exported: &[Cell<'_>]| match exported.first() {
            Some(Cell::Whole(scenario)) if of.contains_key(scenario) => {
                cells(&Own { run: taken.run, one: of[scenario] }).iter().map(super::owned).collect()
            }
            _ => vec![Cell::Empty; COLUMNS.len()],
        };
        EXPORTED.rows(&taken.source, &own, take)
    }),
};

static EXPORTED: LazyLock<Exported> = LazyLock::new(|| {
    let kept = [
        "scenario",
        "series",
        "cpu",
        "priority",
        "kind",
        "whole",
        "cycles",
        "overruns",
        "lost",
        "min_ns",
        "mean_ns",
        "p50_ns",
        "p99_ns",
        "p999_ns",
        "p9999_ns",
        "p99999_ns",
        "max_ns",
        "corrected_p99_ns",
        "corrected_p999_ns",
        "corrected_p9999_ns",
        "corrected_p99999_ns",
        "major_faults",
        "involuntary_switches",
        "steal_ns",
        "smi",
    ];
    Exported::of("series", &kept)
});

static ALL: LazyLock<Vec<Column>> =
    LazyLock::new(|| COLUMNS.iter().copied().chain(EXPORTED.columns()).collect());

struct Own<'a> {
    run: &'a str,
    one: Measured<'a>,
}

/// A word as documents have it.
pub fn word(of: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(of).ok().and_then(|value| value.as_str().map(str::to_owned))
}

columns! { row: Own<'_>;
    /// The run.
    run: Text = row.run;
    /// Name of the scenario.
    name: Text = &row.one.entry.name;
    /// The environment in which it was measured.
    environment: Text = row.one.row.result.environment_key();
    /// The kind of that: `host`, `podman`, `qemu`, ...; `imported`: tactus did not measure.
    environment_kind: Text = &row.one.entry.kind;
    /// What the numbers are worth: `bare metal`, `virtual host`, `emulated` (nothing about hardware) or `imported`.
    evidence: Text = row.one.entry.evidence.map(|evidence| evidence.key().to_owned());
    /// What was measured: `timer`, `spin`, ...
    measurement: Text = &row.one.entry.measurement;
    /// Time between two wake-ups, in ns; null where there is none, or it is not known.
    interval_ns: Whole = Some(row.one.row.result.interval_ns).filter(|ns| *ns > 0);
    /// The loads that ran beside it: a list of the plan's tables, as JSON.
    load: Text = serde_json::Value::from(row.one.entry.load.as_slice()).to_string();
    /// Whether every measuring thread of the scenario passed its self-test, a known fault that must be seen; null where there was none.
    self_test_passed: Flag = row.one.entry.self_test.as_ref().map(|test| test.passed);
    /// What the plan's requirements say of the scenario: `pass`, `warn`, `fail` or `inconclusive`; null where there are none.
    verdict: Text = row.one.entry.verdict.as_ref().map(|verdict| verdict.outcome.word());
}
