//! Lines of Jailhouse's driver in the kernel's log during a command.

use std::time::Duration;

use tactus_system::{Finished, Invocation, System};

/// How many of its lines are quoted.
const LINES: usize = 3;
/// How long `dmesg` may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kernel's log; empty where it cannot be read.
pub fn read(system: &dyn System) -> String {
    let read = system.run(&Invocation::new(["dmesg"]).within(PATIENCE));
    read.ok().filter(Finished::success).map(|read| read.text()).unwrap_or_default()
}

/// The driver's last lines in a log that were not in an earlier one, without time and name. By the log's own clock,
/// which drifts from all others.
pub fn since(earlier: &str, log: &str) -> Vec<String> {
    let end = earlier.lines().rev().find_map(parts).map_or(f64::NEG_INFINITY, |(at, _)| at);
    let later = log.lines().filter_map(parts).filter(|(at, _)| *at > end);
    // The hypervisor's own lines begin with a capital.
    let lines = later.filter_map(|(_, words)| words.strip_prefix("jailhouse: ").map(str::trim));
    let mut lines: Vec<String> = lines.filter(|words| !words.is_empty()).map(quoted).collect();
    lines.split_off(lines.len().saturating_sub(LINES))
}

/// `[   14.574028] words`.
fn parts(line: &str) -> Option<(f64, &str)> {
    let (time, words) = line.strip_prefix('[')?.split_once("] ")?;
    Some((time.trim().parse().ok()?, words))
}

fn quoted(words: &str) -> String {
    words.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_and_older_ones_are_not_the_drivers_answer() {
        let earlier =
            "[    3.067886] jailhouse: module verification failed\n[    9.100000] jailhouse: older\n";
        let log = format!(
            "{earlier}[   14.574028] Jailhouse: failed to destroy cell \"inmate-active\"\n[   14.574030] tg3: link is up\n\
jailhouse: without a time\n[\n\n[   14.768607]  jailhouse: firmware: direct-loading firmware jailhouse.bin\n\
[   14.800000] jailhouse: Not a system configuration\n"
        );
        assert_eq!(since(earlier, &log), ["Not a system configuration"]);
        assert_eq!(since("", earlier), ["module verification failed", "older"]);
        assert!(since(&log, &log).is_empty());
        // Lines that have dropped out of the log meanwhile were older.
        assert_eq!(since(&log, "[   15.0] jailhouse: new\n"), ["new"]);
    }
}
