//! Periodic work of the kernel on every CPU, to watch over itself.

use tactus_model::CpuSet;
use tactus_model::change::{Form, flag};
use tactus_model::finding::{Severity, State};

use crate::sentence::{cpus_or_none, meet};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const HARD: &str = "/proc/sys/kernel/nmi_watchdog";
const SOFT: &str = "/proc/sys/kernel/soft_watchdog";
const WHERE: &str = "/proc/sys/kernel/watchdog_cpumask";
const MIGRATION: &str = "/proc/sys/kernel/timer_migration";
const MACHINE: &str = "/sys/devices/system/machinecheck/";

pub static CHECKS: &[Check] = &[
    Check {
        id: "timer-migration",
        title: "timers may start on CPUs that did not request them",
        sources: &[
            Source::Kernel("kernel/sched/core.c"),
            Source::Kernel("kernel/time/timer_migration.c"),
            Source::Tuned("network-latency"),
            Source::Guide("OpenShift node tuning operator"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: MIGRATION,
        expected: "0, where isolated CPUs are still in scheduling domains",
        why: "With 1 an idle CPU starts its timers on a busy CPU of its scheduling domain, to stay idle longer. That \
busy CPU may be a real-time CPU that is still in a domain. CPUs of isolcpus=domain or of an isolated partition are \
in no domain and get no timers. nohz_full CPUs get none either, and their own timers are moved away. It is \
contested: TuneD's profiles set 0, which keeps a timer on the CPU that started it; OpenShift's set 1. Since Linux 6.9 the value affects \
only high-resolution timers. Awake CPUs pull all other timers, up to 6.18 also isolated CPUs (see \
kernel-regressions). Measure it here: tactus prove timer-migration",
        fix: "sysctl kernel.timer_migration=0",
        risk: "Housekeeping CPUs wake up more often. On isolated CPUs, 0 can be the worse value.",
        judge: migration,
        changes: |subject| subject.set("timer-migration", MIGRATION, Form::Flag, "0").into_iter().collect(),
    },
    Check {
        id: "watchdogs",
        title: "lockup detectors interrupt real-time CPUs",
        sources: &[
            Source::Kernel("Documentation/admin-guide/lockup-watchdogs.rst"),
            Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst"),
            Source::Tuned("network-latency"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime, SetBy::KernelCommandLine],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/proc/sys/kernel/{nmi_watchdog,soft_watchdog,watchdog_cpumask}",
        expected: "0 and 0, or watchdog_cpumask without {isolated}",
        why: "The soft lockup detector runs a timer and stop-class work on each CPU of its mask every four seconds \
(two fifths of watchdog_thresh). The hard one uses a non-maskable interrupt from a performance counter, which a \
guest's host must emulate. With nohz_full the kernel leaves those CPUs out of the mask. The kernel's document rates \
it high. Here it is minor: it takes microseconds at a time, and the fix gives up a guard.",
        fix: "sysctl kernel.nmi_watchdog=0 kernel.soft_watchdog=0 kernel.watchdog_cpumask={housekeeping}; or boot \
with nosoftlockup nmi_watchdog=0.",
        risk: "A hung CPU is not reported: the kernel's document advises a hardware watchdog instead.",
        judge: watchdogs,
        changes: |subject| {
            let Some((_, keeping)) = subject.parted() else { return Vec::new() };
            let set = |path, form, then: String| subject.set("watchdogs", path, form, then);
            let files = [
                set(HARD, Form::Plain, "0".into()),
                set(SOFT, Form::Plain, "0".into()),
                set(WHERE, Form::List, keeping.to_string()),
            ];
            let boot = [
                subject.boot("watchdogs", "nosoftlockup", ""),
                subject.boot("watchdogs", "nmi_watchdog", "0"),
            ];
            files.into_iter().flatten().chain(boot).collect()
        },
    },
    Check {
        id: "mce-polling",
        title: "every CPU polls for corrected machine errors",
        sources: &[Source::Kernel("Documentation/ABI/testing/sysfs-mce"), Source::Tuned("realtime")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::RunTime, SetBy::KernelCommandLine],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/sys/devices/system/machinecheck/machinecheck*/{ignore_ce,check_interval}",
        expected: "ignore_ce 1, or check_interval 0",
        why: "Every five minutes, and more often after an error, a timer on each CPU reads the machine check \
registers. It skips banks that interrupt for corrected errors (CMCI). In a guest each register is an exit.",
        fix: "echo 1 > /sys/devices/system/machinecheck/machinecheck0/ignore_ce (shared by all CPUs), or boot with \
mce=ignore_ce. A 0 in check_interval also ends the polling, but kernels 4.16 and 4.17 treat it as one second.",
        risk: "Corrected errors, which announce failing memory, are no longer reported: ignore_ce also turns their \
interrupt (CMCI) off, a check_interval of 0 leaves it on.",
        judge: polling,
        changes: |subject| {
            // Not check_interval: of a 0 that is written there 4.16 and 4.17 make one second (b3b7c4795cca,
            // taken back by "x86/MCE: Remove min interval polling limitation").
            let file = machine_check(subject, "ignore_ce")
                .and_then(|(path, _)| subject.set("mce-polling", path, Form::Plain, "1"));
            let Some(file) = file else { return Vec::new() };
            vec![file, subject.boot("mce-polling", "mce", "ignore_ce")]
        },
    },
];

fn migration(subject: &Subject<'_>) -> Verdict {
    let judgement = subject.expect(MIGRATION, Form::Flag, "0")?;
    let since = if subject.kernel.since(6, 9) { " (high-resolution timers only, since 6.9)" } else { "" };
    let said = format!("{}{since}", judgement.said);
    let targets = subject.isolated().minus(&subject.topology.isolated).minus(&subject.topology.nohz_full);
    let on = subject.facts.text(MIGRATION).and_then(flag) == Some(true);
    if on && targets.is_empty() {
        let place = cpus_or_none(subject.isolated());
        let said = format!(
            "timers may be moved{since}, but not to {place}, which is outside every scheduling domain"
        );
        return Ok(Judgement { said, state: State::Ok, ..judgement });
    }
    Ok(Judgement { said, ..judgement })
}

fn watchdogs(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    let (hard, soft) = (subject.value(HARD), subject.value(SOFT));
    if hard.is_err() && soft.is_err() {
        return hard.map(Judgement::ok);
    }
    let on = |text: &Result<&str, Judgement>| matches!(text, Ok(text) if *text != "0");
    let named: Vec<&str> = [(on(&hard), "nmi_watchdog"), (on(&soft), "soft_watchdog")]
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, name)| *name)
        .collect();
    let places = subject.facts.text(WHERE);
    let cpus = places.and_then(|list| list.parse::<CpuSet>().ok());
    let off = named.is_empty();
    let away = cpus.as_ref().is_some_and(|cpus| !meet(cpus, isolated));
    let said = match (off, away) {
        (true, _) => "no lockup detector is on".to_owned(),
        (false, true) => {
            format!("{} runs on {} only", named.join(" and "), cpus_or_none(&cpus.unwrap_or_default()))
        }
        (false, false) => {
            format!("lockup detectors run on {}: {}", cpus_or_none(isolated), named.join(" and "))
        }
    };
    let mut judgement = if off || away { Judgement::ok(said) } else { Judgement::finding(said) };
    for (path, text) in [(HARD, hard), (SOFT, soft)] {
        if let Ok(text) = text {
            judgement = judgement.read(path, text);
        }
    }
    Ok(match places {
        Some(text) => judgement.read(WHERE, text),
        None => judgement,
    })
}

/// A setting of machine checks, which all CPUs share: of the first that has it.
fn machine_check<'a>(subject: &'a Subject<'_>, name: &str) -> Option<(&'a str, &'a str)> {
    subject
        .facts
        .under(MACHINE)
        .filter(|(path, _)| path.rsplit('/').next() == Some(name))
        .find_map(|(path, _)| Some((path, subject.facts.text(path)?)))
}

fn polling(subject: &Subject<'_>) -> Verdict {
    let ignored = machine_check(subject, "ignore_ce");
    let interval = machine_check(subject, "check_interval");
    if ignored.is_none() && interval.is_none() {
        // Says whether it is absent or closed.
        subject.value(&format!("{MACHINE}machinecheck0/ignore_ce"))?;
    }
    let off = ignored.is_some_and(|(_, text)| text == "1");
    let never = interval.is_some_and(|(_, text)| text == "0");
    let every = interval.map_or("from time to time".to_owned(), |(_, text)| {
        // Decimal, whatever the ABI document says: a 6.1 kernel with its default of 5 minutes says 300.
        text.parse::<u64>().map_or("from time to time".to_owned(), |seconds| format!("every {seconds} s"))
    });
    let said = if off {
        "corrected machine errors are ignored"
    } else {
        "corrected machine errors are not polled for"
    };
    let judgement =
        Judgement::when(off || never, said, format!("each CPU polls for corrected machine errors {every}"));
    Ok([ignored, interval].into_iter().flatten().fold(judgement, |one, (path, text)| one.read(path, text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, arm, guest, intel};

    #[test]
    fn timer_migration_is_a_flag_that_means_less_since_6_9() {
        let id = "timer-migration";
        assert_eq!(intel(&[(MIGRATION, "0")]).state(id), State::Ok);
        assert_eq!(intel(&[(MIGRATION, "1")]).wanted(id), [format!("{MIGRATION} = 0")]);
        assert_eq!(intel(&[(MIGRATION, "1")]).state(id), State::Ok, "2-3 are in no scheduling domain");
        assert_eq!(intel(&[(MIGRATION, "1")]).isolate("1-3").state(id), State::Finding);
        let new = intel(&[(MIGRATION, "1"), ("uname:release", "6.12.43")]).isolate("1-3").said(id);
        assert!(new.ends_with("(high-resolution timers only, since 6.9)"), "{new}");
        assert_eq!(intel(&[]).absent(MIGRATION).state(id), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(MIGRATION, "denied").state(id), State::Unreadable);
    }

    #[test]
    fn detectors_are_off_or_elsewhere() {
        let id = "watchdogs";
        assert_eq!(intel(&[(HARD, "0"), (SOFT, "0")]).state(id), State::Ok);
        assert_eq!(
            intel(&[(HARD, "0"), (SOFT, "1"), (WHERE, "0-1")]).said(id),
            "soft_watchdog runs on CPUs 0,1 only"
        );
        let bad = intel(&[(HARD, "1"), (SOFT, "1"), (WHERE, "0-3")]);
        assert_eq!(bad.said(id), "lockup detectors run on CPUs 2,3: nmi_watchdog and soft_watchdog");
        assert_eq!(
            bad.wanted(id),
            [
                format!("{HARD} = 0"),
                format!("{SOFT} = 0"),
                format!("{WHERE} = 0,1"),
                "kernel parameter nosoftlockup = ".into(),
                "kernel parameter nmi_watchdog = 0".into()
            ]
        );
        assert_eq!(intel(&[(HARD, "0"), (SOFT, "1")]).state(id), State::Finding, "nothing says where");
        assert_eq!(intel(&[]).absent(HARD).absent(SOFT).state(id), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(HARD, "denied").state(id), State::Unreadable);
        assert_eq!(intel(&[(HARD, "1")]).isolate("0-3").state(id), State::NotApplicable);
    }

    #[test]
    fn machine_errors_are_polled_for_unless_told_otherwise() {
        let id = "mce-polling";
        let (ignore, interval) = (
            "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
            "/sys/devices/system/machinecheck/machinecheck0/check_interval",
        );
        assert_eq!(intel(&[(ignore, "1"), (interval, "300")]).state(id), State::Ok);
        assert_eq!(intel(&[(ignore, "0"), (interval, "0")]).state(id), State::Ok);
        let bad = guest(&[(ignore, "0"), (interval, "300")]);
        assert_eq!(bad.said(id), "each CPU polls for corrected machine errors every 300 s");
        let wanted = [format!("{ignore} = 1"), "kernel parameter mce = ignore_ce".into()];
        assert_eq!(bad.wanted(id), wanted);
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
        assert!(intel(&[]).changes(id).is_empty());
        assert_eq!(intel(&[]).unreadable(ignore, "denied").state(id), State::Unreadable);
        assert_eq!(arm(&[(ignore, "0")]).state(id), State::NotApplicable);
    }

    #[test]
    fn rubbish_is_not_good() {
        let ignore = "/sys/devices/system/machinecheck/machinecheck0/ignore_ce";
        for text in HOSTILE {
            let subject =
                intel(&[(MIGRATION, text), (HARD, text), (SOFT, text), (WHERE, text), (ignore, text)]);
            for id in ["timer-migration", "mce-polling"] {
                assert_ne!(subject.state(id), State::Ok, "{id}: {text}");
            }
            let _ = subject.finding("watchdogs");
        }
    }
}
