//! A bundle as it is read back, with every check of its integrity.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tactus_model::bundle::{Contents, FORMAT, Manifest, Row, RowResult};
use tactus_model::event::{Event, Stamped, Ticked};
use tactus_model::facts::Facts;
use tactus_model::message::Note;
use tactus_model::outcome::{Outcome, RowStatus, ValueResult, take_value};
use tactus_model::partition::{CacheUse, Phase};
use tactus_model::plan::Plan;

use super::{BundleError, files, hlog, older, recover, write};

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
    let Happened { mut rows_of, notes } = events(dir, &mut damage);
    let mut rows = Vec::new();
    for (number, path) in row_dirs(dir)? {
        let own = rows_of.remove(&number).unwrap_or_default();
        if let Some(row) = row(&path, own, &mut damage) {
            rows.push(row);
        }
    }
    let facts: BTreeMap<String, Facts> = by_environment(dir, "facts", &rows, &mut damage);
    let audits = by_environment(dir, "audit", &rows, &mut damage);
    Ok(Contents { facts, audits, manifest, plan, rows, notes, damage })
}

fn manifest(dir: &Path) -> Result<Manifest, BundleError> {
    let path = dir.join(files::MANIFEST);
    let not = |reason: String| BundleError::NotABundle { path: dir.to_owned(), reason };
    let text = fs::read(&path).map_err(|error| not(format!("{}: {error}", files::MANIFEST)))?;
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
    let text = fs::read_to_string(dir.join("plan.toml")).map_err(|error| error.to_string());
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
    ticks: Vec<Ticked>,
    values: Vec<ValueResult>,
    uses: Vec<CacheUse>,
}

/// To which rows what is said of the cache belongs: it is looked at before the rows of a scenario start, while
/// they run and after they ended.
#[derive(Default)]
struct Looks {
    before: Vec<CacheUse>,
    running: Vec<usize>,
    finished: Vec<usize>,
}

impl Looks {
    fn started(&mut self, row: usize, rows: &mut BTreeMap<usize, Told>) {
        self.finished.clear();
        self.running.push(row);
        // A row that was done again has nothing of the first time.
        rows.insert(row, Told { uses: self.before.clone(), ..Told::default() });
    }

    fn finished(&mut self, row: usize) {
        self.before.clear();
        self.running.retain(|running| *running != row);
        self.finished.push(row);
    }

    fn saw(&mut self, one: &CacheUse, rows: &mut BTreeMap<usize, Told>) {
        let of = match one.phase {
            Phase::Before => return self.before.push(one.clone()),
            Phase::With => &self.running,
            Phase::After => &self.finished,
        };
        for row in of {
            rows.entry(*row).or_default().uses.push(one.clone());
        }
    }
}

fn events(dir: &Path, damage: &mut Vec<String>) -> Happened {
    let (mut all, mut looks) = (Happened::default(), Looks::default());
    let bytes = match fs::read(dir.join("events.jsonl")) {
        Ok(bytes) => bytes,
        Err(error) => {
            damage.push(format!("events.jsonl cannot be read: {error}"));
            return all;
        }
    };
    let mut bad = 0;
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        match serde_json::from_slice::<Stamped>(line).map(|stamped| stamped.event) {
            Ok(Event::RowStarted { row, .. }) => looks.started(row, &mut all.rows_of),
            Ok(Event::RowFinished { row, .. }) => looks.finished(row),
            Ok(Event::CacheUsed(one)) => looks.saw(&one, &mut all.rows_of),
            Ok(Event::Ticked(tick)) => all.rows_of.entry(tick.row).or_default().ticks.push(tick),
            Ok(Event::ValueMeasured { row, value }) => {
                take_value(&mut all.rows_of.entry(row).or_default().values, value);
            }
            Ok(Event::Noted { environment, note }) => all.notes.push((environment, note)),
            Ok(_) => {}
            Err(_) => bad += 1,
        }
    }
    if bad > 0 {
        damage.push(format!("events.jsonl: {bad} lines cannot be read"));
    }
    all
}

/// The directories of the rows by their number, from 0.
fn row_dirs(dir: &Path) -> Result<BTreeMap<usize, PathBuf>, BundleError> {
    let path = dir.join("scenarios");
    let entries = fs::read_dir(&path).map_err(|error| BundleError::NotABundle {
        path: dir.to_owned(),
        reason: format!("scenarios: {error}"),
    })?;
    let mut rows = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(BundleError::io(&path))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let number =
            name.split('-').next().and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1));
        if let Some(number) = number {
            rows.insert(number, path);
        }
    }
    Ok(rows)
}

fn row(path: &Path, Told { ticks, values, uses }: Told, damage: &mut Vec<String>) -> Option<Row> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let result: RowResult = match fs::read(path.join("result.json"))
        .map_err(|error| error.to_string())
        .and_then(|bytes| older::result(&bytes).map_err(|error| error.to_string()))
    {
        Ok(result) => result,
        Err(error) => {
            damage.push(format!("scenarios/{name}/result.json cannot be read: {error}"));
            return None;
        }
    };
    let mut log = |file: &str| match fs::read(path.join(file)) {
        Ok(bytes) => {
            let (intervals, bad) = hlog::read(&bytes);
            if bad > 0 {
                damage.push(format!("scenarios/{name}/{file}: {bad} lines cannot be read"));
            }
            intervals
        }
        Err(_) => Vec::new(),
    };
    let (intervals, missed) = (log("latency.hlog"), log("missed.hlog"));
    let mut row = Row { result, ticks, intervals, missed, uses };
    if let Ok(pending) = fs::read(path.join("pending.jsonl")) {
        recover::pending(&pending, &mut row);
    }
    if row.result.status == RowStatus::Measured && row.result.outcome.is_empty() {
        match &mut row.result.outcome {
            Outcome::Latency(_) => recover::result(&mut row),
            Outcome::Values(own) => *own = values,
        }
    }
    Some(row)
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
        let Ok(bytes) = fs::read(dir.join(sub).join(&file)) else { continue };
        match serde_json::from_slice(&bytes) {
            Ok(found) => {
                all.insert(name, found);
            }
            Err(error) => damage.push(format!("{sub}/{file} cannot be read: {error}")),
        }
    }
    all
}
