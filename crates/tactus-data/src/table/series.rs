//! One row per series.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tactus_format::columns;
use tactus_format::export::Measured;
use tactus_format::export::table::{Cell, Column, Kind};
use tactus_model::outcome::restart::gaps_between;
use tactus_report::row::standing;

use super::Table;
use super::joined::Exported;

/// The table.
pub const TABLE: Table = Table {
    name: "series",
    about: "A row for each series of each scenario: what one measuring thread saw, and what its scenario was.",
    columns: || &ALL,
    rows: Some(|taken, take| {
        // Once for each scenario: it may have thousands of series.
        let of: BTreeMap<u64, OfScenario> = taken
            .source
            .rows()
            .map(|one| (u64::try_from(one.number).unwrap_or(u64::MAX), OfScenario::of(taken.run, one)))
            .collect();
        let told = |cells: &[Cell<'_>]| match cells.first() {
            Some(Cell::Whole(scenario)) => of.get(scenario),
            _ => None,
        };
        let own = |exported: &[Cell<'_>]| {
            told(exported).map_or_else(|| vec![Cell::Empty; COLUMNS.len()], |own| own.before.clone())
        };
        EXPORTED.rows(&taken.source, &own, &mut |cells| {
            let mut cells = cells.to_vec();
            // Fractions of a nanosecond mean nothing, and would be half of a column.
            if let Some(Cell::Real(mean)) = cells.get_mut(*MEAN) {
                *mean = mean.round();
            }
            let behind = cells.get(COLUMNS.len()..).and_then(told).map(|own| own.behind.clone());
            cells.extend(behind.unwrap_or([Cell::Empty, Cell::Empty, Cell::Empty]));
            take(&cells)
        })
    }),
};

/// What the rows of all series of a scenario have.
struct OfScenario {
    before: Vec<Cell<'static>>,
    /// The cells of [`ADDED`].
    behind: [Cell<'static>; 3],
}

impl OfScenario {
    fn of(run: &str, one: Measured<'_>) -> Self {
        let result = &one.row.result;
        let suffices = matches!(standing(result), Ok(None));
        let restarts = u64::try_from(result.restarts.len()).unwrap_or(u64::MAX);
        let gap_ns = gaps_between(&result.restarts, 0, u64::MAX);
        let behind = [Cell::Flag(suffices), Cell::Whole(restarts), Cell::Whole(gap_ns)];
        Self { before: cells(&Own { run, one }).iter().map(super::owned).collect(), behind }
    }
}

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

static ALL: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let told = |column: Column| match column.name {
        "mean_ns" => Column { about: "Mean latency, to the ns.", ..column },
        _ => column,
    };
    COLUMNS.iter().copied().chain(EXPORTED.columns()).chain(ADDED).map(told).collect()
});

/// Position of the mean in a row.
static MEAN: LazyLock<usize> =
    LazyLock::new(|| ALL.iter().position(|column| column.name == "mean_ns").unwrap_or(usize::MAX));

/// Those that were added since.
const ADDED: [Column; 3] = [
    Column {
        name: "suffices",
        kind: Kind::Flag,
        about: "Whether the measurement of the scenario is enough to show that its largest latency stays \
            within a limit, as its report judges. That takes all of its time, all that was counted, a passed \
            self-test, enough cycles of each thread, and suitable evidence; null before version 1.1.",
    },
    Column {
        name: "restarts",
        kind: Kind::Whole,
        about: "How often an environment of the scenario died while it was measured, and was started again; null before version 1.2.",
    },
    Column {
        name: "gap_ns",
        kind: Kind::Whole,
        about: "How long it was not measured because of that, in all: a time that is in no latency; null \
            before version 1.2.",
    },
];

/// Longest list of loads, in bytes.
const MOST_LOAD: usize = 4096;

/// The loads of a scenario as JSON, if they are no longer than a cell may be.
fn load(one: &Measured<'_>) -> Option<String> {
    let text = serde_json::Value::from(one.entry.load.as_slice()).to_string();
    (text.len() <= MOST_LOAD).then_some(text)
}

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
    /// The kind of environment: `host`, `podman`, `qemu`, ...; `imported`: tactus did not measure.
    environment_kind: Text = &row.one.entry.kind;
    /// The kind of evidence: `bare metal`, `virtual host`, `emulated` (nothing about hardware) or `imported`.
    evidence: Text = row.one.entry.evidence.map(|evidence| evidence.key().to_owned());
    /// The measurement: `timer`, `spin`, ...
    measurement: Text = &row.one.entry.measurement;
    /// Time between two wake-ups, in ns; null if unknown, or if the measurement is not periodic.
    interval_ns: Whole = Some(row.one.row.result.interval_ns).filter(|ns| *ns > 0);
    /// The loads that ran beside it: a list of the plan's tables, as JSON; null if that is longer than 4096 bytes.
    load: Text = load(&row.one);
    /// Whether every measuring thread of the scenario passed its self-test, a known fault that it must see; null
    /// without a self-test.
    self_test_passed: Flag = row.one.entry.self_test.as_ref().map(|test| test.passed);
    /// Verdict of the plan's requirements on the scenario: `pass`, `warn`, `fail` or `inconclusive`; null without
    /// requirements.
    verdict: Text = row.one.entry.verdict.as_ref().map(|verdict| verdict.outcome.word());
}
