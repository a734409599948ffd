//! oslat's table, and the part that it shares with its JSON. Gaps are counted by whole microseconds, each as
//! the next whole one, as oslat does it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tactus_model::number::float;

use super::series::{self, Counted};
use super::{Measured, Source};

/// The output of oslat for a thread. Times are in us.
pub(super) struct Thread {
    pub cpu: u32,
    /// How fast the clock runs that is polled; 0: it is the kernel's.
    pub mhz: u64,
    pub min: u64,
    pub mean: f64,
    pub max: u64,
    /// By the place of a row, from 0; the last has what is larger too.
    pub rows: BTreeMap<u64, u64>,
    pub seconds: f64,
}

/// How many rows there are, and which of them are printed.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// How many; the last one counts larger values as well.
    pub count: u64,
    /// Rows of zeros are left out (`--zero-omit`).
    pub omit_zeros: bool,
}

/// The threads of a row, in its order.
pub(super) fn threads(one: Measured<'_>, rows: Rows) -> Vec<Thread> {
    // A row may have any number of remarks, so they are searched only once.
    let mhz = mhz(one);
    series::of(one.row).map(|counted| thread(one, mhz, &counted, rows)).collect()
}

fn thread(one: Measured<'_>, mhz: u64, counted: &Counted<'_>, rows: Rows) -> Thread {
    let summary = &counted.result.summary;
    let (least_ns, most_ns) = (summary.min_ns.unwrap_or(0), summary.max_ns.unwrap_or(0));
    let mut thread = Thread {
        cpu: counted.result.key.cpu,
        mhz,
        min: us(least_ns),
        mean: 0.0,
        max: us(most_ns),
        rows: BTreeMap::new(),
        seconds: float(one.row.result.measured_ns) / 1e9,
    };
    let (mut sum_us, mut count) = (0.0, 0.0);
    for (value_ns, times) in counted.raw.iter().flat_map(|counts| counts.buckets()) {
        // A bucket's largest value may lie above the exact maximum.
        let us = us(value_ns.min(most_ns));
        *thread.rows.entry((us - 1).min(rows.count.saturating_sub(1))).or_insert(0) += times;
        sum_us += float(us) * float(times);
        count += float(times);
    }
    if count > 0.0 {
        thread.mean = sum_us / count;
    }
    thread
}

/// The row of a time, as oslat counts: times below 1 us are 1 us.
const fn us(ns: u64) -> u64 {
    ns / 1_000 + 1
}

/// The frequency of the polled clock in MHz, as the probe reports it; 0 for the kernel's clock.
fn mhz(one: Measured<'_>) -> u64 {
    let notes = one.row.result.notes.iter();
    let hertz = |text: &str| -> Option<u64> {
        let (said, _) = text.strip_prefix("spin polls ")?.split_once(" Hz")?;
        said.rsplit(' ').next()?.parse().ok()
    };
    notes
        .filter_map(|note| hertz(&note.text))
        .next()
        .map_or(0, |hertz| hertz.saturating_add(500_000) / 1_000_000)
}

/// The table that oslat prints at its end, a column for each series of the bundle.
///
/// # Errors
/// When it cannot be written.
pub fn whole(source: &Source<'_>, rows: Rows, out: &mut dyn Write) -> io::Result<()> {
    let threads: Vec<Thread> = source.latencies().flat_map(|one| threads(one, rows)).collect();
    let field = |label: &str, value: &dyn Fn(&Thread) -> String, end: &str| {
        let values: String = threads.iter().map(|thread| format!(" {}", value(thread))).collect();
        format!("{label:>12}:\t{values}{end}")
    };
    let mut lines = Vec::new();
    lines.push(field("Core", &|thread| thread.cpu.to_string(), ""));
    lines.push(field("Counter Freq", &|thread| thread.mhz.to_string(), " (Mhz)"));
    let count = |thread: &Thread, row: u64| thread.rows.get(&row).copied().unwrap_or(0);
    let mut omitted = false;
    for row in 0..rows.count {
        let last = row + 1 == rows.count;
        if rows.omit_zeros && !last && threads.iter().all(|thread| count(thread, row) == 0) {
            omitted = true;
            continue;
        }
        if std::mem::take(&mut omitted) {
            lines.push("    ...".to_owned());
        }
        let end = if last { " (including overflows)" } else { "" };
        let label = format!("{:03} (us)", row + 1);
        lines.push(field(&label, &|thread| count(thread, row).to_string(), end));
    }
    lines.push(field("Minimum", &|thread| thread.min.to_string(), " (us)"));
    lines.push(field("Average", &|thread| format!("{:.3}", thread.mean), " (us)"));
    lines.push(field("Maximum", &|thread| thread.max.to_string(), " (us)"));
    lines.push(field("Max-Min", &|thread| thread.max.saturating_sub(thread.min).to_string(), " (us)"));
    lines.push(field("Duration", &|thread| format!("{:.3}", thread.seconds), " (sec)"));
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out)
}
