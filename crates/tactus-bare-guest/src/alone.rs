//! A machine without a host side: the job comes from the command line.
//!
//! ```text
//! multiboot2 /boot/tactus-bare-guest.elf interval=1ms duration=10m
//! ```

use alloc::format;
use alloc::string::String;
use core::ops::RangeInclusive;

use crate::control::Control;
use crate::job::{Job, Measure};

/// Defaults of the command line, in ns.
const INTERVAL_NS: u64 = 1_000_000;
const DURATION_NS: u64 = 60_000_000_000;
/// The longest that is measured, in ns: 30 days. The counts of a tick have 32 bits.
const LONGEST_NS: u64 = 30 * 86_400 * 1_000_000_000;
/// The range of intervals, in ns.
const INTERVALS_NS: RangeInclusive<u64> = 10_000..=1_000_000_000;

/// The word that means: with what stands above.
const ALONE: &str = "alone";

/// The job of a command line, in the words `alone`, `interval=TIME`, `duration=TIME`, `tick=TIME`. Other words belong
/// to the boot loader. `None`: the command line contains no job, and the host side will send one.
///
/// # Errors
/// When a time is invalid; with the word.
pub fn job(command_line: &str) -> Option<Result<Job, String>> {
    let (mut interval_ns, mut duration_ns, mut tick_ns) = (INTERVAL_NS, DURATION_NS, None);
    let mut asked = false;
    for word in command_line.split_ascii_whitespace() {
        let (name, text) = word.split_once('=').unwrap_or((word, ""));
        let known = matches!(name, "interval" | "duration" | "tick") || word == ALONE;
        if !known {
            continue;
        }
        asked = true;
        if word == ALONE {
            continue;
        }
        let can_be = if name == "interval" { INTERVALS_NS } else { 1_000_000..=LONGEST_NS };
        let Some(time) = time_ns(text).filter(|ns| can_be.contains(ns)) else {
            return Some(Err(format!(
                "`{word}`: a time is a number with ns, us, ms, s, m or h; an interval from 10us to 1s, others to 720h"
            )));
        };
        match name {
            "interval" => interval_ns = time,
            "duration" => duration_ns = time,
            _ => tick_ns = Some(time),
        }
    }
    // Printing disturbs the measurement, most of all on a serial line. By default it happens once, at the end.
    asked.then_some(Ok(Job {
        measure: Measure::Timer,
        activity: 0,
        duration_ns,
        tick_ns: tick_ns.unwrap_or(LONGEST_NS),
        interval_ns,
        break_ns: None,
        control: Some(Control::Hog),
    }))
}

/// A time in ns.
fn time_ns(text: &str) -> Option<u64> {
    let digits = text.find(|char: char| !char.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit_ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_asks_for_times_or_for_what_is_usual() {
        let of = |text| job(text).unwrap().unwrap();
        let asked = of("/boot/guest.elf quiet interval=250us duration=10m tick=1s");
        assert_eq!(
            (asked.interval_ns, asked.duration_ns, asked.tick_ns),
            (250_000, 600_000_000_000, 1_000_000_000)
        );
        let usual = of("alone");
        assert_eq!((usual.interval_ns, usual.duration_ns), (INTERVAL_NS, DURATION_NS));
        assert!(usual.tick_ns > usual.duration_ns && usual.control == Some(Control::Hog));
    }

    #[test]
    fn a_command_line_that_asks_for_nothing_leaves_it_to_others_and_one_that_cannot_be_is_refused() {
        assert_eq!(job(""), None);
        assert_eq!(job("/boot/guest.elf root=/dev/sda1"), None);
        for text in [
            "interval=",
            "interval=5",
            "interval=1us",
            "interval=2s",
            "duration=99999h",
            "tick=-1s",
            "interval=18446744073709551615h",
        ] {
            let refused = job(text).unwrap().unwrap_err();
            assert!(refused.contains(text), "{refused}");
        }
    }
}
