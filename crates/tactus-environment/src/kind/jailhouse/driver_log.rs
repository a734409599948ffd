//! What Jailhouse's driver wrote to the kernel's log.

use std::time::Duration;

use tactus_system::{Invocation, System};

/// How many of its lines are quoted.
const LINES: usize = 3;
/// How far the two clocks may be apart, in seconds.
const SLACK: f64 = 0.05;
/// How long `dmesg` may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds since this machine was booted.
pub fn uptime(system: &dyn System) -> f64 {
    let text = system.text("/proc/uptime").unwrap_or_default();
    text.split_whitespace().next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0)
}

/// The driver's last lines since then, without time and name; none where the log cannot be read.
pub fn since(began: f64, system: &dyn System) -> Vec<String> {
    let read = system.run(&Invocation::new(["dmesg"]).within(PATIENCE));
    let log = read.ok().filter(|read| read.success()).map(|read| read.text()).unwrap_or_default();
    let mut lines: Vec<String> = log.lines().filter_map(|line| line_since(line, began - SLACK)).collect();
    lines.split_off(lines.len().saturating_sub(LINES))
}

/// `[   14.574028] jailhouse: words`, where it is not older; the hypervisor's own lines begin with a capital.
fn line_since(line: &str, began: f64) -> Option<String> {
    let (time, words) = line.strip_prefix('[')?.split_once("] ")?;
    let at: f64 = time.trim().parse().ok()?;
    let words = words.strip_prefix("jailhouse: ")?.trim();
    (at >= began && !words.is_empty()).then(|| words.chars().filter(|c| !c.is_control()).take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_and_older_ones_are_not_the_drivers_answer() {
        let line = |text: &str| line_since(text, 10.0);
        assert_eq!(line("[   14.574028] jailhouse: Not a system configuration").as_deref(), Some("Not a system configuration"));
        for other in [
            "[    9.100000] jailhouse: older",
            "[   14.574028] Jailhouse: failed to destroy cell \"inmate-active\"",
            "[   14.574028] tg3: link is up",
            "jailhouse: without a time",
            "[",
            "",
        ] {
            assert_eq!(line(other), None, "{other}");
        }
    }
}
