//! `interrupt`: from an interrupt that the card raises in a guest to what its handler wrote.

use tactus_model::catalogue::{Measure, measure};
use tactus_model::message::{Activity, CardEnd, Note, Refusal, What};
use tactus_model::random::SplitMix64;

use crate::card::{Answer, Card};
use crate::lane::{Lane, Run};
use crate::ring::Sample;
use crate::sys;
use crate::{Measurement, Wanted, stranger};

/// The measurement.
pub struct Interrupt;

impl Measurement for Interrupt {
    fn name(&self) -> &'static str {
        measure::Interrupt::NAME
    }

    fn kind(&self, _measure: &Measure) -> &'static str {
        "interrupt"
    }

    fn wanted(&self, measure: &Measure) -> Result<Wanted, Refusal> {
        let Measure::Interrupt(_) = measure else { return Err(stranger(measure)) };
        Ok(Wanted { threads: 1, periodic: true, limit_ns: None, busy: 0 })
    }

    fn card(
        &self,
        measure: &Measure,
        activity: &Activity,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Card>, Refusal> {
        let Measure::Interrupt(table) = measure else { return Err(stranger(measure)) };
        let refusal = |reason: &str, hint: &str| Refusal { reason: reason.into(), hint: Some(hint.into()) };
        let Some(cpu) = activity.cpus.first().filter(|_| activity.cpus.len() == 1) else {
            return Err(refusal("a card has one thread, but was given several CPUs", "name one with `cpus`"));
        };
        match &activity.card {
            Some(CardEnd::Card { beside, socket }) => Card::connect(socket, table, *beside).map(Some),
            Some(CardEnd::Device { binds, card }) => {
                let What::Measure { priority, .. } = &activity.what else { return Err(stranger(measure)) };
                let (card, note) = Card::of_device(card, *binds, (cpu, *priority), table)?;
                notes.push(note);
                Ok(Some(card))
            }
            _ => Err(refusal(
                "no card leads from here to a guest",
                "`in` is an environment of the kind host, and `to` a guest that takes its interrupts",
            )),
        }
    }

    fn run(&self, lane: &Lane, run: Run) {
        let Some(card) = &lane.card else { return };
        let mut writer = lane.ring.writer(run.interval_ns, run.end);
        let mut schedule = Schedule::new(run, sys::now(), card.spread);
        loop {
            let due = schedule.due();
            if due >= run.end || card.is_in_trouble() {
                return;
            }
            if !sys::sleep_until(due) && sys::now() < due {
                if lane.stopped() {
                    return;
                }
                continue;
            }
            let (raised, answer) = card.ask(|| lane.stopped());
            let (Answer::At(at) | Answer::Lost(at)) = answer else { return };
            // In a control the card itself is held, and its late raise must be seen.
            let value = at - if run.control { due } else { raised };
            let sample = Sample { at, value };
            writer.push(sample);
            card.leave_out(schedule.next(at).saturating_sub(sample.overruns(run.interval_ns, run.end)));
            if lane.stopped() {
                return;
            }
        }
    }
}

/// When interrupts are due: each within the first `spread` per cent of its period.
struct Schedule {
    start: u64,
    interval_ns: u64,
    /// The longest that one is moved, in ns.
    most: u64,
    /// The number of the period, from 0.
    period: u64,
    /// How many there are.
    periods: u64,
}

impl Schedule {
    fn new(run: Run, now: u64, spread: u32) -> Self {
        let interval_ns = run.interval_ns.max(1);
        // If all threads begin together, a late one is late. Otherwise earlier due times do not belong to this thread.
        let passed = if run.open { 0 } else { now.saturating_sub(run.start).div_ceil(interval_ns) };
        let most = interval_ns / 100 * u64::from(spread);
        let periods = run.end.saturating_sub(run.start).div_ceil(interval_ns);
        Self { start: run.start, interval_ns, most, period: passed, periods }
    }

    fn due(&self) -> u64 {
        let moved = SplitMix64::at(self.start, self.period + 1) % (self.most + 1);
        self.start.saturating_add(self.period.saturating_mul(self.interval_ns)).saturating_add(moved)
    }

    /// Goes on to the first period that begins after `at`. Returns how many lie between: none beyond the end.
    fn next(&mut self, at: u64) -> u64 {
        let next = (at.saturating_sub(self.start) / self.interval_ns + 1).max(self.period + 1);
        let between = next.min(self.periods).saturating_sub(self.period + 1);
        self.period = next;
        between
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(open: bool) -> Run {
        Run { start: 1_000, end: 1_000_000, interval_ns: 100, control: false, open }
    }

    #[test]
    fn the_schedule_is_kept_however_late_an_answer_is() {
        let mut schedule = Schedule::new(run(true), 1_500, 0);
        assert_eq!(schedule.due(), 1_000, "who comes late to the common beginning is late");
        assert_eq!((schedule.next(1_040), schedule.due()), (0, 1_100));
        assert_eq!((schedule.next(1_350), schedule.due()), (2, 1_400), "two periods passed unanswered");
        assert_eq!((schedule.next(1_400), schedule.due()), (0, 1_500));
        assert_eq!(Schedule::new(run(false), 1_450, 0).due(), 1_500, "a late order is not measured");
        let run = Run { end: 2_000, ..run(true) };
        let mut schedule = Schedule::new(run, 0, 0);
        assert_eq!((schedule.next(1_640), schedule.due()), (6, 1_700));
        assert_eq!(schedule.next(2_350), 2, "those from the end on are none of this run's");
    }

    #[test]
    fn due_times_that_are_moved_stay_within_their_periods_and_fall_everywhere_in_them() {
        let mut schedule = Schedule::new(Run { interval_ns: 1_000, ..run(true) }, 0, 100);
        let mut quarters = [0; 4];
        for period in 0..4_000 {
            let offset = schedule.due() - 1_000 - period * 1_000;
            assert!(offset <= 1_000, "{offset}");
            quarters[usize::try_from(offset / 250).unwrap().min(3)] += 1;
            // The answer comes at once.
            schedule.next(1_000 + period * 1_000);
        }
        assert!(quarters.iter().all(|n| (850..1150).contains(n)), "{quarters:?}");
    }
}
