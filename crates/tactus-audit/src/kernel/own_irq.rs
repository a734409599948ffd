//! Interrupts that were placed on isolated CPUs on purpose.

use tactus_model::finding::Severity;
use tactus_model::interrupts::Interrupt;

use super::interrupts::{is_placed, name, read};
use crate::sentence::{count, cpus_or_none, few};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "own-irq",
    title: "an interrupt may arrive on real-time CPUs only",
    sources: &[Source::Xeon],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Info,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/proc/irq/*/smp_affinity_list, affinity_hint",
    expected: "only interrupts of devices that the real-time work on CPUs {isolated} waits for",
    why: "If a real-time thread waits for a device, the device's interrupt belongs on that thread's CPU: no other \
CPU must wake it (intel-xeon-2015, 6.3). Any other interrupt there is a disturbance. Someone placed this one on \
isolated CPUs only, so you must decide which of the two it is.",
    fix: "None, if the device belongs to the real-time work. On a PREEMPT_RT kernel give the handler's thread a \
higher priority than the work that waits for it (chrt -f -p; see irq-thread-priority). Otherwise write \
{housekeeping} to its smp_affinity_list.",
    risk: "If you move it, an interrupt from another CPU must wake the device's real-time work.",
    judge: own,
    changes: no_change,
}];

fn own(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    if !subject.interrupts.known {
        subject.need("/proc/interrupts")?;
    }
    let placed: Vec<&Interrupt> = subject.interrupts.active().filter(|one| is_placed(subject, one)).collect();
    let place = cpus_or_none(isolated);
    if placed.is_empty() {
        return Ok(Judgement::ok(format!("no interrupt is placed on {place} only"))
            .read("/proc/irq/*/smp_affinity_list", "each has a housekeeping CPU"));
    }
    let said = format!(
        "{} may arrive on {place} only: {}; placed there by choice, so tactus leaves them",
        count(placed.len(), "interrupt"),
        few(placed.iter().map(name))
    );
    Ok(read(Judgement::finding(said), &placed))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, System, intel};

    const INTERRUPTS: &str = "            CPU0       CPU1       CPU2       CPU3
 26:          1          0          0          0 PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0";

    fn at(cpus: &str) -> System {
        intel(&[("/proc/interrupts", INTERRUPTS), ("/proc/irq/26/smp_affinity_list", cpus)])
    }

    #[test]
    fn an_interrupt_of_the_real_time_work_is_told_and_not_moved() {
        let found = at("2").finding("own-irq");
        assert_eq!((found.state, found.severity), (State::Finding, super::Severity::Info));
        assert!(found.message.contains("26 (eth0-rx-0)"), "{}", found.message);
        assert!(at("2").changes("own-irq").is_empty());
        assert_eq!(at("0,2").state("own-irq"), State::Ok);
        assert_eq!(at("2").and("/proc/irq/26/affinity_hint", "4").state("own-irq"), State::Ok);
        assert_eq!(intel(&[]).state("own-irq"), State::Unreadable);
    }

    #[test]
    fn rubbish_places_nothing() {
        for text in HOSTILE {
            at(text).and("/proc/irq/26/affinity_hint", text).state("own-irq");
        }
    }
}
