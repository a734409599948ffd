//! Automatic NUMA balancing.

use tactus_model::change::Form;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

pub static CHECKS: &[Check] = &[Check {
    id: "numa-balancing",
    title: "the kernel unmaps pages to see which node uses them",
    sources: &[
        Source::Kernel("Documentation/admin-guide/sysctl/kernel.rst"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: BALANCING,
    expected: "0; a PREEMPT_RT kernel does not have it",
    why: "To find out which node a thread uses, the kernel unmaps ranges of its memory at intervals. The next access \
faults, and may copy the page to another node within the fault.",
    fix: "Write 0 to /proc/sys/kernel/numa_balancing (kernel.numa_balancing = 0 in /etc/sysctl.d), or boot with \
numa_balancing=disable. Place memory by hand instead (numactl, <numatune mode='strict'>).",
    risk: "Programs with memory that is not placed use remote memory for longer.",
    judge,
    changes: |subject| subject.set("numa-balancing", BALANCING, Form::Plain, "0").into_iter().collect(),
}];

/// Bits of the setting: Documentation/admin-guide/sysctl/kernel.rst.
fn judge(subject: &Subject<'_>) -> Verdict {
    let value = match subject.number(BALANCING) {
        Err(judgement) if subject.kernel.rt => {
            return Err(Judgement {
                said: format!("{} (PREEMPT_RT excludes it)", judgement.said),
                ..judgement
            });
        }
        value => value?,
    };
    let judgement = match value {
        0 => Judgement::ok("automatic NUMA balancing is off"),
        2 => Judgement::finding("NUMA balancing moves pages between tiers of memory"),
        _ => Judgement::finding("automatic NUMA balancing is on"),
    };
    Ok(judgement.read(BALANCING, value.to_string()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn off_is_good_and_any_other_mode_is_not() {
        let state = |text| intel(&[(BALANCING, text)]).state("numa-balancing");
        assert_eq!(state("0"), State::Ok);
        assert!(["1", "2", "3"].iter().all(|text| state(text) == State::Finding));
        assert!(HOSTILE.iter().all(|text| state(text) == State::Unreadable));
        assert_eq!(intel(&[(BALANCING, "1")]).wanted("numa-balancing"), [format!("{BALANCING} = 0")]);
    }

    #[test]
    fn a_kernel_that_has_none_is_not_concerned_and_a_real_time_one_says_why() {
        assert_eq!(intel(&[]).state("numa-balancing"), State::NotApplicable);
        let rt = intel(&[("uname:version", "#1 SMP PREEMPT_RT Debian")]);
        assert_eq!(rt.state("numa-balancing"), State::NotApplicable);
        assert!(rt.said("numa-balancing").ends_with("(PREEMPT_RT excludes it)"));
    }
}
