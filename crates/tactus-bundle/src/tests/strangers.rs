//! Bundles of strangers: planted files are neither read nor written through, and texts take no more than a
//! bundle may.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tactus_model::bundle::{Asked, Machine, RowResult};
use tactus_model::facts::Facts;
use tactus_model::finding::{Audit, Isolation, Role};
use tactus_model::plan::{Plan, Reference, Scenario};
use tactus_system::Directory;

use super::{TICK_NS, bundle, row, tick};
use crate::{BundleError, Resumed, Trust, Writer, read};

/// An interrupted run that can be continued, beside files that it must not touch.
pub(super) fn begun() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("bundle");
    let mut writer = Writer::create(&dir, &Plan::default(), &[row(10)], Machine::default()).unwrap();
    writer.keep_source(&Plan::default(), Asked::default()).unwrap();
    writer.facts("host", &Facts::default()).unwrap();
    writer.consoles().unwrap();
    let mut log = writer.begin_row(0, &row(10), TICK_NS).unwrap();
    let mut total = tactus_model::latency::Latency::new();
    for n in 0..3 {
        let tick = tick(n, &mut total);
        log.tick(&tactus_model::event::Ticked::of(0, tick, None)).unwrap();
    }
    log.finish().unwrap();
    fs::write(dir.join("console/01-host.log"), "booted").unwrap();
    fs::write(home.path().join("outside"), "kept").unwrap();
    fs::create_dir(home.path().join("elsewhere")).unwrap();
    (home, dir)
}

/// Everything in a directory, by path.
fn everything(dir: &Path) -> Vec<PathBuf> {
    let all = Directory::open(dir).unwrap().walk().unwrap();
    all.into_iter().map(|entry| dir.join(entry.path)).collect()
}

fn go_on(dir: &Path) -> Result<Writer, BundleError> {
    let resumed = Resumed::open(dir)?;
    resumed.writer(&Plan::default(), &[row(10)], &[false])
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_bundle_of_our_own_is_gone_on_with() {
    let (_home, dir) = begun();
    go_on(&dir).unwrap();
}

/// Each file and directory of a bundle, and names that a writer could be expected to use for a moment.
#[test]
fn a_link_in_a_bundle_is_refused_and_nothing_is_written_through_it() {
    let (_home, dir) = begun();
    let mut names: Vec<PathBuf> =
        everything(&dir).iter().map(|path| path.strip_prefix(&dir).unwrap().to_owned()).collect();
    assert!(names.len() > 10, "{names:?}");
    names.extend(
        [".manifest.json.new", ".plan.toml.new", "scenarios/01-host-idle/.result.json.new", "report.html"]
            .map(PathBuf::from),
    );
    for name in names {
        for plant in ["link", "hard link", "FIFO"] {
            let (home, dir) = begun();
            let (path, outside) = (dir.join(&name), home.path().join("outside"));
            if path.is_dir() {
                fs::remove_dir_all(&path).unwrap();
            } else if path.exists() {
                fs::rename(&path, &outside).unwrap();
            }
            let kept = fs::read(&outside).unwrap();
            match plant {
                "link" if dir.join(&name).extension().is_none() => symlink("../elsewhere", &path).unwrap(),
                "link" => symlink(&outside, &path).unwrap(),
                "hard link" => fs::hard_link(&outside, &path).unwrap(),
                _ => make_fifo(&path),
            }
            let error = go_on(&dir).unwrap_err();
            assert!(matches!(error, BundleError::Unsafe { .. }), "{plant} {}: {error}", name.display());
            assert!(error.to_string().contains(plant), "{plant} {}: {error}", name.display());
            assert!(error.hint().unwrap().contains("--out"));
            assert_eq!(fs::read(&outside).unwrap(), kept, "{plant} {}", name.display());
            assert_eq!(fs::read_dir(home.path().join("elsewhere")).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_file_planted_during_a_run_is_not_written_through() {
    let (home, dir) = begun();
    let mut writer = go_on(&dir).unwrap();
    let outside = home.path().join("outside");
    for name in ["scenarios/01-host-idle/result.json", "facts/host.json", "manifest.json", "source.toml"] {
        fs::remove_file(dir.join(name)).unwrap();
        symlink(&outside, dir.join(name)).unwrap();
    }
    fs::remove_dir_all(dir.join("audit")).unwrap();
    symlink(home.path().join("elsewhere"), dir.join("audit")).unwrap();
    let audit = Audit {
        role: Role::Host,
        isolation: Isolation::default(),
        findings: Vec::new(),
        actions: Vec::new(),
    };
    let said = [
        writer.result(0, &row(10)),
        writer.facts("host", &Facts::default()),
        writer.audit("host", &audit),
        writer.keep_source(&Plan::default(), Asked::default()),
        writer.begin_session(Machine::default(), None, None),
    ];
    for error in said.map(Result::unwrap_err) {
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    assert_eq!(fs::read_dir(home.path().join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_directory_that_others_can_write_to_gets_no_bundle_and_is_not_gone_on_with() {
    let home = tempfile::tempdir().unwrap();
    for mode in [0o777, 0o1777, 0o770] {
        fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).unwrap();
        let error = Writer::create(home.path(), &Plan::default(), &[], Machine::default()).unwrap_err();
        assert!(error.to_string().contains("others may write"), "{error}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
    for inside in ["", "scenarios", "scenarios/01-host-idle", "console"] {
        let (_home, dir) = begun();
        fs::set_permissions(dir.join(inside), fs::Permissions::from_mode(0o777)).unwrap();
        let error = go_on(&dir).unwrap_err();
        assert!(error.to_string().contains("others may write"), "{inside}: {error}");
        assert!(error.hint().unwrap().contains("chmod"));
    }
}

#[test]
fn nothing_in_a_bundle_holds_its_reader_up() {
    for finished in [true, false] {
        let made = || {
            let home = tempfile::tempdir().unwrap();
            let dir = home.path().join("bundle");
            bundle(&dir, 10, 10, finished);
            (home, dir)
        };
        let (_home, whole) = made();
        for path in everything(&whole) {
            let name = path.strip_prefix(&whole).unwrap();
            for plant in [make_fifo, |path: &Path| symlink("/dev/zero", path).unwrap()] {
                let (_home, dir) = made();
                let path = dir.join(name);
                if path.is_dir() {
                    fs::remove_dir_all(&path).unwrap();
                } else {
                    fs::remove_file(&path).unwrap();
                }
                plant(&path);
                let _ = read(&dir, Trust::Whole);
                let _ = read(&dir, Trust::Damaged);
            }
        }
    }
}

#[test]
fn a_file_that_is_longer_than_any_of_its_kind_is_not_read() {
    for (name, most) in [
        ("manifest.json", crate::limits::MANIFEST),
        ("plan.toml", crate::limits::PLAN),
        ("scenarios/01-host-idle/result.json", crate::limits::RESULT),
        ("facts/host.json", crate::limits::FACTS),
    ] {
        let (_home, dir) = begun();
        // A hole: as long as it says, and nothing on the disk.
        fs::File::create(dir.join(name)).unwrap().set_len(most + 1).unwrap();
        let said = match read(&dir, Trust::Damaged) {
            Err(error) => error.to_string(),
            Ok(contents) => contents.damage.join("\n"),
        };
        assert!(said.contains("longer than"), "{name}: {said}");
    }
}

#[test]
fn files_of_holes_whose_checksums_are_claimed_are_not_read() {
    let (_home, dir) = begun();
    go_on(&dir).unwrap().finish(tactus_model::event::RunStatus::Complete).unwrap();
    read(&dir, Trust::Whole).unwrap();
    let began = std::time::Instant::now();
    for name in ["console/01-host.log", "events.jsonl"] {
        fs::File::options().write(true).open(dir.join(name)).unwrap().set_len(crate::limits::LOG).unwrap();
    }
    let error = read(&dir, Trust::Whole).unwrap_err();
    assert!(
        matches!(error, BundleError::Altered { .. }) && error.to_string().contains("it has holes"),
        "{error}"
    );
    let told = read(&dir, Trust::Damaged).unwrap().damage.join("\n");
    assert!(told.matches("it has holes").count() == 2, "{told}");
    // To read them all takes minutes.
    assert!(began.elapsed() < std::time::Duration::from_secs(40), "{:?}", began.elapsed());
}

/// A file that is not in the manifest has no checksum: a copy with one row more, or with more ticks, would
/// keep the manifest of the whole.
#[test]
fn a_file_that_a_finished_bundle_did_not_have_is_refused_by_its_name_where_it_would_be_read() {
    let made = || {
        let (home, dir) = begun();
        go_on(&dir).unwrap().finish(tactus_model::event::RunStatus::Complete).unwrap();
        (home, dir)
    };
    for name in [
        "scenarios/99-more/result.json",
        "scenarios/01-host-idle/pending.jsonl",
        "scenarios/01-host-idle/windows.csv",
        "scenarios/01-host-idle/missed.hlog",
        "facts/guest.json",
        "audit/guest.json",
        "console/02-guest.log",
        "log.txt",
    ] {
        let (_home, dir) = made();
        assert!(!dir.join(name).exists(), "{name}");
        fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), "{}").unwrap();
        for error in
            [read(&dir, Trust::Whole).unwrap_err(), crate::verify(&crate::open(&dir).unwrap()).unwrap_err()]
        {
            assert!(matches!(error, BundleError::Altered { .. }), "{name}: {error}");
            assert!(error.to_string().contains(name), "{name}: {error}");
        }
        let told = read(&dir, Trust::Damaged).unwrap().damage.join("\n");
        assert!(told.contains(name) && told.contains("the manifest does not name it"), "{name}: {told}");
    }
    // The plan as it was written decides which run it is; one of several tactus did not keep it.
    let (_home, dir) = made();
    let manifest = dir.join("manifest.json");
    let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    assert!(text["files"].as_object_mut().unwrap().remove("source.toml").is_some());
    fs::write(&manifest, text.to_string()).unwrap();
    assert!(read(&dir, Trust::Whole).unwrap_err().to_string().contains("source.toml"));
}

#[test]
fn what_a_user_puts_into_a_bundle_where_nothing_is_read_and_what_is_drawn_from_it_may_stay() {
    let (_home, dir) = begun();
    go_on(&dir).unwrap().finish(tactus_model::event::RunStatus::Complete).unwrap();
    fs::create_dir(dir.join("notes")).unwrap();
    for name in ["report.html", "notes/of-mine.md", "photo.jpg", ".lock", "facts/.host.json.new"] {
        fs::write(dir.join(name), "mine").unwrap();
    }
    read(&dir, Trust::Whole).unwrap();
    crate::verify(&crate::open(&dir).unwrap()).unwrap();
    // No manifest names reports, certificates and signatures, not even that of a run that is ended again.
    let (_home, again) = begun();
    for name in ["signature.sig", "SHA256SUMS", "certificate.pdf", "certificate.html", "report.html"] {
        fs::write(again.join(name), "made").unwrap();
    }
    go_on(&again).unwrap().finish(tactus_model::event::RunStatus::Complete).unwrap();
    let sealed = crate::sealed(&crate::open(&again).unwrap()).unwrap();
    assert!(sealed.manifest.files.contains_key("plan.toml"));
    assert!(
        !sealed
            .manifest
            .files
            .keys()
            .any(|name| ["signature", "SHA256", "certificate"].iter().any(|of| name.contains(of)))
    );
    assert_eq!(sealed.bytes, fs::read(again.join("manifest.json")).unwrap());
    assert_eq!(sealed.sha256.len(), 64);
    // A run that was cut off need not name them yet.
    let (_home, cut) = begun();
    fs::write(cut.join("console/02-guest.log"), "booted").unwrap();
    read(&cut, Trust::Whole).unwrap();
}

#[test]
fn a_file_of_somebody_else_or_that_others_can_write_to_is_not_gone_on_with() {
    for name in ["events.jsonl", "manifest.json", "scenarios/01-host-idle/ticks.csv"] {
        let (_home, dir) = begun();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o666)).unwrap();
        let error = go_on(&dir).unwrap_err();
        assert!(error.to_string().contains("others may write to it"), "{name}: {error}");
        let mine = fs::metadata(&dir).unwrap().uid();
        if mine == 0 {
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o644)).unwrap();
            std::os::unix::fs::chown(dir.join(name), Some(12_345), None).unwrap();
            let error = go_on(&dir).unwrap_err();
            assert!(error.to_string().contains("belongs to another user"), "{name}: {error}");
        }
    }
}

#[test]
fn environments_of_like_names_keep_their_own_facts() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["a/b", "a_b", "a%2Fb", ".a", "a", "a\nb"];
    let of = |name: &str| RowResult::unmeasured(name, name, "host");
    let rows = names.map(of);
    let writer = Writer::create(dir.path(), &Plan::default(), &rows, Machine::default()).unwrap();
    for name in names {
        let mut facts = Facts::default();
        facts.keep("/proc/cmdline", name);
        writer.facts(name, &facts).unwrap();
    }
    drop(writer);
    let contents = read(dir.path(), Trust::Whole).unwrap();
    for name in names {
        assert_eq!(contents.facts[name].text("/proc/cmdline"), Some(name));
    }
}

#[test]
fn a_file_that_is_there_under_many_names_brings_its_memory_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("0"), "x".repeat(4 << 20)).unwrap();
    for n in 1..64 {
        fs::hard_link(dir.path().join("0"), dir.path().join(n.to_string())).unwrap();
    }
    let dir = crate::open(dir.path()).unwrap();
    let mut memory = crate::limits::Memory::default();
    let mut is_read = |n: usize| memory.read(&dir, &n.to_string(), crate::limits::FACTS).is_ok();
    // Each takes 16 MiB: the first has them with it, and a bundle of any size has 512.
    assert_eq!((0..64).take_while(|n| is_read(*n)).count(), 33);
}

/// A log of 150 KB whose lines unpack to a thousand times the bytes of counts.
#[test]
fn a_small_log_takes_no_more_memory_than_a_small_log_may() {
    use tactus_model::histograms::Place;
    let (_home, dir) = begun();
    let mut all = tactus_model::latency::histogram();
    let mut value = 1;
    while value < tactus_model::latency::HIGHEST_NS {
        all.record_n(value, 1 << 20).unwrap();
        value = all.next_non_equivalent(value);
    }
    let line = tactus_format::hlog::line("1", Place { start_ns: 0, length_ns: 1_000_000_000 }, &all).unwrap();
    assert!(line.len() < 2_000, "{}", line.len());
    let lines: String =
        (0..450).map(|n| line.replace("Tag=1,0.000,", &format!("Tag={n},{n}.000,"))).collect();
    fs::write(dir.join("scenarios/01-host-idle/latency.hlog"), lines).unwrap();
    let contents = read(&dir, Trust::Damaged).unwrap();
    let (row, told) = (&contents.rows[0], contents.damage.join("\n"));
    assert!(
        row.histograms.series.len() > 10 && row.histograms.bytes() < 512 << 20,
        "{}",
        row.histograms.bytes()
    );
    assert!(told.contains("latency.hlog") && told.contains("lines cannot be read"), "{told}");
}

#[test]
fn values_beyond_those_that_a_row_has_are_left_out_and_said() {
    use tactus_model::catalogue::measure::os::SYSTEM_CALL;
    use tactus_model::outcome::{Outcome, Repeats, ValueResult};
    let (_home, dir) = begun();
    let of = |n: usize| {
        let mut repeats = Repeats { kept: vec![1.0], ..Repeats::default() };
        ValueResult { item: n.to_string(), ..ValueResult::of(&SYSTEM_CALL, &mut repeats).unwrap() }
    };
    let mut own = row(10);
    own.outcome = Outcome::Values((0..crate::limits::ITEMS + 7).map(of).collect());
    let text = serde_json::to_string(&own).unwrap();
    fs::write(dir.join("scenarios/01-host-idle/result.json"), text).unwrap();
    let contents = read(&dir, Trust::Damaged).unwrap();
    assert_eq!(contents.rows[0].result.values().len(), crate::limits::ITEMS);
    let told = contents.damage.join("\n");
    assert!(told.contains("result.json: 7 of its values exceed the number in any row"), "{told}");
}

#[test]
fn latencies_traces_and_waits_beyond_those_that_a_run_keeps_are_left_out_and_said() {
    use tactus_model::bundle::{Wait, Waits};
    use tactus_model::latency::Latency;
    use tactus_model::message::{Outlier, ThreadCounters};
    use tactus_model::outcome::{LatencyOutcome, Outcome, SeriesResult};
    use tactus_model::series::SeriesKey;
    use tactus_model::trace::{LONGEST_THREAD, MOST_EVENTS, MOST_THREADS, PER_EVENT, Trace};

    use crate::limits::{OUTLIERS, WAITS};

    let (_home, dir) = begun();
    let key = SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() };
    let outlier = |value_ns: u64| {
        let trace = (value_ns == 1_000 || value_ns == 1).then(|| Trace {
            events: vec![1; 15_000],
            threads: vec!["1 x".repeat(9_999); 300],
            ..Trace::default()
        });
        Outlier { activity: 0, series: key.clone(), at_ns: 1, value_ns, trace }
    };
    let series = SeriesResult {
        key: key.clone(),
        summary: Latency::new().summary(),
        counters: ThreadCounters::default(),
        outliers: (1..=1_000).map(outlier).collect(),
        whole: true,
    };
    let wait = |n: u64| {
        let by = (n == 900).then(|| "7 ".to_owned() + &"ü".repeat(500_000));
        Wait { cpu: 1, at_ns: 1, waited_ns: n, stopped: false, by, outside: false }
    };
    let mut own = row(10);
    own.outcome = Outcome::Latency(LatencyOutcome { series: vec![series], all: None });
    own.waits = Some(Waits { longest: (1..=900).map(wait).collect(), ..Waits::default() });
    let text = serde_json::to_string(&own).unwrap();
    fs::write(dir.join("scenarios/01-host-idle/result.json"), text).unwrap();
    let contents = read(&dir, Trust::Damaged).unwrap();
    let own = &contents.rows[0].result;
    let outliers = &own.series()[0].outliers;
    assert_eq!((outliers.len(), outliers[0].value_ns, outliers[31].value_ns), (OUTLIERS, 1_000, 969));
    let trace = outliers[0].trace.as_ref().unwrap();
    assert_eq!((trace.events.len(), trace.threads.len()), (MOST_EVENTS * PER_EVENT, MOST_THREADS));
    assert!(trace.threads.iter().all(|name| name.len() <= LONGEST_THREAD && name.starts_with("1 x")));
    let waits = own.waits.as_ref().unwrap();
    assert_eq!((waits.longest.len(), waits.longest[0].waited_ns), (WAITS, 900));
    assert_eq!(waits.cut_ns, Some(900 - WAITS as u64 + 1), "shorter ones may be missing");
    let by = waits.longest[0].by.as_ref().unwrap();
    assert!(by.len() <= LONGEST_THREAD && by.starts_with("7 ü"), "{by}");
    let told = contents.damage.join("\n");
    for said in
        ["result.json: 968 of its largest", "1 of its traces", "388 of its waits", "1 names of its waits"]
    {
        assert!(told.contains(said), "{told}");
    }
}

/// Each thread's line in a report, and each of its figures in an export, begins with the names of its row.
#[test]
fn names_that_are_longer_than_any_are_cut_and_said_wherever_they_are_repeated() {
    let (_home, dir) = begun();
    let long = "ü".repeat(500_000);
    let mut own = row(10);
    (own.name, own.environment, own.kind) = (long.clone(), long.clone(), long.clone());
    (own.host, own.to) = (Some(long.clone()), Some(long.clone()));
    fs::write(dir.join("scenarios/01-host-idle/result.json"), serde_json::to_string(&own).unwrap()).unwrap();
    let reference = Reference { scenario: long.clone(), source: long.clone(), ..Reference::default() };
    let scenario = Scenario { name: Some(long.clone()), ..Scenario::default() };
    let plan = Plan { scenario: vec![scenario], reference: vec![reference], ..Plan::default() };
    fs::write(dir.join("plan.toml"), toml::to_string(&plan).unwrap()).unwrap();
    let manifest = fs::read_to_string(dir.join("manifest.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    manifest["machine"]["kernel"] = long.clone().into();
    manifest["plan"] = long.into();
    fs::write(dir.join("manifest.json"), manifest.to_string()).unwrap();
    let contents = read(&dir, Trust::Damaged).unwrap();
    let own = &contents.rows[0].result;
    let machine = &contents.manifest.machine;
    for name in [&own.name, &own.environment, &own.kind, &machine.kernel, &contents.manifest.plan] {
        assert!(name.len() <= 1024 && name.starts_with("üü") && name.ends_with(" [...]"), "{}", name.len());
    }
    assert_eq!(own.host.as_ref(), Some(&own.name), "what was the same stays the same");
    assert_eq!(contents.plan.scenario[0].name.as_ref(), Some(&own.name));
    assert_eq!(contents.plan.reference[0].scenario, own.name);
    assert!(contents.plan.reference[0].source.len() <= 4096);
    let told = contents.damage.join("\n");
    for said in ["manifest.json: 2 of its names", "plan.toml: 3 of its names", "result.json: 5 of its names"]
    {
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn what_is_said_once_and_belongs_to_every_row_is_counted_for_every_row() {
    let (_home, dir) = begun();
    let group = "x".repeat(4_000_000);
    let look = format!(
        r#"{{"at_ms":1,"event":"cache_used","phase":"before","group":"{group}","cpus":"0-8191","occupancy_bytes":null,"memory_bytes":null}}"#
    );
    let start =
        r#"{"at_ms":1,"event":"row_started","row":0,"name":"a","environment":"host","duration_ns":1}"#;
    let starts = vec![start; 1_000].join("\n");
    fs::write(dir.join("events.jsonl"), format!("{look}\n{starts}\n")).unwrap();
    let told = read(&dir, Trust::Damaged).unwrap().damage.join("\n");
    assert!(told.contains("take more memory than any bundle of its size"), "{told}");
}

#[test]
fn what_reads_a_file_repeats_little_of_what_is_wrong_in_it() {
    let (_home, dir) = begun();
    let manifest = dir.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let status = format!("\"{}\"", "x".repeat(3 << 20));
    fs::write(&manifest, text.replace("\"complete\"", &status).replace("\"interrupted\"", &status)).unwrap();
    let Err(error) = read(&dir, Trust::Damaged) else { panic!("its status is none") };
    assert!((100..2_000).contains(&error.to_string().len()), "{}", error.to_string().len());
    let other = format!("{{\"format\": {{\"major\": 99, \"minor\": 0}}, \"tactus\": {status}}}");
    fs::write(&manifest, other).unwrap();
    let Err(error) = read(&dir, Trust::Damaged) else { panic!("its format is another") };
    assert!(error.to_string().contains("format 99.0") && error.to_string().len() < 2_000);
    fs::write(&manifest, text).unwrap();
    let result = dir.join("scenarios/01-host-idle/result.json");
    let own = fs::read_to_string(&result).unwrap();
    let ended = "\"ended\": \"";
    assert!(own.contains(ended), "{own}");
    fs::write(&result, own.replacen(ended, &format!("{ended}{}", "x".repeat(3 << 20)), 1)).unwrap();
    let told = read(&dir, Trust::Damaged).unwrap().damage.join("\n");
    assert!(told.contains("result.json cannot be read") && told.len() < 4_000, "{}", told.len());
}
