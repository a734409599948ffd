//! How often all tasks are looked at for one that hangs.

use tactus_model::change::Form;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const TIMEOUT: &str = "/proc/sys/kernel/hung_task_timeout_secs";
/// TuneD's value.
const WANTED: u64 = 600;

pub static CHECKS: &[Check] = &[Check {
    id: "hung-task",
    title: "the kernel checks all tasks for hangs every two minutes",
    sources: &[
        Source::Kernel("Documentation/admin-guide/sysctl/kernel.rst"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Info,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: TIMEOUT,
    expected: "600 or more, or 0 for never",
    why: "At each check khungtaskd walks the list of all tasks and reports those blocked for the whole timeout. On a \
machine with real-time work, ordinary tasks wait longer than usual, and such reports are noise.",
    fix: "sysctl kernel.hung_task_timeout_secs=600",
    risk: "A hung task is reported after ten minutes.",
    judge: timeout,
    changes: |subject| {
        let fine = subject.facts.number(TIMEOUT).filter(|now| is_fine(*now));
        let then = fine.unwrap_or(WANTED).to_string();
        subject.set("hung-task", TIMEOUT, Form::Plain, then).into_iter().collect()
    },
}];

fn is_fine(seconds: u64) -> bool {
    seconds == 0 || seconds >= WANTED
}

fn timeout(subject: &Subject<'_>) -> Verdict {
    let now = subject.number(TIMEOUT)?;
    let bad = format!("all tasks are checked every {now} s, not every {WANTED} s");
    let good = if now == 0 {
        "tasks are not checked".to_owned()
    } else {
        format!("all tasks are checked every {now} s")
    };
    Ok(Judgement::when(is_fine(now), good, bad).read(TIMEOUT, now.to_string()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn tasks_are_looked_at_rarely_or_never() {
        let id = "hung-task";
        let at = |text: &str| intel(&[(TIMEOUT, text)]);
        assert_eq!((at("600").state(id), at("0").state(id)), (State::Ok, State::Ok));
        assert_eq!(
            (at("120").state(id), at("120").wanted(id)),
            (State::Finding, vec![format!("{TIMEOUT} = 600")])
        );
        assert_eq!(intel(&[]).absent(TIMEOUT).state(id), State::NotApplicable);
        for text in HOSTILE.iter().filter(|text| text.parse::<u64>().is_err()) {
            assert_ne!(at(text).state(id), State::Ok, "{text}");
        }
    }
}
