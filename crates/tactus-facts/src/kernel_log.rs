//! Lines of the kernel's log that say how the machine keeps time.

use std::io;

use tactus_model::facts::Reading;

use crate::boot;
use crate::read::Collector;

/// Lines kept of each kind.
const MOST_LINES: usize = 8;

/// A kind of lines: its word, and whether a line is of it.
type Kind = (&'static str, fn(&str) -> bool);

/// Parameters that the kernel leaves to others, with their values.
const UNKNOWN: &str = "dmesg:unknown-parameters";

const KINDS: &[Kind] = &[
    ("dmesg:tsc-deadline", |line| line.contains("TSC_DEADLINE") || line.contains("TSC deadline")),
    ("dmesg:rcu-offload", |line| line.contains("Offload RCU callbacks")),
    (UNKNOWN, |line| line.contains("Unknown kernel command line parameters")),
    ("dmesg:tsc", |line| {
        let line = line.to_ascii_lowercase();
        line.contains("tsc")
            && ["unstable", "synchron", "warp", "skew", "watchdog"].iter().any(|word| line.contains(word))
    }),
    ("dmesg:split-lock", |line| line.contains("split lock") || line.contains("split_lock")),
    ("dmesg:mce", |line| line.contains("[Hardware Error]") || line.contains("achine check")),
    ("dmesg:thermal", |line| {
        line.contains("clock throttled")
            || line.contains("above threshold")
            || line.contains("thermal throttl")
    }),
    ("dmesg:kvm", |line| line.starts_with("kvm") || line.starts_with("KVM")),
];

/// Keeps them all, or why they cannot be had.
pub fn keep(it: &mut Collector, log: io::Result<Vec<u8>>) {
    match log {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().map(message).collect();
            it.facts.keep("dmesg:start", start(&lines));
            let events = || lines.iter().filter(|line| !is_command_line(line));
            for (name, fits) in KINDS {
                let found = events().filter(|line| fits(line)).take(MOST_LINES);
                let found: Vec<String> = match *name {
                    UNKNOWN => found.map(|line| boot::unknown_parameters(line)).collect(),
                    _ => found.map(|line| boot::words_without_secrets(line)).collect(),
                };
                it.facts.keep(*name, found.join("\n"));
            }
        }
        Err(error) => {
            for name in KINDS.iter().map(|(name, _)| *name).chain(["dmesg:start"]) {
                it.facts.0.insert(name.into(), Reading::Unreadable(error.to_string()));
            }
        }
    }
}

/// Whether a line repeats the kernel's parameters: no event, and `/proc/cmdline` has them.
fn is_command_line(line: &str) -> bool {
    ["Command line:", "Kernel command line:"].iter().any(|start| line.starts_with(start))
}

/// Whether the boot's first line is still there. On arm64 the boot processor prints a line before the version.
fn start(lines: &[&str]) -> &'static str {
    let first = |line: &&str| line.starts_with("Linux version ") || line.starts_with("Booting Linux on");
    if lines.iter().take(4).any(first) { "whole" } else { "overwritten" }
}

/// The message of `<6>[    0.000000][    T0] Linux version`: without level, time and thread.
fn message(line: &str) -> &str {
    let mut rest = line;
    if let Some(level) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        rest = level.1;
    }
    // A message may begin with a bracket too (`[Firmware Bug]:`): times and threads hold no letters
    // but the first.
    while let Some((inside, more)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let inside = inside.trim_start().trim_start_matches(['T', 'C']);
        if inside.is_empty() || !inside.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            break;
        }
        rest = more;
    }
    rest.trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_stripped_to_its_message() {
        for (line, text) in [
            ("<6>[    0.000000] Linux version 6.1", "Linux version 6.1"),
            ("<5>[   12.345678][    T1] hello [0]", "hello [0]"),
            ("<5>[   12.345678][   C12] hello", "hello"),
            ("<3>[    0.1] [Firmware Bug]: TSC_DEADLINE disabled", "[Firmware Bug]: TSC_DEADLINE disabled"),
            ("no prefix", "no prefix"),
            ("<", "<"),
            ("", ""),
        ] {
            assert_eq!(message(line), text);
        }
    }

    #[test]
    fn lines_are_sorted_by_what_they_say() {
        let kinds = |line: &str| {
            KINDS.iter().filter(|(_, fits)| fits(line)).map(|(name, _)| &name[6..]).collect::<Vec<_>>()
        };
        for (line, expected) in [
            (
                "[Firmware Bug]: TSC_DEADLINE disabled due to Errata; please update microcode to version: 0x52 (or later)",
                &["tsc-deadline"][..],
            ),
            ("rcu: \tOffload RCU callbacks from CPUs: 2-7.", &["rcu-offload"]),
            (
                "Unknown kernel command line parameters \"kthread_cpus=0\", will be passed to user space.",
                &["unknown-parameters"],
            ),
            ("tsc: Marking TSC unstable due to clocksource watchdog", &["tsc"]),
            (
                "x86/split lock detection: #AC: crashing the kernel on kernel split_locks and warning on user-space split_locks",
                &["split-lock"],
            ),
            ("mce: [Hardware Error]: Machine check events logged", &["mce"]),
            (
                "mce: CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)",
                &["thermal"],
            ),
            ("clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x1", &[]),
            ("kvm [1]: Hyp mode initialized successfully", &["kvm"]),
        ] {
            assert_eq!(kinds(line), expected, "{line}");
        }
    }

    #[test]
    fn a_log_without_its_first_line_has_been_overwritten() {
        assert_eq!(start(&["Linux version 6.1"]), "whole");
        assert_eq!(start(&["Booting Linux on physical CPU 0x0", "Linux version 6.1"]), "whole");
        assert_eq!(start(&["usb 1-1: new device"]), "overwritten");
        assert_eq!(start(&[]), "overwritten");
    }

    #[test]
    fn lines_that_repeat_the_parameters_are_no_events_and_bring_no_secret() {
        let log = "<6>[    0.000001] Linux version 6.12\n<6>[    0.000002] Command line: split_lock_detect=off rd.iscsi.password=HUNTER2\n\
                   <6>[    0.000003] Kernel command line: tsc=nowatchdog x.api=https://o?jointoken=HUNTER3\n\
                   <6>[    0.000004] tsc: Marking TSC unstable due to clocksource watchdog\n\
                   <6>[    0.000005] x86/split lock detection: warning about token=HUNTER4\n";
        let mut it = Collector::default();
        keep(&mut it, Ok(log.as_bytes().to_vec()));
        let all = format!("{:?}", it.facts);
        assert!(!all.contains("HUNTER"), "{all}");
        assert_eq!(it.facts.text("dmesg:tsc"), Some("tsc: Marking TSC unstable due to clocksource watchdog"));
        assert!(it.facts.text("dmesg:split-lock").is_some_and(|text| text.contains("warning about")));
    }
}
