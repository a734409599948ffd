//! The clock of what all cores share: last-level cache, mesh, memory controllers.

use tactus_model::change::{Change, Form};
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const ID: &str = "uncore-frequency";
const DIRECTORY: &str = "/sys/devices/system/cpu/intel_uncore_frequency/";
const MIN: &str = "/min_freq_khz";
const MAX: &str = "/max_freq_khz";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "the clock of cache and memory controllers changes",
    sources: &[Source::Kernel("Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst")],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::Intel,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: true,
    reads: "/sys/devices/system/cpu/intel_uncore_frequency/*/{min_freq_khz,max_freq_khz}",
    expected: "min_freq_khz equal to max_freq_khz in each of them",
    why: "The processor lowers the clock of its last-level cache and mesh when the cores use them little. The first \
accesses afterwards are slower, until the clock has risen again.",
    fix: "Load the module intel_uncore_frequency and write the value of max_freq_khz to min_freq_khz in each directory of \
/sys/devices/system/cpu/intel_uncore_frequency.",
    risk: "Power, which the cores' turbo then lacks.",
    judge: uncore,
    changes,
}];

/// The directories, one for each die or cluster, in their order.
fn domains<'a>(subject: &Subject<'a>) -> Vec<&'a str> {
    let facts: &'a tactus_model::facts::Facts = subject.facts;
    facts.under(DIRECTORY).filter_map(|(path, _)| path.strip_suffix(MIN)).collect()
}

fn uncore(subject: &Subject<'_>) -> Verdict {
    let domains = domains(subject);
    if domains.is_empty() {
        let refused =
            subject.facts.under(DIRECTORY).find(|(_, reading)| matches!(reading, Reading::Unreadable(_)));
        return Err(refused.map_or_else(
            || {
                Judgement::not_applicable(
                    "there is no intel_uncore_frequency: the module is not loaded, or this processor has no such setting",
                )
            },
            |(path, _)| Judgement::unreadable(format!("{path} could not be read")),
        ));
    }
    let (mut loose, mut read) = (Vec::new(), Vec::new());
    for domain in domains {
        let min = subject.number(&format!("{domain}{MIN}"))?;
        let max = subject.number(&format!("{domain}{MAX}"))?;
        if min != max {
            let name = domain.rsplit('/').next().unwrap_or(domain);
            loose.push(format!("{} to {} MHz in {name}", min / 1000, max / 1000));
        }
        read.push((format!("{domain}/{{min,max}}_freq_khz"), format!("{min}, {max}")));
    }
    let judgement = if loose.is_empty() {
        Judgement::ok("the clock of cache and memory controllers is fixed")
    } else {
        let more = loose.len().saturating_sub(4);
        let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
        loose.truncate(4);
        Judgement::finding(format!(
            "the clock of cache and memory controllers may be {}{more}",
            loose.join(", ")
        ))
    };
    Ok(read.into_iter().fold(judgement, |judgement, (path, value)| judgement.read(path, value)))
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    for domain in domains(subject) {
        if let Some(max) = subject.facts.number(&format!("{domain}{MAX}")) {
            changes.extend(subject.set(ID, &format!("{domain}{MIN}"), Form::Plain, max.to_string()));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, System, amd, guest, intel};

    fn die(system: System, name: &str, min: &str, max: &str) -> System {
        system.and(&format!("{DIRECTORY}{name}{MIN}"), min).and(&format!("{DIRECTORY}{name}{MAX}"), max)
    }

    #[test]
    fn a_fixed_clock_is_good_and_one_with_room_is_found() {
        let good = die(intel(&[]), "package_00_die_00", "2400000", "2400000");
        assert_eq!(good.state(ID), State::Ok);
        let bad = die(good, "package_01_die_00", "800000", "2400000");
        assert_eq!(
            bad.said(ID),
            "the clock of cache and memory controllers may be 800 to 2400 MHz in package_01_die_00"
        );
        assert_eq!(bad.wanted(ID), [format!("{DIRECTORY}package_01_die_00{MIN} = 2400000")]);
    }

    #[test]
    fn without_the_module_nothing_is_said() {
        assert_eq!(intel(&[]).state(ID), State::NotApplicable);
        assert_eq!(amd(&[]).state(ID), State::NotApplicable);
        assert_eq!(guest(&[]).role(Role::Host).state(ID), State::Unknowable);
        let dark = intel(&[]).unreadable(&format!("{DIRECTORY}uncore00{MIN}"), "denied");
        assert_eq!(dark.state(ID), State::Unreadable);
        for text in HOSTILE {
            assert_ne!(die(intel(&[]), "uncore00", text, text).state(ID), State::Ok, "{text}");
        }
        assert_ne!(intel(&[(&format!("{DIRECTORY}uncore00{MIN}"), "1")]).state(ID), State::Ok);
    }
}
