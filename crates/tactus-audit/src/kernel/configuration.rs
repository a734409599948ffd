//! How the kernel was built, and what is known of its version.

use tactus_model::facts::Reading;
use tactus_model::finding::{Role, Severity, State};

use crate::sentence::{few, within};
use crate::{
    Applies, Arch, Check, Judgement, Kernel, Reversible, SetBy, Source, Subject, Verdict, no_change,
};

const SOURCE: &str = "config:source";

pub static CHECKS: &[Check] = &[
    Check {
        id: "kernel-config",
        title: "the kernel lacks options for isolation, or has options that add latency",
        sources: &[Source::Xeon, Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Installation],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/boot/config-RELEASE (or /lib/modules/RELEASE/config, /proc/config.gz)",
        expected: "y: HIGH_RES_TIMERS, RCU_NOCB_CPU, CPU_ISOLATION, CPUSETS, and NO_HZ_FULL for work that computes \
without sleeping. n: RT_GROUP_SCHED, PROVE_LOCKING, KASAN",
        why: "A kernel without the option ignores parameters such as rcu_nocbs=. RT_GROUP_SCHED refuses FIFO to \
every group without a real-time budget. PROVE_LOCKING and KASAN check each lock and each memory access, at many \
times their cost. The kernel's document recommends NO_HZ_FULL off for short periods, on for long computation (see \
nohz-full). For tracers that cost time while off see latency-tracers. The document also wants the lockup detector \
off, which is possible at run time: see watchdogs.",
        fix: "Boot another kernel of the distribution, or build one with these options.",
        risk: "Without the debugging options, the bugs that they find stay hidden.",
        judge: configuration,
        changes: no_change,
    },
    Check {
        id: "kernel-regressions",
        title: "this version of the kernel has a known latency problem",
        sources: &[Source::Xeon, Source::Kernel("commit 7dec062cfcf2")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::Installation],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "uname -r",
        expected: "no version with a known problem",
        why: "Each entry of the table names where the problem was reported. Only versions are compared, not patches: \
a distribution may have fixed its kernel.",
        fix: "Check whether your kernel has the named fix; otherwise boot another version.",
        risk: "Another version has other problems: measure again.",
        judge: regressions,
        changes: no_change,
    },
];

const WANTED: &[&str] = &["HIGH_RES_TIMERS", "NO_HZ_FULL", "RCU_NOCB_CPU", "CPU_ISOLATION", "CPUSETS"];
/// Wanted by some kinds of work and unwanted by others.
const BY_KIND: &str = "NO_HZ_FULL";
const UNWANTED: &[&str] = &["RT_GROUP_SCHED", "PROVE_LOCKING", "KASAN"];

/// Whether an option is on; `None`: the facts do not say.
fn is_on(subject: &Subject<'_>, option: &str) -> Option<bool> {
    match subject.facts.0.get(&format!("config:CONFIG_{option}"))? {
        Reading::Text(value) | Reading::Cut(value) => Some(matches!(value.trim(), "y" | "m")),
        // The configuration does not mention what it does not know or what something else turns off.
        Reading::Absent => Some(false),
        Reading::Unreadable(_) => None,
    }
}

fn configuration(subject: &Subject<'_>) -> Verdict {
    let source = subject.need(SOURCE)?;
    let group_scheduling_off = super::throttling::groups_are_off(subject);
    let (mut missing, mut harmful, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    for option in WANTED.iter().copied() {
        match is_on(subject, option) {
            Some(true) => {}
            Some(false) => missing.push(option),
            None => hidden.push(option),
        }
    }
    for option in UNWANTED.iter().copied() {
        match is_on(subject, option) {
            Some(true) if option == "RT_GROUP_SCHED" && group_scheduling_off => {}
            Some(true) => harmful.push(option),
            Some(false) => {}
            None => hidden.push(option),
        }
    }
    let mut said = Vec::new();
    let needed: Vec<&str> = missing.iter().copied().filter(|option| *option != BY_KIND).collect();
    if !needed.is_empty() {
        said.push(format!("this kernel is built without {}", needed.join(", ")));
    }
    if !harmful.is_empty() {
        said.push(format!("this kernel is built with {}", harmful.join(", ")));
    }
    let by_kind_alone = said.is_empty();
    if missing.contains(&BY_KIND) {
        said.push(format!(
            "this kernel is built without {BY_KIND}, which is right for short periods and wrong for long computation"
        ));
    }
    if said.is_empty() && !hidden.is_empty() {
        let why = format!("the facts do not include CONFIG_{}", few(&hidden));
        return Err(Judgement::unreadable(why).read(SOURCE, source));
    }
    let good = "this kernel has the options that isolation needs, and no option that adds latency";
    let mut judgement = Judgement::when(said.is_empty(), good, said.join("; ")).read(SOURCE, source);
    if by_kind_alone && judgement.state == State::Finding {
        judgement = judgement.at(Severity::Info);
    }
    for (options, value) in [(missing, "n"), (harmful, "y")] {
        for option in options {
            judgement = judgement.read(format!("CONFIG_{option}"), value);
        }
    }
    Ok(judgement)
}

/// A problem of some versions.
struct Regression {
    /// First version that has it.
    from: (u32, u32),
    /// First version that has it no more.
    until: (u32, u32),
    /// Whether it is one of hosts only.
    host: bool,
    /// Whether it befalls CPUs alone that are isolated and keep their tick.
    ticking: bool,
    /// How bad it is.
    severity: Severity,
    /// The regression, its report, and its fix.
    said: &'static str,
}

const REGRESSIONS: &[Regression] = &[
    Regression {
        from: (5, 15),
        until: (5, 16),
        host: true,
        ticking: false,
        severity: Severity::Info,
        said: "5.15: maxima of a guest rose from about 60 us to more than 40 ms when the vCPU's CPU went idle \
(meta-seapath issue 57; kvm and linux-rt-users mailing lists, 2022)",
    },
    Regression {
        from: (6, 9),
        until: (6, 19),
        host: false,
        ticking: true,
        severity: Severity::Major,
        said: "6.9 to 6.18: a busy isolated CPU that keeps its tick runs the timers of idle CPUs and the work that \
they start. The fix in 6.19 (commit 7dec062cfcf2, \"timers/migration: Exclude isolated cpus from hierarchy\") reports \
gaps of 1.2 ms in oslat. CPUs in nohz_full are not affected while they run one task",
    },
];

fn regressions(subject: &Subject<'_>) -> Verdict {
    let release = subject.need("uname:release")?;
    let Kernel { major, minor, .. } = subject.kernel;
    if major == 0 {
        return Err(Judgement::unreadable("the kernel's release does not contain a version")
            .read("uname -r", release));
    }
    let concerned = |one: &&Regression| {
        (one.from..one.until).contains(&(major, minor))
            && !(one.host && subject.role == Role::Guest)
            && !(one.ticking && within(subject.isolated(), &subject.topology.nohz_full))
    };
    let found: Vec<&Regression> = REGRESSIONS.iter().filter(concerned).collect();
    // A problem of isolated CPUs is only information as long as no CPU is isolated.
    let yet = |one: &Regression| one.ticking && subject.sets_none_apart();
    let severity = |one: &&Regression| if yet(one) { Severity::Info } else { one.severity };
    let Some(worst) = found.iter().map(severity).max() else {
        let good = format!("this version of tactus knows no problem of {major}.{minor}");
        return Ok(Judgement::ok(good).read("uname -r", release));
    };
    let said = found.iter().map(|one| one.said).collect::<Vec<_>>().join("; ");
    Ok(Judgement::finding(said).at(worst).read("uname -r", release))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, System, guest, intel};

    fn built(changed: &[(&str, &str)]) -> System {
        let mut system = intel(&[(SOURCE, "/boot/config-6.1.0")]);
        for option in WANTED {
            system = system.and(&format!("config:CONFIG_{option}"), "y");
        }
        for option in UNWANTED {
            system = system.absent(&format!("config:CONFIG_{option}"));
        }
        system.with(changed)
    }

    #[test]
    fn options_are_judged_by_name() {
        assert_eq!(built(&[]).state("kernel-config"), State::Ok);
        let without = built(&[("config:CONFIG_NO_HZ_FULL", "n")]).absent("config:CONFIG_RCU_NOCB_CPU");
        assert_eq!(
            without.said("kernel-config"),
            "this kernel is built without RCU_NOCB_CPU; this kernel is built without NO_HZ_FULL, which is right for short periods and wrong for long computation"
        );
        let debugging = built(&[("config:CONFIG_KASAN", "y"), ("config:CONFIG_RT_GROUP_SCHED", "y")]);
        assert_eq!(debugging.said("kernel-config"), "this kernel is built with RT_GROUP_SCHED, KASAN");
        let off = built(&[("config:CONFIG_RT_GROUP_SCHED", "y"), ("/proc/cmdline", "rt_group_sched=0")]);
        assert_eq!(off.state("kernel-config"), State::Ok);
        let built_off =
            [("config:CONFIG_RT_GROUP_SCHED", "y"), ("config:CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED", "y")];
        assert_eq!(built(&built_off).state("kernel-config"), State::Ok);
    }

    #[test]
    fn nohz_full_is_asked_for_by_some_kinds_of_work_only() {
        let found = built(&[("config:CONFIG_NO_HZ_FULL", "n")]).finding("kernel-config");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Info));
        let detector = built(&[("config:CONFIG_LOCKUP_DETECTOR", "y")]);
        assert_eq!(detector.state("kernel-config"), State::Ok, "it is switched off at run time");
    }

    #[test]
    fn a_configuration_that_was_not_read_is_not_good() {
        assert_eq!(intel(&[]).state("kernel-config"), State::Unreadable);
        let packed = intel(&[]).unreadable(SOURCE, "only in /proc/config.gz");
        assert!(packed.said("kernel-config").contains("only in /proc/config.gz"));
        assert_eq!(built(&[]).without("config:CONFIG_KASAN").state("kernel-config"), State::Unreadable);
        for text in HOSTILE {
            assert_ne!(built(&[("config:CONFIG_CPUSETS", text)]).state("kernel-config"), State::Ok, "{text}");
        }
    }

    #[test]
    fn versions_are_looked_up() {
        let of = |release: &str| intel(&[("uname:release", release)]);
        assert_eq!(of("6.1.0-38-rt-amd64").state("kernel-regressions"), State::Ok);
        assert!(of("5.15.0-1-rt").said("kernel-regressions").contains("meta-seapath"));
        assert_eq!(guest(&[("uname:release", "5.15.0")]).state("kernel-regressions"), State::Ok);
        let pulling = of("6.12.43").finding("kernel-regressions");
        assert_eq!((pulling.state, pulling.severity), (State::Finding, Severity::Major));
        let nothing = of("6.12.43").and("/sys/devices/system/cpu/isolated", "");
        assert_eq!(nothing.finding("kernel-regressions").severity, Severity::Info, "none is isolated yet");
        let tickless = of("6.12.43").and("/sys/devices/system/cpu/nohz_full", "2-3");
        assert_eq!(tickless.state("kernel-regressions"), State::Ok);
        assert_eq!(of("6.19.0").state("kernel-regressions"), State::Ok);
        assert_eq!(of("rubbish").state("kernel-regressions"), State::Unreadable);
        assert_eq!(intel(&[]).state("kernel-regressions"), State::Unreadable);
    }
}
