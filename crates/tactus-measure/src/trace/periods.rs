//! The periods of a timer, from the latencies that were written of them: which count, which are missing, and why.

use super::line::Latency;
use crate::reading::Marked;
use crate::ring::Sample;

/// The precision that the text of a time lacks: it has microseconds.
const ROUNDED_NS: u64 = 1_000;

/// Latencies of one context on one CPU.
#[derive(Clone, Debug)]
pub struct Periods {
    interval_ns: u64,
    /// Due times from here on count, and none at or after the second.
    span: (u64, u64),
    last: Option<Last>,
    /// When the first was due that counts, and how many periods have been accounted for since: measured, missed or lost.
    first_due: Option<u64>,
    accounted: u64,
    /// How many were written over before they were read.
    pub lost: u64,
    /// How many were never armed, as the tracer's thread was late.
    pub unarmed: u64,
    /// One was due at the end or later: nothing more comes that counts.
    pub over: bool,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    due: u64,
}

impl Periods {
    /// Of timers that are due in `span`, CLOCK_MONOTONIC in ns.
    pub const fn new(interval_ns: u64, span: (u64, u64)) -> Self {
        // The kernel's own periods are never 0.
        let interval_ns = if interval_ns == 0 { 1 } else { interval_ns };
        Self {
            interval_ns,
            span,
            last: None,
            first_due: None,
            accounted: 0,
            lost: 0,
            unarmed: 0,
            over: false,
        }
    }

    /// Takes the next one, and hands it over if it counts.
    ///
    /// # Errors
    /// When the numbers go back: another process has restarted the tracer.
    pub fn take(&mut self, latency: Latency, each: &mut dyn FnMut(Marked)) -> Result<(), String> {
        let Latency { at_ns: at, number, latency_ns: value, .. } = latency;
        let due = at.saturating_sub(value);
        let (begin, end) = self.span;
        if let Some(last) = self.last {
            let Some(missing) = number.checked_sub(last.number).and_then(|steps| steps.checked_sub(1)) else {
                return Err(format!(
                    "its timers are counted anew ({number} after {}): another program has set it again",
                    last.number
                ));
            };
            // Of those that are not there, the ones that would have counted.
            let lost = if last.due >= begin && due < end {
                missing
            } else if last.due >= begin {
                missing.min(end.saturating_sub(last.due).saturating_sub(1) / self.interval_ns)
            } else {
                missing.min(due.min(end).saturating_sub(begin) / self.interval_ns)
            };
            self.lost = self.lost.saturating_add(lost);
            if self.first_due.is_some() {
                self.accounted = self.accounted.saturating_add(lost);
            }
        }
        self.last = Some(Last { number, due });
        if due >= end {
            self.over = true;
            return Ok(());
        }
        if due.saturating_add(ROUNDED_NS) < begin {
            return Ok(());
        }
        let first = *self.first_due.get_or_insert(due);
        // One that is due at the end itself seems to be due just before it.
        let left = Sample { at, value }.left(self.interval_ns, end.saturating_sub(ROUNDED_NS));
        // The periods from the first to this one, and the number of those without a line.
        let passed = due.saturating_sub(first).saturating_add(self.interval_ns / 2) / self.interval_ns;
        self.unarmed = self.unarmed.max(passed.saturating_sub(self.accounted));
        self.accounted =
            self.accounted.saturating_add(1).saturating_add((value / self.interval_ns).min(left));
        each(Marked::Cycle { at, value, left });
        Ok(())
    }
}
