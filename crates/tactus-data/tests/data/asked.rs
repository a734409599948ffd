//! The answers of a data set: it finds what was planted, and nothing else.

use std::collections::BTreeSet;

use tactus_data::question::{Answers, Asked, Judged, Place, Run, Set, ask};
use tactus_model::number::float;

use crate::random::Random;

pub const DAY_US: i64 = 86_400_000_000;
/// 2026-11-01T03:00:00Z.
pub const BEGIN_US: i64 = 1_793_502_000_000_000;

/// One of [0, 1).
fn unit(random: &mut Random) -> f64 {
    float(random.next() >> 11) / float(1 << 53)
}

/// A fleet without any pattern: machines that run once a day.
pub fn fleet(machines: u32, days: u32, seed: u64) -> Set {
    let mut random = Random(seed);
    let mut set = Set::default();
    let kinds: Vec<[u64; 3]> =
        (0..machines).map(|_| [random.below(3), random.below(2), random.below(4)]).collect();
    for day in 0..days {
        for number in 0..machines {
            let [bios, microcode, kernel] = kinds[usize::try_from(number).unwrap()];
            set.runs.push(Run {
                run: format!("{day}-{number}"),
                machine: format!("m{number:04}"),
                identity: Some("hardware".into()),
                name: format!("node{number:04}"),
                started_us: BEGIN_US + i64::from(day) * DAY_US + i64::from(number) * 1_000_000,
                properties: vec![
                    Some(format!("BIOS {bios}")),
                    Some(format!("0x{microcode}")),
                    Some(format!("6.{kernel}")),
                    Some("realtime".into()),
                    Some("EPYC".into()),
                    Some("Debian 13".into()),
                    Some("0.1.0".into()),
                    Some("fleet".into()),
                ],
                findings: BTreeSet::new(),
                complete: true,
            });
            let level = 20_000.0 * (1.0 + 0.2 * unit(&mut random));
            set.places.push(Place {
                run: set.runs.len() - 1,
                environment: "host".into(),
                scenario: "idle".into(),
                evidence: Some("bare metal".into()),
                max_ns: Some(tactus_model::number::whole(level * 2.0)),
                p999_ns: Some(tactus_model::number::whole(level)),
                cycles: 1_000_000,
                self_test_passed: Some(true),
                verdict: None,
                suffices: Some(true),
                restarts: Some(0),
            });
        }
    }
    set
}

fn asked(max_ns: Option<u64>, days: u32) -> Asked {
    let now = std::time::Duration::from_micros(u64::try_from(BEGIN_US + i64::from(days) * DAY_US).unwrap());
    Asked { max_ns, ..Asked::at(now) }
}

fn of(answers: &Answers, outcome: Judged) -> usize {
    answers.judged.iter().filter(|machine| machine.outcome == outcome).count()
}

#[test]
fn who_missed_the_deadline_is_named_the_worst_first() {
    let mut set = fleet(20, 10, 1);
    set.places[9 * 20 + 7].max_ns = Some(150_000);
    set.places[9 * 20 + 3].max_ns = Some(250_000);
    // Too long ago.
    set.places[5].max_ns = Some(900_000);
    let answers = ask(&set, &asked(Some(100_000), 10));
    assert_eq!((of(&answers, Judged::Missed), of(&answers, Judged::Held)), (2, 18));
    let names: Vec<&str> = answers.judged.iter().take(2).map(|machine| machine.name.as_str()).collect();
    assert_eq!(names, ["node0003", "node0007"]);
    assert_eq!((answers.judged[0].missed, answers.judged[0].max_ns), (1, Some(250_000)));
    let without = ask(&set, &asked(None, 10));
    assert_eq!(of(&without, Judged::NoDeadline), 20);
}

#[test]
fn what_is_not_proven_emulated_or_failed_by_its_plan_is_told_apart() {
    let mut set = fleet(3, 1, 2);
    set.places[0].self_test_passed = Some(false);
    set.places[1].evidence = Some("emulated".into());
    set.places[1].max_ns = Some(9_000_000);
    let answers = ask(&set, &asked(Some(100_000), 1));
    let outcome = |name: &str| answers.judged.iter().find(|machine| machine.name == name).unwrap().outcome;
    assert_eq!(outcome("node0000"), Judged::Unproven);
    assert_eq!(outcome("node0001"), Judged::NotJudged);
    assert_eq!(outcome("node0002"), Judged::Held);
    set.places[2].verdict = Some("fail".into());
    let answers = ask(&set, &asked(None, 1));
    assert_eq!(of(&answers, Judged::Missed), 1);
}

#[test]
fn a_planted_pair_of_firmware_and_microcode_is_found_among_what_goes_together() {
    let mut set = fleet(200, 3, 3);
    for place in &mut set.places {
        let properties = &set.runs[place.run].properties;
        if properties[0].as_deref() == Some("BIOS 2") && properties[1].as_deref() == Some("0x1") {
            place.max_ns = Some(180_000);
        }
    }
    let answers = ask(&set, &asked(Some(100_000), 3));
    let first = &answers.explained.found[0];
    assert_eq!(first.is, ["firmware BIOS 2 with microcode 0x1"], "{:#?}", answers.explained);
    assert!(first.with == first.with_outliers && first.without_outliers == 0);
    assert!(first.chance_of_all < 1e-6);
    // The same without a deadline: far above the others.
    assert_eq!(ask(&set, &asked(None, 3)).explained.found[0].is, first.is);
}

#[test]
fn what_has_the_same_machines_is_named_together() {
    let mut set = fleet(100, 1, 4);
    for (number, run) in set.runs.iter_mut().enumerate() {
        if number % 4 == 0 {
            run.properties[0] = Some("BIOS X".into());
            run.findings.insert("smi-storm".into());
        }
    }
    for (number, place) in set.places.iter_mut().enumerate() {
        if number % 4 == 0 {
            place.max_ns = Some(300_000);
        }
    }
    let answers = ask(&set, &asked(Some(100_000), 1));
    assert_eq!(answers.explained.found[0].is, ["finding smi-storm", "firmware BIOS X"]);
}

#[test]
fn a_few_machines_have_no_cause_in_common_however_alike_they_are() {
    for machines in [3, 9, 12] {
        let mut set = fleet(machines, 1, 5);
        for (place, run) in set.places.iter_mut().zip(&mut set.runs).take(3) {
            place.max_ns = Some(400_000);
            run.properties[0] = Some("BIOS bad".into());
        }
        let explained = ask(&set, &asked(Some(100_000), 1)).explained;
        assert!(explained.found.is_empty() && explained.nothing.is_some(), "{explained:#?}");
    }
}

/// In a fleet where chance alone decides who has outliers a cause is named in at most 5 of 100 fleets, but for chance.
#[test]
fn where_nothing_goes_together_nothing_is_named() {
    let (mut named, mut drifted) = (0, 0);
    for seed in 1..=200 {
        let mut set = fleet(60, 20, seed);
        let mut random = Random(seed * 77 + 1);
        for place in set.places.iter_mut().rev().take(60) {
            if random.below(4) == 0 {
                place.max_ns = Some(200_000);
            }
        }
        let answers = ask(&set, &asked(Some(100_000), 20));
        named += usize::from(!answers.explained.found.is_empty());
        drifted += usize::from(!answers.drift.found.is_empty());
        assert!(answers.drift.asked == 60);
    }
    // 5 % of 200 are 10; 20 is three standard deviations more.
    assert!(named <= 20 && drifted <= 20, "{named} and {drifted} of 200 fleets");
}

#[test]
fn a_machine_that_drifts_is_found_among_those_that_do_not() {
    let mut set = fleet(40, 30, 6);
    for place in &mut set.places {
        if set.runs[place.run].name == "node0011" {
            let day = place.run / 40;
            place.p999_ns = place.p999_ns.map(|p999| p999 + 600 * u64::try_from(day).unwrap());
        }
    }
    let drift = ask(&set, &asked(None, 30)).drift;
    assert_eq!(drift.asked, 40);
    let names: Vec<&str> = drift.found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["node0011"], "{drift:#?}");
    assert!(drift.found[0].times_in_30_days > 1.3);
    let few = ask(&fleet(40, 9, 6), &asked(None, 9)).drift;
    assert_eq!((few.asked, few.too_few, few.found.len()), (0, 40, 0));
}

#[test]
fn machines_that_stopped_and_those_that_were_never_seen_are_missing() {
    let mut set = fleet(5, 10, 7);
    let last = |run: &Run| run.name == "node0002" && run.started_us >= BEGIN_US + 4 * DAY_US;
    let gone: BTreeSet<usize> =
        set.runs.iter().enumerate().filter(|(_, run)| last(run)).map(|(number, _)| number).collect();
    set.places.clear();
    let mut number = 0;
    set.runs.retain(|_| {
        number += 1;
        !gone.contains(&(number - 1))
    });
    let mut asked = asked(None, 10);
    let missing = ask(&set, &asked).missing;
    assert_eq!(missing.len(), 1);
    assert_eq!((missing[0].name.as_str(), missing[0].days), ("node0002", Some(6)));
    asked.expect = ["node0001", "node0002", "rack-9", "m0003", "rack-9"].map(str::to_owned).to_vec();
    let names: Vec<String> = ask(&set, &asked).missing.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["rack-9", "node0002"]);
    // The whole fleet stopped.
    asked.now_us += 30 * DAY_US;
    asked.expect.clear();
    assert_eq!(ask(&set, &asked).missing.len(), 5);
}

#[test]
fn what_was_changed_is_named_with_the_run_that_had_it_first() {
    let mut set = fleet(4, 6, 8);
    for run in &mut set.runs {
        if run.name == "node0001" && run.started_us >= BEGIN_US + 4 * DAY_US {
            run.properties[0] = Some("BIOS 9".into());
        }
    }
    let changes = ask(&set, &asked(None, 6)).changes;
    assert_eq!(changes.len(), 1, "{changes:#?}");
    assert_eq!((changes[0].what, changes[0].now.as_deref()), ("firmware", Some("BIOS 9")));
    assert!(changes[0].started.as_deref().unwrap().starts_with("2026-11-05"));
}

#[test]
fn machines_of_one_name_are_called_by_their_keys_too() {
    let mut set = fleet(3, 1, 9);
    set.runs[1].name = "node0000".into();
    let names: BTreeSet<String> = ask(&set, &asked(None, 1)).judged.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["node0000 (m0000)", "node0000 (m0001)", "node0002"].map(str::to_owned).into());
}

#[test]
fn an_empty_data_set_has_nothing_to_say_and_says_so() {
    let answers = ask(&Set::default(), &asked(Some(1), 0));
    assert!(answers.judged.is_empty() && answers.missing.is_empty());
    assert!(answers.explained.nothing.is_some());
}
