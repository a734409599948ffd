//! The clock of the CPUs: who chooses it, and within which bounds.

use tactus_model::CpuSet;
use tactus_model::change::{Change, Form};
use tactus_model::finding::{Severity, State};

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor";

pub static CHECKS: &[Check] = &[
    Check {
        id: "cpufreq-governor",
        title: "the clock frequency follows the load",
        sources: &[Source::Xeon, Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst")],
        applies: &[Applies::Host],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: true,
        reads: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        expected: "performance, or another governor that keeps the clock: userspace, or equal bounds",
        why: "A governor that follows the load lowers the clock of a CPU with little work, such as a control loop of \
one millisecond. The loop then starts at a low clock, slower than in a test under load. A constant clock prevents \
this (intel-xeon-2015, 7.2 fixes it with userspace).",
        fix: "Write performance to /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor, or: cpupower frequency-set -g \
performance.",
        risk: "Power.",
        judge: governed,
        changes: |subject| {
            let online = &subject.topology.online;
            let all = subject.set_per_cpu("cpufreq-governor", online, GOVERNOR, Form::Plain, "performance");
            all.into_iter().filter(|change| change.now.as_deref() != Some("userspace")).collect()
        },
    },
    Check {
        id: "cpufreq-pinned",
        title: "the clock frequency may change",
        sources: &[Source::Xeon, Source::Kernel("Documentation/admin-guide/pm/cpufreq.rst")],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: true,
        reads: "/sys/devices/system/cpu/cpu*/cpufreq/{scaling_min_freq,scaling_max_freq,scaling_governor,scaling_driver}, \
/sys/devices/system/cpu/cpufreq/boost",
        expected: "scaling_min_freq equal to scaling_max_freq, or the governor performance, which requests only the \
maximum",
        why: "Within the bounds the governor, the driver or the processor may choose any clock. Equal bounds leave \
only turbo to choose. The governor performance has the same effect: it always requests the upper bound. Then \
intel_pstate keeps the processor from going below it. With amd-pstate-epp the clock does not go below nominal, but \
may boost.",
        fix: "Write the value of scaling_max_freq to scaling_min_freq of each CPU. To turn turbo off as well, turn \
it off first, because the upper bound may fall with it.",
        risk: "Power. A processor with little cooling is throttled at a high minimum.",
        judge: pinned,
        changes: pin,
    },
];

fn governed(subject: &Subject<'_>) -> Verdict {
    let online = &subject.topology.online;
    let judgement = subject.expect_per_cpu(online, GOVERNOR, "performance or userspace", stays)?;
    let fixed = |cpu: u32| {
        let bounds = [bound(cpu, "min"), bound(cpu, "max")].map(|path| subject.facts.number(&path));
        bounds[0].is_some() && bounds[0] == bounds[1]
    };
    let governor = |cpu: u32| subject.facts.text(&GOVERNOR.replace("{cpu}", &cpu.to_string()));
    if judgement.state == State::Finding
        && online.iter().all(|cpu| fixed(cpu) || governor(cpu).is_some_and(stays))
    {
        let said = "the governor has no choice: the lowest and the highest clock are the same".to_owned();
        return Ok(Judgement { said, state: State::Ok, ..judgement });
    }
    Ok(judgement)
}

/// Whether a governor leaves the clock where it was set
/// (Documentation/core-api/real-time/kernel-configuration.rst).
fn stays(governor: &str) -> bool {
    matches!(governor, "performance" | "userspace")
}

fn bound(cpu: u32, which: &str) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{which}_freq")
}

fn pinned(subject: &Subject<'_>) -> Verdict {
    let mut bounds: std::collections::BTreeMap<(u64, u64), CpuSet> = std::collections::BTreeMap::new();
    let (mut unread, mut refused) = (CpuSet::default(), None);
    for cpu in subject.topology.online.iter() {
        let pair =
            subject.number(&bound(cpu, "min")).and_then(|min| Ok((min, subject.number(&bound(cpu, "max"))?)));
        match pair {
            Ok(pair) => bounds.entry(pair).or_default().insert(cpu),
            Err(judgement) => {
                unread.insert(cpu);
                refused = Some(judgement.or_refused(refused));
            }
        }
    }
    let loose: Vec<_> = bounds.iter().filter(|((min, max), _)| min != max).collect();
    let driven = loose.iter().all(|(_, cpus)| cpus.iter().all(|cpu| at_the_upper_bound(subject, cpu)));
    let judgement = if !loose.is_empty() && !driven {
        let words: Vec<String> = loose
            .iter()
            .map(|((min, max), cpus)| format!("{} to {} MHz on CPUs {cpus}", min / 1000, max / 1000))
            .collect();
        Judgement::finding(format!("the clock may be {}", words.join(", ")))
    } else if bounds.is_empty() {
        return Err(refused.unwrap_or_else(|| Judgement::not_applicable("no CPU is online")));
    } else if !unread.is_empty() {
        Judgement::unreadable(format!("the bounds of CPUs {unread} could not be read"))
    } else if !loose.is_empty() {
        Judgement::ok("the clock may vary, but the governor performance requests only the highest")
    } else {
        Judgement::ok("the lowest and the highest clock of each CPU are the same")
    };
    Ok(bounds.into_iter().fold(judgement, |judgement, ((min, max), cpus)| {
        let path = format!("/sys/devices/system/cpu/cpu{{{cpus}}}/cpufreq/scaling_{{min,max}}_freq");
        judgement.read(path, format!("{min}, {max}"))
    }))
}

/// Whether the governor asks for the upper bound only. `performance` does. With intel_pstate this restricts even the
/// processor's own choice (Documentation/admin-guide/pm/{cpufreq,intel_pstate}.rst). The driver amd-pstate-epp keeps
/// the processor at its nominal clock or above (commit 0c411b39e4f4): without boost that is the highest one.
fn at_the_upper_bound(subject: &Subject<'_>, cpu: u32) -> bool {
    let says = |file: &str| subject.facts.text(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"));
    let boosts = || subject.facts.text(BOOST) != Some("0");
    says("scaling_governor") == Some("performance")
        && says("scaling_driver").is_some_and(|name| name != "amd-pstate-epp" || !boosts())
}

fn pin(subject: &Subject<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    for cpu in subject.topology.online.iter() {
        if let Some(max) = subject.facts.number(&bound(cpu, "max")) {
            changes.extend(subject.set("cpufreq-pinned", &bound(cpu, "min"), Form::Plain, max.to_string()));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::Role;

    use super::*;
    use crate::testing::{HOSTILE, System, arm, guest, intel};

    fn governors(values: [&str; 4]) -> System {
        (0u32..).zip(values).fold(intel(&[]), |system, (cpu, value)| {
            system.and(&GOVERNOR.replace("{cpu}", &cpu.to_string()), value)
        })
    }

    fn clocks(values: [(&str, &str); 4]) -> System {
        (0u32..).zip(values).fold(arm(&[]), |system, (cpu, (min, max))| {
            system.and(&bound(cpu, "min"), min).and(&bound(cpu, "max"), max)
        })
    }

    #[test]
    fn every_cpu_wants_the_governor_performance() {
        assert_eq!(governors(["performance"; 4]).state("cpufreq-governor"), State::Ok);
        let bad = governors(["performance", "powersave", "schedutil", "performance"]);
        assert_eq!(
            bad.said("cpufreq-governor"),
            "scaling_governor is not performance or userspace on CPUs 1,2"
        );
        assert_eq!(governors(["userspace"; 4]).state("cpufreq-governor"), State::Ok, "it sets one clock");
        let fixed = (0..4).fold(governors(["schedutil"; 4]), |system, cpu| {
            system.and(&bound(cpu, "min"), "2400000").and(&bound(cpu, "max"), "2400000")
        });
        assert_eq!(fixed.state("cpufreq-governor"), State::Ok);
        assert_eq!(
            bad.wanted("cpufreq-governor"),
            [1, 2].map(|cpu| format!(
                "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor = performance"
            ))
        );
        assert_eq!(bad.changes("cpufreq-governor").len(), 4);
        assert_eq!(intel(&[]).state("cpufreq-governor"), State::NotApplicable);
        assert_eq!(guest(&[]).role(Role::Host).state("cpufreq-governor"), State::Unknowable);
        let path = GOVERNOR.replace("{cpu}", "1");
        assert_eq!(governors(["performance"; 4]).without(&path).state("cpufreq-governor"), State::Unreadable);
    }

    #[test]
    fn equal_bounds_leave_no_choice() {
        let tight = ("2100000", "2100000");
        assert_eq!(clocks([tight; 4]).state("cpufreq-pinned"), State::Ok);
        let loose = clocks([tight, tight, ("800000", "2100000"), ("800000", "2100000")]);
        assert_eq!(loose.said("cpufreq-pinned"), "the clock may be 800 to 2100 MHz on CPUs 2,3");
        let path = |cpu: u32| format!("{} = 2100000", bound(cpu, "min"));
        assert_eq!(loose.wanted("cpufreq-pinned"), [path(2), path(3)]);
        assert_eq!(arm(&[]).state("cpufreq-pinned"), State::NotApplicable);
    }

    #[test]
    fn the_governor_performance_leaves_the_upper_bound_alone() {
        let driven = |driver: &str, governor: &str| {
            (0u32..4).fold(clocks([("800000", "2100000"); 4]), |system, cpu| {
                let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
                system
                    .and(&format!("{directory}/scaling_governor"), governor)
                    .and(&format!("{directory}/scaling_driver"), driver)
            })
        };
        assert_eq!(driven("intel_pstate", "performance").state("cpufreq-pinned"), State::Ok);
        assert_eq!(driven("acpi-cpufreq", "performance").state("cpufreq-pinned"), State::Ok);
        let amd = driven("amd-pstate-epp", "performance");
        assert_eq!(amd.clone().and(BOOST, "1").state("cpufreq-pinned"), State::Finding);
        assert_eq!(
            amd.clone().and(BOOST, "0").state("cpufreq-pinned"),
            State::Ok,
            "nominal is the highest then"
        );
        assert_eq!(amd.state("cpufreq-pinned"), State::Finding);
        assert_eq!(driven("intel_pstate", "powersave").state("cpufreq-pinned"), State::Finding);
        let one = driven("acpi-cpufreq", "performance")
            .and("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "schedutil");
        assert_eq!(one.state("cpufreq-pinned"), State::Finding);
    }

    #[test]
    fn clocks_that_are_no_numbers_are_not_good() {
        for text in HOSTILE {
            let bad = clocks([(text, text), ("1", "1"), ("1", "1"), ("1", "1")]);
            assert_eq!(bad.state("cpufreq-pinned"), State::Unreadable, "{text}");
            assert_ne!(governors([text; 4]).state("cpufreq-governor"), State::Ok);
        }
    }
}
