//! The thread that holds a CPU for a control: it reads the clock in a loop with SCHED_FIFO, above the measuring
//! threads. If they have priority 99, it has the same, and already runs when they become due.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tactus_measure::channel::{self, Received, Receiver, Sender};
use tactus_measure::thread::make_fifo;
use tactus_model::message::Refusal;

use crate::sys;

/// One order: to hold the CPU from `from` until `until`, and in any case for `size_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which order it is.
    pub number: u32,
    /// When to wake, CLOCK_MONOTONIC in ns.
    pub from: u64,
    /// Until when, if it wakes in time.
    pub until: u64,
    /// How long, if it does not.
    pub size_ns: u64,
}

/// A stretch of the CPU's time that the hog held, CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The order that it was for.
    pub number: u32,
    /// Its beginning.
    pub from: u64,
    /// Its end.
    pub to: u64,
}

impl Held {
    /// The part of it that a thread waited which was due at `start` and then every `interval_ns`: from its first due
    /// time within. `None`: it was not due. A polling thread (0) waited all of it.
    pub const fn injected(self, start: u64, interval_ns: u64) -> Option<u64> {
        let due = match self.from.saturating_sub(start).checked_next_multiple_of(interval_ns) {
            Some(into) => start + into,
            None => self.from,
        };
        match self.to.checked_sub(due) {
            Some(injected @ 1..) => Some(injected),
            _ => None,
        }
    }
}

/// The thread.
pub struct Hog {
    orders: Option<Sender<Hold>>,
    held: Receiver<Held>,
    handle: Option<JoinHandle<()>>,
}

impl Hog {
    /// Starts it.
    ///
    /// # Errors
    /// When SCHED_FIFO is refused to it.
    pub fn start(cpu: u32, priority: u32) -> Result<Self, Refusal> {
        let (orders, to_hold) = channel::channel::<Hold>();
        let (sender, held) = channel::channel();
        let (ready, is_ready) = channel::channel();
        let failed = |why: String| Refusal { reason: why, hint: None };
        let handle = std::thread::Builder::new()
            .name(format!("hog-{cpu}"))
            .stack_size(128 * 1024)
            .spawn(move || {
                let made = make_fifo(cpu, priority);
                let fit = made.is_ok();
                ready.send(made);
                while let Some(hold) = fit.then(|| to_hold.receive()).flatten() {
                    sys::sleep_until(hold.from);
                    let from = sys::now();
                    let until = hold.until.max(from + hold.size_ns);
                    let mut to = from;
                    while to < until {
                        to = sys::now();
                    }
                    sender.send(Held { number: hold.number, from, to });
                }
            })
            .map_err(|error| failed(format!("no thread could be started: {error}")))?;
        is_ready.receive().unwrap_or_else(|| Err(failed("the hog ended before it was ready".into())))?;
        Ok(Self { orders: Some(orders), held, handle: Some(handle) })
    }

    /// Gives it an order.
    pub fn hold(&self, hold: Hold) {
        if let Some(orders) = &self.orders {
            orders.send(hold);
        }
    }

    /// The hold of this order. A late answer to an earlier order does not count.
    pub fn held(&self, number: u32, patience: Duration) -> Option<Held> {
        of(&self.held, number, patience)
    }
}

fn of(receiver: &Receiver<Held>, number: u32, patience: Duration) -> Option<Held> {
    let until = Instant::now() + patience;
    loop {
        match receiver.receive_within(until.saturating_duration_since(Instant::now())) {
            Received::Item(held) if held.number == number => return Some(held),
            Received::Item(_) => {}
            Received::Nothing | Received::Closed => return None,
        }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn held(number: u32) -> Held {
        Held { number, from: 9_900_000, to: 11_000_000 }
    }

    #[test]
    fn what_is_injected_counts_from_the_first_due_time_that_was_met() {
        assert_eq!(held(0).injected(0, 1_000_000), Some(1_000_000), "due at 10 ms");
        assert_eq!(held(0).injected(0, 200_000), Some(1_000_000));
        assert_eq!(held(0).injected(100_000, 200_000), Some(1_100_000), "due when it began");
        assert_eq!(held(0).injected(0, 0), Some(1_100_000), "a polling thread is always due");
        assert_eq!(held(0).injected(10_500_000, 200_000), Some(500_000), "due for the first time within");
        assert_eq!(held(0).injected(0, 6_000_000), None, "due at 12 ms");
        assert_eq!(held(0).injected(0, 11_000_000), None, "due when it ended");
    }

    #[test]
    fn what_is_told_late_of_one_attempt_is_not_taken_for_the_next() {
        let (sender, receiver) = channel::channel();
        [1, 2, 3].into_iter().for_each(|number| sender.send(held(number)));
        assert_eq!(of(&receiver, 2, Duration::ZERO), Some(held(2)));
        assert_eq!(of(&receiver, 4, Duration::ZERO), None);
        sender.send(held(4));
        assert_eq!(of(&receiver, 5, Duration::from_millis(1)), None);
    }
}
