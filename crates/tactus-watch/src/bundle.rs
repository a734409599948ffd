//! The state of a run from its bundle, for a viewer in another terminal, or later.

use std::time::Duration;

use tactus_model::bundle::{Contents, Row as Measured, RowResult};
use tactus_model::message::NoteKind;
use tactus_model::outcome::RowEnd;
use tactus_model::series::SeriesKey;
use tactus_model::text::clean;

use crate::state::{MOST_SERIES, MOST_VALUES, Planned, Row, Series, Stage, Watched};

/// Most bytes of packed counts that are kept of a bundle: a stranger's does not decide how much memory is taken.
const MOST_COUNTS: usize = 16 << 20;

/// A run as its bundle has it now. The bundle of a run in progress is written as if the run died now: the row
/// that has begun and not ended is the measured one.
#[must_use]
pub fn watched(contents: &Contents) -> Watched {
    let manifest = &contents.manifest;
    let goes_on = manifest.finished.is_none();
    let rows = contents.rows.iter().map(|row| planned(&row.result));
    let mut watched = Watched::new(&manifest.plan, rows);
    for (row, measured) in watched.rows.iter_mut().zip(&contents.rows) {
        fill(row, measured, goes_on);
    }
    keep_counts(&mut watched, contents);
    for measured in &contents.rows {
        let result = &measured.result;
        let place = watched.places.entry(clean(&result.environment)).or_default();
        place.evidence = result.evidence.or(place.evidence);
        place.lost = place.lost.max(result.frames_lost);
    }
    for (environment, audit) in &contents.audits {
        watched.found(environment, audit.found().map(|finding| finding.severity));
    }
    // Their times are with the events; here only their order is known.
    for (environment, note) in &contents.notes {
        let place = environment.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
        watched.remark(0, note.kind == NoteKind::Obstacle, &format!("{place}{}", note.text));
    }
    watched.ended = (!goes_on).then_some(manifest.status);
    watched.left = goes_on.then(|| left(&watched));
    watched.events = news(contents);
    watched
}

/// A number that is another one when something was added.
fn news(contents: &Contents) -> u64 {
    let ticks = contents.rows.iter().flat_map(|row| row.ticks.series.values());
    let numbers = ticks.filter_map(|series| Some(series.stretches.last()?.last.saturating_add(1)));
    let last = numbers.fold(0, u64::saturating_add);
    let ended = contents.rows.iter().filter(|row| row.result.ended != RowEnd::Waiting).count();
    let noted =
        contents.notes.len() + contents.rows.iter().map(|row| row.result.values().len()).sum::<usize>();
    let finished = usize::from(contents.manifest.finished.is_some());
    last.saturating_add(u64::try_from(ended + noted + finished).unwrap_or(u64::MAX))
}

fn planned(result: &RowResult) -> Planned {
    let run = result.repeat.map(|run| format!(" (run {run})")).unwrap_or_default();
    let word = |table: &serde_json::Value| {
        table.get("kind").and_then(|kind| kind.as_str()).unwrap_or("?").to_owned()
    };
    Planned {
        name: result.name.clone() + &run,
        environment: result.environment.clone(),
        measurement: result.measurement.entry().name.to_owned(),
        periods: result.measurement.has_periods(),
        beside: result.load.iter().chain(&result.fault).map(word).collect(),
        planned_ns: result.planned_ns,
        // The reader of bundles has joined the slices.
        slice: None,
        limit_ns: result.require.as_ref().and_then(|require| require.max).map(|max| max.0),
    }
}

fn fill(row: &mut Row, measured: &Measured, goes_on: bool) {
    let result = &measured.result;
    row.stage = match result.ended {
        RowEnd::Waiting if goes_on => Stage::Waiting,
        RowEnd::Died if goes_on => Stage::Measuring,
        ended => Stage::Ended(ended.status()),
    };
    row.reason = result.reason.as_deref().map(clean);
    row.at_ns = result.measured_ns;
    row.proven = (!result.control.is_empty()).then(|| result.control.iter().all(|control| control.passed));
    for own in result.series().iter().take(MOST_SERIES) {
        row.series.insert(clean_key(&own.key), Series::of_summary(&own.summary));
    }
    for (key, ticks) in &measured.ticks.series {
        row.at_ns = row.at_ns.max(ticks.end_ns);
        let Some(series) = row.series.get_mut(&clean_key(key)) else { continue };
        for stretch in &ticks.stretches {
            series.now_ns = stretch.max_ns;
            series.maxima.push(stretch.max_ns);
        }
    }
    for value in result.values().iter().take(MOST_VALUES) {
        row.values.insert(clean(&value.name()), value.clone());
    }
}

/// Of the rows whose histograms are shown the counts, as far as there is room; the others have their summaries.
fn keep_counts(watched: &mut Watched, contents: &Contents) {
    let mut room = MOST_COUNTS;
    for number in watched.current() {
        let Some((row, measured)) = watched.rows.get_mut(number).zip(contents.rows.get(number)) else {
            continue;
        };
        for own in measured.result.series().iter().take(MOST_SERIES) {
            let tags = [own.key.to_string(), own.key.cpu.to_string()];
            let counts = tags.iter().find_map(|tag| measured.histograms.series.get(tag));
            let Some((series, counts)) = row.series.get_mut(&clean_key(&own.key)).zip(counts) else {
                continue;
            };
            if let Some(left) = room.checked_sub(counts.bytes()) {
                room = left;
                series.keep(counts);
            }
        }
    }
}

fn clean_key(key: &SeriesKey) -> SeriesKey {
    SeriesKey { kind: clean(&key.kind), ..key.clone() }
}

/// The time that its rows still need. Rows of one scenario that follow each other under one name share their
/// time.
fn left(watched: &Watched) -> Duration {
    let of = |row: &Row| match row.stage {
        Stage::Waiting => row.planned.planned_ns,
        Stage::Measuring => row.planned.planned_ns.saturating_sub(row.at_ns),
        Stage::Ended(_) => 0,
    };
    let measuring = watched.rows.iter().filter(|row| row.stage == Stage::Measuring).map(of).max();
    let mut before = None;
    let first = |row: &&Row| before.replace(row.planned.name.clone()).as_ref() != Some(&row.planned.name);
    let waiting = watched.rows.iter().filter(first).filter(|row| row.stage == Stage::Waiting).map(of);
    Duration::from_nanos(waiting.fold(measuring.unwrap_or(0), u64::saturating_add))
}

#[cfg(test)]
mod tests;
