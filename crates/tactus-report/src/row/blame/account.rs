//! The account of one latency: by the events that were kept of it every moment has one owner, and what has none that is
//! known is unaccounted.

use std::collections::HashMap;

use tactus_model::document::{BlamedPart, Owner, Span};
use tactus_model::interrupts::Interrupts;
use tactus_model::trace::{EventKind, SOFT_INTERRUPTS, Trace, VECTORS};

use super::asleep::overlay;
use crate::units::clean;

/// Longest name of an interrupt in bytes: a line of /proc/interrupts may have any length, and each span would
/// repeat it.
const LONGEST_NAME: usize = 64;
/// The timer's place in [`VECTORS`].
const TIMER: u64 = 0;

/// A context above the thread on a CPU, or in its place.
type Context = (EventKind, u64);

/// The spans of a latency of `length` ns, in their order and without a gap, and whether the measured thread could run in
/// those that are not [`Owner::Blocked`]. `wakes`: it slept until what was due.
pub fn spans(trace: &Trace, length: u64, wakes: bool, interrupts: &Interrupts) -> (Vec<Span>, bool) {
    let mut account = Account {
        spans: Vec::new(),
        open: Vec::new(),
        at: 0,
        stack: Vec::new(),
        timers: &trace.timers,
        interrupts,
    };
    let mut due_came = None;
    // Later events only show which thread has the CPU.
    for (at, kind, number) in trace.events().take_while(|(at, _, _)| *at <= length) {
        let from = account.at;
        account.until(at);
        let timer = (matches!(kind, EventKind::VectorBegins | EventKind::VectorEnds) && number == TIMER)
            || (matches!(kind, EventKind::InterruptBegins | EventKind::InterruptEnds)
                && account.name(EventKind::InterruptBegins, number).contains("timer"));
        if timer && due_came.is_none() {
            // One that ends and was not seen to begin was there when it was due.
            let ends = matches!(kind, EventKind::VectorEnds | EventKind::InterruptEnds);
            due_came = Some(if ends { 0 } else { account.spans.len() });
        }
        match kind {
            EventKind::Lost => account.lose(from),
            EventKind::Leaves | EventKind::Sleeps => account.leave(thread(trace, number), Owner::Thread),
            EventKind::Preempted => account.leave(thread(trace, number), Owner::NotPreempted),
            EventKind::InterruptBegins | EventKind::SoftBegins | EventKind::VectorBegins => {
                account.stack.push((kind, number));
            }
            EventKind::Timer => account.call(number),
            EventKind::InterruptEnds => account.end((EventKind::InterruptBegins, number)),
            EventKind::SoftEnds => account.end((EventKind::SoftBegins, number)),
            EventKind::VectorEnds => account.end((EventKind::VectorBegins, number)),
            EventKind::GuestLeft | EventKind::GuestEntered | EventKind::Woken => {}
        }
    }
    account.until(length);
    let left = account.stack.is_empty();
    let itself = (Owner::Itself, String::new());
    // A polling thread that finds a gap had the CPU, as far as the kernel knows; the cause of the gap is
    // unknown.
    account.settle(if wakes && left { itself } else { (Owner::Unaccounted, String::new()) });
    let mut spans = account.spans;
    if let Some(came) = due_came.filter(|_| wakes) {
        for span in spans.iter_mut().take(came) {
            if !matches!(span.owner, Owner::Thread | Owner::NotPreempted) {
                continue;
            }
            span.owner = Owner::InterruptsOff;
        }
    }
    let (spans, could_run) = overlay(spans, trace, length, wakes);
    (joined(spans), could_run)
}

/// The account while it is made.
struct Account<'a> {
    spans: Vec<Span>,
    /// Spans whose thread is not known yet; unaccounted until it is.
    open: Vec<usize>,
    at: u64,
    stack: Vec<Context>,
    timers: &'a [String],
    interrupts: &'a Interrupts,
}

impl Account<'_> {
    /// The present owner has the CPU until this moment.
    fn until(&mut self, at: u64) {
        if at > self.at {
            let (owner, name) = match self.stack.last() {
                Some((kind, number)) => (owner(*kind), self.name(*kind, *number)),
                None => {
                    self.open.push(self.spans.len());
                    (Owner::Unaccounted, String::new())
                }
            };
            self.spans.push(Span { from_ns: self.at, ns: at - self.at, owner, name });
            self.at = at;
        }
    }

    /// Gives the open spans to an owner.
    fn settle(&mut self, (owner, name): (Owner, String)) {
        for place in self.open.drain(..) {
            let span = &mut self.spans[place];
            (span.owner, span.name) = (owner, name.clone());
        }
    }

    /// A thread leaves the CPU: the time outside interrupts until now was its time. No interrupt lasts longer
    /// than that. A soft interrupt may, and its end shows it.
    fn leave(&mut self, (number, name): (u64, String), owner: Owner) {
        let idle = number == 0;
        self.settle(if idle { (Owner::Idle, String::new()) } else { (owner, name) });
        self.stack.clear();
    }

    /// The function of a timer is called: the one before it in this interrupt has returned.
    fn call(&mut self, timer: u64) {
        self.stack.pop_if(|(kind, _)| *kind == EventKind::Timer);
        self.stack.push((EventKind::Timer, timer));
    }

    fn end(&mut self, context: Context) {
        match self.stack.iter().rposition(|own| *own == context) {
            Some(place) => self.stack.truncate(place),
            // It was there before anything that is known.
            None => {
                self.stack.clear();
                let name = self.name(context.0, context.1);
                self.settle((owner(context.0), name));
            }
        }
    }

    /// The time since the last event, at `from`, is unknown.
    fn lose(&mut self, from: u64) {
        if let Some(last) = self.spans.last_mut().filter(|last| last.from_ns >= from) {
            (last.owner, last.name) = (Owner::Unaccounted, String::new());
        }
        self.settle((Owner::Unaccounted, String::new()));
        self.stack.clear();
    }

    fn name(&self, kind: EventKind, number: u64) -> String {
        let known = |names: &[&str]| {
            usize::try_from(number).ok().and_then(|n| names.get(n).map(|name| (*name).to_owned()))
        };
        let named = match kind {
            EventKind::SoftBegins => known(&SOFT_INTERRUPTS),
            EventKind::VectorBegins => known(&VECTORS),
            // The name of one that is not known is empty.
            EventKind::Timer => {
                let function = usize::try_from(number).ok().and_then(|place| self.timers.get(place));
                Some(function.map(|function| clean(function)).unwrap_or_default())
            }
            _ => {
                let interrupt = u32::try_from(number).ok().and_then(|irq| self.interrupts.get(irq));
                interrupt
                    .filter(|own| !own.actions.is_empty())
                    .map(|own| short(format!("{number} {}", own.actions.join(", "))))
            }
        };
        named.unwrap_or_else(|| number.to_string())
    }
}

const fn owner(kind: EventKind) -> Owner {
    match kind {
        EventKind::SoftBegins => Owner::SoftInterrupt,
        EventKind::VectorBegins => Owner::Vector,
        EventKind::Timer => Owner::Timer,
        _ => Owner::Interrupt,
    }
}

/// The number and the name of a thread; that of one that is not named is not known.
fn thread(trace: &Trace, place: u64) -> (u64, String) {
    let told =
        usize::try_from(place).ok().and_then(|place| trace.threads.get(place)).map_or("?", String::as_str);
    let (number, name) = told.split_once(' ').unwrap_or((told, ""));
    (number.parse().unwrap_or(u64::MAX), clean(name))
}

/// A name up to a length.
fn short(mut name: String) -> String {
    const MARK: &str = "...";
    if name.len() > LONGEST_NAME {
        let end = (0..=LONGEST_NAME - MARK.len()).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name.truncate(end);
        name.push_str(MARK);
    }
    name
}

/// Neighbours of one owner as one.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if (last.owner, &last.name) == (span.owner, &span.name) => last.ns += span.ns,
            _ => all.push(span),
        }
    }
    all
}

/// The parts of the time by owner, the largest first; and the unaccounted time, in ns.
pub fn parts(spans: &[Span]) -> (Vec<BlamedPart>, u64) {
    let mut parts: Vec<BlamedPart> = Vec::new();
    let mut places: HashMap<(Owner, &str), usize> = HashMap::new();
    let mut unaccounted_ns = 0;
    for Span { owner, name, ns, .. } in spans {
        if *owner == Owner::Unaccounted {
            unaccounted_ns += ns;
            continue;
        }
        let place = *places.entry((*owner, name.as_str())).or_insert(parts.len());
        match parts.get_mut(place) {
            Some(part) => part.ns += ns,
            None => parts.push(BlamedPart { owner: *owner, name: name.clone(), ns: *ns }),
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    (parts, unaccounted_ns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tactus_model::facts::Facts;

    use super::super::owner_name;
    use super::EventKind::{
        InterruptBegins, InterruptEnds, Leaves, Lost, Preempted, Sleeps, SoftBegins, SoftEnds, Timer,
        VectorBegins, VectorEnds, Woken,
    };
    use super::*;

    const US: u64 = 1_000;

    /// Events by their time since what was due was due, in us.
    fn trace(events: &[(u64, EventKind, u64)], threads: &[&str]) -> Trace {
        let mut before = 0;
        let threads = threads.iter().map(|name| (*name).to_owned()).collect();
        let timers = vec!["hrtimer_wakeup".into(), "slow_timer".into(), String::new()];
        let mut trace = Trace { threads, timers, ..Trace::default() };
        for (at, kind, number) in events {
            trace.events.extend([at * US - before, *kind as u64, *number]);
            before = at * US;
        }
        trace
    }

    fn told(events: &[(u64, EventKind, u64)], threads: &[&str], length: u64) -> Vec<(String, u64)> {
        told_of(&trace(events, threads), length, true)
    }

    fn told_of(trace: &Trace, length: u64, wakes: bool) -> Vec<(String, u64)> {
        let (spans, _) = spans(trace, length * US, wakes, &Interrupts::default());
        spans.iter().map(|span| (owner_name(span.owner, &span.name), span.ns / US)).collect()
    }

    fn is(told: &[(String, u64)], wanted: &[(&str, u64)]) {
        let told: Vec<(&str, u64)> = told.iter().map(|(name, ns)| (name.as_str(), *ns)).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_hog_that_runs_on_after_the_timer_has_gone_off_had_the_cpu() {
        let told = told(&[(1, VectorBegins, 0), (4, VectorEnds, 0), (904, Leaves, 0)], &["812 hog"], 910);
        is(
            &told,
            &[
                ("interrupts off in hog", 1),
                ("local_timer interrupt", 3),
                ("hog", 900),
                ("the thread itself", 6),
            ],
        );
    }

    #[test]
    fn interrupts_off_are_those_of_the_thread_that_ran_when_the_timer_was_due() {
        let told =
            told(&[(500, VectorBegins, 0), (503, VectorEnds, 0), (506, Leaves, 0)], &["7 driver"], 508);
        is(
            &told,
            &[
                ("interrupts off in driver", 500),
                ("local_timer interrupt", 3),
                ("driver", 3),
                ("the thread itself", 2),
            ],
        );
    }

    #[test]
    fn an_interrupt_within_a_soft_one_within_a_thread_has_its_own_time() {
        let events = [
            (1, VectorBegins, 0),
            (2, VectorEnds, 0),
            (3, SoftBegins, 3),
            (10, InterruptBegins, 29),
            (15, InterruptEnds, 29),
            (40, SoftEnds, 3),
            (41, Leaves, 0),
        ];
        is(
            &told(&events, &["16 ksoftirqd/1"], 43),
            &[
                ("interrupts off in ksoftirqd/1", 1),
                ("local_timer interrupt", 1),
                ("ksoftirqd/1", 1),
                ("softirq NET_RX", 7),
                ("irq 29", 5),
                ("softirq NET_RX", 25),
                ("ksoftirqd/1", 1),
                ("the thread itself", 2),
            ],
        );
    }

    #[test]
    fn what_was_there_when_it_was_due_is_known_by_its_end() {
        let told = told(&[(300, VectorEnds, 0), (302, Leaves, 0)], &["0"], 303);
        is(&told, &[("local_timer interrupt", 300), ("idle", 2), ("the thread itself", 1)]);
    }

    #[test]
    fn the_function_of_a_timer_has_its_time_apart_from_the_interrupt_that_it_went_off_in() {
        let events = [
            (1, VectorBegins, 0),
            (2, Timer, 0),
            (4, VectorEnds, 0),
            (5, SoftBegins, 1),
            (6, Timer, 1),
            (10, VectorBegins, 0),
            (11, Timer, 2),
            (14, VectorEnds, 0),
            (90, Timer, 0),
            (92, SoftEnds, 1),
            (93, Sleeps, 0),
        ];
        is(
            &told(&events, &["16 ksoftirqd/1"], 95),
            &[
                ("interrupts off in ksoftirqd/1", 1),
                ("local_timer interrupt", 1),
                ("timer hrtimer_wakeup", 2),
                ("ksoftirqd/1", 1),
                ("softirq TIMER", 1),
                ("timer slow_timer", 4),
                ("local_timer interrupt", 1),
                ("a timer", 3),
                ("timer slow_timer", 76),
                ("timer hrtimer_wakeup", 2),
                ("ksoftirqd/1", 1),
                ("the thread itself", 2),
            ],
        );
    }

    #[test]
    fn a_function_that_was_on_when_it_was_due_has_its_time_up_to_the_end_of_its_interrupt() {
        let events = [(0, Timer, 1), (400, VectorEnds, 0), (405, Leaves, 0)];
        is(&told(&events, &["0"], 406), &[("timer slow_timer", 400), ("idle", 5), ("the thread itself", 1)]);
        // A timer called within an earlier interrupt: the time before the call is the interrupt's.
        let events = [(300, Timer, 1), (400, VectorEnds, 0), (405, Leaves, 0)];
        is(
            &told(&events, &["0"], 406),
            &[
                ("local_timer interrupt", 300),
                ("timer slow_timer", 100),
                ("idle", 5),
                ("the thread itself", 1),
            ],
        );
    }

    #[test]
    fn what_was_lost_is_unaccounted_and_so_is_what_nothing_was_kept_of() {
        is(
            &told(&[(80, Lost, 0), (90, Leaves, 0)], &["9 x"], 100),
            &[("unaccounted", 80), ("x", 10), ("the thread itself", 10)],
        );
        let (gap, _) = spans(&Trace::default(), 50, false, &Interrupts::default());
        assert_eq!((gap.len(), gap[0].owner, gap[0].ns), (1, Owner::Unaccounted, 50));
    }

    #[test]
    fn a_thread_that_had_to_give_the_cpu_up_was_not_preempted_and_one_that_slept_had_it_by_right() {
        let by = |leaves| told(&[(1, VectorBegins, 0), (2, VectorEnds, 0), (90, leaves, 0)], &["7 x"], 91);
        for (leaves, name) in [(Sleeps, "x"), (Leaves, "x"), (Preempted, "x, not preempted")] {
            assert_eq!(by(leaves)[2], (name.to_owned(), 88));
            assert_eq!(by(leaves)[0].0, "interrupts off in x");
        }
    }

    #[test]
    fn an_interrupt_whose_name_is_as_long_as_its_kernel_likes_is_cut() {
        let line = format!("           CPU0\n 24:          7  PCI-MSI 7-edge  {}\n", "virtio".repeat(2_000));
        let mut facts = Facts::default();
        facts.keep("/proc/interrupts", line.as_str());
        let interrupts = Interrupts::of(&facts);
        assert!(interrupts.get(24).unwrap().actions[0].len() > 10_000);
        let events = trace(&[(1, InterruptBegins, 24), (9, InterruptEnds, 24)], &[]);
        let (spans, _) = spans(&events, 10 * US, true, &interrupts);
        let longest = spans.iter().map(|span| span.name.len()).max().unwrap();
        assert!((40..=LONGEST_NAME).contains(&longest), "{longest}");
        assert_eq!(short("irq".into()), "irq");
        assert!(short("\u{e9}".repeat(99)).ends_with("..."));
    }

    /// A cycle of a program (7 app) that is due at 0: events in us, and what the measurement says.
    fn cycle(events: &[(u64, EventKind, u64)], length: u64) -> (Vec<(String, u64)>, bool) {
        let trace = trace(events, &["7 app", "0", "9 holder"]);
        (told_of(&trace, length, false), spans(&trace, length * US, false, &Interrupts::default()).1)
    }

    const APP: u64 = 0;
    const IDLE: u64 = 1;
    const HOLDER: u64 = 2;

    #[test]
    fn a_program_that_sleeps_is_blocked_until_its_timer_was_due_and_idle_after_that() {
        // It sleeps at 100 for 4 ms; its timer goes off 3 us late.
        let events = [
            (0, Sleeps, APP),
            (2, VectorBegins, 0),
            (3, Woken, 3 * US),
            (4, VectorEnds, 0),
            (6, Preempted, IDLE),
            (100, Sleeps, APP),
            (4_103, VectorBegins, 0),
            (4_104, Woken, 4 * US),
            (4_105, VectorEnds, 0),
            (4_120, Preempted, IDLE),
            (4_300, Sleeps, APP),
        ];
        let (told, could_run) = cycle(&events, 4_200);
        assert!(could_run);
        is(
            &told,
            &[
                ("idle", 2),
                ("local_timer interrupt", 2),
                ("idle", 2),
                ("app", 94),
                ("blocked", 4_000),
                ("idle", 3),
                ("local_timer interrupt", 2),
                ("idle", 15),
                ("unaccounted", 80),
            ],
        );
    }

    #[test]
    fn a_timer_that_goes_off_late_is_no_sleep_of_the_program() {
        let events = [
            (0, Sleeps, APP),
            (4_000, VectorBegins, 0),
            (4_001, Woken, 4_001 * US),
            (4_002, VectorEnds, 0),
            (4_003, Preempted, IDLE),
            (4_100, Sleeps, APP),
        ];
        let (told, could_run) = cycle(&events, 4_010);
        assert!(could_run);
        is(&told, &[("idle", 4_000), ("local_timer interrupt", 2), ("idle", 1), ("unaccounted", 7)]);
    }

    #[test]
    fn a_thread_that_waits_for_a_lock_is_blocked_until_it_is_woken() {
        let events = [
            (0, Woken, 0),
            (5, Preempted, IDLE),
            (50, Sleeps, APP),
            (2_000, Sleeps, HOLDER),
            (2_500, Woken, 0),
            (2_510, Preempted, IDLE),
            (2_700, Sleeps, APP),
        ];
        is(
            &cycle(&events, 2_600).0,
            &[("idle", 5), ("app", 45), ("blocked", 2_450), ("idle", 10), ("unaccounted", 90)],
        );
    }

    #[test]
    fn without_a_seen_wake_up_no_thread_is_said_to_have_kept_the_measured_one_from_the_cpu() {
        let asleep = [(0, Woken, 0), (5, Preempted, IDLE), (50, Sleeps, APP), (2_510, Preempted, IDLE)];
        let events = [&asleep[..], &[(2_700, Sleeps, APP)]].concat();
        let unseen = "blocked (its wake-up was not seen)";
        is(&cycle(&events, 2_600).0, &[("idle", 5), ("app", 45), (unseen, 2_460), ("unaccounted", 90)]);
        // Nor if it is unknown whether it slept, or which thread it is.
        let events = [(2_510, Preempted, IDLE), (2_700, Sleeps, APP)];
        is(&cycle(&events, 2_600).0, &[("unaccounted", 2_600)]);
        let (told, could_run) = cycle(&events[..1], 2_600);
        assert!(!could_run);
        is(&told, &[("idle", 2_510), ("unaccounted", 90)]);
    }

    #[test]
    fn a_measuring_thread_that_goes_to_sleep_as_its_timer_is_due_is_not_blocked() {
        let events = [
            (1, Sleeps, APP),
            (900, VectorBegins, 0),
            (903, VectorEnds, 0),
            (905, Preempted, IDLE),
            (990, Sleeps, APP),
        ];
        let hog = [(0, Sleeps, APP), (3, VectorEnds, 0), (905, Preempted, HOLDER), (990, Sleeps, APP)];
        let held = told_of(&trace(&hog, &["7 timer", "0", "9 hog"]), 910, true);
        assert!(held.iter().any(|(name, us)| name.starts_with("hog") && *us > 800), "{held:?}");
        let trace = trace(&events, &["7 timer", "0"]);
        let told = told_of(&trace, 910, true);
        assert!(
            told.contains(&("idle".into(), 899)) && told.iter().all(|(name, _)| name != "blocked"),
            "{told:?}"
        );
    }

    proptest! {
        #[test]
        fn parts_and_what_is_unaccounted_are_the_latency_whatever_the_events_are(
            events in prop::collection::vec(0_u64..15, 0..300),
            huge in prop::collection::vec(any::<u64>(), 0..9),
            threads in prop::collection::vec(".{0,20}", 0..4),
            length in prop_oneof![0_u64..2_000, any::<u64>()],
            wakes: bool,
        ) {
            let timers = threads.clone();
            let trace = Trace { events: [events, huge].concat(), threads, timers, ..Trace::default() };
            let (spans, _) = spans(&trace, length, wakes, &Interrupts::default());
            let (parts, unaccounted) = parts(&spans);
            prop_assert_eq!(parts.iter().map(|part| part.ns).sum::<u64>() + unaccounted, length);
            let mut at = 0;
            for span in &spans {
                prop_assert_eq!(span.from_ns, at);
                prop_assert!(span.ns > 0);
                at += span.ns;
            }
        }
    }
}
