//! A run in progress as OpenMetrics text (1.0), with the names that `export --format openmetrics` uses for a
//! finished run.

use std::fmt::Write as _;

use tactus_format::export::openmetrics::{cumulative, family, labels};
use tactus_model::Evidence;
use tactus_model::finding::Severity;
use tactus_model::number::float;
use tactus_model::outcome::{RowStatus, RunStatus};

use crate::state::{Row, Series, Stage, Watched};

/// The content type for HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everything that is known, with the version of the program.
#[must_use]
pub fn text(watched: &Watched, version: &str) -> String {
    let mut text = String::new();
    of_run(watched, version, &mut text);
    of_rows(watched, &mut text);
    of_series(watched, &mut text);
    of_values(watched, &mut text);
    of_places(watched, &mut text);
    text += "# EOF\n";
    text
}

fn of_run(watched: &Watched, version: &str, text: &mut String) {
    family(text, "tactus_build", "info", None, "The version of tactus that measures.");
    let _ = writeln!(text, "tactus_build_info{{{}}} 1", labels(&[("version", version)]));
    let plan = labels(&[("plan", &watched.plan)]);
    family(text, "tactus_run_state", "stateset", None, "Whether the run is in progress, or how it ended.");
    let states = [
        ("running", watched.ended.is_none()),
        ("complete", watched.ended == Some(RunStatus::Complete)),
        ("interrupted", watched.ended == Some(RunStatus::Interrupted)),
    ];
    for (word, is) in states {
        let _ = writeln!(text, "tactus_run_state{{{plan},tactus_run_state=\"{word}\"}} {}", u8::from(is));
    }
    if let Some(left) = watched.left {
        family(text, "tactus_time_left_seconds", "gauge", Some("seconds"), "Time until the end of the run.");
        let _ = writeln!(text, "tactus_time_left_seconds{{{plan}}} {}", left.as_secs());
    }
    family(text, "tactus_scenarios", "gauge", None, "Measurements of the plan.");
    let _ = writeln!(text, "tactus_scenarios{{{plan}}} {}", watched.rows.len());
    family(text, "tactus_marks", "counter", None, "Moments that a user marked.");
    let _ = writeln!(text, "tactus_marks_total{{{plan}}} {}", watched.marks);
}

/// The labels by which a scenario is known: those of the export.
fn known(number: usize, row: &Row) -> String {
    let number = number.to_string();
    labels(&[("number", &number), ("scenario", &row.planned.name), ("environment", &row.planned.environment)])
}

fn of_rows(watched: &Watched, text: &mut String) {
    if watched.rows.is_empty() {
        return;
    }
    let rows = || watched.rows.iter().enumerate();
    family(text, "tactus_scenario", "info", None, "What is measured where, and the evidence.");
    for (number, row) in rows() {
        let place = watched.places.get(&row.planned.environment);
        let evidence = place.and_then(|place| place.evidence).map(Evidence::key).unwrap_or_default();
        let more = labels(&[("measurement", &row.planned.measurement), ("evidence", evidence)]);
        let _ = writeln!(text, "tactus_scenario_info{{{},{more}}} 1", known(number, row));
    }
    let about = "Whether it waits, is being measured, or was measured, skipped or failed.";
    family(text, "tactus_scenario_state", "stateset", None, about);
    for (number, row) in rows() {
        for (state, word) in [
            (Stage::Waiting, "waiting"),
            (Stage::Measuring, "measuring"),
            (Stage::Ended(RowStatus::Measured), "measured"),
            (Stage::Ended(RowStatus::Skipped), "skipped"),
            (Stage::Ended(RowStatus::Failed), "failed"),
        ] {
            let (is, known) = (u8::from(row.stage == state), known(number, row));
            let _ = writeln!(text, "tactus_scenario_state{{{known},tactus_scenario_state=\"{word}\"}} {is}");
        }
    }
    family(text, "tactus_measured_seconds", "gauge", Some("seconds"), "How long it has measured.");
    for (number, row) in rows() {
        let _ =
            writeln!(text, "tactus_measured_seconds{{{}}} {}", known(number, row), float(row.at_ns) / 1e9);
    }
    let limited = || rows().filter_map(|(number, row)| Some((number, row, row.planned.limit_ns?)));
    if limited().next().is_some() {
        let about = "The largest latency that the plan allows.";
        family(text, "tactus_latency_limit_seconds", "gauge", Some("seconds"), about);
        for (number, row, limit) in limited() {
            let known = known(number, row);
            let _ = writeln!(text, "tactus_latency_limit_seconds{{{known}}} {}", float(limit) / 1e9);
        }
    }
    let proven = || rows().filter_map(|(number, row)| Some((number, row, row.proven?)));
    if proven().next().is_some() {
        let about = "1: the fault that the self-test injected was seen at its size.";
        family(text, "tactus_self_test_passed", "gauge", None, about);
        for (number, row, proven) in proven() {
            let _ = writeln!(text, "tactus_self_test_passed{{{}}} {}", known(number, row), u8::from(proven));
        }
    }
}

fn of_series(watched: &Watched, text: &mut String) {
    let rows = watched.rows.iter().enumerate();
    let all: Vec<(String, &Row, &Series)> = rows
        .flat_map(|(number, row)| {
            row.series.iter().map(move |(key, series)| {
                let (id, cpu) = (key.to_string(), key.cpu.to_string());
                (format!("{},{}", known(number, row), labels(&[("series", &id), ("cpu", &cpu)])), row, series)
            })
        })
        .collect();
    if all.is_empty() {
        return;
    }
    let about = "What was measured, without the periods that late wake-ups missed.";
    family(text, "tactus_latency_seconds", "histogram", Some("seconds"), about);
    for (labels, _, series) in &all {
        let count = cumulative(text, labels, series.packed().buckets());
        let seconds = series.totals.mean_ns().unwrap_or(0.0) * float(count) / 1e9;
        let _ = writeln!(text, "tactus_latency_seconds_sum{{{labels}}} {seconds}");
    }
    type Figure = fn(&Series) -> Option<u64>;
    let gauges: [(&str, &str, Figure); 3] = [
        ("tactus_latency_max_seconds", "Largest latency so far, exact.", Series::max_ns),
        ("tactus_latency_now_seconds", "Largest latency of the last report interval.", |series| {
            series.now_ns
        }),
        ("tactus_latency_p99_seconds", "99th percentile so far, of what was measured.", Series::p99_ns),
    ];
    for (name, about, of) in gauges {
        family(text, name, "gauge", Some("seconds"), about);
        for (labels, _, series) in &all {
            if let Some(ns) = of(series) {
                let _ = writeln!(text, "{name}{{{labels}}} {}", float(ns) / 1e9);
            }
        }
    }
    type Count = fn(&Row, &Series) -> Option<u64>;
    let counters: [(&str, &str, Count); 2] = [
        ("tactus_overruns", "Periods that late wake-ups missed.", Row::missed),
        ("tactus_cycles", "Wake-ups that were measured.", |_, series| Some(series.totals.cycles)),
    ];
    for (name, about, of) in counters {
        family(text, name, "counter", None, about);
        for (labels, row, series) in &all {
            if let Some(count) = of(row, series) {
                let _ = writeln!(text, "{name}_total{{{labels}}} {count}");
            }
        }
    }
}

fn of_values(watched: &Watched, text: &mut String) {
    if watched.rows.iter().all(|row| row.values.is_empty()) {
        return;
    }
    family(text, "tactus_value", "gauge", None, "The median of what was measured of an item, in its unit.");
    for (number, row) in watched.rows.iter().enumerate() {
        for value in row.values.values() {
            let (unit, at) = (value.unit.to_string(), value.at.map(|at| at.number().to_string()));
            let mut pairs = vec![("item", value.item.as_str()), ("unit", unit.as_str())];
            pairs.extend(value.at.zip(at.as_deref()).map(|(point, at)| (point.axis(), at)));
            let _ =
                writeln!(text, "tactus_value{{{},{}}} {}", known(number, row), labels(&pairs), value.value);
        }
    }
}

fn of_places(watched: &Watched, text: &mut String) {
    if watched.places.is_empty() {
        return;
    }
    family(text, "tactus_frames_lost", "counter", None, "Frames of an environment that did not arrive.");
    for (name, place) in &watched.places {
        let of = labels(&[("environment", name)]);
        let _ = writeln!(text, "tactus_frames_lost_total{{{of}}} {}", place.lost);
    }
    if watched.places.values().all(|place| place.findings.is_none()) {
        return;
    }
    family(text, "tactus_findings", "gauge", None, "Findings of the audit, by severity.");
    for (name, place) in &watched.places {
        let Some(findings) = &place.findings else { continue };
        for severity in [Severity::Blocker, Severity::Major, Severity::Minor, Severity::Info] {
            let of = labels(&[("environment", name), ("severity", &severity.to_string())]);
            let count = findings.get(&severity).copied().unwrap_or(0);
            let _ = writeln!(text, "tactus_findings{{{of}}} {count}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::two_at_once;

    #[test]
    fn metrics_of_a_run_that_goes_on() {
        insta::assert_snapshot!(text(&two_at_once(12), "1.2.3"));
    }

    #[test]
    fn of_what_has_no_periods_there_is_no_count_of_missed_ones() {
        let mut watched = two_at_once(12);
        watched.rows.iter_mut().for_each(|row| row.planned.periods = false);
        let text = text(&watched, "1");
        assert!(text.contains("tactus_cycles_total{") && !text.contains("tactus_overruns_total{"), "{text}");
    }

    #[test]
    fn buckets_rise_from_scrape_to_scrape_and_keep_their_edges() {
        let counts = |seconds| -> Vec<(String, u64)> {
            let text = text(&two_at_once(seconds), "1");
            let lines = text.lines().filter(|line| line.starts_with("tactus_latency_seconds_bucket"));
            lines
                .map(|line| line.rsplit_once(' ').unwrap())
                .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
                .collect()
        };
        let (before, after) = (counts(2), counts(12));
        assert_eq!(before.len(), after.len());
        for ((name, least), (same, more)) in before.iter().zip(&after) {
            assert!(name == same && least <= more, "{name}");
        }
    }
}
