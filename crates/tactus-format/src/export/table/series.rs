//! One row per series.

use tactus_model::latency::Summary;
use tactus_model::outcome::SeriesResult;
use tactus_model::series::ThreadCounters;

use super::{Table, columns};

/// The table.
pub const TABLE: Table = Table {
    name: "series",
    about: "A row for each series of each scenario: what one measuring thread saw.",
    columns: COLUMNS,
    rows: |source, take| {
        source.rows().try_for_each(|one| {
            one.row
                .result
                .series()
                .iter()
                .try_for_each(|series| take(&cells(&Row { scenario: one.number, series })))
        })
    },
};

struct Row<'a> {
    scenario: usize,
    series: &'a SeriesResult,
}

impl Row<'_> {
    const fn all(&self) -> &Summary {
        &self.series.summary
    }

    const fn counters(&self) -> &ThreadCounters {
        &self.series.counters
    }
}

columns! { row: Row<'_>;
    /// Number of the scenario, as in `scenarios`.
    scenario: Whole = row.scenario;
    /// CPU, thread and kind in one word: `cpu1/t0/thread`. It is unique within the scenario.
    series: Text = row.series.key.to_string();
    /// CPU of the environment on which the thread was pinned. If an imported file does not say it, the number of the
    /// thread.
    cpu: Whole = row.series.key.cpu;
    /// Number of the thread, from 0.
    thread: Whole = row.series.key.thread;
    /// Its real-time priority; 0 for SCHED_OTHER and SCHED_DEADLINE.
    priority: Whole = row.series.key.priority;
    /// The kind of values: `thread` (wake-up of the thread), `gap` (polled), `irq`, `user`, ...
    kind: Text = &row.series.key.kind;
    /// Whether all of its counts arrived, up to the end.
    whole: Flag = row.series.whole;
    /// Wake-ups measured.
    cycles: Whole = row.all().cycles;
    /// Periods that late wake-ups missed; empty if they were not counted.
    overruns: Whole = row.all().overruns;
    /// Values that are counted in `cycles` but are in no histogram.
    lost: Whole = row.all().lost;
    /// Smallest latency, exact.
    min_ns: Whole = row.all().min_ns;
    /// Mean latency.
    mean_ns: Real = row.all().mean_ns;
    /// Median latency, within 0.1 % like all quantiles.
    p50_ns: Whole = row.all().p50_ns;
    /// 99th percentile.
    p99_ns: Whole = row.all().p99_ns;
    /// 99.9th percentile.
    p999_ns: Whole = row.all().p999_ns;
    /// 99.99th percentile; empty for fewer than 10 000 values.
    p9999_ns: Whole = row.all().p9999_ns;
    /// 99.999th percentile; empty for fewer than 100 000 values.
    p99999_ns: Whole = row.all().p99999_ns;
    /// Largest latency, exact.
    max_ns: Whole = row.all().max_ns;
    /// Median with the missed periods (corrected for coordinated omission).
    corrected_p50_ns: Whole = row.all().corrected.p50_ns;
    /// 99th percentile with them.
    corrected_p99_ns: Whole = row.all().corrected.p99_ns;
    /// 99.9th percentile with them.
    corrected_p999_ns: Whole = row.all().corrected.p999_ns;
    /// 99.99th percentile with them; empty for fewer than 10 000 values.
    corrected_p9999_ns: Whole = row.all().corrected.p9999_ns;
    /// 99.999th percentile with them; empty for fewer than 100 000 values.
    corrected_p99999_ns: Whole = row.all().corrected.p99999_ns;
    /// Page faults of the thread without I/O. This column and the following are empty if they could not be read.
    minor_faults: Whole = row.counters().minor_faults;
    /// Page faults with I/O.
    major_faults: Whole = row.counters().major_faults;
    /// Number of times that its CPU was taken from it.
    involuntary_switches: Whole = row.counters().involuntary_switches;
    /// Time that the hypervisor gave its CPU to others.
    steal_ns: Whole = row.counters().steal_ns;
    /// System management interrupts on its CPU.
    smi: Whole = row.counters().smi;
}
