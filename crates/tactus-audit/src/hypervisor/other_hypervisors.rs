//! Hypervisors that are not KVM on x86: those that partition, and KVM on 64-bit Arm.

use tactus_model::CpuSet;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const JAILHOUSE: &str = "/sys/devices/jailhouse/enabled";
const CELLS: &str = "/sys/devices/jailhouse/cells/";
const WFI: &str = "kvm-arm.wfi_trap_policy";

pub static CHECKS: &[Check] = &[
    Check {
        id: "partitioning-hypervisor",
        title: "a cell of the partitioning hypervisor has failed",
        sources: &[Source::Industrial, Source::Osadl],
        applies: &[Applies::Host],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[],
        reversible: Reversible::Nothing,
        hardware: false,
        reads: "/sys/devices/jailhouse/{enabled,cells/*/{name,state,cpus_assigned_list,cpus_failed_list}}; CPUID \
0x40000000; /sys/hypervisor/type",
        expected: "every cell runs, and no cell has failed CPUs",
        why: "A partition owns its CPUs, memory and devices. In osadl-2023 a Jailhouse cell stayed at 22 us while \
its root cell was blocked for 5 ms; KVM and containers showed the block. A CPU that touches anything outside its \
cell is stopped until the cell is destroyed.",
        fix: "See what the cell touched with jailhouse cell stats and jailhouse console. Correct its configuration, \
then jailhouse cell destroy and create.",
        risk: "Memory for cells is reserved at boot (memmap=, or in the device tree).",
        judge: cells,
        changes: no_change,
    },
    Check {
        id: "arm64-kvm",
        title: "KVM takes a waiting guest off its CPU",
        sources: &[Source::Osadl, Source::Kernel("Documentation/admin-guide/kernel-parameters.txt")],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::Arm64,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/proc/cmdline; the kernel log's lines of kvm",
        expected: "kvm-arm.wfi_trap_policy=notrap (since Linux 6.11), and KVM in VHE mode",
        why: "KVM traps WFI of a guest unless the guest is the only task on its CPU and has direct interrupts \
(GICv4). The vCPU then sleeps until the host's scheduler wakes it. Without VHE each exit switches the whole state \
between EL1 and EL2.",
        fix: "Boot with kvm-arm.wfi_trap_policy=notrap where each vCPU has a dedicated CPU; do not boot with \
kvm-arm.mode=nvhe or protected.",
        risk: "The host sees the CPU busy while the guest waits. Other work on that CPU runs only at the tick.",
        judge: arm,
        changes: |subject| match runs_kvm(subject) && subject.kernel.since(6, 11) {
            true => vec![subject.boot("arm64-kvm", WFI, "notrap")],
            false => Vec::new(),
        },
    },
];

fn cells(subject: &Subject<'_>) -> Verdict {
    match subject.facts.text(JAILHOUSE) {
        Some("1") => jailhouse(subject),
        Some("0") => {
            Err(Judgement::not_applicable("Jailhouse is loaded but not enabled").read(JAILHOUSE, "0"))
        }
        Some(other) => {
            Err(Judgement::unreadable(format!("{JAILHOUSE} is neither 0 nor 1")).read(JAILHOUSE, other))
        }
        None => match subject.value(JAILHOUSE) {
            Err(judgement) if judgement.state == tactus_model::finding::State::Unreadable => Err(judgement),
            _ => elsewhere(subject),
        },
    }
}

/// Partitions that this system, one of them, cannot look into.
fn elsewhere(subject: &Subject<'_>) -> Verdict {
    let name = match subject.cpuid("0x40000000:0", "ebx") {
        // The first four letters of ACRNACRNACRN, XenVMMXenVMM and Jailhouse.
        Some(0x4e52_4341) => Some("ACRN"),
        Some(0x566e_6558) => Some("Xen"),
        Some(0x6c69_614a) => Some("Jailhouse"),
        _ => (subject.facts.text("/sys/hypervisor/type") == Some("xen")).then_some("Xen"),
    };
    Err(match name {
        Some(name) => Judgement::unknowable(format!(
            "{name} lies below, and this system cannot see how it divides the machine"
        )),
        None => Judgement::not_applicable("no partitioning hypervisor is seen here"),
    })
}

fn jailhouse(subject: &Subject<'_>) -> Verdict {
    let mut cells: Vec<(&str, &str)> = subject
        .facts
        .under(CELLS)
        .filter_map(|(name, _)| name.strip_prefix(CELLS)?.split_once('/'))
        .collect();
    cells.dedup_by_key(|(cell, _)| *cell);
    if cells.is_empty() {
        return Err(Judgement::unreadable("Jailhouse is enabled, but the facts do not include its cells"));
    }
    let (mut faults, mut unknown, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for (cell, _) in &cells {
        let of = |file: &str| subject.facts.text(&format!("{CELLS}{cell}/{file}"));
        let name = of("name").unwrap_or(cell);
        let failed: Option<CpuSet> = of("cpus_failed_list").and_then(|list| list.parse().ok());
        match (of("state"), failed) {
            (Some("failed"), _) => faults.push(format!("{name} has failed")),
            (_, Some(failed)) if !failed.is_empty() => {
                faults.push(format!("CPUs {failed} of {name} have failed"));
            }
            (Some(_), Some(_)) => {}
            _ => unknown.push(name),
        }
        let assigned = of("cpus_assigned_list").unwrap_or("?");
        read.push((name, format!("{}, CPUs {assigned}", of("state").unwrap_or("state unknown"))));
    }
    let judgement = if !faults.is_empty() {
        Judgement::finding(faults.join(", "))
    } else if !unknown.is_empty() {
        Judgement::unreadable(format!("the state of {} is unknown", unknown.join(", ")))
    } else {
        Judgement::ok(format!("{} cells of Jailhouse, without a failure", cells.len()))
    };
    Ok(read
        .into_iter()
        .take(8)
        .fold(judgement, |judgement, (name, value)| judgement.read(format!("cell {name}"), value)))
}

fn runs_kvm(subject: &Subject<'_>) -> bool {
    subject.kvm() != Some(false) && subject.facts.under("/sys/module/kvm/parameters/").next().is_some()
}

fn arm(subject: &Subject<'_>) -> Verdict {
    if !runs_kvm(subject) {
        return Err(Judgement::not_applicable("no KVM runs here"));
    }
    let log = subject.facts.text("dmesg:kvm").unwrap_or_default();
    let mode = subject.cmdline.get("kvm-arm.mode");
    // `VHE mode initialized successfully`, else `Hyp mode`, `Hyp nVHE mode`, `Protected hVHE mode`.
    let told = log.lines().find(|line| line.contains("mode initialized"));
    let split = match told {
        Some(line) => !line.contains(": VHE"),
        None => matches!(mode, Some("nvhe" | "protected")),
    };
    let policy = subject.cmdline.get(WFI);
    let judgement = if split && matches!(mode, Some("nvhe" | "protected")) {
        Judgement::finding("KVM does not run in VHE mode: each exit switches between EL1 and EL2")
    } else if split {
        // The kernel takes VHE where there is one (since Armv8.1, an option before 8.4).
        Judgement::finding(
            "KVM does not run in VHE mode, because this processor has none: each exit switches between EL1 and EL2",
        )
        .at(Severity::Info)
    } else if policy == Some("notrap") {
        Judgement::ok("a waiting guest stays on its CPU")
    } else if subject.kernel.before(6, 11) {
        Judgement::not_applicable("this kernel cannot leave waiting guests on their CPU (Linux 6.11 can)")
    } else {
        Judgement::finding("a waiting guest is taken off its CPU, unless it is alone there and has GICv4")
    };
    let judgement = judgement.read("/proc/cmdline", format!("{WFI}={}", policy.unwrap_or("(not given)")));
    Ok(told.into_iter().fold(judgement, |judgement, line| judgement.read("kernel log", line)))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{System, arm, intel};

    const PARTS: &str = "partitioning-hypervisor";

    fn jailhouse(state: &str, failed: &str) -> System {
        intel(&[
            (JAILHOUSE, "1"),
            ("/sys/devices/jailhouse/cells/0/name", "root"),
            ("/sys/devices/jailhouse/cells/0/state", "running"),
            ("/sys/devices/jailhouse/cells/0/cpus_assigned_list", "0-2"),
            ("/sys/devices/jailhouse/cells/0/cpus_failed_list", ""),
            ("/sys/devices/jailhouse/cells/1/name", "inmate"),
            ("/sys/devices/jailhouse/cells/1/state", state),
            ("/sys/devices/jailhouse/cells/1/cpus_assigned_list", "3"),
            ("/sys/devices/jailhouse/cells/1/cpus_failed_list", failed),
        ])
    }

    #[test]
    fn cells_that_failed_are_named() {
        assert_eq!(jailhouse("running", "").said(PARTS), "2 cells of Jailhouse, without a failure");
        assert_eq!(jailhouse("failed", "3").said(PARTS), "inmate has failed");
        assert_eq!(jailhouse("running", "3").said(PARTS), "CPUs 3 of inmate have failed");
        assert_eq!(jailhouse("running", "x").state(PARTS), State::Unreadable);
        assert_eq!(intel(&[(JAILHOUSE, "1")]).state(PARTS), State::Unreadable);
        assert_eq!(intel(&[(JAILHOUSE, "0")]).state(PARTS), State::NotApplicable);
        assert_eq!(intel(&[(JAILHOUSE, "")]).state(PARTS), State::Unreadable);
        assert_eq!(intel(&[]).state(PARTS), State::NotApplicable);
    }

    #[test]
    fn a_partition_does_not_see_the_others() {
        let acrn =
            intel(&[("cpuid:0x40000000:0", "eax=0x40000010 ebx=0x4e524341 ecx=0x4e524341 edx=0x4e524341")]);
        assert!(acrn.state(PARTS) == State::Unknowable && acrn.said(PARTS).starts_with("ACRN lies below"));
        assert_eq!(intel(&[("/sys/hypervisor/type", "xen")]).state(PARTS), State::Unknowable);
    }

    #[test]
    fn an_arm_guest_waits_in_its_cpu() {
        let id = "arm64-kvm";
        let kvm = ("/sys/module/kvm/parameters/halt_poll_ns", "500000");
        let new = arm(&[
            kvm,
            ("uname:release", "6.12.1"),
            ("dmesg:kvm", "kvm [1]: VHE mode initialized successfully"),
        ]);
        assert_eq!(
            (new.state(id), new.wanted(id)),
            (State::Finding, vec![format!("kernel parameter {WFI} = notrap")])
        );
        assert!(new.said(id).ends_with("unless it is alone there and has GICv4"), "{}", new.said(id));
        let told = new.clone().and("/proc/cmdline", "kvm-arm.wfi_trap_policy=notrap");
        assert_eq!((told.state(id), told.wanted(id).len()), (State::Ok, 0));
        let split = told.clone().and("dmesg:kvm", "kvm [1]: Hyp nVHE mode initialized successfully");
        assert_eq!(split.state(id), State::Finding, "{}", split.said(id));
        assert!(split.said(id).contains("this processor has none"), "{}", split.said(id));
        let asked = split.and("/proc/cmdline", "kvm-arm.mode=nvhe");
        assert!(!asked.said(id).contains("this processor has none"), "{}", asked.said(id));
        assert_eq!(
            new.clone().and("device:kvm", "absent").state(id),
            State::NotApplicable,
            "built in, and not running"
        );
        assert_eq!(new.clone().and("uname:release", "6.1.0").state(id), State::NotApplicable);
        assert_eq!(new.and("uname:release", "6.1.0").changes(id).len(), 0);
        assert_eq!(arm(&[("uname:release", "6.12.1")]).state(id), State::NotApplicable);
        assert_eq!(intel(&[kvm]).state(id), State::NotApplicable);
    }
}
