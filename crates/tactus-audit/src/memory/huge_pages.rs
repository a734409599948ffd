//! Huge pages that the kernel makes by itself.

use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Reversible, SetBy, Source, Subject};

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

pub static CHECKS: &[Check] = &[Check {
    id: "thp",
    title: "the kernel makes huge pages behind the application's back",
    sources: &[
        Source::Kernel("Documentation/admin-guide/mm/transhuge.rst"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::RunTime, SetBy::KernelCommandLine],
    reversible: Reversible::Yes,
    hardware: false,
    reads: ENABLED,
    expected: "never",
    why: "To make a huge page the kernel compacts memory and copies pages, within the fault of the thread \
that touched it or from khugepaged, which takes mmap_lock: the thread stands still meanwhile.",
    mend: "Write never to /sys/kernel/mm/transparent_hugepage/enabled, and boot with \
transparent_hugepage=never. Applications that want huge pages reserve them (hugetlbfs).",
    risk: "Programs with large heaps miss the TLB more often.",
    judge: |subject| subject.expect(ENABLED, Form::Choice, "never"),
    changes,
}];

/// Huge pages that were made stay until they are split: after a boot with `never` there are none.
fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let Some(now) = subject.set("thp", ENABLED, Form::Choice, "never") else { return Vec::new() };
    vec![now, subject.boot("thp", "transparent_hugepage", "never")]
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, blank, intel};

    #[test]
    fn only_never_is_good_and_a_kernel_without_it_is_not_concerned() {
        let state = |text| intel(&[(ENABLED, text)]).state("thp");
        assert_eq!(state("always madvise [never]"), State::Ok);
        assert_eq!(state("always [madvise] never"), State::Finding);
        assert!(HOSTILE.iter().all(|text| state(text) == State::Finding));
        assert_eq!(blank(&[]).state("thp"), State::NotApplicable);
        assert_eq!(blank(&[]).unreadable(ENABLED, "denied").state("thp"), State::Unreadable);
    }

    #[test]
    fn it_is_set_now_and_for_the_next_boot() {
        let system =
            intel(&[(ENABLED, "[always] madvise never"), ("/proc/cmdline", "transparent_hugepage=madvise")]);
        assert_eq!(
            system.wanted("thp"),
            [format!("{ENABLED} = never"), "kernel parameter transparent_hugepage = never".into()]
        );
        assert!(blank(&[]).changes("thp").is_empty());
    }
}
