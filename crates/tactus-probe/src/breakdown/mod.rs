//! Where the time of this kernel's CPUs goes while values are measured: by CPU and kind, by thread, and by interrupt.
//! The kernel's counts are read before and after, never during the measurement.

mod stat;
mod threads;

use std::collections::BTreeMap;
use std::fs::read_to_string;

use tactus_measure::stat::Stat;
use tactus_model::outcome::breakdown::{Breakdown, CpuTime, ThreadTime};

use crate::arrivals::{self, Table};
use crate::work::tell_breakdown;
use threads::{Threads, Who};

/// The argument that makes a process one that counts until its stdin ends.
pub const ARGUMENT: &str = "breakdown";
/// Limit of the threads, and of the kinds of interrupts, that are reported.
const MOST: usize = 16;

/// The counts so far, phase by phase.
#[derive(Default)]
pub struct Tally {
    phases: Vec<Sum>,
    began: Option<Snapshot>,
    /// The state of the CPUs at the end of the counted time.
    halted: Option<Stat>,
}

/// The records of the kernel at a moment.
struct Snapshot {
    threads: Threads,
    interrupts: Table,
    softirqs: Table,
    /// Read last at the beginning, and first at the end: reading also takes time.
    stat: Stat,
}

/// The counts of a phase.
#[derive(Default)]
struct Sum {
    phase: Option<&'static str>,
    stat: Stat,
    threads: BTreeMap<Who, u64>,
    interrupts: Table,
    softirqs: Table,
}

impl Tally {
    /// Begins the count.
    pub fn begin(&mut self) {
        self.halted = None;
        self.began = Some(Snapshot {
            threads: Threads::now(),
            interrupts: interrupts(),
            softirqs: softirqs(),
            stat: Stat::now(),
        });
    }

    /// Stops the count: [`Tally::end`] may then take its time.
    pub fn halt(&mut self) {
        self.halted = Some(Stat::now());
    }

    /// Adds what came since the beginning to a phase.
    pub fn end(&mut self, phase: Option<&'static str>) {
        let now = self.halted.take().unwrap_or_else(Stat::now);
        let Some(began) = self.began.take() else { return };
        let at = self.phases.iter().position(|known| known.phase == phase).unwrap_or_else(|| {
            self.phases.push(Sum { phase, ..Sum::default() });
            self.phases.len() - 1
        });
        let sum = &mut self.phases[at];
        stat::add(&mut sum.stat, &stat::since(&now, &began.stat));
        arrivals::add(&mut sum.softirqs, &arrivals::since(&softirqs(), &began.softirqs));
        arrivals::add(&mut sum.interrupts, &arrivals::since(&interrupts(), &began.interrupts));
        for (who, ns) in began.threads.ran() {
            *sum.threads.entry(who).or_default() += ns;
        }
    }

    /// Says what came of all phases.
    pub fn say(self) {
        self.phases.into_iter().map(Sum::told).for_each(|breakdown| tell_breakdown(&breakdown));
    }
}

impl Sum {
    fn told(self) -> Breakdown {
        let thread = |(Who { pid, process, name }, ns)| ThreadTime { name, process, pid, ns };
        let threads = self.threads.into_iter().map(thread).collect();
        Breakdown {
            phase: self.phase.map(str::to_owned),
            ns: self.stat.ns,
            switches: self.stat.switches,
            cpus: self.stat.cpus.into_iter().map(|(cpu, times)| CpuTime::of(cpu, times)).collect(),
            threads: arrivals::largest(threads, MOST, |thread: &ThreadTime| thread.ns),
            interrupts: arrivals::most_frequent(self.interrupts, MOST),
            softirqs: arrivals::most_frequent(self.softirqs, MOST),
        }
    }
}

fn interrupts() -> Table {
    arrivals::table(&read_to_string("/proc/interrupts").unwrap_or_default())
}

fn softirqs() -> Table {
    arrivals::table(&read_to_string("/proc/softirqs").unwrap_or_default())
}

/// `tactus-probe breakdown`: counts from `counting` until its stdin ends, and says what came.
#[expect(clippy::print_stdout, reason = "a process of the probe speaks to the one that has started it")]
pub fn main() -> u8 {
    let mut tally = Tally::default();
    tally.begin();
    println!("counting");
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    tally.end(None);
    tally.say();
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    #[test]
    fn time_between_begin_and_end_belongs_to_the_phase_and_time_between_phases_to_none() {
        let mut tally = Tally::default();
        let busy = |ns| {
            let until = sys::own_time() + ns;
            while sys::own_time() < until {}
        };
        for phase in ["TX", "RX", "TX"] {
            tally.begin();
            busy(if phase == "TX" { 30_000_000 } else { 5_000_000 });
            tally.halt();
            tally.end(Some(phase));
            busy(5_000_000);
        }
        tally.end(Some("no phase"));
        let told: Vec<Breakdown> = tally.phases.into_iter().map(Sum::told).collect();
        let phases: Vec<_> = told.iter().map(|own| own.phase.as_deref()).collect();
        assert_eq!(phases, [Some("TX"), Some("RX")]);
        let own = |breakdown: &Breakdown| {
            let own = |thread: &&ThreadTime| thread.pid == std::process::id();
            breakdown.threads.iter().filter(own).map(|thread| thread.ns).sum::<u64>()
        };
        assert!(own(&told[0]) >= 60_000_000, "{:?}", told[0].threads);
        assert!(own(&told[1]) >= 5_000_000 && own(&told[1]) < own(&told[0]), "{:?}", told[1].threads);
        assert!(!told[0].cpus.is_empty() && told[0].ns >= 60_000_000);
    }
}
