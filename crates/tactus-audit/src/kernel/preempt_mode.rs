//! How readily a kernel without PREEMPT_RT lets a thread go before another.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const MODE: &str = "/sys/kernel/debug/sched/preempt";

pub static CHECKS: &[Check] = &[Check {
    id: "preempt-mode",
    title: "ordinary kernel code is preempted only at certain points",
    sources: &[
        Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
        Source::Kernel("kernel/sched/core.c"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::KernelCommandLine, SetBy::RunTime],
    reversible: Reversible::Reboot,
    hardware: false,
    reads: "/sys/kernel/debug/sched/preempt; preempt= in /proc/cmdline; CONFIG_PREEMPT, CONFIG_PREEMPT_DYNAMIC",
    expected: "full, on a kernel without PREEMPT_RT",
    why: "With none and voluntary a system call runs until it sleeps or reaches a preemption point, up to \
milliseconds later. With lazy that holds among ordinary threads; real-time threads preempt at once. With full a \
thread of higher priority preempts wherever no lock forbids it. That is the best such a kernel offers, but it has no \
bound like PREEMPT_RT.",
    fix: "Boot with preempt=full (a PREEMPT_DYNAMIC kernel), or echo full > /sys/kernel/debug/sched/preempt.",
    risk: "Less throughput.",
    judge: mode,
    changes: |subject| match told(subject) {
        Some((_, true)) => vec![subject.boot("preempt-mode", "preempt", "full")],
        _ => Vec::new(),
    },
}];

/// The mode, and whether it can be chosen at boot.
fn told<'a>(subject: &Subject<'a>) -> Option<(&'a str, bool)> {
    if subject.kernel.rt {
        return None;
    }
    let option = |name: &str| subject.facts.text(&format!("config:CONFIG_{name}")) == Some("y");
    // `none voluntary (full) lazy`
    let now = subject
        .facts
        .text(MODE)
        .and_then(|text| text.split_whitespace().find_map(|word| word.strip_prefix('(')?.strip_suffix(')')));
    if let Some(mode) = now {
        return Some((mode, true));
    }
    match (option("PREEMPT_DYNAMIC"), option("PREEMPT")) {
        (false, true) => Some(("full", false)),
        (false, false) if option("PREEMPT_VOLUNTARY") => Some(("voluntary", false)),
        (false, false) if option("PREEMPT_NONE") => Some(("none", false)),
        _ => None,
    }
}

fn mode(subject: &Subject<'_>) -> Verdict {
    if subject.kernel.rt {
        return Err(Judgement::not_applicable("a PREEMPT_RT kernel is preempted everywhere"));
    }
    let asked = subject.cmdline.get("preempt");
    let Some((mode, by_choice)) = told(subject) else {
        return match asked {
            Some("full") => {
                Ok(Judgement::ok("preempt=full was chosen at boot").read("/proc/cmdline", "preempt=full"))
            }
            _ => Err(Judgement::unreadable(format!(
                "{MODE} cannot be seen, and the configuration does not decide it"
            ))),
        };
    };
    let bad = if by_choice {
        format!("the kernel uses preemption mode {mode}, and could use full")
    } else {
        format!("the kernel is built with preemption mode {mode}")
    };
    let judgement =
        Judgement::when(mode == "full", "the kernel is preempted wherever no lock forbids it", bad);
    // Real-time threads do not wait under lazy.
    let lazy = mode == "lazy" && judgement.state == tactus_model::finding::State::Finding;
    let judgement = if lazy { judgement.at(Severity::Info) } else { judgement };
    Ok(judgement.read(MODE, mode))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn a_dynamic_kernel_is_asked_for_full() {
        let id = "preempt-mode";
        let at = |text: &str| intel(&[(MODE, text)]);
        assert_eq!(at("none voluntary (full) lazy").state(id), State::Ok);
        assert_eq!(at("none (voluntary) full").wanted(id), ["kernel parameter preempt = full"]);
        assert_eq!(at("full (lazy)").finding(id).severity, Severity::Info);
        let rt = at("(none)").and("uname:version", "#1 SMP PREEMPT_RT");
        assert_eq!((rt.state(id), rt.changes(id).len()), (State::NotApplicable, 0));
        assert_eq!(intel(&[("config:CONFIG_PREEMPT", "y")]).state(id), State::Ok);
        let voluntary = intel(&[("config:CONFIG_PREEMPT_VOLUNTARY", "y")]);
        assert_eq!((voluntary.state(id), voluntary.changes(id).len()), (State::Finding, 0));
        assert_eq!(intel(&[("config:CONFIG_PREEMPT_DYNAMIC", "y")]).state(id), State::Unreadable);
        let asked = intel(&[("config:CONFIG_PREEMPT_DYNAMIC", "y"), ("/proc/cmdline", "preempt=full")]);
        assert_eq!(asked.state(id), State::Ok);
        for text in HOSTILE {
            assert_ne!(at(text).state(id), State::Ok, "{text}");
        }
    }
}
