//! Everything that a plan sets on any recorded machine, and keeps for the next boot, is applied, applied again, and
//! taken back.

mod machines;

use tactus_audit::{Intent, Subject, all};
use tactus_model::change::{Change, Target};
use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::Role;
use tactus_system::{Memory, System};
use tactus_tune::apply::{ApplyOptions, apply};
use tactus_tune::plan::{Choice, Plan};
use tactus_tune::profile::{PROFILES, Profile};
use tactus_tune::revert::{Back, revert};
use tactus_tune::transaction::Begin;

use machines::machines;

/// How a system keeps things for its next boot.
const KEEPERS: [&str; 3] = ["update-grub", "grubby", "tuned"];

/// A machine in memory that reads what the facts say.
fn machine(facts: &Facts, keeper: &str) -> Memory {
    let texts = facts.0.iter().filter_map(|(name, reading)| match reading {
        Reading::Text(text) if name.starts_with("/proc/sys/") || name.starts_with("/sys/") => {
            Some((name, text))
        }
        _ => None,
    });
    let memory = texts.fold(Memory::new().root().answer(&[], 0, "", ""), |memory, (name, text)| {
        memory.file(name, format!("{text}\n"))
    });
    let memory = memory
        .file("/proc/sys/kernel/random/boot_id", "11111111-2222\n")
        .file("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n");
    match keeper {
        "tuned" => memory
            .program("tuned-adm")
            .file("/run/tuned/tuned.pid", "77\n")
            .file("/proc/77/cmdline", "/usr/bin/python3\0/usr/sbin/tuned\0")
            .file("/proc/77/status", "Uid:\t0\t0\t0\t0\nNSpid:\t77\n")
            .file("/etc/tuned/active_profile", "balanced\n"),
        program => memory.program(program),
    }
}

/// The plan with everything that can be asked for, and with all but one.
fn plan(subject: &Subject<'_>, profile: &Profile, without: &[String]) -> Plan {
    let choice = Choice {
        with: all().map(|(_, check)| check.id.to_owned()).collect(),
        without: without.to_vec(),
        ..Choice::default()
    };
    let mut plan = Plan::new(subject, profile, &choice);
    plan.refusals.clear();
    // A parameter on the command line with another value is refused by name.
    let twice = |change: &Change| match &change.target {
        Target::Kernel { parameter } => {
            ["isolcpus", "nohz_full"].contains(&parameter.as_str())
                && change.now.as_ref().is_some_and(|now| *now != change.then)
        }
        _ => false,
    };
    plan.entries.retain(|step| !twice(&step.change));
    plan
}

#[test]
fn what_any_plan_sets_and_keeps_is_gone_on_with_and_taken_back() {
    let mut steps = 0;
    for (n, (name, facts)) in machines().into_iter().enumerate() {
        for (p, profile) in PROFILES.iter().enumerate() {
            // Each of them meets each profile and each machine.
            let keeper = KEEPERS[(n + p) % KEEPERS.len()];
            let intent = Intent::default();
            let subject = Subject::new(&facts, Role::Host, &intent);
            let machine = machine(&facts, keeper);
            let begin = Begin { persist: true, profile: profile.name.to_owned(), ..Begin::default() };
            let order = ApplyOptions { begin, ..ApplyOptions::default() };
            let whole = plan(&subject, profile, &[]);
            // The first one has less, so that the second finds files of ours and adds to them.
            let some: Vec<String> =
                whole.entries.iter().step_by(2).map(|step| step.change.check.clone()).collect();
            for plan in [plan(&subject, profile, &some), whole] {
                let applied = apply(&machine, &plan, &order);
                let applied = applied.unwrap_or_else(|error| panic!("{name}, {keeper}: {error:?}"));
                steps += applied.steps.len();
            }
            let reverted = revert(&machine, Back { force: true, ..Back::default() }).unwrap();
            assert!(reverted.left.is_empty(), "{name}, {keeper}: {:?}", reverted.left);
            for file in ["/etc/default/grub.d/50-tactus.cfg", "/etc/sysctl.d/90-tactus.conf"] {
                assert_eq!(machine.text(file), None, "{name}, {keeper}");
            }
        }
    }
    assert!(steps > 3000, "{steps}");
}
