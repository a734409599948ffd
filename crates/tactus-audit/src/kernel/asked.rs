//! The requests of this boot, compared with their effect.

use crate::asked::{self, UNKNOWN};
use crate::sentence::{cpus_or_none, few};
use crate::{
    Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change, settable,
};
use tactus_model::CpuSet;
use tactus_model::cmdline::Parameter;
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;
use tactus_model::isolation::{BOOT, Isolcpus, last_cpu, same_value};

const CMDLINE: &str = "/proc/cmdline";
/// CPUs without a tick, as the kernel tells them.
pub(super) const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";

pub static CHECKS: &[Check] = &[
    Check {
        id: "misspelt-parameters",
        title: "the kernel does not know a parameter of its command line",
        sources: &[
            Source::Kernel("init/main.c"),
            Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/proc/cmdline; dmesg: Unknown kernel command line parameters",
        expected: "the kernel knows the name of each parameter for real-time work",
        why: "The kernel passes an unknown parameter to the first process, and it has no effect. The machine boots \
as if it were absent, without an error. Since Linux 5.14 a line of the log names such parameters.",
        fix: "Correct the name, run update-grub (or grub2-mkconfig -o /boot/grub2/grub.cfg) and reboot.",
        risk: "None.",
        judge: misspelt,
        changes: no_change,
    },
    Check {
        id: "not-built-in",
        title: "a parameter needs an option that this kernel was built without",
        sources: &[
            Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
            Source::Kernel("kernel/sched/isolation.c"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Installation],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/proc/cmdline, the kernel's configuration, /sys/devices/system/cpu/nohz_full",
        expected: "the kernel has the options that its command line needs",
        why: "nohz_full= needs CONFIG_NO_HZ_FULL, rcu_nocbs= CONFIG_RCU_NOCB_CPU, isolcpus= CONFIG_CPU_ISOLATION. \
Without the option the kernel accepts the parameter and does nothing. At most it logs one line about it.",
        fix: "Boot a kernel that is built with the option, or remove the parameter from the command line.",
        risk: "A new kernel has other latencies: measure again.",
        judge: built,
        changes: no_change,
    },
    Check {
        id: "boot-intent",
        title: "a boot parameter is configured but not in effect",
        sources: &[
            Source::Tuned("realtime-virtual-host"),
            Source::Guide("TuneD, bootloader plugin"),
            Source::Kernel("kernel/sched/isolation.c"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/proc/cmdline; /sys/devices/system/cpu/isolated and nohz_full; TuneD's active_profile, bootcmdline and \
isolated_cores=; /etc/default/grub and grub.d; /etc/kernel/cmdline; the entry of this kernel in /boot/loader/entries; cmdline.txt",
        expected: "the machine was booted with all parameters that they contain, and they agree",
        why: "TuneD and GRUB only write the command line of the next boot. Until then the profile is active, its \
parameters are not, and the machine looks tuned. Where two places disagree, one of them is wrong.",
        fix: "Reboot. If you changed a file of GRUB, first run update-grub (or grub2-mkconfig -o \
/boot/grub2/grub.cfg). If two places disagree, first change one of them. tuned-adm verify shows whether TuneD's \
settings are in effect.",
        risk: "The next boot may change other things as well.",
        judge: in_effect,
        changes: no_change,
    },
];

fn shown(one: &Parameter) -> String {
    let text = match &one.value {
        Some(value) => format!("{}={value}", one.name),
        None => one.name.clone(),
    };
    text.chars().take(80).collect()
}

fn misspelt(subject: &Subject<'_>) -> Verdict {
    subject.told()?;
    let said = subject.facts.text(UNKNOWN).unwrap_or_default();
    let known = asked::unknown(subject.facts);
    let wrong = asked::misspelt(subject.facts);
    let mut found: Vec<String> = wrong
        .iter()
        .map(|one| format!("`{}` (`{}` is the correct name)", shown(&one.told), one.meant))
        .collect();
    let mut severity = Severity::Major;
    // No mainline kernel has ever had it, and its name is in many a guide.
    let passed: Vec<&Parameter> = known.iter().flatten().collect();
    if let Some(one) = passed.iter().find(|one| one.name == "kthread_cpus") {
        severity = if found.is_empty() { Severity::Minor } else { severity };
        found.push(format!("`{}` (isolcpus=domain and nohz_full= keep kernel threads away)", shown(one)));
    }
    let read = |judgement: Judgement| match said.is_empty() {
        true => judgement.read(CMDLINE, subject.facts.text(CMDLINE).unwrap_or_default()),
        false => judgement.read("dmesg", said),
    };
    if !found.is_empty() {
        let cpus = asked::isolation(subject.facts, &subject.topology.online);
        let cpus = cpus.filter(|_| wrong.iter().any(|one| one.meant == "isolcpus"));
        let cpus = cpus.map(|cpus| format!(": {} were to be isolated", cpus_or_none(&cpus)));
        let said = format!("the kernel does not know {}{}", few(found), cpus.unwrap_or_default());
        return Ok(read(Judgement::finding(said)).at(severity));
    }
    Ok(read(match known {
        None => {
            return Err(read(Judgement::unreadable(
                "no name looks misspelt; the start of the kernel's log, which names unknown parameters, cannot be \
read",
            )));
        }
        Some(_) if passed.is_empty() => Judgement::ok("the kernel knows every parameter of its command line"),
        Some(_) => Judgement::ok(format!(
            "the kernel passes on unknown parameters, none of them for real-time work: {}",
            few(passed.iter().map(|one| shown(one)))
        )),
    }))
}

/// Parameters, and the option without which the kernel does nothing for them.
const NEEDS: &[(&str, &str)] = &[
    ("isolcpus", "CPU_ISOLATION"),
    ("nohz_full", "NO_HZ_FULL"),
    ("rcu_nocbs", "RCU_NOCB_CPU"),
    ("rcu_nocb_poll", "RCU_NOCB_CPU"),
    ("threadirqs", "IRQ_FORCED_THREADING"),
    ("preempt", "PREEMPT_DYNAMIC"),
    ("default_hugepagesz", "HUGETLBFS"),
    ("hugepagesz", "HUGETLBFS"),
    ("hugepages", "HUGETLBFS"),
];

/// Values that turn a feature off: a kernel without the feature obeys them.
const OFF: [&str; 6] = ["0", "n", "off", "no", "never", "disable"];

/// Parameters that the kernel has by name, of other kernels or processors, and did not take.
fn not_taken(subject: &Subject<'_>) -> Vec<String> {
    let known = |one: &Parameter| {
        settable::is_kernel_parameter(&one.name) && NEEDS.iter().all(|(name, _)| *name != one.name)
    };
    let wanted = |one: &Parameter| one.value.as_deref().is_none_or(|value| !OFF.contains(&value));
    let all = asked::unknown(subject.facts).unwrap_or_default();
    all.iter().filter(|one| known(one) && wanted(one)).map(shown).collect()
}

/// Whether the kernel was built without the option that a parameter needs; `None` where nothing tells.
fn is_without(subject: &Subject<'_>, name: &str, option: &str) -> Option<bool> {
    // This file is there exactly where NO_HZ_FULL is, which selects RCU_NOCB_CPU.
    match (option, subject.facts.0.get(NOHZ_FULL)) {
        ("NO_HZ_FULL", Some(Reading::Absent)) => return Some(true),
        ("NO_HZ_FULL" | "RCU_NOCB_CPU", Some(Reading::Text(_))) => return Some(false),
        ("CPU_ISOLATION", _) if !subject.topology.booted.is_empty() => return Some(false),
        _ => {}
    }
    // The kernel does not know a value that it refuses either.
    let refused =
        name == "isolcpus" && Isolcpus::of(&subject.cmdline, last_cpu(subject.facts)).refused.is_some();
    let sure = ["isolcpus", "rcu_nocbs", "rcu_nocb_poll", "threadirqs"].contains(&name) && !refused;
    if sure && asked::unknown(subject.facts).iter().flatten().any(|one| one.name == name) {
        return Some(true);
    }
    match subject.facts.0.get(&format!("config:CONFIG_{option}"))? {
        Reading::Text(value) => Some(value.trim() == "n"),
        Reading::Absent => subject.facts.text("config:source").map(|_| true),
        Reading::Cut(_) | Reading::Unreadable(_) => None,
    }
}

/// `nohz_full=2-7`, where the kernel was told so and was built without it.
pub(super) fn asked_and_not_built(subject: &Subject<'_>, name: &str) -> Option<String> {
    let (_, option) = NEEDS.iter().find(|(known, _)| *known == name)?;
    let one = subject.cmdline.parameters().iter().find(|one| one.name == name)?;
    // A PREEMPT_RT kernel is preemptible in full without it.
    let moot = name == "preempt" && subject.kernel.rt;
    (!moot && is_without(subject, name, option) == Some(true)).then(|| shown(one))
}

fn built(subject: &Subject<'_>) -> Verdict {
    let told = subject.told()?;
    let asked: Vec<_> = NEEDS.iter().filter(|(name, _)| told.has(name)).collect();
    let strange = not_taken(subject);
    if asked.is_empty() && strange.is_empty() {
        return Err(Judgement::not_applicable("the command line needs no kernel option"));
    }
    let missing: Vec<(String, &str)> = asked
        .iter()
        .filter_map(|(name, option)| Some((asked_and_not_built(subject, name)?, *option)))
        .collect();
    if missing.is_empty() && strange.is_empty() {
        let open = asked.iter().filter(|(name, option)| is_without(subject, name, option).is_none());
        let open: Vec<&str> = open.map(|(name, _)| *name).collect();
        return match open.is_empty() {
            true => Ok(Judgement::ok(format!(
                "this kernel is built with the options that its command line needs: {}",
                few(asked.iter().map(|(name, _)| name))
            ))
            .read(CMDLINE, few(asked.iter().map(|(name, _)| name)))),
            false => Err(Judgement::unreadable(format!(
                "the kernel's configuration is unknown: it may lack {}",
                few(open)
            ))),
        };
    }
    let said = missing.iter().map(|(one, option)| format!("{one} without CONFIG_{option}"));
    let said = said.chain(strange.iter().map(|one| format!("{one}, which the kernel reports as unknown")));
    let judgement =
        Judgement::finding(format!("on the command line, but not built into this kernel: {}", few(said)));
    let read = |judgement: Judgement, (one, option): &(String, &str)| {
        judgement.read(CMDLINE, one).read(format!("config:CONFIG_{option}"), "not built in")
    };
    let judgement = missing.iter().fold(judgement, read);
    Ok(strange.into_iter().fold(judgement, |judgement, one| judgement.read("dmesg", one)))
}

/// The parameters that one place asks for and the machine was not booted with.
struct Gap {
    said: String,
    file: String,
    value: String,
}

fn in_effect(subject: &Subject<'_>) -> Verdict {
    subject.told()?;
    if subject.started {
        return Err(Judgement::not_applicable("tactus starts it, with a separate command line"));
    }
    let mut gaps: Vec<Gap> = of_cmdline(subject);
    gaps.extend(of_places(subject));
    gaps.extend(of_tuned(subject));
    if gaps.is_empty() {
        let asks = subject.cmdline.has("isolcpus") || subject.cmdline.has("nohz_full");
        let said = if asks {
            "all configured boot parameters are in effect, as far as the kernel and the files of the next boot show"
        } else {
            "no isolation is configured for boot that is not in effect"
        };
        return Ok(Judgement::ok(said));
    }
    let judgement =
        Judgement::finding(gaps.iter().map(|gap| gap.said.clone()).collect::<Vec<_>>().join("; "));
    Ok(gaps.into_iter().fold(judgement, |judgement, gap| judgement.read(gap.file, gap.value)))
}

/// CPUs that the command line asks for and the kernel's lists do not have.
fn of_cmdline(subject: &Subject<'_>) -> Vec<Gap> {
    let (told, last, online) = (&subject.cmdline, last_cpu(subject.facts), &subject.topology.online);
    let mut gaps = Vec::new();
    let mut compare = |name: &str, asked: &CpuSet, file: &str, why: Option<String>| {
        let Some(text) = subject.facts.text(file).filter(|_| asked_and_not_built(subject, name).is_none())
        else {
            return;
        };
        let has = text.parse::<CpuSet>().unwrap_or_default();
        let missing = asked.and(online).minus(&has);
        if missing.is_empty() && why.is_none() {
            return;
        }
        let value = told.get(name).unwrap_or_default();
        let reason = why.unwrap_or_else(|| format!("the kernel has {}", cpus_or_none(&has)));
        let said = format!("{name}={value} is on the command line but not in effect: {reason}");
        gaps.push(Gap { said, file: file.to_owned(), value: text.to_owned() });
    };
    let asked = Isolcpus::of(told, last);
    compare("isolcpus", &asked.domain, BOOT, asked.refused);
    if let Some(value) = told.get("nohz_full") {
        match CpuSet::of_parameter(value, last) {
            Ok(asked) => compare("nohz_full", &asked, NOHZ_FULL, None),
            Err(error) => compare("nohz_full", &CpuSet::default(), NOHZ_FULL, Some(error.to_string())),
        }
    }
    gaps
}

/// Parameters of files that the command line lacks or sets otherwise.
fn of_places(subject: &Subject<'_>) -> Vec<Gap> {
    let last = last_cpu(subject.facts);
    let of = |place: asked::Place| {
        let booted = |one: &&Parameter| {
            let value = one.value.as_deref().unwrap_or_default();
            subject.cmdline.all(&one.name).any(|told| same_value(told.unwrap_or_default(), value, last))
        };
        let differs: Vec<&Parameter> = place.line.iter().filter(|one| !booted(one)).collect();
        let (other, missing): (Vec<&Parameter>, Vec<&Parameter>) =
            differs.into_iter().partition(|one| subject.cmdline.has(&one.name));
        let mut said = Vec::new();
        if !missing.is_empty() {
            let all = few(missing.iter().map(|one| shown(one)));
            said.push(format!(
                "{} contains {all}, but the machine was not booted with it: reboot",
                place.name
            ));
        }
        for one in other {
            let told = subject.cmdline.all(&one.name).last().flatten().unwrap_or_default();
            let told: String = told.chars().take(80).collect();
            said.push(format!(
                "two places disagree: {} has {}, but the machine was booted with {}={told}",
                place.name,
                shown(one),
                one.name
            ));
        }
        (!said.is_empty()).then(|| Gap {
            said: said.join("; "),
            value: place.line.iter().map(shown).collect::<Vec<_>>().join(" "),
            file: place.file,
        })
    };
    asked::places(subject.facts).into_iter().filter_map(of).collect()
}

/// The CPUs that TuneD's profile is to isolate, and the kernel does not.
fn of_tuned(subject: &Subject<'_>) -> Option<Gap> {
    let tuned = asked::tuned(subject.facts, &subject.topology.online)?;
    let now = &subject.topology;
    let isolated = &now.isolated;
    if [isolated, &now.booted, &now.nohz_full].contains(&&tuned.cpus) {
        return None;
    }
    let asked = format!("TuneD's profile {} has isolated_cores={}", tuned.profile, tuned.value);
    let said = match (isolated.is_empty(), now.nohz_full.is_empty()) {
        (true, true) => {
            format!("{asked}, but the machine was not booted with the profile's parameters: reboot")
        }
        (true, false) => {
            format!("two places disagree: {asked}, but nohz_full is {}", cpus_or_none(&now.nohz_full))
        }
        (false, _) => {
            format!("two places disagree: {asked}, but the kernel isolates {}", cpus_or_none(isolated))
        }
    };
    let value = format!("isolated_cores={}", tuned.value);
    Some(Gap { said, file: tuned.file, value })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, intel};

    const LINE: &str = "Unknown kernel command line parameters \"splash isolcpu=2-3 rcu_nocb=2-3\", will be passed to user space.";

    /// Booted with this, and with what the kernel makes of it.
    fn booted(line: &str, isolated: &str, tickless: &str) -> System {
        intel(&[(CMDLINE, line), (BOOT, isolated), (NOHZ_FULL, tickless), ("uname:release", "6.12.0")])
            .and("dmesg:start", "whole")
            .and(UNKNOWN, "")
    }

    #[test]
    fn a_misspelt_parameter_is_named_with_what_was_meant_and_its_cpus_count() {
        let system = booted("splash isolcpu=2-3 rcu_nocb=2-3", "", "").and(UNKNOWN, LINE);
        assert_eq!(
            system.said("misspelt-parameters"),
            "the kernel does not know `isolcpu=2-3` (`isolcpus` is the correct name), `rcu_nocb=2-3` (`rcu_nocbs` is the correct name): CPUs 2,3 were to be isolated"
        );
        assert_eq!(system.said("isolcpus"), "the scheduler balances CPUs 2,3 like all other CPUs");
        // Without the log the name alone tells.
        let mute = system.clone().unreadable(UNKNOWN, "denied");
        assert_eq!(mute.state("misspelt-parameters"), State::Finding);
        let other = booted("splash quiet", "", "")
            .and(UNKNOWN, "Unknown kernel command line parameters \"splash\", will be");
        assert_eq!(other.state("misspelt-parameters"), State::Ok, "{}", other.said("misspelt-parameters"));
        assert_eq!(
            other.and(UNKNOWN, "").and("dmesg:start", "overwritten").state("misspelt-parameters"),
            State::Unreadable
        );
    }

    #[test]
    fn what_the_kernel_says_that_it_knows_is_not_misspelt() {
        // A vendor's kernel may know what mainline does not.
        assert_eq!(booted("isolcpu=2-3", "", "").state("misspelt-parameters"), State::Ok);
        let known = booted("kthread_cpus=0", "", "")
            .and(UNKNOWN, "Unknown kernel command line parameters \"kthread_cpus=0\", will");
        assert_eq!(known.finding("misspelt-parameters").severity, Severity::Minor);
    }

    #[test]
    fn what_is_asked_for_and_not_built_in_is_no_matter_of_another_machine() {
        let system = booted("nohz_full=2-3 rcu_nocbs=2-3 quiet", "2-3", "").absent(NOHZ_FULL);
        let system = system.and("config:source", "/boot/config").and("config:CONFIG_RCU_NOCB_CPU", "n");
        assert_eq!(
            system.said("not-built-in"),
            "on the command line, but not built into this kernel: nohz_full=2-3 without CONFIG_NO_HZ_FULL, rcu_nocbs=2-3 without \
             CONFIG_RCU_NOCB_CPU"
        );
        assert_eq!(system.state("nohz-full"), State::Finding);
        assert_eq!(
            system.said("nohz-full"),
            "nohz_full=2-3 is on the command line, and this kernel is built without CONFIG_NO_HZ_FULL: the tick interrupts CPUs 2,3"
        );
        assert_eq!(
            system.and("config:CONFIG_RCU_NOCB_CPU", "y").said("not-built-in"),
            "on the command line, but not built into this kernel: nohz_full=2-3 without CONFIG_NO_HZ_FULL"
        );
        // As Raspberry Pi OS says it, whose configuration is not there.
        let pi = booted("isolcpus=3 nohz_full=3 rcu_nocbs=3 tsc=reliable audit=0", "3", "").absent(NOHZ_FULL).and(
            UNKNOWN,
            "Unknown kernel command line parameters \"nohz_full=3 rcu_nocbs=3 tsc=reliable audit=0\", will be passed to user space.",
        );
        assert_eq!(
            pi.said("not-built-in"),
            "on the command line, but not built into this kernel: nohz_full=3 without CONFIG_NO_HZ_FULL, rcu_nocbs=3 without \
             CONFIG_RCU_NOCB_CPU, tsc=reliable, which the kernel reports as unknown"
        );
        let has = booted("nohz_full=2-3", "2-3", "2-3");
        assert_eq!(has.state("not-built-in"), State::Ok);
        assert_eq!(booted("isolcpus=2-3", "", "").state("not-built-in"), State::Unreadable);
        assert_eq!(booted("quiet", "", "").state("not-built-in"), State::NotApplicable);
    }

    #[test]
    fn a_profile_of_tuned_that_was_not_booted_with_wants_a_reboot() {
        let of = |line: &str, isolated: &str, tickless: &str, cores: &str| {
            booted(line, isolated, tickless)
                .and("/etc/tuned/active_profile", "realtime-virtual-host")
                .and("/etc/tuned/realtime-virtual-host-variables.conf", cores)
        };
        let waits = of("quiet", "", "", "# isolated_cores=1\nisolated_cores=3");
        assert_eq!(
            waits.said("boot-intent"),
            "TuneD's profile realtime-virtual-host has isolated_cores=3, but the machine was not booted with the profile's \
             parameters: reboot"
        );
        assert_eq!(
            waits.said("isolcpus"),
            "the scheduler balances CPU 3 like all other CPUs",
            "these are the CPUs that are meant"
        );
        assert_eq!(
            of("isolcpus=2-3", "2-3", "", "isolated_cores=3").said("boot-intent"),
            "two places disagree: TuneD's profile realtime-virtual-host has isolated_cores=3, but the kernel isolates CPUs 2,3"
        );
        assert_eq!(of("isolcpus=2-3", "2-3", "", "isolated_cores=2-N").state("boot-intent"), State::Ok);
        assert_eq!(
            of("nohz_full=2-3", "", "2-3", "isolated_cores=2,3").state("boot-intent"),
            State::Ok,
            "as cpu-partitioning has it"
        );
        assert_eq!(
            of("quiet", "", "", "isolated_cores=${f:calc_isolated_cores:1}").state("boot-intent"),
            State::Ok,
            "only TuneD knows"
        );
    }

    #[test]
    fn the_files_of_the_next_boot_are_read() {
        const GRUB: &str = "/etc/default/grub";
        let grub = |text: &str| booted("isolcpus=2-3 quiet", "2-3", "").and(GRUB, text);
        assert_eq!(grub("GRUB_CMDLINE_LINUX=\"isolcpus=2-N console=ttyS0\"").state("boot-intent"), State::Ok);
        assert_eq!(
            grub("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=1-3 skew_tick=1\"").said("boot-intent"),
            "/etc/default/grub contains skew_tick=1, but the machine was not booted with it: reboot; two places disagree: \
             /etc/default/grub has isolcpus=1-3, but the machine was booted with isolcpus=2-3"
        );
        let boot = "TUNED_BOOT_CMDLINE=\"skew_tick=1 tsc=reliable isolcpus=managed_irq,domain,2-3\"";
        let tuned = booted("quiet", "", "")
            .and("/etc/tuned/active_profile", "own")
            .and("/etc/tuned/bootcmdline", boot);
        assert!(
            tuned
                .said("boot-intent")
                .starts_with("TuneD's profile own contains skew_tick=1, tsc=reliable, isolcpus="),
            "{}",
            tuned.said("boot-intent")
        );
        let mut ours = tuned;
        ours.intent.started = true;
        assert_eq!(ours.state("boot-intent"), State::NotApplicable);
    }

    #[test]
    fn what_the_kernel_made_of_its_command_line_is_what_counts() {
        assert_eq!(
            booted("isolcpus=managed_irq,domain,2-N nohz_full=2-N", "2-3", "2-3").state("boot-intent"),
            State::Ok
        );
        assert_eq!(
            booted("isolcpus=managed_irq,domain,2-9", "", "").said("boot-intent"),
            "isolcpus=managed_irq,domain,2-9 is on the command line but not in effect: the kernel refuses \
             isolcpus=managed_irq,domain,2-9: CPU 9 is above the highest there is (3)"
        );
        assert_eq!(
            booted("nohz_full=0-3", "", "1-3").said("boot-intent"),
            "nohz_full=0-3 is on the command line but not in effect: the kernel has CPUs 1-3"
        );
    }

    #[test]
    fn rubbish_is_neither_misspelt_nor_asked_for() {
        for text in HOSTILE {
            let system = booted(text, "", "").and(UNKNOWN, text).and("/etc/tuned/active_profile", text);
            let system = system.and("/etc/default/grub", text).and("/etc/tuned/bootcmdline", text);
            assert_ne!(system.state("misspelt-parameters"), State::Finding, "{text}");
            assert_ne!(system.state("boot-intent"), State::Finding, "{text}");
        }
    }
}
