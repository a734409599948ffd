//! The outcomes of collecting bundles.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tactus_data::collect::{Outcome, Summary, collect};
use tactus_data::table::{RUN, SERIES, TABLES, Table, columns};
use tactus_data::{DataError, DataSet};
use tactus_model::Evidence;
use tactus_model::bundle::FORMAT;
use tactus_model::outcome::Restart;

use crate::made::{Made, copied, made, manifest};

/// Collects, and returns what became of each by the name of its directory.
pub fn collected(places: &[&Path], into: &Path) -> (BTreeMap<String, Outcome>, Summary) {
    let places: Vec<PathBuf> = places.iter().map(|path| path.to_path_buf()).collect();
    let mut told = BTreeMap::new();
    let summary = collect(&places, into, &mut |path, outcome| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(told.insert(name, outcome.clone()), None, "each is told once");
    });
    (told, summary.unwrap())
}

/// The texts of a column, over all days.
pub fn texts(data: &Path, table: &Table, column: &str) -> Vec<String> {
    let data = DataSet::open(data).unwrap();
    let mut all = Vec::new();
    for day in data.days(table).unwrap() {
        let found = data.read(table, &day, &columns(table, &[column])).unwrap().unwrap();
        all.extend((0..found.rows).map(|row| found.columns[0].text(row).unwrap_or("-").to_owned()));
    }
    all
}

fn refused(outcome: &Outcome) -> &str {
    let Outcome::Refused(reason) = outcome else { panic!("{outcome:?}") };
    reason
}

/// Bundles of some machines on some days, in a directory.
fn some(dir: &Path, machines: u32, days: u32) -> PathBuf {
    let there = dir.join("bundles");
    fs::create_dir_all(&there).unwrap();
    for number in 0..machines {
        for day in 1..=days {
            made(number, day).write(&there.join(format!("{number}-{day}")));
        }
    }
    there
}

#[test]
fn bundles_become_rows_of_their_day_and_are_taken_once() {
    let dir = tempfile::tempdir().unwrap();
    let (bundles, data) = (some(dir.path(), 3, 2), dir.path().join("data"));
    let (told, summary) = collected(&[&bundles], &data);
    assert!(told.len() == 6 && told.values().all(|outcome| *outcome == Outcome::Taken), "{told:?}");
    assert_eq!((summary.taken, summary.there, summary.refused), (6, 0, 0));
    assert_eq!(DataSet::open(&data).unwrap().days(&RUN).unwrap(), ["2026-11-01", "2026-11-02"]);
    let runs = texts(&data, &RUN, "run");
    assert_eq!(runs.len(), 6);
    assert_eq!(texts(&data, &SERIES, "run").len(), 12, "two CPUs of each");
    assert!(texts(&data, &RUN, "profile").iter().all(|profile| profile == "realtime"));
    assert!(texts(&data, &RUN, "identity").iter().all(|identity| identity == "hardware"));
    let before: Vec<Vec<u8>> = files(&data).values().cloned().collect();
    // Again, and some of them by themselves: nothing is written.
    let (told, summary) = collected(&[&bundles.join("0-1"), &bundles.join("2-2")], &data);
    assert_eq!((told.len(), summary.there, summary.taken), (2, 2, 0));
    let (_, summary) = collected(&[&bundles], &data);
    assert_eq!((summary.there, summary.taken), (6, 0));
    assert_eq!(files(&data).values().cloned().collect::<Vec<_>>(), before);
    // The same bundle under two names is one run.
    let other = copied(&bundles.join("1-1"), &dir.path().join("more/again"));
    let (told, _) = collected(&[&other], &data);
    assert_eq!(told["again"], Outcome::There);
    assert_eq!(texts(&data, &RUN, "run"), runs);
}

/// Every file of a data set.
fn files(data: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for table in TABLES {
        for entry in fs::read_dir(data.join(table.name)).unwrap() {
            let path = entry.unwrap().path();
            all.insert(path.strip_prefix(data).unwrap().display().to_string(), fs::read(path).unwrap());
        }
    }
    all
}

#[test]
fn an_invalid_bundle_is_refused_by_name_and_the_rest_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("bundles");
    let write = |name: &str, number: u32| made(number, 1).write(&there.join(name));
    fs::create_dir_all(&there).unwrap();
    write("good", 1);
    let altered = write("altered", 2);
    let file = altered.join("scenarios/01-idle/ticks.csv");
    let text = fs::read_to_string(&file).unwrap().replace("2000", "1000");
    fs::write(&file, text).unwrap();
    fs::remove_file(write("missing", 3).join("scenarios/01-idle/latency.hlog")).unwrap();
    let cut = write("cut", 4).join("facts/host.json");
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    manifest(&write("goes-on", 5), |own| own.finished = None);
    manifest(&write("newer", 6), |own| own.format.major = FORMAT.major + 1);
    fs::write(write("no-manifest", 7).join("manifest.json"), "{\"format\": 7").unwrap();
    manifest(&write("no-moment", 8), |own| own.started = "yesterday".into());
    manifest(&write("outside", 9), |own| drop(own.files.insert("../good/plan.toml".into(), "0".repeat(64))));
    fs::create_dir(there.join("empty")).unwrap();
    fs::write(there.join("log.tar.gz"), &bytes[..40]).unwrap();
    let data = dir.path().join("data");
    let nowhere = dir.path().join("nowhere");
    let (told, summary) = collected(&[&there, &nowhere], &data);
    assert_eq!(told["good"], Outcome::Taken);
    let reasons = [
        ("altered", "ticks.csv is not as the run wrote it"),
        ("missing", "latency.hlog is not as the run wrote it"),
        ("cut", "host.json is not as the run wrote it"),
        ("goes-on", "the run is in progress, or died"),
        ("newer", "which this tactus does not read"),
        ("no-manifest", "it is not a bundle"),
        ("no-moment", "is not a valid time"),
        ("outside", "outside the bundle"),
        ("log.tar.gz", "it cannot be unpacked"),
        ("nowhere", "No such file"),
    ];
    for (name, reason) in reasons {
        assert!(refused(&told[name]).contains(reason), "{name}: {:?}", told[name]);
    }
    assert_eq!((summary.taken, summary.refused, told.len()), (1, reasons.len(), reasons.len() + 1));
    assert_eq!(texts(&data, &RUN, "name"), ["node001"]);
}

#[test]
fn a_run_that_was_gone_on_with_replaces_itself_and_another_bundle_of_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let first = made(1, 1).write(&dir.path().join("first"));
    let other = Made { max_ns: [99_000, 99_000], ..made(1, 1) };
    let forged = other.write(&dir.path().join("other"));
    let more = other.write(&dir.path().join("more"));
    manifest(&more, |own| {
        let session = own.sessions[0].clone();
        own.sessions.push(session);
    });
    assert_eq!(collected(&[&first], &data).0["first"], Outcome::Taken);
    let (told, _) = collected(&[&forged], &data);
    assert!(refused(&told["other"]).contains("another bundle of this run"), "{told:?}");
    assert_eq!(collected(&[&more], &data).0["more"], Outcome::GoneOnWith);
    assert_eq!(texts(&data, &RUN, "run").len(), 1);
    assert_eq!(texts(&data, &SERIES, "run").len(), 2, "its rows are there once");
    // Its earlier state is not newer.
    assert!(matches!(&collected(&[&first], &data).0["first"], Outcome::Refused(_)));
    // Both in one call: one is taken, the other named.
    let (told, summary) = collected(&[&first, &forged], &dir.path().join("new"));
    assert_eq!((summary.taken, summary.refused), (1, 1), "{told:?}");
}

#[test]
fn machines_of_one_name_are_apart_and_those_without_an_identity_are_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("bundles");
    fs::create_dir_all(&there).unwrap();
    for number in 1..=2 {
        let mut own = made(number, 1);
        own.machine.name = "vm".into();
        own.write(&there.join(format!("same{number}")));
    }
    let mut nameless = made(3, 1);
    (nameless.machine.id, nameless.machine.hardware) = (None, None);
    nameless.write(&there.join("nameless"));
    let data = dir.path().join("data");
    let (_, summary) = collected(&[&there], &data);
    let machines = texts(&data, &RUN, "machine");
    assert_eq!(machines.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{machines:?}");
    assert!(machines.contains(&"name:node003".to_owned()));
    assert!(summary.remarks.iter().any(|said| said.starts_with("2 machines are called `vm`")), "{summary:?}");
    assert!(
        summary.remarks.iter().any(|said| said.starts_with("1 machines reported only their names")),
        "{summary:?}"
    );
}

#[test]
fn versions_of_tactus_imports_and_runs_that_were_interrupted_are_taken_as_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("bundles");
    fs::create_dir_all(&there).unwrap();
    manifest(&made(1, 1).write(&there.join("older")), |own| {
        own.tactus = "0.0.9".into();
        own.format.minor = 0;
    });
    manifest(&made(2, 1).write(&there.join("newer")), |own| {
        own.tactus = "0.9.0".into();
        own.format.minor = 99;
    });
    Made { evidence: Evidence::Imported, ..made(3, 1) }.write(&there.join("imported"));
    let virtual_host = Made { evidence: Evidence::VirtualHost, ..made(4, 1) };
    manifest(&virtual_host.write(&there.join("interrupted")), |own| {
        own.status = tactus_model::event::RunStatus::Interrupted;
    });
    let data = dir.path().join("data");
    let (told, summary) = collected(&[&there], &data);
    assert_eq!(summary.taken, 4, "{told:?}");
    let mut versions = texts(&data, &RUN, "tactus");
    versions.sort();
    assert_eq!(versions, ["0.0.9", env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_VERSION"), "0.9.0"]);
    assert!(texts(&data, &RUN, "format").contains(&format!("{}.99", FORMAT.major)));
    let evidence = texts(&data, &RUN, "evidence");
    assert!(evidence.contains(&"imported".to_owned()) && evidence.contains(&"virtual host".to_owned()));
    assert!(texts(&data, &SERIES, "evidence").contains(&"virtual host".to_owned()));
    assert!(texts(&data, &RUN, "status").contains(&"interrupted".to_owned()));
}

/// Of the recorded bundles that of a run that died is refused, and no other.
#[test]
fn recorded_bundles_are_taken_unless_they_died() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tactus-bundle/tests/recorded"));
    let data = dir.path().join("data");
    let (told, summary) = collected(&[recorded], &data);
    assert!(refused(&told["killed"]).contains("in progress, or died"), "{told:?}");
    assert_eq!((summary.taken, summary.refused), (told.len() - 1, 1), "{told:?}");
    assert!(
        texts(&data, &RUN, "identity").iter().all(|identity| identity == "name"),
        "they do not say which machine it was"
    );
}

#[test]
fn an_archive_is_a_bundle_and_a_cut_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    made(1, 1).write(&dir.path().join("bundle"));
    let archive = dir.path().join("node1.tar.gz");
    let tar =
        Command::new("tar").arg("-C").arg(dir.path()).args(["-czf"]).arg(&archive).arg("bundle").status();
    assert!(tar.unwrap().success());
    let data = dir.path().join("data");
    let (told, _) = collected(&[&archive], &data);
    assert_eq!(told["node1.tar.gz"], Outcome::Taken);
    let bytes = fs::read(&archive).unwrap();
    fs::write(dir.path().join("cut.tgz"), &bytes[..bytes.len() - 200]).unwrap();
    let (told, _) = collected(&[&dir.path().join("cut.tgz")], &data);
    assert!(refused(&told["cut.tgz"]).contains("cannot be unpacked"), "{told:?}");
}

#[test]
fn what_was_unpacked_is_gone_behind_a_collection_and_behind_one_that_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let bundles = some(dir.path(), 3, 1);
    let data = dir.path().join("data");
    let sticks = dir.path().join("sticks");
    fs::create_dir_all(&sticks).unwrap();
    for (stick, bundle) in [("a.tgz", "0-1"), ("b.tgz", "1-1")] {
        let tar = Command::new("tar")
            .arg("-C")
            .arg(&bundles)
            .arg("-czf")
            .arg(sticks.join(stick))
            .arg(bundle)
            .status();
        assert!(tar.unwrap().success());
    }
    // An archive of archives is refused.
    let tar = Command::new("tar")
        .arg("-C")
        .arg(&sticks)
        .arg("-czf")
        .arg(sticks.join("c.tgz"))
        .arg("a.tgz")
        .status();
    assert!(tar.unwrap().success());
    let nothing_is_left = || {
        let left = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".un")).collect();
        assert!(left.is_empty(), "{left:?}");
    };
    let (told, summary) = collected(&[&sticks], &data);
    assert_eq!((&told["a.tgz"], &told["b.tgz"]), (&Outcome::Taken, &Outcome::Taken));
    assert!(refused(&told["c.tgz"]).contains("those archives are not opened"), "{told:?}");
    assert_eq!((summary.taken, summary.refused), (2, 1));
    nothing_is_left();
    fs::create_dir_all(data.join(".unpacked/.tmpAbCdEf/bundle/scenarios")).unwrap();
    fs::write(data.join(".unpacked/.tmpAbCdEf/bundle/manifest.json"), "half").unwrap();
    let (told, _) = collected(&[&bundles], &data);
    assert_eq!((&told["0-1"], &told["2-1"]), (&Outcome::There, &Outcome::Taken));
    nothing_is_left();
}

#[test]
fn what_was_being_written_when_it_ended_is_not_doubled_and_disturbs_no_reader() {
    let dir = tempfile::tempdir().unwrap();
    let (bundles, data) = (some(dir.path(), 2, 1), dir.path().join("data"));
    collected(&[&bundles.join("0-1")], &data);
    let runs = fs::read(data.join("run/2026-11-01.parquet")).unwrap();
    collected(&[&bundles], &data);
    // As if it had ended before the last file was put in its place, with half a file beside it.
    fs::write(data.join("run/2026-11-01.parquet"), &runs).unwrap();
    fs::write(data.join("run/.2026-11-01.parquet.0123456789abcdef.new"), &runs[..runs.len() / 2]).unwrap();
    assert_eq!(texts(&data, &RUN, "name"), ["node000"]);
    let (told, _) = collected(&[&bundles], &data);
    assert_eq!((&told["0-1"], &told["1-1"]), (&Outcome::There, &Outcome::Taken));
    let left = fs::read_dir(data.join("run")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        left.into_iter().all(|name| !name.to_string_lossy().starts_with('.')),
        "half a file does not stay"
    );
    assert_eq!(texts(&data, &SERIES, "run").len(), 4);
    assert_eq!(texts(&data, &RUN, "name"), ["node000", "node001"]);
    let facts = texts(&data, &tactus_data::table::FACT, "path");
    assert_eq!(facts.len(), 4, "{facts:?}");
}

#[test]
fn a_directory_of_something_else_a_newer_data_set_and_a_second_writer_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let places = [made(1, 1).write(&dir.path().join("bundle"))];
    let none = &mut |_: &Path, _: &Outcome| {};
    let error = collect(&places, &places[0], none).unwrap_err();
    assert!(matches!(error, DataError::NotADataSet { .. }), "{error}");
    let data = dir.path().join("data");
    let held = DataSet::open_to_write(&data).unwrap();
    assert!(matches!(collect(&places, &data, none).unwrap_err(), DataError::Busy(_)));
    drop(held);
    collect(&places, &data, none).unwrap();
    let about = fs::read_to_string(data.join("data-set.json")).unwrap();
    fs::write(data.join("data-set.json"), about.replace("\"major\":1", "\"major\":2")).unwrap();
    let error = collect(&places, &data, none).unwrap_err();
    assert!(matches!(error, DataError::OtherVersion { .. }), "{error}");
    assert!(error.hint().is_some());
    fs::write(data.join("data-set.json"), "what?").unwrap();
    assert!(matches!(DataSet::open(&data).unwrap_err(), DataError::NotADataSet { .. }));
}

#[test]
fn facts_are_told_when_they_change() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for day in 1..=3 {
        let mut own = made(1, day);
        if day == 3 {
            own.facts[0].1 = "quiet isolcpus=1".into();
        }
        collected(&[&own.write(&dir.path().join(format!("{day}")))], &data);
    }
    let fact = &tactus_data::table::FACT;
    assert_eq!(texts(&data, fact, "change"), ["first", "first", "changed"]);
    assert_eq!(texts(&data, fact, "value").last().map(String::as_str), Some("quiet isolcpus=1"));
}

#[test]
fn of_the_directory_of_a_fleet_what_the_fleet_took_is_taken_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = dir.path().join("fleets/night");
    for (number, place) in [(1, "bundles"), (2, "refused"), (3, "incoming"), (4, "archives")] {
        fs::create_dir_all(fleet.join(place)).unwrap();
        made(number, 1).write(&fleet.join(place).join(format!("node{number}")));
    }
    fs::write(fleet.join("archives/node5.tar.gz"), "half").unwrap();
    fs::write(fleet.join("fleet.json"), "{}").unwrap();
    for (number, place) in [fleet.as_path(), dir.path().join("fleets").as_path()].into_iter().enumerate() {
        let (told, _) = collected(&[place], &dir.path().join(format!("data{number}")));
        assert_eq!(told, [("node1".to_owned(), Outcome::Taken)].into());
    }
    // A path that the user names is read.
    let (told, _) = collected(&[&fleet.join("refused")], &dir.path().join("data"));
    assert_eq!(told["node2"], Outcome::Taken);
}

#[test]
fn how_often_an_environment_died_and_for_how_long_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    let died = |at_ns: u64| Restart { at_ns, first_tick: 7, gap_ns: 3_000_000_000, reason: "killed".into() };
    Made { restarts: vec![died(1), died(2)], ..made(1, 1) }.write(&there.join("died"));
    made(2, 1).write(&there.join("lived"));
    collected(&[&there], &data);
    let data = DataSet::open(&data).unwrap();
    let wanted = columns(&SERIES, &["run", "restarts", "gap_ns"]);
    let found = data.read(&SERIES, "2026-11-01", &wanted).unwrap().unwrap();
    let rows = (0..found.rows).map(|row| (found.columns[1].whole(row), found.columns[2].whole(row)));
    let (died, lived) = ((Some(2), Some(6_000_000_000)), (Some(0), Some(0)));
    assert_eq!(rows.collect::<Vec<_>>(), [died, died, lived, lived]);
    let set = tactus_data::question::Set::read(&data).unwrap();
    assert_eq!(set.places.iter().map(|place| place.restarts).collect::<Vec<_>>(), [Some(2), Some(0)]);
}

#[test]
fn copies_of_one_image_that_nothing_tells_apart_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("bundles");
    fs::create_dir_all(&there).unwrap();
    for number in 1..=3 {
        let mut own = made(number, 1);
        (own.machine.id, own.machine.hardware) = (Some("one image".into()), None);
        own.write(&there.join(format!("{number}")));
    }
    let (_, summary) = collected(&[&there], &dir.path().join("data"));
    let said = "one machine, or copies of one image: node001, node002, node003";
    assert_eq!(summary.remarks, [said]);
}

#[test]
fn manifests_and_readings_beyond_those_of_any_machine_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    manifest(&made(1, 1).write(&there.join("long")), |own| {
        own.files.extend((0..60_000).map(|number| (format!("{number}"), "0".repeat(64))));
    });
    for (number, name, readings) in [(2, "many", 65_537), (3, "most", 65_536)] {
        let mut own = made(number, 1);
        own.facts = (0..readings).map(|number| (format!("/{number}"), String::new())).collect();
        own.write(&there.join(name));
    }
    let (told, _) = collected(&[&there], &data);
    assert!(refused(&told["long"]).contains("longer than any run writes"), "{told:?}");
    assert!(refused(&told["many"]).contains("65537 readings"), "{told:?}");
    assert_eq!(told["most"], Outcome::Taken);
}

/// Each day has separate files: 8000 bundles of a few kilobytes made 56 000 files.
#[test]
fn of_more_new_days_than_one_call_may_bring_the_rest_comes_with_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    let first = made(1, 1).write(&dir.path().join("first"));
    for day in 0..402_i64 {
        let started = jiff::Timestamp::from_second(1_600_000_000 + day * 86_400).unwrap().to_string();
        manifest(&copied(&first, &there.join(format!("{day:03}"))), |own| own.started = started);
    }
    let (told, summary) = collected(&[&there], &data);
    assert_eq!((summary.taken, summary.refused), (400, 2));
    assert!(refused(&told["401"]).contains("more than 400 new days"), "{:?}", told["401"]);
    assert_eq!(DataSet::open(&data).unwrap().days(&RUN).unwrap().len(), 400);
    let (_, summary) = collected(&[&there], &data);
    assert_eq!((summary.there, summary.taken, summary.refused), (400, 2, 0));
}
