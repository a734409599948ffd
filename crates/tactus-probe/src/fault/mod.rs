//! Faults: one file each, one line in the table. They run in a [`crate::worker`].

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::catalogue::{Fault, fault};
use tactus_model::lot::{Lots, MOST_MOMENTS};
use tactus_model::message::Refusal;
use tactus_model::{CpuSet, Nanos};

use crate::sys::{self, Shared};
use crate::work::{Work, out_of_range};

/// The files of this directory, each with its word.
macro_rules! faults {
    ($($file:ident: $word:ident),+; from outside: $($outside:ident),+) => {
        $(pub mod $file;)+

        /// Every fault of this probe.
        pub const NAMES: &[&str] = &[$(fault::$word::NAME),+];

        /// Prepares a fault on `cpus`; `above` is a priority above the measuring threads. `seed`: its times are random,
        /// and reported.
        ///
        /// # Errors
        /// When a parameter is out of its range or the system refuses it. Nothing is then changed.
        pub fn prepare(fault: &Fault, cpus: &CpuSet, above: u32, seed: Option<u64>) -> Result<Disturbance, Refusal> {
            fault.check().map_err(|error| out_of_range(fault.kind(), &error))?;
            let (length, every) = fault.size();
            let rhythm = Rhythm::new(length, every, seed)?;
            match fault {
                $(Fault::$word(table) => $file::prepare(table, cpus, above, rhythm),)+
                $(Fault::$outside(_) => Err(refused(
                    format!("`{}` is applied to an environment from outside", fault.kind()),
                    "this is a bug in tactus",
                )),)+
            }
        }
    };
}

// The watch, outside of the guest, injects the faults that act on a guest from outside.
faults! { hog: Hog, block: Block, overcommit: Overcommit; from outside: HoldVcpu }

/// A fault that is ready to begin.
pub struct Disturbance {
    /// The way in which it is carried out.
    pub way: String,
    /// Its workers, a process each.
    pub works: Vec<Work>,
    /// The longest that each worker held its CPU, in ns, where workers know.
    pub longest: &'static [Shared],
    /// The disturbance that runs by itself, in the kernel.
    pub held: Option<Box<dyn Held>>,
    /// When it was made, where a worker keeps that.
    pub made: Option<Made>,
}

/// An object of the kernel that disturbs by itself, and the changes that it needed.
pub trait Held {
    /// Lets it begin.
    ///
    /// # Errors
    /// In words, when it does not begin.
    fn begin(&mut self) -> Result<(), String>;

    /// Ends it, restores everything and returns its counts. A second call does nothing.
    ///
    /// # Errors
    /// In words, the changes that could not be restored.
    fn end(&mut self) -> Result<Count, String>;
}

/// The counts of a fault, as far as its mechanism reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often, on all CPUs together.
    pub times: Option<u64>,
    /// The longest that was held, in ns.
    pub longest_ns: Option<u64>,
    /// When each began, CLOCK_MONOTONIC in ns.
    pub at: Vec<u64>,
    /// The way in which it was carried out, if that is only known at the end.
    pub way: Option<String>,
}

fn refused(reason: String, hint: &str) -> Refusal {
    Refusal { reason, hint: Some(hint.to_owned()) }
}

/// The size of a fault of which `share` carry out one after the other on each CPU, if it leaves
/// something to the rest of the machine.
fn size(word: &str, (length, every): (Nanos, Nanos), share: u64) -> Result<(u64, u64), Refusal> {
    let (length, every) = (length.0, every.0);
    let each = length.saturating_mul(share);
    if length == 0 || each >= every / 100 * 95 {
        return Err(refused(
            format!(
                "{}: {} every {} does nothing, or leaves less than 5 % of a CPU to the rest",
                word,
                Nanos(each),
                Nanos(every)
            ),
            "give a length above zero and a longer `every`",
        ));
    }
    Ok((length, every))
}

/// When a fault is made.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    every: u64,
    lots: Option<Lots>,
    made: Option<Made>,
}

impl Rhythm {
    /// Once in `every` ns, for `length` ns; with a seed, at a random moment that is recorded.
    fn new(length: u64, every: u64, seed: Option<u64>) -> Result<Self, Refusal> {
        let lots = seed.map(|seed| Lots::of_fault(length, every, seed));
        let made = lots
            .map(|_| Made::new())
            .transpose()
            .map_err(|error| Refusal { reason: error.to_string(), hint: None })?;
        Ok(Self { every: every.max(1), lots, made })
    }

    /// The draws of its moments, if they are random.
    pub const fn lots(&self) -> Option<Lots> {
        self.lots
    }

    /// The record of the moments.
    pub const fn made(&self) -> Option<Made> {
        self.made
    }

    /// The same without keeping them: another worker does.
    pub const fn untold(self) -> Self {
        Self { made: None, ..self }
    }

    /// The next moment; all processes have the same without speaking to each other.
    pub const fn next(&self, now: u64) -> u64 {
        match self.lots {
            Some(lots) => lots.next(now),
            None => (now / self.every + 1) * self.every,
        }
    }

    /// The next moment after the one at `at`: moments that have passed are skipped, and each period has one.
    pub fn after(&self, at: u64, now: u64) -> u64 {
        match self.lots {
            Some(lots) => lots.next(now.max((at / self.every + 1) * self.every)),
            None => self.next(now),
        }
    }
}

/// When a fault was made: times in memory that a worker shares with its parent, the first word their number.
#[derive(Clone, Copy, Debug)]
pub struct Made(&'static [AtomicU64]);

impl Made {
    fn new() -> std::io::Result<Self> {
        Ok(Self(sys::shared(1 + MOST_MOMENTS)?))
    }

    /// Keeps a moment, CLOCK_MONOTONIC in ns, if there is room.
    pub fn keep(self, at: u64) {
        let count = self.0[0].load(Ordering::Relaxed);
        if let Some(slot) = usize::try_from(count).ok().and_then(|count| self.0.get(count + 1)) {
            slot.store(at, Ordering::Relaxed);
            self.0[0].store(count + 1, Ordering::Release);
        }
    }

    /// The recorded moments.
    pub fn times(self) -> Vec<u64> {
        let count = usize::try_from(self.0[0].load(Ordering::Acquire)).unwrap_or(0);
        self.0.iter().skip(1).take(count).map(|at| at.load(Ordering::Relaxed)).collect()
    }
}

/// Calls `once` again and again, for ever, and keeps the longest time that it held its CPU, in ns.
fn repeat(rhythm: Rhythm, longest: &Shared, rounds: &AtomicU64, once: &dyn Fn() -> u64) {
    // Not at once: the others are to come so far.
    let mut due = rhythm.next(sys::now() + rhythm.every);
    loop {
        sys::sleep_until(due);
        let at = sys::now();
        longest.0.fetch_max(once(), Ordering::Relaxed);
        if let Some(made) = rhythm.made {
            made.keep(at);
        }
        rounds.fetch_add(1, Ordering::Relaxed);
        due = rhythm.after(at, sys::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_by_lot_comes_once_in_each_period_and_is_kept() {
        let drawn = Rhythm::new(4_000_000, 1_000_000_000, Some(7)).unwrap();
        let (mut due, mut phases) = (0, std::collections::BTreeSet::new());
        for period in 1..50 {
            due = drawn.after(due, due + 4_000_000);
            assert_eq!(due / 1_000_000_000, period);
            phases.insert(due % 1_000_000_000);
        }
        assert!((5..=10).contains(&phases.len()), "{phases:?}");
        let made = drawn.made().unwrap();
        (0..MOST_MOMENTS as u64 + 5).for_each(|at| made.keep(at));
        assert_eq!(made.times(), (0..MOST_MOMENTS as u64).collect::<Vec<_>>());
        let even = Rhythm::new(4_000_000, 1_000_000_000, None).unwrap();
        assert_eq!((even.next(5), even.after(1_000_000_050, 1_004_000_050)), (1_000_000_000, 2_000_000_000));
        assert_eq!(
            even.after(1_000_000_050, 3_500_000_000),
            4_000_000_000,
            "what came late leaves out what has passed"
        );
        assert!(even.made().is_none() && drawn.untold().made().is_none());
    }

    #[test]
    fn a_fault_without_length_or_without_end_is_refused() {
        let hog = |length, every, share| size("hog", (Nanos(length), Nanos(every)), share);
        assert_eq!(hog(1_000, 2_000, 1).unwrap(), (1_000, 2_000));
        for (length, every, share) in
            [(1_000, 1_000, 1), (0, 1_000, 1), (950, 1_000, 1), (200, 1_000, 5), (u64::MAX, u64::MAX, 3)]
        {
            let refusal = hog(length, every, share).unwrap_err();
            assert!(refusal.reason.contains("leaves less than 5 %") && refusal.hint.is_some(), "{refusal:?}");
        }
    }
}
