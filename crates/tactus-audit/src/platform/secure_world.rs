//! What runs beside Linux on 64-bit Arm, and goes before it.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const TEE: &str = "list:/sys/class/tee";

pub static CHECKS: &[Check] = &[Check {
    id: "secure-world",
    title: "a secure world takes CPUs away unseen",
    sources: &[Source::Kernel("Documentation/core-api/real-time/hardware.rst")],
    applies: &[Applies::Host],
    severity: Severity::Info,
    arch: Arch::Arm64,
    set: &[SetBy::Firmware, SetBy::Application],
    reversible: Reversible::Nothing,
    hardware: true,
    reads: "/sys/class/tee",
    expected: "nobody calls a trusted environment (OP-TEE) while it matters, and its interrupts go to other CPUs",
    why: "Linux cannot mask interrupts of the secure world, and a fast call runs there with Linux's own interrupts masked, \
for as long as it takes: a cryptographic function may take milliseconds. The kernel counts none of it.",
    fix: "Measure (tactus measure spin shows what took a CPU away). Keep clients of OP-TEE (fTPM, RPMB, secure storage) off \
the real-time CPUs, and ask the maker of the firmware where its secure interrupts go.",
    risk: "None.",
    judge: tee,
    changes: no_change,
}];

fn tee(subject: &Subject<'_>) -> Verdict {
    let devices = subject.facts.text(TEE).unwrap_or_default();
    if devices.trim().is_empty() {
        return Err(Judgement::unknowable(
            "no trusted environment offers itself to Linux; what the firmware does at EL3 only a measurement tells",
        ));
    }
    Ok(Judgement::finding(
        "a trusted environment runs beside Linux, and its calls and interrupts go before Linux's",
    )
    .read("/sys/class/tee", devices))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::TEE;
    use crate::testing::{arm, intel};

    #[test]
    fn a_trusted_environment_is_told_and_its_absence_proves_nothing() {
        let id = "secure-world";
        assert_eq!(arm(&[(TEE, "tee0 teepriv0")]).state(id), State::Finding);
        assert_eq!(arm(&[(TEE, "")]).state(id), State::Unknowable);
        assert_eq!(arm(&[]).state(id), State::Unknowable);
        assert_eq!(intel(&[(TEE, "tee0")]).state(id), State::NotApplicable);
    }
}
