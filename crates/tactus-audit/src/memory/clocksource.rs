//! What the kernel reads the time from.

use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const CPUINFO: &str = "/proc/cpuinfo";
const EVENTS: &str = "/sys/devices/system/clockevents/clockevent";

pub static CHECKS: &[Check] = &[
    Check {
        id: "clocksource",
        title: "the time is not read from the processor's own counter",
        sources: &[Source::Kernel("Documentation/admin-guide/kernel-parameters.txt")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::X86,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "current_clocksource, available_clocksource, the processor's flags, the kernel's messages on the TSC",
        expected: "tsc, on a processor with constant_tsc and nonstop_tsc",
        why: "Every timer and every clock_gettime() reads it. The TSC is read without a system call; HPET and the \
ACPI timer are devices, read over the bus through a system call and in a guest by an exit to the hypervisor. Without tsc=nowatchdog or tsc=reliable a watchdog may check the TSC twice a second, on one CPU \
after the other, isolated ones too.",
        fix: "Boot with tsc=reliable clocksource=tsc, where the kernel's log (dmesg | grep -i tsc) \
has nothing against the TSC; tsc=nowatchdog, which the kernel's document offers where interruptions by the watchdog are \
not acceptable, keeps the checks at boot, which reliable skips. In a guest let the hypervisor pass invtsc: \
<feature policy='require' name='invtsc'/>.",
        risk: "With either nobody notices any more when a TSC runs wrong; with invtsc a guest can be \
migrated only to hosts of the same rate.",
        judge: judge_clocksource,
        changes,
    },
    Check {
        id: "hpet",
        title: "the HPET serves as clock or timer",
        sources: &[Source::Kernel("arch/x86/kernel/hpet.c"), Source::Guide("libvirt, domain XML")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "current_clocksource, clockevents/clockevent*/current_device",
        expected: "neither is hpet",
        why: "The HPET is one device for all CPUs, read and programmed over the bus; in a guest the hypervisor \
emulates it, and each access is an exit.",
        fix: "In a guest take it away: <clock offset='utc'><timer name='hpet' present='no'/></clock>, or QEMU's \
-machine hpet=off. On a host find out why the TSC was given up (dmesg | grep -i tsc).",
        risk: "None where the TSC and the local APIC's timer work.",
        judge: judge_hpet,
        changes: no_change,
    },
];

fn judge_clocksource(subject: &Subject<'_>) -> Verdict {
    let current = subject.value(CURRENT)?;
    if current == "tsc-early" {
        let said =
            "these facts were read before the kernel had settled on a clock, within seconds of the boot";
        return Err(Judgement::unreadable(said).read(CURRENT, current));
    }
    let missing = missing_flags(subject)?;
    let unstable = distrusted(subject);
    let judgement = match current {
        "tsc" if missing.is_empty() => match unstable {
            None => Judgement::ok("the time is read from the TSC, which is constant and does not stop"),
            Some(line) => Judgement::finding(format!("the TSC is used although the kernel said: {line}")),
        },
        "tsc" => Judgement::finding(format!("the time is read from a TSC without {}", missing.join(" and "))),
        // Read in user space as the TSC is, scaled by a page that the hypervisor keeps.
        "kvm-clock" | "hyperv_clocksource_tsc_page" => Judgement::finding(format!(
            "the time is read from {current}, the TSC as the hypervisor scales it"
        ))
        .at(Severity::Minor),
        other => Judgement::finding(match unstable {
            Some(line) => format!("the time is read from {}, because: {line}", short(other)),
            None => format!("the time is read from {}", short(other)),
        }),
    };
    let flags = if missing.is_empty() {
        "constant_tsc nonstop_tsc".into()
    } else {
        format!("no {}", missing.join(", "))
    };
    Ok(judgement.read(CURRENT, short(current)).read("/proc/cpuinfo flags", flags))
}

/// Which of the two flags of a dependable TSC the processor lacks.
fn missing_flags(subject: &Subject<'_>) -> Result<Vec<&'static str>, Judgement> {
    subject.value(CPUINFO)?;
    let flags = subject
        .facts
        .field(CPUINFO, "flags", ':')
        .ok_or_else(|| Judgement::unreadable(format!("{CPUINFO} does not list the processor's flags")))?;
    let has = |wanted: &str| flags.split_ascii_whitespace().any(|flag| flag == wanted);
    Ok(["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !has(flag)).collect())
}

/// What the kernel's log says against the TSC.
fn distrusted<'a>(subject: &Subject<'a>) -> Option<String> {
    let lines: &'a str = subject.facts.text("dmesg:tsc")?;
    let bad = lines.lines().find(|line| {
        let line = line.to_ascii_lowercase();
        ["unstable", "unsynchronized", "not synchronized", "warp"].iter().any(|word| line.contains(word))
    })?;
    Some(bad.trim().chars().take(160).collect())
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Only where the processor vouches for its TSC and the kernel has said nothing against it.
fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let sound =
        missing_flags(subject).is_ok_and(|missing| missing.is_empty()) && distrusted(subject).is_none();
    if !sound || subject.facts.text(CURRENT).is_none() {
        return Vec::new();
    }
    let offered =
        subject.facts.text(AVAILABLE).is_some_and(|all| all.split_whitespace().any(|one| one == "tsc"));
    let mut changes = Vec::new();
    if offered {
        changes.extend(subject.set("clocksource", CURRENT, Form::Plain, "tsc"));
    }
    // Who chose the milder of the two keeps it.
    let kept = subject.cmdline.get("tsc").filter(|value| *value == "nowatchdog");
    changes.push(subject.boot("clocksource", "tsc", kept.unwrap_or("reliable")));
    changes.push(subject.boot("clocksource", "clocksource", "tsc"));
    changes
}

fn judge_hpet(subject: &Subject<'_>) -> Verdict {
    let current = subject.value(CURRENT)?;
    let timers: Vec<&str> = subject
        .facts
        .under(EVENTS)
        .filter(|(name, _)| {
            name.ends_with("/current_device") && subject.facts.text(name).is_some_and(is_hpet)
        })
        .map(|(name, _)| name)
        .collect();
    let mut bad = Vec::new();
    if current == "hpet" {
        bad.push("the time is read from the HPET".to_owned());
    }
    if !timers.is_empty() {
        bad.push(format!("{} CPUs take their timer interrupts from the HPET", timers.len()));
    }
    let judgement =
        Judgement::when(bad.is_empty(), "the HPET is neither clock nor timer", bad.join(", and "))
            .read(CURRENT, short(current));
    Ok(match timers.first().and_then(|name| Some((name, subject.facts.text(name)?))) {
        Some((name, text)) => judgement.read(*name, short(text)),
        None => judgement,
    })
}

/// `hpet`, or one of its comparators that serves a CPU: `hpet2`.
fn is_hpet(device: &str) -> bool {
    device.strip_prefix("hpet").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, arm, guest, intel};

    #[test]
    fn only_a_dependable_tsc_is_good() {
        let state = |text| intel(&[(CURRENT, text)]).state("clocksource");
        assert_eq!(state("tsc"), State::Ok);
        assert!(["hpet", "acpi_pm", "jiffies"].iter().all(|text| state(text) == State::Finding));
        assert!(HOSTILE.iter().all(|text| state(text) == State::Finding));
        let stops =
            intel(&[(CURRENT, "tsc"), (CPUINFO, "vendor_id\t: GenuineIntel\nflags\t: tsc constant_tsc")]);
        assert_eq!(stops.said("clocksource"), "the time is read from a TSC without nonstop_tsc");
        assert!(stops.changes("clocksource").is_empty(), "a bad TSC is not to be relied on");
    }

    #[test]
    fn the_clock_of_a_hypervisor_is_a_lesser_evil() {
        let found = guest(&[(CURRENT, "kvm-clock")]).finding("clocksource");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Minor));
        assert_eq!(intel(&[(CURRENT, "hpet")]).finding("clocksource").severity, Severity::Major);
    }

    #[test]
    fn a_tsc_that_the_kernel_gave_up_is_not_forced_on_it() {
        let line = "tsc: Marking TSC unstable due to clocksource watchdog";
        let system = intel(&[(CURRENT, "hpet"), (AVAILABLE, "hpet acpi_pm"), ("dmesg:tsc", line)]);
        assert!(system.said("clocksource").ends_with(line));
        assert!(system.changes("clocksource").is_empty());
        let calm =
            intel(&[(CURRENT, "hpet"), (AVAILABLE, "tsc hpet"), ("/proc/cmdline", "clocksource=hpet")]);
        assert_eq!(
            calm.wanted("clocksource"),
            [
                format!("{CURRENT} = tsc"),
                "kernel parameter tsc = reliable".into(),
                "kernel parameter clocksource = tsc".into()
            ]
        );
        let milder = calm.and("/proc/cmdline", "tsc=nowatchdog").wanted("clocksource");
        assert!(!milder.iter().any(|change| change.contains("reliable")), "{milder:?}");
    }

    #[test]
    fn other_processors_and_absent_files_are_not_concerned() {
        assert_eq!(arm(&[(CURRENT, "arch_sys_counter")]).state("clocksource"), State::NotApplicable);
        assert_eq!(intel(&[]).state("clocksource"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(CURRENT, "denied").state("hpet"), State::Unreadable);
        assert_eq!(intel(&[(CURRENT, "tsc-early")]).state("clocksource"), State::Unreadable);
    }

    #[test]
    fn the_hpet_may_be_neither_clock_nor_timer() {
        let system = |clock, timer| {
            intel(&[(CURRENT, clock), ("/sys/devices/system/clockevents/clockevent1/current_device", timer)])
        };
        assert_eq!(system("tsc", "lapic-deadline").state("hpet"), State::Ok);
        assert_eq!(system("hpet", "lapic").state("hpet"), State::Finding);
        assert_eq!(system("tsc", "hpet2").said("hpet"), "1 CPUs take their timer interrupts from the HPET");
        assert!(HOSTILE.iter().all(|text| system("tsc", text).state("hpet") == State::Ok));
    }
}
