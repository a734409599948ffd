//! The power fails at any write of an apply or a revert, and the machine comes back.

use std::path::Path;

use tactus_system::System;

use super::kernel::{Fate, Kernel};
use super::transaction::{files, machine, order, plan};
use crate::apply::apply;
use crate::revert::{Back, revert};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// How a power cut leaves the write in which it comes: not begun, done, or half on the disk.
const CUTS: [Fate; 3] = [Fate::DeadBefore, Fate::DeadAfter, Fate::Torn];

/// The kernel begins with its own values again; what lies on the disk stays.
fn reboot(machine: &Kernel, before: &std::collections::BTreeMap<String, String>) {
    for (path, text) in
        before.iter().filter(|(path, _)| path.starts_with("/proc") || path.starts_with("/sys"))
    {
        machine.memory.write(Path::new(path), text.as_bytes()).unwrap();
    }
    machine.memory.write(Path::new(BOOT_ID), b"33333333-4444\n").unwrap();
}

/// After the power has failed at this write, and a revert in the next boot, all is as it was.
fn comes_back(cut: Fate, step: usize, applied: bool) {
    let machine = machine();
    let before = files(&machine);
    if applied {
        apply(&machine, &plan(), &order(true)).unwrap();
    }
    let dying = machine.with_fate(step, cut);
    if applied {
        let _ = revert(&dying, Back::default());
    } else {
        let _ = apply(&dying, &plan(), &order(true));
    }
    reboot(&machine, &before);
    let reverted = revert(&machine, Back::default());
    let left = reverted.as_ref().map(|reverted| reverted.left.len()).unwrap_or_default();
    let mut after = files(&machine);
    after.insert(BOOT_ID.into(), before[BOOT_ID].clone());
    assert_eq!((left, after), (0, before), "{cut:?} at {step}: {reverted:?}");
}

#[test]
fn a_power_cut_at_any_write_of_an_apply_leaves_nothing_after_the_next_boot() {
    let all = {
        let machine = machine();
        apply(&machine, &plan(), &order(true)).unwrap();
        machine.steps()
    };
    assert!(all > 10, "{all}");
    for cut in CUTS {
        (0..all).for_each(|step| comes_back(cut, step, false));
    }
}

#[test]
fn a_power_cut_at_any_write_of_a_revert_leaves_nothing_after_the_next_boot() {
    let all = {
        let machine = machine();
        apply(&machine, &plan(), &order(true)).unwrap();
        let fresh = machine.with_fate(usize::MAX, Fate::Refused);
        revert(&fresh, Back::default()).unwrap();
        fresh.steps()
    };
    assert!(all > 10, "{all}");
    for cut in CUTS {
        (0..all).for_each(|step| comes_back(cut, step, true));
    }
}
