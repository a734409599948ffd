//! A machine of very many threads and settings, and the journal of all of them.

use tactus_model::change::{Change, Effect, Form, Target};
use tactus_system::Memory;

use super::transaction::{order, planned};
use crate::apply::{ApplyOptions, apply, dir};
use crate::cpu_time::cpu_time;
use crate::plan::Plan;
use crate::revert::{Back, revert};
use crate::transaction::{Action, Journal};

fn path(n: u32) -> String {
    format!("/proc/irq/{n}/smp_affinity_list")
}

/// A machine on which `settings` settings have been made and written down.
fn machine(settings: u32) -> Memory {
    let boot = "11111111-2222";
    let memory = Memory::new().root().file("/proc/sys/kernel/random/boot_id", boot);
    let memory = (0..settings).fold(memory, |memory, n| memory.file(path(n), "0\n"));
    let action = |n| Action::Write {
        path: path(n),
        form: Form::List,
        former: "0-7\n".into(),
        then: "0".into(),
        linked: None,
    };
    let actions: Vec<Action> = (0..settings).map(action).collect();
    {
        let (mut journal, _) = Journal::open(&memory, &dir(&memory)).unwrap();
        journal.begin(order(false).begin).unwrap();
        journal.intend(boot, &actions.iter().collect::<Vec<_>>()).unwrap();
        journal.done((0..u64::from(settings)).map(|id| (id, "0\n".into())).collect()).unwrap();
        journal.commit().unwrap();
    }
    memory
}

fn plan(settings: u32) -> Plan {
    let change = |n| Change {
        check: "irq".into(),
        target: Target::File { path: path(n), form: Form::List },
        now: None,
        then: "1".into(),
        effect: Effect::Runtime,
    };
    planned((0..settings).map(change).collect())
}

#[test]
fn ten_times_the_steps_take_ten_times_as_long_and_not_a_hundred() {
    let time = |settings| {
        let (machine, plan) = (machine(settings), plan(settings));
        let order = ApplyOptions { dry_run: true, ..order(false) };
        cpu_time(|| {
            let applied = apply(&machine, &plan, &order).unwrap();
            assert_eq!(applied.steps.len() + applied.foreign.len(), settings as usize);
            let back = revert(&machine, Back { dry_run: true, ..Back::default() }).unwrap();
            assert_eq!(back.undone.len(), settings as usize);
        })
    };
    let (few, many) = (time(1_000), time(10_000));
    assert!(many < few * 40, "{few:?}, {many:?}");
}

#[test]
fn all_of_twenty_thousand_steps_are_taken_back_and_the_journal_is_closed() {
    let machine = machine(20_000);
    let back = revert(&machine, Back::default()).unwrap();
    assert_eq!((back.undone.len(), back.left.len()), (20_000, 0));
    assert!(revert(&machine, Back::default()).is_err(), "nothing is applied");
}
