//! A bundle that grows as its run goes: appended and synced at every tick, so that a power cut
//! loses at most the last one.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hdrhistogram::Histogram;
use tactus_model::bundle::{
    Asked, FORMAT, Machine, Manifest, Present, RowResult, Session, environment_key, slug,
};
use tactus_model::event::{RunStatus, Stamped, Ticked};
use tactus_model::facts::Facts;
use tactus_model::finding::Audit;
use tactus_model::histograms::Place;
use tactus_model::latency::Latency;
use tactus_model::message::Windows;
use tactus_model::plan::Plan;
use tactus_model::series::SeriesKey;
use tactus_model::ticks::{TickScalars, ticks_per_interval};

use super::files::append;
use super::ticks::TickLog;
use super::windows::WindowLog;
use super::{BundleError, files, hlog};

/// Writes a bundle.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    events: File,
    manifest: Manifest,
    rows: Vec<PathBuf>,
    /// The state of the machine, where the plan declares states.
    state: Option<String>,
}

/// Name of the file with the plan as the user wrote it.
pub(super) const SOURCE: &str = "source.toml";

/// The directory of a row.
pub(super) fn row_dir(dir: &Path, row: usize, name: &str) -> PathBuf {
    dir.join("scenarios").join(format!("{:02}-{}", row + 1, slug(name)))
}

/// A plan as it is written down.
pub(super) fn plan_text(dir: &Path, plan: &Plan) -> Result<Vec<u8>, BundleError> {
    let text = toml::to_string(plan).map_err(|error| BundleError::Io {
        path: dir.join("plan.toml"),
        error: std::io::Error::other(error),
    })?;
    Ok(text.into_bytes())
}

impl Writer {
    /// Begins a bundle in `dir`, which must be empty or not there. `rows` are the results as they
    /// stand before anything was measured.
    ///
    /// # Errors
    /// When something is there already, or cannot be written.
    pub fn create(
        dir: &Path,
        plan: &Plan,
        rows: &[RowResult],
        machine: Machine,
    ) -> Result<Self, BundleError> {
        if files::list(dir).is_ok_and(|entries| !entries.is_empty()) {
            return Err(BundleError::Exists(dir.to_owned()));
        }
        for sub in ["", "facts", "audit", "scenarios"] {
            files::make_dir(&dir.join(sub))?;
        }
        files::replace(&dir.join("plan.toml"), &plan_text(dir, plan)?)?;
        let manifest = Manifest {
            format: FORMAT,
            tactus: env!("CARGO_PKG_VERSION").into(),
            plan: plan.name.clone(),
            started: jiff::Timestamp::now().to_string(),
            finished: None,
            status: RunStatus::Interrupted,
            machine,
            files: std::collections::BTreeMap::new(),
            sessions: Vec::new(),
            asked: None,
        };
        let path = dir.join("events.jsonl");
        let events = append(&path)?;
        let paths: Vec<PathBuf> =
            rows.iter().enumerate().map(|(n, row)| row_dir(dir, n, &row.name)).collect();
        let writer = Self::of(dir, events, manifest, paths);
        for (row, result) in rows.iter().enumerate() {
            let path = &writer.rows[row];
            files::make_dir(path)?;
            writer.result(row, result)?;
        }
        writer.manifest()?;
        Ok(writer)
    }

    pub(super) fn of(dir: &Path, events: File, manifest: Manifest, rows: Vec<PathBuf>) -> Self {
        Self { dir: dir.to_owned(), events, manifest, rows, state: None }
    }

    /// Keeps the plan as the user wrote it and what else was asked for, so that the run can be gone on
    /// with.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_source(&mut self, plan: &Plan, asked: Asked) -> Result<(), BundleError> {
        files::replace(&self.dir.join(SOURCE), &plan_text(&self.dir, plan)?)?;
        self.manifest.asked = Some(asked);
        self.manifest()
    }

    /// Notes who sits down to the run now, on which machine and in which state.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin_session(&mut self, machine: Machine, state: Option<Present>) -> Result<(), BundleError> {
        self.state = state.as_ref().map(|state| state.name.clone());
        let started = jiff::Timestamp::now().to_string();
        self.manifest.sessions.push(Session { started, finished: None, machine, state });
        self.manifest()
    }

    /// The directory of a row.
    pub(super) fn row(&self, row: usize) -> &Path {
        &self.rows[row]
    }

    /// The bundle's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory for consoles, which is made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn consoles(&self) -> Result<PathBuf, BundleError> {
        let path = self.dir.join("console");
        files::make_dir(&path)?;
        Ok(path)
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn event(&mut self, event: &Stamped) -> Result<(), BundleError> {
        let path = self.dir.join("events.jsonl");
        let mut line = json(&path, event)?;
        line.push(b'\n');
        self.events.write_all(&line).map_err(BundleError::io(&path))
    }

    /// Makes what was written last through a power cut.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&self) -> Result<(), BundleError> {
        self.events.sync_data().map_err(BundleError::io(&self.dir.join("events.jsonl")))
    }

    /// Writes what the audit says of an environment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn audit(&self, environment: &str, audit: &Audit) -> Result<(), BundleError> {
        let path = self.of_place("audit", environment);
        files::replace(&path, &pretty(&path, audit)?)
    }

    /// The file of an environment, in the state that the machine is in now.
    fn of_place(&self, sub: &str, environment: &str) -> PathBuf {
        let place = environment_key(environment, self.state.as_deref());
        self.dir.join(sub).join(format!("{}.json", file_name(&place)))
    }

    /// Writes the facts of an environment.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn facts(&self, environment: &str, facts: &Facts) -> Result<(), BundleError> {
        let path = self.of_place("facts", environment);
        files::replace(&path, &pretty(&path, facts)?)
    }

    /// Opens the logs of a row that begins to measure.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn begin_row(&self, row: usize, result: &RowResult, tick_ns: u64) -> Result<RowLog, BundleError> {
        self.result(row, result)?;
        Ok(RowLog::open(&self.rows[row], result, tick_ns))
    }

    /// Writes the figures of a row.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn result(&self, row: usize, result: &RowResult) -> Result<(), BundleError> {
        let path = self.rows[row].join("result.json");
        files::replace(&path, &pretty(&path, result)?)
    }

    /// Ends the bundle: checksums of every file, and how the run ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, status: RunStatus) -> Result<PathBuf, BundleError> {
        self.sync()?;
        self.manifest.status = status;
        let now = jiff::Timestamp::now().to_string();
        self.manifest.finished = Some(now.clone());
        if let Some(session) = self.manifest.sessions.last_mut() {
            session.finished = Some(now);
        }
        self.manifest.files = files::checksums(&self.dir)?;
        self.manifest()?;
        Ok(self.dir)
    }

    pub(super) fn manifest(&self) -> Result<(), BundleError> {
        let path = self.dir.join(files::MANIFEST);
        files::replace(&path, &pretty(&path, &self.manifest)?)
    }
}

/// An environment's name as a file's name.
pub(super) fn file_name(environment: &str) -> String {
    environment.replace(['/', '\0'], "_").trim_start_matches('.').to_owned()
}

fn json(path: &Path, value: &impl serde::Serialize) -> Result<Vec<u8>, BundleError> {
    serde_json::to_vec(value).map_err(|error| BundleError::Io { path: path.to_owned(), error: error.into() })
}

fn pretty(path: &Path, value: &impl serde::Serialize) -> Result<Vec<u8>, BundleError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| BundleError::Io { path: path.to_owned(), error: error.into() })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The ticks and histogram logs of one row.
#[derive(Debug)]
pub struct RowLog {
    dir: PathBuf,
    started: SystemTime,
    /// Ticks that make an interval.
    ticks_per_interval: u64,
    /// Whether a CPU has one series only, so that its number is tag enough.
    tag_is_cpu: bool,
    ticks: TickLog,
    windows: WindowLog,
    latency: Option<File>,
    missed: Option<File>,
    pending: Option<File>,
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
    fn open(dir: &Path, result: &RowResult, tick_ns: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            started: SystemTime::now(),
            ticks_per_interval: ticks_per_interval(result.planned_ns, tick_ns),
            tag_is_cpu: !result.series_share_cpus(),
            ticks: TickLog::new(dir),
            windows: WindowLog::new(dir),
            latency: None,
            missed: None,
            pending: None,
            open: Vec::new(),
        }
    }

    /// Makes what was written last through a power cut.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&self) -> Result<(), BundleError> {
        for file in [&self.latency, &self.missed, &self.pending].into_iter().flatten() {
            file.sync_data().map_err(BundleError::io(&self.dir))?;
        }
        self.windows.sync()?;
        self.ticks.sync()
    }

    /// Takes in the largest latencies of short windows of time.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn windows(&mut self, windows: &Windows) -> Result<(), BundleError> {
        self.windows.add(windows)
    }

    /// Takes in a tick. Histograms come from the whole of it, where that is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn tick(&mut self, ticked: &Ticked) -> Result<(), BundleError> {
        self.ticks.add(&ticked.series, &TickScalars::from(ticked))?;
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
        if open.ticks >= self.ticks_per_interval {
            return self.flush(at);
        }
        let path = self.dir.join("pending.jsonl");
        let mut line = json(&path, tick)?;
        line.push(b'\n');
        let file = match &mut self.pending {
            Some(file) => file,
            None => self.pending.insert(append(&path)?),
        };
        file.write_all(&line).map_err(BundleError::io(&path))
    }

    /// Writes the interval of one series.
    fn flush(&mut self, at: usize) -> Result<(), BundleError> {
        let open = &mut self.open[at];
        let tag = if self.tag_is_cpu { open.key.cpu.to_string() } else { open.key.to_string() };
        let place = Place { start_ns: open.start_ns, length_ns: open.end_ns.saturating_sub(open.start_ns) };
        let log = |name: &str, file: &mut Option<File>, counted: &Histogram<u64>| {
            let path = self.dir.join(name);
            let mut text = String::new();
            let file = match file {
                Some(file) => file,
                None => {
                    text = hlog::header(self.started);
                    file.insert(append(&path)?)
                }
            };
            text += &hlog::line(&tag, place, counted);
            file.write_all(text.as_bytes()).map_err(BundleError::io(&path))
        };
        log("latency.hlog", &mut self.latency, &open.latency.raw)?;
        if !open.latency.missed.is_empty() {
            log("missed.hlog", &mut self.missed, &open.latency.missed)?;
        }
        open.latency.clear();
        open.start_ns = open.end_ns;
        open.ticks = 0;
        // The pending ticks of all series go together, once no series has any.
        if self.open.iter().all(|open| open.ticks == 0)
            && let Some(file) = &self.pending
        {
            file.set_len(0).map_err(BundleError::io(&self.dir.join("pending.jsonl")))?;
        }
        Ok(())
    }

    /// Writes what is not full yet, and removes what only a running row needs.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<(), BundleError> {
        for at in 0..self.open.len() {
            if self.open[at].ticks > 0 {
                self.flush(at)?;
            }
        }
        if self.pending.is_some() {
            files::remove(&self.dir.join("pending.jsonl"))?;
        }
        self.windows.sync()?;
        self.ticks.finish()
    }
}
