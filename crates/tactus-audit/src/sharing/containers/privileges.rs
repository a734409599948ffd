//! The rights of a container's programs.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub const CHECK: Check = Check {
    id: "ctr-caps-limits",
    title: "the container may not use real-time priorities or lock memory",
    sources: &[Source::Guide("sched(7)"), Source::Guide("capabilities(7)")],
    applies: &[Applies::Container],
    severity: Severity::Blocker,
    arch: Arch::Any,
    set: &[SetBy::ContainerFlag],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "CapEff of /proc/self/status, /proc/self/uid_map, the limits RTPRIO and MEMLOCK",
    expected: "CAP_SYS_NICE or a limit rtprio above 0, and CAP_IPC_LOCK or an unlimited memlock",
    why: "Without the first sched_setscheduler() is refused and the program runs as an ordinary one. Without the \
second mlockall() fails and its memory may be swapped out. Capabilities in a user namespace (rootless) do not count: \
the kernel checks those of the initial one.",
    fix: "Start it with --cap-add=SYS_NICE --cap-add=IPC_LOCK, or with --ulimit rtprio=98 --ulimit memlock=-1 \
(rootless: the limits of the starting user must allow it).",
    risk: "A program with a real-time priority can keep a CPU from all others. A program that locks memory can \
exhaust it.",
    judge,
    changes: no_change,
};

/// Numbers of include/uapi/linux/capability.h.
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

fn judge(subject: &Subject<'_>) -> Verdict {
    const STATUS: &str = "/proc/self/status";
    subject.value(STATUS)?;
    let shown = subject.facts.field(STATUS, "CapEff", ':').unwrap_or_default();
    let Ok(granted) = u64::from_str_radix(shown, 16) else {
        return Err(Judgement::unreadable(format!("{STATUS} does not show the program's capabilities")));
    };
    let initial = initial_user_namespace(subject)?;
    let capable = |number: u32| initial && granted >> number & 1 == 1;
    let rtprio = limit(subject, "limit:rtprio")?;
    let memlock = limit(subject, "limit:memlock")?;
    let schedules = capable(CAP_SYS_NICE) || rtprio > 0;
    let locks = capable(CAP_IPC_LOCK) || memlock == u64::MAX;
    let mut bad = Vec::new();
    if !schedules {
        bad.push("real-time priorities are refused (no CAP_SYS_NICE, rtprio 0)".to_owned());
    }
    if !locks {
        bad.push(format!("no more than {} KiB of memory can be locked (no CAP_IPC_LOCK)", memlock / 1024));
    }
    if !bad.is_empty() && !initial {
        bad.push("its capabilities are those of a user namespace".to_owned());
    }
    let mut judgement =
        Judgement::when(bad.is_empty(), "real-time priorities and locked memory are allowed", bad.join("; "));
    if schedules && !locks {
        judgement = judgement.at(Severity::Major);
    }
    let text = |limit: u64| if limit == u64::MAX { "unlimited".into() } else { limit.to_string() };
    Ok(judgement
        .read(format!("{STATUS} CapEff"), format!("{granted:016x}"))
        .read("limit:rtprio", text(rtprio))
        .read("limit:memlock", text(memlock)))
}

/// Whether the ids of this namespace are all ids as they are: then it is the first one. A kernel
/// without user namespaces has no such file.
fn initial_user_namespace(subject: &Subject<'_>) -> Result<bool, Judgement> {
    match subject.value("/proc/self/uid_map") {
        Ok(map) => Ok(map.split_whitespace().eq(["0", "0", "4294967295"])),
        Err(judgement) if judgement.state == tactus_model::finding::State::NotApplicable => Ok(true),
        Err(judgement) => Err(judgement),
    }
}

/// A resource limit; the largest number for no limit.
fn limit(subject: &Subject<'_>, name: &str) -> Result<u64, Judgement> {
    match subject.facts.text(name) {
        Some("unlimited") => Ok(u64::MAX),
        Some(text) => text.parse().map_err(|_| Judgement::unreadable(format!("{name} is not a number"))),
        None => Err(Judgement::unreadable(format!("these facts do not include {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, Severity, State};

    use crate::testing::{HOSTILE, System, blank, intel};

    const ALL: &str = "Name:\tprobe\nCapEff:\t000001ffffffffff";
    const NONE: &str = "CapEff:\t0000000000000000";
    const DOCKER: &str = "CapEff:\t00000000a80425fb";
    const FIRST: &str = "         0          0 4294967295";

    fn container(status: &str, map: &str, rtprio: &str, memlock: &str) -> System {
        intel(&[
            ("/proc/self/status", status),
            ("/proc/self/uid_map", map),
            ("limit:rtprio", rtprio),
            ("limit:memlock", memlock),
        ])
        .role(Role::Container)
    }

    #[test]
    fn capabilities_or_limits_will_do() {
        let state =
            |status, rtprio, memlock| container(status, FIRST, rtprio, memlock).state("ctr-caps-limits");
        assert_eq!(state(ALL, "0", "65536"), State::Ok);
        assert_eq!(state(NONE, "98", "unlimited"), State::Ok);
        assert_eq!(state("CapEff:\t0000000000804000", "0", "0"), State::Ok, "just the two");
        assert_eq!(state(DOCKER, "0", "65536"), State::Finding, "what docker gives by itself");
    }

    #[test]
    fn without_locking_alone_it_is_less_bad() {
        let found = container(NONE, FIRST, "98", "8388608").finding("ctr-caps-limits");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Major));
        assert_eq!(found.message, "no more than 8192 KiB of memory can be locked (no CAP_IPC_LOCK)");
        assert_eq!(container(NONE, FIRST, "0", "0").finding("ctr-caps-limits").severity, Severity::Blocker);
    }

    #[test]
    fn capabilities_of_a_user_namespace_do_not_count() {
        let rootless = container(ALL, "0 1000 1\n1 100000 65536", "0", "65536");
        assert_eq!(rootless.state("ctr-caps-limits"), State::Finding);
        assert!(rootless.said("ctr-caps-limits").ends_with("those of a user namespace"));
    }

    #[test]
    fn what_is_not_known_is_not_granted() {
        assert_eq!(blank(&[]).role(Role::Container).state("ctr-caps-limits"), State::NotApplicable);
        assert_eq!(
            container(ALL, FIRST, "0", "0").without("limit:memlock").state("ctr-caps-limits"),
            State::Unreadable
        );
        for text in HOSTILE {
            assert_eq!(container(text, FIRST, "98", "unlimited").state("ctr-caps-limits"), State::Unreadable);
            assert_ne!(container(ALL, text, "0", "0").state("ctr-caps-limits"), State::Ok);
        }
    }
}
