//! Under which conditions an answer holds: what ran beside it, which periods were missed, what broke, and what was not
//! measured.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::event::{RowStatus, RunStatus};
use tactus_model::message::Unknowable;
use tactus_model::number::float;
use tactus_model::own_groups::{Throttled, throttled_groups};
use tactus_model::plan::{Activity, Scenario};
use tactus_model::scheduling::Policy;

use crate::row::{Runs, died, ended_early, figures, found_nothing, missed_words, unavailable, under};
use crate::stats::Line;
use crate::units::{TOLD, beginning, clean, latency, listed, shortened};

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
        throttled(own(), &all),
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
        1 => {
            let damage = clean(&beginning(&contents.damage[0], TOLD));
            Some(format!("The bundle is damaged: {}.", damage.trim_end_matches('.')))
        }
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
    none.then(|| match (elsewhere, !elsewhere && is_one_absent(&contents.plan.scenario, &contents.rows)) {
        (true, _) => "Judged idle only: the measurements under load have no limit.".into(),
        (false, true) => "Idle only: the measurements under load are missing here.".into(),
        (false, false) => "Idle only: tactus ran no load.".into(),
    })
}

/// Whether rows of a scenario with a load were not chosen, or are lost.
fn is_one_absent(scenarios: &[Scenario], rows: &[Row]) -> bool {
    let names: BTreeSet<&str> = rows.iter().map(|row| row.result.name.as_str()).collect();
    let is_there = |scenario: &Scenario| scenario.name.as_deref().is_some_and(|name| names.contains(name));
    scenarios.iter().any(|scenario| has_load(scenario) && !is_there(scenario))
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
fn throttled<'a>(lines: impl Iterator<Item = &'a Line>, all: &Runs<'_>) -> Option<String> {
    let mut told = lines.filter_map(|line| Some((clean(&line.name), throttlings(all.of(line.row))?)));
    let (name, said) = told.next()?;
    let more = match told.count() {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    Some(format!("Throttled {} ({name}{more}).", shortened(&clean(&said), 100)))
}

/// How often each group was throttled in all runs of a measurement, and in all slices of each.
fn throttlings(runs: &[&Row]) -> Option<String> {
    // Of equal notes of its slices a row has one.
    let results = runs.iter().flat_map(|row| {
        let whole = row.slices.is_empty().then_some(&row.result);
        whole.into_iter().chain(row.slices.iter().map(|slice| &slice.result))
    });
    let mut sums: BTreeMap<&str, Throttled> = BTreeMap::new();
    for (group, counted) in results.flat_map(|result| &result.notes).filter_map(throttled_groups).flatten() {
        sums.entry(group).or_default().add(counted);
    }
    // A group before those around it.
    let said: Vec<String> = sums.iter().rev().map(|(group, sum)| sum.by(group)).collect();
    said.join("; ").strip_prefix("throttled ").map(str::to_owned)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    /// The least CPU time that this thread needs for it, in three attempts.
    fn cpu_time(what: impl Fn()) -> Duration {
        let now = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
        };
        let times = [(); 3].map(|()| {
            let began = now();
            what();
            now() - began
        });
        times.into_iter().min().unwrap_or_default()
    }

    #[test]
    fn ten_times_the_scenarios_and_rows_take_ten_times_as_long_and_not_a_hundred() {
        let loaded: Scenario = serde_json::from_value(serde_json::json!({ "load": ["cpu"] })).unwrap();
        assert!(has_load(&loaded));
        let time = |many: usize| {
            let names = || (0..many).map(|n| format!("scenario {n}"));
            let named = |name| Scenario { name: Some(name), ..loaded.clone() };
            let mut scenarios: Vec<Scenario> = names().map(named).collect();
            let row = |name: String| Row::of(RowResult::unmeasured(name.as_str(), "host", "host"));
            let rows: Vec<Row> = names().map(row).collect();
            let time = cpu_time(|| assert!(!is_one_absent(&scenarios, &rows)));
            scenarios.push(loaded.clone());
            assert!(is_one_absent(&scenarios, &rows));
            time
        };
        let (few, more) = (time(500), time(5_000));
        assert!(more < few * 40, "{few:?}, {more:?}");
    }
}
