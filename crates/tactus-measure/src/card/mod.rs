//! The interrupt card: a device of the guest, with a measuring thread behind it.
//!
//! Card and guest share a page of memory (docs/design/card.md). The card writes a number to one word of it and raises
//! an interrupt. The guest's handler copies the number to another word, and counts its runs in a third.

mod answering;
mod connect;
mod device;
mod own_part;
pub mod pci;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tactus_model::Nanos;
use tactus_model::catalogue::measure::Interrupt;
use tactus_model::message::Note;
use tactus_model::outcome::CardCounts;

use crate::sys::{self, Page};

pub use answering::Answering;
use device::{Handler, Raising};
use own_part::own_part;

/// The word that the card writes.
const SENT: usize = 0;
/// The word that the guest copies it to.
const ANSWERED: usize = 1;
/// The word in which the guest counts what it has handled.
const HANDLED: usize = 2;

/// An interrupt that is unanswered for this long is lost, in ns.
pub const LOST_NS: u64 = 1_000_000_000;
/// After this many lost interrupts in a row the guest counts as silent.
const SILENT: u32 = 3;
/// Limit for the interrupts of the warm-up, in ns. Without it, a guest that answers each one just before it is lost
/// would delay the measurement for days.
const WARM_UP_NS: u64 = 10_000_000_000;
/// The card polls for an answer for this long, in ns, and then rests between two reads. The guest's answer may need a
/// thread that this polling thread keeps from its CPU.
const POLLED_NS: u64 = 1_000_000;
/// A rest is this part of the time waited so far. An answer may be seen late by that much.
const REST: u64 = 16;
/// Reads of the memory between two reads of the clock.
const LOOKS: u32 = 16;
/// Allowed difference of two clocks in addition to a hundredth of the time passed, in ns: a slow clock has long ticks.
const CLOCKS_DIFFER_NS: u64 = 2_000;

/// Memory and a vector: what card and guest have between them.
#[derive(Debug)]
struct Doorbell {
    page: Arc<Page>,
    ring: Ring,
}

/// How an interrupt is raised.
#[derive(Debug)]
enum Ring {
    /// The guest polls, and nothing is raised.
    Nothing,
    /// By an eventfd.
    Vector(OwnedFd),
    /// By a register of a device.
    Device(Raising),
}

impl Doorbell {
    /// Sends a number.
    #[inline]
    fn raise(&self, number: u32) {
        self.page.word(SENT).store(number, Ordering::Release);
        match &self.ring {
            Ring::Nothing => {}
            Ring::Vector(vector) => {
                let _ = rustix::io::write(vector, &1u64.to_ne_bytes());
            }
            Ring::Device(device) => device.raise(),
        }
    }

    #[inline]
    fn answered(&self) -> u32 {
        self.page.word(ANSWERED).load(Ordering::Acquire)
    }

    /// The device, if it has a clock.
    #[inline]
    const fn clock(&self) -> Option<&Raising> {
        match &self.ring {
            Ring::Device(device) if device.has_clock() => Some(device),
            _ => None,
        }
    }
}

/// The result of an interrupt. Times are CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The answer was seen at this time.
    At(u64),
    /// It was given up at this time.
    Lost(u64),
    /// The job ends, or the guest answers with a wrong number: no value counts.
    None,
}

/// The card's side. One thread at a time sends: the measuring one, or the session's before that begins.
#[derive(Debug)]
pub struct Card {
    bell: Doorbell,
    /// The connection to the server: this process stays a peer while it is open.
    _server: Option<UnixStream>,
    /// The thread that answers the interrupts of a device.
    handler: Option<Handler>,
    /// How far due times are moved at random, in per cent of the interval.
    pub spread: u32,
    /// Interrupts before those that count.
    warm_up: u32,
    /// Of these, the interrupts that were skipped for lack of time.
    cold: AtomicU32,
    /// Another CPU than its own.
    beside: Option<u32>,
    /// The last number that was sent.
    sent: AtomicU32,
    /// The last number that was answered.
    seen: AtomicU32,
    lost: AtomicU64,
    late: AtomicU64,
    /// Periods in which the card itself came too late to raise anything.
    left_out: AtomicU64,
    /// Lost since the last answer.
    silent: AtomicU32,
    /// The number that the guest wrote and that was never sent; `u64::MAX`: it wrote no such number.
    wrong: AtomicU64,
    /// A time of the device's clock that cannot be true, and the time that really passed, in ns; 0: there was none.
    impossible: [AtomicU64; 2],
}

impl Card {
    fn new(bell: Doorbell, table: &Interrupt) -> Self {
        // Of a guest that was measured before, its last answer is there.
        let number = bell.answered();
        Self {
            bell,
            _server: None,
            handler: None,
            spread: table.spread(),
            warm_up: table.warm_up(),
            cold: AtomicU32::new(0),
            beside: None,
            sent: AtomicU32::new(number),
            seen: AtomicU32::new(number),
            lost: AtomicU64::new(0),
            late: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            silent: AtomicU32::new(0),
            wrong: AtomicU64::new(u64::MAX),
            impossible: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// The CPU on which the interrupts of a device are answered; `None`: a guest answers.
    #[must_use]
    pub fn is_answered_on(&self) -> Option<u32> {
        self.handler.as_ref().map(|handler| handler.cpu)
    }

    /// Raises an interrupt and waits for its answer. Returns when it was raised, and what came of it.
    #[inline]
    pub fn ask(&self, stopped: impl Fn() -> bool) -> (u64, Answer) {
        let number = self.sent.load(Ordering::Relaxed).wrapping_add(1);
        self.sent.store(number, Ordering::Relaxed);
        let clock = self.bell.clock();
        let began = clock.map(|device| (sys::now(), device.ticks()));
        let raised = sys::now();
        self.bell.raise(number);
        loop {
            for _ in 0..LOOKS {
                let seen = self.bell.answered();
                if seen == number {
                    let at = sys::now();
                    self.seen.store(number, Ordering::Relaxed);
                    self.silent.store(0, Ordering::Relaxed);
                    // The look at which it would have been given up came too late itself.
                    if at >= raised + LOST_NS {
                        self.lost.fetch_add(1, Ordering::Relaxed);
                        self.late.fetch_add(1, Ordering::Relaxed);
                        return (raised, Answer::Lost(at));
                    }
                    let (Some(device), Some(began)) = (clock, began) else {
                        return (raised, Answer::At(at));
                    };
                    return (raised, self.own_time(device, began, raised));
                }
                if seen != self.seen.load(Ordering::Relaxed) && !self.take_other(number, seen) {
                    return (raised, Answer::None);
                }
            }
            let now = sys::now();
            if now >= raised + LOST_NS {
                self.lost.fetch_add(1, Ordering::Relaxed);
                self.silent.fetch_add(1, Ordering::Relaxed);
                return (raised, Answer::Lost(now));
            }
            if stopped() {
                return (raised, Answer::None);
            }
            let waited = now - raised;
            if waited > POLLED_NS {
                // A rest must not make an answer that came in time look lost.
                let (next, last) = (now + waited / REST, raised + LOST_NS - POLLED_NS);
                sys::sleep_until(if now < last { next.min(last) } else { raised + LOST_NS });
            }
        }
    }

    /// When an interrupt that was raised at this time was answered, by the device's own clock.
    fn own_time(&self, device: &Raising, (began, ticks): (u64, u32), raised: u64) -> Answer {
        let took = device.took(ticks);
        // Nothing takes longer than from before it began to after it was over, but for what two clocks differ.
        let passed = sys::now() - began;
        if took > passed + passed / 100 + CLOCKS_DIFFER_NS {
            self.impossible[0].store(took, Ordering::Relaxed);
            self.impossible[1].store(passed, Ordering::Relaxed);
            return Answer::None;
        }
        Answer::At(raised + took)
    }

    /// Another number than the one that is awaited: the late answer to one that was lost, or none of ours.
    #[cold]
    fn take_other(&self, number: u32, seen: u32) -> bool {
        // Numbers wrap around. All numbers between the last answer and the awaited one were sent and have no answer
        // yet.
        let before = self.seen.load(Ordering::Relaxed);
        if seen.wrapping_sub(before) < number.wrapping_sub(before) {
            self.late.fetch_add(1, Ordering::Relaxed);
            self.seen.store(seen, Ordering::Relaxed);
            return true;
        }
        self.wrong.store(u64::from(seen), Ordering::Relaxed);
        false
    }

    /// Raises interrupts that do not count, one after the other, for ten seconds at most. No thread of its may measure
    /// meanwhile.
    pub fn warm_up(&self) {
        self.warm_up_within(WARM_UP_NS);
    }

    fn warm_up_within(&self, most_ns: u64) {
        let until = sys::now().saturating_add(most_ns);
        for done in 0..self.warm_up {
            if self.is_in_trouble() {
                return;
            }
            if sys::now() >= until {
                self.cold.store(self.warm_up - done, Ordering::Relaxed);
                return;
            }
            self.ask(|| sys::now() >= until);
        }
    }

    /// The part of a latency that the card itself takes, on its CPU.
    pub fn own_part(&self, cpu: u32) -> Note {
        let beside = self.beside.or(self.is_answered_on());
        own_part(cpu, beside, matches!(self.bell.ring, Ring::Vector(_)))
    }

    /// Counts periods in which it was not there to raise anything.
    #[inline]
    pub fn leave_out(&self, periods: u64) {
        if periods > 0 {
            self.left_out.fetch_add(periods, Ordering::Relaxed);
        }
    }

    /// Whether the measurement cannot continue.
    #[inline]
    pub fn is_in_trouble(&self) -> bool {
        self.silent.load(Ordering::Relaxed) >= SILENT
            || self.wrong.load(Ordering::Relaxed) != u64::MAX
            || self.impossible[0].load(Ordering::Relaxed) > 0
    }

    /// Why the measurement cannot continue; `None`: it can.
    pub fn trouble(&self) -> Option<String> {
        if !self.is_in_trouble() {
            return None;
        }
        let awaited = self.sent.load(Ordering::Relaxed);
        if let [took @ 1..=u64::MAX, passed] = self.impossible.each_ref().map(|ns| ns.load(Ordering::Relaxed))
        {
            return Some(format!(
                "the card's own clock shows {} for an interrupt that took {} from raising to answer: the \
                 description's `time` does not match this card",
                Nanos(took),
                Nanos(passed)
            ));
        }
        let who = if self.handler.is_some() { "handler" } else { "guest" };
        Some(match self.wrong.load(Ordering::Relaxed) {
            u64::MAX => format!(
                "the {who} answered none of the last {SILENT} interrupts, each within {}",
                Nanos(LOST_NS)
            ),
            wrong => {
                format!("the guest answered {wrong:#x}, which was never sent, while {awaited:#x} was awaited")
            }
        })
    }

    /// The counts of all interrupts that it sent.
    pub fn counts(&self) -> CardCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (sent, handled) =
            (self.sent.load(Ordering::Relaxed), self.bell.page.word(HANDLED).load(Ordering::Acquire));
        CardCounts {
            lost: count(&self.lost),
            late: count(&self.late),
            duplicates: u64::try_from(handled.wrapping_sub(sent).cast_signed()).unwrap_or(0),
            left_out: count(&self.left_out),
        }
    }

    /// The notes on this card for the report.
    pub fn account(&self) -> Vec<Note> {
        let CardCounts { lost, late, duplicates, left_out } = self.counts();
        let mut notes = Vec::new();
        let cold = self.cold.load(Ordering::Relaxed);
        if cold > 0 {
            notes.push(Note::obstacle(
                format!(
                    "{cold} of {} warm-up interrupts were left out: the guest took {} for the others",
                    self.warm_up,
                    Nanos(WARM_UP_NS)
                ),
                "use fewer (`warm_up`), or check what keeps the guest from answering",
            ));
        }
        if lost > 0 {
            let second = Nanos(LOST_NS);
            let hint = if self.handler.is_some() {
                "check whether the card raised them (its registers, and /proc/interrupts), and whether \
                 something keeps the handler from its CPU"
            } else {
                "check the guest's messages (console), and whether something keeps its CPU from it"
            };
            notes.push(Note::obstacle(
                format!(
                    "{lost} interrupts were lost: raised, but unanswered for {second}, and each counts as \
                     that long; {late} of them were answered later"
                ),
                hint,
            ));
        }
        if duplicates > 0 {
            notes.push(Note::info(format!(
                "the guest handled {duplicates} interrupts more than were raised: duplicates, or of another device"
            )));
        }
        if left_out > 0 {
            notes.push(Note::obstacle(
                format!("in {left_out} periods the card itself could not run on its CPU, and raised nothing"),
                "give the card a separate CPU (`cpus`), beside those of the guest",
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests;
