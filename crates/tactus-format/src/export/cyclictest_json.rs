//! cyclictest's JSON (`--json`), with its keys as they are: two of them end in a colon.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use tactus_model::number::float;

use super::cyclictest::{self, Thread};
use super::{Export, ExportError, Measured, Options, Out, Shape, Source, of_each, rt_tests};

/// The entry.
pub static ENTRY: Export = Export {
    name: "cyclictest-json",
    about: "cyclictest's JSON (--json), a file for each scenario, with the same keys",
    ending: "json",
    shape: Shape::Scenario(write),
    cannot: "missed periods, verdicts, tail bounds, findings, how many values are beyond the histogram \
        (`cycles` has them); `cmdline:` contains the evidence",
    notes: |source, options| {
        let mut notes = of_each(source.latencies(), |one| {
            let over: u64 = cyclictest::threads(*one, options).iter().map(|thread| thread.overflows).sum();
            (over > 0).then(|| {
                format!(
                    "{over} values are beyond the histogram: its `cycles` include them, \
                but no key contains their number"
                )
            })
        });
        notes.extend(cyclictest::notes(source, options));
        notes
    },
};

fn write(source: &Source<'_>, one: Measured<'_>, options: Options, out: Out<'_>) -> Result<(), ExportError> {
    let mut out = BufWriter::new(out);
    let threads = cyclictest::threads(one, options);
    document(source, one, threads, cyclictest::command(one, options), options, &mut out)?;
    Ok(out.flush()?)
}

/// Every series of a bundle as a thread of one cyclictest, in its order. `command` is the command that it
/// claims. Without rows in the options the histograms stay empty, like cyclictest's without `-h`.
///
/// # Errors
/// When it cannot be written.
pub fn whole(source: &Source<'_>, command: String, options: Options, out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = source.latencies().next() else { return Ok(()) };
    let mut threads: Vec<Thread<'_>> =
        source.latencies().flat_map(|one| cyclictest::threads(one, options)).collect();
    if options.histogram.is_none() {
        threads.iter_mut().for_each(|thread| thread.rows = Some(BTreeMap::new()));
    }
    document(source, first, threads, command, options, out)
}

fn document(
    source: &Source<'_>,
    one: Measured<'_>,
    threads: Vec<Thread<'_>>,
    command: String,
    options: Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    let resolution = u8::from(options.unit_ns() == 1);
    let threads = threads.into_iter().map(of_thread).collect();
    rt_tests::document(source, one, command, Some(resolution), threads, out)
}

#[derive(Serialize)]
struct ThreadEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<BTreeMap<u64, u64>>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: f64,
    cpu: u32,
    node: u32,
}

fn of_thread(thread: Thread<'_>) -> ThreadEntry {
    // Two decimals, as cyclictest.
    let hundredths = tactus_model::number::whole(thread.mean * 100.0);
    ThreadEntry {
        histogram: thread.rows,
        cycles: thread.cycles,
        min: thread.min,
        max: thread.max,
        avg: float(hundredths) / 100.0,
        cpu: thread.key.cpu,
        node: 0,
    }
}
