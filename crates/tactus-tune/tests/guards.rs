//! No profile takes of what guards a machine unless it is asked to by name: all profiles, on all recorded
//! machines.

mod machines;

use std::collections::BTreeSet;

use tactus_audit::{Intent, Subject};
use tactus_model::change::{Change, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;
use tactus_tune::plan::{Choice, Plan};
use tactus_tune::profile::{self, PROFILES, Profile};

use machines::machines;

/// Settings that a plan must not contain without a request, and the values that weaken them. A `*` stands for
/// anything. The list is written here once more, and not taken from the planner.
const GUARDS: &[(&str, &[&str])] = &[
    ("/proc/sys/kernel/sched_rt_runtime_us", &["-1", "1000000"]),
    ("/sys/kernel/debug/sched/fair_server/*/runtime", &["0"]),
    ("/proc/sys/kernel/nmi_watchdog", &["0"]),
    ("/proc/sys/kernel/soft_watchdog", &["0"]),
    ("/proc/sys/kernel/watchdog", &["0"]),
    ("/proc/sys/kernel/hung_task_timeout_secs", &["0", "600"]),
    ("/proc/sys/kernel/split_lock_mitigate", &["0"]),
    ("/sys/devices/system/edac/mc/*/sdram_scrub_rate", &["0"]),
    ("/sys/devices/system/machinecheck/*/ignore_ce", &["1", "2"]),
    ("/sys/devices/system/machinecheck/*/check_interval", &["0"]),
    ("/sys/module/kvm/parameters/nx_huge_pages", &["0", "N", "off", "never"]),
    ("module kvm, nx_huge_pages", &["0", "N", "off", "never"]),
    ("kernel parameter nosoftlockup", &["*"]),
    ("kernel parameter nowatchdog", &["*"]),
    ("kernel parameter nmi_watchdog", &["0"]),
    ("kernel parameter mce", &["*"]),
    ("kernel parameter nomce", &["*"]),
    ("kernel parameter tsc", &["reliable", "nowatchdog"]),
    ("kernel parameter iommu", &["pt", "off"]),
    ("kernel parameter iommu.passthrough", &["1"]),
    ("kernel parameter intel_iommu", &["off"]),
    ("kernel parameter audit", &["0"]),
    ("kernel parameter selinux", &["0"]),
    ("kernel parameter mitigations", &["*"]),
    ("kernel parameter split_lock_detect", &["off"]),
    ("kernel parameter thermal.off", &["*"]),
];

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((front, back)) => {
            text.len() >= front.len() + back.len() && text.starts_with(front) && text.ends_with(back)
        }
    }
}

/// The guard that a change weakens, by the list above.
fn guarded(change: &Change) -> Option<&'static str> {
    let target = change.target.to_string();
    let entry = GUARDS.iter().find(|(what, _)| fits(what, &target))?;
    entry.1.iter().any(|value| fits(value, &change.then)).then_some(entry.0)
}

/// Each profile that the others are not part of, with the part that a system plays under it.
fn every_profile() -> impl Iterator<Item = (&'static Profile, Role)> {
    let isolcpus = profile::find("cpu-partitioning-isolcpus").unwrap();
    let role = |profile: &Profile| if profile.guest { Role::Guest } else { Role::Host };
    PROFILES.iter().copied().chain([isolcpus]).map(move |profile| (profile, role(profile)))
}

fn plan(facts: &Facts, role: Role, profile: &Profile, choice: &Choice) -> Plan {
    Plan::new(&Subject::new(facts, role, &Intent::default()), profile, choice)
}

fn stalld_runs(facts: &Facts) -> bool {
    facts.under("threads:").any(|(name, _)| {
        facts.text(name).is_some_and(|text| text.lines().any(|line| line.ends_with("\tstalld")))
    })
}

#[test]
fn no_profile_weakens_a_guard_of_any_machine_unasked() {
    let mut withheld = BTreeSet::new();
    for (name, facts) in machines() {
        let unaffected =
            facts.text("/sys/devices/system/cpu/vulnerabilities/itlb_multihit") == Some("Not affected");
        let stalld = stalld_runs(&facts);
        let translates = facts.text("list:/sys/class/iommu").is_none_or(|list| !list.trim().is_empty());
        for (profile, role) in every_profile() {
            let plan = plan(&facts, role, profile, &Choice::default());
            for step in &plan.entries {
                let harmless = match guarded(&step.change) {
                    None => true,
                    Some(what) if what.ends_with("nx_huge_pages") => unaffected,
                    Some(what) if what.contains("sched") => stalld,
                    // Nothing translates the addresses of devices where no unit does.
                    Some(what) if what.contains("iommu") => !translates,
                    // It has been off.
                    Some(what) if what.contains("hung_task") => step.change.now.as_deref() == Some("0"),
                    Some(_) => false,
                };
                assert!(harmless, "{name}, {}, {role}: {:?}", profile.name, step.change);
            }
            for one in &plan.withheld {
                assert!(!one.guard.is_empty() && !one.gives_up.is_empty() && !one.change.holds());
                assert!(one.ask.starts_with("--with ") || one.ask.starts_with("--move-irq "));
                withheld.extend(guarded(&one.change));
            }
        }
    }
    // The guards in the profiles, which this test must have seen: so no entry is tested in vain.
    let wanted = [
        "/proc/sys/kernel/hung_task_timeout_secs",
        "/proc/sys/kernel/nmi_watchdog",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/sys/kernel/soft_watchdog",
        "/sys/devices/system/machinecheck/*/ignore_ce",
        "/sys/kernel/debug/sched/fair_server/*/runtime",
        "kernel parameter iommu",
        "kernel parameter nmi_watchdog",
        "kernel parameter nosoftlockup",
        "kernel parameter tsc",
        "module kvm, nx_huge_pages",
    ];
    assert!(wanted.iter().all(|what| withheld.contains(what)), "{withheld:?}");
}

#[test]
fn no_profile_turns_avic_on_where_it_can_hang_guests() {
    let profile = profile::find("realtime-virtual-host").unwrap();
    let turned_on = |family: u32, flags: &str| {
        let mut facts = machines()["amd-epyc.json.gz"].clone();
        let info = format!("vendor_id\t: AuthenticAMD\ncpu family\t: {family}\nflags\t\t: svm npt {flags}\n");
        facts.keep("/proc/cpuinfo", info);
        let plan = plan(&facts, Role::Host, profile, &Choice::default());
        plan.entries.iter().any(|step| step.change.target.to_string() == "module kvm_amd, avic")
    };
    assert!(!turned_on(23, "avic"), "erratum 1235, and Linux 6.8");
    assert!(!turned_on(25, "avic"), "without x2APIC");
    assert!(turned_on(25, "avic x2avic"));
}

#[test]
fn scrubbing_of_memory_is_turned_off_for_who_asks_and_says_what_that_gives_up() {
    let rate = "/sys/devices/system/edac/mc/mc0/sdram_scrub_rate";
    let mut facts = machines()["everything-on"].clone();
    facts.keep(rate, "12284069");
    let mut choice = Choice::default();
    let profile = profile::find("realtime").unwrap();
    let of_rate = |change: &Change| change.target.to_string() == rate;
    let unasked = plan(&facts, Role::Host, profile, &choice);
    assert!(!unasked.entries.iter().any(|step| of_rate(&step.change)));
    choice.with.push("firmware-services".to_owned());
    let asked = plan(&facts, Role::Host, profile, &choice);
    let step = asked.entries.iter().find(|step| of_rate(&step.change)).unwrap();
    assert!(step.gives_up.contains("single-bit errors"), "{}", step.gives_up);
}

#[test]
fn what_is_asked_for_by_name_is_planned_and_the_plan_says_what_it_gives_up() {
    let facts = &machines()["everything-on"];
    let profile = profile::find("realtime-virtual-host").unwrap();
    let unasked = plan(facts, Role::Host, profile, &Choice::default());
    assert!(unasked.withheld.len() > 8, "{:?}", unasked.withheld);
    for one in &unasked.withheld {
        let mut choice = Choice::default();
        match one.ask.split_once(' ').unwrap() {
            ("--with", id) => choice.with.push(id.to_owned()),
            ("--move-irq", irq) => choice.move_irq.push(irq.parse().unwrap()),
            (other, _) => panic!("{other}"),
        }
        let asked = plan(facts, Role::Host, profile, &choice);
        let step = asked.entries.iter().find(|step| step.change.target == one.change.target);
        let step = step.unwrap_or_else(|| panic!("{} has not brought {}", one.ask, one.change.target));
        assert_eq!(step.gives_up, one.gives_up);
        assert!(!asked.withheld.iter().any(|other| other.change.target == one.change.target));
    }
}

#[test]
fn no_interrupt_that_is_allowed_on_isolated_cpus_only_is_moved() {
    for (name, mut facts) in machines() {
        let isolated = Subject::new(&facts, Role::Host, &Intent::default()).isolated().clone();
        let Some(cpu) = isolated.first() else { continue };
        facts.keep("/proc/irq/77/smp_affinity_list", cpu.to_string());
        // irqbalance is configured not to place this one.
        facts.keep("/etc/default/irqbalance", "IRQBALANCE_ARGS=--banirq=77");
        for (profile, role) in every_profile().take(1) {
            let plan = plan(&facts, role, profile, &Choice::default());
            let touches = |change: &Change| matches!(&change.target, Target::File { path, .. } if path == "/proc/irq/77/smp_affinity_list");
            assert!(
                !plan.entries.iter().any(|step| touches(&step.change) && !step.holds),
                "{name}, {}",
                profile.name
            );
        }
    }
}
