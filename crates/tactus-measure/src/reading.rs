//! A measurement that measures nothing itself. A thread of ordinary priority reads what a program or the kernel writes,
//! and hands it over to the session's thread. It runs on a CPU that is not measured.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tactus_model::message::Note;

/// Limit of the values that wait for the session's thread: further values count as lost.
const MOST_WAITING: usize = 1 << 21;

/// The result of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// One that was due when nothing was to be done.
    Cycle {
        /// When it ended, CLOCK_MONOTONIC in ns.
        at: u64,
        /// Its measured value, in ns.
        value: u64,
        /// Due times behind its own that may have been missed: those before the next cycle's, or before the end.
        left: u64,
    },
    /// One that was due while an earlier one still ran.
    Behind {
        /// When it ended, CLOCK_MONOTONIC in ns.
        at: u64,
        /// Its measured value, in ns.
        value: u64,
    },
}

/// When a stand-in is due, CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// The first time.
    pub first: u64,
    /// At or after this no more.
    pub end: u64,
    /// From one to the next.
    pub interval_ns: u64,
}

/// A source of measured values. This trait does not depend on the source or on its reader.
pub trait Reading: fmt::Debug + Send + Sync {
    /// Waits until there is something to read; after its patience, counted from `began`, there is trouble.
    fn wait(&self, began: u64);

    /// Reads the values due in `span`, until its end or until it is told to stop. Its own thread calls it, and also the
    /// next function.
    fn read(&self, span: (u64, u64), stopped: &dyn Fn() -> bool);

    /// The same of a stand-in, which writes meanwhile.
    fn read_stand_in(&self, due: Due, stopped: &dyn Fn() -> bool);

    /// The values that wait.
    fn inbox(&self) -> &Inbox;

    /// The notes on this source for the report.
    fn account(&self) -> Vec<Note>;
}

/// Values that wait for the session's thread.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: Mutex<Vec<Marked>>,
    /// Values that the session's thread did not take in time.
    not_taken: AtomicU64,
    /// Lost values that no tick has reported yet.
    untold: AtomicU64,
    trouble: OnceLock<String>,
}

/// Locks a mutex even if a thread that held it has panicked.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    /// One more, if there is room.
    pub(crate) fn push(&self, marked: Marked) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() < MOST_WAITING {
            waiting.push(marked);
        } else {
            self.not_taken.fetch_add(1, Ordering::Relaxed);
            self.lose(1);
        }
    }

    /// Counts this many more values as left out.
    pub(crate) fn lose(&self, count: u64) {
        self.untold.fetch_add(count, Ordering::Relaxed);
    }

    /// How many were not taken in time.
    pub(crate) fn not_taken(&self) -> u64 {
        self.not_taken.load(Ordering::Relaxed)
    }

    /// Hands over the waiting values, and returns how many were left out since the last time.
    pub fn drain(&self, each: &mut dyn FnMut(Marked)) -> u64 {
        std::mem::take(&mut *lock(&self.waiting)).into_iter().for_each(each);
        self.untold.swap(0, Ordering::Relaxed)
    }

    /// Records why the measurement cannot continue. The first reason counts.
    pub(crate) fn fail(&self, why: String) {
        let _ = self.trouble.set(why);
    }

    /// Why the measurement cannot continue; `None`: it can.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.get().cloned()
    }
}
