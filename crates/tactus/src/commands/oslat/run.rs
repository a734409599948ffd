//! Polls, and prints what oslat prints.

use std::fmt::Write as _;

use tactus_format::export::{OslatRows, oslat_json, oslat_table};
use tactus_model::CpuSet;
use tactus_model::bundle::Contents;
use tactus_model::cpus::CpuRequest;
use tactus_model::event::Stamped;
use tactus_run::Sink;
use tactus_system::{Real, topology};

use super::options::{plan, refuse};
use crate::cli::Oslat;
use crate::commands::drop_in::{Ready, Wanted, called, exit, exported, say_failure, write};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn oslat(options: &Oslat) -> Result<Exit, Failure> {
    refuse(options)?;
    let request = options.cpu_list.as_deref().unwrap_or("all").parse::<CpuRequest>();
    let request = request.map_err(|error| {
        Failure::say(format!("-c: {error}"), "-c takes a list of CPUs that are online, as in -c 1,4-6")
    })?;
    let cpus = topology(&Real)
        .resolve(&request)
        .map_err(|error| Failure::say(format!("-c: {error}"), error.hint()))?;
    let begun = begun(options, &cpus);
    let wanted = Wanted { plan: plan(options, cpus), no_side_effects: false, out: options.out.as_deref() };
    let ready = Ready::of(&wanted)?;
    output::data(&begun)?;
    let executed = ready.run(Failures)?;
    let contents = &executed.contents;
    if let Some((cpu, us, threshold)) = broken(options, contents) {
        say(format_args!("oslat: Trace threshold ({threshold} us) triggered on cpu {cpu} with {us} us!"));
        say("Stopping the test.");
        return Ok(Exit::Findings.and(exit(executed)));
    }
    written(options, contents)?;
    Ok(exit(executed))
}

/// oslat's output before it measures.
fn begun(options: &Oslat, cpus: &CpuSet) -> String {
    let mut text = format!("oslat V {}\n", env!("CARGO_PKG_VERSION"));
    if options.rtprio.is_some() && cpus.contains(options.cpu_main_thread) {
        let cpu = options.cpu_main_thread;
        let _ = writeln!(text, "WARNING: Running SCHED_FIFO workload on CPU {cpu} may hang the thread");
    }
    if options.quiet {
        return text;
    }
    let priority =
        options.rtprio.map_or_else(|| "default".to_owned(), |priority| format!("SCHED_FIFO:{priority}"));
    let _ = write!(
        text,
        "Total runtime: \t\t{} seconds\nThread priority: \t{priority}\nCPU list: \t\t{}\nCPU for main thread: \t{}\n\
         Workload: \t\t{}\nWorkload mem: \t\t0 (KiB)\nPreheat cores: \t\t{}\n\nTest starts...\n",
        options.duration.0 / 1_000_000_000,
        options.cpu_list.as_deref().unwrap_or("all"),
        options.cpu_main_thread,
        options.workload,
        cpus.len(),
    );
    text
}

/// Prints and writes its output at its end.
fn written(options: &Oslat, contents: &Contents) -> Result<(), Failure> {
    if !options.quiet {
        output::data("Test completed.\n\n")?;
    }
    let rows = OslatRows { count: options.bucket_size, omit_zeros: options.zero_omit };
    let mut table = Vec::new();
    exported(contents, |bundle| oslat_table(bundle, rows, &mut table))?;
    output::data(&String::from_utf8_lossy(&table))?;
    if let Some(path) = &options.json {
        let mut json = Vec::new();
        exported(contents, |bundle| oslat_json(bundle, called(), rows, &mut json))?;
        write(path, &json)?;
    }
    Ok(())
}

/// The CPU whose gap ended it, the gap as oslat counts it, and the threshold, in us.
fn broken(options: &Oslat, contents: &Contents) -> Option<(u32, u64, u64)> {
    let threshold = options.trace_threshold?;
    let series = contents.rows.iter().flat_map(|row| row.result.series());
    let largest = series.filter_map(|series| Some((series.key.cpu, series.summary.max_ns? / 1_000 + 1)));
    let (cpu, us) = largest.max_by_key(|(_, us)| *us)?;
    (us >= threshold).then_some((cpu, us, threshold))
}

/// A follower that shows only failures: oslat prints nothing while it measures.
struct Failures;

impl Sink for Failures {
    fn take(&mut self, stamped: &Stamped) {
        say_failure(&stamped.event);
    }
}
