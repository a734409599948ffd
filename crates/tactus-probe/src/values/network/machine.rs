//! The work of this kernel's CPUs: /proc/stat.

use std::io;

use tactus_measure::stat::Stat;

/// The counts up to a moment, or between two of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CLOCK_MONOTONIC, in ns, or the time between.
    pub ns: u64,
    /// Time that all CPUs were busy, in ns: in user mode, in system mode, with interrupts, with soft interrupts, and
    /// with guests.
    pub busy_ns: [u64; KINDS],
    /// The time that a hypervisor took from them, in ns.
    pub stolen_ns: u64,
    /// How many CPUs these are.
    pub cpus: u64,
    /// Context switches.
    pub switches: u64,
}

/// The kinds of work of a CPU.
pub const KINDS: usize = 5;
/// The number of words in its message.
pub const NUMBERS: usize = KINDS + 4;

impl Spent {
    /// The counts until now.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn until_now() -> io::Result<Self> {
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "/proc/stat contains no CPUs");
        Self::of(&Stat::now()).ok_or_else(unknown)
    }

    fn of(stat: &Stat) -> Option<Self> {
        let [user, nice, system, hardirq, softirq, guest, stolen_ns, _] = stat.all?;
        Some(Self {
            ns: stat.ns,
            busy_ns: [user.saturating_add(nice), system, hardirq, softirq, guest],
            stolen_ns,
            cpus: stat.cpus.len() as u64,
            switches: stat.switches,
        })
    }

    /// The counts after `before`.
    pub fn since(self, before: Self) -> Self {
        let mut busy_ns = self.busy_ns;
        for (kind, before) in busy_ns.iter_mut().zip(before.busy_ns) {
            *kind = kind.saturating_sub(before);
        }
        Self {
            ns: self.ns.saturating_sub(before.ns),
            busy_ns,
            stolen_ns: self.stolen_ns.saturating_sub(before.stolen_ns),
            cpus: self.cpus,
            switches: self.switches.saturating_sub(before.switches),
        }
    }

    /// As it travels.
    pub const fn numbers(self) -> [u64; NUMBERS] {
        let [user, system, hardirq, softirq, guest] = self.busy_ns;
        [self.ns, self.stolen_ns, self.cpus, self.switches, user, system, hardirq, softirq, guest]
    }

    /// From the numbers of a message.
    pub const fn from_numbers(numbers: [u64; NUMBERS]) -> Self {
        let [ns, stolen_ns, cpus, switches, user, system, hardirq, softirq, guest] = numbers;
        Self { ns, busy_ns: [user, system, hardirq, softirq, guest], stolen_ns, cpus, switches }
    }

    /// Whether a hypervisor took more than a fiftieth of the CPUs' time.
    pub const fn was_disturbed(self) -> bool {
        self.stolen_ns > self.ns.saturating_mul(self.cpus) / 50
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 20 30 1000 40 5 6 7 3 1\ncpu0 5 10 15 500 20 2 3 3 1 0\ncpu1 5 10 15 500 20 3 3 4 2 1\n\
                        intr 99 1 2\nctxt 1234\nbtime 1\n";

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen_and_a_guests_time_counts_once() {
        let spent = Spent::of(&Stat::of(STAT)).unwrap();
        // Of 30 ticks in user mode four were guests'.
        let ms = |ns: u64| ns / 1_000_000;
        assert_eq!((spent.busy_ns.map(ms), ms(spent.stolen_ns)), ([260, 300, 50, 60, 40], 70));
        assert_eq!((spent.cpus, spent.switches), (2, 1234));
        assert_eq!(Spent::from_numbers(spent.numbers()), spent);
    }

    #[test]
    fn a_kernel_that_does_not_say_what_all_cpus_did_says_nothing() {
        assert_eq!(Spent::of(&Stat::of("cpu0 5 10 15 500 20 2 3 3 1 0\nctxt 1234\n")), None);
    }

    #[test]
    fn a_turn_of_which_a_hypervisor_took_much_is_disturbed() {
        let turn = Spent { ns: 1_000, cpus: 2, ..Spent::default() };
        assert!(!Spent { stolen_ns: 40, ..turn }.was_disturbed());
        assert!(Spent { stolen_ns: 41, ..turn }.was_disturbed());
    }
}
