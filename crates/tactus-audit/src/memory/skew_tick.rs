//! Ticks of all CPUs at one instant.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

pub static CHECKS: &[Check] = &[Check {
    id: "skew-tick",
    title: "the ticks of all CPUs coincide",
    sources: &[
        Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::KernelCommandLine],
    reversible: Reversible::Reboot,
    hardware: false,
    reads: "/proc/cmdline",
    expected: "skew_tick=1",
    why: "Without it the periodic tick runs on all CPUs at the same instant, and the handlers contend for the same \
locks (jiffies_lock, RCU). With it each CPU's tick is shifted by its share of half a tick period.",
    fix: "Boot with skew_tick=1.",
    risk: "Idle CPUs wake at different times, and the package sleeps less, which costs some power.",
    judge,
    changes: |subject| vec![subject.boot("skew-tick", "skew_tick", "1")],
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    const PATH: &str = "/proc/cmdline";
    subject.value(PATH)?;
    if subject.topology.online.len() < 2 {
        return Err(Judgement::not_applicable("there is only one CPU"));
    }
    // get_option() of lib/cmdline.c: any number but 0 switches it on.
    let value = subject.cmdline.get("skew_tick").unwrap_or_default();
    let on = value.parse::<i64>().is_ok_and(|number| number != 0);
    let shown: String = value.chars().take(40).collect();
    let read =
        if subject.cmdline.has("skew_tick") { format!("skew_tick={shown}") } else { "no skew_tick".into() };
    Ok(Judgement::when(
        on,
        "the ticks of the CPUs are shifted",
        format!("the ticks of {} CPUs coincide", subject.topology.online.len()),
    )
    .read(PATH, read))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, blank, intel};

    fn booted(cmdline: &str) -> State {
        intel(&[("/proc/cmdline", cmdline)]).state("skew-tick")
    }

    #[test]
    fn the_last_word_on_the_command_line_counts() {
        assert_eq!(booted("quiet skew_tick=1"), State::Ok);
        assert_eq!(booted("skew-tick=1"), State::Ok, "the kernel takes - for _");
        assert_eq!(booted("skew_tick=1 skew_tick=0"), State::Finding);
        assert_eq!(booted("skew_tick"), State::Finding, "a bare word is no number");
        assert_eq!(booted("quiet -- skew_tick=1"), State::Finding, "behind -- it is for init");
        assert!(HOSTILE.iter().all(|text| booted(text) == State::Finding));
    }

    #[test]
    fn it_needs_more_than_one_cpu_and_a_command_line() {
        let one = intel(&[("/proc/cmdline", ""), ("/sys/devices/system/cpu/online", "0")]);
        assert_eq!(one.state("skew-tick"), State::NotApplicable);
        assert_eq!(blank(&[]).state("skew-tick"), State::NotApplicable);
        let bad = intel(&[("/proc/cmdline", "quiet")]);
        assert_eq!(bad.wanted("skew-tick"), ["kernel parameter skew_tick = 1"]);
    }
}
