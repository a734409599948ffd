//! Whether a hypervisor lies below this system.

use tactus_model::finding::{Role, Severity};
use tactus_model::hypervisor::Below;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";

pub static CHECKS: &[Check] = &[
    Check {
        id: "hypervisor-presence",
        title: "the role of this system (host or guest) is wrong",
        sources: &[Source::Qoriq, Source::Industrial, Source::Osadl],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[],
        reversible: Reversible::Nothing,
        hardware: false,
        reads: "CPUID leaf 1 ECX bit 31 (the flag hypervisor of /proc/cpuinfo) and leaf 0x40000000. \
/sys/hypervisor/type, the device tree, devices of QEMU. The names in /sys/class/dmi/id (sys_vendor, product_name, \
product_version, bios_vendor)",
        expected: "a hypervisor below a guest, and none below a host",
        why: "The role selects the rules. A guest does not see SMIs, C-states and clock speeds of the \
              machine below. Settings that are right on a host are useless or harmful in a guest.",
        fix: "Set the right role: --role host or --role guest.",
        risk: "none",
        judge: presence,
        changes: no_change,
    },
    Check {
        id: "nested-host",
        title: "the host is itself a virtual machine",
        sources: &[Source::Kernel("Documentation/virt/kvm/x86/running-nested-guests.rst")],
        applies: &[Applies::Host],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Placement],
        reversible: Reversible::Nothing,
        hardware: false,
        reads: "as hypervisor-presence",
        expected: "no hypervisor below the host",
        why: "The scheduler, timers and interrupts of another system lie below this one, and can stop any CPU at any \
time. Measurements here do not describe the hardware. Guests that run here are nested: their exits are handled twice.",
        fix: "Measure on the machine itself, or judge this system as a guest (--role guest) and tune the machine \
below as its host.",
        risk: "none",
        judge: nested,
        changes: no_change,
    },
];

const NO_BIT: &str = "the processor does not set the hypervisor bit";

/// The name of the hypervisor: its own signature comes before the names of the firmware.
fn named(name: Option<&str>, subject: &Subject<'_>) -> String {
    signature(subject).or_else(|| name.map(str::to_owned)).unwrap_or_else(|| "unknown".into())
}

/// The twelve letters with which a hypervisor signs leaf 0x40000000: `KVMKVMKVM`, `Microsoft Hv`.
fn signature(subject: &Subject<'_>) -> Option<String> {
    let bytes = ["ebx", "ecx", "edx"]
        .into_iter()
        .map(|register| subject.cpuid("0x40000000:0", register).map(u32::to_le_bytes))
        .collect::<Option<Vec<_>>>()?;
    let text: String =
        bytes.concat().into_iter().filter(|byte| (0x20..0x7f).contains(byte)).map(char::from).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn read(judgement: Judgement, subject: &Subject<'_>) -> Judgement {
    let flag = match subject.flag("hypervisor") {
        Some(true) => "set",
        Some(false) => "not set",
        None => "this processor's flags are unknown",
    };
    let judgement = judgement.read("/proc/cpuinfo, flag hypervisor", flag);
    match subject.facts.text(VENDOR) {
        Some(vendor) => judgement.read(VENDOR, vendor),
        None => judgement,
    }
}

fn presence(subject: &Subject<'_>) -> Verdict {
    let judgement = match (subject.facts.below(), subject.role) {
        (Below::Hypervisor(name), role) => {
            let name = named(name, subject);
            match role {
                // The same fact, and graver there.
                Role::Host => {
                    return Err(Judgement::not_applicable(format!(
                        "this host runs on a hypervisor ({name}): see nested-host"
                    )));
                }
                _ => Judgement::ok(format!("this guest runs on a hypervisor ({name})")),
            }
        }
        (Below::Nothing, Role::Host) => Judgement::ok(format!("no hypervisor below: {NO_BIT}")),
        (Below::Nothing, _) => {
            Judgement::finding(format!("this system is called a guest, but no hypervisor is seen: {NO_BIT}"))
        }
        (Below::Unknown, _) => untold(),
    };
    Ok(read(judgement, subject))
}

fn nested(subject: &Subject<'_>) -> Verdict {
    let judgement = match subject.facts.below() {
        Below::Hypervisor(name) => {
            let name = named(name, subject);
            Judgement::finding(format!("this host runs on a hypervisor ({name}), as a virtual machine"))
        }
        Below::Nothing => Judgement::ok(format!("this host runs on the hardware: {NO_BIT}")),
        Below::Unknown => untold(),
    };
    Ok(read(judgement, subject))
}

fn untold() -> Judgement {
    Judgement::unknowable(
        "whether a hypervisor lies below is unknown: no bit of the processor and no name shows it",
    )
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, arm, blank, guest, intel};

    const KVM: (&str, &str) = ("cpuid:0x40000000:0", "eax=0x40000001 ebx=0x4b4d564b ecx=0x564b4d56 edx=0x4d");

    #[test]
    fn a_host_on_the_metal_and_a_guest_on_a_hypervisor_are_what_they_are_called() {
        assert_eq!(intel(&[]).state("hypervisor-presence"), State::Ok);
        assert_eq!(intel(&[]).state("nested-host"), State::Ok);
        assert_eq!(guest(&[KVM]).said("hypervisor-presence"), "this guest runs on a hypervisor (KVMKVMKVM)");
        assert_eq!(guest(&[]).state("nested-host"), State::NotApplicable);
    }

    #[test]
    fn a_host_in_a_virtual_machine_and_a_guest_without_a_hypervisor_are_found() {
        let host = guest(&[KVM]).role(Role::Host);
        assert_eq!(host.state("hypervisor-presence"), State::NotApplicable, "one fact, one finding");
        assert_eq!(host.state("virt-extensions"), State::NotApplicable);
        assert_eq!(
            host.said("nested-host"),
            "this host runs on a hypervisor (KVMKVMKVM), as a virtual machine"
        );
        assert_eq!(intel(&[]).role(Role::Guest).state("hypervisor-presence"), State::Finding);
        assert_eq!(arm(&[(VENDOR, "QEMU")]).state("nested-host"), State::Finding);
        assert_eq!(
            arm(&[("/proc/device-tree/model", "linux,dummy-virt")]).state("nested-host"),
            State::Finding
        );
        assert_eq!(
            arm(&[("pci:0000:00:00.0", "0x060000 1b36:0008 - - -")]).state("nested-host"),
            State::Finding
        );
    }

    #[test]
    fn the_silence_of_a_processor_without_such_a_bit_proves_nothing() {
        assert_eq!(arm(&[]).state("nested-host"), State::Unknowable);
        assert_eq!(blank(&[]).state("nested-host"), State::Unknowable);
    }

    #[test]
    fn a_hostile_signature_is_no_name() {
        for text in HOSTILE {
            let system = guest(&[(KVM.0, text)]);
            assert_eq!(system.said("hypervisor-presence"), "this guest runs on a hypervisor (unknown)");
        }
    }
}
