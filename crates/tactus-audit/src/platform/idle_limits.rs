//! Limits on the sleep of CPUs: a bound on their latency, or polling.

use tactus_model::change::{Change, Form};
use tactus_model::finding::{Role, Severity};

use super::idle_states::{self, Depth, GLOBAL, NOBODY, OF_CPU, SHALLOW_US, depth};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const CMDLINE: &str = "/proc/cmdline";

pub static CHECKS: &[Check] = &[
    Check {
        id: "pm-qos",
        title: "no latency bound keeps the CPUs out of deep sleep",
        sources: &[
            Source::Osadl,
            Source::Kernel("Documentation/admin-guide/pm/cpuidle.rst"),
            Source::Tuned("latency-performance"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime, SetBy::Application],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "the 32-bit number of /dev/cpu_dma_latency; cpu*/power/pm_qos_resume_latency_us of the isolated CPUs",
        expected: "a bound of 1 to 3 us, which leaves C1 open: held in /dev/cpu_dma_latency, or set for each isolated CPU",
        why: "The bound limits the wake-up time that the idle governor may choose, for all CPUs or for one. Without \
it a wake-up from an open deep state takes up to that state's exit latency: see c-states.",
        fix: "Write 3 to /sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us of CPUs {isolated}. There 0 \
means no bound, and `n/a` a bound of zero. Or let a program write a bound of 1 to 3 us, as a 32-bit number, to \
/dev/cpu_dma_latency and keep it open; the bound ends when it closes the file. TuneD's force_latency does so.",
        risk: "Idle CPUs use more power, which can lower the boost of the others. A bound of zero makes idle \
CPUs poll if their first idle state is POLL: see latency-zero-keeps-tick. Zero is written as `0` to /dev/cpu_dma_latency \
and as `n/a` to a CPU's pm_qos_resume_latency_us.",
        judge: bound,
        changes: bounds,
    },
    Check {
        id: "idle-poll",
        title: "an idle CPU stops, and a wake-up must start it again",
        sources: &[Source::Xeon, Source::Kernel("Documentation/core-api/real-time/hardware.rst")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/proc/cmdline, and the idle states as c-states reads them",
        expected: "idle=poll, or on a host no open idle state deeper than C1 on isolated CPUs",
        why: "A CPU that polls needs no wake-up. In a guest each idle moment is a halt that leaves the guest. The \
hypervisor must then schedule the vCPU again, which takes microseconds.",
        fix: "Boot with idle=poll if every idle CPU may run at full power.",
        risk: "Heat: the processor throttles earlier and has less turbo, and a sibling thread loses half its core. \
In a guest the vCPU never idles, so everything else on its CPU starves.",
        judge: poll,
        changes: |subject| vec![subject.boot("idle-poll", "idle", "poll")],
    },
];

/// A bound of 3 us, or the one that is there already.
fn bounds(subject: &Subject<'_>) -> Vec<Change> {
    let change = |cpu: u32| {
        let path = OF_CPU.replace("{cpu}", &cpu.to_string());
        let now = subject.facts.text(&path).filter(|text| binds(text));
        subject.set("pm-qos", &path, Form::Plain, now.unwrap_or("3"))
    };
    subject.isolated().iter().filter_map(change).collect()
}

/// Whether a CPU's own bound forbids deep states. `0` is the kernel's word for no bound, `n/a` for a
/// bound of zero (drivers/base/power/sysfs.c).
fn binds(text: &str) -> bool {
    text == "n/a" || text.parse().is_ok_and(|us: u64| (1..=SHALLOW_US).contains(&us))
}

fn bound(subject: &Subject<'_>) -> Verdict {
    let each = subject.expect_per_cpu(subject.isolated(), OF_CPU, "a bound of 3 us at most", binds);
    if let Ok(judgement) = &each
        && judgement.state == tactus_model::finding::State::Ok
    {
        return each;
    }
    let global = subject.value(GLOBAL);
    if let Ok(text) = global
        && text.parse().is_ok_and(|us: u64| us <= SHALLOW_US)
    {
        return Ok(
            Judgement::ok(format!("a program limits wake-ups of all CPUs to {text} us")).read(GLOBAL, text)
        );
    }
    match depth(subject) {
        Ok(Depth::NoDriver) => {
            return Err(Judgement::not_applicable("no driver offers idle states to limit"));
        }
        Ok(Depth::Shallow(us)) => {
            return Err(Judgement::not_applicable(format!(
                "there is nothing to limit: no idle state has an exit latency above {us} us"
            )));
        }
        Ok(Depth::Closed(names)) => {
            return Err(Judgement::not_applicable(format!(
                "there is nothing to limit: {names} is disabled on the real-time CPUs"
            )));
        }
        Ok(Depth::Held(names, us)) => {
            let judgement = Judgement::ok(idle_states::held(&names, us));
            return Ok(global.iter().fold(judgement, |judgement, text| judgement.read(GLOBAL, *text)));
        }
        Ok(Depth::Open(_) | Depth::Untold(_)) => {}
        Err(judgement) => return Err(judgement),
    }
    match (global, each) {
        (Ok(text), each) => {
            let held = match text.parse::<u64>() {
                Ok(NOBODY) => "no program holds /dev/cpu_dma_latency".to_owned(),
                Ok(us) => format!("/dev/cpu_dma_latency allows {us} us"),
                Err(_) => {
                    return Err(Judgement::unreadable(format!("{GLOBAL} contains {text}")).read(GLOBAL, text));
                }
            };
            let cpus = subject.isolated();
            let mut judgement = Judgement::finding(format!("{held}, and CPUs {cpus} have no bound either"))
                .read(GLOBAL, text);
            for read in each.map_or_else(|refused| refused.read, |judgement| judgement.read) {
                judgement = judgement.read(read.path, read.value);
            }
            Ok(judgement)
        }
        // Whether somebody holds the file is not known, and so nothing is.
        (Err(refused), _) => Err(refused),
    }
}

fn poll(subject: &Subject<'_>) -> Verdict {
    let cmdline = subject.value(CMDLINE)?;
    let idle = subject.cmdline.get("idle").unwrap_or("not set");
    let judgement = if idle == "poll" {
        Judgement::ok("idle=poll: idle CPUs poll and need no wake-up")
    } else if subject.role == Role::Guest {
        match subject.facts.text("/sys/devices/system/cpu/cpuidle/current_driver") {
            Some("haltpoll") => {
                Judgement::ok("the driver haltpoll polls for a while before it halts the vCPU")
            }
            // Drivers with MWAIT, which a guest has where it may stop its CPU itself (cpu-pm=on).
            Some(driver @ ("intel_idle" | "acpi_idle")) => {
                return Err(Judgement::unknowable(format!(
                    "the driver {driver} stops the vCPU; the hypervisor decides whether that leaves the guest"
                )));
            }
            _ => Judgement::finding("an idle vCPU halts and leaves the guest at once").at(Severity::Info),
        }
    } else if subject.virtualized {
        return Err(Judgement::unknowable("this host runs on a hypervisor, which decides what a halt costs"));
    } else {
        match depth(subject)? {
            Depth::NoDriver | Depth::Shallow(_) => {
                Judgement::ok("idle CPUs go no deeper than C1; polling would save a microsecond or two")
            }
            Depth::Closed(names) => Judgement::ok(format!(
                "{names} is disabled on the real-time CPUs, which go no deeper than C1"
            )),
            Depth::Held(names, us) => Judgement::ok(idle_states::held(&names, us)),
            Depth::Untold(_) => {
                Judgement::unreadable("idle CPUs do not poll, and their idle states are unknown")
            }
            Depth::Open(open) => {
                let deepest = open.iter().max_by_key(|idle| idle.latency.unwrap_or(u64::MAX));
                let name = deepest.map_or("a deep state", |idle| idle.name);
                Judgement::finding(format!("idle CPUs do not poll, and may enter {name}"))
            }
        }
    };
    let read = if subject.cmdline.has("idle") { format!("idle={idle}") } else { "no idle=".to_owned() };
    // A command line that is cut may have said it.
    match subject.facts.0.get(CMDLINE) {
        Some(tactus_model::facts::Reading::Cut(_)) if idle != "poll" => {
            Err(Judgement::unreadable(format!("{CMDLINE} was cut after {} bytes", cmdline.len())))
        }
        _ => Ok(judgement.read(CMDLINE, read)),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, arm, guest, intel};

    const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

    fn deep(readings: &[(&str, &str)]) -> System {
        [2, 3]
            .iter()
            .fold(intel(&[(DRIVER, "intel_idle"), (CMDLINE, "quiet")]), |system, cpu| {
                let path = |file| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state2/{file}");
                system.and(&path("name"), "C6").and(&path("latency"), "133").and(&path("disable"), "0")
            })
            .with(readings)
    }

    fn of_cpus(values: [&str; 2]) -> System {
        let path = |cpu: &str| OF_CPU.replace("{cpu}", cpu);
        deep(&[(&path("2"), values[0]), (&path("3"), values[1]), (GLOBAL, "2000000000")])
    }

    #[test]
    fn zero_for_all_or_no_latency_for_each_isolated_cpu_is_good() {
        assert_eq!(deep(&[(GLOBAL, "0")]).state("pm-qos"), State::Ok);
        assert_eq!(of_cpus(["n/a", "n/a"]).state("pm-qos"), State::Ok);
        assert_eq!(of_cpus(["2", "n/a"]).state("pm-qos"), State::Ok);
    }

    #[test]
    fn zero_of_a_cpu_means_no_bound() {
        let bad = of_cpus(["0", "n/a"]);
        assert_eq!(bad.state("pm-qos"), State::Finding);
        assert_eq!(bad.wanted("pm-qos"), [format!("{} = 3", OF_CPU.replace("{cpu}", "2"))]);
        assert_eq!(bad.changes("pm-qos").len(), 2);
        assert_eq!(of_cpus(["2", "n/a"]).wanted("pm-qos"), Vec::<String>::new());
        assert_eq!(deep(&[(GLOBAL, "100")]).state("pm-qos"), State::Ok, "C6 takes longer");
        assert_eq!(deep(&[(GLOBAL, "200")]).state("pm-qos"), State::Finding);
    }

    #[test]
    fn there_must_be_a_deep_state_to_hold_back_from() {
        assert_eq!(intel(&[(DRIVER, "none"), (GLOBAL, "2000000000")]).state("pm-qos"), State::NotApplicable);
        assert_eq!(guest(&[(DRIVER, "none"), (GLOBAL, "2000000000")]).state("pm-qos"), State::NotApplicable);
        assert_eq!(deep(&[]).unreadable(GLOBAL, "Permission denied").state("pm-qos"), State::Unreadable);
        for text in HOSTILE {
            assert_ne!(deep(&[(GLOBAL, text)]).state("pm-qos"), State::Ok, "{text}");
            assert_ne!(of_cpus([text, "n/a"]).state("pm-qos"), State::Ok, "{text}");
        }
    }

    #[test]
    fn a_guest_that_stops_its_cpu_itself_is_not_said_to_leave_the_guest() {
        let idle = |driver: &str| guest(&[(DRIVER, driver), (CMDLINE, "quiet")]).state("idle-poll");
        assert_eq!((idle("intel_idle"), idle("none")), (State::Unknowable, State::Finding));
    }

    #[test]
    fn polling_is_good_and_so_is_a_host_that_sleeps_no_deeper_than_c1() {
        assert_eq!(deep(&[(CMDLINE, "quiet idle=poll")]).state("idle-poll"), State::Ok);
        assert_eq!(deep(&[(CMDLINE, "idle=poll idle=halt")]).state("idle-poll"), State::Finding);
        assert_eq!(deep(&[]).said("idle-poll"), "idle CPUs do not poll, and may enter C6");
        assert_eq!(deep(&[]).wanted("idle-poll"), ["kernel parameter idle = poll"]);
        assert_eq!(intel(&[(DRIVER, "none"), (CMDLINE, "quiet")]).state("idle-poll"), State::Ok);
    }

    #[test]
    fn a_guest_that_halts_is_told_and_not_blamed() {
        let halting = guest(&[(CMDLINE, "quiet"), (DRIVER, "none")]).finding("idle-poll");
        assert_eq!((halting.state, halting.severity), (State::Finding, Severity::Info));
        assert_eq!(guest(&[(CMDLINE, ""), (DRIVER, "haltpoll")]).state("idle-poll"), State::Ok);
        assert_eq!(arm(&[(CMDLINE, "")]).state("idle-poll"), State::NotApplicable);
        let cut = "x".repeat(20_000);
        assert_eq!(guest(&[(CMDLINE, &cut)]).state("idle-poll"), State::Unreadable);
    }
}
