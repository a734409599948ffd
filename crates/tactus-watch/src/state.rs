//! The state of a run so far: its events, added up.

mod maxima;
mod series;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tactus_model::Evidence;
use tactus_model::bundle::Slice;
use tactus_model::event::{Event, Stamped, Ticked};
use tactus_model::finding::Severity;
use tactus_model::latency::Totals;
use tactus_model::message::{NoteKind, Total};
use tactus_model::outcome::{RowEnd, RowStatus, RunStatus, ValueResult};
use tactus_model::series::SeriesKey;
use tactus_model::text::clean;

pub use maxima::Maxima;
pub use series::Series;

/// Most series of a row that are shown: a guest's words do not decide how much memory is taken.
pub(crate) const MOST_SERIES: usize = 1024;
/// Most values of a row.
pub(crate) const MOST_VALUES: usize = 1024;
/// Most remarks that are kept; the bundle has all.
const MOST_REMARKS: usize = 200;
/// Most characters of a remark.
const REMARK_CHARACTERS: usize = 1_000;

/// A row as it was planned.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// Its scenario, with the number of its run where there are several.
    pub name: String,
    /// Where it measures.
    pub environment: String,
    /// What it measures, in the plan's word.
    pub measurement: String,
    /// Whether it has periods, which can be missed.
    pub periods: bool,
    /// The loads and faults beside it, in the plan's words.
    pub beside: Vec<String>,
    /// How long it measures, in ns; all of its slices together.
    pub planned_ns: u64,
    /// Which of its slices this is, where it is measured in several.
    pub slice: Option<Slice>,
    /// The largest latency that is allowed, in ns.
    pub limit_ns: Option<u64>,
}

/// The state of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It has not begun.
    #[default]
    Waiting,
    /// It measures.
    Measuring,
    /// It has ended.
    Ended(RowStatus),
}

/// A row, and its measurements so far.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// As it was planned; its words are clean.
    pub planned: Planned,
    /// Its state.
    pub stage: Stage,
    /// Why it ended in this way.
    pub reason: Option<String>,
    /// How long it has measured, in ns.
    pub at_ns: u64,
    /// How long its earlier slices measured, in ns.
    before_ns: u64,
    /// Whether its self-test was seen at its size; `None` before the self-test.
    pub proven: Option<bool>,
    /// The measurements of its threads.
    pub series: BTreeMap<SeriesKey, Series>,
    /// Values, where it yields such: the last of each item and point.
    pub values: BTreeMap<String, ValueResult>,
}

/// An environment so far.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The evidence of its numbers; `None` until it is up.
    pub evidence: Option<Evidence>,
    /// Findings of the audit by severity, once it was audited.
    pub findings: Option<BTreeMap<Severity, usize>>,
    /// Frames of it that did not arrive.
    pub lost: u64,
}

/// A remark.
#[derive(Clone, Debug)]
pub struct Remark {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// Whether something did not go as it should.
    pub trouble: bool,
    /// Cleaned.
    pub text: String,
}

/// A run so far. Every text in it is clean: it can be shown as it is.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Name of the plan.
    pub plan: String,
    /// Its measurements, in order; slices of one are one.
    pub rows: Vec<Row>,
    /// The measurement of each row of the run.
    of_row: Vec<usize>,
    /// The slice of each row of the run.
    slices: Vec<Option<Slice>>,
    /// Its environments.
    pub places: BTreeMap<String, Place>,
    /// The remarks, the newest last.
    pub remarks: VecDeque<Remark>,
    /// How often a user marked a moment.
    pub marks: u64,
    /// How long it still takes; `None` if unknown.
    pub left: Option<Duration>,
    /// When it began, in ms since the epoch.
    pub began_ms: Option<i64>,
    /// How long nothing was heard of it, where that is long.
    pub silent: Option<Duration>,
    /// How it ended; `None` while it runs.
    pub ended: Option<RunStatus>,
    /// Number of changes so far, so that a screen knows whether anything is new.
    pub events: u64,
}

impl Watched {
    /// A run that has not begun.
    pub fn new(plan: &str, rows: impl IntoIterator<Item = Planned>) -> Self {
        let mut own = Self { plan: clean(plan), ..Self::default() };
        let mut first: BTreeMap<(String, String, String), usize> = BTreeMap::new();
        for planned in rows {
            let planned = planned.cleaned();
            let key = (planned.name.clone(), planned.environment.clone(), planned.measurement.clone());
            let next = own.rows.len();
            let at = match planned.slice {
                Some(slice) if slice.number > 1 => first.get(&key).copied().unwrap_or(next),
                Some(_) => {
                    first.insert(key, next);
                    next
                }
                None => next,
            };
            own.of_row.push(at);
            own.slices.push(planned.slice);
            own.places.entry(planned.environment.clone()).or_default();
            if at == next {
                own.rows.push(Row { planned, ..Row::default() });
            }
        }
        own
    }

    /// The measurement of a row of the run.
    fn row(&mut self, number: usize) -> Option<&mut Row> {
        self.rows.get_mut(*self.of_row.get(number)?)
    }

    /// Whether a row of the run is a slice that others follow.
    fn has_next(&self, number: usize) -> bool {
        self.slices.get(number).copied().flatten().is_some_and(|slice| slice.number < slice.of)
    }

    /// Takes in an event.
    pub fn take(&mut self, stamped: &Stamped) {
        self.events += 1;
        self.began_ms.get_or_insert(stamped.at_ms);
        match &stamped.event {
            Event::EnvironmentStarting { environment } => {
                self.place(environment).evidence = None;
                self.remark(stamped.at_ms, false, &format!("{environment}: starting"));
            }
            Event::EnvironmentUp { environment, evidence, after_ms } => {
                self.place(environment).evidence = Some(*evidence);
                self.remark(stamped.at_ms, false, &format!("{environment}: up after {after_ms} ms"));
            }
            Event::RowStarted { row, .. } => {
                let later = self.slices.get(*row).copied().flatten().is_some_and(|slice| slice.number > 1);
                if let Some(row) = self.row(*row) {
                    if later {
                        row.begin_slice();
                    } else {
                        *row =
                            Row { planned: row.planned.clone(), stage: Stage::Measuring, ..Row::default() };
                    }
                }
            }
            Event::Controlled { row, control } => {
                if let Some(row) = self.row(*row) {
                    row.proven = Some(row.proven.unwrap_or(true) && control.passed);
                }
            }
            Event::Ticked(ticked) => self.tick(ticked),
            Event::Counted { row, total } => self.count(*row, total),
            Event::ValueMeasured { row, value } => self.value(*row, value),
            Event::Noted { environment, note } => {
                let place = environment.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
                let trouble = note.kind == NoteKind::Obstacle;
                self.remark(stamped.at_ms, trouble, &format!("{place}{}", note.text));
            }
            Event::FramesLost { environment, frames } => {
                let lost = &mut self.place(environment).lost;
                *lost = lost.saturating_add(*frames);
            }
            Event::RowFinished { row, ending, measured_ns } => {
                let has_next = self.has_next(*row) && ending.ended == RowEnd::Complete;
                if let Some(row) = self.row(*row) {
                    row.at_ns = row.before_ns.saturating_add(*measured_ns).max(row.at_ns);
                    if has_next {
                        row.stage = Stage::Waiting;
                        return;
                    }
                    row.stage = Stage::Ended(ending.ended.status());
                    row.reason = ending.reason.as_deref().map(clean);
                    let (name, reason) = (row.planned.name.clone(), row.reason.clone());
                    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                    let trouble = ending.ended.status() == RowStatus::Failed;
                    self.remark(stamped.at_ms, trouble, &format!("{name}: ended{why}"));
                }
            }
            Event::RunFinished { status } => self.ended = Some(*status),
            _ => {}
        }
    }

    /// The findings of an environment's audit.
    pub fn found(&mut self, environment: &str, severities: impl IntoIterator<Item = Severity>) {
        let mut findings = BTreeMap::new();
        for severity in severities {
            *findings.entry(severity).or_insert(0) += 1;
        }
        self.events += 1;
        self.place(environment).findings = Some(findings);
    }

    /// The rows that measure now; where none does, the last ones that did.
    pub fn current(&self) -> Vec<usize> {
        let of = |wanted: fn(&Row) -> bool| -> Vec<usize> {
            self.rows.iter().enumerate().filter(|(_, row)| wanted(row)).map(|(number, _)| number).collect()
        };
        let measuring = of(|row| row.stage == Stage::Measuring);
        if !measuring.is_empty() {
            return measuring;
        }
        let ended = of(|row| !row.series.is_empty() || !row.values.is_empty());
        ended.into_iter().next_back().into_iter().collect()
    }

    /// How many rows have ended.
    pub fn done(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.stage, Stage::Ended(_))).count()
    }

    fn place(&mut self, name: &str) -> &mut Place {
        self.places.entry(clean(name)).or_default()
    }

    /// Keeps a remark, cleaned; only the newest remarks are kept.
    pub(crate) fn remark(&mut self, at_ms: i64, trouble: bool, text: &str) {
        if self.remarks.len() >= MOST_REMARKS {
            self.remarks.pop_front();
        }
        let cut: String = text.chars().take(REMARK_CHARACTERS).collect();
        self.remarks.push_back(Remark { at_ms, trouble, text: clean(&cut) });
    }

    fn tick(&mut self, ticked: &Ticked) {
        let Some(row) = self.row(ticked.row) else { return };
        row.at_ns = row.at_ns.max(row.before_ns.saturating_add(ticked.at_ns));
        if let Some(series) = row.of(&ticked.series) {
            series.tick(ticked);
        }
    }

    fn count(&mut self, row: usize, total: &Total) {
        if let Some(series) = self.row(row).and_then(|row| row.of(&total.series)) {
            series.count(&total.total);
        }
    }

    fn value(&mut self, row: usize, value: &ValueResult) {
        let Some(row) = self.row(row) else { return };
        let key = clean(&value.name());
        if row.values.len() < MOST_VALUES || row.values.contains_key(&key) {
            row.values.insert(key, value.clone());
        }
    }
}

impl Planned {
    fn cleaned(self) -> Self {
        Self {
            name: clean(&self.name),
            environment: clean(&self.environment),
            measurement: clean(&self.measurement),
            beside: self.beside.iter().map(|word| clean(word)).collect(),
            ..self
        }
    }
}

impl Row {
    /// How many periods one of its series missed; `None` if they are not counted.
    #[must_use]
    pub fn missed(&self, series: &Series) -> Option<u64> {
        let Totals { cycles, overruns, .. } = series.totals;
        (self.planned.periods && (cycles > 0 || overruns > 0)).then_some(overruns)
    }

    /// Another slice of it begins. Its measurements are added to those of the slices before.
    fn begin_slice(&mut self) {
        self.stage = Stage::Measuring;
        self.reason = None;
        self.before_ns = self.at_ns;
        self.series.values_mut().for_each(Series::begin_slice);
    }

    /// The series of a key, while there are not too many of them.
    fn of(&mut self, key: &SeriesKey) -> Option<&mut Series> {
        if self.series.len() >= MOST_SERIES && !self.series.contains_key(key) {
            return None;
        }
        let key = SeriesKey { kind: clean(&key.kind), ..key.clone() };
        Some(self.series.entry(key).or_default())
    }

    /// Whether a latency is more than is allowed.
    #[must_use]
    pub fn is_above(&self, ns: u64) -> bool {
        self.planned.limit_ns.is_some_and(|limit| ns > limit)
    }
}

#[cfg(test)]
pub(crate) mod tests;
