//! A bundle as it is read back, with every check of its integrity.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use std::path::Path;

use sha2::{Digest, Sha256};
use tactus_model::bundle::{Contents, FORMAT, Manifest, Row, RowResult};
use tactus_model::event::{Event, Stamped};
use tactus_model::facts::Facts;
use tactus_model::histograms::{Folding, Histograms};
use tactus_model::message::Note;
use tactus_model::outcome::{
    Ending, LatencyOutcome, Outcome, RowEnd, RowStatus, ValueResult, impossible, in_order, take_value,
};
use tactus_model::partition::{CacheHeld, CacheUse, Phase};
use tactus_model::plan::{
    MOST_COMPARED, MOST_DISTURBED, MOST_MEASURED, MOST_PUBLISHED_THREADS, MOST_REFERENCES, MOST_SEPARATED,
    MOST_SHOWN, Plan,
};
use tactus_model::ticks::Ticks;
use tactus_model::windows::{Maxima, RowWindows};
use tactus_system::Directory;

use super::files::SCENARIOS;
use super::limits::{self, Memory};
use super::lines::{Line, Lines};
use super::places::by_environment;
use super::slices::{self, Joining, Part, Results};
use super::{BundleError, Logs, files, hlog, largest, names, recover, ticks, windows};

/// The approximate memory of a row without logs, in bytes.
const ROW: u64 = 4096;

/// How much a reader puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// A finished bundle must be as it was written. One that was cut off by a crash is recovered, with a
    /// remark.
    Whole,
    /// Whatever can be read, with a sentence for everything that cannot.
    Damaged,
}

/// Reads the bundle in `dir`.
///
/// # Errors
/// When it is no bundle, was written in another format, or (with [`Trust::Whole`]) a file of a
/// finished bundle is missing, altered or added.
pub fn read(dir: &Path, trust: Trust) -> Result<Contents, BundleError> {
    read_from(&open(dir)?, trust)
}

/// Opens the directory of a bundle, so that a reader that then writes beside the bundle uses the same
/// directory.
///
/// # Errors
/// When it is missing.
pub fn open(dir: &Path) -> Result<Directory, BundleError> {
    Directory::open(dir).map_err(|error| BundleError::no_bundle(dir.to_owned(), error))
}

/// Reads the bundle in an open directory.
///
/// # Errors
/// As [`read`].
pub fn read_from(dir: &Directory, trust: Trust) -> Result<Contents, BundleError> {
    read_with_logs(dir, trust).map(|(contents, _)| contents)
}

/// The same, with the logs of its rows: those may be read again, line by line.
///
/// # Errors
/// As [`read`].
pub fn read_with_logs(dir: &Directory, trust: Trust) -> Result<(Contents, Logs), BundleError> {
    read_rows(dir, trust, slices::group)
}

/// The same with a row for each slice of a measurement, as they lie in the bundle.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_apart(dir: &Directory, trust: Trust) -> Result<Contents, BundleError> {
    read_rows(dir, trust, slices::apart).map(|(contents, _)| contents)
}

fn read_rows(
    dir: &Directory,
    trust: Trust,
    group: impl FnOnce(&Results, &Plan) -> Vec<Vec<Part>>,
) -> Result<(Contents, Logs), BundleError> {
    let mut manifest = manifest(dir)?;
    let (mut damage, mut memory) = (Vec::new(), Memory::default());
    let mut checked = files::Checked::default();
    let altered = manifest.files.iter().filter_map(|(name, sum)| altered(dir, name, sum, &mut checked));
    for error in altered.chain(files::added(dir, &manifest)) {
        match trust {
            Trust::Whole => return Err(error),
            Trust::Damaged => damage.push(error.to_string()),
        }
    }
    let altered = !damage.is_empty();
    names::of_manifest(&mut manifest, &mut damage);
    if manifest.finished.is_none() {
        damage.push(
            "the run died before it could end the bundle: up to one report interval may be missing".into(),
        );
    }
    let plan = plan(dir, &mut memory, &mut damage);
    let mut results = Results::new();
    let dirs = row_dirs(dir, &mut damage)?;
    if let Some(more) = dirs.len().checked_sub(MOST_MEASURED).filter(|more| *more > 0) {
        damage.push(format!("{more} of its rows exceed the number in any plan: they are left out"));
    }
    // Numbers are given without gaps.
    let (mut there, last) = (dirs.len(), dirs.keys().next_back().map_or(0, |last| last.saturating_add(1)));
    for (number, name) in dirs.into_iter().take(MOST_MEASURED) {
        match result(dir, &name, &mut memory, &mut damage) {
            Some(result) => drop(results.insert(number, (name, result))),
            None => there -= 1,
        }
    }
    let Happened { mut rows_of, notes, planned, .. } =
        events(dir, results.keys().copied(), &mut memory, &mut damage);
    let missing = planned.max(last).saturating_sub(there);
    if missing > 0 && manifest.finished.is_some() {
        let error = missing_rows(dir, missing, there);
        match trust {
            Trust::Whole => return Err(error),
            Trust::Damaged => damage.push(error.to_string()),
        }
    }
    let altered = altered || missing > 0 && manifest.finished.is_some();
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    for parts in group(&results, &plan) {
        let mut own = Vec::new();
        let mut joining: Option<Joining> = None;
        for part in parts {
            let Some((name, result)) = results.remove(&part.row) else { continue };
            own.push((name.clone(), part));
            let told = rows_of.remove(&part.row).unwrap_or_default();
            let before = memory.taken();
            let row = row(dir, &name, result, told, &mut memory, &mut damage);
            if part.slice.is_none() {
                rows.push(row);
                continue;
            }
            let joining = joining.get_or_insert_with(|| Joining::new(&row.result));
            let grown = joining.add(part, row);
            // Its memory is part of the whole now.
            memory.give_back(memory.taken().saturating_sub(before));
            // An excess is reported with the row that would come next.
            let _ = memory.take(u64::try_from(grown).unwrap_or(u64::MAX));
        }
        rows.extend(joining.map(Joining::finish));
        if let Some(row) = rows.last_mut().filter(|_| !own.is_empty()) {
            row.directories = own.iter().map(|(name, _)| name.clone()).collect();
        }
        names.push(own);
    }
    for row in &mut rows {
        row.result.forget_uncounted();
        row.result.damaged = altered;
        row.slices.iter_mut().for_each(|slice| slice.result.damaged = altered);
    }
    let facts: BTreeMap<String, Facts> = by_environment(dir, files::FACTS, &rows, &mut memory, &mut damage);
    let audits = by_environment(dir, files::AUDIT, &rows, &mut memory, &mut damage);
    let contents = Contents { facts, audits, manifest, plan, rows, notes, damage, raw: false, own: false };
    Ok((contents, Logs::new(dir.clone(), names)))
}

/// The manifest of the bundle in an open directory, unchecked.
///
/// # Errors
/// When it is not a bundle, or was written in another format.
pub fn manifest(dir: &Directory) -> Result<Manifest, BundleError> {
    manifest_and_bytes(dir).map(|(manifest, _)| manifest)
}

fn manifest_and_bytes(dir: &Directory) -> Result<(Manifest, Vec<u8>), BundleError> {
    let path = || dir.path().to_owned();
    let not = |reason: String| BundleError::NotABundle { path: path(), reason };
    let text = dir.read(files::MANIFEST, limits::MANIFEST).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => BundleError::no_bundle(path().join(files::MANIFEST), error),
        _ => not(format!("{}: {error}", files::MANIFEST)),
    })?;
    let wrong = |error| not(format!("{}: {}", files::MANIFEST, names::words(&error)));
    // The version is looked at first: another major version may have another manifest.
    if let Ok(Version { format: Some(found), tactus }) = serde_json::from_slice(&text)
        && found.major != FORMAT.major
    {
        let tactus = tactus.map_or_else(|| "(unknown)".to_owned(), |tactus| names::words(&tactus));
        return Err(BundleError::OtherVersion { path: path(), tactus, found });
    }
    let manifest = serde_json::from_slice(&text).map_err(wrong)?;
    Ok((manifest, text))
}

/// Verifies the bundle in an open directory: it is finished, every file is as its manifest has it, and no
/// other file lies in a place that is read. It parses only the manifest.
///
/// # Errors
/// When it is not a bundle, was written in another format, is not finished, or a file is missing, altered or
/// added.
pub fn verify(dir: &Directory) -> Result<Manifest, BundleError> {
    sealed(dir).map(|sealed| sealed.manifest)
}

/// The manifest of a bundle, which has the checksum of every other file: its own checksum is that of the bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// The manifest.
    pub manifest: Manifest,
    /// The bytes that it was read from: those of `manifest.json`.
    pub bytes: Vec<u8>,
    /// Their SHA-256, in hex.
    pub sha256: String,
}

/// Verifies a bundle as [`verify`] does, and returns the data that seals it. The bundle is read once, so that
/// the returned data is the verified data.
///
/// # Errors
/// As [`verify`].
pub fn sealed(dir: &Directory) -> Result<Sealed, BundleError> {
    let (manifest, bytes) = manifest_and_bytes(dir)?;
    if manifest.finished.is_none() {
        return Err(BundleError::Unfinished { path: dir.path().to_owned() });
    }
    let mut checked = files::Checked::default();
    let altered = manifest.files.iter().find_map(|(name, sum)| altered(dir, name, sum, &mut checked));
    if let Some(error) = altered.or_else(|| files::added(dir, &manifest)) {
        return Err(error);
    }
    let sha256 = files::hex(&Sha256::digest(&bytes));
    Ok(Sealed { manifest, bytes, sha256 })
}

/// The version in a manifest of any version.
#[derive(serde::Deserialize)]
struct Version {
    format: Option<tactus_model::bundle::Format>,
    #[serde(default)]
    tactus: Option<String>,
}

fn altered(dir: &Directory, name: &str, sum: &str, checked: &mut files::Checked) -> Option<BundleError> {
    let path = dir.path().join(name);
    // A manifest may come from a stranger: it may name only files of its bundle.
    // Each file has one name, so that it is read once.
    let is_plain = name.split('/').all(|part| !["", ".", ".."].contains(&part));
    let inside =
        is_plain && Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let reason = if !inside {
        "the manifest names a file outside the bundle".to_owned()
    } else {
        match files::checksum(dir, Path::new(name), checked) {
            Ok(found) if found == sum => return None,
            Ok(_) => "its checksum differs from the manifest's".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    Some(BundleError::Altered { path, reason })
}

/// A finished run has a directory for each of its rows, even for skipped ones. Without one, the result of the
/// run as a whole is unknown.
fn missing_rows(dir: &Directory, missing: usize, there: usize) -> BundleError {
    let reason = format!("rows missing: {missing} of {}", missing.saturating_add(there));
    BundleError::Altered { path: dir.path().join(SCENARIOS), reason }
}

fn plan(dir: &Directory, memory: &mut Memory, damage: &mut Vec<String>) -> Plan {
    let text = files::text(dir, files::PLAN, limits::PLAN)
        .and_then(|text| memory.parse(text.as_bytes()).map(|()| text))
        .map_err(|error| error.to_string());
    let read = text.and_then(|text| toml::from_str(&text).map_err(|error| error.message().to_owned()));
    let mut plan: Plan = read.unwrap_or_else(|error| {
        damage.push(format!("plan.toml cannot be read: {error}"));
        Plan::default()
    });
    readable(&mut plan, damage);
    names::of_plan(&mut plan, damage);
    plan
}

/// Leaves of a plan what a report can show: each of its claims and drawings may be about every row.
fn readable(plan: &mut Plan, damage: &mut Vec<String>) {
    let mut left_out = |what: &str, count: usize, most: usize| {
        if count > 0 {
            damage.push(format!(
                "plan.toml: {count} of its {what} are duplicates, or exceed {most}: they are left out"
            ));
        }
    };
    let (mut pairs, all) = (BTreeSet::new(), plan.compare.len());
    plan.compare.retain(|claim| {
        pairs.len() < MOST_COMPARED && pairs.insert((claim.base.clone(), claim.with.clone()))
    });
    left_out("comparisons", all - plan.compare.len(), MOST_COMPARED);
    left_out("references", plan.reference.len().saturating_sub(MOST_REFERENCES), MOST_REFERENCES);
    plan.reference.truncate(MOST_REFERENCES);
    // All of a reference that has too many: the largest of some is not the largest that was published.
    let threads = plan.reference.iter_mut().map(|reference| &mut reference.threads);
    let too_many = threads.filter(|threads| threads.len() > MOST_PUBLISHED_THREADS);
    let count = too_many.map(|threads| std::mem::take(threads).len()).sum();
    left_out("published threads", count, MOST_PUBLISHED_THREADS);
    left_out("figures", plan.figure.len().saturating_sub(MOST_SHOWN), MOST_SHOWN);
    plan.figure.truncate(MOST_SHOWN);
    left_out("pages", plan.page.len().saturating_sub(MOST_SHOWN), MOST_SHOWN);
    plan.page.truncate(MOST_SHOWN);
    for page in &mut plan.page {
        let mut before = Vec::new();
        page.show.retain(|shown| {
            !before.contains(shown) && {
                before.push(*shown);
                true
            }
        });
    }
    if let Some(separation) = &mut plan.separation {
        let (places, made) = (separation.environments.len(), separation.disturbed.len());
        left_out("environments of a separation", places.saturating_sub(MOST_SEPARATED), MOST_SEPARATED);
        separation.environments.truncate(MOST_SEPARATED);
        left_out("scenarios at rest", separation.rest.len().saturating_sub(MOST_SEPARATED), MOST_SEPARATED);
        separation.rest.truncate(MOST_SEPARATED);
        left_out("disturbances", made.saturating_sub(MOST_DISTURBED), MOST_DISTURBED);
        separation.disturbed.truncate(MOST_DISTURBED);
    }
    left_out("technologies", plan.technology.len().saturating_sub(MOST_SHOWN), MOST_SHOWN);
    plan.technology.truncate(MOST_SHOWN);
}

/// The contents of a run's events.
#[derive(Default)]
struct Happened {
    rows_of: BTreeMap<usize, Told>,
    notes: Vec<(Option<String>, Note)>,
    /// How many rows the run planned; 0 if no run is in the events, as in an import.
    planned: usize,
    /// Remarks and items beyond those that are kept.
    left_out: usize,
}

/// The events of one row.
#[derive(Default)]
struct Told {
    values: Vec<ValueResult>,
    held: Vec<CacheHeld>,
}

/// Assigns looks at the cache to rows: they are made before the rows of a scenario start, while they run and
/// after they ended.
#[derive(Default)]
struct Looks {
    before: Vec<CacheHeld>,
    running: BTreeSet<usize>,
    finished: BTreeSet<usize>,
}

impl Looks {
    fn started(
        &mut self,
        row: usize,
        rows: &mut BTreeMap<usize, Told>,
        memory: &mut Memory,
    ) -> io::Result<()> {
        self.finished.clear();
        self.running.insert(row);
        // A row that was done again has nothing of the first time.
        if let Some(told) = rows.get_mut(&row) {
            memory.take(self.before.iter().map(weight).sum())?;
            *told = Told { held: self.before.clone(), ..Told::default() };
        }
        Ok(())
    }

    fn finished(&mut self, row: usize) {
        self.before.clear();
        self.running.remove(&row);
        self.finished.insert(row);
    }

    fn saw(
        &mut self,
        one: &CacheUse,
        rows: &mut BTreeMap<usize, Told>,
        memory: &mut Memory,
    ) -> io::Result<()> {
        let of = match one.phase {
            Phase::Before => return hold(&mut self.before, one, memory),
            Phase::With => &self.running,
            Phase::After => &self.finished,
        };
        for row in of {
            if let Some(told) = rows.get_mut(row) {
                hold(&mut told.held, one, memory)?;
            }
        }
        Ok(())
    }
}

fn hold(all: &mut Vec<CacheHeld>, one: &CacheUse, memory: &mut Memory) -> io::Result<()> {
    let before = all.len();
    if before < limits::GROUPS {
        CacheHeld::add(all, one);
    }
    all.get(before..).unwrap_or_default().iter().try_for_each(|held| memory.take(weight(held)))
}

/// Its memory, in bytes; a range of CPUs has at least two characters, and takes eight bytes.
fn weight(held: &CacheHeld) -> u64 {
    let bytes = size_of::<CacheHeld>() + held.group.len() + 4 * held.cpus.to_string().len();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Reads the events of these rows.
fn events(
    dir: &Directory,
    rows: impl Iterator<Item = usize>,
    memory: &mut Memory,
    damage: &mut Vec<String>,
) -> Happened {
    let rows_of = rows.map(|row| (row, Told::default())).collect();
    let mut all = Happened { rows_of, ..Happened::default() };
    let bad = match Lines::open(dir, files::EVENTS).and_then(|lines| all.read(lines, memory)) {
        Ok(bad) => bad,
        Err(error) => {
            damage.push(format!("events.jsonl cannot be read: {error}"));
            return all;
        }
    };
    if bad > 0 {
        damage.push(format!("events.jsonl: {bad} lines cannot be read"));
    }
    if all.left_out > 0 {
        damage.push(format!("events.jsonl: {} remarks or values exceed the number in any run", all.left_out));
    }
    all
}

impl Happened {
    /// Returns how many lines are no events.
    fn read<R: BufRead>(&mut self, mut lines: Lines<R>, memory: &mut Memory) -> io::Result<usize> {
        let (mut looks, mut bad) = (Looks::default(), 0);
        while let Some(line) = lines.next()? {
            let (Line::Whole(line) | Line::Cut(line)) = line else {
                bad += 1;
                continue;
            };
            match serde_json::from_slice::<Stamped>(line).map(|stamped| stamped.event) {
                Ok(Event::RunStarted { rows, .. }) => self.planned = self.planned.max(rows),
                Ok(Event::RowStarted { row, .. }) => looks.started(row, &mut self.rows_of, memory)?,
                Ok(Event::RowFinished { row, .. }) => looks.finished(row),
                Ok(Event::CacheUsed(one)) => looks.saw(&one, &mut self.rows_of, memory)?,
                Ok(Event::ValueMeasured { row, value }) => {
                    let room = |told: &&mut Told| told.values.len() < limits::ITEMS;
                    match self.rows_of.get_mut(&row).filter(room) {
                        Some(told) => {
                            memory.parse(line)?;
                            take_value(&mut told.values, value);
                        }
                        None => self.left_out += 1,
                    }
                }
                Ok(Event::Noted { .. }) if self.notes.len() >= limits::NOTES => self.left_out += 1,
                Ok(Event::Noted { environment, note }) => {
                    memory.parse(line)?;
                    self.notes.push((environment, note));
                }
                Ok(_) => {}
                Err(_) => bad += 1,
            }
        }
        Ok(bad)
    }
}

/// The directories of the rows by their number, from 0. A run that died as soon as it began has none.
///
/// # Errors
/// When they cannot be listed, or two have one number: one of them is not the run's.
fn row_dirs(dir: &Directory, damage: &mut Vec<String>) -> Result<BTreeMap<usize, String>, BundleError> {
    let not = |reason: String| BundleError::NotABundle { path: dir.path().to_owned(), reason };
    let names = match dir.beneath(SCENARIOS).and_then(|dir| dir.names()) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            damage.push(format!("{SCENARIOS} cannot be read: {error}"));
            return Ok(BTreeMap::new());
        }
        Err(error) => {
            return Err(not(format!("{SCENARIOS}: {error}")));
        }
    };
    let numbered = |name: String| {
        let number = name.split('-').next()?.parse::<usize>().ok()?.checked_sub(1)?;
        Some((number, name))
    };
    let mut dirs = BTreeMap::new();
    for (number, name) in names.into_iter().filter_map(|name| numbered(name.into_string().ok()?)) {
        if let Some(before) = dirs.insert(number, name.clone()) {
            let (one, other) = (names::words(&before), names::words(&name));
            return Err(not(format!(
                "{SCENARIOS} has two directories of row {}: {one} and {other}",
                number + 1
            )));
        }
    }
    Ok(dirs)
}

fn result(dir: &Directory, name: &str, memory: &mut Memory, damage: &mut Vec<String>) -> Option<RowResult> {
    let file = format!("{SCENARIOS}/{name}/result.json");
    let found = memory
        .read(dir, &file, limits::RESULT)
        .map_err(|error| error.to_string())
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| names::words(&error)));
    let mut found = found.map_err(|error| damage.push(format!("{file} cannot be read: {error}"))).ok()?;
    names::of_row(&file, &mut found, damage);
    largest::limit(&file, &mut found, damage);
    if let Outcome::Values(values) = &mut found.outcome
        && values.len() > limits::ITEMS
    {
        damage.push(format!(
            "{file}: {} of its values exceed the number in any row",
            values.len() - limits::ITEMS
        ));
        values.truncate(limits::ITEMS);
    }
    Some(found)
}

/// Reads the logs of a row. Without memory they stay unread.
fn row(
    dir: &Directory,
    name: &str,
    result: RowResult,
    told: Told,
    memory: &mut Memory,
    damage: &mut Vec<String>,
) -> Row {
    let Told { values, held } = told;
    let mut ticks = Ticks::planned(result.planned_ns);
    let own = memory.take(ROW).and_then(|()| dir.beneath(format!("{SCENARIOS}/{name}")));
    let (mut histograms, mut missed) = (Histograms::default(), Histograms::default());
    let mut short = RowWindows::default();
    match own {
        Ok(own) => {
            ticks::read(&own, name, &mut ticks, damage);
            (histograms, missed) = self::histograms(&own, name, &result, memory, damage);
            short = windows::read(&own, name, damage);
        }
        Err(error) => damage.push(format!("{SCENARIOS}/{name} cannot be read: {error}")),
    }
    let windows: usize = short.series.values().map(Maxima::bytes).sum();
    let bytes = ticks.bytes() + histograms.bytes() + missed.bytes() + windows;
    // An excess is reported with the row that would come next.
    let _ = memory.take(u64::try_from(bytes).unwrap_or(u64::MAX));
    let mut row = Row {
        result,
        ticks,
        histograms,
        missed,
        held,
        windows: short,
        slices: Vec::new(),
        directories: Vec::new(),
    };
    let file = format!("{SCENARIOS}/{name}/result.json");
    let told = possible(&file, &mut row, damage);
    if row.result.status == RowStatus::Measured && row.result.outcome.is_empty() {
        match &mut row.result.outcome {
            Outcome::Latency(_) => recover::result(&mut row),
            Outcome::Values(own) => {
                *own = values;
                in_order(own, row.result.measurement.entry().items);
            }
        }
    }
    // The data of the logs may be no better.
    if let Some(why) = possible(&file, &mut row, damage).or(told) {
        let why = format!("its figures are impossible: {why}");
        match row.result.outcome.is_empty() {
            true => row.result.end(Ending::because(RowEnd::Failed, why)),
            false => row.result.reason = Some(format!("{why}; figures from its logs replace them")),
        }
    }
    row
}

/// Takes figures away that cannot be, with the time that they were measured for, and says why.
fn possible(file: &str, row: &mut Row, damage: &mut Vec<String>) -> Option<String> {
    let logged = || {
        let ticks = row.ticks.series.values().map(|series| series.totals.max_ns);
        ticks.fold(row.histogram().max(), u64::max)
    };
    let why = impossible(&row.result, logged)?;
    row.result.outcome = Outcome::Latency(LatencyOutcome::default());
    row.result.measured_ns = 0;
    damage.push(format!("{file}: its figures are impossible: {why}"));
    Some(why)
}

/// Reads the logs of a row, with the ticks that had not reached them: measured and missed periods.
fn histograms(
    dir: &Directory,
    row: &str,
    result: &RowResult,
    memory: &mut Memory,
    damage: &mut Vec<String>,
) -> (Histograms, Histograms) {
    let ends = || hlog::ends(dir, hlog::LATENCY).unwrap_or_default();
    let pending = recover::Pending::read(dir, result.series_share_cpus(), ends);
    let (lengths, bytes) = hlog::lengths(dir, hlog::LATENCY).unwrap_or_default();
    let lengths: Vec<u64> = lengths.into_iter().chain(pending.lengths()).collect();
    let room = memory.for_row(bytes);
    let (mut all, mut none) = (Folding::new(lengths.clone(), room), Folding::new(lengths, room));
    for (log, folding) in [(hlog::LATENCY, &mut all), (hlog::MISSED, &mut none)] {
        let file = format!("{SCENARIOS}/{row}/{log}");
        match hlog::read(dir, log, |tag, place, counts| folding.add(tag, place, counts)) {
            Ok(0) => {}
            Ok(bad) => damage.push(format!("{file}: {bad} lines cannot be read")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => damage.push(format!("{file}: the rest cannot be read: {error}")),
        }
    }
    pending.add_to(&mut all, &mut none);
    (all.finish(), none.finish())
}
