//! A bundle that grows as its run goes: appended and synced at every tick, so that a power cut
//! loses at most the last one.

use std::fs::File;
use std::io;
use std::time::SystemTime;

use hdrhistogram::Histogram;
use tactus_model::bundle::{
    Asked, FORMAT, Job, Machine, Manifest, Present, RowResult, Session, environment_key, file_name, slug,
};
use tactus_model::event::{RunStatus, Stamped, Ticked};
use tactus_model::facts::Facts;
use tactus_model::finding::Audit;
use tactus_model::histograms::Place;
use tactus_model::latency::Latency;
use tactus_model::message::{Note, Windows};
use tactus_model::plan::Plan;
use tactus_model::series::SeriesKey;
use tactus_model::ticks::{TickScalars, ticks_per_interval};
use tactus_system::Directory;

use super::files::{CONSOLES, EVENTS, LOG, MANIFEST, PLAN, SOURCE};
use super::lines::json_line;
use super::location::Location;
use super::pending::PendingLog;
use super::room::{LeftOut, Room};
use super::ticks::TickLog;
use super::windows::WindowLog;
use super::{BundleError, files, hlog};

/// Writes a bundle.
#[derive(Debug)]
pub struct Writer {
    dir: Directory,
    room: Room,
    events: File,
    manifest: Manifest,
    /// Their directories, from the bundle's on.
    rows: Vec<String>,
    /// The state of the machine, where the plan declares states.
    state: Option<String>,
}

/// The directory of a row, from the bundle's on.
pub(super) fn row_dir(row: usize, name: &str) -> String {
    format!("scenarios/{:02}-{}", row + 1, slug(name))
}

/// Keeps these lines as the log of a run, in place of the present ones; `None` removes it. A log that cannot
/// be written does not end a run.
pub fn keep_log(dir: &Directory, lines: Option<&str>) {
    let kept = match lines {
        Some(lines) => dir.replace(LOG, lines.as_bytes()),
        None if dir.entry(LOG).is_ok() => dir.remove(LOG),
        None => Ok(()),
    };
    if let Err(error) = kept {
        tracing::warn!(%error, "{LOG} was not written");
    }
}

/// Writes a plan down.
pub(super) fn write_plan(dir: &Directory, name: &str, plan: &Plan) -> Result<(), BundleError> {
    let text = toml::to_string(plan).map_err(io::Error::other);
    text.and_then(|text| dir.replace(name, text.as_bytes())).map_err(BundleError::of(dir, name))
}

/// Writes a file of JSON.
fn write_json(dir: &Directory, name: &str, value: &impl serde::Serialize) -> Result<(), BundleError> {
    json_file(dir, name, value).map_err(BundleError::of(dir, name))
}

fn json_file(dir: &Directory, name: &str, value: &impl serde::Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    dir.replace(name, &bytes)
}

impl Writer {
    /// Begins a bundle. `rows` are the results as they stand before anything was measured.
    ///
    /// # Errors
    /// When the location cannot be used, or it cannot be written.
    pub fn create(
        location: impl Into<Location>,
        plan: &Plan,
        rows: &[RowResult],
        machine: Machine,
    ) -> Result<Self, BundleError> {
        let dir = location.into().take()?;
        let manifest = Manifest {
            format: FORMAT,
            tactus: env!("CARGO_PKG_VERSION").into(),
            plan: plan.name.clone(),
            started: now(),
            finished: None,
            status: RunStatus::Interrupted,
            machine,
            files: std::collections::BTreeMap::new(),
            sessions: Vec::new(),
            asked: None,
        };
        let names: Vec<String> = rows.iter().enumerate().map(|(n, row)| row_dir(n, &row.name)).collect();
        // First of all: whatever happens from now on, it is a bundle that opens.
        json_file(&dir, MANIFEST, &manifest).map_err(BundleError::of(&dir, MANIFEST))?;
        write_plan(&dir, PLAN, plan)?;
        for sub in ["facts", "audit", "scenarios"] {
            dir.make_dir(sub).map_err(BundleError::of(&dir, sub))?;
        }
        let writer = Self::of(dir, manifest, names)?;
        for (row, result) in rows.iter().enumerate() {
            writer.make_row(row)?;
            writer.result(row, result)?;
        }
        writer.manifest()?;
        writer.keep_room(rows)
    }

    pub(super) fn of(dir: Directory, manifest: Manifest, rows: Vec<String>) -> Result<Self, BundleError> {
        let events = dir.append(EVENTS).map_err(BundleError::of(&dir, EVENTS))?;
        Ok(Self { dir, room: Room::unkept(), events, manifest, rows, state: None })
    }

    /// Keeps room for the end of these rows, in case the file system is full by then.
    pub(super) fn keep_room(self, rows: &[RowResult]) -> Result<Self, BundleError> {
        Ok(Self { room: Room::keep(&self.dir, rows)?, ..self })
    }

    /// A note about the remaining room, once.
    #[must_use]
    pub fn news(&self) -> Option<Note> {
        self.room.news()
    }

    /// Makes the directory of a row.
    pub(super) fn make_row(&self, row: usize) -> Result<(), BundleError> {
        let name = &self.rows[row];
        self.dir.make_dir(name).map_err(BundleError::of(&self.dir, name))
    }

    /// Keeps the plan as the user wrote it and the other options, so that the run can be continued.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_source(&mut self, plan: &Plan, asked: Asked) -> Result<(), BundleError> {
        write_plan(&self.dir, SOURCE, plan)?;
        self.manifest.asked = Some(asked);
        self.manifest()
    }

    /// Notes who sits down to the run now, on which machine and in which state.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin_session(
        &mut self,
        machine: Machine,
        job: Option<Job>,
        state: Option<Present>,
    ) -> Result<(), BundleError> {
        self.state = state.as_ref().map(|state| state.name.clone());
        let started = now();
        self.manifest.sessions.push(Session { started, finished: None, machine, job, state });
        self.manifest()
    }

    /// The directory of a row, open.
    pub(super) fn row(&self, row: usize) -> Result<Directory, BundleError> {
        let name = &self.rows[row];
        self.dir.beneath(name).map_err(BundleError::of(&self.dir, name))
    }

    /// The bundle's directory, open.
    #[must_use]
    pub fn dir(&self) -> &Directory {
        &self.dir
    }

    /// The directory for consoles, open, which is made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn consoles(&self) -> Result<Directory, BundleError> {
        let made = self.dir.make_dir(CONSOLES).and_then(|()| self.dir.beneath(CONSOLES));
        made.map_err(BundleError::of(&self.dir, CONSOLES))
    }

    /// Keeps the last lines of the log, or none.
    pub fn keep_log(&self, lines: Option<&str>) {
        keep_log(&self.dir, lines);
    }

    /// Appends an event, if there is room.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn event(&mut self, event: &Stamped) -> Result<(), BundleError> {
        let line = json_line(event).map_err(BundleError::of(&self.dir, EVENTS))?;
        self.room.append(&mut self.events, &line).map(drop).map_err(BundleError::of(&self.dir, EVENTS))
    }

    /// Makes what was written last through a power cut.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&self) -> Result<(), BundleError> {
        self.room.may(self.events.sync_data()).map(drop).map_err(BundleError::of(&self.dir, EVENTS))
    }

    /// Writes the audit of an environment, if there is room.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn audit(&self, environment: &str, audit: &Audit) -> Result<(), BundleError> {
        self.if_there_is_room(write_json(&self.dir, &self.of_place("audit", environment), audit))
    }

    /// The file of an environment, in the state that the machine is in now.
    fn of_place(&self, sub: &str, environment: &str) -> String {
        let place = environment_key(environment, self.state.as_deref());
        format!("{sub}/{}.json", file_name(&place))
    }

    /// Writes the facts of an environment, if there is room.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn facts(&self, environment: &str, facts: &Facts) -> Result<(), BundleError> {
        self.if_there_is_room(write_json(&self.dir, &self.of_place("facts", environment), facts))
    }

    fn if_there_is_room(&self, written: Result<(), BundleError>) -> Result<(), BundleError> {
        match written {
            Err(BundleError::Io { path, error }) => {
                self.room.may(Err(error)).map(drop).map_err(|error| BundleError::Io { path, error })
            }
            written => written,
        }
    }

    /// Writes what must be there in the end.
    fn must(&self, name: &str, value: &impl serde::Serialize) -> Result<(), BundleError> {
        let written = self.room.must(|| json_file(&self.dir, name, value));
        written.map_err(BundleError::of(&self.dir, name))
    }

    /// Opens the logs of a row that begins to measure.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn begin_row(&self, row: usize, result: &RowResult, tick_ns: u64) -> Result<RowLog, BundleError> {
        self.result(row, result)?;
        self.room.look_again();
        Ok(RowLog::open(self.row(row)?, self.room.clone(), result, tick_ns))
    }

    /// Writes the figures of a row.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn result(&self, row: usize, result: &RowResult) -> Result<(), BundleError> {
        self.must(&format!("{}/result.json", self.rows[row]), result)
    }

    /// Ends the bundle: checksums of every file, and how the run ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, status: RunStatus) -> Result<(), BundleError> {
        self.room.release();
        self.sync()?;
        self.manifest.status = status;
        let now = now();
        self.manifest.finished = Some(now.clone());
        if let Some(session) = self.manifest.sessions.last_mut() {
            session.finished = Some(now);
        }
        self.manifest.files = files::checksums(&self.dir)?;
        self.manifest()
    }

    pub(super) fn manifest(&self) -> Result<(), BundleError> {
        self.must(MANIFEST, &self.manifest)
    }
}

/// The ticks and histogram logs of one row.
#[derive(Debug)]
pub struct RowLog {
    dir: Directory,
    room: Room,
    left_out: LeftOut,
    started: SystemTime,
    /// Ticks that make an interval.
    ticks_per_interval: u64,
    /// Whether a CPU has one series only, so that its number is tag enough.
    tag_is_cpu: bool,
    ticks: TickLog,
    windows: WindowLog,
    latency: Option<File>,
    missed: Option<File>,
    pending: PendingLog,
    open: Vec<Open>,
}

/// The interval of one series that is not full yet.
#[derive(Debug)]
struct Open {
    key: SeriesKey,
    start_ns: u64,
    end_ns: u64,
    ticks: u64,
    latency: Latency,
}

impl RowLog {
    fn open(dir: Directory, room: Room, result: &RowResult, tick_ns: u64) -> Self {
        Self {
            left_out: LeftOut::default(),
            started: SystemTime::now(),
            ticks_per_interval: result.slice.map_or_else(
                || ticks_per_interval(result.planned_ns, tick_ns),
                |slice| slice.ticks_per_interval(),
            ),
            tag_is_cpu: !result.series_share_cpus(),
            ticks: TickLog::new(dir.clone(), room.clone()),
            windows: WindowLog::new(dir.clone(), room.clone()),
            pending: PendingLog::new(dir.clone(), room.clone()),
            dir,
            room,
            latency: None,
            missed: None,
            open: Vec::new(),
        }
    }

    /// Makes what was written last through a power cut.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&self) -> Result<(), BundleError> {
        for file in [&self.latency, &self.missed].into_iter().flatten() {
            self.room.may(file.sync_data()).map_err(BundleError::io(self.dir.path()))?;
        }
        self.pending.sync()?;
        self.windows.sync()?;
        self.ticks.sync()
    }

    /// Takes in the largest latencies of short windows of time.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn windows(&mut self, windows: &Windows) -> Result<(), BundleError> {
        if !self.windows.add(windows)? {
            self.left_out.windows += 1;
        }
        Ok(())
    }

    /// Takes in a tick. Histograms come from the whole of it, where that is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn tick(&mut self, ticked: &Ticked) -> Result<(), BundleError> {
        if !self.ticks.add(&ticked.series, &TickScalars::from(ticked))? {
            self.left_out.tick(ticked.at_ns);
        }
        let Some(tick) = &ticked.whole else { return Ok(()) };
        let at = match self.open.iter().position(|open| open.key == tick.series) {
            Some(at) => at,
            None => {
                self.open.push(Open {
                    key: tick.series.clone(),
                    start_ns: 0,
                    end_ns: 0,
                    ticks: 0,
                    latency: Latency::new(),
                });
                self.open.len() - 1
            }
        };
        let open = &mut self.open[at];
        open.end_ns = tick.at_ns;
        open.ticks += 1;
        // Counts that a damaged frame made absurd are left out; the totals tell that they are missing.
        let _ = tick.counts.add_to(&mut open.latency.raw);
        let _ = tick.missed.add_to(&mut open.latency.missed);
        // Without room the interval becomes longer.
        if open.ticks >= self.ticks_per_interval && self.flush(at, false)? {
            return Ok(());
        }
        self.pending.add(at, tick)
    }

    /// Writes the interval of one series; the last one with the room that is kept. Returns whether there was room.
    fn flush(&mut self, at: usize, last: bool) -> Result<bool, BundleError> {
        let room = &self.room;
        let open = &mut self.open[at];
        let tag = if self.tag_is_cpu { open.key.cpu.to_string() } else { open.key.to_string() };
        let place = Place { start_ns: open.start_ns, length_ns: open.end_ns.saturating_sub(open.start_ns) };
        let log = |name: &str, file: &mut Option<File>, counted: &Histogram<u64>| -> io::Result<bool> {
            let header = || tactus_format::hlog::header(Some(self.started));
            let mut text = if file.is_none() { header() } else { String::new() };
            text += &tactus_format::hlog::line(&tag, place, counted)?;
            let open = || self.dir.append(name);
            match last {
                true => room.append_last_to(file, open, text.as_bytes()).map(|()| true),
                false => room.append_to(file, open, text.as_bytes()),
            }
        };
        if !log(hlog::LATENCY, &mut self.latency, &open.latency.raw)
            .map_err(BundleError::of(&self.dir, hlog::LATENCY))?
        {
            return Ok(false);
        }
        // If there is no room for the other log, this one is not written twice.
        open.latency.raw.reset();
        if !open.latency.missed.is_empty()
            && !log(hlog::MISSED, &mut self.missed, &open.latency.missed)
                .map_err(BundleError::of(&self.dir, hlog::MISSED))?
        {
            return Ok(false);
        }
        open.latency.clear();
        open.start_ns = open.end_ns;
        open.ticks = 0;
        self.pending.logged(at).map(|()| true)
    }

    /// Writes what is not full yet, and removes what only a running row needs. Returns what was not recorded over time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<LeftOut, BundleError> {
        for at in 0..self.open.len() {
            if self.open[at].ticks > 0 {
                self.flush(at, true)?;
            }
        }
        self.pending.finish()?;
        self.windows.sync()?;
        self.ticks.finish()?;
        Ok(self.left_out)
    }
}

/// Now, in RFC 3339, to the millisecond as events have it.
fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}
