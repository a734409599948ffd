//! The results of all rows of a run, in a few plain sentences.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::Outcome;
use tactus_model::event::RowStatus;
use tactus_model::message::{Control, Stage};
use tactus_model::number::float;

use crate::row::{control, died, ended_early, ended_load, figures, found_nothing, has_numbers, under};
use crate::stats::comparison;
use crate::units::{clean, duration, latency};

/// The number of measurements, the largest latency for each kind of evidence, whether the instrument is
/// proven, and the verdicts on the requirements.
#[must_use]
pub fn headline(contents: &Contents) -> Vec<String> {
    let mut said = vec![counts(contents)];
    said.extend(chosen(contents));
    // Without a required deadline, the answer has them.
    let judged = contents.rows.iter().any(|row| row.result.require.is_some());
    for evidence in [Evidence::BareMetal, Evidence::VirtualHost, Evidence::Emulated, Evidence::Imported]
        .into_iter()
        .filter(|_| judged)
    {
        said.extend(largest(contents, evidence));
    }
    said.extend(instrument(contents));
    said.extend(requirements(contents));
    said
}

fn counts(contents: &Contents) -> String {
    let with = |status| contents.rows.iter().filter(|row| row.result.status == status).count();
    let (skipped, failed) = (with(RowStatus::Skipped), with(RowStatus::Failed));
    let measured = measured_rows(contents).count();
    let mut environments: Vec<&str> =
        measured_rows(contents).map(|row| row.result.environment.as_str()).collect();
    environments.sort_unstable();
    environments.dedup();
    let total = contents.rows.len();
    let mut said = match (measured, total) {
        (_, 0) => return without_rows(contents),
        (0, _) => format!("None of {total} measurements could be made"),
        (_, _) => {
            let longest = measured_rows(contents).map(|row| row.result.measured_ns).max().unwrap_or(0);
            let shortest = measured_rows(contents).map(|row| row.result.measured_ns).min().unwrap_or(0);
            let (short, long) = (duration(shortest), duration(longest));
            let each = match (shortest, longest) {
                // A file of another tool need not say it.
                (0, _) => String::new(),
                (one, other) if one == other => format!(", {long} each"),
                _ => format!(", {short} to {long} each"),
            };
            let places = environments.join(", ");
            let made = if total == 1 {
                "1 measurement was made".into()
            } else {
                format!("{measured} of {total} measurements were made")
            };
            let each = if measured == 1 { each.replace(" each", "") } else { each };
            format!("{made}{each}, in {places}{}", loads(contents))
        }
    };
    let is = |of: fn(&RowResult) -> bool| contents.rows.iter().filter(|row| of(&row.result)).count();
    let early = is(|result| ended_early(result) && !result.damaged);
    let died = is(|result| died(result).is_some());
    let nothing = with(RowStatus::Measured).saturating_sub(measured);
    let all = [
        (nothing, "measured nothing"),
        (early, "ended early"),
        (died, "continued after a restart of the environment"),
        (skipped, "skipped"),
        (failed, "failed"),
    ];
    for (count, word) in all {
        if count > 0 {
            said.push_str(&format!("; {count} {word}"));
        }
    }
    said + "."
}

/// Why there is no measurement at all. The scenarios of the plan may be in files that cannot be read.
#[must_use]
pub fn without_rows(contents: &Contents) -> String {
    match contents.plan.scenario.len() {
        0 if contents.damage.is_empty() => "The plan has no measurements.".into(),
        0 => "No measurement can be read from this bundle.".into(),
        1 => "The plan has 1 scenario, but this bundle contains nothing readable of it.".into(),
        all => format!("The plan has {all} scenarios, but this bundle contains nothing readable of them."),
    }
}

/// The load beside the measurements: ", idle", ", under load" or ", idle and under load"; empty if unknown.
fn loads(contents: &Contents) -> &'static str {
    let words = || measured_rows(contents).filter_map(|row| under(&row.result));
    match (words().any(|words| words == "idle"), words().any(|words| words != "idle")) {
        (true, true) => ", idle and under load",
        (true, false) => ", idle",
        (false, true) if measured_rows(contents).any(|row| ended_load(&row.result).is_some()) => {
            ", under load that ended early"
        }
        (false, true) => ", under load",
        (false, false) => "",
    }
}

/// Says that only a part of the plan was run, because the user asked for that.
fn chosen(contents: &Contents) -> Option<String> {
    let only = contents.manifest.asked.as_ref().map(|asked| &asked.only)?;
    let names: Vec<String> = only.iter().map(|name| clean(name)).collect();
    (!names.is_empty())
        .then(|| format!("Only a part of the plan was requested: --only {}.", names.join(", ")))
}

fn measured_rows(contents: &Contents) -> impl Iterator<Item = &Row> {
    let has_result = |result: &RowResult| has_numbers(result) || found_nothing(result).is_some();
    contents
        .rows
        .iter()
        .filter(move |row| row.result.status == RowStatus::Measured && has_result(&row.result))
}

fn largest(contents: &Contents, evidence: Evidence) -> Option<String> {
    let of = |row: &&Row| row.result.evidence == Some(evidence);
    let (row, max) = measured_rows(contents)
        .filter(of)
        .filter_map(|row| Some((row, figures(&row.result)?.max_ns?)))
        .max_by_key(|(_, max)| *max)?;
    let (max, name) = (latency(float(max)), &row.result.name);
    Some(match evidence {
        Evidence::BareMetal => format!("Largest latency on this hardware: {max} ({name})."),
        Evidence::VirtualHost => {
            format!("Largest latency as seen inside this virtual machine: {max} ({name}).")
        }
        Evidence::Emulated => {
            format!("Largest latency under emulation: {max} ({name}).")
        }
        Evidence::Imported => format!("Largest imported latency: {max} ({name})."),
    })
}

/// Whether the noise hides a smaller fault, so that what was seen proves nothing.
fn is_hidden(control: &Control) -> bool {
    control.stage == Stage::Fine && !control.is_seen() && !control.is_resolvable()
}

fn instrument(contents: &Contents) -> Option<String> {
    // Values have no control: they are no latencies of a thread that something could hold.
    let latencies = || measured_rows(contents).filter(|row| figures(&row.result).is_some());
    let total = latencies().count();
    let proven = latencies().filter(|row| control(&row.result).is_some_and(|c| c.passed)).count();
    // Pairs that follow each other are measured by one instrument: their plan injects its control in the first and the
    // last of them.
    let once = !contents.plan.proof.is_empty();
    let injected = latencies().filter(|row| control(&row.result).is_some()).count();
    match (proven, total) {
        (_, 0) => None,
        (proven, total) if once && proven > 0 && proven == injected => Some(format!(
            "Self-test passed: every measuring thread saw the injected fault, within 10 % or the noise, in the {proven} of \
             {total} measurements that made one."
        )),
        (proven, _) if once && injected > 0 => {
            Some(format!("Self-test passed in {proven} of the {injected} measurements that made one."))
        }
        (proven, total) if proven == total => {
            let hidden = latencies().filter(|row| row.result.control.iter().any(is_hidden)).count();
            let smaller = match hidden {
                0 => String::new(),
                hidden => format!(" Noise hid a second, smaller fault in {hidden} of {total} measurements."),
            };
            Some(format!(
                "Self-test passed: every measuring thread saw the injected fault, within 10 % or the noise.{smaller}"
            ))
        }
        (proven, total) => Some(format!(
            "Self-test passed in {proven} of {total} measurements only; the others have no verdict."
        )),
    }
}

/// Counted by scenario: all runs of one have one verdict, as in the table.
fn requirements(contents: &Contents) -> Option<String> {
    let outcomes: Vec<Outcome> = comparison(contents)
        .into_iter()
        .filter_map(|line| line.verdict)
        .map(|verdict| verdict.outcome)
        .collect();
    if outcomes.is_empty() {
        return None;
    }
    let words = [
        (Outcome::Fail, "not met"),
        (Outcome::Warn, "met with a warning"),
        (Outcome::Pass, "met"),
        (Outcome::Inconclusive, "not decided"),
    ];
    let parts: Vec<String> = words
        .iter()
        .map(|(outcome, word)| (outcomes.iter().filter(|o| *o == outcome).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    Some(format!("Requirements: {}.", parts.join(", ")))
}
