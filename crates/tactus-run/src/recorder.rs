//! The recorder: folds the events of a run into its bundle.

use std::collections::{BTreeMap, BTreeSet};

use tactus_bundle::{BundleError, RowLog, Writer};
use tactus_model::Evidence;
use tactus_model::bundle::{BreakdownIn, InjectedIn, RowResult};
use tactus_model::clock::ClockCheck;
use tactus_model::event::{Event, RunStatus, Stamped, Ticked};
use tactus_model::latency::Latency;
use tactus_model::message::{Note, NoteKind, Outlier, ThreadCounters, Tick, Total};
use tactus_model::outcome::{
    Ending, LatencyOutcome, Outcome, Restart, RowEnd, SeriesResult, in_order, take_value,
};
use tactus_model::series::{SeriesKey, Thread};

use super::audits::Audits;
use super::log;
use super::sink::Record;
use super::sync_pace::SyncPace;
use crate::plan::Resolved;

/// Largest values that are kept of each series.
const OUTLIERS: usize = 32;

/// Writes a run down.
pub struct Recorder {
    writer: Writer,
    rows: Vec<RowState>,
    /// Evidence and other facts of the environments that are up.
    up: BTreeMap<String, (Evidence, u64)>,
    /// Remarks about an environment that no row of it has taken yet.
    remarks: Vec<(String, Note)>,
    lost: BTreeMap<String, u64>,
    /// The state of the clocks of environments since their scenario began.
    clocks: BTreeMap<String, ClockCheck>,
    audits: Audits,
}

struct RowState {
    /// The environment at its other end.
    peer: Option<String>,
    result: RowResult,
    tick_ns: u64,
    log: Option<RowLog>,
    series: BTreeMap<SeriesKey, SeriesState>,
    running: bool,
    /// Controls before the measurement that its environment has shown since it was started last begin here.
    proven: usize,
    /// How often it is brought to the disk.
    pace: SyncPace,
}

#[derive(Default)]
struct SeriesState {
    latency: Latency,
    counters: ThreadCounters,
    outliers: Vec<Outlier>,
    /// Its last totals have come.
    whole: bool,
}

impl Recorder {
    /// A recorder for the rows of a resolved plan.
    #[must_use]
    pub fn new(writer: Writer, resolved: &Resolved) -> Self {
        let tick = |row: usize| {
            resolved.scenarios.iter().find(|s| s.rows.contains(&row)).map_or(1_000_000_000, |s| s.tick_ns)
        };
        let rows = resolved
            .rows
            .iter()
            .enumerate()
            .map(|(number, row)| RowState {
                peer: row.peer.clone(),
                result: row.result.clone(),
                tick_ns: tick(number),
                log: None,
                series: BTreeMap::new(),
                running: false,
                proven: 0,
                pace: SyncPace::new(tick(number)),
            })
            .collect();
        Self {
            writer,
            rows,
            up: BTreeMap::new(),
            remarks: Vec::new(),
            lost: BTreeMap::new(),
            clocks: BTreeMap::new(),
            audits: Audits::of(resolved),
        }
    }

    fn start(&mut self, row: usize, at_ms: i64) -> Result<(), BundleError> {
        let Some(state) = self.rows.get_mut(row) else { return Ok(()) };
        let environment = state.result.environment.clone();
        if let Some((evidence, after_ms)) = self.up.get(&environment) {
            let far = state.peer.as_ref().and_then(|peer| self.up.get(peer));
            state.result.evidence = Some(far.map_or(*evidence, |(far, _)| evidence.weaker(*far)));
            state.result.start_up_ms = Some(*after_ms);
        }
        state.result.started = jiff::Timestamp::from_millisecond(at_ms).ok().map(|at| at.to_string());
        // For a reader, if the run dies now.
        state.result.end(Ending::because(RowEnd::Died, "the run died while this was measured"));
        state.running = true;
        state.proven = state.result.control.len();
        let of_it = self.remarks.iter().filter(|(of, _)| concerns(&state.result, of));
        let taken: Vec<Note> = of_it.map(|(_, note)| note.clone()).collect();
        state.result.notes.extend(taken);
        // If the run is killed from now on, the log would otherwise be missing.
        self.writer.keep_log(log::last_lines().as_deref());
        state.log = Some(self.writer.begin_row(row, &state.result, state.tick_ns)?);
        Ok(())
    }

    fn tick(&mut self, ticked: &Ticked, at_ms: i64) -> Result<(), BundleError> {
        let Some(state) = self.rows.get_mut(ticked.row) else { return Ok(()) };
        let Some(tick) = &ticked.whole else { return Ok(()) };
        if let Some(log) = &state.log
            && state.pace.is_due(ticked.n, at_ms)
        {
            log.sync()?;
            self.writer.sync()?;
        }
        state.series.entry(tick.series.clone()).or_default().take(tick);
        match &mut state.log {
            Some(log) => log.tick(ticked),
            None => Ok(()),
        }
    }

    /// Its environment died, and another start of it measures on. The instrument is a new one.
    fn restarted(&mut self, row: usize, restart: &Restart) -> Result<(), BundleError> {
        let Some(state) = self.rows.get_mut(row) else { return Ok(()) };
        let result = &mut state.result;
        let shown: BTreeSet<Thread> =
            result.control.iter().skip(state.proven).map(|control| control.series.of_thread()).collect();
        // Of a thread whose new instrument has shown nothing, the old one's control proves nothing any more.
        result.control.retain(|control| shown.contains(&control.series.of_thread()));
        state.proven = result.control.len();
        result.restarts.push(restart.clone());
        // The recordings of the host belong to one start.
        (result.waits, result.clock_fit) = (None, None);
        // For a reader, if the run dies now.
        self.writer.result(row, &state.result)
    }

    fn finish(&mut self, row: usize, ending: &Ending, measured_ns: u64) -> Result<(), BundleError> {
        let Some(state) = self.rows.get_mut(row) else { return Ok(()) };
        if let Some(log) = state.log.take() {
            let left_out = log.finish()?;
            state.result.notes.extend(left_out.note());
        }
        let measured = std::mem::take(&mut state.series);
        let result = &mut state.result;
        // Values are in the result since they came.
        if let Outcome::Latency(latency) = &mut result.outcome {
            *latency = latencies(measured);
        }
        result.forget_uncounted();
        if !state.running
            && let Some((evidence, after_ms)) = self.up.get(&result.environment)
        {
            (result.evidence, result.start_up_ms) = (Some(*evidence), Some(*after_ms));
        }
        result.end(ending.clone());
        result.measured_ns = measured_ns;
        result.clock = self.clocks.get(&result.environment).cloned();
        result.frames_lost = self.lost.get(&result.environment).copied().unwrap_or(0);
        state.running = false;
        self.writer.result(row, &state.result)
    }

    fn measures(&self, environment: &str) -> bool {
        self.rows.iter().any(|row| row.running && row.result.environment == environment)
    }

    fn note(&mut self, environment: &str, note: &Note) {
        let running = self.rows.iter_mut().filter(|row| row.running && concerns(&row.result, environment));
        let mut taken = false;
        for row in running {
            taken = true;
            // Another start of an environment says what the first one said.
            if note.kind == NoteKind::Obstacle || !row.result.notes.contains(note) {
                row.result.notes.push(note.clone());
            }
        }
        if !taken {
            self.remarks.push((environment.to_owned(), note.clone()));
        }
    }
}

/// Whether a row did not end as it should have.
fn is_broken(result: &RowResult) -> bool {
    matches!(result.ended, RowEnd::Stopped | RowEnd::Interrupted | RowEnd::Died | RowEnd::Failed)
}

/// Whether what is said of an environment is said of a row: that is where it was measured, or the guest that took its card.
fn concerns(result: &RowResult, environment: &str) -> bool {
    result.environment == environment || result.to.as_deref() == Some(environment)
}

/// The figures of measured series.
fn latencies(measured: BTreeMap<SeriesKey, SeriesState>) -> LatencyOutcome {
    let mut all = Latency::new();
    let mut series = Vec::new();
    for (key, mut own) in measured {
        own.trim();
        // One that arrived, though the tick in which it was counted did not.
        if let Some(largest) = own.outliers.first().filter(|_| own.latency.totals.cycles > 0) {
            let max_ns = &mut own.latency.totals.max_ns;
            *max_ns = largest.value_ns.max(*max_ns);
        }
        all.merge(&own.latency);
        let summary = own.latency.summary();
        let SeriesState { counters, outliers, whole, .. } = own;
        series.push(SeriesResult { key, summary, counters, outliers, whole });
    }
    LatencyOutcome { series, all: (all.totals.cycles > 0).then(|| all.summary()) }
}

impl SeriesState {
    fn keep(&mut self, outlier: Outlier) {
        self.outliers.push(outlier);
        if self.outliers.len() > 4 * OUTLIERS {
            self.trim();
        }
    }

    fn trim(&mut self) {
        self.outliers.sort_by_key(|outlier| std::cmp::Reverse(outlier.value_ns));
        self.outliers.truncate(OUTLIERS);
    }

    fn count(&mut self, total: &Total) {
        // One that comes late says less than the tick before it.
        if total.total.cycles >= self.latency.totals.cycles {
            self.latency.totals = total.total;
        }
        self.whole |= total.last;
    }

    fn take(&mut self, tick: &Tick) {
        // The totals are exact since the start, so that a lost tick shows as lost samples.
        self.latency.totals = tick.total;
        // Counts that a damaged frame made absurd are left out; the totals tell that they are missing.
        let _ = tick.counts.add_to(&mut self.latency.raw);
        let _ = tick.missed.add_to(&mut self.latency.missed);
        self.counters = tick.thread;
    }
}

impl Record for Recorder {
    fn news(&self) -> Option<Note> {
        self.writer.news()
    }

    fn finish(self: Box<Self>, status: RunStatus) -> Result<(), BundleError> {
        let broke = status != RunStatus::Complete || self.rows.iter().any(|row| is_broken(&row.result));
        self.writer.keep_log(log::last_lines().filter(|_| broke).as_deref());
        self.writer.finish(status).map(drop)
    }

    fn record(&mut self, stamped: &Stamped) -> Result<(), BundleError> {
        if let Some(logged) = stamped.logged() {
            self.writer.event(&logged)?;
        }
        match &stamped.event {
            // An environment that died during the measurement: messages and losses of its start belong to its rows.
            Event::EnvironmentStarting { environment } if self.measures(environment) => {
                self.up.remove(environment);
            }
            Event::EnvironmentStarting { environment } => {
                // A new start of an environment has its own remarks and losses.
                self.remarks.retain(|(of, _)| of != environment);
                self.lost.remove(environment);
                self.clocks.remove(environment);
                self.up.remove(environment);
            }
            Event::EnvironmentKept { environment } => {
                self.lost.remove(environment);
                self.clocks.remove(environment);
            }
            Event::ClockChecked { environment, clock } => {
                self.clocks.entry(environment.clone()).or_default().add(clock.clone());
            }
            Event::Waited { environment, waits } => {
                let own = |row: &&mut RowState| row.running && row.result.environment == *environment;
                for row in self.rows.iter_mut().filter(own) {
                    row.result.waits = Some(waits.clone());
                }
            }
            Event::ExitsCounted { environment, exits } => {
                let own = |row: &&mut RowState| row.running && row.result.environment == *environment;
                for row in self.rows.iter_mut().filter(own) {
                    row.result.exits = Some(exits.clone());
                }
            }
            Event::ClockCompared { environment, clock } => {
                let own = |row: &&mut RowState| row.running && row.result.environment == *environment;
                for row in self.rows.iter_mut().filter(own) {
                    row.result.clock_fit = Some(*clock);
                }
            }
            Event::Windows { row, windows } => {
                if let Some(log) = self.rows.get_mut(*row).and_then(|state| state.log.as_mut()) {
                    log.windows(windows)?;
                }
            }
            Event::Injected { environment, outside, injected } => {
                for row in self.rows.iter_mut().filter(|row| row.running) {
                    row.result.injected.push(InjectedIn {
                        environment: environment.clone(),
                        outside: outside.clone(),
                        injected: injected.clone(),
                    });
                }
            }
            Event::EnvironmentUp { environment, evidence, after_ms } => {
                self.up.insert(environment.clone(), (*evidence, *after_ms));
            }
            Event::FactsCollected { environment, facts: Some(facts), .. } => {
                self.writer.facts(environment, facts)?;
                if let Some(audit) = self.audits.of_environment(environment, facts) {
                    self.writer.audit(environment, &audit)?;
                }
            }
            Event::Restarted { row, restart } => self.restarted(*row, restart)?,
            Event::RowStarted { row, .. } => self.start(*row, stamped.at_ms)?,
            Event::Controlled { row, control } => {
                if let Some(state) = self.rows.get_mut(*row) {
                    state.result.control.push(control.clone());
                }
            }
            Event::Ticked(ticked) => self.tick(ticked, stamped.at_ms)?,
            Event::Counted { row, total } => {
                if let Some(state) = self.rows.get_mut(*row) {
                    state.series.entry(total.series.clone()).or_default().count(total);
                }
            }
            Event::ValueMeasured { row, value } => {
                if let Some(state) = self.rows.get_mut(*row)
                    && let Outcome::Values(values) = &mut state.result.outcome
                {
                    take_value(values, value.clone());
                    in_order(values, state.result.measurement.entry().items);
                }
            }
            Event::CpuTimeMeasured { row, environment, breakdown } => {
                if let Some(state) = self.rows.get_mut(*row) {
                    let (environment, breakdown) = (environment.clone(), breakdown.clone());
                    state.result.breakdown.push(BreakdownIn { environment, breakdown });
                }
            }
            Event::CardCounted { row, counts } => {
                if let Some(state) = self.rows.get_mut(*row) {
                    state.result.card = Some(*counts);
                }
            }
            Event::Outlier { row, outlier } => {
                if let Some(state) = self.rows.get_mut(*row) {
                    state.series.entry(outlier.series.clone()).or_default().keep(outlier.clone());
                }
            }
            Event::Noted { environment: Some(environment), note } => self.note(environment, note),
            Event::FramesLost { environment, frames } => {
                let lost = self.lost.entry(environment.clone()).or_default();
                *lost = lost.saturating_add(*frames);
            }
            Event::RowFinished { row, ending, measured_ns } => {
                self.finish(*row, ending, *measured_ns)?;
                self.writer.sync()?;
            }
            _ => {}
        }
        Ok(())
    }
}
