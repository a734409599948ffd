use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use tactus_model::change::{Change, Effect, Form, Target, Thread};
use tactus_model::finding::{Isolation, Role};
use tactus_system::{Memory, System};

use super::kernel::{Fate, Kernel};
use crate::apply::{ApplyOptions, TuneError, apply, settle};
use crate::plan::{Layer, Plan, PlannedChange};
use crate::revert::{Back, revert};
use crate::transaction::{Begin, Outcome, Undone};

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

pub(super) fn machine() -> Kernel {
    let memory = Memory::new()
        .root()
        .program("update-grub")
        .file("/proc/sys/kernel/random/boot_id", "11111111-2222\n")
        .file("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n")
        .file("/boot/grub/grub.cfg", "GRUB_CMDLINE_LINUX=\"quiet\"\n")
        .file(SWAPPINESS, "60\n")
        .file(THP, "always [madvise] never\n")
        .file("/proc/sys/vm/dirty_ratio", "0\n")
        .file("/proc/sys/vm/dirty_bytes", "1073741824\n")
        .file("/proc/sys/kernel/printk", "4\t4\t1\t7\n")
        .file("/sys/devices/virtual/workqueue/cpumask", "ff\n")
        .file("/proc/irq/9/smp_affinity_list", "0-7\n");
    Kernel::new(memory).thread(16, "rcuc/1", 0, 0, "1").thread(900, "journald", 0, 0, "0-7")
}

fn file(path: &str, form: Form, then: &str) -> Change {
    let target = Target::File { path: path.into(), form };
    Change { check: "x".into(), target, now: None, then: then.into(), effect: Effect::Runtime }
}

pub(super) fn plan() -> Plan {
    let thread = |tid, name: &str| Thread { tid, name: name.into(), started: None };
    let runtime = |target, then: &str| Change {
        check: "threads".into(),
        target,
        now: None,
        then: then.into(),
        effect: Effect::Runtime,
    };
    let boot = |parameter: &str, then: &str| Change {
        check: "boot".into(),
        target: Target::Kernel { parameter: parameter.into() },
        now: None,
        then: then.into(),
        effect: Effect::Boot,
    };
    let later = |target, then: &str| Change {
        check: "later".into(),
        target,
        now: None,
        then: then.into(),
        effect: Effect::Restart,
    };
    let drop_in = Target::DropIn {
        unit: "irqbalance.service".into(),
        section: "Service".into(),
        key: "Environment".into(),
    };
    let module = Target::Module { module: "kvm".into(), parameter: "kvmclock_periodic_sync".into() };
    let changes = vec![
        file(SWAPPINESS, Form::Plain, "10"),
        file(THP, Form::Choice, "never"),
        file("/proc/sys/vm/dirty_ratio", Form::Plain, "10"),
        file("/proc/sys/kernel/printk", Form::Words, "3 4 1 7"),
        file("/sys/devices/virtual/workqueue/cpumask", Form::Mask, "03"),
        file("/proc/irq/9/smp_affinity_list", Form::List, "0,1"),
        runtime(Target::Scheduling(thread(16, "rcuc/1")), "FIFO 4"),
        runtime(Target::Affinity(thread(900, "journald")), "0,1"),
        runtime(Target::Affinity(thread(901, "gone")), "0,1"),
        boot("isolcpus", "managed_irq,domain,2-7"),
        boot("nosoftlockup", ""),
        later(module, "0"),
        later(drop_in, "IRQBALANCE_BANNED_CPULIST=2-7"),
    ];
    planned(changes)
}

pub(super) fn planned(changes: Vec<Change>) -> Plan {
    let step = |change: Change| PlannedChange {
        holds: change.holds(),
        change,
        layer: Layer::Profile,
        risk: String::new(),
        gives_up: "",
        pitfalls: Vec::new(),
    };
    Plan {
        profile: "realtime".into(),
        role: Role::Host,
        isolation: Isolation { isolated: "2-7".parse().unwrap(), ..Isolation::default() },
        entries: changes.into_iter().map(step).collect(),
        withheld: Vec::new(),
        refusals: Vec::new(),
        pitfalls: Vec::new(),
        contradictions: Vec::new(),
        remarks: Vec::new(),
    }
}

pub(super) fn order(persist: bool) -> ApplyOptions {
    let begin =
        Begin { profile: "realtime".into(), isolated: "2-7".parse().unwrap(), persist, ..Begin::default() };
    ApplyOptions { begin, ..ApplyOptions::default() }
}

/// Every file that is not tactus's own record.
pub(super) fn files(machine: &Kernel) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut dirs = vec![Path::new("/").to_owned()];
    while let Some(dir) = dirs.pop() {
        for path in machine.memory.list(&dir).unwrap_or_default() {
            match machine.memory.read(&path) {
                Ok(bytes) => {
                    let name = path.to_string_lossy().into_owned();
                    all.insert(name, String::from_utf8_lossy(&bytes).into_owned());
                }
                Err(_) => dirs.push(path),
            }
        }
    }
    all
}

fn text(machine: &Kernel, path: &str) -> String {
    machine.memory.text(path).unwrap_or_default()
}

#[test]
fn a_plan_is_carried_out_and_taken_back_byte_for_byte() {
    for persist in [false, true] {
        let machine = machine();
        let before = files(&machine);
        let applied = apply(&machine, &plan(), &order(persist)).unwrap();
        assert_eq!(text(&machine, SWAPPINESS), "10\n");
        assert_eq!(text(&machine, THP), "always madvise [never]\n");
        assert!(text(&machine, "/proc/16/stat").contains(" 4 1 0 0"));
        assert_eq!(
            text(&machine, "/boot/grub/grub.cfg").contains("isolcpus=managed_irq,domain,2-7"),
            persist
        );
        assert_eq!(applied.waiting.is_empty(), persist);
        let refused: Vec<&str> = applied
            .steps
            .iter()
            .filter(|(_, outcome)| matches!(outcome, Outcome::Refused(_)))
            .filter_map(|(step, _)| step.action.then())
            .collect();
        assert_eq!(refused, ["0,1"], "the interrupt that cannot be moved, and nothing else");
        let reverted = revert(&machine, Back::default()).unwrap();
        assert!(reverted.left.is_empty(), "{:?}", reverted.left);
        assert_eq!(files(&machine), before);
    }
}

#[test]
fn whatever_step_fails_or_is_the_last_the_system_is_as_it_was() {
    let count = {
        let machine = machine();
        apply(&machine, &plan(), &order(true)).unwrap();
        machine.steps()
    };
    for fate in [Fate::Refused, Fate::DeadBefore, Fate::DeadAfter, Fate::Torn] {
        for step in 0..count {
            let machine = machine();
            let before = files(&machine);
            let result = apply(&machine.with_fate(step, fate), &plan(), &order(true));
            // The next call comes.
            let reverted = revert(&machine, Back::default());
            if let Ok(reverted) = &reverted {
                assert!(reverted.left.is_empty(), "{fate:?} at {step}: {:?}", reverted.left);
            }
            assert_eq!(files(&machine), before, "{fate:?} at {step} of {count}: {result:?}, {reverted:?}");
        }
    }
}

#[test]
fn a_refused_step_takes_everything_back_at_once() {
    let machine = machine();
    let before = files(&machine);
    // Step 0 begins the journal, 1 writes the steps down, 2 is the first of them.
    let error = apply(&machine.with_fate(4, Fate::Refused), &plan(), &order(false)).unwrap_err();
    let TuneError::Broken(broken) = error else { panic!("{error:?}") };
    assert_eq!(broken.failed.what, "write 10 to /proc/sys/vm/dirty_ratio");
    assert!(broken.failed.word.contains("Invalid argument") && broken.left.is_empty());
    assert_eq!(files(&machine), before);
}

#[test]
fn a_revert_that_was_cut_short_is_finished_by_the_next_call() {
    let count = {
        let machine = machine();
        apply(&machine, &plan(), &order(true)).unwrap();
        let fresh = machine.with_fate(usize::MAX, Fate::Refused);
        revert(&fresh, Back::default()).unwrap();
        fresh.steps()
    };
    for fate in [Fate::Refused, Fate::DeadBefore, Fate::DeadAfter, Fate::Torn] {
        for step in 0..count {
            let machine = machine();
            let before = files(&machine);
            apply(&machine, &plan(), &order(true)).unwrap();
            let first = revert(&machine.with_fate(step, fate), Back::default());
            let second = revert(&machine, Back::default());
            assert_eq!(files(&machine), before, "{fate:?} at {step} of {count}: {first:?}, {second:?}");
        }
    }
}

#[test]
fn what_another_tool_has_set_since_is_shown_and_left_alone() {
    let machine = machine();
    apply(&machine, &plan(), &order(false)).unwrap();
    machine.memory.write(Path::new(SWAPPINESS), b"33\n").unwrap();
    let again = apply(&machine, &plan(), &order(false)).unwrap();
    assert_eq!((again.foreign.len(), again.foreign[0].1.as_str()), (1, "33"));
    let reverted = revert(&machine, Back::default()).unwrap();
    assert_eq!(reverted.left.len(), 1);
    assert_eq!(reverted.left[0].1, Undone::Foreign("33".into()));
    assert_eq!(text(&machine, SWAPPINESS), "33\n");
    assert_eq!(text(&machine, THP), "always [madvise] never\n");
    // It is still known what was there, for those who insist.
    let forced = revert(&machine, Back { force: true, ..Back::default() }).unwrap();
    assert!(forced.left.is_empty());
    assert_eq!(text(&machine, SWAPPINESS), "60\n");
}

#[test]
fn what_another_tool_has_set_can_be_forgotten() {
    let machine = machine();
    apply(&machine, &plan(), &order(false)).unwrap();
    machine.memory.write(Path::new(SWAPPINESS), b"33\n").unwrap();
    assert!(revert(&machine, Back { leave: true, ..Back::default() }).unwrap().left.is_empty());
    assert!(matches!(revert(&machine, Back::default()), Err(TuneError::Nothing)));
    assert_eq!(text(&machine, SWAPPINESS), "33\n");
}

#[test]
fn a_forced_apply_still_goes_back_to_what_was_first() {
    let machine = machine();
    let before = files(&machine);
    apply(&machine, &plan(), &order(false)).unwrap();
    machine.memory.write(Path::new(SWAPPINESS), b"33\n").unwrap();
    let forced = ApplyOptions { force: true, ..order(false) };
    apply(&machine, &plan(), &forced).unwrap();
    assert_eq!(text(&machine, SWAPPINESS), "10\n");
    revert(&machine, Back::default()).unwrap();
    assert_eq!(files(&machine), before);
}

#[test]
fn after_a_reboot_values_are_gone_and_files_are_taken_back() {
    let machine = machine();
    let before = files(&machine);
    apply(&machine, &plan(), &order(true)).unwrap();
    // The kernel starts with its own values again; what lies on the disk stays.
    for (path, bytes) in &before {
        if path.starts_with("/proc") || path.starts_with("/sys") {
            machine.memory.write(Path::new(path), bytes.as_bytes()).unwrap();
        }
    }
    machine.memory.write(Path::new("/proc/sys/kernel/random/boot_id"), b"33333333-4444\n").unwrap();
    let reverted = revert(&machine, Back::default()).unwrap();
    assert!(reverted.left.is_empty());
    assert!(reverted.undone.iter().any(|(_, undone)| *undone == Undone::Gone));
    let mut after = files(&machine);
    after.insert("/proc/sys/kernel/random/boot_id".into(), "11111111-2222\n".into());
    assert_eq!(after, before);
}

#[test]
fn after_a_reboot_what_our_drop_ins_set_again_is_put_back_to_what_was_there_before_us() {
    let machine = machine();
    let before = files(&machine);
    apply(&machine, &plan(), &order(true)).unwrap();
    // The kernel starts with its own values, and the service manager sets those of our drop-ins again.
    let kept =
        [text(&machine, "/etc/sysctl.d/90-tactus.conf"), text(&machine, "/etc/tmpfiles.d/tactus.conf")]
            .concat();
    let named = |path: &str| kept.contains(path.strip_prefix("/proc/sys/").unwrap_or(path));
    for (path, bytes) in before.iter().filter(|(path, _)| !named(path)) {
        if path.starts_with("/proc") || path.starts_with("/sys") {
            machine.memory.write(Path::new(path), bytes.as_bytes()).unwrap();
        }
    }
    machine.memory.write(Path::new("/proc/sys/kernel/random/boot_id"), b"33333333-4444\n").unwrap();
    assert_eq!(text(&machine, SWAPPINESS), "10\n", "it is one of them");
    // Applied again it is still known what was there before us.
    apply(&machine, &plan(), &order(true)).unwrap();
    let reverted = revert(&machine, Back::default()).unwrap();
    assert!(reverted.left.is_empty(), "{:?}", reverted.left);
    let mut after = files(&machine);
    after.insert("/proc/sys/kernel/random/boot_id".into(), "11111111-2222\n".into());
    assert_eq!(after, before);
}

#[test]
fn a_file_of_somebody_else_is_never_overwritten() {
    let machine = machine();
    machine.memory.write(Path::new("/etc/sysctl.d/90-tactus.conf"), b"mine\n").unwrap();
    let before = files(&machine);
    let error = apply(&machine, &plan(), &order(true)).unwrap_err();
    let TuneError::Refused(refusals) = error else { panic!("{error:?}") };
    assert_eq!(refusals[0].what, "/etc/sysctl.d/90-tactus.conf exists and was not written by tactus");
    assert_eq!(files(&machine), before);
}

#[test]
fn a_thread_of_another_name_is_not_touched() {
    let machine = machine().thread(16, "somebody", 0, 0, "1");
    apply(&machine, &plan(), &order(false)).unwrap();
    assert!(text(&machine, "/proc/16/stat").contains("(somebody)"));
    assert!(!text(&machine, "/proc/16/stat").contains(" 4 1 0 0"));
}

#[test]
fn two_calls_at_once_do_not_mix() {
    let machine = machine();
    let _other = machine.memory.lock(Path::new("/var/lib/tactus/tune/lock")).unwrap();
    assert!(matches!(apply(&machine, &plan(), &order(false)), Err(TuneError::Busy)));
    assert!(matches!(revert(&machine, Back::default()), Err(TuneError::Busy)));
}

#[test]
fn another_profile_does_not_go_on_top() {
    let machine = machine();
    apply(&machine, &plan(), &order(false)).unwrap();
    let mut other = order(false);
    other.begin.profile = "cpu-partitioning".into();
    assert!(matches!(apply(&machine, &plan(), &other), Err(TuneError::InForce(_))));
}

#[test]
fn a_dry_run_touches_nothing() {
    let machine = machine();
    let before = files(&machine);
    let dry = ApplyOptions { dry_run: true, ..order(true) };
    let applied = apply(&machine, &plan(), &dry).unwrap();
    assert!(applied.steps.len() > 10);
    assert_eq!((files(&machine), machine.steps()), (before, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_plan_is_taken_back_after_any_cut_and_any_foreign_change(
        values in proptest::collection::vec((0usize..9, "[a-z0-9]{1,6}"), 1..24),
        step in 0usize..60,
        fate in prop_oneof![
            Just(Fate::Refused), Just(Fate::DeadBefore), Just(Fate::DeadAfter), Just(Fate::Torn)
        ],
        meddle in proptest::option::of((0usize..9, "[A-Z]{1,6}")),
    ) {
        let machine = machine();
        for n in 0..9 {
            machine.memory.write(Path::new(&format!("/proc/sys/x/{n}")), format!("old {n}\n").as_bytes()).unwrap();
        }
        let before = files(&machine);
        let mut changes = plan().entries.into_iter().map(|step| step.change).collect::<Vec<_>>();
        let mut seen = Vec::new();
        for (n, then) in values {
            if !seen.contains(&n) {
                seen.push(n);
                changes.push(file(&format!("/proc/sys/x/{n}"), Form::Plain, &then));
            }
        }
        let _ = apply(&machine.with_fate(step, fate), &planned(changes), &order(true));
        let meddled = meddle.map(|(n, text)| (format!("/proc/sys/x/{n}"), text));
        if let Some((path, text)) = &meddled {
            machine.memory.write(Path::new(path), text.as_bytes()).unwrap();
        }
        let _ = revert(&machine, Back::default());
        let mut after = files(&machine);
        if let Some((path, text)) = &meddled {
            prop_assert_eq!(after.get(path), Some(text), "the other tool's value stands");
            after.insert(path.clone(), before[path].clone());
        }
        // Only our own record of the value that another tool set remains.
        after.retain(|path, _| !path.starts_with("/var/lib/tactus/"));
        prop_assert_eq!(after, before);
    }
}

#[test]
fn what_a_killed_call_has_moved_is_back_before_the_next_plan_is_made() {
    let machine = machine();
    let before = files(&machine);
    // The last step of the batch of quick steps: all threads are moved, and none is noted as done.
    let dry = Kernel::new(machine.memory.clone());
    apply(&dry, &plan(), &order(false)).unwrap();
    let steps = dry.steps();
    revert(&dry, Back::default()).unwrap();
    let killed = machine.with_fate(steps - 2, Fate::DeadBefore);
    assert!(apply(&killed, &plan(), &order(false)).is_err());
    assert_ne!(files(&machine), before);
    assert!(settle(&machine).unwrap().is_some_and(|recovered| recovered.left.is_empty()));
    assert_eq!(files(&machine), before);
    assert!(settle(&machine).unwrap().is_none());
}

#[test]
fn watchdogs_that_the_kernel_has_put_to_sleep_are_woken_first() {
    const SOFT: &str = "/proc/sys/kernel/soft_watchdog";
    const ALL: &str = "/proc/sys/kernel/watchdog";
    let memory = machine().memory.file(SOFT, "1\n").file(ALL, "1\n");
    let machine = Kernel::new(memory);
    apply(&machine, &planned(vec![file(SOFT, Form::Plain, "0")]), &order(false)).unwrap();
    // Somebody has read it.
    machine.memory.write(Path::new(ALL), b"0\n").unwrap();
    let reverted = revert(&machine, Back::default()).unwrap();
    assert!(reverted.left.is_empty(), "{:?}", reverted.left);
    assert_eq!(
        (machine.memory.text(SOFT).as_deref(), machine.memory.text(ALL).as_deref()),
        (Some("1\n"), Some("1\n"))
    );
}

/// As the release before format 2 of the bundle wrote it, of the plan above on the machine above.
const RECORDED: &str = include_str!("journal-of-format-1.jsonl");

#[test]
fn a_journal_that_an_older_release_wrote_is_reverted() {
    let machine = machine();
    let before = files(&machine);
    apply(&machine, &plan(), &order(true)).unwrap();
    let journal = Path::new("/var/lib/tactus/tune/journal.jsonl");
    machine.memory.install(journal, RECORDED.as_bytes(), 0o600).unwrap();
    let reverted = revert(&machine, Back::default()).unwrap();
    assert!(reverted.damage.is_none() && !reverted.undone.is_empty(), "{} undone", reverted.undone.len());
    assert_eq!(files(&machine), before);
}
