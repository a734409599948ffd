//! The fixes for the findings of an audit: few actions for many findings.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tactus_model::change::{Change, Target};
use tactus_model::finding::{Action, Finding, Role, Severity, State, TUNES};

use super::guard::{interrupt, weakened};
use super::{Arch, SetBy, Subject, find};

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
    // With resctrl mounted for its groups, its counters exist as well.
    ("resctrl-monitor", "resctrl-cat"),
];

/// Findings whose fix is a separate decision. Other kinds of work want the opposite (as TuneD's profiles want turbo),
/// a milder fix comes first, or the effect should be measured first.
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
    actions.sort_by_key(|action| Reverse(gain(action, &found)));
    actions
}

/// The order of actions by expected gain. A fully preemptible kernel comes first: without it no other setting gives a
/// bound. Then come the worst severity that is fixed, and the number of grave findings. A group of findings that the
/// user decides one by one comes last, however large it is.
fn gain(action: &Action, found: &[&Finding]) -> impl Ord + use<> {
    let single = match action.title.as_str() {
        KNOWN => 0,
        OTHERS => 1,
        _ => 2,
    };
    let fixes = |id: &str| action.fixes.iter().any(|fixed| fixed == id);
    let grave = found.iter().filter(|one| one.severity >= Severity::Major && fixes(&one.id)).count();
    (single, fixes(PREEMPT_RT), action.severity, grave, action.fixes.len())
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
        // A user who starts it by hand can change its options.
        return if set(SetBy::ContainerFlag) && !subject.started { Way::Container } else { own() };
    }
    let decided = DECIDED.contains(&id) && !(id == "nohz-full" && severity >= Severity::Major);
    let changes = wanted(subject, id);
    // A line to be copied must not give up a guard of the machine: tuning leaves such a change out, too, unless the
    // user names its check. An interrupt is asked for by its number alone.
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

const PREEMPT_RT: &str = "preempt-rt";
const OTHERS: &str = "Decide on each: tactus explain ID";
const KNOWN: &str = "For your information";

fn action(subject: &Subject<'_>, way: &Way, fixed: &[&Finding]) -> Option<Action> {
    let severity = fixed.iter().map(|finding| finding.severity).max()?;
    let fixes: Vec<String> = fixed.iter().map(|finding| finding.id.clone()).collect();
    let kept = |what: &str, set: String| (format!("{what}: {set}"), tune(subject, &fixes, " --persist"));
    let (title, command) = match way {
        Way::Boot => kept("Boot with these parameters", parameters(subject, &fixes)),
        Way::RunTime => ("Set at run time".to_owned(), tune(subject, &fixes, "")),
        Way::Module => kept("Load the modules with these options", options(subject, &fixes)),
        Way::Kernel if fixes.iter().any(|id| id == PREEMPT_RT) => {
            ("Boot a PREEMPT_RT kernel".to_owned(), install(subject))
        }
        Way::Kernel => ("Boot another kernel".to_owned(), String::new()),
        Way::Firmware => ("Change the firmware's setup".to_owned(), String::new()),
        Way::Machine => ("Redefine the virtual machine".to_owned(), String::new()),
        Way::Container => ("Start the container with other options".to_owned(), String::new()),
        Way::Own(_) => (fixed.first()?.title.clone(), String::new()),
        Way::Others => (OTHERS.to_owned(), String::new()),
        Way::Known => (KNOWN.to_owned(), String::new()),
    };
    Some(Action { title, command, severity, fixes })
}

/// The command that installs a PREEMPT_RT kernel, where the distribution has one.
fn install(subject: &Subject<'_>) -> String {
    let release = subject.facts.text("/etc/os-release").unwrap_or_default();
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map_or("", |value| value.trim_matches(['"', '\'']))
    };
    let ids: Vec<&str> = std::iter::once(value("ID")).chain(value("ID_LIKE").split(' ')).collect();
    let arch = if subject.is(Arch::Arm64) { "arm64" } else { "amd64" };
    // Of those that are like others too, the most like comes first: Ubuntu is like Debian.
    let known = ids.iter().find_map(|id| match *id {
        "debian" => Some(format!("apt-get install linux-image-rt-{arch}")),
        "ubuntu" => Some("pro enable realtime-kernel".to_owned()),
        "rhel" => Some("dnf install kernel-rt".to_owned()),
        "arch" => Some("pacman -S linux-rt".to_owned()),
        "suse" => Some("zypper install kernel-rt".to_owned()),
        _ => None,
    });
    known.map(|command| format!("sudo {command}")).unwrap_or_default()
}

/// `isolcpus=managed_irq,domain,2-7 skew_tick=1`: each parameter once.
fn parameters(subject: &Subject<'_>, ids: &[String]) -> String {
    let mut words: Vec<(String, String)> = Vec::new();
    for change in leading(ids).flat_map(|id| wanted(subject, id)) {
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

/// These checks without those that another of them fixes.
fn leading(ids: &[String]) -> impl Iterator<Item = &str> {
    let follows = |id: &str| {
        FOLLOWS.iter().any(|(follower, leader)| *follower == id && ids.iter().any(|other| other == leader))
    };
    ids.iter().map(String::as_str).filter(move |id| !follows(id))
}

/// `options kvm kvmclock_periodic_sync=N; options kvm_intel ple_gap=0`.
fn options(subject: &Subject<'_>, ids: &[String]) -> String {
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for change in leading(ids).flat_map(|id| wanted(subject, id)) {
        if let Target::Module { module, parameter } = change.target {
            modules.entry(module).or_default().push(format!("{parameter}={}", change.then));
        }
    }
    let lines = modules.iter().map(|(module, options)| format!("options {module} {}", options.join(" ")));
    lines.collect::<Vec<_>>().join("; ")
}

/// The command that sets what these checks want; with `--persist` also for the next boot. A guest that tactus starts is gone
/// when it is typed.
fn tune(subject: &Subject<'_>, ids: &[String], persist: &str) -> String {
    if subject.started {
        return String::new();
    }
    let profile = match (subject.role, subject.vms.is_empty()) {
        (Role::Guest, _) => "realtime-virtual-guest",
        (_, false) => "realtime-virtual-host",
        _ => "realtime",
    };
    let cpus = subject.isolated();
    let only = leading(ids).collect::<Vec<_>>().join(",");
    format!("{TUNES}{profile} --isolate {cpus}{persist} --only {only}")
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
        assert_eq!(boot.title.matches("isolcpus=managed_irq,domain,2,3").count(), 1, "{}", boot.title);
        assert!(
            boot.command
                .starts_with("sudo tactus tune apply --profile realtime --isolate 2,3 --persist --only ")
        );
        assert!(boot.fixes.contains(&"isolcpus".into()) && boot.fixes.contains(&"managed-irq".into()));
        for decided in ["audit=0", "idle=poll", "nosoftlockup", "nmi_watchdog", "iommu=pt", "mce="] {
            assert!(!boot.title.contains(decided), "{}", boot.title);
        }
    }

    #[test]
    fn a_kernel_that_is_not_preemptible_comes_before_its_parameters() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n";
        let plain = [
            ("/proc/cmdline", "quiet"),
            ("/sys/devices/system/cpu/isolated", ""),
            ("uname:version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.147-1"),
        ];
        let system = intel(&plain).and("/etc/os-release", debian);
        let actions = of(&system);
        assert!(actions[0].known_command().is_some());
        assert_eq!(actions[0].title, "Boot a PREEMPT_RT kernel");
        assert_eq!(actions[0].command, "sudo apt-get install linux-image-rt-amd64");
        assert!(actions[1].title.starts_with("Boot with these parameters"), "{actions:?}");
        assert!(actions[0].fixes.len() < actions[1].fixes.len(), "it is not their number that counts");
        for (release, command) in [
            ("ID=ubuntu\nID_LIKE=debian\n", "sudo pro enable realtime-kernel"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "sudo dnf install kernel-rt"),
            ("ID=nixos", ""),
            ("", ""),
        ] {
            assert_eq!(of(&intel(&plain).and("/etc/os-release", release))[0].command, command, "{release}");
        }
        let rt = system.and("uname:version", "#1 SMP PREEMPT_RT Debian 6.1.147-1");
        assert!(of(&rt)[0].title.starts_with("Boot with these parameters"));
    }

    #[test]
    fn a_container_that_tactus_starts_needs_no_other_options() {
        let mut system = intel(&[
            ("/proc/self/status", "CapEff:\t0000000000000000"),
            ("/proc/self/uid_map", "0 0 4294967295"),
            ("limit:rtprio", "0"),
            ("limit:memlock", "65536"),
        ])
        .role(Role::Container);
        let other = "Start the container with other options";
        assert!(of(&system).iter().any(|action| action.title == other), "{:?}", of(&system));
        system.intent.started = true;
        assert!(of(&system).iter().all(|action| action.title != other), "{:?}", of(&system));
    }

    #[test]
    fn modules_and_run_time_have_a_line_each() {
        let system = intel(&[
            ("/sys/module/kvm_intel/parameters/ple_gap", "128"),
            ("/sys/module/kvm/parameters/kvmclock_periodic_sync", "Y"),
            ("/proc/sys/vm/stat_interval", "1"),
            ("/proc/sys/vm/compaction_proactiveness", "20"),
        ]);
        let actions = of(&system);
        let options = "options kvm kvmclock_periodic_sync=N; options kvm_intel ple_gap=0";
        let module = actions.iter().find(|action| action.title.ends_with(options)).unwrap();
        assert!(
            module
                .command
                .starts_with("sudo tactus tune apply --profile realtime --isolate 2,3 --persist --only ")
        );
        let now = "sudo tactus tune apply --profile realtime --isolate 2,3 --only ";
        assert!(actions.iter().any(|action| action.command.starts_with(now)), "{actions:?}");
    }

    #[test]
    fn a_command_names_the_checks_whose_changes_its_title_lists() {
        let system = intel(&[
            ("/proc/cmdline", "quiet"),
            ("/sys/devices/system/cpu/isolated", ""),
            ("/sys/module/kvm_intel/parameters/ple_gap", "128"),
            ("/proc/sys/vm/stat_interval", "1"),
        ]);
        let subject = Subject::new(&system.facts, system.role, &system.intent);
        let mut said = 0;
        for action in of(&system).iter().filter(|action| !action.command.is_empty()) {
            let Some((_, only)) = action.command.split_once(" --only ") else { continue };
            let only: Vec<String> = only.split(',').map(str::to_owned).collect();
            assert!(leading(&action.fixes).eq(only.iter().map(String::as_str)), "{}", action.command);
            for follower in action.fixes.iter().filter(|id| !only.contains(id)) {
                let leader = FOLLOWS.iter().find(|(id, _)| id == follower).map(|(_, leader)| *leader);
                assert!(leader.is_some_and(|leader| only.iter().any(|id| id == leader)), "{follower}");
            }
            for change in only.iter().flat_map(|id| wanted(&subject, id)) {
                let (Target::Kernel { parameter } | Target::Module { parameter, .. }) = change.target else {
                    continue;
                };
                assert!(action.title.contains(&parameter), "{parameter} is not in: {}", action.title);
                said += 1;
            }
        }
        assert!(said > 4, "{said}");
    }

    #[test]
    fn a_check_whose_leader_is_fulfilled_names_its_own_parameters() {
        for (follower, _) in FOLLOWS {
            let alone = [(*follower).to_owned()];
            assert!(leading(&alone).eq([*follower]), "{follower}");
        }
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
            assert!(action.known_command().is_some(), "a report would not show it: {}", action.command);
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
