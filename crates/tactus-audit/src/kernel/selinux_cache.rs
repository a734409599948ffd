//! The cache of SELinux's decisions.

use tactus_model::change::Form;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const THRESHOLD: &str = "/sys/fs/selinux/avc/cache_threshold";
/// TuneD's value.
const WANTED: u64 = 8192;

pub static CHECKS: &[Check] = &[Check {
    id: "selinux-avc-cache",
    title: "SELinux drops cached decisions early",
    sources: &[Source::Kernel("security/selinux/avc.c"), Source::Guide("TuneD, selinux plugin")],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Info,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: THRESHOLD,
    expected: "8192, where SELinux is on",
    why: "Above this number of cached decisions each new one evicts others. The next access that needs an evicted \
decision computes it again, in the kernel, in the task's time. The default of 512 is small for a host with many \
containers.",
    fix: "echo 8192 > /sys/fs/selinux/avc/cache_threshold",
    risk: "A little memory.",
    judge: threshold,
    changes: |subject| {
        let enough = subject.facts.number(THRESHOLD).filter(|now| *now >= WANTED);
        let then = enough.unwrap_or(WANTED).to_string();
        subject.set("selinux-avc-cache", THRESHOLD, Form::Plain, then).into_iter().collect()
    },
}];

fn threshold(subject: &Subject<'_>) -> Verdict {
    if subject.facts.text("/sys/fs/selinux/enforce").is_none() {
        return Err(Judgement::not_applicable("SELinux is off"));
    }
    let now = subject.number(THRESHOLD)?;
    let bad = format!("SELinux caches {now} decisions, not {WANTED}");
    Ok(Judgement::when(now >= WANTED, format!("SELinux caches {now} decisions"), bad)
        .read(THRESHOLD, now.to_string()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn decisions_are_kept_where_selinux_decides() {
        let id = "selinux-avc-cache";
        let at = |text: &str| intel(&[(THRESHOLD, text), ("/sys/fs/selinux/enforce", "1")]);
        assert_eq!(at("8192").state(id), State::Ok);
        assert_eq!(
            (at("512").state(id), at("512").wanted(id)),
            (State::Finding, vec![format!("{THRESHOLD} = 8192")])
        );
        assert!(at("16384").wanted(id).is_empty());
        assert_eq!(intel(&[(THRESHOLD, "512")]).state(id), State::NotApplicable);
        for text in HOSTILE.iter().filter(|text| text.parse::<u64>().is_err()) {
            assert_ne!(at(text).state(id), State::Ok, "{text}");
        }
    }
}
