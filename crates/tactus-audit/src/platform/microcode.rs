//! Microcode, and the timer that old microcode takes away.

use std::collections::BTreeSet;

use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ID: &str = "microcode";
const LINES: &str = "dmesg:tsc-deadline";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "old microcode disables the TSC deadline timer",
    sources: &[Source::RedHat, Source::Kernel("arch/x86/kernel/apic/apic.c")],
    applies: &[Applies::Host],
    severity: Severity::Blocker,
    arch: Arch::Intel,
    set: &[SetBy::Installation],
    reversible: Reversible::Reboot,
    hardware: true,
    reads: "the kernel's log (TSC_DEADLINE disabled due to Errata), the flag tsc_deadline_timer of /proc/cpuinfo against CPUID leaf 1 \
ECX bit 24, cpu*/microcode/version",
    expected: "no such line, and the flag, if the processor has the timer",
    why: "On some processors with old microcode the TSC deadline timer is wrong, and the kernel does not use it. The \
local APIC's timer is coarser and slower to set, and KVM has to emulate it. Published measurements were inconsistent \
until the microcode was updated.",
    fix: "Install the package intel-microcode (Debian) or microcode_ctl (Fedora, RHEL), which loads it early at \
boot, or update the firmware. Then reboot.",
    risk: "Low. New microcode may bring slow mitigations: compare before and after.",
    judge: microcode,
    changes: no_change,
}];

fn microcode(subject: &Subject<'_>) -> Verdict {
    let flag = subject.flag("tsc_deadline_timer");
    let has = subject.cpuid("0x1:0", "ecx").map(|ecx| ecx >> 24 & 1 == 1);
    let line = subject
        .facts
        .text(LINES)
        .and_then(|text| text.lines().find(|line| line.contains("TSC_DEADLINE disabled due to Errata")));
    let chosen = subject.cmdline.all("lapic").flatten().any(|value| value.starts_with("notscdeadline"));
    let judgement = if let Some(line) = line {
        let version = line.rsplit_once("version: ").map_or("", |(_, version)| version);
        Judgement::finding(format!(
            "the kernel does not use the TSC deadline timer because of an erratum; it wants microcode {version}"
        ))
    } else if flag == Some(true) {
        // The kernel takes the flag away when it finds the erratum (arch/x86/kernel/apic/apic.c).
        Judgement::ok("the kernel uses the TSC deadline timer, and reports no erratum")
    } else if chosen {
        Judgement::finding("the TSC deadline timer is turned off at boot (lapic=notscdeadline)")
            .at(Severity::Minor)
            .fix("Boot without lapic=notscdeadline.")
    } else if has == Some(true) && flag == Some(false) {
        Judgement::finding("the processor has a TSC deadline timer, but the kernel does not use it")
    } else if has == Some(false) {
        return Err(Judgement::not_applicable("this processor has no TSC deadline timer"));
    } else {
        match subject.facts.0.get(LINES) {
            Some(Reading::Unreadable(reason)) => {
                return Err(Judgement::unreadable(format!("the kernel's log could not be read: {reason}")));
            }
            Some(Reading::Text(_)) if subject.facts.text("dmesg:start") == Some("whole") => {
                Judgement::ok("the kernel's log reports no erratum of the TSC deadline timer")
            }
            Some(_) => {
                Judgement::unreadable("the start of the kernel's log, where the line would be, is gone")
            }
            None => Judgement::unreadable(
                "neither the kernel's log nor the processor's flags show the TSC deadline timer",
            ),
        }
    };
    let mut judgement = judgement.read(
        "/proc/cpuinfo, flag tsc_deadline_timer",
        match flag {
            Some(true) => "set",
            Some(false) => "not set",
            None => "unknown",
        },
    );
    if let Some(line) = line {
        judgement = judgement.read("the kernel's log", line);
    }
    let versions: BTreeSet<&str> = subject
        .topology
        .online
        .iter()
        .filter_map(|cpu| subject.facts.text(&format!("/sys/devices/system/cpu/cpu{cpu}/microcode/version")))
        .collect();
    if !versions.is_empty() {
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        judgement = judgement.read("/sys/devices/system/cpu/cpu*/microcode/version", versions);
    }
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, amd, guest, intel};

    const ERRATUM: &str = "[Firmware Bug]: TSC_DEADLINE disabled due to Errata; please update microcode to version: 0x3a (or later)";
    const WITH: (&str, &str) =
        ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu tsc_deadline_timer\n");
    const HAS: (&str, &str) = ("cpuid:0x1:0", "eax=0x306f2 ebx=0x0 ecx=0x7ffefbff edx=0x0");

    #[test]
    fn a_timer_that_is_in_use_is_good() {
        assert_eq!(intel(&[WITH, HAS]).state(ID), State::Ok);
        assert_eq!(intel(&[(LINES, ""), ("dmesg:start", "whole")]).state(ID), State::Ok);
    }

    #[test]
    fn the_line_of_the_erratum_and_a_missing_flag_are_found() {
        let bad = intel(&[(LINES, ERRATUM), ("dmesg:start", "whole")]).finding(ID);
        assert_eq!((bad.state, bad.severity), (State::Finding, Severity::Blocker));
        assert!(bad.message.ends_with("it wants microcode 0x3a (or later)"), "{}", bad.message);
        assert_eq!(intel(&[HAS, (LINES, ""), ("dmesg:start", "overwritten")]).state(ID), State::Finding);
        let chosen = intel(&[HAS, ("/proc/cmdline", "lapic=notscdeadline")]).finding(ID);
        assert_eq!((chosen.state, chosen.severity), (State::Finding, Severity::Minor));
    }

    #[test]
    fn a_log_that_is_gone_proves_nothing() {
        assert_eq!(intel(&[(LINES, ""), ("dmesg:start", "overwritten")]).state(ID), State::Unreadable);
        assert_eq!(intel(&[]).state(ID), State::Unreadable);
        assert_eq!(intel(&[]).unreadable(LINES, "Operation not permitted").state(ID), State::Unreadable);
    }

    #[test]
    fn other_processors_are_not_judged() {
        assert_eq!(amd(&[]).state(ID), State::NotApplicable);
        assert_eq!(
            intel(&[("cpuid:0x1:0", "eax=0x0 ebx=0x0 ecx=0x0 edx=0x0")]).state(ID),
            State::NotApplicable
        );
        assert_eq!(guest(&[HAS]).role(Role::Host).state(ID), State::Unknowable);
        for text in HOSTILE {
            let state = intel(&[(LINES, text), (HAS.0, text), ("dmesg:start", text)]).state(ID);
            assert_eq!(state, State::Unreadable, "{text}");
        }
    }
}
