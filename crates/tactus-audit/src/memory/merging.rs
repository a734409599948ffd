//! Kernel samepage merging: pages of equal content become one.

use tactus_model::change::Form;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const RUN: &str = "/sys/kernel/mm/ksm/run";
const SHARING: &str = "/sys/kernel/mm/ksm/pages_sharing";

pub static CHECKS: &[Check] = &[Check {
    id: "ksm",
    title: "the kernel merges equal pages, and a write to a merged page faults",
    sources: &[
        Source::Kernel("Documentation/admin-guide/mm/ksm.rst"),
        Source::Tuned("realtime-virtual-host"),
    ],
    applies: &[Applies::Host],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/kernel/mm/ksm/run, pages_sharing",
    expected: "2, or 0 with no merged pages left",
    why: "ksmd scans memory that is offered for merging, such as QEMU's guest memory, and merges equal pages into \
one read-only page. The next write to it faults in the host, which allocates and copies a page while the vCPU stops. \
The thread ksmd itself takes CPU time, memory bandwidth and mmap_lock.",
    fix: "Write 2 to /sys/kernel/mm/ksm/run: this stops merging and separates the pages (0 only stops). Disable \
ksm.service and ksmtuned.service if installed. <nosharepages/> excludes a guest's memory.",
    risk: "Guests need their full memory. Separating the pages may exhaust the host's memory.",
    judge,
    changes: |subject| subject.set("ksm", RUN, Form::Plain, "2").into_iter().collect(),
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    let run = subject.number(RUN)?;
    let merged = subject.facts.number(SHARING);
    let judgement = match (run, merged) {
        (2, _) => Judgement::ok("KSM is stopped and its pages are separated"),
        (0, Some(0)) => Judgement::ok("KSM is stopped and no pages are merged"),
        (0, Some(pages)) => Judgement::finding(format!(
            "KSM is stopped, but {pages} pages are still merged and fault when written"
        )),
        (0, None) => Judgement::unreadable(format!(
            "KSM is stopped, but whether pages are still merged is unknown: {SHARING} was not read"
        )),
        (1, Some(pages)) => Judgement::finding(format!("KSM runs and has merged {pages} pages into others")),
        (1, None) => Judgement::finding("KSM runs"),
        (other, _) => Judgement::finding(format!("{RUN} is {other}, which is not a known state")),
    };
    let judgement = judgement.read(RUN, run.to_string());
    Ok(match merged {
        Some(pages) => judgement.read(SHARING, pages.to_string()),
        None => judgement,
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, guest, intel};

    #[test]
    fn stopped_without_merged_pages_is_good() {
        let state = |run, pages| intel(&[(RUN, run), (SHARING, pages)]).state("ksm");
        assert_eq!(state("0", "0"), State::Ok);
        assert_eq!(state("2", "0"), State::Ok);
        assert_eq!(intel(&[(RUN, "0")]).state("ksm"), State::Unreadable);
        assert_eq!(state("0", "17"), State::Finding, "stopping does not part them");
        assert_eq!(state("1", "0"), State::Finding);
        assert_eq!(state("3", "0"), State::Finding);
    }

    #[test]
    fn it_parts_the_pages() {
        assert_eq!(intel(&[(RUN, "1")]).wanted("ksm"), [format!("{RUN} = 2")]);
        assert!(intel(&[]).changes("ksm").is_empty());
    }

    #[test]
    fn what_is_no_number_is_unreadable_and_a_kernel_without_it_is_not_concerned() {
        assert!(HOSTILE.iter().all(|text| intel(&[(RUN, text)]).state("ksm") == State::Unreadable));
        assert_eq!(intel(&[]).state("ksm"), State::NotApplicable);
        assert_eq!(guest(&[(RUN, "1")]).state("ksm"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(RUN, "denied").state("ksm"), State::Unreadable);
    }
}
