//! A journal with unreadable lines: the readable steps are taken back, and the rest is reported.

use std::collections::BTreeMap;
use std::path::Path;

use tactus_system::System;

use super::kernel::Kernel;
use super::transaction::{files, machine, order, plan};
use crate::apply::{TuneError, apply, settle};
use crate::revert::{Back, revert};
use crate::transaction::{Damage, KEPT};
use crate::verify::in_force;

const JOURNAL: &str = "/var/lib/tactus/tune/journal.jsonl";

/// A machine on which a plan was applied, and how it was before; then lines of the journal are changed.
fn damaged(damage: impl FnOnce(&mut Vec<String>)) -> (Kernel, BTreeMap<String, String>) {
    let machine = machine();
    let before = files(&machine);
    apply(&machine, &plan(), &order(true)).unwrap();
    let text = machine.memory.text(JOURNAL).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    damage(&mut lines);
    machine.memory.install(Path::new(JOURNAL), (lines.join("\n") + "\n").as_bytes(), 0o600).unwrap();
    (machine, before)
}

fn garble(line: &mut String) {
    line.replace_range(3..9, "\u{fffd}");
}

/// The files, and what was kept of a damaged journal apart from them.
fn files_and_kept(machine: &Kernel) -> (BTreeMap<String, String>, Option<String>) {
    let mut all = files(machine);
    let kept = all.remove(&JOURNAL.replace("journal.jsonl", KEPT));
    (all, kept)
}

fn refused<T>(result: Result<T, TuneError>) -> Damage {
    match result {
        Err(TuneError::Damaged(damage)) => *damage,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it is not refused"),
    }
}

#[test]
fn steps_without_a_readable_profile_are_taken_back_and_that_is_said() {
    let (machine, before) = damaged(|lines| garble(&mut lines[0]));
    let dry = revert(&machine, Back { dry_run: true, ..Back::default() }).unwrap();
    let reverted = revert(&machine, Back::default()).unwrap();
    let damage = reverted.damage.unwrap();
    assert_eq!((damage.lines.as_slice(), damage.nameless, damage.lost), ([1].as_slice(), true, 0));
    assert!(damage.steps > 10 && dry.undone.len() == damage.steps, "{damage:?}");
    let said = damage.to_string();
    assert!(said.starts_with("line 1 of /var/lib/tactus/tune/journal.jsonl cannot be read"), "{said}");
    let (after, kept) = files_and_kept(&machine);
    assert_eq!(after, before);
    assert!(kept.is_some_and(|text| text.contains('\u{fffd}')), "what could not be read is kept");
    assert!(matches!(revert(&machine, Back::default()), Err(TuneError::Nothing)), "and only once");
}

#[test]
fn nothing_is_verified_and_nothing_applied_on_top_of_what_cannot_be_read() {
    let (machine, _) = damaged(|lines| garble(&mut lines[0]));
    let applied = files(&machine);
    for damage in [refused(in_force(&machine)), refused(apply(&machine, &plan(), &order(true)))] {
        assert!(damage.nameless && damage.steps > 10, "{damage:?}");
    }
    assert_eq!(files(&machine), applied);
}

#[test]
fn an_unfinished_apply_of_which_the_first_line_cannot_be_read_is_taken_back_too() {
    let (machine, before) = damaged(|lines| {
        garble(&mut lines[0]);
        lines.pop();
    });
    let recovered = settle(&machine).unwrap().unwrap();
    assert!(recovered.left.is_empty() && recovered.damage.is_some_and(|damage| damage.nameless));
    assert_eq!(files_and_kept(&machine).0, before);
}

#[test]
fn a_journal_of_which_no_line_can_be_read_is_left_where_it_is() {
    let (machine, _) = damaged(|lines| lines.iter_mut().for_each(|line| line.insert(0, '?')));
    let text = machine.memory.text(JOURNAL);
    for damage in
        [refused(revert(&machine, Back::default())), refused(apply(&machine, &plan(), &order(true)))]
    {
        assert_eq!((damage.nameless, damage.steps), (true, 0));
        assert!(damage.to_string().ends_with("no other line names a step"), "{damage}");
    }
    assert!(text.is_some() && machine.memory.text(JOURNAL) == text);
}

#[test]
fn a_step_that_was_done_and_cannot_be_read_is_missed() {
    let (machine, before) = damaged(|lines| {
        let line = lines.iter_mut().find(|line| line.contains("\"path\":\"/proc/sys/vm/swappiness\""));
        garble(line.unwrap());
    });
    let damage = revert(&machine, Back::default()).unwrap().damage.unwrap();
    assert_eq!((damage.nameless, damage.lost), (false, 1));
    assert!(damage.to_string().contains("; 1 of the completed steps were in it"), "{damage}");
    let (mut after, _) = files_and_kept(&machine);
    assert_eq!(after.insert("/proc/sys/vm/swappiness".into(), "60\n".into()).as_deref(), Some("10\n"));
    assert_eq!(after, before, "the others are taken back");
}

#[test]
fn a_line_that_a_power_cut_has_cut_is_no_damage() {
    let (machine, before) = damaged(|lines| lines.truncate(1));
    machine.memory.append(Path::new(JOURNAL), b"{\"intent\":{\"id\":0,\"bo").unwrap();
    let set = files(&machine);
    let reverted = revert(&machine, Back::default()).unwrap();
    assert!(reverted.damage.is_none() && reverted.recovered.unwrap().damage.is_none());
    assert!(machine.memory.text(JOURNAL).is_none() && set.len() > before.len());
}

#[test]
fn a_journal_of_which_all_that_can_be_read_was_unfinished_is_kept_aside_and_nothing_is_in_force() {
    let (machine, _) = damaged(|lines| {
        // One transaction that was finished, with unreadable steps, and one that was not.
        let step = lines.iter().find(|line| line.contains("intent")).unwrap().clone();
        let mut unreadable = step.clone();
        garble(&mut unreadable);
        let done = r#"{"done":{"id":900,"reads":""}}"#.to_owned();
        let begin = lines[0].clone();
        *lines = vec![begin, unreadable, done, "\"commit\"".into(), step];
    });
    let reverted = revert(&machine, Back { force: true, ..Back::default() }).unwrap();
    let recovered = reverted.recovered.unwrap();
    assert!(recovered.left.is_empty() && recovered.undone.len() == 1, "{recovered:?}");
    assert!(recovered.damage.is_some_and(|damage| damage.lost == 1));
    assert!(machine.memory.text(JOURNAL).is_none(), "nothing is applied any more");
    let (_, kept) = files_and_kept(&machine);
    assert!(kept.is_some_and(|text| text.contains("900")));
}
