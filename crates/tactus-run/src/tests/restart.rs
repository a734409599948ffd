//! Environments that die while they are measured, and are started again.

use tactus_model::outcome::Restart;

use super::*;

/// A plan of these scripts whose environments are restarted up to `restart` times.
fn restarted(scripts: &[(&str, &'static Scripted)], restart: u32) -> Resolved {
    let mut plan = written(scripts);
    plan.defaults.restart = Some(restart);
    resolved_as(&plan, &Choices::default(), scripts)
}

fn notes(contents: &Contents, row: usize) -> String {
    let notes = contents.rows[row].result.notes.iter().map(|note| note.text.clone());
    notes.collect::<Vec<_>>().join("\n")
}

#[test]
fn one_that_dies_is_started_again_and_measures_what_is_left_in_the_same_row() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] = &[("a", &MORTAL), ("b", &GOOD)];
    let (status, contents, events) = perform_resolved(&restarted(scripts, 2), dir.path(), false);
    assert_eq!(status, RunStatus::Complete);
    let row = &contents.rows[0];
    let result = &row.result;
    assert_eq!((result.ended, result.reason.as_deref()), (RowEnd::Complete, None));
    let all = result.all().unwrap();
    assert_eq!((all.cycles, all.lost, all.max_ns), (9, 0, Some(9_000)), "each start has one tick of three");
    let ticks: Vec<(u64, u64)> = row.ticks.iter().map(|(_, tick)| (tick.first, tick.at_ns)).collect();
    assert_eq!(ticks, [(0, 1_000_000_000), (1, 2_000_000_000), (2, 3_000_000_000)]);
    assert_eq!(row.histogram().len(), 9);
    let at: Vec<(u64, u64)> = result.restarts.iter().map(|one| (one.at_ns, one.first_tick)).collect();
    assert_eq!(at, [(1_000_000_000, 1), (2_000_000_000, 2)]);
    let gap = |one: &Restart| one.gap_ns > 0 && one.reason.contains("Kernel panic");
    assert!(result.restarts.iter().all(gap), "{:?}", result.restarts);
    let told = events.iter().filter(|event| matches!(event, Event::Restarted { row: 0, .. })).count();
    assert_eq!(told, 2, "who watches hears it, too");
    let said = notes(&contents, 0);
    assert!(said.contains("it died after 1.0 s") && said.contains("it died after 2.0 s"), "{said}");
    assert!(said.contains("Kernel panic") && said.contains("start 3 of at most 3"), "{said}");
    let seen: Vec<(Stage, bool)> = result.control.iter().map(|one| (one.stage, one.is_seen())).collect();
    let before = (Stage::Before, true);
    assert_eq!(seen, [before, before, before, (Stage::After, true)], "each start proves its instrument");
    assert_eq!((result.waits.as_ref(), result.clock_fit), (None, None), "which are of one start");
    assert_eq!(contents.rows[1].result.ended, RowEnd::Complete);
    assert!(contents.rows[1].result.restarts.is_empty());
}

#[test]
fn one_that_dies_more_often_than_it_is_started_ends_with_its_words_and_keeps_what_arrived() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, _) = perform_resolved(&restarted(&[("a", &MORTAL)], 1), dir.path(), false);
    let result = &contents.rows[0].result;
    let reason = result.reason.as_deref().unwrap();
    assert_eq!(result.ended, RowEnd::Failed);
    assert!(reason.contains("Kernel panic") && reason.contains("it had been started 2 times"), "{reason}");
    assert_eq!((result.all().unwrap().cycles, result.measured_ns), (6, 2_000_000_000));
    assert_eq!(result.restarts.len(), 1);
    // Without the key it is as it ever was.
    let (_, contents, _) = perform_resolved(&restarted(&[("a", &MORTAL)], 0), &dir.path().join("b"), false);
    let result = &contents.rows[0].result;
    assert_eq!((result.ended, result.restarts.len()), (RowEnd::Failed, 0));
    let reason = result.reason.as_deref().unwrap();
    assert_eq!(reason, "a ended during the measurement: Kernel panic - not syncing: the script says so");
}

#[test]
fn one_that_cannot_be_started_again_ends_with_the_reason_of_that() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] = &[("a", &STARTS_ONCE), ("b", &GOOD)];
    let (_, contents, events) = perform_resolved(&restarted(scripts, 3), dir.path(), false);
    let result = &contents.rows[0].result;
    let reason = result.reason.as_deref().unwrap();
    assert_eq!(result.ended, RowEnd::Failed);
    let said = ["Kernel panic", "could not be started again", "no space left on device"];
    assert!(said.iter().all(|words| reason.contains(words)), "{reason}");
    assert_eq!((result.all().unwrap().cycles, result.restarts.len()), (3, 0));
    let starts = events
        .iter()
        .filter(|event| matches!(event, Event::EnvironmentStarting { environment } if environment == "a"));
    assert_eq!(starts.count(), 4, "it was tried as often as it may be");
    assert_eq!(contents.rows[1].result.ended, RowEnd::Complete, "the run goes on");
}

#[test]
fn a_new_start_whose_control_does_not_arrive_has_no_proven_instrument() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, _) = perform_resolved(&restarted(&[("a", &MORTAL_BLIND)], 2), dir.path(), false);
    let result = &contents.rows[0].result;
    assert_eq!((result.ended, result.restarts.len()), (RowEnd::Complete, 2));
    let before = result.control.iter().filter(|control| control.stage == Stage::Before);
    assert_eq!(before.count(), 0, "that of the first start proves nothing of the others");
}

#[test]
fn a_load_that_dies_comes_back_and_who_was_measured_beside_it_says_so() {
    for restart in [1, 0] {
        LOAD_STARTS.store(0, Ordering::SeqCst);
        let dir = tempfile::tempdir().unwrap();
        let scripts: &[(&str, &'static Scripted)] = &[("a", &SLOW), ("b", &LOAD_DIES)];
        let mut resolved = restarted(scripts, restart);
        let load = Activity::new(1, CpuSet::one(0), What::Load(Load::Cpu(Cpu::default())));
        let activity = ResolvedActivity { environment: "b".into(), activity: load, path: None };
        resolved.scenarios[0].activities.push(activity);
        resolved.scenarios.truncate(1);
        let (_, contents, _) = perform_resolved(&resolved, dir.path(), false);
        assert_eq!(contents.rows[0].result.ended, RowEnd::Complete);
        let said = notes(&contents, 0);
        let expected = match restart {
            0 => "b ended before it was told to: Kernel panic",
            _ => "b, which is not measured, died (ended before it was told to: Kernel panic",
        };
        assert!(said.contains(expected), "{said}");
    }
}

/// The same, taken for dead after two seconds without a word.
fn dead_after_two_seconds(scripts: &[(&str, &'static Scripted)], restart: u32) -> Resolved {
    let mut plan = written(scripts);
    plan.defaults.restart = Some(restart);
    plan.defaults.dead_after = Some(tactus_model::Nanos::from_secs(2));
    resolved_as(&plan, &Choices::default(), scripts)
}

#[test]
fn one_that_says_nothing_is_dead_after_a_while_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut resolved = dead_after_two_seconds(&[("a", &SILENT), ("b", &SLOW)], 0);
    // Both at once.
    let mut second = resolved.scenarios.pop().unwrap();
    resolved.scenarios[0].activities.append(&mut second.activities);
    resolved.scenarios[0].rows = 0..2;
    let (_, contents, _) = perform_resolved(&resolved, dir.path(), false);
    let result = &contents.rows[0].result;
    let reason = result.reason.as_deref().unwrap();
    assert_eq!((result.ended, result.all().unwrap().cycles), (RowEnd::Failed, 3));
    assert!(reason.starts_with("a was silent for 2s: Kernel panic"), "{reason}");
    assert_eq!(contents.rows[1].result.ended, RowEnd::Complete);
}

#[test]
fn one_that_says_nothing_is_started_again_as_one_that_died() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, _) = perform_resolved(&dead_after_two_seconds(&[("a", &SILENT)], 1), dir.path(), false);
    let result = &contents.rows[0].result;
    assert_eq!((result.ended, result.all().unwrap().cycles), (RowEnd::Complete, 9));
    assert_eq!(result.restarts.len(), 1);
    assert!(result.restarts[0].reason.starts_with("was silent for 2s"), "{:?}", result.restarts);
}

#[test]
fn one_that_is_paused_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, _) = perform_resolved(&dead_after_two_seconds(&[("a", &PAUSED)], 1), dir.path(), false);
    let result = &contents.rows[0].result;
    assert_eq!((result.ended, result.all().unwrap().cycles), (RowEnd::Complete, 9));
    assert!(result.restarts.is_empty());
    let said = notes(&contents, 0);
    assert_eq!(
        said.matches("its hypervisor reports that it is paused: tactus waits for it").count(),
        1,
        "{said}"
    );
}

#[test]
fn what_yields_values_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] = &[("a", &VALUES_DIE)];
    let mut plan = values(scripts);
    plan.defaults.restart = Some(3);
    let resolved = resolved_as(&plan, &Choices::default(), scripts);
    let (_, contents, _) = perform_resolved(&resolved, dir.path(), false);
    let result = &contents.rows[0].result;
    let reason = result.reason.as_deref().unwrap();
    assert!(reason.contains("it is not started again: a measurement of values"), "{reason}");
}

#[test]
fn a_bundle_of_a_run_that_was_gone_on_with_follows_from_its_events() {
    let dir = tempfile::tempdir().unwrap();
    let resolved = restarted(&[("a", &MORTAL)], 2);
    let guardian = Guardian::start(&Real).unwrap();
    let into = writer(&resolved, dir.path());
    let (status, _, events) = perform_stamped(guardian, into, &resolved, dir.path(), false);
    let place = dir.path().join("again");
    Real.make_dir(&place).unwrap();
    let mut recorder = Recorder::new(writer(&resolved, &place), &resolved);
    for event in events {
        recorder.record(&event).unwrap();
    }
    Box::new(recorder).finish(status).unwrap();
    let (then, now) = (files(&dir.path().join("bundle")), files(&place.join("bundle")));
    for (name, bytes) in then {
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&now[&name]), "{name}");
    }
}
