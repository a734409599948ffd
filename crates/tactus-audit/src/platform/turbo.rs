//! Clocks above the guaranteed one.

use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

pub static CHECKS: &[Check] = &[Check {
    id: "turbo",
    title: "the clock goes up and down with temperature and load",
    sources: &[Source::Xeon],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::X86,
    set: &[SetBy::Firmware, SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: true,
    reads: "/sys/devices/system/cpu/intel_pstate/no_turbo, /sys/devices/system/cpu/cpufreq/boost; without either, \
CPUID leaf 6 EAX bit 1 (Intel) and leaf 0x80000007 EDX bit 9 (AMD)",
    expected: "no_turbo 1, or boost 0",
    why: "With turbo each core's clock depends on the work of the others and on their temperature. A clock change \
halts the core for microseconds. The same code takes a different time each hour.",
    fix: "Turn turbo or boost off in the firmware's setup, or write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo, \
or 0 to /sys/devices/system/cpu/cpufreq/boost.",
    risk: "A lower average speed for a smaller spread. It is contested: the TuneD profiles for real time leave boost \
on. Measure both (tactus prove turbo).",
    judge: turbo,
    changes,
}];

fn turbo(subject: &Subject<'_>) -> Verdict {
    let no_turbo = subject.value(NO_TURBO);
    let boost = subject.value(BOOST);
    let (path, text, off) = match (no_turbo, boost) {
        (Ok(text), _) => (NO_TURBO, text, "1"),
        (Err(_), Ok(text)) => (BOOST, text, "0"),
        (Err(first), Err(second)) => {
            // Where one of them is there and cannot be read, that is the reason.
            let refused =
                [first, second].into_iter().find(|it| it.state == tactus_model::finding::State::Unreadable);
            return refused.map_or_else(|| without_driver(subject), Err);
        }
    };
    let judgement = match text {
        text if text == off => Judgement::ok("turbo is off"),
        "0" | "1" => Judgement::finding("turbo is on"),
        other => Judgement::unreadable(format!("{path} contains {other}")),
    };
    Ok(judgement.read(path, text))
}

/// No driver rules it: the processor tells whether the firmware left it on.
fn without_driver(subject: &Subject<'_>) -> Verdict {
    let (leaf, register, bit) =
        if subject.is(Arch::Intel) { ("0x6:0", "eax", 1) } else { ("0x80000007:0", "edx", 9) };
    let Some(value) = subject.cpuid(leaf, register) else {
        return Err(Judgement::not_applicable(
            "no frequency driver controls turbo: neither intel_pstate/no_turbo nor cpufreq/boost exists",
        ));
    };
    let judgement = if value >> bit & 1 == 0 {
        Judgement::ok("the processor has no turbo, or the firmware turned it off")
    } else {
        Judgement::unknowable(
            "the processor has turbo and no driver controls it: the firmware's setup decides",
        )
    };
    Ok(judgement.read(format!("CPUID {leaf}, {register}"), format!("{value:#x}")))
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    [subject.set("turbo", NO_TURBO, Form::Plain, "1"), subject.set("turbo", BOOST, Form::Plain, "0")]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, amd, arm, guest, intel};

    #[test]
    fn turbo_is_good_when_it_is_off() {
        assert_eq!(intel(&[(NO_TURBO, "1")]).state("turbo"), State::Ok);
        assert_eq!(amd(&[(BOOST, "0")]).state("turbo"), State::Ok);
        assert_eq!(intel(&[("cpuid:0x6:0", "eax=0x75 ebx=0x2 ecx=0x9 edx=0x0")]).state("turbo"), State::Ok);
        assert_eq!(intel(&[(NO_TURBO, "0")]).wanted("turbo"), [format!("{NO_TURBO} = 1")]);
        assert_eq!(amd(&[(BOOST, "1")]).wanted("turbo"), [format!("{BOOST} = 0")]);
        assert_eq!(amd(&[(BOOST, "1")]).state("turbo"), State::Finding);
    }

    #[test]
    fn without_a_driver_only_the_firmware_knows() {
        let asked = |eax: &str| {
            intel(&[("cpuid:0x6:0", &format!("eax={eax} ebx=0x2 ecx=0x9 edx=0x0"))]).state("turbo")
        };
        assert_eq!(asked("0x77"), State::Unknowable);
        assert_eq!(asked("0x"), State::NotApplicable);
        assert_eq!(intel(&[]).absent(NO_TURBO).state("turbo"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(BOOST, "denied").state("turbo"), State::Unreadable);
        assert_eq!(arm(&[(BOOST, "1")]).state("turbo"), State::NotApplicable);
        assert_eq!(guest(&[(NO_TURBO, "1")]).role(Role::Host).state("turbo"), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(intel(&[(NO_TURBO, text)]).state("turbo"), State::Unreadable, "{text}");
        }
    }
}
