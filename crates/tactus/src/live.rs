//! The display of a run in progress.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tactus_model::bundle::Slice;
use tactus_model::event::{Event, Stamped, Ticked};
use tactus_model::latency::{Summary, Totals};
use tactus_model::message::{NoteKind, Total};
use tactus_model::number::{float, whole};
use tactus_model::outcome::{Ending, Point, RowEnd, RowStatus, ValueResult, take_value, wholes};
use tactus_model::series::SeriesKey;
use tactus_report::units::{clean, duration, latency};
use tactus_run::Sink;
use tactus_run::plan::Resolved;
use tactus_watch::screen::{figure, human};

use crate::say::{self, say, say_note};
use crate::time_left::TimeLeft;

/// Shorter slices have no lines to themselves, in ns.
const SHORT_NS: u64 = 60_000_000_000;

/// A progress line per scenario, with the time left of the whole run.
pub struct Progress {
    terminal: bool,
    bar: ProgressBar,
    rows: Vec<Row>,
    /// How many measurements have lines.
    of: usize,
    /// The figures of the slices so far, by the number of their measurement.
    slices: BTreeMap<usize, Measured>,
    /// The figures of the running rows so far.
    running: BTreeMap<usize, Measured>,
    /// When the running rows began to measure, in ms since the epoch.
    measuring_ms: i64,
    left: TimeLeft,
    /// The notes that were printed, by their place: every scenario makes the same.
    noted: BTreeSet<(String, String)>,
}

/// A row that is measured at one go, or a slice.
struct Row {
    /// Its name, with run and slice.
    name: String,
    /// The number of its measurement, from 1. Short slices of one have one number.
    number: usize,
    /// The slices that share its lines: the first one says that they begin, the last one that they are done.
    short: Option<Slice>,
}

impl Row {
    /// The rows of a run, and the number of measurements.
    fn of(resolved: &Resolved) -> (Vec<Self>, usize) {
        let mut numbers: BTreeMap<(&str, &str, Option<u32>), usize> = BTreeMap::new();
        let mut rows = Vec::new();
        let mut of = 0;
        for row in &resolved.rows {
            let result = &row.result;
            let run = result.repeat.map(|run| format!(" (run {run})")).unwrap_or_default();
            let slice = result.slice.map(|own| format!(" (slice {} of {})", own.number, own.of));
            let short = result.slice.filter(|_| result.planned_ns < SHORT_NS);
            let mut next = || {
                of += 1;
                of
            };
            let key = (result.name.as_str(), result.environment.as_str(), result.repeat);
            let number = if short.is_some() { *numbers.entry(key).or_insert_with(next) } else { next() };
            rows.push(Self { name: result.name.clone() + &run + &slice.unwrap_or_default(), number, short });
        }
        (rows, of)
    }

    /// Its name in lines.
    fn told(&self) -> &str {
        match self.short {
            Some(_) => self.name.rsplit_once(" (slice ").map_or(&self.name, |(name, _)| name),
            None => &self.name,
        }
    }
}

/// The figures of a row so far.
#[derive(Default)]
struct Measured {
    /// Largest latency, in ns; `None` without any.
    max_ns: Option<u64>,
    values: Vec<ValueResult>,
}

impl Measured {
    /// The same in few words.
    fn words(&self) -> Option<String> {
        let max = self.max_ns.map(|ns| format!("max {}", latency(float(ns))));
        let values =
            wholes(&self.values).map(|own| format!("{} {} {}", own.name(), figure(own.value), own.unit));
        let all: Vec<String> = max.into_iter().chain(values).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

impl Progress {
    /// `plain`: lines alone, whatever stderr is.
    pub fn new(resolved: &Resolved, plain: bool) -> Self {
        let terminal = !plain && std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{prefix:.bold} {wide_msg} [{bar:24}]") {
            bar.set_style(style.progress_chars("=> "));
        }
        if terminal {
            let bar = bar.clone();
            say::above(move |write| bar.suspend(write));
        }
        let (rows, of) = Row::of(resolved);
        Self {
            terminal,
            bar,
            rows,
            of,
            slices: BTreeMap::new(),
            running: BTreeMap::new(),
            measuring_ms: 0,
            left: TimeLeft::of(resolved),
            noted: BTreeSet::new(),
        }
    }

    fn time_left(&self, done_ns: u64) -> String {
        human(self.left.after(done_ns))
    }

    fn tick(&mut self, ticked: &Ticked) {
        let row = self.running.entry(ticked.row).or_default();
        row.max_ns = row.max_ns.max(ticked.max_ns);
        self.show(ticked.at_ns);
    }

    fn count(&mut self, row: usize, total: &Total) {
        let row = self.running.entry(row).or_default();
        row.max_ns = row.max_ns.max((total.total.cycles > 0).then_some(total.total.max_ns));
    }

    fn value(&mut self, row: usize, value: &ValueResult, at_ms: i64) {
        take_value(&mut self.running.entry(row).or_default().values, value.clone());
        self.show(u64::try_from(at_ms - self.measuring_ms).unwrap_or(0) * 1_000_000);
    }

    fn show(&self, at_ns: u64) {
        self.bar.set_position(at_ns / 1_000_000);
        let figures: String =
            self.running.values().filter_map(Measured::words).map(|text| text + ", ").collect();
        self.bar.set_message(clean(&format!("{figures}{} left", self.time_left(at_ns))));
    }

    /// The end of a row, in one line with its figures. `None` for a row that still waits, which the run counts at its end.
    /// `None` also for a short slice that others follow.
    fn finished(&mut self, row: usize, ending: &Ending) -> Option<String> {
        let own = self.rows.get(row).filter(|_| ending.ended != RowEnd::Waiting)?;
        let mut measured = self.running.remove(&row);
        if let Some(slice) = own.short {
            let all = self.slices.entry(own.number).or_default();
            all.max_ns = all.max_ns.max(measured.and_then(|own| own.max_ns));
            if slice.number < slice.of && ending.ended == RowEnd::Complete {
                return None;
            }
            measured = self.slices.remove(&own.number);
        }
        let word = match ending.ended.status() {
            RowStatus::Measured => "done",
            RowStatus::Skipped => "skipped",
            RowStatus::Failed => "failed",
        };
        let figures = measured.and_then(|measured| measured.words());
        let said = match (&ending.reason, figures) {
            // `interrupted after 3.0 s`: it is not done.
            (Some(reason), _) if word == "done" => {
                let slice = own.short.map(|slice| format!(" (slice {} of {})", slice.number, slice.of));
                format!("{reason}{}", slice.unwrap_or_default())
            }
            (Some(reason), _) => format!("{word}: {reason}"),
            (None, Some(figures)) => format!("{word}, {figures}"),
            (None, None) => word.to_owned(),
        };
        Some(format!("[{}/{}] {}: {said}", own.number, self.of, own.told()))
    }
}

impl Sink for Progress {
    fn take(&mut self, stamped: &Stamped) {
        self.left.begun(stamped.at_ms);
        match &stamped.event {
            Event::EnvironmentStarting { environment } => {
                self.bar.set_prefix(clean(environment));
                self.bar.set_message(format!("starting, {} left", self.time_left(0)));
            }
            Event::RowStarted { row, name, duration_ns, .. } => {
                let own = self.rows.get(*row);
                let name = own.map_or(name, |own| &own.name).clone();
                self.left.row_started(*row, stamped.at_ms);
                self.measuring_ms = stamped.at_ms;
                self.running.insert(*row, Measured::default());
                self.bar.set_length(duration_ns / 1_000_000);
                self.bar.set_position(0);
                self.bar.set_prefix(clean(&name));
                self.bar.set_message(format!("{} left", self.time_left(0)));
                if let Some(own) = own.filter(|_| !self.terminal) {
                    let time = match own.short {
                        None => duration(*duration_ns),
                        Some(slice) if slice.number == 1 => {
                            format!("{} in {} slices", duration(slice.whole_ns), slice.of)
                        }
                        Some(_) => return,
                    };
                    let (number, of, left) = (own.number, self.of, self.time_left(0));
                    say(format_args!("[{number}/{of}] {}: measuring for {time}, {left} left", own.told()));
                }
            }
            Event::Ticked(ticked) => self.tick(ticked),
            Event::Counted { row, total } => self.count(*row, total),
            Event::ValueMeasured { row, value } => self.value(*row, value, stamped.at_ms),
            Event::Noted { environment, note } if note.kind == NoteKind::Obstacle => {
                let place = environment.as_deref().unwrap_or("run");
                if self.noted.insert((place.to_owned(), note.text.clone())) {
                    say_note(place, note);
                }
            }
            Event::RowFinished { row, ending, .. } => {
                self.left.row_ended(*row, stamped.at_ms);
                if let Some(line) = self.finished(*row, ending) {
                    say(line);
                }
            }
            Event::RunFinished { .. } => {
                say::alone();
                self.bar.finish_and_clear();
            }
            _ => {}
        }
    }
}

/// One line per measuring thread, as cyclictest prints them.
pub struct Lines {
    quiet: bool,
    terminal: bool,
    all: MultiProgress,
    threads: BTreeMap<SeriesKey, ProgressBar>,
    /// Of each item, of the last point of one that is a curve.
    values: BTreeMap<String, (Option<Point>, ProgressBar)>,
    interval_ns: u64,
}

impl Lines {
    /// `plain`: no lines that change, whatever stderr is.
    pub fn new(quiet: bool, plain: bool, interval_ns: u64) -> Self {
        let terminal = !plain && std::io::stderr().is_terminal();
        let all = MultiProgress::new();
        if terminal && !quiet {
            let all = all.clone();
            say::above(move |write| all.suspend(write));
        }
        Self { quiet, terminal, all, threads: BTreeMap::new(), values: BTreeMap::new(), interval_ns }
    }

    fn tick(&mut self, ticked: &Ticked) {
        let Some(whole) = &ticked.whole else { return };
        let bar = self.threads.entry(ticked.series.clone()).or_insert_with(|| line_in(&self.all)).clone();
        let number = self.threads.keys().position(|key| *key == ticked.series).unwrap_or(0);
        let line = line_of_totals(number, &ticked.series, self.interval_ns, &whole.total);
        let now = ticked.max_ns.map_or("-".into(), |ns| (ns / 1_000).to_string());
        bar.set_message(clean(&format!("{line} Now:{now:>6}")));
    }
}

impl Lines {
    fn value(&mut self, value: &ValueResult) {
        let line = self.values.entry(value.item.clone()).or_insert_with(|| (value.at, line_in(&self.all)));
        if value.at >= line.0 {
            line.0 = value.at;
            line.1.set_message(clean(&value_line(value)));
        }
    }
}

/// A separate line below the others.
fn line_in(all: &MultiProgress) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    all.add(bar)
}

impl Sink for Lines {
    fn take(&mut self, stamped: &Stamped) {
        match &stamped.event {
            Event::RunFinished { .. } => {
                say::alone();
                for bar in self.threads.values().chain(self.values.values().map(|(_, bar)| bar)) {
                    bar.finish_and_clear();
                }
            }
            Event::Ticked(ticked) if !self.quiet && self.terminal => self.tick(ticked),
            Event::ValueMeasured { value, .. } if !self.quiet && self.terminal => self.value(value),
            Event::RowFinished { ending: Ending { ended, reason: Some(reason) }, .. }
                if ended.status() != RowStatus::Measured =>
            {
                say(format_args!("error: {reason}"));
            }
            _ => {}
        }
    }
}

/// A thread's line, with its number among all threads: latencies in us; polled gaps, which have no
/// interval, to the ns. Quantiles have the missed periods, as those of reports have.
pub fn line(number: usize, key: &SeriesKey, interval_ns: u64, summary: &Summary) -> String {
    let gap = key.kind == "gap";
    let us = |value: Option<u64>| match value {
        None => "-".into(),
        Some(ns) if gap => format!("{:.3}", float(ns) / 1e3),
        Some(ns) => whole(float(ns) / 1e3).to_string(),
    };
    let interval = if gap { String::new() } else { format!(" I:{}", interval_ns / 1_000) };
    format!(
        "T:{number:2} A:{:3} P:{:2}{interval} C:{:7} Min:{:>7} Avg:{:>7} P99:{:>7} P99.9:{:>7} Max:{:>8} Overruns:{}",
        key.cpu,
        key.priority,
        summary.cycles,
        us(summary.min_ns),
        us(summary.mean_rounded()),
        us(summary.corrected.p99_ns),
        us(summary.corrected.p999_ns),
        us(summary.max_ns),
        summary.overruns.map_or_else(|| "-".to_owned(), |overruns| overruns.to_string()),
    )
}

/// The line of an item that yields a value: with the interval of its median, and what it rests on.
pub fn value_line(value: &ValueResult) -> String {
    let between = match (value.low, value.high) {
        (Some(low), Some(high)) => format!(" [{} to {}]", figure(low), figure(high)),
        _ => String::new(),
    };
    format!(
        "{}: {} {}{between} Repeats:{} of {} Dropped:{}",
        value.name(),
        figure(value.value),
        value.unit,
        value.samples,
        value.batch,
        value.dropped
    )
}

fn line_of_totals(number: usize, key: &SeriesKey, interval_ns: u64, totals: &Totals) -> String {
    let us = |ns: u64| whole(float(ns) / 1e3);
    let min = if totals.cycles == 0 { 0 } else { us(totals.min_ns) };
    let mean = totals.mean_ns().map_or(0, |ns| whole(ns / 1e3));
    format!(
        "T:{number:2} A:{:3} P:{:2} I:{} C:{:7} Min:{min:7} Avg:{mean:7} Max:{:8}",
        key.cpu,
        key.priority,
        interval_ns / 1_000,
        totals.cycles,
        us(totals.max_ns),
    )
}

#[cfg(test)]
mod tests {
    use tactus_model::series::SeriesKey;

    use super::*;

    fn row(name: &str, number: usize, short: Option<Slice>) -> Row {
        Row { name: name.into(), number, short }
    }

    #[test]
    fn a_line_has_the_quantiles_that_the_report_of_its_bundle_has() {
        let mut latency = tactus_model::latency::Latency::new();
        (0..1_000).for_each(|_| latency.record(10_000, 200_000));
        latency.record(40_000_000, 200_000);
        let (key, all) =
            (SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() }, latency.summary());
        let said = line(0, &key, 200_000, &all);
        let p99 = whole(float(all.corrected.p99_ns.unwrap()) / 1e3);
        assert!(p99 > 30_000 && said.contains(&format!("P99:{p99:>7} ")), "{said}");
        let nothing = Summary { overruns: None, ..Summary::default() };
        assert!(line(0, &key, 200_000, &nothing).ends_with("Overruns:-"), "nobody counted them");
    }

    #[test]
    fn a_value_that_nothing_measures_is_no_page_of_digits() {
        assert_eq!([117.34, 1234.5, 9.0e14].map(figure), ["117.3", "1234", "900000000000000"]);
        assert_eq!([1e308, -1e308].map(figure), ["1.000e308", "-1.000e308"]);
    }

    #[test]
    fn each_row_of_a_scenario_has_its_own_maximum() {
        let mut progress = Progress {
            terminal: false,
            bar: ProgressBar::hidden(),
            rows: vec![row("host", 1, None), row("guest", 2, None)],
            of: 2,
            slices: BTreeMap::new(),
            running: BTreeMap::new(),
            measuring_ms: 0,
            left: TimeLeft::default(),
            noted: BTreeSet::new(),
        };
        let series = SeriesKey { cpu: 0, thread: 0, priority: 95, kind: "thread".into() };
        for (row, max_ns) in [(0, 12_000), (1, 470_000), (0, 9_000)] {
            let (n, at_ns, cycles, overruns, min_ns, mean_ns, p99_ns) = (0, 1, 1, 0, None, None, None);
            let max_ns = Some(max_ns);
            let (series, whole) = (series.clone(), None);
            progress.tick(&Ticked {
                row,
                series,
                n,
                at_ns,
                cycles,
                overruns,
                min_ns,
                mean_ns,
                p99_ns,
                max_ns,
                whole,
            });
        }
        let finished = |progress: &mut Progress, row| progress.finished(row, &Ending::complete()).unwrap();
        assert_eq!(finished(&mut progress, 0), "[1/2] host: done, max 12 us");
        assert_eq!(finished(&mut progress, 1), "[2/2] guest: done, max 470 us");
        let waits = Ending::because(RowEnd::Waiting, "the run was interrupted before its turn");
        assert_eq!(progress.finished(1, &waits), None, "it was not skipped: its turn did not come");
    }

    #[test]
    fn short_slices_have_one_line_with_the_largest_of_all() {
        let slice = |number| Slice { number, of: 2, whole_ns: 2_000_000_000, tick_ns: 100_000_000 };
        let rows = vec![
            row("a (slice 1 of 2)", 1, Some(slice(1))),
            row("b (slice 1 of 2)", 2, Some(slice(1))),
            row("a (slice 2 of 2)", 1, Some(slice(2))),
            row("b (slice 2 of 2)", 2, Some(slice(2))),
        ];
        let mut progress = Progress {
            terminal: false,
            bar: ProgressBar::hidden(),
            rows,
            of: 2,
            slices: BTreeMap::new(),
            running: BTreeMap::new(),
            measuring_ms: 0,
            left: TimeLeft::default(),
            noted: BTreeSet::new(),
        };
        let mut ended = |at: usize, max_ns: u64, ending: &Ending| {
            progress.running.insert(at, Measured { max_ns: Some(max_ns), values: Vec::new() });
            progress.finished(at, ending)
        };
        assert_eq!(ended(0, 70_000, &Ending::complete()), None);
        assert_eq!(
            ended(1, 5_000, &Ending::because(RowEnd::Failed, "gone")).unwrap(),
            "[2/2] b: failed: gone"
        );
        assert_eq!(ended(2, 9_000, &Ending::complete()).unwrap(), "[1/2] a: done, max 70 us");
        assert_eq!(
            ended(3, 9_000, &Ending::because(RowEnd::Interrupted, "interrupted after 0.4 s")).unwrap(),
            "[2/2] b: interrupted after 0.4 s (slice 2 of 2)"
        );
    }
}
