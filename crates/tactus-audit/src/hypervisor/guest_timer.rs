//! How a guest's kernel is woken: its timer, and how it waits.

use tactus_model::change::{Change, Effect, Target};
use tactus_model::finding::{Severity, State};

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const EVENTS: &str = "/sys/devices/system/clockevents/clockevent0/current_device";
/// `KVMK`, the first letters of KVM's signature in CPUID 0x40000000, EBX.
const KVM: u32 = 0x4b4d_564b;
const IDLE: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

pub static CHECKS: &[Check] = &[
    Check {
        id: "guest-tsc-deadline",
        title: "the guest's timer is not the TSC deadline",
        sources: &[Source::RedHat],
        applies: &[Applies::Guest],
        severity: Severity::Major,
        arch: Arch::X86,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "CPUID 1, ECX bit 24; /sys/devices/system/clockevents/clockevent0/current_device",
        expected: "the bit is set, and the device is lapic-deadline",
        why: "The guest writes the deadline into one register, in cycles. Without it the guest programs the APIC's \
counter, which is coarser and costs more to emulate. KVM cannot fire that counter early.",
        fix: "libvirt: <cpu mode='host-passthrough'><feature policy='require' name='tsc-deadline'/></cpu>. QEMU: -cpu \
host,tsc-deadline=on. Where the kernel says 'TSC_DEADLINE disabled due to Errata', load newer microcode on the host.",
        risk: "None known.",
        judge: deadline,
        changes: crate::no_change,
    },
    Check {
        id: "guest-haltpoll",
        title: "an idle guest halts at once",
        sources: &[
            Source::Kernel("Documentation/virt/guest-halt-polling.rst"),
            Source::Kernel("drivers/cpuidle/cpuidle-haltpoll.c"),
        ],
        applies: &[Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::ModuleParameter, SetBy::Libvirt],
        reversible: Reversible::Yes,
        hardware: false,
        reads: IDLE,
        expected: "haltpoll; or a hardware idle driver where the hypervisor leaves idling to the guest; or idle=poll",
        why: "The driver haltpoll polls in the guest for up to 200 us before it halts. A wake-up in that time costs \
no exit. It loads by itself only where the guest is told that its CPUs are dedicated (kvm-hint-dedicated).",
        fix: "modprobe cpuidle_haltpoll force=1 in the guest, and options cpuidle_haltpoll force=1 in /etc/modprobe.d/; or \
libvirt: <features><kvm><hint-dedicated state='on'/><poll-control state='on'/></kvm></features>.",
        risk: "The vCPU is busy for longer: other work on its CPU gets less.",
        judge: haltpoll,
        changes: haltpoll_changes,
    },
];

fn deadline(subject: &Subject<'_>) -> Verdict {
    let able = match subject.cpuid("0x1:0", "ecx") {
        Some(ecx) => Some(ecx >> 24 & 1 == 1),
        None => subject.flag("tsc_deadline_timer"),
    };
    let device = subject.facts.text(EVENTS);
    let judgement = match (able, device) {
        (_, Some("lapic-deadline")) => Judgement::ok("the timer is the TSC deadline"),
        (Some(false), _) => Judgement::finding("the hypervisor does not offer the TSC deadline"),
        (Some(true), Some(device)) => Judgement::finding(format!(
            "the hypervisor offers the TSC deadline, but the kernel's timer is {}",
            short(device)
        )),
        (None, Some(device)) => Judgement::finding(format!("the kernel's timer is {}", short(device))),
        (_, None) => {
            return Err(subject
                .value(EVENTS)
                .err()
                .filter(|_| subject.facts.0.contains_key(EVENTS))
                .unwrap_or_else(|| {
                    Judgement::unreadable("the facts do not show which timer the kernel uses")
                }));
        }
    };
    let judgement = judgement.read(
        "CPUID 1, ECX bit 24",
        match able {
            Some(true) => "1",
            Some(false) => "0",
            None => "not known",
        },
    );
    let judgement =
        device.into_iter().fold(judgement, |judgement, device| judgement.read(EVENTS, short(device)));
    let errata = subject.facts.text("dmesg:tsc-deadline").filter(|lines| !lines.is_empty());
    Ok(errata.into_iter().fold(judgement, |judgement, line| judgement.read("kernel log", short(line))))
}

/// A text of somebody else's, on one line and not endless.
fn short(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(160).collect()
}

fn haltpoll(subject: &Subject<'_>) -> Verdict {
    let idle = subject.cmdline.get("idle");
    if idle == Some("poll") {
        return Err(
            Judgement::not_applicable("idle=poll: the guest never halts").read("/proc/cmdline", "idle=poll")
        );
    }
    unable(subject)?;
    let driver = subject.value(IDLE)?;
    let judgement = match driver {
        "haltpoll" => Judgement::ok("an idle vCPU polls before it halts"),
        // A guest sees MWAIT only if the hypervisor lets it idle by itself.
        "intel_idle" | "acpi_idle" => Judgement::ok(format!(
            "the guest idles by itself with {driver}: the hypervisor leaves idling to it"
        )),
        driver => {
            Judgement::finding(format!("an idle vCPU halts at once: the idle driver is {}", short(driver)))
        }
    };
    Ok(judgement.read(IDLE, short(driver)))
}

/// The reason why the driver is missing: it is for guests of KVM (`haltpoll_init`), and its configuration depends on
/// x86 (drivers/cpuidle/Kconfig).
fn unable(subject: &Subject<'_>) -> Result<(), Judgement> {
    let built = subject.facts.text("config:CONFIG_HALTPOLL_CPUIDLE");
    let why = if built == Some("n") || !subject.is(Arch::X86) && !matches!(built, Some("y" | "m")) {
        "this kernel has no haltpoll driver"
    } else if subject.cpuid("0x40000000:0", "ebx").is_some_and(|letters| letters != KVM) {
        "the hypervisor is not KVM, and the haltpoll driver works only on KVM"
    } else {
        return Ok(());
    };
    Err(Judgement::not_applicable(why))
}

/// The parameter is read when the module is loaded, or by the kernel at boot where it is built in.
fn haltpoll_changes(subject: &Subject<'_>) -> Vec<Change> {
    let id = "guest-haltpoll";
    let missing = |judgement: Judgement| judgement.state == State::Finding;
    if !haltpoll(subject).is_ok_and(missing) {
        return Vec::new();
    }
    match subject.facts.text("config:CONFIG_HALTPOLL_CPUIDLE") {
        Some("y") => vec![subject.boot(id, "cpuidle_haltpoll.force", "1")],
        Some("m") => {
            let target =
                Target::Module { module: "cpuidle_haltpoll".to_owned(), parameter: "force".to_owned() };
            let now = subject.facts.text("/sys/module/cpuidle_haltpoll/parameters/force").map(str::to_owned);
            vec![Change { check: id.to_owned(), target, now, then: "1".to_owned(), effect: Effect::Restart }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::Role;

    use super::*;
    use crate::testing::{arm, guest, intel};

    const WITH: (&str, &str) = ("cpuid:0x1:0", "eax=0x806f8 ebx=0x800 ecx=0x1000000 edx=0x0");
    const WITHOUT: (&str, &str) = ("cpuid:0x1:0", "eax=0x806f8 ebx=0x800 ecx=0x0 edx=0x0");

    #[test]
    fn the_timer_is_the_deadline_where_it_is_offered_and_used() {
        let id = "guest-tsc-deadline";
        for (readings, state) in [
            (vec![WITH, (EVENTS, "lapic-deadline")], State::Ok),
            (vec![WITH, (EVENTS, "lapic")], State::Finding),
            (vec![WITHOUT, (EVENTS, "lapic")], State::Finding),
            (vec![WITHOUT], State::Finding),
            (vec![(EVENTS, "hpet")], State::Finding),
            (vec![WITH], State::Unreadable),
            (vec![], State::Finding),
        ] {
            assert_eq!(guest(&readings).state(id), state, "{readings:?}");
        }
        assert_eq!(guest(&[WITH]).unreadable(EVENTS, "permission denied").state(id), State::Unreadable);
        assert_eq!(intel(&[WITHOUT, (EVENTS, "lapic")]).state(id), State::NotApplicable);
        let errata =
            guest(&[WITH, (EVENTS, "lapic"), ("dmesg:tsc-deadline", "TSC_DEADLINE disabled due to Errata")]);
        assert!(errata.finding(id).read.iter().any(|read| read.value.contains("Errata")));
    }

    #[test]
    fn an_idle_guest_polls_or_idles_by_itself() {
        let id = "guest-haltpoll";
        for (driver, state) in [
            ("haltpoll", State::Ok),
            ("intel_idle", State::Ok),
            ("none", State::Finding),
            ("", State::Finding),
        ] {
            assert_eq!(guest(&[(IDLE, driver)]).state(id), state, "{driver}");
        }
        assert_eq!(guest(&[]).state(id), State::NotApplicable);
        assert_eq!(
            guest(&[(IDLE, "none"), ("/proc/cmdline", "quiet idle=poll")]).state(id),
            State::NotApplicable
        );
        let module = guest(&[(IDLE, "none"), ("config:CONFIG_HALTPOLL_CPUIDLE", "m")]);
        assert_eq!(module.wanted(id), ["module cpuidle_haltpoll, force = 1"]);
        let built_in = guest(&[(IDLE, "none"), ("config:CONFIG_HALTPOLL_CPUIDLE", "y")]);
        assert_eq!(built_in.wanted(id), ["kernel parameter cpuidle_haltpoll.force = 1"]);
        assert!(guest(&[(IDLE, "none")]).changes(id).is_empty());
        let other = ("cpuid:0x40000000:0", "eax=0x40000001 ebx=0x54474354 ecx=0x43544743 edx=0x47435447");
        assert_eq!(guest(&[(IDLE, "none"), other]).state(id), State::NotApplicable);
        assert_eq!(arm(&[(IDLE, "none")]).role(Role::Guest).state(id), State::NotApplicable);
        let without = guest(&[(IDLE, "none"), ("config:CONFIG_HALTPOLL_CPUIDLE", "n")]);
        assert!(without.state(id) == State::NotApplicable && without.changes(id).is_empty());
    }
}
