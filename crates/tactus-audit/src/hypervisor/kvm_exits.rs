//! Parameters of KVM that decide when and why a vCPU leaves its guest.

use tactus_model::change::{Change, Form, flag};
use tactus_model::finding::{Severity, State};

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const PLE_GAP: &str = "/sys/module/kvm_intel/parameters/ple_gap";
const PAUSE_FILTER: &str = "/sys/module/kvm_amd/parameters/pause_filter_count";
const NX: &str = "/sys/module/kvm/parameters/nx_huge_pages";
const NX_RATIO: &str = "/sys/module/kvm/parameters/nx_huge_pages_recovery_ratio";
const MULTIHIT: &str = "/sys/devices/system/cpu/vulnerabilities/itlb_multihit";
const HALT_POLL: &str = "/sys/module/kvm/parameters/halt_poll_ns";

pub static CHECKS: &[Check] = &[
    Check {
        id: "ple",
        title: "KVM interrupts a guest that spins",
        sources: &[Source::Kernel("arch/x86/kvm/vmx/vmx.c"), Source::Tuned("realtime-virtual-host")],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::ModuleParameter],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "/sys/module/kvm_intel/parameters/ple_gap, /sys/module/kvm_amd/parameters/pause_filter_count",
        expected: "0",
        why: "Pause-loop exiting takes a vCPU that spins on a lock out of its guest, so that another vCPU can run. \
On a CPU with only one vCPU there is no other, and the exit is pure cost.",
        fix: "options kvm_intel ple_gap=0 (AMD: options kvm_amd pause_filter_count=0) in /etc/modprobe.d/, then \
reload the module or reboot. TuneD's realtime-virtual-host does so for Intel.",
        risk: "A guest that shares CPUs spins through its whole time slice while the holder of the lock waits. Use \
it only where no real-time guest shares a CPU.",
        judge: |subject| subject.expect(pause(subject), Form::Plain, "0"),
        changes: |subject| {
            let (module, parameter) = match pause(subject) {
                PAUSE_FILTER => ("kvm_amd", "pause_filter_count"),
                _ => ("kvm_intel", "ple_gap"),
            };
            subject.module("ple", module, parameter, "0").into_iter().collect()
        },
    },
    Check {
        id: "nx-huge-pages",
        title: "KVM splits the guest's huge pages where code runs, and merges them again",
        sources: &[
            Source::Kernel("Documentation/admin-guide/hw-vuln/multihit.rst"),
            Source::Tuned("realtime-virtual-host"),
        ],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::ModuleParameter, SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/sys/module/kvm/parameters/nx_huge_pages, nx_huge_pages_recovery_ratio",
        expected: "nx_huge_pages N or never where the processor is not affected (itlb_multihit); else \
nx_huge_pages_recovery_ratio 0",
        why: "Against iTLB multihit KVM maps huge pages as not executable. The first instruction fetched from one \
causes an exit and splits it into 4 KiB pages. A thread merges split pages again from time to time, and the faults \
return. PREEMPT_RT kernels set the ratio to 0 for that reason.",
        fix: "Write 0 to /sys/module/kvm/parameters/nx_huge_pages_recovery_ratio. Where itlb_multihit is Not \
affected: options kvm nx_huge_pages=0 in /etc/modprobe.d/. TuneD's realtime-virtual-host does so on every processor.",
        risk: "With nx_huge_pages off a malicious guest can halt an affected host (CVE-2018-12207). Therefore tactus \
proposes it only where the kernel says that the processor is not affected. A change at run time drops the page \
tables of every running guest (kvm_mmu_zap_all_fast). Each guest then faults its memory in again: change it before \
guests start.",
        judge: nx,
        changes: nx_changes,
    },
    Check {
        id: "halt-poll",
        title: "KVM polls for a halted vCPU for a default time",
        sources: &[Source::Kernel("Documentation/virt/kvm/halt-polling.rst")],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: HALT_POLL,
        expected: "a value chosen by measuring: 0, or longer than the guest's cycle; not the default (200000 on x86, \
500000 on arm64)",
        why: "When a vCPU halts, KVM polls for its next interrupt, for a time that it adapts. A wake-up within that \
time skips the scheduler and saves a few microseconds. A later one does not. The same cycle meets both cases, and \
jitters by the difference.",
        fix: "Measure both with tactus prove halt-poll. Write 0 (each wake-up goes through the scheduler) to \
/sys/module/kvm/parameters/halt_poll_ns, or a value above the guest's cycle (KVM polls for each wake-up). On kernels \
5.11 to 6.0 only guests started afterwards use it. A guest with cpu-pm=on never halts in KVM.",
        risk: "0 makes each wake-up of an idle guest a few microseconds longer. A long time keeps the CPU busy and \
hot.",
        judge: halt_poll,
        changes: |subject| {
            // A value that an administrator chose is left alone.
            let change = subject.set("halt-poll", HALT_POLL, Form::Plain, "0");
            let left = halt_poll(subject).is_ok_and(|judgement| judgement.state == State::Finding);
            change
                .filter(|change| left || change.holds())
                .filter(|_| subject.kvm() != Some(false))
                .into_iter()
                .collect()
        },
    },
];

fn pause(subject: &Subject<'_>) -> &'static str {
    if subject.facts.0.contains_key(PAUSE_FILTER) { PAUSE_FILTER } else { PLE_GAP }
}

fn nx(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(NX)?;
    let ratio = subject.facts.text(NX_RATIO);
    let judgement = match (flag(text), text, ratio) {
        (Some(false), ..) | (_, "never", _) if is_affected(subject) == Some(true) => {
            Judgement::ok("huge pages of guests stay whole, and a guest can halt this processor through \
                           them: trust every guest")
        }
        (Some(false), ..) | (_, "never", _) => Judgement::ok("huge pages of guests stay whole"),
        (Some(true), _, ratio) if is_affected(subject) != Some(false) => match ratio {
            Some("0") => Judgement::ok(
                "huge pages of guests are split where code runs, against iTLB multihit, and are not merged again",
            ),
            Some(ratio) => Judgement::finding(format!(
                "huge pages are split against iTLB multihit; one in {ratio} is merged again each period, and splits \
again"
            ))
            .fix(format!("Write 0 to {NX_RATIO}. Leave nx_huge_pages on: this processor needs it.")),
            None => Judgement::ok("huge pages of guests are split where code runs, against iTLB multihit"),
        },
        (Some(true), _, Some(ratio)) if ratio != "0" => Judgement::finding(format!(
            "huge pages of guests are split where code runs, on a processor that does not need it; one in {ratio} is \
merged again each period"
        )),
        (Some(true), ..) => Judgement::finding(
            "huge pages of guests are split where code runs, once per page, on a processor that does not need it",
        )
        .at(Severity::Info),
        _ => Judgement::unreadable(format!("{NX} is neither Y, N nor never")),
    };
    let judgement = ratio.into_iter().fold(judgement, |judgement, ratio| judgement.read(NX_RATIO, ratio));
    Ok(match subject.facts.text(MULTIHIT) {
        Some(text) => judgement.read(MULTIHIT, text),
        None => judgement,
    })
}

/// Whether the kernel says that the processor is affected by iTLB multihit; `None`: it does not say.
fn is_affected(subject: &Subject<'_>) -> Option<bool> {
    subject.facts.text(MULTIHIT).map(|text| text != "Not affected")
}

/// The split itself is a mitigation, and is only proposed where it mitigates nothing.
fn nx_changes(subject: &Subject<'_>) -> Vec<Change> {
    let id = "nx-huge-pages";
    // Where it is switched off for good, KVM refuses to be told anything of it (EPERM).
    if subject.facts.text(NX) == Some("never") {
        return Vec::new();
    }
    let unaffected = is_affected(subject) == Some(false);
    let whole = subject.set(id, NX, Form::Flag, "N").filter(|_| unaffected);
    let ratio = subject.set(id, NX_RATIO, Form::Plain, "0");
    whole.into_iter().chain(ratio).collect()
}

fn halt_poll(subject: &Subject<'_>) -> Verdict {
    if subject.kvm() == Some(false) {
        return Err(Judgement::not_applicable("KVM does not run here: there is no /dev/kvm"));
    }
    let text = subject.value(HALT_POLL)?;
    let Ok(ns) = text.parse::<u64>() else {
        return Err(Judgement::unreadable(format!("{HALT_POLL} is not a number")).read(HALT_POLL, text));
    };
    // KVM_HALT_POLL_NS_DEFAULT of arch/x86/include/asm/kvm_host.h and of arm64's.
    let default = if subject.is(Arch::X86) { 200_000 } else { 500_000 };
    let judgement = match ns {
        0 => Judgement::ok("KVM does not poll for halted vCPUs: each wake-up goes through the scheduler"),
        ns if ns == default => Judgement::finding(format!(
            "KVM polls for halted vCPUs for up to {ns} ns, the kernel's default, and adapts that time"
        )),
        ns => {
            Judgement::ok(format!("KVM polls for halted vCPUs for up to {ns} ns, which is not the default"))
        }
    };
    Ok(judgement.read(HALT_POLL, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{amd, arm, intel};

    #[test]
    fn pause_loop_exits_are_switched_off() {
        assert_eq!(intel(&[(PLE_GAP, "0")]).state("ple"), State::Ok);
        let (one, other) = (intel(&[(PLE_GAP, "128")]), amd(&[(PAUSE_FILTER, "3000")]));
        assert_eq!((one.state("ple"), other.state("ple")), (State::Finding, State::Finding));
        assert_eq!(one.wanted("ple"), ["module kvm_intel, ple_gap = 0"]);
        assert_eq!(other.wanted("ple"), ["module kvm_amd, pause_filter_count = 0"]);
        assert_eq!(intel(&[]).state("ple"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(PLE_GAP, "permission denied").state("ple"), State::Unreadable);
    }

    #[test]
    fn a_mitigation_is_never_proposed_to_be_taken_off() {
        let id = "nx-huge-pages";
        let affected = intel(&[(NX, "Y"), (NX_RATIO, "60"), (MULTIHIT, "KVM: Mitigation: Split huge pages")]);
        assert_eq!(affected.state(id), State::Finding);
        assert_eq!(affected.wanted(id), [format!("{NX_RATIO} = 0")]);
        assert!(affected.finding(id).fix.contains("Leave nx_huge_pages on"));
        let calm = affected.clone().and(NX_RATIO, "0");
        assert_eq!(calm.state(id), State::Ok, "the mitigation is no finding");
        assert!(calm.wanted(id).is_empty());
        assert!(affected.clone().and(NX, "N").said(id).contains("trust every guest"));
        let untold = affected.clone().absent(MULTIHIT);
        assert_eq!(untold.wanted(id), [format!("{NX_RATIO} = 0")], "what is not told may be affected");
        let forced = affected.and(MULTIHIT, "Not affected");
        assert_eq!(forced.wanted(id), [format!("{NX} = N"), format!("{NX_RATIO} = 0")]);
    }

    #[test]
    fn whole_huge_pages_are_good_and_nonsense_is_not_read_as_good() {
        let id = "nx-huge-pages";
        for (text, state) in [
            ("N", State::Ok),
            ("never", State::Ok),
            ("Y", State::Ok),
            ("", State::Unreadable),
            ("auto", State::Unreadable),
        ] {
            assert_eq!(intel(&[(NX, text)]).state(id), state, "{text}");
        }
        let refused = intel(&[(NX, "never"), (NX_RATIO, "60"), (MULTIHIT, "Not affected")]);
        assert!(refused.changes(id).is_empty(), "KVM refuses both");
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
        assert_eq!(arm(&[(NX, "Y")]).state(id), State::NotApplicable);
    }

    #[test]
    fn a_polling_time_is_good_when_somebody_chose_it() {
        let id = "halt-poll";
        for (text, state) in [
            ("0", State::Ok),
            ("50000", State::Ok),
            ("200000", State::Finding),
            ("-1", State::Unreadable),
            ("99999999999999999999", State::Unreadable),
        ] {
            assert_eq!(intel(&[(HALT_POLL, text)]).state(id), state, "{text}");
        }
        assert_eq!(arm(&[(HALT_POLL, "500000")]).state(id), State::Finding);
        let no_kvm = arm(&[(HALT_POLL, "500000"), ("device:kvm", "absent")]);
        assert_eq!(
            (no_kvm.state(id), no_kvm.wanted(id).len()),
            (State::NotApplicable, 0),
            "built in, and not running"
        );
        assert_eq!(intel(&[(HALT_POLL, "200000")]).wanted(id), [format!("{HALT_POLL} = 0")]);
        assert!(intel(&[(HALT_POLL, "50000")]).wanted(id).is_empty());
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
    }
}
