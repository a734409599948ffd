//! The differences between two readings of /proc/stat, and their sums.

use tactus_measure::stat::Stat;

/// The counts after `before`. A CPU that went offline or online meanwhile is left out.
pub fn since(stat: &Stat, before: &Stat) -> Stat {
    let cpus = stat.cpus.iter().filter_map(|(cpu, times)| {
        let before = before.cpus.get(cpu)?;
        let mut times = *times;
        times.iter_mut().zip(before).for_each(|(time, before)| *time = time.saturating_sub(*before));
        Some((*cpu, times))
    });
    Stat {
        ns: stat.ns.saturating_sub(before.ns),
        switches: stat.switches.saturating_sub(before.switches),
        all: None,
        cpus: cpus.collect(),
    }
}

/// Adds what came at another time.
pub fn add(sum: &mut Stat, other: &Stat) {
    sum.ns += other.ns;
    sum.switches += other.switches;
    for (cpu, times) in &other.cpus {
        let own = sum.cpus.entry(*cpu).or_default();
        own.iter_mut().zip(times).for_each(|(own, time)| *own += time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_the_difference_and_a_cpu_that_was_not_there_all_the_time_is_left_out() {
        let before = Stat::of("cpu1 1 0 0 0 0 0 0 0 0 0\nctxt 4\n");
        let after = Stat::of("cpu0 9 9 9 9 9 9 9 9 0 0\ncpu1 5 0 2 7 0 0 0 0 0 0\nctxt 9\n");
        let came = since(&after, &before);
        assert_eq!((came.switches, came.cpus.len()), (5, 1));
        let ticks = |stat: &Stat| stat.cpus[&1].map(|ns| ns / 10_000_000);
        assert_eq!(ticks(&came), [4, 0, 2, 0, 0, 0, 0, 7]);
        let mut sum = came.clone();
        add(&mut sum, &came);
        assert_eq!((sum.switches, ticks(&sum)[7]), (10, 14));
        assert_eq!(since(&before, &came).cpus[&1], [0; 8], "a counter that goes back has counted nothing");
    }
}
