//! oslat's JSON (`--json`), with its keys as they are.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::cyclictest::command;
use super::oslat::{Rows, Thread, threads};
use super::{Export, ExportError, Measured, Options, Out, Shape, Source, of_each, rt_tests};

/// The entry.
pub static ENTRY: Export = Export {
    name: "oslat-json",
    about: "oslat's JSON (--json), a file for each scenario, with the same keys",
    ending: "json",
    shape: Shape::Scenario(write),
    cannot: "less than 1 us, verdicts, tail bounds, findings; `cmdline:` contains the evidence",
    notes: |source, _| {
        of_each(source.latencies(), |one| {
            let mut kinds = one.row.result.series().iter().map(|series| &series.key.kind);
            let other = kinds.find(|kind| *kind != "gap")?;
            Some(format!("the values are of the kind `{other}`, but oslat's are gaps"))
        })
    },
};

fn write(source: &Source<'_>, one: Measured<'_>, options: Options, out: Out<'_>) -> Result<(), ExportError> {
    let mut out = BufWriter::new(out);
    // Every value has a row, unless the user gives their number.
    let rows = Rows { count: options.histogram.unwrap_or(u64::MAX), omit_zeros: true };
    document(source, one, threads(one, rows), command(one, options), &mut out)?;
    Ok(out.flush()?)
}

/// Every series of a bundle as a thread of one oslat, in its order. `command` is the command that it claims.
///
/// # Errors
/// When it cannot be written.
pub fn whole(source: &Source<'_>, command: String, rows: Rows, out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = source.latencies().next() else { return Ok(()) };
    document(source, first, source.latencies().flat_map(|one| threads(one, rows)).collect(), command, out)
}

fn document(
    source: &Source<'_>,
    one: Measured<'_>,
    threads: Vec<Thread>,
    command: String,
    out: &mut dyn Write,
) -> io::Result<()> {
    let threads = threads.into_iter().map(ThreadEntry::of).collect();
    rt_tests::document(source, one, command, None, threads, out)
}

#[derive(Serialize)]
struct ThreadEntry {
    cpu: u32,
    freq: u64,
    min: u64,
    avg: f64,
    max: u64,
    duration: f64,
    histogram: BTreeMap<u64, u64>,
}

impl ThreadEntry {
    fn of(thread: Thread) -> Self {
        let decimals = |value: f64, scale: f64| (value * scale).round() / scale;
        Self {
            cpu: thread.cpu,
            freq: thread.mhz,
            min: thread.min,
            avg: decimals(thread.mean, 1e6),
            max: thread.max,
            duration: decimals(thread.seconds, 1e3),
            histogram: thread.rows.into_iter().map(|(row, count)| (row + 1, count)).collect(),
        }
    }
}
