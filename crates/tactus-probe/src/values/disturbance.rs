//! Whether something came between that the CPU time of a batch does not show: a hypervisor that kept the CPU from this
//! system, or a move to another CPU.

use tactus_measure::stat::Stat;

/// How often the kernel is asked what was stolen, in ns: it counts in hundredths of a second, and reading that takes longer
/// than a batch where there are many CPUs.
const EVERY_NS: u64 = 20_000_000;

/// What is known of a CPU.
pub struct Watch {
    cpu: u32,
    looked: u64,
    stolen: Option<u64>,
}

impl Watch {
    pub fn new(cpu: u32, now: u64) -> Self {
        Self { cpu, looked: now, stolen: Stat::now().stolen(cpu) }
    }

    /// Looks, if it is time to: whether what was measured since the last look was disturbed. None: it is not known yet.
    pub fn look(&mut self, now: u64) -> Option<bool> {
        if now < self.looked + EVERY_NS {
            return None;
        }
        let stolen = Stat::now().stolen(self.cpu);
        let more = stolen.zip(self.stolen).map_or(0, |(stolen, before)| stolen.saturating_sub(before));
        (self.looked, self.stolen) = (now, stolen);
        Some(more > 0)
    }

    /// Whether this process is on its CPU.
    pub fn is_there(&self) -> bool {
        usize::try_from(self.cpu).is_ok_and(|cpu| cpu == rustix::thread::sched_getcpu())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_once_in_a_while_and_a_cpu_that_the_kernel_does_not_know_is_never_stolen() {
        let mut watch = Watch::new(u32::MAX, 0);
        assert_eq!(watch.look(EVERY_NS - 1), None);
        assert_eq!(watch.look(EVERY_NS), Some(false));
        assert_eq!(watch.look(EVERY_NS), None);
        assert!(!watch.is_there());
    }

    #[test]
    fn what_was_stolen_since_the_last_look_is_seen_once() {
        let mut watch = Watch { cpu: 0, looked: 0, stolen: Some(0) };
        let stolen = Stat::now().stolen(0).is_some_and(|stolen| stolen > 0);
        assert_eq!(watch.look(EVERY_NS), Some(stolen));
        watch.stolen = Some(u64::MAX);
        assert_eq!(watch.look(2 * EVERY_NS), Some(false), "a counter that goes back has stolen nothing");
    }
}
