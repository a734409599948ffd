//! Several bundles of one run, some of them invalid; and the reasons of the refused ones.

use std::fs;
use std::path::Path;

use tactus_data::DataSet;
use tactus_data::collect::Outcome;
use tactus_data::table::{MACHINE, RUN, SERIES, columns};
use tactus_model::message::ThreadCounters;

use crate::collected::{collected, texts};
use crate::made::{copied, made, manifest};

fn refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(_))
}

/// As a run with one more session.
fn once_more(bundle: &Path) {
    manifest(bundle, |own| {
        let session = own.sessions[0].clone();
        own.sessions.push(session);
    });
}

#[test]
fn a_damaged_copy_of_a_bundle_hides_its_good_one_in_no_order_and_no_call() {
    for [bad, good] in [["a-bad", "b-good"], ["b-bad", "a-good"]] {
        let dir = tempfile::tempdir().unwrap();
        let (there, data) = (dir.path().join("there"), dir.path().join("data"));
        fs::create_dir_all(&there).unwrap();
        let whole = made(1, 1).write(&there.join(good));
        let cut = copied(&whole, &there.join(bad));
        fs::write(cut.join("facts/host.json"), "{").unwrap();
        // Alone it is refused, and nothing of it stays.
        assert!(refused(&collected(&[&cut], &data).0[bad]));
        assert!(texts(&data, &RUN, "run").is_empty() && texts(&data, &MACHINE, "machine").is_empty());
        let (told, summary) = collected(&[&there], &data);
        assert_eq!(told[good], Outcome::Taken, "{told:?}");
        assert_eq!((summary.taken, texts(&data, &RUN, "run").len()), (1, 1));
    }
}

#[test]
fn a_manifest_alone_that_claims_more_sessions_displaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    let claimed = there.join("claimed");
    fs::create_dir_all(&claimed).unwrap();
    let whole = made(1, 1).write(&there.join("true"));
    fs::copy(whole.join("manifest.json"), claimed.join("manifest.json")).unwrap();
    once_more(&claimed);
    let (told, _) = collected(&[&there], &data);
    assert!(refused(&told["claimed"]) && told["true"] == Outcome::Taken, "{told:?}");
    assert_eq!(texts(&data, &SERIES, "run").len(), 2);
}

#[test]
fn of_two_states_of_a_run_in_one_call_the_later_is_taken_and_its_rows_are_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    let first = made(1, 1).write(&there.join("a"));
    once_more(&copied(&first, &there.join("b")));
    let (told, summary) = collected(&[&there], &data);
    assert_eq!((&told["b"], summary.taken), (&Outcome::Taken, 1), "{told:?}");
    assert!(refused(&told["a"]));
    assert_eq!((texts(&data, &RUN, "run").len(), texts(&data, &SERIES, "run").len()), (1, 2));
}

#[test]
fn a_machine_is_known_by_bundles_that_hold_and_its_words_have_a_length() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    for (number, name) in [(1, "damaged"), (2, "long"), (3, "other")] {
        let mut own = made(number, 1);
        own.machine.name = "n".repeat(1_000);
        own.machine.bios = Some("b".repeat(1_000));
        own.write(&there.join(name));
    }
    fs::remove_file(there.join("damaged/plan.toml")).unwrap();
    let (told, summary) = collected(&[&there], &data);
    assert!(refused(&told["damaged"]) && told["long"] == Outcome::Taken, "{told:?}");
    let names = texts(&data, &MACHINE, "name");
    assert!(names.len() == 2 && names.iter().all(|name| name.len() == 256), "{}", names.len());
    for column in ["name", "bios"] {
        assert!(texts(&data, &RUN, column).iter().all(|text| text.len() == 256), "{column}");
    }
    assert!(texts(&data, &RUN, "machine").iter().all(|machine| machine.len() == 16));
    assert!(summary.remarks.len() == 1 && summary.remarks[0].len() < 256, "{}", summary.remarks.len());
}

/// Every series of a scenario has its loads: a list of 200 KB and a thousand series were 200 MB.
#[test]
fn the_loads_of_a_scenario_have_a_length_in_the_rows_of_its_series() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    for (number, loads) in [(1, 1), (2, 500)] {
        let mut own = made(number, 1);
        own.load = vec![serde_json::json!({ "kind": "cpu", "in": "host" }); loads];
        own.write(&there.join(format!("{loads}")));
    }
    let (told, _) = collected(&[&there], &data);
    assert!(told.values().all(|outcome| *outcome == Outcome::Taken), "{told:?}");
    let mut loads = texts(&data, &SERIES, "load");
    loads.sort();
    assert!(loads[..2].iter().all(|load| load == "-"), "{loads:?}");
    assert!(loads[2..].iter().all(|load| load.starts_with("[{") && load.len() < 100), "{loads:?}");
}

/// Rows of all bundles are written at once: one that could not be would take the others with it.
#[test]
fn a_number_that_no_table_holds_becomes_the_largest_that_one_does_and_ends_no_call() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    made(1, 1).write(&there.join("honest"));
    let mut own = made(2, 1);
    own.counters = ThreadCounters { steal_ns: Some(u64::MAX), smi: Some(3), ..ThreadCounters::default() };
    own.write(&there.join("large"));
    let (told, _) = collected(&[&there], &data);
    assert!(told.values().all(|outcome| *outcome == Outcome::Taken), "{told:?}");
    let data = DataSet::open(&data).unwrap();
    let day = data.days(&SERIES).unwrap().remove(0);
    let found = data.read(&SERIES, &day, &columns(&SERIES, &["steal_ns", "smi"])).unwrap().unwrap();
    let of = |column: usize| {
        let mut all: Vec<_> = (0..found.rows).map(|row| found.columns[column].whole(row)).collect();
        all.sort();
        all
    };
    assert_eq!(of(0), [None, None, Some(i64::MAX), Some(i64::MAX)]);
    assert_eq!(of(1), [None, None, Some(3), Some(3)]);
}
