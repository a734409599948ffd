//! The effect of a bound of zero latency on idle CPUs.

use tactus_model::CpuSet;
use tactus_model::finding::Severity;

use super::idle_states::{Depth, GLOBAL, NAMELESS, OF_CPU, bound, depth, of};
use crate::sentence::cpus_or_none;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "latency-zero-keeps-tick",
    title: "a latency bound of zero makes idle CPUs poll, and keeps their tick",
    sources: &[
        Source::Kernel("drivers/cpuidle/governors/menu.c"),
        Source::Kernel("Documentation/admin-guide/pm/cpuidle.rst"),
        Source::Tuned("latency-performance"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Info,
    arch: Arch::Any,
    set: &[SetBy::RunTime, SetBy::Application],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/dev/cpu_dma_latency; cpu*/power/pm_qos_resume_latency_us and cpu*/cpuidle/state0/name of the isolated CPUs",
    expected: "1 to 3 us, which leaves C1 open",
    why: "With a bound of zero the idle governor takes the first state. If that state polls (POLL), the governor \
tells the kernel to keep the tick. An idle CPU then burns power and has no tickless idle (unless nohz_full had \
stopped it before). It takes half of its core from its sibling thread. C1 takes a microsecond or two to leave.",
    fix: "Write 3 instead of n/a to pm_qos_resume_latency_us of CPUs {isolated}. If a program holds \
/dev/cpu_dma_latency at 0, make it write the exit latency of C1 (TuneD: force_latency=cstate.id_no_zero:1|3).",
    risk: "A wake-up takes one or two microseconds longer, to leave C1.",
    judge: zero,
    changes: no_change,
}];

fn zero(subject: &Subject<'_>) -> Verdict {
    if let Depth::NoDriver = depth(subject)? {
        return Err(Judgement::not_applicable("no driver offers idle states to choose from"));
    }
    let isolated = subject.isolated();
    if let Some(name) = isolated.iter().find_map(|cpu| rests(subject, cpu)) {
        let said = format!("the first idle state is {name}, which does not poll");
        return Err(Judgement::not_applicable(said).read("cpu*/cpuidle/state0/name", name));
    }
    let held: CpuSet = isolated.iter().filter(|cpu| bound(subject, *cpu) == Some(0)).collect();
    let place = cpus_or_none(&held);
    let bad = match held.len() {
        1 => format!("{place} polls while idle, and keeps its tick"),
        _ => format!("{place} poll while idle, and keep their tick"),
    };
    let judgement = Judgement::when(held.is_empty(), "no bound of zero is set on the real-time CPUs", bad);
    let own = held.first().map(|cpu| OF_CPU.replace("{cpu}", &cpu.to_string()));
    let shown = [Some(GLOBAL.to_owned()), own].into_iter().flatten();
    let judgement = shown.fold(judgement, |judgement, path| match subject.facts.text(&path) {
        Some(text) => judgement.read(&path, text),
        None => judgement,
    });
    // Whether a program holds the file is not known, and so nothing is.
    match subject.value(GLOBAL) {
        Err(refused) if held.is_empty() => Err(refused),
        _ => Ok(judgement),
    }
}

/// The name of a CPU's first idle state, where it is known to be another than the kernel's polling one
/// (`cpuidle_poll_state_init` in drivers/cpuidle/poll_state.c), which old kernels call C0.
fn rests<'a>(subject: &Subject<'a>, cpu: u32) -> Option<&'a str> {
    let first = of(subject, cpu).into_iter().find(|idle| idle.state == 0)?;
    (!matches!(first.name, "POLL" | "C0" | NAMELESS)).then_some(first.name)
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::{GLOBAL, OF_CPU};
    use crate::testing::{HOSTILE, System, intel};

    const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

    fn held(global: &str) -> System {
        let latency = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state1/latency");
        intel(&[(DRIVER, "intel_idle"), (GLOBAL, global), (&latency(2), "2"), (&latency(3), "2")])
    }

    #[test]
    fn zero_polls_and_three_does_not() {
        let id = "latency-zero-keeps-tick";
        assert_eq!(held("0").state(id), State::Finding);
        assert_eq!(held("3").state(id), State::Ok);
        assert_eq!(held("2000000000").state(id), State::Ok);
        let own = held("3").and(&OF_CPU.replace("{cpu}", "3"), "n/a");
        assert_eq!(own.said(id), "CPU 3 polls while idle, and keeps its tick");
        let named = |name: &str| held("0").and("/sys/devices/system/cpu/cpu2/cpuidle/state0/name", name);
        assert_eq!((named("POLL").state(id), named("C0").state(id)), (State::Finding, State::Finding));
        assert_eq!(named("WFI").state(id), State::NotApplicable);
        assert_eq!(named("WFI").said(id), "the first idle state is WFI, which does not poll");
        assert_eq!(held("0").and(DRIVER, "none").state(id), State::NotApplicable);
        assert_eq!(held("").unreadable(GLOBAL, "Permission denied").state(id), State::Unreadable);
        for text in HOSTILE {
            held(text).state(id);
        }
    }
}
