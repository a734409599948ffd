//! cyclictest's histogram text (`-h`, `--histfile`), as versions since 2.7 write it: rows without a value are left out.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use tactus_model::number::whole as whole_number;

use super::cyclictest::{self, Thread};
use super::{Export, ExportError, Measured, Options, Out, Shape, Source, of_each};

/// The entry.
pub static ENTRY: Export = Export {
    name: "cyclictest-histogram",
    about: "cyclictest's histogram text (-h, --histfile), a file for each scenario, for scripts that plot it",
    ending: "txt",
    shape: Shape::Scenario(write),
    cannot: "missed periods, verdicts, tail bounds, findings, CPUs, priorities; a comment contains the \
        evidence",
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
    writeln!(out, "# {}", cyclictest::command(one, options))?;
    text(&cyclictest::threads(one, options), options, &mut out)?;
    Ok(out.flush()?)
}

/// The histogram of every series of a bundle, a column for each, as one cyclictest with a thread for each
/// prints it.
///
/// # Errors
/// When it cannot be written.
pub fn whole(source: &Source<'_>, options: Options, out: &mut dyn Write) -> io::Result<()> {
    let threads: Vec<Thread<'_>> =
        source.latencies().flat_map(|one| cyclictest::threads(one, options)).collect();
    text(&threads, options, out)
}

fn text(threads: &[Thread<'_>], options: Options, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# Histogram")?;
    let filled =
        threads.iter().filter_map(|thread| thread.rows.as_ref()).flat_map(|rows| rows.keys().copied());
    let values: BTreeSet<u64> = match options.histogram {
        Some(rows) if options.every_row => (0..rows).collect(),
        _ => filled.collect(),
    };
    // A column for all of them stands beside two or more.
    let sums = options.sums && threads.len() > 1;
    for value in values {
        let counts: Vec<u64> = threads
            .iter()
            .map(|thread| thread.rows.as_ref().and_then(|rows| rows.get(&value)).copied().unwrap_or(0))
            .collect();
        writeln!(out, "{value:06} {}", columns(&counts, sums.then(|| sum(&counts)), 6, "\t"))?;
    }
    let of = |figure: fn(&Thread<'_>) -> u64| -> Vec<u64> { threads.iter().map(figure).collect() };
    let totals = of(|thread| thread.rows.as_ref().map_or(0, |rows| rows.values().sum()));
    writeln!(out, "# Total: {}", columns(&totals, sums.then(|| sum(&totals)), 9, " "))?;
    writeln!(out, "# Min Latencies: {}", columns(&of(|thread| thread.min), None, 5, " "))?;
    // cyclictest cuts it off.
    writeln!(
        out,
        "# Avg Latencies: {}",
        columns(&of(|thread| whole_number(thread.mean.floor())), None, 5, " ")
    )?;
    let largest = of(|thread| thread.max);
    let most = largest.iter().copied().max();
    writeln!(out, "# Max Latencies: {}", columns(&largest, most.filter(|_| sums), 5, " "))?;
    let overflows = of(|thread| thread.overflows);
    writeln!(out, "# Histogram Overflows: {}", columns(&overflows, sums.then(|| sum(&overflows)), 5, " "))?;
    writeln!(out, "# Histogram Overflow at cycle number:")?;
    // Scripts count these lines as threads. Which cycles it were is not kept: all are among the `others`.
    for (number, thread) in threads.iter().enumerate() {
        match thread.overflows {
            0 => writeln!(out, "# Thread {number}:")?,
            others => writeln!(out, "# Thread {number}: # {others:05} others")?,
        }
    }
    writeln!(out)
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

fn columns(of_threads: &[u64], of_all: Option<u64>, digits: usize, between: &str) -> String {
    let cells = of_threads.iter().copied().chain(of_all).map(|cell| format!("{cell:0digits$}"));
    cells.collect::<Vec<_>>().join(between)
}
