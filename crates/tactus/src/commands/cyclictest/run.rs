//! Measures, and prints what cyclictest prints.

use std::path::Path;

use tactus_format::export::{self, Options};
use tactus_model::bundle::Contents;
use tactus_model::number::float;
use tactus_system::{Real, System, topology};

use super::lines::{Figures, block, line, unit_ns};
use super::live::Live;
use super::options::Asked;
use crate::cli::Cyclictest;
use crate::commands::drop_in::{Ready, Wanted, called, exit, exported, write};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::say::say;

pub fn cyclictest(options: &Cyclictest) -> Result<Exit, Failure> {
    let machine = topology(&Real);
    let asked = Asked::of(options, |request| {
        machine.resolve(request).map_err(|error| Failure::say(format!("-a: {error}"), error.hint()))
    })?;
    if let Some(priority) = asked.defaulted {
        say(format_args!("defaulting realtime priority to {priority}"));
    }
    let wanted =
        Wanted { plan: asked.plan(), no_side_effects: options.default_system, out: options.out.as_deref() };
    let ready = Ready::of(&wanted)?;
    if !options.default_system {
        output::data("# /dev/cpu_dma_latency set to 0us\n")?;
    }
    let live = Live::new(&asked.threads, asked.policy, options.nsecs, options.quiet, options.refresh_on_max);
    let executed = ready.run(live)?;
    let contents = &executed.contents;
    written(options, &asked, contents)?;
    // Neither a latency that ended it nor who interrupted it is a failure, as with cyclictest.
    Ok(exit(executed))
}

/// Prints and writes cyclictest's output at its end.
fn written(options: &Cyclictest, asked: &Asked, contents: &Contents) -> Result<(), Failure> {
    let figures: Vec<Figures> =
        asked.threads.iter().enumerate().map(|(row, _)| last(contents, row)).collect();
    let all: String = asked
        .threads
        .iter()
        .zip(&figures)
        .enumerate()
        .map(|(number, (thread, figures))| line(number, thread, figures, options.nsecs))
        .collect();
    if !options.quiet {
        let loadavg = Real.read(Path::new("/proc/loadavg")).unwrap_or_default();
        output::data(&block(asked.policy, &String::from_utf8_lossy(&loadavg), &all))?;
    } else if asked.histogram.is_none() {
        output::data(&all)?;
    }
    let format = Options {
        unit_ns: Some(unit_ns(options.nsecs)),
        histogram: asked.histogram,
        every_row: true,
        sums: options.histofall.is_some(),
    };
    if let Some(path) = &options.json {
        let mut json = Vec::new();
        exported(contents, |bundle| export::cyclictest_json(bundle, called(), format, &mut json))?;
        write(path, &json)?;
    }
    if asked.histogram.is_some() {
        let mut text = Vec::new();
        exported(contents, |bundle| export::cyclictest_histogram(bundle, format, &mut text))?;
        match &options.histfile {
            Some(path) => write(path, &text)?,
            None => output::data(&String::from_utf8_lossy(&text))?,
        }
    }
    if let Some((thread, value)) = broken(asked, &figures, unit_ns(options.nsecs)) {
        let ids: String = asked.threads.iter().map(|_| " 0").collect();
        output::data(&format!("# Thread Ids:{ids}\n# Break thread: {thread}\n# Break value: {value}\n"))?;
    }
    Ok(())
}

/// The figures of a thread, which is a row.
fn last(contents: &Contents, row: usize) -> Figures {
    let Some(row) = contents.rows.get(row) else { return Figures::default() };
    row.result.series().first().map_or_else(Figures::default, |series| {
        let summary = &series.summary;
        let newest = row.ticks.series.get(&series.key).and_then(|ticks| ticks.stretches.last());
        Figures {
            cycles: summary.cycles,
            min_ns: summary.min_ns,
            newest_ns: newest
                .filter(|stretch| stretch.summed > 0)
                .map(|stretch| float(stretch.sum_ns) / float(stretch.summed)),
            mean_ns: summary.mean_ns,
            max_ns: summary.max_ns,
        }
    })
}

/// The thread that ended it, and its latency.
fn broken(asked: &Asked, figures: &[Figures], unit_ns: u64) -> Option<(usize, u64)> {
    let limit_ns = asked.break_us?.saturating_mul(1_000);
    let above = figures.iter().enumerate().filter_map(|(number, of)| Some((number, of.max_ns?)));
    let (number, max_ns) = above.filter(|(_, ns)| *ns > limit_ns).max_by_key(|(_, ns)| *ns)?;
    Some((number, max_ns / unit_ns))
}
