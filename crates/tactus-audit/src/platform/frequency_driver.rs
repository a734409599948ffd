//! Whether the processor chooses its clock by itself, and what it is told to aim at.

use tactus_model::CpuSet;
use tactus_model::change::{Change, Form};
use tactus_model::finding::{Severity, State};

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const DRIVER: &str = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver";
const INTEL: &str = "/sys/devices/system/cpu/intel_pstate/status";
const AMD: &str = "/sys/devices/system/cpu/amd_pstate/status";
const BIAS: &str = "/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias";
const PREFERENCE: &str = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/energy_performance_preference";

pub static CHECKS: &[Check] = &[
    Check {
        id: "pstate-driver",
        title: "the kernel's governors do not choose the clock",
        sources: &[Source::Xeon, Source::Kernel("Documentation/admin-guide/pm/intel_pstate.rst")],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: true,
        reads: "cpu*/cpufreq/scaling_driver, /sys/devices/system/cpu/{intel_pstate,amd_pstate}/status, the flag hwp",
        expected: "a driver that lets the kernel choose the clock (acpi-cpufreq, amd-pstate), or none",
        why: "With hardware P-states the processor changes its clock by its own measure of the load, at unknown \
times. It has them in the active mode of amd-pstate, and of intel_pstate if it supports them. Without them the \
active mode of intel_pstate follows the load by an internal rule instead of a governor.",
        fix: "Boot with intel_pstate=disable (Intel) or amd_pstate=disable (AMD), as the TuneD profiles for real time do.",
        risk: "acpi-cpufreq may not know the highest clocks, and needs the firmware's tables: without them the clock \
stays where the firmware left it. If the firmware turned on hardware P-states, the kernel ignores \
intel_pstate=disable (its log: HWP enabled by BIOS). Then turn them off in the firmware (Speed Shift).",
        judge: driver,
        changes: disable,
    },
    Check {
        id: "epb-epp-hwp",
        title: "the processor is set to save energy",
        sources: &[
            Source::Kernel("Documentation/admin-guide/pm/intel_epb.rst"),
            Source::Kernel("Documentation/admin-guide/pm/intel_pstate.rst"),
            Source::Tuned("latency-performance"),
        ],
        applies: &[Applies::Host],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: true,
        reads: "cpu*/power/energy_perf_bias, cpu*/cpufreq/energy_performance_preference",
        expected: "0 and performance",
        why: "The two hints weigh speed against energy in decisions of the processor: how fast the clock rises, \
turbo, how soon caches and interconnect slow down.",
        fix: "Write 0 to /sys/devices/system/cpu/cpu*/power/energy_perf_bias and performance to \
/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference. In the active modes of intel_pstate and \
amd-pstate the governor performance (cpufreq-governor) also sets the preference.",
        risk: "Power.",
        judge: hints,
        changes: hint,
    },
];

fn driver(subject: &Subject<'_>) -> Verdict {
    let mut drivers: std::collections::BTreeMap<&str, CpuSet> = std::collections::BTreeMap::new();
    let (mut unread, mut refused) = (CpuSet::default(), None);
    for cpu in subject.topology.online.iter() {
        match subject.value(&DRIVER.replace("{cpu}", &cpu.to_string())) {
            Ok(name) => drivers.entry(name).or_default().insert(cpu),
            Err(judgement) => {
                unread.insert(cpu);
                refused = Some(judgement.or_refused(refused));
            }
        }
    }
    if drivers.is_empty() {
        return Err(match refused {
            Some(refused) if refused.state == State::Unreadable => refused,
            _ => Judgement::not_applicable("no driver sets the clock of this processor"),
        });
    }
    let autonomous: Vec<String> = drivers
        .iter()
        .filter_map(|(name, cpus)| Some(format!("{} on CPUs {cpus}", autonomous(subject, name)?)))
        .collect();
    let names = drivers.keys().copied().collect::<Vec<_>>().join(", ");
    let mut judgement = if !autonomous.is_empty() {
        Judgement::finding(format!("the governors do not choose the clock: {}", autonomous.join("; ")))
    } else if !unread.is_empty() {
        Judgement::unreadable(format!("the driver of CPUs {unread} could not be read"))
    } else if drivers.keys().all(|name| !name.is_empty()) {
        Judgement::ok(format!("the kernel chooses the clock, with {names}"))
    } else {
        Judgement::unreadable("the name of the driver is empty")
    };
    for (name, cpus) in &drivers {
        judgement = judgement.read(DRIVER.replace("{cpu}", &format!("{{{cpus}}}")), *name);
    }
    for path in [INTEL, AMD] {
        if let Some(status) = subject.facts.text(path) {
            judgement = judgement.read(path, status);
        }
    }
    Ok(judgement)
}

/// Why the processor chooses under this driver; `None` where the kernel does. The names: intel_pstate
/// is the active mode, intel_cpufreq the passive one; amd-pstate-epp is active, amd-pstate passive or
/// guided (Documentation/admin-guide/pm).
fn autonomous(subject: &Subject<'_>, driver: &str) -> Option<String> {
    match driver {
        "intel_pstate" => Some(if subject.flag("hwp") == Some(false) || subject.cmdline_says_no_hwp() {
            "intel_pstate is active and follows the load by its own rule".into()
        } else {
            "intel_pstate is active, with hardware P-states".into()
        }),
        "amd-pstate-epp" => Some("amd-pstate is active".into()),
        "amd-pstate" if subject.facts.text(AMD) == Some("guided") => Some("amd-pstate is guided".into()),
        "intel_cpufreq" if subject.flag("hwp") != Some(false) && !subject.cmdline_says_no_hwp() => {
            Some("intel_pstate is passive, and hardware P-states choose above its request".into())
        }
        _ => None,
    }
}

impl Subject<'_> {
    fn cmdline_says_no_hwp(&self) -> bool {
        self.cmdline.all("intel_pstate").flatten().any(|value| value.split(',').any(|word| word == "no_hwp"))
    }
}

fn disable(subject: &Subject<'_>) -> Vec<Change> {
    let parameter = match subject.vendor.as_str() {
        "GenuineIntel" => "intel_pstate",
        "AuthenticAMD" | "HygonGenuine" => "amd_pstate",
        _ => return Vec::new(),
    };
    vec![subject.boot("pstate-driver", parameter, "disable")]
}

/// `0` is what the number for performance is read as where it is not told by its word.
fn is_fast(text: &str) -> bool {
    matches!(text, "performance" | "0")
}

fn hints(subject: &Subject<'_>) -> Verdict {
    let online = &subject.topology.online;
    let bias = subject.expect_per_cpu(online, BIAS, "0 (performance)", is_fast);
    let preference = subject.expect_per_cpu(online, PREFERENCE, "performance", is_fast);
    let (bias, preference) = match (bias, preference) {
        (Err(one), Err(other)) => {
            let refused = [one, other].into_iter().find(|it| it.state == State::Unreadable);
            return Err(refused
                .unwrap_or_else(|| Judgement::not_applicable("the processor takes no hints about energy")));
        }
        // A hint that does not exist is not needed; one that cannot be read leaves the answer open.
        (Ok(one), Err(other)) | (Err(other), Ok(one)) if other.state == State::NotApplicable => {
            return Ok(one);
        }
        (Ok(one), Err(other)) | (Err(other), Ok(one)) => {
            return if one.state == State::Finding { Ok(one) } else { Err(other) };
        }
        (Ok(bias), Ok(preference)) => (bias, preference),
    };
    let rank =
        |state: State| [State::Finding, State::Unreadable].iter().position(|it| *it == state).unwrap_or(2);
    let mut both = Judgement::ok("the processor is set to be fast on all CPUs");
    if (bias.state, preference.state) != (State::Ok, State::Ok) {
        let bad = [&bias, &preference].into_iter().filter(|it| it.state != State::Ok);
        both.said = bad.map(|it| it.said.as_str()).collect::<Vec<_>>().join("; ");
        both.state = if rank(bias.state) < rank(preference.state) { bias.state } else { preference.state };
    }
    both.read = bias.read.into_iter().chain(preference.read).collect();
    Ok(both)
}

/// Whether the driver sets the preference together with the governor. With the governor `performance`, every other
/// preference is refused with EBUSY (intel_pstate_set_energy_pref_index() and its counterpart of amd-pstate). That
/// includes the former one, so that a change could not be reverted. There the governor's change (cpufreq-governor)
/// sets and reverts the preference.
fn bound_to_the_governor(subject: &Subject<'_>, cpu: u32) -> bool {
    let driver = subject.facts.text(&DRIVER.replace("{cpu}", &cpu.to_string()));
    matches!(driver, Some("intel_pstate" | "amd-pstate-epp"))
}

fn hint(subject: &Subject<'_>) -> Vec<Change> {
    let online = &subject.topology.online;
    let mut changes = subject.set_per_cpu("epb-epp-hwp", online, BIAS, Form::Plain, "0");
    let free: CpuSet = online.iter().filter(|cpu| !bound_to_the_governor(subject, *cpu)).collect();
    changes.extend(subject.set_per_cpu("epb-epp-hwp", &free, PREFERENCE, Form::Plain, "performance"));
    changes
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::Role;

    use super::*;
    use crate::testing::{HOSTILE, System, amd, arm, guest, intel};

    fn of_all(mut system: System, path: &str, value: &str) -> System {
        for cpu in 0..4 {
            system = system.and(&path.replace("{cpu}", &cpu.to_string()), value);
        }
        system
    }

    #[test]
    fn a_driver_by_which_the_kernel_chooses_is_good() {
        assert_eq!(of_all(intel(&[]), DRIVER, "acpi-cpufreq").state("pstate-driver"), State::Ok);
        assert_eq!(of_all(intel(&[]), DRIVER, "intel_cpufreq").state("pstate-driver"), State::Ok);
        assert_eq!(of_all(amd(&[(AMD, "passive")]), DRIVER, "amd-pstate").state("pstate-driver"), State::Ok);
        assert_eq!(intel(&[]).state("pstate-driver"), State::NotApplicable);
        assert_eq!(arm(&[]).state("pstate-driver"), State::NotApplicable);
        assert_eq!(guest(&[]).role(Role::Host).state("pstate-driver"), State::Unknowable);
    }

    #[test]
    fn a_processor_that_chooses_by_itself_is_found() {
        let active = of_all(intel(&[(INTEL, "active")]), DRIVER, "intel_pstate");
        assert_eq!(
            active.said("pstate-driver"),
            "the governors do not choose the clock: intel_pstate is active and follows the load by its own rule on CPUs 0-3"
        );
        assert_eq!(active.wanted("pstate-driver"), ["kernel parameter intel_pstate = disable"]);
        let guided = of_all(amd(&[(AMD, "guided")]), DRIVER, "amd-pstate");
        assert_eq!(guided.wanted("pstate-driver"), ["kernel parameter amd_pstate = disable"]);
        assert_eq!(guided.state("pstate-driver"), State::Finding);
        let hwp = ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu hwp hwp_epp\n");
        let hardware = of_all(intel(&[hwp]), DRIVER, "intel_pstate");
        assert!(hardware.said("pstate-driver").contains("with hardware P-states"));
        assert_eq!(of_all(intel(&[hwp]), DRIVER, "intel_cpufreq").state("pstate-driver"), State::Finding);
        let without =
            of_all(intel(&[hwp, ("/proc/cmdline", "intel_pstate=no_hwp,passive")]), DRIVER, "intel_cpufreq");
        assert_eq!(without.state("pstate-driver"), State::Ok);
        let one = intel(&[("/sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "acpi-cpufreq")]);
        assert_eq!(one.state("pstate-driver"), State::Unreadable);
    }

    #[test]
    fn both_hints_are_wanted_where_they_are_there() {
        let bias = of_all(intel(&[]), BIAS, "0");
        assert_eq!(bias.state("epb-epp-hwp"), State::Ok);
        let both = of_all(bias.clone(), PREFERENCE, "balance_performance");
        assert_eq!(both.said("epb-epp-hwp"), "energy_performance_preference is not performance on CPUs 0-3");
        assert_eq!((both.wanted("epb-epp-hwp").len(), both.changes("epb-epp-hwp").len()), (4, 8));
        // There the governor brings it along.
        let bound = of_all(both.clone(), DRIVER, "intel_pstate");
        assert_eq!((bound.state("epb-epp-hwp"), bound.changes("epb-epp-hwp").len()), (State::Finding, 4));
        assert_eq!(of_all(bias.clone(), PREFERENCE, "performance").state("epb-epp-hwp"), State::Ok);
        assert_eq!(of_all(amd(&[]), PREFERENCE, "power").state("epb-epp-hwp"), State::Finding);
        assert_eq!(intel(&[]).state("epb-epp-hwp"), State::NotApplicable);
        let first = PREFERENCE.replace("{cpu}", "0");
        assert_eq!(bias.unreadable(&first, "denied").state("epb-epp-hwp"), State::Unreadable);
    }

    #[test]
    fn hostile_words_are_not_good() {
        for text in HOSTILE {
            assert_eq!(of_all(intel(&[]), BIAS, text).state("epb-epp-hwp"), State::Finding, "{text}");
            let _ = of_all(intel(&[(INTEL, text)]), DRIVER, text).finding("pstate-driver");
        }
        assert_eq!(of_all(intel(&[]), DRIVER, "").state("pstate-driver"), State::Unreadable);
    }
}
