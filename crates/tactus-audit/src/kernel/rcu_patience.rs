//! How long RCU lets a CPU without tick be.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const DELAY: &str = "/sys/module/rcutree/parameters/nohz_full_patience_delay";

pub static CHECKS: &[Check] = &[Check {
    id: "nohz-full-patience",
    title: "RCU interrupts nohz_full CPUs as soon as they enter the kernel",
    sources: &[
        Source::Kernel("commit 68d124b09999"),
        Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::KernelCommandLine],
    reversible: Reversible::Reboot,
    hardware: false,
    reads: "/sys/module/rcutree/parameters/nohz_full_patience_delay; /sys/devices/system/cpu/nohz_full",
    expected: "a few hundred milliseconds, or TuneD's 1000, where CPUs are nohz_full",
    why: "When a nohz_full CPU enters the kernel during a grace period, RCU starts its softirq or thread there. \
Since Linux 6.11 RCU can wait some milliseconds first. A vCPU that enters and leaves its guest has left the kernel \
long before.",
    fix: "Boot with rcutree.nohz_full_patience_delay=1000.",
    risk: "A grace period may take up to a second longer, and memory is freed that much later.",
    judge: patience,
    changes: |subject| match subject.facts.text(DELAY) {
        Some(_) if !subject.topology.nohz_full.is_empty() => {
            vec![subject.boot("nohz-full-patience", "rcutree.nohz_full_patience_delay", "1000")]
        }
        _ => Vec::new(),
    },
}];

fn patience(subject: &Subject<'_>) -> Verdict {
    if subject.topology.nohz_full.is_empty() {
        return Err(Judgement::not_applicable("no CPU is nohz_full"));
    }
    let delay = subject.number(DELAY)?;
    Ok(Judgement::when(
        delay > 0,
        format!("RCU leaves nohz_full CPUs alone for {delay} ms"),
        "RCU asks nohz_full CPUs for a quiescent state as soon as they enter the kernel",
    )
    .read(DELAY, delay.to_string()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn patience_is_for_cpus_without_tick() {
        let id = "nohz-full-patience";
        let nohz = |delay: &str| intel(&[(DELAY, delay), ("/sys/devices/system/cpu/nohz_full", "2-3")]);
        assert_eq!(nohz("1000").state(id), State::Ok);
        assert_eq!(nohz("0").state(id), State::Finding);
        assert_eq!(nohz("0").wanted(id), ["kernel parameter rcutree.nohz_full_patience_delay = 1000"]);
        assert_eq!(intel(&[(DELAY, "0")]).state(id), State::NotApplicable);
        assert_eq!(nohz("0").absent(DELAY).state(id), State::NotApplicable, "before 6.11");
        for text in HOSTILE.iter().filter(|text| text.parse::<u64>().is_err()) {
            assert_ne!(nohz(text).state(id), State::Ok, "{text}");
        }
    }
}
