//! The CPUs that handle received packets on new interfaces, and how threads wait for packets.

use tactus_model::change::{self, Change, Form};
use tactus_model::finding::Severity;

use crate::sentence::{cpus_or_none, meet};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const DEFAULT: &str = "/proc/sys/net/core/rps_default_mask";
const READ: &str = "/proc/sys/net/core/busy_read";
const POLL: &str = "/proc/sys/net/core/busy_poll";

pub static CHECKS: &[Check] = &[
    Check {
        id: "rps-default-mask",
        title: "real-time CPUs handle packets of new network interfaces",
        sources: &[
            Source::Kernel("Documentation/admin-guide/sysctl/net.rst"),
            Source::Guide("OpenShift node tuning operator"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: DEFAULT,
        expected: "0 (each packet where it arrives), or the mask {housekeeping_mask} (CPUs {housekeeping})",
        why: "New interfaces, such as one per container, start with this mask as the rps_cpus of their queues. An \
isolated CPU in the mask handles their packets through an interrupt from another CPU. OpenShift sets the mask to the \
housekeeping CPUs. They then also handle packets that real-time containers send to their virtual interface.",
        fix: "echo {housekeeping_mask} > /proc/sys/net/core/rps_default_mask",
        risk: "Housekeeping CPUs handle more packets.",
        judge: default_mask,
        changes: without_isolated,
    },
    Check {
        id: "busy-poll",
        title: "a thread that waits on a socket sleeps and must be woken",
        sources: &[Source::Kernel("Documentation/networking/napi.rst"), Source::Tuned("network-latency")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "net.core.busy_read, net.core.busy_poll",
        expected: "your decision: 50 us (as in TuneD's network-latency) if the real-time work waits on sockets; \
otherwise 0",
        why: "With a value, a thread that reads an empty socket polls the device's queue for that many microseconds \
before it sleeps. It then skips interrupt, softirq and wake-up. It changes nothing for threads that do not wait on \
sockets. PREEMPT_RT kernels have it only if built without netconsole (NET_RX_BUSY_POLL).",
        fix: "sysctl net.core.busy_read=50 net.core.busy_poll=50, if the cycle starts with a packet. SO_BUSY_POLL \
does it for one socket.",
        risk: "Every thread that waits on a socket spins for that time, also at FIFO: others on its CPU wait.",
        judge: polling,
        changes: no_change,
    },
];

fn without_isolated(subject: &Subject<'_>) -> Vec<Change> {
    let then = |(isolated, keeping): (&tactus_model::CpuSet, &tactus_model::CpuSet)| {
        let now = change::mask(subject.facts.text(DEFAULT)?)?;
        // A mask without isolated CPUs stays as it is.
        let then = if meet(&now, isolated) { keeping } else { &now };
        subject.set("rps-default-mask", DEFAULT, Form::Mask, change::to_mask(then))
    };
    subject.parted().and_then(then).into_iter().collect()
}

fn default_mask(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(DEFAULT)?;
    let (isolated, _) = subject.need_parted()?;
    let Some(cpus) = change::mask(text) else {
        return Err(Judgement::unreadable(format!("{DEFAULT} is not a mask of CPUs")).read(DEFAULT, text));
    };
    let good = match cpus.is_empty() {
        true => "packets of new interfaces are handled where they arrive".to_owned(),
        false => format!("packets of new interfaces are handled on {}", cpus_or_none(&cpus)),
    };
    let bad = format!("packets of new interfaces are handled on {}", cpus_or_none(&cpus.and(isolated)));
    Ok(Judgement::when(!meet(&cpus, isolated), good, bad).read(DEFAULT, text))
}

fn polling(subject: &Subject<'_>) -> Verdict {
    let (read, poll) = (subject.number(READ)?, subject.number(POLL)?);
    let on = read > 0 || poll > 0;
    Ok(Judgement::when(
        on,
        format!("a thread that reads an empty socket polls for {read} us, one that waits for several for {poll} us"),
        "a thread that waits on a socket sleeps at once: this matters for work whose cycle starts with a packet",
    )
    .read(READ, read.to_string())
    .read(POLL, poll.to_string()))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn new_interfaces_stay_away_from_isolated_cpus() {
        let id = "rps-default-mask";
        let at = |text: &str| intel(&[(DEFAULT, text)]);
        assert_eq!((at("0").state(id), at("3").state(id)), (State::Ok, State::Ok));
        assert_eq!(at("f").said(id), "packets of new interfaces are handled on CPUs 2,3");
        assert_eq!(at("f").wanted(id), [format!("{DEFAULT} = 3")]);
        assert!(at("0").wanted(id).is_empty());
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
        assert_eq!(at("rubbish").state(id), State::Unreadable);
    }

    #[test]
    fn polling_for_packets_is_told_and_not_demanded() {
        let id = "busy-poll";
        let at = |us: &str| intel(&[(READ, us), (POLL, us)]);
        assert_eq!(at("50").state(id), State::Ok);
        assert_eq!((at("0").state(id), at("0").finding(id).severity), (State::Finding, Severity::Info));
        assert!(at("0").changes(id).is_empty());
        for text in HOSTILE {
            at(text).state(id);
            intel(&[(DEFAULT, text)]).state("rps-default-mask");
        }
    }
}
