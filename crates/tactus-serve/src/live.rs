//! A run in progress as its page shows it, with every value as text. Pure.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use tactus_model::number::float;
use tactus_model::outcome::{RowStatus, RunStatus};
use tactus_model::series::SeriesKey;
use tactus_report::units::{count, quantity, shortened};
use tactus_watch::screen::{human, micro};
use tactus_watch::state::{Row, Series, Stage, Watched};

/// Most measurements in progress at the same time that are shown with their threads.
const MOST_NOW: usize = 16;
/// Most threads and values of one.
const MOST_THREADS: usize = 64;
/// Most measurements in the list of all.
const MOST_ROWS: usize = 300;
/// Most remarks, the newest first.
const MOST_REMARKS: usize = 12;
/// Most characters of a remark and of a name.
const WORDS: usize = 300;
const NAME: usize = 120;
/// Columns of the drawing over time, and its height.
const COLUMNS: usize = 60;
const HEIGHT: f64 = 22.0;

/// A run in progress.
#[derive(Debug, Serialize)]
pub struct Live {
    /// Name of its plan.
    pub plan: String,
    state: &'static str,
    class: &'static str,
    words: Vec<String>,
    /// Whether it has ended.
    pub ended: bool,
    now: Vec<Measurement>,
    rows: Vec<Line>,
    more: usize,
    said: Vec<(String, bool)>,
}

/// A measurement in progress.
#[derive(Debug, Serialize)]
struct Measurement {
    name: String,
    words: Vec<String>,
    doubts: Vec<String>,
    at: String,
    planned: String,
    permille: u64,
    threads: Vec<Thread>,
    values: Vec<(String, String)>,
    more: usize,
}

#[derive(Debug, Serialize)]
struct Thread {
    name: String,
    now: String,
    p99: String,
    max: String,
    beyond: bool,
    cycles: String,
    missed: String,
    /// An SVG path of the largest latencies over the whole time; empty without any.
    path: String,
    /// How wide it is drawn.
    width: usize,
}

/// One of all measurements.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    place: String,
    stage: String,
    class: &'static str,
    max: String,
    missed: String,
}

impl Live {
    /// `whose`: the bundle and its machine, clean.
    pub fn of(watched: &Watched, whose: String) -> Self {
        let current = watched.current();
        let measuring =
            |row: &&usize| watched.rows.get(**row).is_some_and(|row| row.stage == Stage::Measuring);
        let shown = current.iter().filter(|row| watched.ended.is_none() && measuring(row)).take(MOST_NOW);
        let (state, class) = match (watched.ended, watched.silent) {
            (Some(RunStatus::Complete), _) => ("ended", "badge pass"),
            (Some(RunStatus::Interrupted), _) => ("interrupted", "badge inconclusive"),
            (None, Some(_)) => ("nothing new", "badge inconclusive"),
            (None, None) => ("running", "badge quiet"),
        };
        let mut words =
            vec![whose, format!("{} of {} measurements done", watched.done(), watched.rows.len())];
        words.extend(
            watched.left.filter(|_| watched.ended.is_none()).map(|left| format!("{} left", human(left))),
        );
        words.extend(watched.silent.map(|silent| {
            format!("nothing new for {}: it is between two scenarios, or has died", human(silent))
        }));
        let remarks = watched.remarks.iter().rev().take(MOST_REMARKS);
        Self {
            plan: shortened(&watched.plan, NAME),
            state,
            class,
            words,
            ended: watched.ended.is_some(),
            now: shown
                .filter_map(|row| watched.rows.get(*row))
                .map(|row| Measurement::of(watched, row))
                .collect(),
            rows: watched.rows.iter().take(MOST_ROWS).map(Line::of).collect(),
            more: watched.rows.len().saturating_sub(MOST_ROWS),
            said: remarks.map(|remark| (shortened(&remark.text, WORDS), remark.trouble)).collect(),
        }
    }
}

impl Measurement {
    fn of(watched: &Watched, row: &Row) -> Self {
        let place = watched.places.get(&row.planned.environment);
        let beside =
            if row.planned.beside.is_empty() { "no load".into() } else { row.planned.beside.join(", ") };
        let mut words = vec![row.planned.environment.clone(), row.planned.measurement.clone(), beside];
        words.extend(place.and_then(|place| place.evidence).map(|evidence| evidence.to_string()));
        words.extend(row.planned.limit_ns.map(|limit| format!("limit {} us", micro(Some(limit)))));
        let mut doubts = Vec::new();
        if row.proven == Some(false) {
            doubts.push("self-test failed".to_owned());
        }
        doubts
            .extend(place.filter(|place| place.lost > 0).map(|place| format!("{} frames lost", place.lost)));
        let threads = row.series.iter().take(MOST_THREADS);
        let values = row.values.iter().take(MOST_THREADS);
        Self {
            name: shortened(&row.planned.name, NAME),
            words: words.iter().map(|word| shortened(word, NAME)).collect(),
            doubts,
            at: time(row.at_ns),
            planned: time(row.planned.planned_ns),
            permille: share(row.at_ns, row.planned.planned_ns),
            threads: threads.map(|(key, series)| Thread::of(row, key, series)).collect(),
            values: values
                .map(|(name, value)| (shortened(name, NAME), quantity(value.value, value.unit)))
                .collect(),
            more: row.series.len().saturating_sub(MOST_THREADS)
                + row.values.len().saturating_sub(MOST_THREADS),
        }
    }
}

impl Thread {
    fn of(row: &Row, key: &SeriesKey, series: &Series) -> Self {
        let maxima = series.maxima.in_columns(COLUMNS);
        Self {
            name: format!("CPU {}, thread {} ({})", key.cpu, key.thread, key.kind),
            now: micro(series.now_ns),
            p99: micro(series.p99_ns()),
            max: micro(series.max_ns()),
            beyond: series.max_ns().is_some_and(|max| row.is_above(max)),
            cycles: count(series.totals.cycles),
            missed: row.missed(series).map_or_else(|| "-".to_owned(), count),
            path: path(&maxima),
            // The first few are no wall.
            width: 2 * maxima.len().max(COLUMNS / 2),
        }
    }
}

impl Line {
    fn of(row: &Row) -> Self {
        let (stage, class) = match row.stage {
            Stage::Waiting => ("waits", ""),
            Stage::Measuring => ("measures", "badge quiet"),
            Stage::Ended(RowStatus::Measured) => ("measured", ""),
            Stage::Ended(RowStatus::Skipped) => ("skipped", "badge inconclusive"),
            Stage::Ended(RowStatus::Failed) => ("failed", "badge fail"),
        };
        let max = row.series.values().filter_map(Series::max_ns).max();
        let missed = row.series.values().filter_map(|own| row.missed(own)).reduce(u64::saturating_add);
        Self {
            name: shortened(&row.planned.name, NAME),
            place: shortened(&row.planned.environment, NAME),
            stage: stage.into(),
            class,
            max: max.map(|max| micro(Some(max))).unwrap_or_default(),
            missed: missed.map(count).unwrap_or_default(),
        }
    }
}

fn time(ns: u64) -> String {
    human(Duration::from_nanos(ns))
}

/// Thousandths of a whole; at most all of them.
fn share(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 1000 / u128::from(whole.max(1))).map_or(1000, |share| share.min(1000))
}

/// Bars, one for each stretch of time: logarithmic, from half of the smallest latency to the largest.
fn path(maxima: &[Option<u64>]) -> String {
    let known = || maxima.iter().flatten().map(|ns| float((*ns).max(1)));
    let (low, high) = (known().fold(f64::INFINITY, f64::min) / 2.0, known().fold(0.0, f64::max));
    let mut path = String::new();
    for (column, ns) in maxima.iter().enumerate() {
        if let Some(ns) = ns {
            let part = (float((*ns).max(1)) / low).ln() / (high / low).ln();
            let _ = write!(path, "M{}.5 {HEIGHT}v{:.1}", column * 2, -part * HEIGHT);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use tactus_watch::state::Planned;

    use super::*;

    #[test]
    fn bars_reach_from_the_ground_to_the_largest_and_a_gap_has_no_bar() {
        assert_eq!(path(&[]), "");
        assert_eq!(path(&[None, None]), "");
        assert_eq!(path(&[Some(4), None, Some(4)]), "M0.5 22v-22.0M4.5 22v-22.0");
        assert_eq!(path(&[Some(2), Some(4)]), "M0.5 22v-11.0M2.5 22v-22.0");
        for extreme in [0, 1, u64::MAX] {
            assert!(
                !path(&[Some(extreme), Some(0)]).contains("NaN") && !path(&[Some(extreme)]).contains("inf")
            );
        }
    }

    #[test]
    fn a_share_of_nothing_is_zero_and_no_share_is_more_than_all() {
        assert_eq!(
            [share(0, 0), share(1, 0), share(1, 2), share(3, 2), share(u64::MAX, 1)],
            [0, 1000, 500, 1000, 1000]
        );
    }

    #[test]
    fn however_long_a_plan_is_its_page_has_an_end() {
        let planned = |n: usize| Planned { name: format!("{n} {}", "x".repeat(5_000)), ..Planned::default() };
        let live = Live::of(&Watched::new("long", (0..5_000).map(planned)), String::new());
        assert_eq!((live.rows.len(), live.more), (MOST_ROWS, 4_700));
        assert!(live.rows.iter().all(|row| row.name.chars().count() <= NAME));
    }
}
