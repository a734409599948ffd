//! How KVM keeps time for its guests: their clock, and when their timers fire.

use tactus_model::change::{Change, Form, flag};
use tactus_model::finding::{Severity, State};

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const CLOCK: &str = "/sys/module/kvm/parameters/kvmclock_periodic_sync";
const ADVANCE: &str = "/sys/module/kvm/parameters/lapic_timer_advance";
const ADVANCE_NS: &str = "/sys/module/kvm/parameters/lapic_timer_advance_ns";
const INJECT: &str = "/sys/module/kvm/parameters/pi_inject_timer";
const MIGRATION: &str = "/proc/sys/kernel/timer_migration";
const APICV: &str = "/sys/module/kvm_intel/parameters/enable_apicv";
const AVIC: &str = "/sys/module/kvm_amd/parameters/avic";
/// Where KVM's own search for the advance ends (`LAPIC_TIMER_ADVANCE_NS_MAX`, arch/x86/kvm/lapic.c).
const MOST_NS: i64 = 5000;
/// How kernels print -1 whose parameter has no sign (c3941d9e0ccd; changed in 5.2).
const UNSIGNED_MINUS_ONE: i64 = 4_294_967_295;
const BY_HAND: &str = "This kernel does not find the time by itself. Measure it and set that time (up to 5000): \
options kvm lapic_timer_advance_ns=TIME in /etc/modprobe.d/, then restart the guests.";

pub static CHECKS: &[Check] = &[
    Check {
        id: "kvmclock-sync",
        title: "KVM interrupts every vCPU every five minutes to adjust kvmclock",
        sources: &[
            Source::Kernel("commit 332967a3eac0"),
            Source::Kernel("commit 43ddbf16edf5"),
            Source::Tuned("realtime-virtual-host"),
        ],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::ModuleParameter],
        reversible: Reversible::Restart,
        hardware: false,
        reads: CLOCK,
        expected: "N",
        why: "Every five minutes a worker makes each vCPU of a guest update its kvmclock, and takes it out of the \
guest. Short measurements miss this spike. The worker carried the host's NTP corrections to the guests' clocks. \
Since kvmclock follows the raw clock (commit 53fafdbb8b21) it carries nothing. Commit 43ddbf16edf5 removed the \
worker and its parameter from Linux.",
        fix: "options kvm kvmclock_periodic_sync=0 in /etc/modprobe.d/, then reload the module or reboot. TuneD's \
realtime-virtual-host does the same.",
        risk: "None where kvmclock follows the raw clock: guests need separate NTP or PTP with or without the \
worker. On older kernels guests with the clock source kvmclock no longer follow the host's NTP corrections.",
        judge: |subject| subject.expect(CLOCK, Form::Flag, "N"),
        changes: |subject| {
            subject.module("kvmclock-sync", "kvm", "kvmclock_periodic_sync", "N").into_iter().collect()
        },
    },
    Check {
        id: "lapic-timer-advance",
        title: "KVM does not fire a guest's deadline timer early",
        sources: &[Source::RedHat, Source::Kernel("arch/x86/kvm/lapic.c")],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::ModuleParameter],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "/sys/module/kvm/parameters/lapic_timer_advance, or lapic_timer_advance_ns of older kernels; \
/sys/kernel/debug/kvm/*/vcpu*/lapic_timer_advance_ns",
        expected: "lapic_timer_advance Y. On older kernels lapic_timer_advance_ns is -1 or 4294967295 (KVM finds the \
time per vCPU), or a measured time up to 5000",
        why: "The host's timer, the exit and the way back into the guest take one to several microseconds. Every \
TSC-deadline timer of the guest would be late by that. KVM fires the host's timer that much earlier and spins for \
the rest.",
        fix: "options kvm lapic_timer_advance=Y (5.2 to 6.x: lapic_timer_advance_ns=-1) in /etc/modprobe.d/, then \
restart the guests.",
        risk: "If the fixed time is too long, the vCPU spins before each timer.",
        judge: advance,
        changes: advance_changes,
    },
    Check {
        id: "posted-timer",
        title: "the guest's timer interrupts its own vCPU and costs an exit",
        sources: &[Source::Kernel("arch/x86/kvm/lapic.c")],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::ModuleParameter, SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/sys/module/kvm/parameters/pi_inject_timer; kvm_intel enable_apicv, kvm_amd avic; \
/proc/sys/kernel/timer_migration",
        expected: "1, where the processor can post interrupts; with kernel.timer_migration 1",
        why: "With it the timer of a guest runs on a housekeeping CPU, and its interrupt is posted into the running \
guest without an exit. KVM does so for guests with cpu-pm=on (HLT or MWAIT do not exit) and APICv. It is on by \
default only with nohz_full=. Timer migration moves the timer to the other CPU: with kernel.timer_migration=0, \
TuneD's value, the timer stays and interrupts the vCPU's own CPU.",
        fix: "Write 1 to /sys/module/kvm/parameters/pi_inject_timer; options kvm pi_inject_timer=1 in \
/etc/modprobe.d/. Start the guest with -overcommit cpu-pm=on, and leave kernel.timer_migration at 1 (timer-migration \
expects 0: choose by measuring).",
        risk: "The housekeeping CPUs run the guests' timers: when they are late, so are the timers. Measure both.",
        judge: posted,
        changes: |subject| {
            let able = matches!(apicv(subject), Some((_, text)) if flag(text) == Some(true));
            let change = subject.set("posted-timer", INJECT, Form::Flag, "1");
            change.filter(|_| able).into_iter().collect()
        },
    },
];

fn advance(subject: &Subject<'_>) -> Verdict {
    let judgement = if subject.facts.0.contains_key(ADVANCE) {
        subject.expect(ADVANCE, Form::Flag, "Y")
    } else {
        fixed(subject)
    }?;
    let found = subject.facts.under("/sys/kernel/debug/kvm/");
    let found = found.filter(|(name, _)| name.ends_with("/lapic_timer_advance_ns")).take(8);
    Ok(found.fold(judgement, |judgement, (name, _)| match subject.facts.text(name) {
        Some(ns) => judgement.read(name, ns),
        None => judgement,
    }))
}

fn fixed(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(ADVANCE_NS)?;
    let judgement = match text.parse::<i64>() {
        Ok(-1 | UNSIGNED_MINUS_ONE) => {
            Judgement::ok("KVM finds for each vCPU how much earlier its timer must fire")
        }
        Ok(0) => Judgement::finding("timers of guests do not fire early: lapic_timer_advance_ns is 0"),
        Ok(1..=MOST_NS) => Judgement::ok(format!("timers of guests fire {text} ns early, set by hand")),
        Ok(_) => {
            Judgement::finding(format!("lapic_timer_advance_ns is {text}: the useful maximum is {MOST_NS}"))
        }
        Err(_) => Judgement::unreadable(format!("{ADVANCE_NS} is not a number")),
    };
    let by_hand = judgement.state == State::Finding && subject.kernel.before(5, 2);
    let judgement = if by_hand { judgement.fix(BY_HAND) } else { judgement };
    Ok(judgement.read(ADVANCE_NS, text))
}

fn advance_changes(subject: &Subject<'_>) -> Vec<Change> {
    let id = "lapic-timer-advance";
    match subject.module(id, "kvm", "lapic_timer_advance", "Y") {
        Some(change) => vec![change],
        // The older one can be written at run time; guests that are started later have it. Before 5.2 it takes no -1.
        None if !subject.kernel.before(5, 2)
            && matches!(fixed(subject), Ok(judgement) if judgement.state == State::Finding) =>
        {
            subject.set(id, ADVANCE_NS, Form::Plain, "-1").into_iter().collect()
        }
        None => Vec::new(),
    }
}

/// Whether the processor's interrupt posting is used, as KVM says.
fn apicv<'a>(subject: &Subject<'a>) -> Option<(&'static str, &'a str)> {
    [APICV, AVIC].into_iter().find_map(|path| Some((path, subject.facts.text(path)?)))
}

fn posted(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(INJECT)?;
    let Some((path, able)) = apicv(subject) else {
        let said = "neither kvm_intel nor kvm_amd is loaded; only their processors post interrupts";
        return Err(Judgement::not_applicable(said).read(INJECT, text));
    };
    if flag(able) != Some(true) {
        return Err(Judgement::not_applicable("without APICv or AVIC timer interrupts cannot be posted")
            .read(path, able)
            .read(INJECT, text));
    }
    let judgement = subject.expect(INJECT, Form::Flag, "1")?.read(path, able);
    // `get_target_base` of kernel/time/hrtimer.c moves a timer only where migration is on.
    match subject.facts.text(MIGRATION) {
        Some(text) if judgement.state == State::Ok && flag(text) == Some(false) => {
            let said =
                "timers of guests are posted, but with timer_migration 0 they stay on the CPUs of the vCPUs";
            Ok(Judgement { read: judgement.read, ..Judgement::finding(said) }.read(MIGRATION, text))
        }
        _ => Ok(judgement),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{amd, arm, intel};

    #[test]
    fn kvmclock_is_left_alone_with_n() {
        assert_eq!(intel(&[(CLOCK, "N")]).state("kvmclock-sync"), State::Ok);
        let bad = intel(&[(CLOCK, "Y")]);
        assert_eq!(bad.state("kvmclock-sync"), State::Finding);
        assert_eq!(bad.wanted("kvmclock-sync"), ["module kvm, kvmclock_periodic_sync = N"]);
        assert_eq!(intel(&[]).state("kvmclock-sync"), State::NotApplicable);
        assert_eq!(arm(&[(CLOCK, "Y")]).state("kvmclock-sync"), State::NotApplicable);
        assert_eq!(intel(&[(CLOCK, "?")]).state("kvmclock-sync"), State::Finding);
    }

    #[test]
    fn a_timer_fires_ahead_by_itself_or_by_a_time_that_makes_sense() {
        let id = "lapic-timer-advance";
        for (path, text, state) in [
            (ADVANCE, "Y", State::Ok),
            (ADVANCE, "N", State::Finding),
            (ADVANCE_NS, "-1", State::Ok),
            (ADVANCE_NS, "4294967295", State::Ok),
            (ADVANCE_NS, "1500", State::Ok),
            (ADVANCE_NS, "0", State::Finding),
            (ADVANCE_NS, "900000", State::Finding),
            (ADVANCE_NS, "-2", State::Finding),
            (ADVANCE_NS, "", State::Unreadable),
        ] {
            assert_eq!(intel(&[(path, text)]).state(id), state, "{path} {text}");
        }
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
        assert_eq!(intel(&[(ADVANCE_NS, "0")]).wanted(id), [format!("{ADVANCE_NS} = -1")]);
        assert!(intel(&[(ADVANCE_NS, "1500")]).changes(id).is_empty());
        let old = |release| intel(&[(ADVANCE_NS, "0"), ("uname:release", release)]);
        assert!(old("5.1.21").changes(id).is_empty());
        assert!(old("5.1.21").finding(id).fix.contains("Measure it and set that time (up to 5000)"));
        assert_eq!(old("5.2.0").wanted(id), [format!("{ADVANCE_NS} = -1")]);
        assert!(old("5.2.0").finding(id).fix.contains("(5.2 to 6.x: lapic_timer_advance_ns=-1)"));
        assert_eq!(intel(&[(ADVANCE, "N")]).wanted(id), ["module kvm, lapic_timer_advance = Y"]);
        let vcpu = "/sys/kernel/debug/kvm/812-13/vcpu0/lapic_timer_advance_ns";
        let read = intel(&[(ADVANCE, "Y"), (vcpu, "1208")]).finding(id).read;
        assert!(read.iter().any(|read| read.path == vcpu && read.value == "1208"));
    }

    #[test]
    fn timers_are_posted_where_the_processor_can() {
        let id = "posted-timer";
        assert_eq!(intel(&[(INJECT, "1"), (APICV, "Y")]).state(id), State::Ok);
        assert_eq!(intel(&[(INJECT, "1"), (APICV, "Y"), (MIGRATION, "1")]).state(id), State::Ok);
        let stays = intel(&[(INJECT, "1"), (APICV, "Y"), (MIGRATION, "0")]);
        assert!(stays.said(id).ends_with("stay on the CPUs of the vCPUs"), "{}", stays.said(id));
        let bad = amd(&[(INJECT, "0"), (AVIC, "Y")]);
        assert_eq!((bad.state(id), bad.wanted(id)), (State::Finding, vec![format!("{INJECT} = 1")]));
        let unable = intel(&[(INJECT, "0"), (APICV, "N")]);
        assert_eq!((unable.state(id), unable.changes(id).len()), (State::NotApplicable, 0));
        assert_eq!(intel(&[(INJECT, "0")]).state(id), State::NotApplicable);
        assert_eq!(intel(&[(APICV, "Y")]).state(id), State::NotApplicable);
    }
}
