//! From the records of a ring to cycles. Records that were overwritten while they were read are left out, and so are
//! those that contradict themselves. Pure: no bytes make it panic, and each record is counted once, as a cycle or as
//! left out.

use std::mem::offset_of;

use tactus_application::layout::{NO_CPU, Record};
use tactus_model::catalogue::measure::MarkedValue;

use super::header::{RECORD, u32_at, u64_at};
use crate::reading::Marked;

/// The records that are left out, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Written over before they were read.
    pub lost: u64,
    /// Their times contradict each other or the clock.
    pub wrong: u64,
    /// The reason of the first of those.
    pub first_wrong: Option<String>,
    /// Due times at which no cycle was marked, and which no late one explains.
    pub unmarked: u64,
    /// Cycles that were marked on another CPU than the plan's: they count, and that is said.
    pub elsewhere: u64,
}

/// The parameters of a measurement of a program.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The measured value of a cycle.
    pub value: MarkedValue,
    /// Time between two due times, in ns.
    pub interval_ns: u64,
    /// The CPU on which its thread should run.
    pub cpu: u32,
}

/// Takes records in their order.
#[derive(Debug)]
pub struct Cycles {
    asked: Asked,
    /// Due times that count, CLOCK_MONOTONIC in ns.
    span: (u64, u64),
    /// The number of the next record, from 1.
    next: u64,
    /// The end of the last cycle, in ns.
    last_end: u64,
    /// The last due time, or the last start if the cycle has no due time, in ns.
    last_due: u64,
    /// A cycle that waits until the due times skipped after it are counted: its due time, end and value.
    held: Option<(u64, u64, u64)>,
    /// Whether the last cycle had a due time.
    has_due: bool,
    /// Whether the last cycle came late because of those before it.
    behind: bool,
    /// The records left out of the counted span.
    pub left_out: LeftOut,
}

/// A record as it was written.
#[derive(Clone, Copy, Debug)]
struct Mark {
    due: u64,
    start: u64,
    end: u64,
    cpu: u32,
}

impl Mark {
    /// The record of this number; `None`: it is missing, or is being written.
    fn read(bytes: &[u8], number: u64) -> Option<Self> {
        let at = |offset| u64_at(bytes, offset);
        (at(offset_of!(Record, number)) == number && number > 0).then(|| Self {
            due: at(offset_of!(Record, due)),
            start: at(offset_of!(Record, start)),
            end: at(offset_of!(Record, end)),
            cpu: u32_at(bytes, offset_of!(Record, cpu)),
        })
    }

    /// When it was to begin.
    const fn planned(self) -> u64 {
        if self.due == 0 { self.start } else { self.due }
    }
}

impl Cycles {
    /// After `written` records, of which none counts. `span`: due times that count, CLOCK_MONOTONIC in ns.
    pub fn after(written: u64, asked: Asked, span: (u64, u64)) -> Self {
        let next = written.saturating_add(1);
        let (last_end, last_due, held, left_out) = (0, 0, None, LeftOut::default());
        Self { asked, span, next, last_end, last_due, held, has_due: false, behind: false, left_out }
    }

    /// The number of the next record to be read, from 1.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The last due time, or start where there was none, in ns; 0: there was no cycle.
    pub const fn last_due(&self) -> u64 {
        self.last_due
    }

    /// The end of the last cycle, in ns; 0: there was none that can be true.
    pub const fn last_end(&self) -> u64 {
        self.last_end
    }

    /// Goes on to a record: those before it were written over. Due times between say nothing any more.
    pub fn skip_to(&mut self, number: u64, each: &mut dyn FnMut(Marked)) {
        let lost = number.saturating_sub(self.next);
        if lost > 0 {
            self.left_out.lost = self.left_out.lost.saturating_add(lost);
            self.release(0, each);
            self.behind = false;
            self.next = number;
        }
    }

    /// Takes records from [`Self::next`] on. `whole_from`: the first of which nothing can have been written over while
    /// it was read. `now`: CLOCK_MONOTONIC in ns after it was read.
    pub fn take(&mut self, bytes: &[u8], whole_from: u64, now: u64, each: &mut dyn FnMut(Marked)) {
        for record in bytes.chunks_exact(RECORD) {
            let number = self.next;
            match Mark::read(record, number).filter(|_| number >= whole_from) {
                Some(mark) => {
                    self.mark(mark, now, each);
                    self.next = number.saturating_add(1);
                }
                None => self.skip_to(number.saturating_add(1), each),
            }
        }
    }

    /// Nothing more comes.
    pub fn finish(&mut self, each: &mut dyn FnMut(Marked)) {
        let told = self.left_out.unmarked;
        self.release(if self.has_due { u64::MAX } else { 0 }, each);
        // Due times after the last cycle are counted up to the end of the measurement.
        self.left_out.unmarked = told;
    }

    fn mark(&mut self, mark: Mark, now: u64, each: &mut dyn FnMut(Marked)) {
        let planned = mark.planned();
        if let Some(why) = self.contradiction(mark, now) {
            // A record from before the counted span does not count.
            if now >= self.span.0 {
                self.left_out.wrong = self.left_out.wrong.saturating_add(1);
                self.left_out.first_wrong.get_or_insert(why);
                self.release(0, each);
            }
            return;
        }
        let behind = mark.due != 0 && mark.due <= self.last_end && self.asked.value != MarkedValue::Execution;
        let periods = planned.saturating_sub(self.last_due).saturating_add(self.asked.interval_ns / 2)
            / self.asked.interval_ns.max(1);
        let before = if mark.due == 0 { 0 } else { periods.saturating_sub(1) };
        if std::mem::take(&mut self.behind) {
            self.left_out.unmarked = self.left_out.unmarked.saturating_add(before);
        }
        self.release(before, each);
        (self.last_end, self.last_due) = (mark.end, planned);
        if planned < self.span.0 || planned >= self.span.1 {
            return;
        }
        if mark.cpu != self.asked.cpu && mark.cpu != NO_CPU {
            self.left_out.elsewhere += 1;
        }
        let value = match self.asked.value {
            MarkedValue::Response => mark.end - planned,
            MarkedValue::Start => mark.start - planned,
            MarkedValue::Execution => mark.end - mark.start,
        };
        (self.behind, self.has_due) = (behind, mark.due != 0);
        if behind {
            each(Marked::Behind { at: mark.end, value });
        } else {
            self.held = Some((planned, mark.end, value));
        }
    }

    /// Why a record cannot be true.
    fn contradiction(&self, mark: Mark, now: u64) -> Option<String> {
        let Mark { due, start, end, .. } = mark;
        let planned = mark.planned();
        if end < start {
            return Some(format!("a cycle ended {} ns before it began", start - end));
        }
        if end > now {
            return Some(format!("a cycle ends {} ns after it was read", end - now));
        }
        if start < self.last_end {
            return Some(format!(
                "a cycle began {} ns before the one before it ended",
                self.last_end - start
            ));
        }
        if planned < self.last_due {
            return Some(format!("a cycle was due {} ns before the one before it", self.last_due - planned));
        }
        if start < due && self.asked.value != MarkedValue::Execution {
            return Some(format!("a cycle began {} ns before it was due", due - start));
        }
        if due == 0 && self.asked.value == MarkedValue::Start {
            return Some("a cycle has no due time, so it is unknown how late it began".into());
        }
        None
    }

    /// Hands over the cycle that waited for its successor. `between` due times before the successor have no mark. Due
    /// times after the end of the span do not count.
    fn release(&mut self, between: u64, each: &mut dyn FnMut(Marked)) {
        let Some((due, at, value)) = self.held.take() else { return };
        let wanted = self.span.1.saturating_sub(due).saturating_sub(1) / self.asked.interval_ns.max(1);
        let between = between.min(wanted);
        let swallowed = match self.asked.value {
            MarkedValue::Execution => 0,
            _ => tactus_model::latency::swallowed(value, self.asked.interval_ns),
        };
        self.left_out.unmarked = self.left_out.unmarked.saturating_add(between.saturating_sub(swallowed));
        each(Marked::Cycle { at, value, left: between });
    }
}
