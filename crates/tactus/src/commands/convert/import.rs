//! Measurements of other tools, as a bundle.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use tactus_bundle::{self as bundle, BundleError, Location, Trust, Writer};
use tactus_format::import::{self, Ended, Options, Recording, Series, Values};
use tactus_model::bundle::{Contents, Machine, RowResult};
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::{Spin, Timer};
use tactus_model::event::{RunStatus, Ticked};
use tactus_model::latency::{Latency, Sparse, Totals};
use tactus_model::message::{Note, ThreadCounters, Tick};
use tactus_model::number::float;
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, RowEnd, SeriesResult};
use tactus_model::plan::{Environment, Plan, Scenario};
use tactus_model::scheduling::Policy;
use tactus_model::series::{SeriesKey, Thread};
use tactus_model::{Evidence, Nanos};
use tactus_run::plan::Choices;
use tactus_system::Directory;

use crate::cli::Convert;
use crate::exit::Failure;

/// The kind of an environment that tactus has not seen.
const KIND: &str = "imported";

/// The longest measurement that is believed, in ns: a hundred years, as a bundle's logs hold them.
const LONGEST_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// How the names of packed files end.
const PACKED: [&str; 4] = ["gz", "xz", "zst", "zstd"];

/// A recording and the row that it becomes.
struct Row {
    recording: Recording,
    result: RowResult,
}

/// Reads the files into a new bundle there.
pub fn import(arguments: &Convert, at: Location) -> Result<(Directory, Contents), Failure> {
    let options = Options { unit_ns: arguments.unit.map(crate::cli::Unit::ns) };
    let mut plan = Plan { name: "import".into(), title: Some("Imported".into()), ..Plan::default() };
    let (mut rows, mut names) = (Vec::new(), BTreeSet::new());
    let called = called(arguments)?;
    let choices = Choices { require: arguments.limits.by_environment(), ..Choices::default() };
    for (file, called) in arguments.inputs.iter().zip(called) {
        let recordings = read(file, options)?;
        let place = place(&called.unwrap_or_else(|| stem(file)), &mut names);
        let kind = Environment { kind: KIND.into(), ..Environment::default() };
        plan.environment.insert(place.clone(), kind);
        for recording in recordings {
            let require = choices.required(&place);
            let result = RowResult { require, ..row(file, &place, &recording) };
            plan.scenario.push(Scenario {
                name: Some(result.name.clone()),
                environment: Some(place.clone()),
                duration: Some(Nanos(result.planned_ns)),
                measurement: Some(result.measurement.clone()),
                require: result.require.clone(),
                ..Scenario::default()
            });
            rows.push(Row { recording, result });
        }
    }
    if let Some(name) = choices.require.keys().find(|name| !name.is_empty() && !names.contains(*name)) {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(Failure::say(
            format!("a limit for `{name}`: no imported file has that name"),
            format!("use one of `{}`", known.join("`, `")),
        ));
    }
    let results: Vec<RowResult> = rows.iter().map(|row| row.result.clone()).collect();
    let machine = machine(&rows);
    let mut writer = Writer::create(at, &plan, &results, machine.clone())?;
    writer.begin_session(machine, None, None)?;
    let dir = writer.dir().clone();
    for (number, row) in rows.into_iter().enumerate() {
        write(&writer, number, row)?;
    }
    writer.finish(RunStatus::Complete)?;
    let contents = bundle::read_from(&dir, Trust::Whole)?;
    Ok((dir, contents))
}

/// The word for standard input, and its name in messages.
const STDIN: &str = "-";
const STDIN_NAME: &str = "standard input";
const FILE_HINT: &str = "give the path of an existing file, or of a bundle";

fn read(file: &Path, options: Options) -> Result<Vec<Recording>, Failure> {
    let read = if is_stdin(file) {
        import::read(std::io::stdin().lock(), options)
    } else {
        let opened =
            opened(file).map_err(|error| Failure::say(format!("{}: {error}", file.display()), FILE_HINT))?;
        import::read(opened, options)
    };
    read.map_err(|error| {
        let whole = || "copy or write it again: tactus imports nothing from an incomplete file".to_owned();
        Failure::say(format!("{}: {error}", name_of(file).display()), error.hint.unwrap_or_else(whole))
    })
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == STDIN
}

/// As the user knows it.
fn name_of(file: &Path) -> &Path {
    if is_stdin(file) { Path::new(STDIN_NAME) } else { file }
}

fn opened(file: &Path) -> std::io::Result<File> {
    let name = file.file_name().ok_or(std::io::ErrorKind::IsADirectory)?;
    Directory::open(file.parent().unwrap_or(Path::new("")))?.file(name)
}

/// The user's name for each file, if any.
fn called(arguments: &Convert) -> Result<Vec<Option<String>>, Failure> {
    let (names, files) = (arguments.name.len(), arguments.inputs.len());
    if names > 0 && names != files {
        return Err(Failure::say(
            format!("--name: {names} for {files} files"),
            "repeat it for each file, in the order of the files",
        ));
    }
    let own = arguments.name.iter().cloned().map(Some);
    Ok(own.chain(std::iter::repeat(None)).take(files).collect())
}

/// The name of a file without its ending.
fn stem(file: &Path) -> String {
    let mut file = name_of(file);
    // run.txt.gz is what run.txt is.
    let packed = file.extension().is_some_and(|end| PACKED.iter().any(|packed| end == *packed));
    if let Some(unpacked) = file.file_stem().filter(|_| packed) {
        file = Path::new(unpacked);
    }
    file.file_stem().map_or_else(|| KIND.into(), |stem| stem.to_string_lossy().into_owned())
}

/// A name that no other file has.
fn place(name: &str, names: &mut BTreeSet<String>) -> String {
    let stem: String = name.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    let mut name = stem.clone();
    let mut number = 2_u32;
    while !names.insert(name.clone()) {
        name = format!("{stem} ({number})");
        number += 1;
    }
    name
}

/// The row of a recording, before its numbers.
fn row(file: &Path, place: &str, recording: &Recording) -> RowResult {
    let run = recording.run.map(|run| format!("run {run}"));
    let words = run.into_iter().chain(recording.part.map(str::to_owned));
    let name = words.fold(place.to_owned(), |name, word| format!("{name}, {word}"));
    let mut cpus: Vec<u32> =
        recording.series.iter().map(|series| series.cpu.unwrap_or(series.thread)).collect();
    cpus.sort_unstable();
    let most = cpus.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(1);
    let measurement = match recording.values {
        Values::Gaps => Measure::Spin(Spin::default()),
        Values::Interrupts => Measure::Timer(Timer::default()),
        Values::Wakeups => {
            let threads = u32::try_from(most).ok().filter(|threads| *threads > 1);
            Measure::Timer(Timer { threads, ..Timer::default() })
        }
    };
    let priority = recording.series.iter().find_map(|series| series.priority);
    let mut notes: Vec<Note> = first_notes(recording);
    notes.push(Note::info(format!(
        "read from {} ({}): {}",
        name_of(file).display(),
        recording.instrument,
        match recording.values {
            Values::Interrupts =>
                "tactus did not supervise it, and cannot prove that the machine is the one \
                it names",
            _ => "tactus did not measure, and cannot prove anything about it",
        }
    )));
    notes.extend(recording.command.iter().map(|command| Note::info(format!("it was run as `{command}`"))));
    if !recording.conditions.is_empty() {
        notes.push(Note::info(format!("from the file: {}", recording.conditions.join("; "))));
    }
    // An interrupt has none, nor has SCHED_DEADLINE.
    let has_none = recording.values == Values::Interrupts || recording.policy == Some(Policy::Deadline);
    if priority.is_none() && !has_none {
        notes.push(Note::info("the file does not contain the priority of the measurement"));
    }
    if recording.interval_ns.is_none() && recording.values != Values::Gaps {
        notes.push(Note::info(
            "the file does not contain the interval: latencies cannot be corrected for \
            missed periods",
        ));
    }
    if recording.series.iter().any(|series| series.cpu.is_none()) {
        notes.push(Note::info(
            "the file does not contain the CPU of a thread: the n-th thread is shown as CPU n",
        ));
    }
    notes.extend(recording.notes.iter().map(Note::info));
    let longest = recording.series.iter().map(|series| series.totals.cycles).max().unwrap_or(0);
    let by_cycles = recording.interval_ns.and_then(|interval| interval.checked_mul(longest));
    let duration_ns = recording.duration_ns.or(by_cycles).filter(|ns| *ns <= LONGEST_NS).unwrap_or(0);
    RowResult {
        evidence: Some(Evidence::Imported),
        measurement,
        interval_ns: recording.interval_ns.unwrap_or(0),
        priority: priority.unwrap_or(0),
        // SCHED_FIFO at priority 0, which no thread has, if the policy is unknown.
        policy: recording.policy.unwrap_or(Policy::Fifo),
        planned_ns: duration_ns,
        measured_ns: duration_ns,
        notes,
        ..RowResult::unmeasured(name, place, KIND)
    }
}

/// Notes that come before all others.
fn first_notes(recording: &Recording) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(ended) = &recording.ended_by {
        notes.push(Note::info(format!("{}: {}", ended_words(ended), ended.said)));
    }
    if recording.policy == Some(Policy::Other) {
        notes.push(Note::info(
            "it was not a real-time measurement: its threads ran with SCHED_OTHER and shared their CPUs \
with all other SCHED_OTHER tasks",
        ));
    }
    if let Some(nothing) = &recording.found_nothing {
        notes.push(Note::info(nothing.clone()));
    }
    let missed = recording.least_missed();
    if missed > 0 {
        let periods = if missed == 1 { "period was" } else { "periods were" };
        notes.push(Note::info(format!(
            "at least {missed} {periods} missed, as its largest latencies and its interval show: the file \
             does not count them"
        )));
    }
    notes
}

/// Which latency ended a run.
fn ended_words(ended: &Ended) -> String {
    match ended.value_ns {
        Some(ns) => format!("a latency of {} ended the run", tactus_report::units::latency(float(ns))),
        None => "a latency above its limit ended the run".into(),
    }
}

/// The machine that the files speak of.
fn machine(rows: &[Row]) -> Machine {
    let first =
        |of: fn(&Recording) -> &Option<String>| rows.iter().find_map(|row| of(&row.recording).clone());
    Machine {
        name: first(|recording| &recording.node).unwrap_or_default(),
        kernel: first(|recording| &recording.kernel).unwrap_or_default(),
        ..Machine::default()
    }
}

/// The key of a series.
fn key(recording: &Recording, series: &Series) -> SeriesKey {
    let kind = match (recording.values, recording.part) {
        (Values::Gaps, _) => "gap",
        (Values::Interrupts, _) => "interrupt",
        (Values::Wakeups, Some("IRQ")) => "irq",
        (Values::Wakeups, Some("user")) => "user",
        (Values::Wakeups, _) => "thread",
    };
    SeriesKey {
        cpu: series.cpu.unwrap_or(series.thread),
        thread: series.thread,
        priority: series.priority.unwrap_or(0),
        kind: kind.into(),
    }
}

/// Writes a row: one tick of each series, as long as all of it.
fn write(writer: &Writer, number: usize, row: Row) -> Result<(), BundleError> {
    let Row { recording, mut result } = row;
    let mut log = writer.begin_row(number, &result, result.planned_ns.max(1))?;
    let mut all = Latency::new();
    let mut found = Vec::new();
    for series in &recording.series {
        let key = key(&recording, series);
        let latency = series.latency();
        // As for an instrument that reports totals alone: unknown figures are unknown in the tick as well.
        let is_known = series.knows_min && latency.totals.sum_ns < u64::MAX;
        let min_ns = if is_known { latency.totals.min_ns } else { u64::MAX };
        let tick = Tick {
            activity: 0,
            series: key.clone(),
            n: 0,
            at_ns: result.measured_ns.max(1),
            now: Totals { min_ns, ..latency.totals },
            total: latency.totals,
            counts: Sparse::of(&latency.raw),
            missed: series.missed(),
            thread: ThreadCounters::default(),
        };
        log.tick(&Ticked::of(number, tick, latency.summary().p99_ns))?;
        all.merge(&latency);
        let summary = recording.summary(&latency, [series]);
        found.push(SeriesResult {
            key,
            summary,
            counters: ThreadCounters::default(),
            outliers: Vec::new(),
            whole: true,
        });
    }
    result.notes.extend(log.finish()?.note());
    result.threads =
        Some(found.iter().map(|series| Thread { cpu: series.key.cpu, thread: series.key.thread }).collect());
    let is_empty = all.totals.cycles == 0;
    let summary = recording.summary(&all, &recording.series);
    let summary = Some(summary).filter(|_| !is_empty && recording.found_nothing.is_none());
    result.outcome = Outcome::Latency(LatencyOutcome { series: found, all: summary });
    result.end(match (&recording.ended_by, recording.found_nothing) {
        (Some(ended), _) => Ending::because(RowEnd::Broke, ended_words(ended)),
        (None, Some(nothing)) => Ending::because(RowEnd::Complete, nothing),
        (None, None) if is_empty => Ending::because(RowEnd::Unavailable, "the file has no values for it"),
        (None, None) => Ending::complete(),
    });
    result.forget_uncounted();
    writer.result(number, &result)
}
