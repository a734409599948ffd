//! The unit that translates the addresses of devices.

use tactus_model::change::{Change, flag};
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const ID: &str = "iommu-passthrough";
const CLASS: &str = "list:/sys/class/iommu";
const VFIO: &str = "list:/sys/bus/pci/drivers/vfio-pci";
const SNP: &str = "/sys/module/kvm_amd/parameters/sev_snp";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "the IOMMU translates for the host's devices, or guests have no IOMMU",
    sources: &[Source::Xeon, Source::Kernel("Documentation/admin-guide/kernel-parameters.txt")],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::KernelCommandLine],
    reversible: Reversible::Reboot,
    hardware: true,
    reads: "/sys/class/iommu, /sys/bus/pci/drivers/vfio-pci, /proc/cmdline; the flag sev_snp of /proc/cpuinfo, \
/sys/module/kvm_amd/parameters/sev_snp",
    expected: "an IOMMU, and iommu=pt (x86) or iommu.passthrough=1; neither parameter if SEV-SNP is in use",
    why: "VFIO gives a device to a guest only behind an IOMMU. Without passthrough mode the host's own devices pay \
for it. Each buffer is mapped and unmapped, and its translations are flushed, which costs time and locks.",
    fix: "Enable VT-d or AMD-Vi in the firmware's setup and boot with intel_iommu=on iommu=pt (Intel), iommu=pt (AMD) or \
iommu.passthrough=1 (Arm).",
    risk: "With passthrough a broken or hostile host device can write anywhere in memory. Devices of guests stay \
translated. On AMD it ends SEV-SNP: such guests do not start.",
    judge: passthrough,
    changes,
}];

fn passthrough(subject: &Subject<'_>) -> Verdict {
    let given = given(subject);
    let units = match subject.facts.0.get(CLASS) {
        Some(Reading::Text(text) | Reading::Cut(text)) => text.split_ascii_whitespace().count(),
        Some(Reading::Absent) => 0,
        Some(Reading::Unreadable(reason)) => {
            return Err(Judgement::unreadable(format!("/sys/class/iommu could not be read: {reason}")));
        }
        None => return Err(Judgement::unreadable("these facts do not include IOMMUs")),
    };
    let parameter = ["iommu", "iommu.passthrough", "intel_iommu", "amd_iommu"]
        .into_iter()
        .filter(|name| subject.cmdline.has(name))
        .map(|name| format!("{name}={}", subject.cmdline.get(name).unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(" ");
    let judgement = match (units, given, passes(subject)) {
        (0, 0, _) => Judgement::finding("no IOMMU is in use, so no device can be passed through to a guest"),
        (0, given, _) => Judgement::finding(format!(
            "{given} device{} bound to vfio-pci, but no IOMMU is in use",
            if given == 1 { " is" } else { "s are" }
        ))
        .at(Severity::Blocker),
        (_, _, true) => {
            Judgement::ok("an IOMMU is in use, and the host's own devices bypass it, as set at boot")
        }
        _ if snp(subject) => Judgement::ok(
            "an IOMMU is in use and translates for the host's own devices, which SEV-SNP requires",
        ),
        _ => Judgement::finding("an IOMMU is in use, and no parameter lets the host's own devices bypass it"),
    };
    let judgement = judgement
        .read("/sys/class/iommu", format!("{units} units"))
        .read("/sys/bus/pci/drivers/vfio-pci", format!("{given} devices"));
    Ok(judgement.read("/proc/cmdline", if parameter.is_empty() { "no IOMMU parameter" } else { &parameter }))
}

/// How many devices VFIO holds for guests.
fn given(subject: &Subject<'_>) -> usize {
    // Beside the devices' addresses the directory has bind, unbind, new_id and module.
    let listed = subject
        .facts
        .text(VFIO)
        .map_or(0, |names| names.split_ascii_whitespace().filter(|name| name.contains(':')).count());
    let bound = subject
        .facts
        .under("pci:")
        .filter(|(_, reading)| {
            matches!(reading, Reading::Text(text) if text.split_ascii_whitespace().nth(2) == Some("vfio-pci"))
        })
        .count();
    listed.max(bound)
}

/// `iommu=pt` and `iommu.passthrough=1` set the same; the last one counts, and without either the
/// kernel's configuration.
fn passes(subject: &Subject<'_>) -> bool {
    let asked = subject.cmdline.parameters().iter().rev().find_map(|parameter| {
        let value = parameter.value.as_deref().unwrap_or_default();
        match parameter.name.as_str() {
            // arm64 does not know it.
            "iommu" if subject.is(Arch::X86) => value.split(',').rev().find_map(|word| match word {
                "pt" => Some(true),
                "nopt" => Some(false),
                _ => None,
            }),
            "iommu.passthrough" => flag(value),
            _ => None,
        }
    });
    asked.unwrap_or_else(|| subject.facts.text("config:CONFIG_IOMMU_DEFAULT_PASSTHROUGH") == Some("y"))
}

/// Whether KVM runs guests of SEV-SNP, which passthrough would end (`iommu_snp_enable` in drivers/iommu/amd/init.c).
fn snp(subject: &Subject<'_>) -> bool {
    let on = subject.facts.text(SNP).and_then(flag);
    subject.flag("sev_snp") == Some(true) && on == Some(true)
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    if snp(subject) {
        Vec::new()
    } else if subject.is(Arch::Intel) {
        vec![subject.boot(ID, "intel_iommu", "on"), subject.boot(ID, "iommu", "pt")]
    } else if subject.is(Arch::X86) {
        vec![subject.boot(ID, "iommu", "pt")]
    } else {
        vec![subject.boot(ID, "iommu.passthrough", "1")]
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{amd, arm, guest, intel};

    const UNIT: (&str, &str) = (CLASS, "dmar0 dmar1");

    #[test]
    fn an_iommu_that_the_host_passes_by_is_good() {
        let good = intel(&[UNIT, ("/proc/cmdline", "quiet intel_iommu=on iommu=pt")]);
        assert_eq!(good.state(ID), State::Ok);
        assert!(good.wanted(ID).is_empty());
        assert_eq!(arm(&[(CLASS, "smmu3.0"), ("/proc/cmdline", "iommu.passthrough=1")]).state(ID), State::Ok);
        assert_eq!(amd(&[UNIT, ("config:CONFIG_IOMMU_DEFAULT_PASSTHROUGH", "y")]).state(ID), State::Ok);
        assert_eq!(intel(&[UNIT, ("/proc/cmdline", "iommu=pt iommu=nopt")]).state(ID), State::Finding);
    }

    #[test]
    fn no_iommu_stops_who_gives_devices_to_guests() {
        let none = intel(&[(CLASS, "")]);
        assert_eq!((none.finding(ID).state, none.finding(ID).severity), (State::Finding, Severity::Minor));
        assert_eq!(none.wanted(ID), ["kernel parameter intel_iommu = on", "kernel parameter iommu = pt"]);
        let vfio =
            none.and("pci:0000:05:00.0", "0x020000 8086:10fb vfio-pci 0 -").and(VFIO, "0000:05:00.0 bind");
        assert_eq!(vfio.finding(ID).severity, Severity::Blocker);
        assert_eq!(vfio.said(ID), "1 device is bound to vfio-pci, but no IOMMU is in use");
    }

    #[test]
    fn passthrough_is_not_advised_where_it_would_end_sev_snp() {
        let info = |flags| format!("vendor_id : AuthenticAMD\nflags : svm {flags}\n");
        let of = |flags, on| amd(&[UNIT, ("/proc/cpuinfo", &info(flags)), (SNP, on)]);
        let snp = of("sev_snp", "Y");
        assert_eq!((snp.state(ID), snp.changes(ID).len()), (State::Ok, 0), "{}", snp.said(ID));
        assert!(snp.said(ID).contains("SEV-SNP"), "{}", snp.said(ID));
        for without in [of("sev_snp", "N"), of("", "Y"), of("sev_snp", "Y").without(SNP)] {
            assert_eq!(without.state(ID), State::Finding);
            assert_eq!(without.wanted(ID), ["kernel parameter iommu = pt"]);
        }
    }

    #[test]
    fn what_was_not_read_or_lies_below_a_guest_is_not_judged() {
        assert_eq!(intel(&[]).state(ID), State::Unreadable);
        assert_eq!(intel(&[]).unreadable(CLASS, "denied").state(ID), State::Unreadable);
        assert_eq!(guest(&[UNIT]).state(ID), State::NotApplicable);
        assert_eq!(guest(&[UNIT]).role(Role::Host).state(ID), State::Unknowable);
    }
}
