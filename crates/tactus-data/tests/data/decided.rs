//! Machines that are said to hold the deadline, and machines that are undecided.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tactus_data::collect::{Outcome, collect_at};
use tactus_data::question::{Answers, Asked, FORMATS, Fleet, Judged, Place, Run, Set, ask};
use tactus_data::table::FACT;
use tactus_data::{AHEAD_US, DataSet};
use tactus_model::event::RunStatus;

use crate::asked::{BEGIN_US, DAY_US, fleet};
use crate::collected::{collected, texts};
use crate::made::{made, manifest};

fn asked(max_ns: Option<u64>) -> Asked {
    let now = Duration::from_micros(u64::try_from(BEGIN_US + DAY_US).unwrap());
    Asked { max_ns, ..Asked::at(now) }
}

fn answers(change: impl FnOnce(&mut Run, &mut Place), max_ns: Option<u64>) -> Answers {
    let mut set = fleet(2, 1, 1);
    change(&mut set.runs[0], &mut set.places[0]);
    ask(&set, &asked(max_ns))
}

#[test]
fn a_machine_holds_where_all_of_it_was_measured_and_proven_and_nowhere_else() {
    let max = Some(100_000);
    assert_eq!(answers(|_, _| {}, max).outcome, Fleet::Held);
    let passed = |_: &mut Run, place: &mut Place| {
        (place.suffices, place.verdict) = (None, Some("pass".into()));
    };
    assert_eq!(answers(passed, max).outcome, Fleet::Held);
    let wrong: [fn(&mut Run, &mut Place); 9] = [
        |run, _| run.complete = false,
        |_, place| place.self_test_passed = None,
        |_, place| place.self_test_passed = Some(false),
        |_, place| place.suffices = None,
        |_, place| place.suffices = Some(false),
        |_, place| place.verdict = Some("inconclusive".into()),
        |_, place| place.evidence = None,
        |_, place| place.restarts = Some(1),
        |_, place| (place.restarts, place.verdict) = (Some(2), Some("pass".into())),
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        let answers = answers(change, max);
        let held = answers.judged.iter().filter(|machine| machine.outcome == Judged::Held).count();
        assert_eq!((answers.outcome, held), (Fleet::NotDecided, 1), "{number}");
    }
    // A latency above the deadline needs no second one.
    let missed = |run: &mut Run, place: &mut Place| {
        (run.complete, place.max_ns) = (false, Some(200_000));
    };
    assert_eq!(answers(missed, max).outcome, Fleet::Missed);
    assert_eq!(answers(|_, _| {}, None).outcome, Fleet::NoDeadline);
}

#[test]
fn without_machines_and_of_an_expected_one_that_is_missing_nothing_is_decided() {
    assert_eq!(ask(&Set::default(), &asked(Some(1))).outcome, Fleet::NotDecided);
    let set = fleet(2, 1, 1);
    let mut own = asked(Some(100_000));
    own.expect = vec!["node0000".into()];
    assert_eq!(ask(&set, &own).outcome, Fleet::Held);
    own.expect.push("rack-9".into());
    assert_eq!(ask(&set, &own).outcome, Fleet::NotDecided);
    // It is not missing yet, and not in the time that is looked at.
    let mut set = fleet(2, 3, 1);
    set.runs.remove(5);
    set.places.remove(5);
    set.runs.remove(3);
    set.places.remove(3);
    for (number, place) in set.places.iter_mut().enumerate() {
        place.run = number;
    }
    own = Asked { expect: vec!["node0001".into()], days: 1, missing_after: 9, ..asked(Some(100_000)) };
    own.now_us += 3 * DAY_US;
    let answers = ask(&set, &own);
    assert_eq!((answers.outcome, answers.missing.len()), (Fleet::NotDecided, 0));
}

/// Copies of one image that differ only in their names: the second one died.
#[test]
fn a_copy_that_died_is_missing_although_the_other_has_its_key() {
    let mut set = fleet(2, 10, 1);
    set.runs.iter_mut().for_each(|run| run.machine = "m".into());
    let dead = |run: &Run| run.name == "node0001" && run.started_us >= BEGIN_US + DAY_US;
    let gone: Vec<String> = set.runs.iter().filter(|run| dead(run)).map(|run| run.run.clone()).collect();
    set.places.retain(|place| !gone.contains(&set.runs[place.run].run));
    set.runs.retain(|run| !gone.contains(&run.run));
    for place in &mut set.places {
        // Two on the first day, one on each day after it.
        place.run = if place.run < 2 { place.run } else { place.run / 2 + 1 };
    }
    let mut own = asked(Some(100_000));
    own.now_us += 9 * DAY_US;
    own.expect = vec!["node0000".into()];
    assert_eq!(ask(&set, &own).outcome, Fleet::Held);
    own.expect.push("node0001".into());
    let answers = ask(&set, &own);
    let missing: Vec<_> = answers.missing.iter().map(|one| (one.name.as_str(), one.days)).collect();
    assert_eq!((missing, answers.outcome), (vec![("node0001", Some(9))], Fleet::NotDecided));
    assert!(
        answers.limits.iter().any(|said| said.ends_with("copies of one image: node0000, node0001.")),
        "{:?}",
        answers.limits
    );
    // Not missing yet, but not in the time that is looked at either.
    own.missing_after = 30;
    let answers = ask(&set, &own);
    assert_eq!((answers.missing.len(), answers.outcome), (0, Fleet::NotDecided));
    // An expected key is there.
    own.expect = vec!["m".into()];
    assert_eq!(ask(&set, &own).outcome, Fleet::Held);
}

#[test]
fn no_name_in_what_is_to_be_known_drives_a_terminal() {
    let mut set = fleet(2, 1, 1);
    for (number, run) in set.runs.iter_mut().enumerate() {
        (run.machine, run.name) = ("m".into(), format!("\u{1b}]0;{number}\u{7}"));
    }
    let answers = ask(&set, &asked(None));
    assert!(answers.limits.iter().any(|said| said.contains('\u{1b}')), "{:?}", answers.limits);
    for format in FORMATS.iter().filter(|format| format.name != "json") {
        let text = String::from_utf8((format.render)(&answers).unwrap()).unwrap();
        assert!(text.contains("copies of one image") && !text.contains('\u{1b}'), "{}", format.name);
    }
}

#[test]
fn a_run_that_claims_to_be_of_a_dead_machine_under_another_name_is_not_of_that_machine() {
    let mut set = fleet(2, 5, 1);
    // The first one says all of its life that it has the numbers of the second, which has no run of late.
    for run in &mut set.runs {
        if run.name == "node0001" {
            run.started_us -= 20 * DAY_US;
        }
        run.machine = "m0001".into();
    }
    let mut own = asked(Some(100_000));
    own.now_us += 4 * DAY_US;
    own.expect = vec!["node0001".into()];
    let answers = ask(&set, &own);
    assert_eq!((answers.missing.len(), answers.outcome), (1, Fleet::NotDecided));
    assert_eq!(answers.missing[0].name, "node0001");
}

#[test]
fn runs_that_were_interrupted_or_too_short_for_a_verdict_hold_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (there, data) = (dir.path().join("there"), dir.path().join("data"));
    fs::create_dir_all(&there).unwrap();
    made(1, 1).write(&there.join("short"));
    manifest(&made(2, 1).write(&there.join("cut")), |own| own.status = RunStatus::Interrupted);
    collected(&[&there], &data);
    let set = Set::read(&DataSet::open(&data).unwrap()).unwrap();
    let complete: Vec<bool> = set.runs.iter().map(|run| run.complete).collect();
    assert_eq!(complete, [true, false]);
    assert!(set.places.len() == 2 && set.places.iter().all(|place| place.suffices == Some(false)));
    let answers = ask(&set, &Asked { max_ns: Some(1_000_000), ..asked(None) });
    assert_eq!(answers.outcome, Fleet::NotDecided);
    assert!(
        answers.judged.iter().all(|machine| machine.outcome == Judged::Unproven && machine.why.is_some())
    );
}

#[test]
fn a_run_with_a_wrong_clock_hides_nobody_and_is_named() {
    let mut set = fleet(5, 1, 3);
    let year = 365 * DAY_US;
    set.runs.push(Run { run: "future".into(), started_us: BEGIN_US + 70 * year, ..set.runs[4].clone() });
    set.places.push(Place { run: 5, max_ns: Some(900_000), ..set.places[4].clone() });
    let answers = ask(&set, &asked(Some(100_000)));
    assert_eq!((answers.judged.len(), answers.outcome), (5, Fleet::Held));
    assert!(answers.limits.iter().any(|said| said.ends_with("wrong on node0004.")), "{:?}", answers.limits);
    assert!(answers.missing.is_empty() && answers.last.unwrap().starts_with("2026-11-01"));
}

#[test]
fn what_a_wrong_clock_collected_makes_no_later_run_late() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let collect = |name: &str, started: &str| {
        let mut own = made(1, 1);
        own.started = started.into();
        let bundle = own.write(&dir.path().join(name));
        let now = u64::try_from(BEGIN_US + AHEAD_US + 9 * DAY_US).unwrap();
        let tell = &mut |_: &Path, outcome: &Outcome| assert_eq!(*outcome, Outcome::Taken);
        collect_at(&[bundle], &data, Duration::from_micros(now), tell).unwrap().remarks
    };
    assert!(collect("1", "2026-11-01T03:00:00Z").is_empty());
    let said = collect("2", "2099-01-01T00:00:00Z");
    assert!(said[0].contains("from the future") && said[0].ends_with("node001"), "{said:?}");
    collect("3", "2026-11-03T03:00:00Z");
    assert_eq!(texts(&data, &FACT, "change"), ["first", "first", "late", "late"]);
}
