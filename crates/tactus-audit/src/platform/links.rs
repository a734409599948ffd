//! Links of PCI Express that sleep.

use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const ID: &str = "pcie-aspm";
const POLICY: &str = "/sys/module/pcie_aspm/parameters/policy";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "links to devices sleep and must wake up",
    sources: &[
        Source::Xeon,
        Source::Kernel("Documentation/core-api/real-time/hardware.rst"),
        Source::Kernel("drivers/pci/pcie/aspm.c"),
    ],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Firmware, SetBy::KernelCommandLine, SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: true,
    reads: POLICY,
    expected: "performance",
    why: "With active state power management a link that is idle for microseconds enters L0s or L1. The next \
transfer, such as an interrupt, waits until the link is awake. PCI Express devices state that time in classes; the \
highest are above 4 us for L0s and above 64 us for L1.",
    fix: "Turn ASPM off in the firmware's setup, or boot with pcie_aspm.policy=performance, or write performance to \
/sys/module/pcie_aspm/parameters/policy. Do not use pcie_aspm=off: the kernel then keeps the firmware's settings. If \
the firmware controls ASPM (dmesg: FADT indicates ASPM is unsupported), the kernel refuses the write with EPERM. \
Then only the setup helps.",
    risk: "Power, some watts in a machine with many devices.",
    judge: policy,
    changes,
}];

fn policy(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(POLICY)?;
    let now = Form::Choice.value(text);
    let off = subject.cmdline.get("pcie_aspm") == Some("off");
    let judgement = match now.as_str() {
        // With pcie_aspm=off the kernel keeps its hands off (kernel-parameters.txt): the policy means nothing.
        _ if off => Judgement::unknowable(
            "with pcie_aspm=off links stay as the firmware set them up, which this file does not show",
        ),
        "performance" => Judgement::ok("links to devices stay awake"),
        // It may have set none up: LnkCtl of each device would tell, which the probe does not read.
        "default" => Judgement::finding(
            "links to devices may sleep: they are as the firmware set them up (policy default; see LnkCtl in lspci \
-vv)",
        ),
        "powersave" | "powersupersave" => {
            Judgement::finding(format!("links to devices sleep whenever they are idle (policy {now})"))
        }
        _ => Judgement::unreadable(format!("{POLICY} contains {text}")),
    };
    let judgement = judgement.read(POLICY, text);
    Ok(if off { judgement.read("/proc/cmdline", "pcie_aspm=off") } else { judgement })
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let Some(change) = subject.set(ID, POLICY, Form::Choice, "performance") else { return Vec::new() };
    // The kernel refuses a policy (EPERM) when it was told to keep its hands off.
    let off = subject.cmdline.get("pcie_aspm") == Some("off");
    let boot = subject.boot(ID, "pcie_aspm.policy", "performance");
    if off { vec![boot] } else { vec![change, boot] }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, arm, guest, intel};

    #[test]
    fn only_the_policy_performance_is_good() {
        assert_eq!(intel(&[(POLICY, "default [performance] powersave powersupersave")]).state(ID), State::Ok);
        let bad = arm(&[(POLICY, "[default] performance powersave powersupersave")]);
        assert_eq!(bad.state(ID), State::Finding);
        assert_eq!(
            bad.wanted(ID),
            [format!("{POLICY} = performance"), "kernel parameter pcie_aspm.policy = performance".into()]
        );
        assert_eq!(arm(&[(POLICY, "default performance [powersave]")]).state(ID), State::Finding);
    }

    #[test]
    fn a_kernel_that_keeps_its_hands_off_proves_nothing() {
        let off = intel(&[(POLICY, "default [performance]"), ("/proc/cmdline", "pcie_aspm=off")]);
        assert_eq!(off.state(ID), State::Unknowable);
        assert_eq!(off.changes(ID).len(), 1);
    }

    #[test]
    fn machines_without_it_and_virtual_ones_are_not_judged() {
        assert_eq!(intel(&[]).absent(POLICY).state(ID), State::NotApplicable);
        assert!(intel(&[]).absent(POLICY).changes(ID).is_empty());
        assert_eq!(intel(&[]).unreadable(POLICY, "denied").state(ID), State::Unreadable);
        assert_eq!(guest(&[(POLICY, "[performance]")]).role(Role::Host).state(ID), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(intel(&[(POLICY, text)]).state(ID), State::Unreadable, "{text}");
        }
    }
}
