//! Writes the input of `scripts/bench/fleet.py`: bundles of machines that do not exist, or a data set of many
//! of them, made by the writer that collects. All of it is simulated, and claims nothing about any machine.
//!
//! `simulated-fleet bundles DIR FROM COUNT`: copies of the bundle FROM, each of another machine.
//! `simulated-fleet data DIR MACHINES DAYS`: a data set. BIOS 2.2 with microcode 0xa2 misses 100 us, node00017 drifts.
//! `simulated-fleet ask DIR`: answers, and the time that takes, as JSON.
#![expect(clippy::print_stdout, reason = "an example says what it found")]
#![expect(clippy::disallowed_methods, reason = "a tool of the developers, not a part of tactus")]

#[path = "../tests/data/random.rs"]
mod random;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use tactus_data::DataSet;
use tactus_data::question::{Asked, Set, ask};
use tactus_data::table::{FINDING, RUN, SERIES, Table};
use tactus_format::export::table::Cell;
use tactus_model::bundle::Manifest;
use tactus_model::number::float;

use self::random::Random;

/// 2026-10-01T03:00:00Z, in microseconds since 1970.
const BEGIN_US: i64 = 1_790_823_600_000_000;
const DAY_US: i64 = 86_400_000_000;
/// Threads that measure on a machine.
const CPUS: u64 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["bundles", dir, from, count] => bundles(Path::new(dir), Path::new(from), count.parse()?),
        ["data", dir, machines, days] => data(Path::new(dir), machines.parse()?, days.parse()?),
        ["ask", dir] => asked(Path::new(dir)),
        _ => Err("bundles DIR FROM COUNT | data DIR MACHINES DAYS | ask DIR".into()),
    }
}

fn bundles(dir: &Path, from: &Path, count: u32) -> Result<(), Box<dyn Error>> {
    let own: Manifest = serde_json::from_slice(&std::fs::read(from.join("manifest.json"))?)?;
    for number in 0..count {
        let to = dir.join(format!("node{number:05}"));
        copy(from, &to)?;
        let mut manifest = own.clone();
        manifest.machine.name = format!("node{number:05}");
        manifest.machine.id = Some(format!("{number:08x}{:024x}", 0));
        manifest.machine.hardware = None;
        std::fs::write(to.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// A row: these cells, with all other columns empty.
fn row<'a>(table: &Table, said: &[(&str, Cell<'a>)]) -> Vec<Cell<'a>> {
    let cell = |name: &str| {
        let found = said.iter().find(|(own, _)| *own == name);
        found.map_or(Cell::Empty, |(_, cell)| cell.clone())
    };
    (table.columns)().iter().map(|column| cell(column.name)).collect()
}

/// A machine: firmware, microcode, kernel, and its key.
struct Machine {
    kinds: [u64; 3],
    key: String,
}

fn data(dir: &Path, machines: u64, days: i64) -> Result<(), Box<dyn Error>> {
    let data = DataSet::open_to_write(dir)?;
    let mut random = Random(4_711);
    let machines: Vec<Machine> = (0..machines)
        .map(|_| Machine {
            kinds: [random.below(3), random.below(3), random.below(4)],
            key: format!("{:016x}", random.next()),
        })
        .collect();
    for day in 0..days {
        let begin = BEGIN_US + day * DAY_US;
        let name = jiff::Timestamp::from_microsecond(begin)?.strftime("%Y-%m-%d").to_string();
        // Of 50 runs one is not there; all begin within an hour, and are written in the order of their time as `collect` does.
        let mut there: Vec<(i64, usize, &Machine, String)> = Vec::new();
        for (at, machine) in machines.iter().enumerate() {
            if random.below(50) > 0 {
                let started = begin + i64::try_from(random.below(3_600_000_000))?;
                there.push((started, at, machine, format!("{:016x}", random.next())));
            }
        }
        there.sort_by_key(|(started, ..)| *started);
        data.write(&SERIES, &name, |take| {
            for (_, at, machine, run) in &there {
                for cpu in 0..CPUS {
                    take(&series(&mut random, *at, machine, run, cpu, day.unsigned_abs()))?;
                }
            }
            Ok(())
        })?;
        data.write(&FINDING, &name, |take| {
            for (_, at, _, run) in &there {
                for check in (0..60).filter(|check| (check * 7 + at * 13) % 17 == 0) {
                    let cells = [
                        ("run", run.into()),
                        ("environment", "host".into()),
                        ("role", "host".into()),
                        ("id", format!("check-{check}").into()),
                        ("state", "finding".into()),
                        ("severity", "minor".into()),
                        ("message", format!("what check {check} says of this system, in a sentence").into()),
                    ];
                    take(&row(&FINDING, &cells))?;
                }
            }
            Ok(())
        })?;
        data.write(&RUN, &name, |take| {
            there.iter().try_for_each(|(started, at, machine, run)| {
                take(&of_run(&mut random, *at, machine, run, *started))
            })
        })?;
    }
    Ok(())
}

fn series<'a>(
    random: &mut Random,
    at: usize,
    machine: &Machine,
    run: &'a String,
    cpu: u64,
    day: u64,
) -> Vec<Cell<'a>> {
    let bad = machine.kinds[0] == 2 && machine.kinds[1] == 2;
    let base = 1_900 + random.below(200) + if at == 17 { 60 * day } else { 0 };
    let max = base * 6 + random.below(20_000) + if bad { 90_000 + random.below(60_000) } else { 0 };
    // Three significant digits, as quantiles of a histogram have: the largest of the values that share a bucket of it.
    let digits = |value: u64| {
        let step = 1 << value.max(1).ilog2().saturating_sub(10);
        Cell::Whole(value / step * step + step - 1)
    };
    let cells = [
        ("run", run.into()),
        ("name", "host, idle".into()),
        ("environment", "host".into()),
        ("environment_kind", "host".into()),
        ("evidence", "bare metal".into()),
        ("measurement", "timer".into()),
        ("interval_ns", Cell::Whole(200_000)),
        ("load", "[]".into()),
        ("self_test_passed", Cell::Flag(true)),
        ("scenario", Cell::Whole(1)),
        ("series", format!("cpu{cpu}/t{cpu}/thread").into()),
        ("cpu", Cell::Whole(cpu)),
        ("priority", Cell::Whole(95)),
        ("kind", "thread".into()),
        ("whole", Cell::Flag(true)),
        ("cycles", Cell::Whole(2_999_900 + random.below(200))),
        ("overruns", Cell::Whole(0)),
        ("lost", Cell::Whole(0)),
        ("min_ns", Cell::Whole(base - 500 + random.below(100))),
        ("mean_ns", Cell::Real(float(base + 300 + random.below(64)))),
        ("p50_ns", digits(base + 200 + random.below(64))),
        ("p99_ns", digits(base + 1_400 + random.below(256))),
        ("p999_ns", digits(base + 2_600 + random.below(512))),
        ("p9999_ns", digits(base * 2 + 2_600 + random.below(1_024))),
        ("p99999_ns", digits(base * 3 + 2_600 + random.below(2_048))),
        ("max_ns", Cell::Whole(max)),
        ("suffices", Cell::Flag(true)),
    ];
    row(&SERIES, &cells)
}

fn of_run<'a>(
    random: &mut Random,
    at: usize,
    machine: &'a Machine,
    run: &'a String,
    started: i64,
) -> Vec<Cell<'a>> {
    let [bios, microcode, kernel] = machine.kinds;
    let mut later = |most| i64::try_from(random.below(most)).unwrap_or(0);
    let cells = [
        ("run", run.into()),
        ("machine", (&machine.key).into()),
        ("identity", "hardware".into()),
        ("name", format!("node{at:05}").into()),
        ("started", Cell::Moment(started)),
        ("finished", Cell::Moment(started + 600_000_000 + later(900_000))),
        ("status", "complete".into()),
        ("sessions", Cell::Whole(1)),
        ("scenarios", Cell::Whole(1)),
        ("measured", Cell::Whole(1)),
        ("failed", Cell::Whole(0)),
        ("plan", "fleet".into()),
        ("plan_sha256", "0".repeat(64).into()),
        ("engine", "slurm".into()),
        ("job", format!("{}", started / DAY_US * 1_000 + i64::try_from(at).unwrap_or(0)).into()),
        ("tactus", "0.1.0".into()),
        ("format", "1.7".into()),
        ("evidence", "bare metal".into()),
        ("processor", "a processor of the simulation".into()),
        ("cpus", "0-7".into()),
        ("kernel", format!("6.{kernel}.0-rt #1 SMP PREEMPT_RT").into()),
        ("system", "Debian GNU/Linux 13 (trixie)".into()),
        ("bios", format!("Maker 2.{bios} 01/02/2026").into()),
        ("microcode", format!("0xa{microcode}").into()),
        ("profile", "realtime".into()),
        ("content", format!("{:016x}", random.next()).into()),
    ];
    row(&RUN, &cells)
}

fn asked(dir: &Path) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let set = Set::read(&DataSet::open(dir)?)?;
    let read = begun.elapsed();
    // Asked just after the last run, whenever that was.
    let last = set.runs.last().map_or(0, |run| run.started_us);
    let now = Duration::from_micros(last.unsigned_abs());
    let begun = Instant::now();
    let answers = ask(&set, &Asked { max_ns: Some(100_000), ..Asked::at(now) });
    let found: Vec<_> = answers.explained.found.iter().map(|one| one.is.join(", ")).collect();
    let drifted: Vec<_> = answers.drift.found.iter().map(|one| one.name.as_str()).collect();
    println!(
        "{}",
        serde_json::json!({
            "runs": set.runs.len(),
            "scenarios": set.places.len(),
            "read_s": read.as_secs_f64(),
            "answered_s": begun.elapsed().as_secs_f64(),
            "explained": found.first(),
            "drifted": drifted,
        })
    );
    Ok(())
}
