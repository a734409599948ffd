//! How late the timer's interrupts are: the time stamp counter at the handler's first instruction, against when the
//! interrupt was due.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::clock::Clock;
use crate::histogram::Histogram;
use crate::sys::apic::{self, TIMER, Way};
use crate::sys::cpu::{self, Single};
use crate::sys::interrupts;

/// The measurements between two ticks, and since the beginning.
pub struct Counted {
    /// Latencies, in ns.
    pub seen: Histogram,
    /// Those that the interrupts that never came would have had, in ns.
    pub missed: Histogram,
    /// How many never came: the one before was later than they were due.
    pub overruns: u64,
}

impl Counted {
    const NEW: Self = Self { seen: Histogram::NEW, missed: Histogram::NEW, overruns: 0 };
}

/// Two of them: the handler counts in one while the session reads the other, so that reading disturbs nothing.
static COUNTED: [Single<RefCell<Counted>>; 2] = [const { Single::new(RefCell::new(Counted::NEW)) }; 2];
/// Which of them the handler counts in.
static COUNTING: AtomicUsize = AtomicUsize::new(0);

/// When the next interrupt is due, and how long it is from one to the next, in ticks of the time stamp counter.
static DUE: AtomicU64 = AtomicU64::new(0);
static INTERVAL: AtomicU64 = AtomicU64::new(0);
/// When the last interrupt came.
static LAST: AtomicU64 = AtomicU64::new(0);
/// From when on nothing is due.
static END: AtomicU64 = AtomicU64::new(0);
/// Whether the last interrupt has come.
static OVER: AtomicBool = AtomicBool::new(true);
/// A latency that ends it, in ns, and the one that did.
static BREAK_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static BROKE_NS: AtomicU64 = AtomicU64::new(0);

static CLOCK: Single<RefCell<Option<(Clock, Way)>>> = Single::new(RefCell::new(None));

/// Sets the timer up.
pub fn begin(clock: Clock) {
    *CLOCK.get().borrow_mut() = Some((clock, way()));
    interrupts::handle(TIMER, interrupt);
    apic::timer(way());
}

/// How the timer is armed.
pub fn way() -> Way {
    if apic::has_deadline() { Way::Deadline } else { Way::OneShot }
}

/// Interrupts from `first` on, each `interval` later, until `end`, all in ticks of the time stamp counter.
pub fn start(first: u64, interval: u64, end: u64, break_ns: Option<u64>) {
    take(|_| ());
    DUE.store(first, Ordering::Relaxed);
    INTERVAL.store(interval, Ordering::Relaxed);
    END.store(end, Ordering::Relaxed);
    BREAK_NS.store(break_ns.unwrap_or(u64::MAX), Ordering::Relaxed);
    BROKE_NS.store(0, Ordering::Relaxed);
    OVER.store(false, Ordering::Relaxed);
    arm(first, cpu::tsc());
}

/// When the next interrupt is due, in ticks of the time stamp counter. Interrupts are off.
pub fn due() -> u64 {
    DUE.load(Ordering::Relaxed)
}

/// Sleeps for `ticks` ticks of the time stamp counter, and returns how late the interrupt came that ended it. Must
/// not be called while a measurement runs.
pub fn nap(ticks: u64) -> u64 {
    let due = cpu::tsc() + ticks;
    loop {
        arm(due, cpu::tsc());
        cpu::wait();
        // A clock of the timer that runs a little faster fires early: not yet.
        if let Some(late) = LAST.load(Ordering::Relaxed).checked_sub(due) {
            return late;
        }
    }
}

/// Waits about `ticks` ticks of the time stamp counter. Other interrupts are handled meanwhile. The timer is not set
/// again for them, so that setting it adds nothing to what they take.
pub fn rest(ticks: u64) {
    let began = cpu::tsc();
    arm(began + ticks, began);
    while LAST.load(Ordering::Relaxed) < began {
        cpu::wait();
    }
}

/// No interrupt comes any more.
pub fn stop() {
    OVER.store(true, Ordering::Relaxed);
    disarm();
}

/// The timer forgets what it was told.
pub fn disarm() {
    apic::timer(Way::OneShot);
    apic::fire_after(0);
    apic::timer(way());
}

/// Whether the last interrupt has come.
pub fn is_over() -> bool {
    OVER.load(Ordering::Relaxed)
}

/// The latency that ended it, in ns.
pub fn broke_ns() -> Option<u64> {
    Some(BROKE_NS.load(Ordering::Relaxed)).filter(|ns| *ns > 0)
}

/// Hands over what was counted since the last time, and forgets it.
pub fn take<T>(with: impl FnOnce(&Counted) -> T) -> T {
    let before = COUNTING.fetch_xor(1, Ordering::Relaxed);
    let mut counted = COUNTED[before].get().borrow_mut();
    let taken = with(&counted);
    counted.seen.clear();
    counted.missed.clear();
    counted.overruns = 0;
    taken
}

/// The handler. `now`: the time stamp counter before anything else.
fn interrupt(now: u64) {
    LAST.store(now, Ordering::Relaxed);
    let Some((clock, _)) = *CLOCK.get().borrow() else { return };
    let (due, interval) = (DUE.load(Ordering::Relaxed), INTERVAL.load(Ordering::Relaxed));
    if OVER.load(Ordering::Relaxed) {
        return;
    }
    // A clock of the timer that runs a little faster fires early: not yet.
    if now < due {
        return arm(due, now);
    }
    let late = now - due;
    let late_ns = clock.ns(late);
    let mut counted = COUNTED[COUNTING.load(Ordering::Relaxed)].get().borrow_mut();
    counted.seen.record(late_ns);
    let (mut next, end) = (due + interval, END.load(Ordering::Relaxed));
    while next <= now && next < end {
        counted.overruns += 1;
        counted.missed.record(clock.ns(now - next));
        next += interval;
    }
    if late_ns > BREAK_NS.load(Ordering::Relaxed) {
        BROKE_NS.store(late_ns, Ordering::Relaxed);
        OVER.store(true, Ordering::Relaxed);
    } else if next >= end {
        OVER.store(true, Ordering::Relaxed);
    } else {
        DUE.store(next, Ordering::Relaxed);
        arm(next, cpu::tsc());
    }
}

fn arm(due: u64, now: u64) {
    match *CLOCK.get().borrow() {
        Some((_, Way::Deadline)) => apic::fire_at(due),
        Some((clock, Way::OneShot)) => apic::fire_after(clock.timer_ticks(due.saturating_sub(now))),
        None => {}
    }
}
