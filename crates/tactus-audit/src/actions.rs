//! What fixes the findings of an audit: few actions for many findings.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tactus_model::change::{Change, Target};
use tactus_model::finding::{Action, Finding, Role, Severity, State};

use super::guard::{interrupt, weakened};
use super::{SetBy, Subject, find};

/// Findings that another one's fix takes along, each with the one that does.
const FOLLOWS: &[(&str, &str)] = &[
    // A CPU that may not sleep deeply needs no bound on its latency, and no polling.
    ("c-state-per-cpu", "c-states"),
    ("pm-qos", "c-states"),
    ("idle-poll", "c-states"),
    // isolcpus=domain: the kernel keeps the first process, unbound work and irqbalance away, and timers.
    ("foreign-tasks", "isolcpus"),
    ("irqbalance", "isolcpus"),
    ("systemd-cpu-affinity", "isolcpus"),
    ("timer-migration", "isolcpus"),
    ("workqueue-cpumask", "isolcpus"),
    // A PREEMPT_RT kernel threads its handlers, and has its own configuration.
    ("threadirqs", "preempt-rt"),
    ("preempt-mode", "preempt-rt"),
    ("latency-tracers", "preempt-rt"),
    ("kernel-config", "preempt-rt"),
    ("efi-runtime", "preempt-rt"),
    // Who mounts resctrl for its groups has its counters.
    ("resctrl-monitor", "resctrl-cat"),
];

/// Findings whose fix is a decision of its own: another kind of work wants it otherwise, as TuneD's profiles want turbo, a
/// milder fix comes first, or it is to be measured first.
const DECIDED: &[&str] = &["halt-poll", "idle-poll", "nohz-full", "smt", "threadirqs", "turbo"];

/// How a finding is fixed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Boot,
    RunTime,
    Module,
    Kernel,
    Firmware,
    Machine,
    Container,
    /// By its own words, which matter.
    Own(String),
    /// By their own words.
    Others,
    /// Good to know; nothing has to be done.
    Known,
}

/// The actions that fix these findings.
pub fn actions(subject: &Subject<'_>, findings: &[Finding]) -> Vec<Action> {
    let found: Vec<&Finding> = findings.iter().filter(|one| one.state == State::Finding).collect();
    let is_found = |id: &str| found.iter().any(|finding| finding.id == id);
    let mut ways: BTreeMap<Way, Vec<&Finding>> = BTreeMap::new();
    for finding in &found {
        let leads = FOLLOWS.iter().find(|(id, leader)| *id == finding.id && is_found(leader));
        let by = leads.map_or(finding.id.as_str(), |(_, leader)| leader);
        let severity = found.iter().find(|one| one.id == by).map_or(finding.severity, |one| one.severity);
        ways.entry(way(subject, by, severity)).or_default().push(finding);
    }
    let mut actions: Vec<Action> =
        ways.into_iter().filter_map(|(way, fixed)| action(subject, &way, &fixed)).collect();
    // What has to be decided one by one is no single action, however much of it there is.
    let last = |action: &Action| {
        [OTHERS, KNOWN].iter().position(|title| action.title == *title).map_or(0, |n| n + 1)
    };
    actions.sort_by_key(|action| {
        let several = if action.fixes.len() > 1 { action.fixes.len() } else { 0 };
        (last(action), Reverse(several), Reverse(action.severity))
    });
    actions
}

/// The changes of a check that do not hold yet.
fn wanted(subject: &Subject<'_>, id: &str) -> Vec<Change> {
    let changes = find(id).map(|check| (check.changes)(subject)).unwrap_or_default();
    changes.into_iter().filter(|change| !change.holds()).collect()
}

fn way(subject: &Subject<'_>, id: &str, severity: Severity) -> Way {
    let own = || match severity {
        Severity::Info => Way::Known,
        Severity::Minor => Way::Others,
        Severity::Major | Severity::Blocker => Way::Own(id.to_owned()),
    };
    let Some(check) = find(id) else { return own() };
    let set = |by: SetBy| check.set.first() == Some(&by);
    if subject.role == Role::Container {
        return if set(SetBy::ContainerFlag) { Way::Container } else { own() };
    }
    let decided = DECIDED.contains(&id) && !(id == "nohz-full" && severity >= Severity::Major);
    let changes = wanted(subject, id);
    // Nobody gives up what guards his machine with a line that he copies: tuning withholds the same, unless it is asked for
    // by the name of its check. An interrupt is asked for by its number alone.
    let by_name = |change: &Change| interrupt(change).is_none() && weakened(subject, change).is_some();
    let guarded = changes.iter().any(by_name);
    let has = |fits: fn(&Target) -> bool| changes.iter().any(|change| fits(&change.target));
    if decided || guarded || severity == Severity::Info {
        own()
    } else if has(|target| matches!(target, Target::Kernel { .. })) {
        Way::Boot
    } else if has(|target| matches!(target, Target::Module { .. })) {
        Way::Module
    } else if !changes.is_empty() {
        Way::RunTime
    } else if set(SetBy::Installation) {
        Way::Kernel
    } else if set(SetBy::Firmware) {
        Way::Firmware
    } else if set(SetBy::Libvirt) || set(SetBy::Qemu) {
        Way::Machine
    } else {
        own()
    }
}

const OTHERS: &str = "Decide on each: tactus explain ID";
const KNOWN: &str = "Know, and decide";

fn action(subject: &Subject<'_>, way: &Way, fixed: &[&Finding]) -> Option<Action> {
    let severity = fixed.iter().map(|finding| finding.severity).max()?;
    let fixes: Vec<String> = fixed.iter().map(|finding| finding.id.clone()).collect();
    let (title, command) = match way {
        Way::Boot => ("Boot with these parameters", parameters(subject, &fixes)),
        Way::RunTime => ("Set at run time", tune(subject, &fixes)),
        Way::Module => ("Load the modules with these options, in /etc/modprobe.d", options(subject, &fixes)),
        Way::Kernel => ("Boot another kernel", String::new()),
        Way::Firmware => ("Change the firmware's setup", String::new()),
        Way::Machine => ("Define the virtual machine anew", String::new()),
        Way::Container => ("Start the container with other options", String::new()),
        Way::Own(_) => (fixed.first()?.title.as_str(), String::new()),
        Way::Others => (OTHERS, String::new()),
        Way::Known => (KNOWN, String::new()),
    };
    Some(Action { title: title.to_owned(), command, severity, fixes })
}

/// `isolcpus=managed_irq,domain,2-7 skew_tick=1`: each parameter once.
fn parameters(subject: &Subject<'_>, ids: &[String]) -> String {
    let mut words: Vec<(String, String)> = Vec::new();
    for change in ids.iter().filter(|id| leads(id)).flat_map(|id| wanted(subject, id)) {
        let Target::Kernel { parameter } = change.target else { continue };
        if words.iter().all(|(name, _)| *name != parameter) {
            words.push((parameter, change.then));
        }
    }
    let word = |(name, value): &(String, String)| match value.as_str() {
        "" => name.clone(),
        value => format!("{name}={value}"),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Whether a check's own changes belong to the action; those that follow another's are fixed by that.
fn leads(id: &str) -> bool {
    FOLLOWS.iter().all(|(follower, _)| *follower != id)
}

/// `options kvm kvmclock_periodic_sync=N; options kvm_intel ple_gap=0`.
fn options(subject: &Subject<'_>, ids: &[String]) -> String {
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for change in ids.iter().flat_map(|id| wanted(subject, id)) {
        if let Target::Module { module, parameter } = change.target {
            modules.entry(module).or_default().push(format!("{parameter}={}", change.then));
        }
    }
    let lines = modules.iter().map(|(module, options)| format!("options {module} {}", options.join(" ")));
    lines.collect::<Vec<_>>().join("; ")
}

fn tune(subject: &Subject<'_>, ids: &[String]) -> String {
    let profile = match (subject.role, subject.vms.is_empty()) {
        (Role::Guest, _) => "realtime-virtual-guest",
        (_, false) => "realtime-virtual-host",
        _ => "realtime",
    };
    let cpus = subject.isolated();
    format!("tactus tune apply --profile {profile} --isolate {cpus} --only {}", ids.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{System, intel};
    use crate::{all, audit};

    fn of(system: &System) -> Vec<Action> {
        audit(&Subject::new(&system.facts, system.role, &system.intent)).actions
    }

    #[test]
    fn every_finding_is_fixed_by_one_action() {
        let system = intel(&[
            ("/proc/cmdline", "quiet"),
            ("/proc/sys/vm/stat_interval", "1"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "[always]"),
            ("/sys/module/kvm_intel/parameters/ple_gap", "128"),
            ("uname:version", "#1 SMP"),
        ]);
        let audit = audit(&Subject::new(&system.facts, system.role, &system.intent));
        let mut fixed: Vec<&str> =
            audit.actions.iter().flat_map(|action| &action.fixes).map(String::as_str).collect();
        let mut found: Vec<&str> = audit.found().map(|finding| finding.id.as_str()).collect();
        fixed.sort_unstable();
        found.sort_unstable();
        assert_eq!(fixed, found);
    }

    #[test]
    fn boot_parameters_are_one_line_in_which_each_stands_once() {
        let system =
            intel(&[("/proc/cmdline", "quiet"), ("/sys/devices/system/cpu/isolated", "")]).isolate("2-3");
        let actions = of(&system);
        let boot = actions.iter().find(|action| action.title.starts_with("Boot with")).unwrap();
        assert_eq!(boot.command.matches("isolcpus=managed_irq,domain,2,3").count(), 1, "{}", boot.command);
        assert!(boot.fixes.contains(&"isolcpus".into()) && boot.fixes.contains(&"managed-irq".into()));
        for decided in ["audit=0", "idle=poll", "nosoftlockup", "nmi_watchdog", "iommu=pt", "mce="] {
            assert!(!boot.command.contains(decided), "{}", boot.command);
        }
    }

    #[test]
    fn modules_and_run_time_have_a_line_each() {
        let system = intel(&[
            ("/sys/module/kvm_intel/parameters/ple_gap", "128"),
            ("/sys/module/kvm/parameters/kvmclock_periodic_sync", "Y"),
            ("/proc/sys/vm/stat_interval", "1"),
            ("/proc/sys/vm/compaction_proactiveness", "20"),
        ]);
        let commands: Vec<String> = of(&system).into_iter().map(|action| action.command).collect();
        let options = "options kvm kvmclock_periodic_sync=N; options kvm_intel ple_gap=0";
        assert!(commands.iter().any(|line| line == options), "{commands:?}");
        assert!(
            commands
                .iter()
                .any(|line| line.starts_with("tactus tune apply --profile realtime --isolate 2,3 --only "))
        );
    }

    #[test]
    fn what_guards_the_machine_is_given_up_by_no_line_that_is_copied() {
        let system = intel(&[
            ("/proc/cmdline", "quiet"),
            ("audit:enabled", "1"),
            ("/proc/sys/kernel/nmi_watchdog", "1"),
            ("/proc/sys/kernel/soft_watchdog", "1"),
        ]);
        let subject = Subject::new(&system.facts, system.role, &system.intent);
        let guarded = |change: &Change| interrupt(change).is_none() && weakened(&subject, change).is_some();
        let audit = audit(&subject);
        let found = audit.found().map(|finding| finding.id.as_str());
        let gives_up: Vec<&str> = found.filter(|id| wanted(&subject, id).iter().any(guarded)).collect();
        assert!(gives_up.contains(&"watchdogs"), "{gives_up:?}");
        for action in audit.actions.iter().filter(|action| !action.command.is_empty()) {
            assert!(!action.fixes.iter().any(|id| gives_up.contains(&id.as_str())), "{}", action.command);
        }
    }

    #[test]
    fn what_is_to_be_measured_first_is_in_no_line_that_is_copied() {
        let system = intel(&[
            ("/sys/module/kvm/parameters/halt_poll_ns", "200000"),
            ("/proc/sys/vm/stat_interval", "1"),
        ]);
        let action =
            |id: &str| of(&system).into_iter().find(|one| one.fixes.contains(&id.to_owned())).unwrap();
        assert_eq!((action("halt-poll").title.as_str(), action("halt-poll").command.as_str()), (OTHERS, ""));
        assert!(!action("vmstat-interval").command.contains("halt-poll"));
    }

    #[test]
    fn scrubbing_of_memory_is_turned_off_by_no_line_that_is_copied() {
        let timer = "list:/etc/systemd/system/timers.target.wants";
        let line = |rate: &str| {
            let system = intel(&[
                ("/sys/devices/system/edac/mc/mc0/sdram_scrub_rate", rate),
                (timer, "fwupd-refresh.timer"),
                ("/proc/sys/vm/stat_interval", "1"),
            ]);
            of(&system).into_iter().find(|action| action.title == "Set at run time").unwrap().command
        };
        assert!(line("0").contains("firmware-services"), "{}", line("0"));
        assert!(!line("12284069").contains("firmware-services"), "{}", line("12284069"));
    }

    #[test]
    fn what_follows_and_what_is_decided_names_checks_that_there_are() {
        let known = |id: &str| all().any(|(_, check)| check.id == id);
        for (follower, leader) in FOLLOWS {
            assert!(known(follower) && known(leader), "{follower} {leader}");
        }
        assert!(DECIDED.iter().all(|id| known(id)));
    }
}
