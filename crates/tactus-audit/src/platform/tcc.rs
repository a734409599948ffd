//! The one switch of some firmware for real time.

use tactus_model::finding::Severity;

use super::idle_states::{Depth, depth};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ID: &str = "tcc-mode";
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "features that a firmware's real-time mode turns off are on",
    sources: &[Source::Guide("Intel Time Coordinated Computing")],
    applies: &[Applies::Host],
    severity: Severity::Info,
    arch: Arch::Intel,
    set: &[SetBy::Firmware],
    reversible: Reversible::Reboot,
    hardware: true,
    reads: "features that the mode would have turned off: the flag hwp of /proc/cpuinfo, turbo \
(intel_pstate/no_turbo), deep idle states. The switch itself is not visible from a running system",
    expected: "no hardware P-states, no turbo, no deep idle states",
    why: "Industrial processors have a firmware switch that turns off power management and reduces SMIs. Intel calls \
it Time Coordinated Computing: Core since the 11th generation and Atom x6000E in their industrial versions, some \
Xeon. It sets many options at once, including some that a running system can neither see nor set.",
    fix: "Look for Intel Advanced Menu, Intel Time Coordinated Computing, Intel TCC Mode in the firmware's setup. \
Without it, set the single options that the other findings name.",
    risk: "Power, and the processor runs at its base clock.",
    judge: tcc,
    changes: no_change,
}];

fn tcc(subject: &Subject<'_>) -> Verdict {
    let hwp = subject.flag("hwp");
    let turbo = subject.facts.text(NO_TURBO);
    let depth = depth(subject);
    let mut on = Vec::new();
    if hwp == Some(true) {
        on.push("hardware P-states");
    }
    if turbo == Some("0") {
        on.push("turbo");
    }
    // States that the kernel closed are the kernel's doing: the firmware left them on.
    if matches!(depth, Ok(Depth::Open(_) | Depth::Closed(_) | Depth::Held(..))) {
        on.push("deep idle states");
    }
    let judgement = if !on.is_empty() {
        Judgement::finding(format!(
            "if the firmware has such a mode, it is off; these are on: {}",
            on.join(", ")
        ))
    } else if hwp.is_none() || depth.is_err() {
        Judgement::unknowable("only the firmware's setup shows it; few features of such a mode were read")
    } else {
        Judgement::ok("the features of such a mode are off: hardware P-states, turbo, deep idle states")
    };
    let told = match hwp {
        Some(true) => "set",
        Some(false) => "not set",
        None => "unknown",
    };
    let judgement = judgement.read("/proc/cpuinfo, flag hwp", told);
    Ok(match turbo {
        Some(text) => judgement.read(NO_TURBO, text),
        None => judgement,
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use crate::testing::{HOSTILE, amd, guest, intel};

    use super::{ID, NO_TURBO};

    const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
    const HWP: (&str, &str) = ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu hwp\n");

    #[test]
    fn a_machine_without_power_management_is_as_the_mode_makes_it() {
        assert_eq!(intel(&[(DRIVER, "none")]).state(ID), State::Ok);
        assert_eq!(intel(&[(DRIVER, "none"), (NO_TURBO, "1")]).state(ID), State::Ok);
    }

    #[test]
    fn what_the_mode_would_turn_off_shows_that_it_is_not_on() {
        let bad = intel(&[HWP, (NO_TURBO, "0"), (DRIVER, "none")]);
        assert_eq!(
            bad.said(ID),
            "if the firmware has such a mode, it is off; these are on: hardware P-states, turbo"
        );
        let deep = "/sys/devices/system/cpu/cpu2/cpuidle/state3/latency";
        assert_eq!(intel(&[(DRIVER, "intel_idle"), (deep, "133")]).state(ID), State::Finding);
    }

    #[test]
    fn what_was_not_read_is_not_known() {
        assert_eq!(intel(&[]).state(ID), State::Unknowable);
        assert_eq!(amd(&[]).state(ID), State::NotApplicable);
        assert_eq!(guest(&[(DRIVER, "none")]).role(Role::Host).state(ID), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(intel(&[]).unreadable(DRIVER, text).state(ID), State::Unknowable);
        }
    }
}
