//! cyclictest's histogram text (`-h`, `--histfile`), as versions since 2.7 write it: rows without a value are left out.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};

use super::cyclictest::{self, Thread};
use super::{Export, ExportError, Measured, Options, Out, Shape, Source, of_each};

/// The entry.
pub static ENTRY: Export = Export {
    name: "cyclictest-histogram",
    about: "cyclictest's histogram text (-h, --histfile), a file for each scenario, for scripts that plot it",
    ending: "txt",
    shape: Shape::Scenario(write),
    cannot: "missed periods, verdicts, tail bounds, findings, CPUs, priorities; the evidence stands in a comment",
    notes: |source, options| {
        let mut notes = of_each(source.latencies(), |one| {
            let threads = cyclictest::threads(*one, options);
            let without: Vec<String> = threads
                .iter()
                .filter(|thread| thread.rows.is_none())
                .map(|thread| thread.key.to_string())
                .collect();
            (!without.is_empty()).then(|| {
                format!("{} has totals and no histogram: its column has no rows", without.join(", "))
            })
        });
        notes.extend(cyclictest::notes(source, options));
        notes
    },
};

fn write(_: &Source<'_>, one: Measured<'_>, options: Options, out: Out<'_>) -> Result<(), ExportError> {
    let mut out = BufWriter::new(out);
    let threads = cyclictest::threads(one, options);
    writeln!(out, "# {}", cyclictest::command(one, options))?;
    writeln!(out, "# Histogram")?;
    let values: BTreeSet<u64> = threads
        .iter()
        .filter_map(|thread| thread.rows.as_ref())
        .flat_map(|rows| rows.keys().copied())
        .collect();
    for value in values {
        let count = |thread: &Thread<'_>| {
            let count = thread.rows.as_ref().and_then(|rows| rows.get(&value)).copied().unwrap_or(0);
            format!("{count:06}")
        };
        writeln!(out, "{value:06} {}", columns(&threads, count, "\t"))?;
    }
    let total = |thread: &Thread<'_>| thread.rows.as_ref().map_or(0, |rows| rows.values().sum());
    writeln!(out, "# Total: {}", columns(&threads, |thread| format!("{:09}", total(thread)), " "))?;
    writeln!(out, "# Min Latencies: {}", columns(&threads, |thread| format!("{:05}", thread.min), " "))?;
    // cyclictest cuts it off.
    let mean = |thread: &Thread<'_>| format!("{:05}", thread.mean.floor());
    writeln!(out, "# Avg Latencies: {}", columns(&threads, mean, " "))?;
    writeln!(out, "# Max Latencies: {}", columns(&threads, |thread| format!("{:05}", thread.max), " "))?;
    let overflows = |thread: &Thread<'_>| format!("{:05}", thread.overflows);
    writeln!(out, "# Histogram Overflows: {}", columns(&threads, overflows, " "))?;
    writeln!(out, "# Histogram Overflow at cycle number:")?;
    // Scripts count these lines as threads. Which cycles it were is not kept: all are among the `others`.
    for (number, thread) in threads.iter().enumerate() {
        match thread.overflows {
            0 => writeln!(out, "# Thread {number}:")?,
            others => writeln!(out, "# Thread {number}: # {others:05} others")?,
        }
    }
    writeln!(out)?;
    Ok(out.flush()?)
}

fn columns(threads: &[Thread<'_>], of: impl Fn(&Thread<'_>) -> String, between: &str) -> String {
    threads.iter().map(of).collect::<Vec<_>>().join(between)
}
