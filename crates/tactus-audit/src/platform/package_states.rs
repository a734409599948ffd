//! Idle states that the processor takes by itself, behind the kernel's back.

use std::collections::BTreeSet;

use tactus_model::CpuSet;
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use super::idle_states::{Depth, depth};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "c1e-package-cstate",
    title: "the processor makes idle states deeper than requested",
    sources: &[
        Source::Kernel("drivers/idle/intel_idle.c"),
        Source::Kernel("Documentation/admin-guide/pm/intel_idle.rst"),
        Source::Kernel("tools/power/x86/turbostat/turbostat.c"),
    ],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::Intel,
    set: &[SetBy::Firmware],
    reversible: Reversible::Reboot,
    hardware: true,
    reads: "MSR 0x1FC bit 1 (C1E promotion) and MSR 0xE2 bits 3:0 (package C-state limit) of one CPU of each package",
    expected: "bit 1 is 0, and the limit is C0/C1 (0), or no isolated CPU goes deeper than C1",
    why: "With C1E the processor lowers clock and voltage when all its cores halt in C1. Package C-states put \
caches, links and memory controllers to sleep. A wake-up takes microseconds to tens of microseconds more, and no \
setting of the kernel shows it. A package sleeps only when each of its cores requests a state deeper than C1: \
isolated CPUs without deep states (c-states) keep their package awake.",
    fix: "In the firmware's setup turn off C1E (Enhanced Halt State) and set the package C-state limit to C0/C1. \
Fixing c-states has the same effect as the limit.",
    risk: "Power.",
    judge: package,
    changes: no_change,
}];

/// Models whose limit 0 means no limit: Airmont, Goldmont, Goldmont Plus, Denverton, Tremont
/// (amt_ and glm_pkg_cstate_limits of the kernel's turbostat).
const ZERO_IS_UNLIMITED: &[&str] = &["76", "92", "95", "122", "134", "150", "156"];

/// Whether each package contains an isolated CPU that goes no deeper than C1. C1 is a state of the core alone, and a
/// package sleeps only when all of its cores do (Documentation/admin-guide/pm/intel_idle.rst, "Core and Package
/// Levels of Idle States").
fn keeps_packages_awake(subject: &Subject<'_>) -> bool {
    let package = |cpu: u32| {
        subject.facts.number(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"))
    };
    let packages = |cpus: &CpuSet| cpus.iter().map(package).collect::<Option<BTreeSet<u64>>>();
    let isolated = packages(subject.isolated());
    isolated.is_some_and(|isolated| Some(isolated) == packages(&subject.topology.online))
        && matches!(
            depth(subject),
            Ok(Depth::NoDriver | Depth::Shallow(_) | Depth::Closed(_) | Depth::Held(..))
        )
}

fn package(subject: &Subject<'_>) -> Verdict {
    let (mut promoting, mut deep, mut refused) = (Vec::new(), Vec::new(), None);
    let (mut read, mut seen) = (Vec::new(), [false; 2]);
    let awake = keeps_packages_awake(subject);
    let unlimited = subject
        .facts
        .field("/proc/cpuinfo", "model", ':')
        .is_some_and(|model| ZERO_IS_UNLIMITED.contains(&model));
    for (name, reading) in subject.facts.under("msr:") {
        let Some((cpu, register)) = name.trim_start_matches("msr:").split_once(':') else { continue };
        let which = match register {
            "0x1fc" => 0,
            "0xe2" => 1,
            _ => continue,
        };
        let text = match reading {
            Reading::Text(text) | Reading::Cut(text) => text.trim(),
            Reading::Unreadable(reason) => {
                refused = Some(format!("{name} could not be read: {reason}"));
                continue;
            }
            Reading::Absent => continue,
        };
        let Some(value) = text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) else {
            refused = Some(format!("{name} contains {text}"));
            continue;
        };
        read.push((format!("MSR {register} of CPU {cpu}"), text.to_owned()));
        if let Some(seen) = seen.get_mut(which) {
            *seen = true;
        }
        if which == 0 && value & 2 != 0 {
            promoting.push(cpu);
        }
        if which == 1 && !awake && (value & 0xf != 0 || unlimited) {
            deep.push(format!("{} on CPU {cpu}'s package", value & 0xf));
        }
    }
    let judgement = if !promoting.is_empty() || !deep.is_empty() {
        let mut words = Vec::new();
        if !promoting.is_empty() {
            words.push(format!("C1 becomes C1E (CPU {})", promoting.join(", ")));
        }
        if !deep.is_empty() {
            words.push(format!("the package C-state limit allows more than C1 (limit {})", deep.join(", ")));
        }
        Judgement::finding(words.join(", and "))
    } else if let Some(refused) = refused {
        Judgement::unreadable(refused)
    } else if seen == [true; 2] {
        Judgement::ok("C1 stays C1, and packages stay awake")
    } else {
        Judgement::unreadable("no registers of the processor were read: load the module msr and be root")
    };
    Ok(read.into_iter().fold(judgement, |judgement, (path, value)| judgement.read(path, value)))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use crate::testing::{HOSTILE, amd, guest, intel};

    const ID: &str = "c1e-package-cstate";

    #[test]
    fn neither_promotion_nor_package_states_are_good() {
        assert_eq!(intel(&[("msr:0:0x1fc", "0x2904005d"), ("msr:0:0xe2", "0x8400")]).state(ID), State::Ok);
    }

    #[test]
    fn promotion_and_a_deep_limit_are_found_each() {
        assert_eq!(
            intel(&[("msr:0:0x1fc", "0x2"), ("msr:0:0xe2", "0x0")]).said(ID),
            "C1 becomes C1E (CPU 0)"
        );
        let deep = intel(&[("msr:0:0x1fc", "0x0"), ("msr:0:0xe2", "0x0"), ("msr:8:0xe2", "0x1e000403")]);
        assert!(deep.said(ID).contains("limit 3 on CPU 8's package"), "{}", deep.said(ID));
        let cpuinfo = "vendor_id : GenuineIntel\nmodel\t\t: 95\nflags : fpu\n";
        let atom = intel(&[("msr:0:0x1fc", "0x0"), ("msr:0:0xe2", "0x0"), ("/proc/cpuinfo", cpuinfo)]);
        assert_eq!(atom.state(ID), State::Finding);
    }

    #[test]
    fn a_package_whose_isolated_cpus_stay_in_c1_does_not_sleep_whatever_its_limit() {
        let deep = (0..4).fold(
            intel(&[
                ("msr:0:0x1fc", "0x0"),
                ("msr:0:0xe2", "0x8"),
                ("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle"),
            ]),
            |system, cpu| {
                let path = |file: &str| format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
                system
                    .and(&path("topology/physical_package_id"), "0")
                    .and(&path("cpuidle/state1/name"), "C6")
                    .and(&path("cpuidle/state1/latency"), "170")
                    .and(&path("cpuidle/state1/disable"), "0")
            },
        );
        assert_eq!(deep.state(ID), State::Finding);
        let held = deep.clone().and("/dev/cpu_dma_latency", "2");
        assert_eq!(held.state(ID), State::Ok);
        // Without an isolated CPU nothing keeps a package awake.
        let other = held.and("/sys/devices/system/cpu/cpu0/topology/physical_package_id", "1");
        assert_eq!(other.state(ID), State::Finding);
        let promoted = deep.and("/dev/cpu_dma_latency", "2").and("msr:0:0x1fc", "0x2");
        assert_eq!(promoted.said(ID), "C1 becomes C1E (CPU 0)");
    }

    #[test]
    fn registers_that_were_not_read_are_not_good() {
        assert_eq!(intel(&[]).state(ID), State::Unreadable);
        assert_eq!(intel(&[("msr:0:0x1fc", "0x0")]).state(ID), State::Unreadable);
        assert_eq!(
            intel(&[("msr:0:0xe2", "0x0")]).unreadable("msr:0:0x1fc", "denied").state(ID),
            State::Unreadable
        );
        assert_eq!(amd(&[]).state(ID), State::NotApplicable);
        assert_eq!(guest(&[("msr:0:0x1fc", "0x0")]).role(Role::Host).state(ID), State::Unknowable);
        for text in HOSTILE {
            assert_eq!(intel(&[("msr:0:0x1fc", text), ("msr:0:0xe2", "0x0")]).state(ID), State::Unreadable);
        }
    }
}
