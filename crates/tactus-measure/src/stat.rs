//! /proc/stat: the counts of the CPUs of this kernel (proc_stat(5)).

use std::collections::BTreeMap;
use std::fs;

use tactus_model::outcome::breakdown::KINDS;

use crate::sys;

/// `/proc` gives CPU times in hundredths of a second on every Linux.
const NS_PER_TICK: u64 = 10_000_000;

/// Kinds of time in ns, in the order of [`KINDS`].
pub type Times = [u64; KINDS.len()];

/// Counts up to a moment, or between two of them. A count that the kernel does not report is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// CLOCK_MONOTONIC, in ns, or the time between.
    pub ns: u64,
    /// Context switches of all CPUs.
    pub switches: u64,
    /// The time of all CPUs, in ns.
    pub all: Option<Times>,
    /// The time of each that is there.
    pub cpus: BTreeMap<u32, Times>,
}

impl Stat {
    /// The counts until now.
    #[must_use]
    pub fn now() -> Self {
        Self { ns: sys::now(), ..Self::of(&fs::read_to_string("/proc/stat").unwrap_or_default()) }
    }

    /// Reads the text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut own = Self::default();
        for (name, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
            match name.strip_prefix("cpu") {
                Some("") => own.all = times(rest),
                Some(cpu) => own.cpus.extend(cpu.parse().ok().zip(times(rest))),
                None if name == "ctxt" => own.switches = rest.trim().parse().unwrap_or(0),
                None => {}
            }
        }
        own
    }

    /// How long a hypervisor has kept a CPU from this system, in ns.
    #[must_use]
    pub fn stolen(&self, cpu: u32) -> Option<u64> {
        let [.., steal, _] = self.cpus.get(&cpu)?;
        Some(*steal)
    }
}

/// The times of a line: user, nice, system, idle, iowait, irq, softirq, steal, guest and `guest_nice` in ticks. Those of
/// guests are in the first two as well; waiting for a disk is idle.
fn times(line: &str) -> Option<Times> {
    let mut words = line.split_ascii_whitespace();
    let mut ticks = [0_u64; 10];
    for tick in &mut ticks {
        *tick = words.next()?.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, hardirq, softirq, steal, guest, guest_nice] = ticks;
    let (user, nice) = (user.saturating_sub(guest), nice.saturating_sub(guest_nice));
    let guest = guest.saturating_add(guest_nice);
    let times = [user, nice, system, hardirq, softirq, guest, steal, idle.saturating_add(iowait)];
    Some(times.map(|ticks| ticks.saturating_mul(NS_PER_TICK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 20 30 1000 40 5 6 7 3 1\ncpu1 5 10 15 500 20 2 3 3 1 0\ncpu10 5 10 15 500 20 3 3 4 2 1\n\
                        intr 99 1 2\nctxt 1234\nbtime 1\n";

    #[test]
    fn a_guests_time_counts_once_and_waiting_for_a_disk_is_idle() {
        let stat = Stat::of(STAT);
        let ticks = |times: &Times| times.map(|ns| ns / NS_PER_TICK);
        assert_eq!(stat.all.as_ref().map(ticks), Some([7, 19, 30, 5, 6, 4, 7, 1040]));
        let cpus: Vec<_> = stat.cpus.iter().map(|(cpu, times)| (*cpu, ticks(times))).collect();
        assert_eq!(cpus, [(1, [4, 10, 15, 2, 3, 1, 3, 520]), (10, [3, 9, 15, 3, 3, 3, 4, 520])]);
        assert_eq!(stat.switches, 1234);
    }

    #[test]
    fn what_was_stolen_is_that_of_the_cpu_and_not_of_another() {
        let stat = Stat::of(STAT);
        assert_eq!(stat.stolen(1), Some(30_000_000));
        assert_eq!(stat.stolen(10), Some(40_000_000));
        assert_eq!(stat.stolen(0), None);
    }

    #[test]
    fn a_kernel_that_says_less_says_nothing() {
        for text in [
            "",
            "cpu",
            "cpu 1 2 3\n",
            "cpu  1 2 3 4 5 6 7 8 9 x\n",
            "cpu0 1 2 3 4 5 6 7 8 9\n",
            "cpux 1 2 3 4 5 6 7 8 9 0\n",
            "cpu0 -1 2 3 4 5 6 7 8 9 0\n",
            "ctxt\n",
            "ctxt x\n",
        ] {
            assert_eq!(Stat::of(text), Stat::default(), "{text}");
        }
    }

    #[test]
    fn numbers_without_sense_overflow_nothing() {
        let most = u64::MAX;
        let line = format!("1 {most} {most} {most} {most} 5 6 7 {most} {most}");
        assert_eq!(times(&line).unwrap()[0], 0);
    }
}
