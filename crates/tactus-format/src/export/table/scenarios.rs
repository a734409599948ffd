//! One row per scenario.

use tactus_model::bundle::Contents;
use tactus_model::document::TailEntry;
use tactus_model::latency::Summary;

use super::{Moment, Table, columns};
use crate::export::Measured;

/// The table.
pub const TABLE: Table = Table {
    name: "scenarios",
    about: "A row for each measurement of each scenario, measured or not; several of one scenario share its name.",
    columns: COLUMNS,
    rows: |source, take| {
        source.rows().try_for_each(|one| {
            let notes =
                one.row.result.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join(" | ");
            let row = Scenario { one, contents: source.contents, notes };
            take(&cells(&row))
        })
    },
};

struct Scenario<'a> {
    one: Measured<'a>,
    contents: &'a Contents,
    notes: String,
}

impl Scenario<'_> {
    fn all(&self) -> Option<&Summary> {
        self.one.entry.all.as_ref()
    }

    fn tail(&self) -> Option<&TailEntry> {
        self.one.entry.tail.as_ref()
    }
}

/// The plan's tables, as JSON.
fn json(tables: &[serde_json::Value]) -> String {
    serde_json::Value::from(tables).to_string()
}

columns! { row: Scenario<'_>;
    /// Its number in the bundle, from 1.
    scenario: Whole = row.one.number;
    /// Its name.
    name: Text = &row.one.entry.name;
    /// The environment in which it was measured.
    environment: Text = &row.one.entry.environment;
    /// The kind of environment: `host`, `podman`, `qemu`, ...; `imported`: tactus did not measure.
    kind: Text = &row.one.entry.kind;
    /// The environment that it lies inside, if it is not on the machine itself.
    inside: Text = row.one.entry.inside.as_deref();
    /// The environment at the other end, if there is one.
    to: Text = row.one.entry.to.as_deref();
    /// The state of the machine that it is for, if the plan declares states.
    host: Text = row.one.entry.host.as_deref();
    /// Number of this run of the scenario, from 1, if the plan repeats it.
    repeat: Whole = row.one.entry.repeat;
    /// The kind of evidence: `bare metal`, `virtual host` (measured inside a VM), `emulated` (nothing about hardware)
    /// or `imported`; empty if the environment never started.
    evidence: Text = row.one.entry.evidence.map(|evidence| evidence.key().to_owned());
    /// The measurement: `timer`, `spin`, `memory`, ...
    measurement: Text = &row.one.entry.measurement;
    /// Time between two wake-ups, in ns; empty if unknown, or if the measurement is not periodic.
    interval_ns: Whole = Some(row.one.row.result.interval_ns).filter(|ns| *ns > 0);
    /// Real-time priority of the first thread.
    priority: Whole = row.one.row.result.priority;
    /// The loads that ran beside it: a list of the plan's tables, as JSON.
    load: Text = json(&row.one.entry.load);
    /// The faults that were injected, as JSON.
    fault: Text = json(&row.one.entry.fault);
    /// `measured`, `skipped` or `failed`.
    status: Text = word(&row.one.entry.status);
    /// How it ended: `complete`, `stopped`, `broke`, `interrupted`, `died`, `failed`, `refused`, `unavailable`, `waiting`.
    ended: Text = word(&row.one.entry.ended);
    /// Why numbers are missing, or fewer than planned.
    reason: Text = row.one.entry.reason.as_deref();
    /// When it began to measure.
    started: Moment = Moment(row.one.row.result.started.as_deref());
    /// Planned duration of the measurement; empty if unknown.
    planned_ns: Whole = row.one.entry.duration_s.map(|_| row.one.row.result.planned_ns);
    /// Measured duration; empty if unknown.
    measured_ns: Whole = row.one.entry.duration_s.map(|_| row.one.row.result.measured_ns);
    /// Frames of its environment that did not arrive.
    frames_lost: Whole = row.one.entry.frames_lost;
    /// Wake-ups measured, of all series. This column and those up to `corrected_p99999_ns` are empty for measurements
    /// that yield values.
    cycles: Whole = row.all().map(|all| all.cycles);
    /// Periods that late wake-ups missed; empty if they were not counted.
    overruns: Whole = row.all().and_then(|all| all.overruns);
    /// Values that are counted in `cycles` but are in no histogram.
    lost: Whole = row.all().map(|all| all.lost);
    /// Smallest latency, exact.
    min_ns: Whole = row.all().and_then(|all| all.min_ns);
    /// Mean latency.
    mean_ns: Real = row.all().and_then(|all| all.mean_ns);
    /// Median latency, within 0.1 % like all quantiles.
    p50_ns: Whole = row.all().and_then(|all| all.p50_ns);
    /// 99th percentile.
    p99_ns: Whole = row.all().and_then(|all| all.p99_ns);
    /// 99.9th percentile.
    p999_ns: Whole = row.all().and_then(|all| all.p999_ns);
    /// 99.99th percentile; empty for fewer than 10 000 values.
    p9999_ns: Whole = row.all().and_then(|all| all.p9999_ns);
    /// 99.999th percentile; empty for fewer than 100 000 values.
    p99999_ns: Whole = row.all().and_then(|all| all.p99999_ns);
    /// Largest latency, exact.
    max_ns: Whole = row.all().and_then(|all| all.max_ns);
    /// Median with the missed periods (corrected for coordinated omission).
    corrected_p50_ns: Whole = row.all().and_then(|all| all.corrected.p50_ns);
    /// 99th percentile with them.
    corrected_p99_ns: Whole = row.all().and_then(|all| all.corrected.p99_ns);
    /// 99.9th percentile with them.
    corrected_p999_ns: Whole = row.all().and_then(|all| all.corrected.p999_ns);
    /// 99.99th percentile with them; empty for fewer than 10 000 values.
    corrected_p9999_ns: Whole = row.all().and_then(|all| all.corrected.p9999_ns);
    /// 99.999th percentile with them; empty for fewer than 100 000 values.
    corrected_p99999_ns: Whole = row.all().and_then(|all| all.corrected.p99999_ns);
    /// Time that the self-test (a known fault before the measurement) held the CPU; empty without a self-test.
    self_test_injected_ns: Whole = row.one.entry.self_test.as_ref().and_then(|test| test.injected_ns);
    /// The latency that was measured for it.
    self_test_seen_ns: Whole = row.one.entry.self_test.as_ref().and_then(|test| test.seen_ns);
    /// Whether every measuring thread saw it at its size.
    self_test_passed: Flag = row.one.entry.self_test.as_ref().map(|test| test.passed);
    /// Verdict of the requirements: `pass`, `warn`, `fail` or `inconclusive`; empty without requirements.
    verdict: Text = row.one.entry.verdict.as_ref().map(|verdict| verdict.outcome.word());
    /// Why, in a sentence.
    verdict_reason: Text = row.one.entry.verdict.as_ref().map(|verdict| &verdict.reason);
    /// The tail bound: exceeded less than once in `tail_horizon_s` with 95 % confidence, if everything stays as
    /// measured.
    tail_ns: Real = row.tail().and_then(|tail| tail.level_ns);
    /// The time that it is for, in seconds.
    tail_horizon_s: Real = row.tail().and_then(|tail| tail.horizon_s);
    /// Whether the bound is provisional because the measured time was too short. A provisional bound never passes.
    tail_provisional: Flag = row.tail().filter(|tail| tail.level_ns.is_some()).map(|tail| tail.provisional.is_some());
    /// Why there is no bound, in a word.
    tail_refused: Text = row.tail().and_then(|tail| tail.refused.as_ref()).map(|refused| &refused.why);
    /// Side effects, limitations and remarks, with ` | ` between them. For imported files they give the number of
    /// values beyond the file's histogram.
    notes: Text = Some(&row.notes).filter(|notes| !notes.is_empty());
    /// The plan's name.
    plan: Text = &row.contents.manifest.plan;
    /// The machine's name.
    machine: Text = &row.contents.manifest.machine.name;
    /// Its processor.
    processor: Text = &row.contents.manifest.machine.processor;
    /// Its kernel: release and version.
    kernel: Text = &row.contents.manifest.machine.kernel;
    /// The version of tactus that measured, or imported.
    tactus: Text = &row.contents.manifest.tactus;
}

/// A word as documents have it.
fn word(of: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(of).ok().and_then(|value| value.as_str().map(str::to_owned))
}
