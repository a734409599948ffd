//! The kernel's switch for time stamps of packets.

use tactus_model::finding::Severity;

use crate::sentence::cpus_or_none;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "timestamp-static-key",
    title: "the first program that requests packet time stamps interrupts all CPUs",
    sources: &[
        Source::Guide("TuneD, rtentsk plugin"),
        Source::Tuned("network-latency"),
        Source::Kernel("net/core/dev.c"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Info,
    arch: Arch::Any,
    set: &[SetBy::Service],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "whether TuneD runs with a profile that has the plugin rtentsk, or ptp4l",
    expected: "a program keeps a socket with time stamps open",
    why: "Packet time stamps use a static key. The first socket that requests them (an NTP client, tcpdump, ping) \
patches the kernel's code, and so does the last to close. Each patch interrupts every CPU, isolated ones too. \
TuneD's rtentsk keeps one such socket open, so that the key never changes.",
    fix: "Run TuneD with a profile for real time or network latency. Or run any program that sets SO_TIMESTAMP on a \
socket and keeps it open; ptp4l does.",
    risk: "Each packet gets a time stamp, which takes some nanoseconds.",
    judge: held,
    changes: no_change,
}];

/// Profiles of TuneD that have the plugin, themselves or through what they include.
const PROFILES: [&str; 5] =
    ["realtime", "realtime-virtual-host", "realtime-virtual-guest", "cpu-partitioning", "network-latency"];

fn held(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let runs = |name: &str| subject.threads.user().any(|thread| thread.name == name);
    let profile = subject.facts.text("/etc/tuned/active_profile").unwrap_or_default();
    let by_tuned = runs("tuned") && profile.split_whitespace().any(|name| PROFILES.contains(&name));
    let said = match (by_tuned, runs("ptp4l")) {
        (true, _) => format!("TuneD holds the key (profile {profile})"),
        (_, true) => "ptp4l holds the key".to_owned(),
        _ => format!(
            "no known program holds the key: turning it on or off interrupts {}",
            cpus_or_none(isolated)
        ),
    };
    let judgement = if by_tuned || runs("ptp4l") { Judgement::ok(said) } else { Judgement::finding(said) };
    let shown = if profile.is_empty() { "no TuneD profile" } else { profile };
    Ok(judgement.read("/etc/tuned/active_profile", shown))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, System, intel};

    fn running(name: &str, profile: &str) -> System {
        let thread = format!("700\t700\t1\t400100\tOTHER\t0\t0-1\t{name}");
        intel(&[("threads:0", &thread), ("/etc/tuned/active_profile", profile)])
    }

    #[test]
    fn a_socket_with_time_stamps_is_held_by_tuned_or_ptp() {
        let id = "timestamp-static-key";
        assert_eq!(running("tuned", "realtime-virtual-host").state(id), State::Ok);
        assert_eq!(running("ptp4l", "").state(id), State::Ok);
        assert_eq!(running("tuned", "balanced").state(id), State::Finding);
        assert_eq!(running("sshd", "realtime").state(id), State::Finding, "it does not run");
        assert_eq!(intel(&[]).state(id), State::Unreadable);
        for text in HOSTILE {
            assert_ne!(running(text, text).state(id), State::Ok, "{text}");
        }
    }
}
