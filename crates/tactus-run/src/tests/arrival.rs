//! Data of a measurement and of its self-test that arrives or is lost, and the effects of a loss.

use super::*;

#[test]
fn the_last_totals_arrive_where_the_last_tick_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, _) = perform(&[("a", &LAST_TICK_LOST), ("b", &GOOD)], dir.path(), false);
    let result = &contents.rows[0].result;
    let all = result.all().unwrap();
    // The largest value was in the tick that was lost.
    assert_eq!((all.cycles, all.lost, all.max_ns), (9, 3, Some(9_002)));
    assert!(result.series()[0].whole && result.frames_lost >= 1);
    assert!(result.threads.as_ref().is_some_and(|threads| !threads.is_empty()));
}

#[test]
fn a_row_of_which_no_report_arrived_was_not_measured() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, events) = perform(&[("a", &UNHEARD), ("b", &GOOD)], dir.path(), false);
    let result = &contents.rows[0].result;
    assert_eq!((result.status, result.ended), (RowStatus::Failed, RowEnd::Failed));
    let why = result.reason.as_deref().unwrap();
    assert!(why.starts_with("none of its numbers arrived") && why.contains("frames were lost"), "{why}");
    assert!(result.frames_lost >= 6, "{}", result.frames_lost);
    let told = events.iter().find_map(|event| match event {
        Event::RowFinished { row: 0, ending, .. } => Some(ending.ended),
        _ => None,
    });
    assert_eq!(told, Some(RowEnd::Failed), "who watches hears it, too");
}

#[test]
fn the_control_is_seen_before_and_after_and_judged_by_what_arrived() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, _) = perform(&[("a", &GOOD), ("b", &LOSSY_CONTROL)], dir.path(), false);
    let result = &contents.rows[0].result;
    let seen: Vec<(Stage, bool)> = result.control.iter().map(|one| (one.stage, one.is_seen())).collect();
    assert_eq!(seen, [(Stage::Before, true), (Stage::After, true)]);
    assert_eq!(result.clock.as_ref().unwrap().step_ns, Some(30));
    // A lossy line: what did not arrive proves nothing.
    assert!(contents.rows[1].result.control.is_empty() && contents.rows[1].result.frames_lost > 0);
}

#[test]
fn clocks_at_half_the_rate_and_in_coarse_steps_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: &[(&str, &'static Scripted)] = &[("half", &HALF_RATE), ("coarse", &COARSE), ("good", &GOOD)];
    let (_, contents, _) = perform(scripts, dir.path(), false);
    let why = |name: &str| {
        let row = contents.rows.iter().find(|row| row.result.name == name).unwrap();
        assert!(row.result.control.iter().all(Control::is_seen), "by itself it sees all");
        row.result.clock.as_ref().unwrap().refusal()
    };
    let half = why("half").unwrap();
    assert!(half.contains("of the rate of the clock of the machine that tactus runs on, or less"), "{half}");
    assert_eq!(why("coarse").as_deref(), Some("its clock moves in steps of 4ms"));
    assert_eq!(why("good"), None);
}

#[test]
fn a_clock_is_compared_with_that_of_another_kernel_and_never_with_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (_, contents, _) = perform(&[("same", &SAME_KERNEL), ("other", &GOOD)], dir.path(), false);
    let rates = |name: &str| {
        let row = contents.rows.iter().find(|row| row.result.name == name).unwrap();
        row.result.clock.as_ref().unwrap().rates.len()
    };
    assert_eq!((rates("same"), rates("other")), (0, 1));
}
