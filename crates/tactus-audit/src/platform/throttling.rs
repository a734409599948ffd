//! Processors that get too warm.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::facts::Facts;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, Source, Subject, Verdict, no_change, sentence};

const ID: &str = "thermal-throttle";
const COUNTS: [&str; 2] = ["core_throttle_count", "package_throttle_count"];

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "the processor slows down because it is too warm",
    sources: &[
        Source::Kernel("drivers/thermal/intel/therm_throt.c"),
        Source::Kernel("Documentation/core-api/real-time/hardware.rst"),
    ],
    applies: &[Applies::Host],
    severity: Severity::Major,
    arch: Arch::X86,
    set: &[],
    reversible: Reversible::Nothing,
    hardware: true,
    reads: "/sys/devices/system/cpu/cpu*/thermal_throttle/{core_throttle_count,package_throttle_count}, twice; the kernel's log",
    expected: "the counts do not grow",
    why: "Above its temperature limit the processor lowers its clock, or stops it part of the time. This looks like \
jitter. It comes only on warm days or under load, after the measurement was good.",
    fix: "Cool it: fans, dust, a lower ambient temperature, fewer polling CPUs (idle=poll, busy loops), turbo off.",
    risk: "None; thermal protection itself stays on.",
    judge: throttle,
    changes: no_change,
}];

type Counts = BTreeMap<(&'static str, u32), u64>;

fn counts(subject: &Subject<'_>, facts: &Facts) -> Counts {
    let mut counts = Counts::new();
    for cpu in subject.topology.online.iter() {
        for name in COUNTS {
            if let Some(count) = facts.number(&path(cpu, name)) {
                counts.insert((name, cpu), count);
            }
        }
    }
    counts
}

fn path(cpu: u32, name: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}")
}

fn throttle(subject: &Subject<'_>) -> Verdict {
    let now = counts(subject, subject.facts);
    if now.is_empty() {
        let first = subject.topology.online.first().unwrap_or(0);
        // A reading that is there and is no number is damage; none at all is another processor.
        return Err(match subject.number(&path(first, COUNTS[0])) {
            Err(judgement) => judgement,
            Ok(_) => Judgement::unreadable("the throttling counts could not be read"),
        });
    }
    let untold: CpuSet = subject
        .topology
        .online
        .iter()
        .filter(|cpu| !COUNTS.iter().any(|name| now.contains_key(&(*name, *cpu))))
        .collect();
    let total = now.values().max().copied().unwrap_or(0);
    let later = subject.later.map(|later| counts(subject, later));
    let grown: CpuSet = later
        .iter()
        .flatten()
        .filter(|(key, after)| now.get(key).is_some_and(|before| *after > before))
        .map(|((_, cpu), _)| *cpu)
        .collect();
    let since: CpuSet = now.iter().filter(|(_, count)| **count > 0).map(|((_, cpu), _)| *cpu).collect();
    let judgement = if !grown.is_empty() {
        Judgement::finding(format!(
            "the processor is too warm and slows down: {}",
            sentence::cpus_or_none(&grown)
        ))
    } else if !untold.is_empty() {
        Judgement::unreadable(format!("whether CPUs {untold} were slowed down is unknown"))
    } else if since.is_empty() {
        Judgement::ok("no CPU was slowed down for its temperature since boot")
    } else if later.is_some() {
        Judgement::ok(format!(
            "no CPU was slowed down between two readings; before, up to {total} times: {}",
            sentence::cpus_or_none(&since)
        ))
    } else {
        Judgement::finding(format!(
            "slowed down for its temperature since boot, up to {total} times: {}",
            sentence::cpus_or_none(&since)
        ))
        .at(Severity::Minor)
    };
    let mut judgement = COUNTS.iter().fold(judgement, |judgement, name| {
        let of = now.iter().filter(|((one, _), _)| one == name).map(|(_, count)| *count).max();
        match of {
            Some(most) => judgement.read(format!("cpu*/thermal_throttle/{name}"), format!("at most {most}")),
            None => judgement,
        }
    });
    if let Some(line) = subject.facts.text("dmesg:thermal").and_then(|text| text.lines().next()) {
        judgement = judgement.read("the kernel's log", line);
    }
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, System, amd, guest, intel};

    fn machine(counts: [&str; 4]) -> System {
        (0u32..).zip(counts).fold(intel(&[]), |system, (cpu, count)| {
            system.and(&path(cpu, COUNTS[0]), count).and(&path(cpu, COUNTS[1]), "0")
        })
    }

    #[test]
    fn counts_of_zero_or_that_stand_still_are_good() {
        assert_eq!(machine(["0"; 4]).state(ID), State::Ok);
        assert_eq!(machine(["0", "7", "0", "0"]).later(&[]).state(ID), State::Ok);
    }

    #[test]
    fn a_count_that_grows_is_worse_than_one_that_has_grown() {
        let warm = machine(["0", "7", "0", "0"]);
        assert_eq!((warm.finding(ID).state, warm.finding(ID).severity), (State::Finding, Severity::Minor));
        let hot = warm.later(&[(&path(1, COUNTS[0]), "9")]).finding(ID);
        assert_eq!((hot.state, hot.severity), (State::Finding, Severity::Major));
        assert_eq!(hot.message, "the processor is too warm and slows down: CPU 1");
    }

    #[test]
    fn processors_without_counts_are_not_judged() {
        assert_eq!(amd(&[]).state(ID), State::NotApplicable);
        assert_eq!(guest(&[]).role(Role::Host).state(ID), State::Unknowable);
        assert_eq!(intel(&[(&path(0, COUNTS[0]), "0")]).state(ID), State::Unreadable);
        assert_eq!(intel(&[]).unreadable(&path(0, COUNTS[0]), "denied").state(ID), State::Unreadable);
        for text in HOSTILE {
            assert_ne!(intel(&[(&path(0, COUNTS[0]), text)]).state(ID), State::Ok, "{text}");
        }
    }
}
