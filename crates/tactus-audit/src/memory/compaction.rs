//! Compaction of memory in the background.

use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const PROACTIVE: &str = "/proc/sys/vm/compaction_proactiveness";
const LOCKED: &str = "/proc/sys/vm/compact_unevictable_allowed";

pub static CHECKS: &[Check] = &[Check {
    id: "compaction",
    title: "the kernel moves pages to make room for large ones",
    sources: &[Source::Kernel("Documentation/admin-guide/sysctl/vm.rst")],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/proc/sys/vm/compaction_proactiveness, compact_unevictable_allowed",
    expected: "0 and 0",
    why: "kcompactd checks twice a second whether memory is fragmented, and then moves pages of all processes. A \
page is unmapped while it moves: a thread that touches it faults and waits for the copy. With \
compact_unevictable_allowed = 1 (0 on PREEMPT_RT) the kernel moves locked memory too.",
    fix: "Write 0 to /proc/sys/vm/compaction_proactiveness and to /proc/sys/vm/compact_unevictable_allowed \
(vm.* = 0 in /etc/sysctl.d).",
    risk: "On a system that has been up for long, huge pages become hard to get: reserve them at boot.",
    judge,
    changes,
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    let proactive = read(subject, PROACTIVE)?;
    let locked = read(subject, LOCKED)?;
    let mut bad = Vec::new();
    if let Some(value @ 1..) = proactive {
        bad.push(format!("kcompactd moves pages in the background (proactiveness {value} of 100)"));
    }
    if let Some(1..) = locked {
        bad.push("locked pages may be moved".to_owned());
    }
    let mut judgement =
        Judgement::when(bad.is_empty(), "memory is compacted only on demand", bad.join(", and "));
    for (path, value) in [(PROACTIVE, proactive), (LOCKED, locked)] {
        if let Some(value) = value {
            judgement = judgement.read(path, value.to_string());
        }
    }
    if proactive.is_none() && locked.is_none() {
        return Err(Judgement::not_applicable("this kernel does not compact memory"));
    }
    Ok(judgement)
}

/// `None` if the file does not exist: kernels before 5.9 have no proactive compaction.
fn read(subject: &Subject<'_>, path: &str) -> Result<Option<u64>, Judgement> {
    match subject.number(path) {
        Ok(value) => Ok(Some(value)),
        Err(judgement) if judgement.state == tactus_model::finding::State::NotApplicable => Ok(None),
        Err(judgement) => Err(judgement),
    }
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    [PROACTIVE, LOCKED].iter().filter_map(|path| subject.set("compaction", path, Form::Plain, "0")).collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, blank, intel};

    #[test]
    fn neither_may_pages_move_unasked_nor_locked_ones_at_all() {
        let system = |proactive, locked| intel(&[(PROACTIVE, proactive), (LOCKED, locked)]);
        assert_eq!(system("0", "0").state("compaction"), State::Ok);
        assert_eq!(system("20", "0").state("compaction"), State::Finding);
        assert_eq!(system("0", "1").said("compaction"), "locked pages may be moved");
        assert_eq!(
            system("20", "1").wanted("compaction"),
            [format!("{PROACTIVE} = 0"), format!("{LOCKED} = 0")]
        );
        assert_eq!(intel(&[(LOCKED, "0")]).state("compaction"), State::Ok, "before 5.9");
    }

    #[test]
    fn nothing_is_guessed_from_what_is_no_number() {
        for text in HOSTILE {
            assert_eq!(intel(&[(PROACTIVE, text), (LOCKED, "0")]).state("compaction"), State::Unreadable);
        }
        assert_eq!(blank(&[]).state("compaction"), State::NotApplicable);
        assert!(blank(&[]).changes("compaction").is_empty());
    }
}
