//! Work that firmware and its services do on their own.

use tactus_model::change::{Change, Effect, Form, Target};
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const ID: &str = "firmware-services";
const EDAC: &str = "/sys/devices/system/edac/mc/mc";
const SCRUB: &str = "/sdram_scrub_rate";
const TIMERS: &str = "list:/etc/systemd/system/timers.target.wants";
const FWUPD: &str = "fwupd-refresh.timer";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "firmware, its services or the memory controller run at any time",
    sources: &[
        Source::Kernel("Documentation/core-api/real-time/hardware.rst"),
        Source::Kernel("Documentation/ABI/testing/sysfs-devices-edac"),
        Source::Kernel("Documentation/edac/scrub.rst"),
    ],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Firmware, SetBy::Service, SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/devices/system/edac/mc/mc*/sdram_scrub_rate, /etc/systemd/system/timers.target.wants",
    expected: "a scrub rate of 0, and no fwupd-refresh.timer",
    why: "The memory controller runs the scrubber of sdram_scrub_rate: it takes bandwidth and stops no CPU. \
Scrubbing by firmware shows as SMIs (smi-count). fwupd wakes up to look for new firmware. Calls of UEFI run time \
services stop a CPU for milliseconds (PREEMPT_RT kernels refuse them unless booted with efi=runtime).",
    fix: "Write 0 to /sys/devices/system/edac/mc/mc*/sdram_scrub_rate, or turn patrol scrub off in the firmware's setup; \
systemctl disable --now fwupd-refresh.timer.",
    risk: "Reliability: without scrubbing a single error stays in memory until a second one makes it uncorrectable. \
You must check for new firmware yourself.",
    judge: services,
    changes,
}];

fn services(subject: &Subject<'_>) -> Verdict {
    let (mut scrubbing, mut rates, mut refused) = (Vec::new(), 0usize, None);
    let mut read = Vec::new();
    for (path, reading) in subject.facts.under(EDAC).filter(|(path, _)| path.ends_with(SCRUB)) {
        match reading {
            Reading::Text(text) | Reading::Cut(text) => {
                read.push((path.to_owned(), text.trim().to_owned()));
                match text.trim().parse::<u64>() {
                    Ok(0) => rates += 1,
                    Ok(_) => scrubbing.push(path.trim_start_matches(EDAC).trim_end_matches(SCRUB)),
                    Err(_) => refused = Some(format!("{path} contains {}", text.trim())),
                }
            }
            Reading::Unreadable(reason) => refused = Some(format!("{path} could not be read: {reason}")),
            Reading::Absent => {}
        }
    }
    let timers = match subject.facts.0.get(TIMERS) {
        Some(Reading::Text(names) | Reading::Cut(names)) => {
            Some(names.split_ascii_whitespace().any(|name| name == FWUPD))
        }
        // No systemd, or nothing that was enabled by hand.
        Some(Reading::Absent) => Some(false),
        Some(Reading::Unreadable(_)) | None => None,
    };
    let mut words = Vec::new();
    if !scrubbing.is_empty() {
        let (plural, verb) = if scrubbing.len() == 1 { ("", "scrubs") } else { ("s", "scrub") };
        let numbers = scrubbing.join(", ");
        words.push(format!(
            "memory controller{plural} {numbers} {verb} memory, which takes bandwidth and stops no CPU"
        ));
    }
    if timers == Some(true) {
        words.push(format!("{FWUPD} is enabled"));
        read.push(("/etc/systemd/system/timers.target.wants".into(), FWUPD.into()));
    }
    let judgement = if !words.is_empty() {
        let judgement = Judgement::finding(words.join("; "));
        // A rate alone costs bandwidth, as any load does.
        if timers == Some(true) { judgement } else { judgement.at(Severity::Info) }
    } else if subject.virtualized {
        Judgement::unknowable("nothing of it is seen here; the firmware of the machine below is not visible")
    } else if let Some(refused) = refused {
        Judgement::unreadable(refused)
    } else if timers.is_none() {
        Judgement::unreadable("whether fwupd-refresh.timer is enabled was not read")
    } else if rates == 0 {
        Judgement::unknowable(
            "fwupd is not enabled; no driver shows whether the firmware scrubs memory, only its setup does",
        )
    } else {
        Judgement::ok("memory is not scrubbed, and fwupd does not look for firmware")
    };
    Ok(read.into_iter().fold(judgement, |judgement, (path, value)| judgement.read(path, value)))
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let paths: Vec<String> = subject
        .facts
        .under(EDAC)
        .filter(|(path, _)| path.ends_with(SCRUB))
        .map(|(path, _)| path.to_owned())
        .collect();
    let mut changes: Vec<Change> =
        paths.iter().filter_map(|path| subject.set(ID, path, Form::Plain, "0")).collect();
    let wanted = subject.facts.text(TIMERS).unwrap_or_default();
    if wanted.split_ascii_whitespace().any(|name| name == FWUPD) {
        changes.push(Change {
            check: ID.into(),
            target: Target::Service { unit: FWUPD.into() },
            now: Some("active".into()),
            then: "inactive".into(),
            effect: Effect::Runtime,
        });
    }
    changes
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::*;
    use crate::testing::{HOSTILE, arm, guest, intel};

    const MC0: &str = "/sys/devices/system/edac/mc/mc0/sdram_scrub_rate";

    #[test]
    fn no_scrubbing_and_no_timer_are_good() {
        assert_eq!(intel(&[(MC0, "0"), (TIMERS, "apt-daily.timer")]).state(ID), State::Ok);
        assert_eq!(arm(&[(MC0, "0")]).absent(TIMERS).state(ID), State::Ok);
    }

    #[test]
    fn scrubbing_and_the_timer_are_found_with_their_changes() {
        let bad = intel(&[(MC0, "12284069"), (TIMERS, "fwupd-refresh.timer logrotate.timer")]);
        assert_eq!(
            bad.said(ID),
            "memory controller 0 scrubs memory, which takes bandwidth and stops no CPU; fwupd-refresh.timer is enabled"
        );
        assert_eq!(bad.finding(ID).severity, Severity::Minor);
        assert_eq!(bad.wanted(ID), [format!("{MC0} = 0"), "service fwupd-refresh.timer = inactive".into()]);
    }

    #[test]
    fn a_scrub_rate_alone_is_good_to_know() {
        let scrubbed = intel(&[(MC0, "12284069"), (&MC0.replace("mc0", "mc1"), "1"), (TIMERS, "")]);
        assert_eq!(
            scrubbed.said(ID),
            "memory controllers 0, 1 scrub memory, which takes bandwidth and stops no CPU"
        );
        assert_eq!(scrubbed.finding(ID).severity, Severity::Info);
    }

    #[test]
    fn what_is_not_told_is_not_known() {
        assert_eq!(intel(&[(TIMERS, "")]).state(ID), State::Unknowable);
        assert_eq!(intel(&[(MC0, "0")]).state(ID), State::Unreadable);
        assert_eq!(intel(&[(TIMERS, "")]).unreadable(MC0, "No such device").state(ID), State::Unreadable);
        assert_eq!(guest(&[(MC0, "0"), (TIMERS, "")]).role(Role::Host).state(ID), State::Unknowable);
        assert_eq!(guest(&[(TIMERS, FWUPD)]).state(ID), State::NotApplicable);
        for text in HOSTILE {
            assert_ne!(intel(&[(MC0, text), (TIMERS, text)]).state(ID), State::Ok, "{text}");
        }
    }
}
