//! Under which conditions an answer holds: what ran beside it, which periods were missed, what broke, and what was not
//! measured.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::message::Unknowable;
use tactus_model::number::float;
use tactus_model::own_groups::tells_throttling;
use tactus_model::plan::{Activity, Scenario};
use tactus_model::scheduling::Policy;

use crate::row::{Runs, died, ended_early, figures, found_nothing, missed_words, unavailable, under};
use crate::stats::Line;
use crate::units::{clean, latency, listed, shortened};

/// The conditions of an answer, a sentence each; without those that the answer states itself.
pub fn conditions(contents: &Contents, lines: &[Line], answer: &str) -> Vec<String> {
    let all = Runs::new(contents);
    let runs =
        |line: &Line| all.of(line.row).iter().map(|run: &&Row| &run.result).collect::<Vec<&RowResult>>();
    // The conditions concern the measurements with a verdict; without any verdict, everything that was
    // measured.
    let judged = lines.iter().any(|line| line.verdict.is_some());
    let own = || lines.iter().filter(|line| line.figures.is_some() && (!judged || line.verdict.is_some()));
    let results: Vec<&RowResult> = own().flat_map(runs).collect();
    [
        damaged(contents),
        idle(contents, &results, lines),
        beside(&results),
        other(&results),
        missed(&results),
        throttled(own(), runs),
        broken("Died and was started again", lines, |line| {
            line.verdict.is_none() && runs(line).into_iter().any(|run| died(run).is_some())
        }),
        interrupted(contents).filter(|_| !answer.contains("the run was interrupted")),
        broken("Ended early", lines, |line| {
            contents.manifest.status == RunStatus::Complete
                && runs(line).into_iter().any(|run| ended_early(run) && !run.damaged)
        }),
        broken("Failed", lines, |line| {
            !is_told(answer, line) && runs(line).iter().any(|run| run.status == RowStatus::Failed)
        }),
        broken("Not measured", lines, |line| {
            let runs = runs(line);
            if is_told(answer, line) || runs.iter().any(|run| found_nothing(run).is_some()) {
                return false;
            }
            runs.iter().all(|run| run.status == RowStatus::Skipped)
                || (!line.has_numbers() && runs.iter().all(|run| run.status != RowStatus::Failed))
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether an answer begins with the reason for missing numbers.
fn is_told(answer: &str, line: &Line) -> bool {
    let why = answer.strip_prefix(&clean(&line.name)).and_then(|rest| rest.strip_prefix(": "));
    why.is_some_and(|why| ["skipped: ", "failed: ", "nothing was"].iter().any(|word| why.starts_with(word)))
}

/// Says that the bundle is damaged.
pub(super) fn damaged(contents: &Contents) -> Option<String> {
    match contents.damage.len() {
        0 => None,
        1 => Some(format!("The bundle is damaged: {}.", clean(contents.damage[0].trim_end_matches('.')))),
        all => Some(format!("The bundle is damaged in {all} places.")),
    }
}

/// Says that nothing ran beside any measurement that was judged: latencies under load are then unknown, or no limit was
/// set for them.
fn idle(contents: &Contents, results: &[&RowResult], lines: &[Line]) -> Option<String> {
    let words: Vec<String> = results.iter().filter_map(|result| under(result)).collect();
    let none = !words.is_empty() && words.iter().all(|words| words == "idle");
    let elsewhere = lines.iter().any(|line| {
        line.figures.is_some() && !line.load.is_empty() && !["idle", "unknown"].contains(&line.load.as_str())
    });
    // Rows that were not chosen, or are lost.
    let absent = contents.plan.scenario.iter().any(|scenario| {
        let is_it = |row: &Row| scenario.name.as_ref() == Some(&row.result.name);
        has_load(scenario) && !contents.rows.iter().any(is_it)
    });
    none.then(|| match (elsewhere, absent) {
        (true, _) => "Judged idle only: the measurements under load have no limit.".into(),
        (false, true) => "Idle only: the measurements under load are missing here.".into(),
        (false, false) => "Idle only: tactus ran no load.".into(),
    })
}

/// Whether a scenario has a load or a fault.
fn has_load(scenario: &Scenario) -> bool {
    let disturbs = |activity: &Activity| activity.load.is_some() || activity.fault.is_some();
    !scenario.load.is_empty() || !scenario.fault.is_empty() || scenario.activity.iter().any(disturbs)
}

/// Says that something else measured this machine at the same time.
fn beside(results: &[&RowResult]) -> Option<String> {
    let any = results.iter().any(|result| unavailable(result, Unknowable::Alone).is_some());
    any.then(|| "Another measurement ran on this machine at the same time.".into())
}

/// Says that no real-time thread measured.
fn other(results: &[&RowResult]) -> Option<String> {
    let is_other = |result: &&&RowResult| {
        let polls_or_wakes = matches!(result.measurement, Measure::Timer(_) | Measure::Spin(_));
        polls_or_wakes && result.policy == Policy::Other && result.evidence != Some(Evidence::Imported)
    };
    results.iter().find(is_other).map(|_| "Measured under SCHED_OTHER, not by real-time threads.".into())
}

/// The periods that were missed and that no limit bounds.
fn missed(results: &[&RowResult]) -> Option<String> {
    // An emulated processor misses its own.
    let counts = |result: &RowResult| {
        result.evidence != Some(Evidence::Emulated) && crate::row::missed(result).is_some()
    };
    let own = || results.iter().filter(|result| counts(result));
    let overruns =
        own().filter_map(|result| figures(result)).fold(0, |sum: u64, all| sum.saturating_add(all.missed()));
    let first = own().next()?;
    let alike = own().all(|result| result.interval_ns == first.interval_ns);
    let period_ns = if alike { first.interval_ns } else { 0 };
    let most = own().filter_map(|result| figures(result)).any(|all| all.missed() > all.cycles);
    let cannot = match (most, period_ns) {
        (false, _) => String::new(),
        (true, 0) => " More periods were missed than measured: these periods cannot be kept here.".into(),
        (true, ns) => format!(
            " More periods were missed than measured: a period of {} cannot be kept here.",
            latency(float(ns))
        ),
    };
    Some(format!("{}.{cannot}", missed_words(overruns, period_ns)))
}

/// "Throttled 13 times, 308 ms, by /system.slice/x.service (host loaded; 2 more)."
fn throttled<'a>(
    lines: impl Iterator<Item = &'a Line>,
    runs: impl Fn(&Line) -> Vec<&'a RowResult>,
) -> Option<String> {
    let note = |line: &Line| {
        runs(line).iter().flat_map(|run| &run.notes).find(|note| tells_throttling(note)).cloned()
    };
    let mut told = lines.filter_map(|line| Some((clean(&line.name), note(line)?)));
    let (name, note) = told.next()?;
    let more = match told.count() {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let text = note.text.get("throttled".len()..).unwrap_or_default();
    Some(format!("Throttled{} ({name}{more}).", shortened(&clean(text), 100)))
}

fn interrupted(contents: &Contents) -> Option<String> {
    let interrupted = contents.manifest.status == RunStatus::Interrupted;
    interrupted.then(|| "The run was interrupted.".into())
}

/// "Not measured: oci, idle; qemu, idle."
fn broken(word: &str, lines: &[Line], is: impl Fn(&Line) -> bool) -> Option<String> {
    let names: Vec<String> = lines.iter().filter(|line| is(line)).map(|line| clean(&line.name)).collect();
    (!names.is_empty()).then(|| format!("{word}: {}.", listed(&names, "; ")))
}
