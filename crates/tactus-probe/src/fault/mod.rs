//! Faults: one file each, one line in the table. They run in a [`crate::worker`].

use std::sync::atomic::{AtomicU64, Ordering};

use tactus_model::catalogue::{Fault, fault};
use tactus_model::message::Refusal;
use tactus_model::{CpuSet, Nanos};

use crate::measure::out_of_range;
use crate::sys::{self, Shared};
use crate::work::Work;

/// The files of this directory, each with its word.
macro_rules! faults {
    ($($file:ident: $word:ident),+; from outside: $($outside:ident),+) => {
        $(pub mod $file;)+

        /// Every fault of this probe.
        pub const NAMES: &[&str] = &[$(fault::$word::NAME),+];

        /// What a fault does on `cpus`; `above` is a priority above the measuring threads.
        ///
        /// # Errors
        /// When a parameter is out of its range or the system refuses it. Nothing is then changed.
        pub fn prepare(fault: &Fault, cpus: &CpuSet, above: u32) -> Result<Disturbance, Refusal> {
            fault.check().map_err(|error| out_of_range(fault.kind(), &error))?;
            match fault {
                $(Fault::$word(table) => $file::prepare(table, cpus, above),)+
                $(Fault::$outside(_) => Err(refused(
                    format!("`{}` is done to an environment from outside", fault.kind()),
                    "this is a fault of tactus",
                )),)+
            }
        }
    };
}

// What is done to a guest from outside is in the watch.
faults! { hog: Hog, block: Block, overcommit: Overcommit; from outside: HoldVcpu }

/// A fault that is ready to begin.
pub struct Disturbance {
    /// What carries it out.
    pub way: String,
    /// Its workers, a process each.
    pub works: Vec<Work>,
    /// The longest that each worker held its CPU, in ns, where workers know.
    pub longest: &'static [Shared],
    /// What disturbs by itself, in the kernel.
    pub held: Option<Box<dyn Held>>,
}

/// Something of the kernel's that disturbs by itself, and what it changed.
pub trait Held {
    /// Lets it begin.
    ///
    /// # Errors
    /// In words, where it does not.
    fn begin(&mut self) -> Result<(), String>;

    /// Ends it, puts everything back and says what it did. Called again it does nothing.
    ///
    /// # Errors
    /// In words, what could not be put back.
    fn end(&mut self) -> Result<Count, String>;
}

/// What a fault did, as far as what carried it out says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often, on all CPUs together.
    pub times: Option<u64>,
    /// The longest that was held, in ns.
    pub longest_ns: Option<u64>,
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

/// Does `once` every `every` ns from `due` on, for ever, and keeps the longest that it says it held its
/// CPU, in ns.
fn repeat(every: u64, mut due: u64, longest: &Shared, rounds: &AtomicU64, once: &dyn Fn() -> u64) {
    loop {
        sys::sleep_until(due);
        longest.0.fetch_max(once(), Ordering::Relaxed);
        rounds.fetch_add(1, Ordering::Relaxed);
        // One that came late leaves out what has passed.
        let now = sys::now();
        due += every * (now.saturating_sub(due) / every + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
