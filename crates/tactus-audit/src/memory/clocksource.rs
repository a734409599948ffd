//! The kernel's clock source.

use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::sentence::cpus_or_none;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const CPUINFO: &str = "/proc/cpuinfo";
const EVENTS: &str = "/sys/devices/system/clockevents/clockevent";

pub static CHECKS: &[Check] = &[
    Check {
        id: "clocksource",
        title: "the kernel does not read the time from the TSC",
        sources: &[Source::Kernel("Documentation/admin-guide/kernel-parameters.txt")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::X86,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "current_clocksource, available_clocksource, the processor's flags, the kernel's messages on the TSC",
        expected: "tsc, on a processor with constant_tsc and nonstop_tsc",
        why: "Every timer and every clock_gettime() reads the clock source. Reading the TSC needs no system call. \
HPET and the ACPI timer are devices on the bus: reading them needs a system call, and in a guest an exit to the \
hypervisor.",
        fix: "Boot with tsc=reliable clocksource=tsc, if the kernel's log (dmesg | grep -i tsc) has no complaint \
about the TSC (tsc-checks explains what tsc=reliable turns off). In a guest let the hypervisor pass invtsc: <feature \
policy='require' name='invtsc'/>.",
        risk: "With tsc=reliable the kernel no longer notices a TSC that runs wrong. With invtsc a guest can be \
migrated only to hosts of the same rate.",
        judge: judge_clocksource,
        changes,
    },
    Check {
        id: "tsc-checks",
        title: "the kernel checks the time stamp counter on real-time CPUs",
        sources: &[
            Source::Kernel("arch/x86/kernel/tsc_sync.c"),
            Source::Kernel("commit c7719e793478"),
            Source::Tuned("realtime"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "tsc= of /proc/cmdline, the processor's flags and model, the kernel's version, current_clocksource",
        expected: "tsc=reliable, on a processor whose TSC has no complaint in the kernel's log",
        why: "Since Linux 5.16 (also in RHEL 9's 5.14) a timer moves from CPU to CPU, isolated ones included. It \
compares TSC_ADJUST with its value at boot, because some firmware changes it. That is one interrupt every 10 minutes \
on the CPU whose turn it is; nohz_full and isolcpus do not prevent it. With tsc=nowatchdog this timer still runs: \
the option turns off only the watchdog of the clock, which may interrupt one CPU after the other twice a second. \
With tsc=reliable both are off. TuneD's realtime profiles changed from nowatchdog to reliable for it.",
        fix: "Boot with tsc=reliable, if the kernel's log (dmesg | grep -i tsc) has no complaint about the TSC. It \
must not contain `TSC ADJUST differs`: then firmware changes TSC_ADJUST.",
        risk: "The kernel no longer notices a TSC that runs wrong: neither at boot, when it compares the TSCs of the \
CPUs, nor later. Times of different CPUs may then disagree.",
        judge: judge_checks,
        changes: |subject| match is_sound(subject) && subject.facts.text(CURRENT).is_some() {
            true => vec![subject.boot("tsc-checks", "tsc", "reliable")],
            false => Vec::new(),
        },
    },
    Check {
        id: "hpet",
        title: "the HPET is used as clock or timer",
        sources: &[Source::Kernel("arch/x86/kernel/hpet.c"), Source::Guide("libvirt, domain XML")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "current_clocksource, clockevents/clockevent*/current_device",
        expected: "neither is hpet",
        why: "The HPET is one device for all CPUs, read and programmed over the bus. In a guest the hypervisor \
emulates it, and each access is an exit.",
        fix: "In a guest remove it: <clock offset='utc'><timer name='hpet' present='no'/></clock>, or QEMU's \
-machine hpet=off. On a host find out why the kernel rejected the TSC (dmesg | grep -i tsc).",
        risk: "None if the TSC and the local APIC's timer work.",
        judge: judge_hpet,
        changes: no_change,
    },
];

fn judge_clocksource(subject: &Subject<'_>) -> Verdict {
    let current = subject.value(CURRENT)?;
    if current == "tsc-early" {
        let said = "these facts were read seconds after boot, before the kernel had chosen a clock";
        return Err(Judgement::unreadable(said).read(CURRENT, current));
    }
    let missing = missing_flags(subject)?;
    let unstable = distrusted(subject);
    let judgement = match current {
        "tsc" if missing.is_empty() => match unstable {
            None => Judgement::ok("the time is read from the TSC, which is constant and does not stop"),
            Some(line) => Judgement::finding(format!("the TSC is used although the kernel logged: {line}")),
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

/// The lines against the TSC in the kernel's log.
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

/// Whether the processor vouches for its TSC and the kernel has said nothing against it.
fn is_sound(subject: &Subject<'_>) -> bool {
    missing_flags(subject).is_ok_and(|missing| missing.is_empty()) && distrusted(subject).is_none()
}

/// Whether the processor has TSC_ADJUST: by its flags, or by its model where these are not all told. Intel's have it since
/// Haswell.
fn has_adjust(subject: &Subject<'_>) -> bool {
    let number = |key| subject.facts.field(CPUINFO, key, ':').and_then(|text| text.parse::<u32>().ok());
    let haswell = || number("cpu family") == Some(6) && number("model").is_some_and(|model| model >= 60);
    subject.flag("tsc_adjust") == Some(true) || (subject.is(Arch::Intel) && !subject.virtualized && haswell())
}

fn judge_checks(subject: &Subject<'_>) -> Verdict {
    let current = subject.value(CURRENT)?;
    let (isolated, _) = subject.need_parted()?;
    if current != "tsc" {
        return Err(
            Judgement::not_applicable("the time is not read from the TSC").read(CURRENT, short(current))
        );
    }
    let told = |wanted: &str| subject.cmdline.all("tsc").flatten().any(|value| value == wanted);
    let read = |judgement: Judgement| {
        let values: Vec<&str> =
            subject.cmdline.all("tsc").flatten().map(|value| value.get(..40).unwrap_or(value)).collect();
        let value =
            if values.is_empty() { "no tsc=".to_owned() } else { format!("tsc={}", values.join(" tsc=")) };
        judgement.read("/proc/cmdline", value)
    };
    subject.told()?;
    if told("reliable") || subject.flag("tsc_reliable") == Some(true) {
        let said = "the kernel treats the TSC as reliable: no timer and no watchdog checks it";
        return Ok(read(Judgement::ok(said)));
    }
    let place = cpus_or_none(isolated);
    let release = subject.facts.text("uname:release").unwrap_or_default();
    let adjust = has_adjust(subject);
    let timer =
        adjust && (subject.kernel.since(5, 16) || (subject.kernel.since(5, 14) && release.contains(".el9")));
    // Since the same version no watchdog looks after such a TSC on a machine of few packages.
    let nodes = subject
        .facts
        .under("/sys/devices/system/node/node")
        .filter(|(name, _)| name.ends_with("/cpulist"))
        .count();
    let watchdog = !(told("nowatchdog") || timer && nodes <= 2);
    let by_timer =
        format!("a timer checks TSC_ADJUST on one CPU after the other every 10 minutes, {place} among them");
    let by_watchdog = format!(
        "the clock's watchdog may interrupt one CPU after the other twice a second, {place} among them"
    );
    let said = match (timer, watchdog, told("nowatchdog")) {
        (true, true, _) => format!("without tsc=reliable {by_timer}, and {by_watchdog}"),
        (true, false, true) => format!("tsc=nowatchdog leaves the other check running: {by_timer}"),
        (true, false, false) => format!("without tsc=reliable {by_timer}"),
        (false, true, _) => format!("without tsc=reliable or tsc=nowatchdog {by_watchdog}"),
        (false, false, _) => {
            let said =
                "tsc=nowatchdog: no watchdog checks the TSC, and this kernel or processor has no other check";
            return Ok(read(Judgement::ok(said)));
        }
    };
    Ok(read(Judgement::finding(said)))
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    if !is_sound(subject) || subject.facts.text(CURRENT).is_none() {
        return Vec::new();
    }
    let offered =
        subject.facts.text(AVAILABLE).is_some_and(|all| all.split_whitespace().any(|one| one == "tsc"));
    let mut changes = Vec::new();
    if offered {
        changes.extend(subject.set("clocksource", CURRENT, Form::Plain, "tsc"));
    }
    changes.push(subject.boot("clocksource", "tsc", "reliable"));
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
    }

    #[test]
    fn nowatchdog_leaves_the_timer_that_checks_tsc_adjust() {
        let on = |line: &str, release: &str, flags: &str| {
            let cpuinfo = format!("vendor_id\t: GenuineIntel\nflags\t: tsc constant_tsc nonstop_tsc {flags}");
            intel(&[
                (CURRENT, "tsc"),
                (CPUINFO, &cpuinfo),
                ("/proc/cmdline", line),
                ("uname:release", release),
            ])
        };
        let new = on("tsc=nowatchdog", "6.12.0", "tsc_adjust");
        assert_eq!(
            new.said("tsc-checks"),
            "tsc=nowatchdog leaves the other check running: a timer checks TSC_ADJUST on one CPU after the other every 10 \
             minutes, CPUs 2,3 among them"
        );
        assert_eq!(new.wanted("tsc-checks"), ["kernel parameter tsc = reliable"]);
        assert_eq!(on("tsc=reliable", "6.12.0", "tsc_adjust").state("tsc-checks"), State::Ok);
        let nothing = on("quiet", "6.12.0", "tsc_adjust").said("tsc-checks");
        assert!(
            nothing.starts_with("without tsc=reliable a timer") && !nothing.contains("watchdog"),
            "{nothing}"
        );
        let old = on("quiet", "5.4.0", "tsc_adjust").said("tsc-checks");
        assert!(old.starts_with("without tsc=reliable or tsc=nowatchdog the clock's watchdog"), "{old}");
        assert_eq!(on("tsc=nowatchdog", "5.4.0", "tsc_adjust").state("tsc-checks"), State::Ok);
        assert_eq!(
            on("tsc=nowatchdog", "5.14.0-427.el9.x86_64", "tsc_adjust").state("tsc-checks"),
            State::Finding
        );
        assert_eq!(on("tsc=nowatchdog", "6.12.0", "").state("tsc-checks"), State::Ok, "it has no TSC_ADJUST");
        assert_eq!(new.and(CURRENT, "hpet").state("tsc-checks"), State::NotApplicable);
        let bad = on("quiet", "6.12.0", "tsc_adjust").and("dmesg:tsc", "tsc: Marking TSC unstable");
        assert!(bad.wanted("tsc-checks").is_empty(), "nobody relies on it");
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
