//! A bundle as it is read back, with every check of its integrity.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tactus_model::bundle::{Contents, FORMAT, Manifest, Row, RowResult};
use tactus_model::event::{Event, Stamped};
use tactus_model::facts::Facts;
use tactus_model::histograms::{Folding, Histograms};
use tactus_model::message::Note;
use tactus_model::outcome::{Outcome, RowStatus, ValueResult, take_value};
use tactus_model::partition::{CacheHeld, CacheUse, Phase};
use tactus_model::plan::Plan;
use tactus_model::ticks::{TickScalars, Ticks};

use super::lines::{Line, Lines};
use super::{BundleError, files, hlog, older, recover, ticks, windows, write};

/// How much a reader puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// A bundle that was finished must be as it was written; one that was cut off by a crash is
    /// recovered, and says so.
    Whole,
    /// Whatever can be read, with a sentence for everything that cannot.
    Damaged,
}

/// Reads the bundle in `dir`.
///
/// # Errors
/// When it is no bundle, was written in another format, or (with [`Trust::Whole`]) a file of a
/// finished bundle is missing or altered.
pub fn read(dir: &Path, trust: Trust) -> Result<Contents, BundleError> {
    let manifest = manifest(dir)?;
    let mut damage = Vec::new();
    for (name, sum) in &manifest.files {
        if let Some(error) = altered(dir, name, sum) {
            match trust {
                Trust::Whole => return Err(error),
                Trust::Damaged => damage.push(error.to_string()),
            }
        }
    }
    if manifest.finished.is_none() {
        damage.push("the run died before it could end the bundle: up to one tick may be missing".into());
    }
    let plan = plan(dir, &mut damage);
    let mut results = BTreeMap::new();
    for (number, path) in row_dirs(dir)? {
        if let Some(result) = result(&path, &mut damage) {
            results.insert(number, (path, result));
        }
    }
    let planned = results.iter().map(|(number, (_, result))| (*number, result.planned_ns)).collect();
    let Happened { mut rows_of, notes } = events(dir, planned, &mut damage);
    let rows: Vec<Row> = results
        .into_iter()
        .map(|(number, (path, result))| {
            row(&path, result, rows_of.remove(&number).unwrap_or_default(), &mut damage)
        })
        .collect();
    let facts: BTreeMap<String, Facts> = by_environment(dir, "facts", &rows, &mut damage);
    let audits = by_environment(dir, "audit", &rows, &mut damage);
    Ok(Contents { facts, audits, manifest, plan, rows, notes, damage })
}

fn manifest(dir: &Path) -> Result<Manifest, BundleError> {
    let path = dir.join(files::MANIFEST);
    let not = |reason: String| BundleError::NotABundle { path: dir.to_owned(), reason };
    let text = files::read(&path).map_err(|error| not(format!("{}: {error}", files::MANIFEST)))?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| not(format!("{}: {error}", files::MANIFEST)))?;
    // The version is looked at first: another major version may have another manifest.
    if let Some(format) = value.get("format").and_then(|f| serde_json::from_value(f.clone()).ok())
        && let tactus_model::bundle::Format { major, .. } = format
        && major != FORMAT.major
    {
        let tactus = value.get("tactus").and_then(|t| t.as_str()).unwrap_or("(unknown)").to_owned();
        return Err(BundleError::OtherVersion { path: dir.to_owned(), tactus, found: format });
    }
    serde_json::from_value(value).map_err(|error| not(format!("{}: {error}", files::MANIFEST)))
}

fn altered(dir: &Path, name: &str, sum: &str) -> Option<BundleError> {
    let path = dir.join(name);
    // A manifest is somebody's input too: it names files of its own bundle and no others.
    let inside = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let reason = if !inside {
        "the manifest names a file outside the bundle".to_owned()
    } else {
        match files::checksum(&path) {
            Ok(found) if found == sum => return None,
            Ok(_) => "its checksum is another than the manifest's".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    Some(BundleError::Altered { path, reason })
}

fn plan(dir: &Path, damage: &mut Vec<String>) -> Plan {
    let text = files::text(&dir.join("plan.toml")).map_err(|error| error.to_string());
    text.and_then(|text| toml::from_str(&text).map_err(|error| error.message().to_owned())).unwrap_or_else(
        |error| {
            damage.push(format!("plan.toml cannot be read: {error}"));
            Plan::default()
        },
    )
}

/// What the events of a run say.
#[derive(Default)]
struct Happened {
    rows_of: BTreeMap<usize, Told>,
    notes: Vec<(Option<String>, Note)>,
}

/// What the events say of one row.
#[derive(Default)]
struct Told {
    /// Up to format 1.2.
    ticks: Ticks,
    values: Vec<ValueResult>,
    held: Vec<CacheHeld>,
}

/// To which rows what is said of the cache belongs: it is looked at before the rows of a scenario start, while
/// they run and after they ended.
#[derive(Default)]
struct Looks {
    before: Vec<CacheHeld>,
    running: Vec<usize>,
    finished: Vec<usize>,
}

impl Looks {
    fn started(&mut self, row: usize, rows: &mut BTreeMap<usize, Told>) {
        self.finished.clear();
        self.running.push(row);
        // A row that was done again has nothing of the first time.
        if let Some(told) = rows.get_mut(&row) {
            *told = Told { ticks: told.ticks.emptied(), held: self.before.clone(), ..Told::default() };
        }
    }

    fn finished(&mut self, row: usize) {
        self.before.clear();
        self.running.retain(|running| *running != row);
        self.finished.push(row);
    }

    fn saw(&mut self, one: &CacheUse, rows: &mut BTreeMap<usize, Told>) {
        let of = match one.phase {
            Phase::Before => return CacheHeld::add(&mut self.before, one),
            Phase::With => &self.running,
            Phase::After => &self.finished,
        };
        for row in of {
            if let Some(told) = rows.get_mut(row) {
                CacheHeld::add(&mut told.held, one);
            }
        }
    }
}

/// Reads the events; `planned` is how long each row was to take, in ns.
fn events(dir: &Path, planned: BTreeMap<usize, u64>, damage: &mut Vec<String>) -> Happened {
    let told = |(row, ns)| (row, Told { ticks: Ticks::planned(ns), ..Told::default() });
    let mut all = Happened { rows_of: planned.into_iter().map(told).collect(), ..Happened::default() };
    let bad = match Lines::open(&dir.join("events.jsonl")).and_then(|lines| all.read(lines)) {
        Ok(bad) => bad,
        Err(error) => {
            damage.push(format!("events.jsonl cannot be read: {error}"));
            return all;
        }
    };
    if bad > 0 {
        damage.push(format!("events.jsonl: {bad} lines cannot be read"));
    }
    all
}

impl Happened {
    /// Returns how many lines are no events.
    fn read<R: BufRead>(&mut self, mut lines: Lines<R>) -> io::Result<usize> {
        let (mut looks, mut bad) = (Looks::default(), 0);
        while let Some(line) = lines.next()? {
            let (Line::Whole(line) | Line::Cut(line)) = line else {
                bad += 1;
                continue;
            };
            match serde_json::from_slice::<Stamped>(line).map(|stamped| stamped.event) {
                Ok(Event::RowStarted { row, .. }) => looks.started(row, &mut self.rows_of),
                Ok(Event::RowFinished { row, .. }) => looks.finished(row),
                Ok(Event::CacheUsed(one)) => looks.saw(&one, &mut self.rows_of),
                Ok(Event::Ticked(tick)) => {
                    if let Some(told) = self.rows_of.get_mut(&tick.row) {
                        bad += usize::from(!told.ticks.add(&tick.series, &TickScalars::from(&tick)));
                    }
                }
                Ok(Event::ValueMeasured { row, value }) => {
                    if let Some(told) = self.rows_of.get_mut(&row) {
                        take_value(&mut told.values, value);
                    }
                }
                Ok(Event::Noted { environment, note }) => self.notes.push((environment, note)),
                Ok(_) => {}
                Err(_) => bad += 1,
            }
        }
        Ok(bad)
    }
}

/// The directories of the rows by their number, from 0.
fn row_dirs(dir: &Path) -> Result<BTreeMap<usize, PathBuf>, BundleError> {
    let path = dir.join("scenarios");
    let entries = files::list(&path).map_err(|error| BundleError::NotABundle {
        path: dir.to_owned(),
        reason: format!("scenarios: {error}"),
    })?;
    let mut rows = BTreeMap::new();
    for path in entries {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let number =
            name.split('-').next().and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1));
        if let Some(number) = number {
            rows.insert(number, path);
        }
    }
    Ok(rows)
}

fn result(path: &Path, damage: &mut Vec<String>) -> Option<RowResult> {
    let found = files::read(&path.join("result.json"))
        .map_err(|error| error.to_string())
        .and_then(|bytes| older::result(&bytes).map_err(|error| error.to_string()));
    found
        .map_err(|error| damage.push(format!("scenarios/{}/result.json cannot be read: {error}", name(path))))
        .ok()
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn row(path: &Path, result: RowResult, told: Told, damage: &mut Vec<String>) -> Row {
    let Told { mut ticks, values, held } = told;
    ticks::read(path, &name(path), &mut ticks, damage);
    let (histograms, missed) = histograms(path, &result, damage);
    let windows = windows::read(path, &name(path), damage);
    let mut row = Row { result, ticks, histograms, missed, held, windows };
    if row.result.status == RowStatus::Measured && row.result.outcome.is_empty() {
        match &mut row.result.outcome {
            Outcome::Latency(_) => recover::result(&mut row),
            Outcome::Values(own) => *own = values,
        }
    }
    row
}

/// What the logs of a row have, with the ticks that had not come into them: what was measured, what was missed.
fn histograms(path: &Path, result: &RowResult, damage: &mut Vec<String>) -> (Histograms, Histograms) {
    let (latency, missed) = (path.join("latency.hlog"), path.join("missed.hlog"));
    let pending = path.join("pending.jsonl");
    let pending = if files::exists(&pending) {
        recover::Pending::read(&pending, result.series_share_cpus(), hlog::ends(&latency).unwrap_or_default())
    } else {
        recover::Pending::default()
    };
    let lengths = hlog::lengths(&latency).unwrap_or_default();
    let lengths: Vec<u64> = lengths.into_iter().chain(pending.lengths()).collect();
    let (mut all, mut none) = (Folding::new(lengths.clone()), Folding::new(lengths));
    for (log, folding) in [(&latency, &mut all), (&missed, &mut none)] {
        let file = format!("scenarios/{}/{}", name(path), name(log));
        match hlog::read(log, |tag, place, counts| folding.add(tag, place, counts)) {
            Ok(0) => {}
            Ok(bad) => damage.push(format!("{file}: {bad} lines cannot be read")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => damage.push(format!("{file}: what follows cannot be read: {error}")),
        }
    }
    pending.add_to(&mut all, &mut none);
    (all.finish(), none.finish())
}

/// What stands in a directory of one JSON file per environment.
fn by_environment<T: DeserializeOwned>(
    dir: &Path,
    sub: &str,
    rows: &[Row],
    damage: &mut Vec<String>,
) -> BTreeMap<String, T> {
    let mut all = BTreeMap::new();
    let mut names: Vec<String> = rows.iter().map(|row| row.result.environment_key()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let file = format!("{}.json", write::file_name(&name));
        let Ok(bytes) = files::read(&dir.join(sub).join(&file)) else { continue };
        match serde_json::from_slice(&bytes) {
            Ok(found) => {
                all.insert(name, found);
            }
            Err(error) => damage.push(format!("{sub}/{file} cannot be read: {error}")),
        }
    }
    all
}
