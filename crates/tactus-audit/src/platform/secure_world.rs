//! Software beside Linux on 64-bit Arm that takes precedence over it.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const TEE: &str = "list:/sys/class/tee";

pub static CHECKS: &[Check] = &[Check {
    id: "secure-world",
    title: "a secure world takes CPU time unseen",
    sources: &[Source::Kernel("Documentation/core-api/real-time/hardware.rst")],
    applies: &[Applies::Host],
    severity: Severity::Info,
    arch: Arch::Arm64,
    set: &[SetBy::Firmware, SetBy::Application],
    reversible: Reversible::Nothing,
    hardware: true,
    reads: "/sys/class/tee",
    expected: "no calls to a trusted environment (OP-TEE) during real-time work, and its interrupts on other CPUs",
    why: "Linux cannot mask interrupts of the secure world. A fast call runs there with Linux's interrupts masked \
until it ends: a cryptographic function may take milliseconds. The kernel counts none of it.",
    fix: "Measure it (tactus measure spin shows the lost time of a CPU). Keep clients of OP-TEE (fTPM, RPMB, secure \
storage) off the real-time CPUs. Ask the vendor of the firmware where its secure interrupts go.",
    risk: "None.",
    judge: tee,
    changes: no_change,
}];

fn tee(subject: &Subject<'_>) -> Verdict {
    let devices = subject.facts.text(TEE).unwrap_or_default();
    if devices.trim().is_empty() {
        return Err(Judgement::unknowable(
            "Linux sees no trusted environment; only a measurement shows the time of the firmware at EL3",
        ));
    }
    Ok(Judgement::finding(
        "a trusted environment runs beside Linux, and its calls and interrupts preempt Linux",
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
