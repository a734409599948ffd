//! Tracers that cost time while they are not used.

use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "latency-tracers",
    title: "the kernel has tracers that cost time while off",
    sources: &[Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst")],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::Installation],
    reversible: Reversible::Reboot,
    hardware: false,
    reads: "CONFIG_IRQSOFF_TRACER, CONFIG_PREEMPT_TRACER",
    expected: "n: IRQSOFF_TRACER, PREEMPT_TRACER. All other tracers may be built in, but must be off",
    why: "They hook every place that turns interrupts or preemption off and on, which costs latency even without a \
trace. The kernel's document on real-time configuration rates them \"high\". It recommends the other tracers \
(osnoise, timerlat, hwlat, function), which cost nothing while off.",
    fix: "Boot another kernel of the distribution, or build one without these two. timerlat and osnoise find the same \
sections.",
    risk: "None.",
    judge: built_in,
    changes: no_change,
}];

const TRACERS: [&str; 2] = ["IRQSOFF_TRACER", "PREEMPT_TRACER"];

fn built_in(subject: &Subject<'_>) -> Verdict {
    let source = subject.need("config:source")?;
    let (mut found, mut hidden) = (Vec::new(), Vec::new());
    for tracer in TRACERS {
        match subject.facts.0.get(&format!("config:CONFIG_{tracer}")) {
            Some(Reading::Text(value) | Reading::Cut(value)) if value.trim() == "y" => found.push(tracer),
            Some(Reading::Text(_) | Reading::Cut(_) | Reading::Absent) => {}
            Some(Reading::Unreadable(_)) | None => hidden.push(tracer),
        }
    }
    if found.is_empty() && !hidden.is_empty() {
        let why = format!("the facts do not include CONFIG_{}", hidden.join(" and CONFIG_"));
        return Err(Judgement::unreadable(why).read("config:source", source));
    }
    let bad = format!("this kernel is built with {}", found.join(" and "));
    let judgement = Judgement::when(found.is_empty(), "no tracer of this kernel costs time while off", bad)
        .read("config:source", source);
    Ok(found.iter().fold(judgement, |judgement, tracer| judgement.read(format!("CONFIG_{tracer}"), "y")))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, System, intel};

    const IRQSOFF: &str = "config:CONFIG_IRQSOFF_TRACER";
    const PREEMPT: &str = "config:CONFIG_PREEMPT_TRACER";

    fn built(irqsoff: &str) -> System {
        intel(&[("config:source", "/boot/config"), (IRQSOFF, irqsoff)]).absent(PREEMPT)
    }

    #[test]
    fn the_two_that_hook_every_critical_section_are_found() {
        let found = built("y").finding("latency-tracers");
        assert_eq!(
            (found.state, &*found.message),
            (State::Finding, "this kernel is built with IRQSOFF_TRACER")
        );
        assert_eq!(built("n").state("latency-tracers"), State::Ok);
        assert_eq!(built("n").without(PREEMPT).state("latency-tracers"), State::Unreadable);
        assert_eq!(intel(&[]).state("latency-tracers"), State::Unreadable);
        for text in HOSTILE {
            built(text).state("latency-tracers");
        }
    }
}
