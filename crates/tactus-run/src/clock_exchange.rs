//! The clock of an environment against this machine's, by questions and answers. Each question leaves here, is heard
//! there, is answered there, and its answer arrives here: four moments of two clocks. A guest that shares a page of
//! memory with this machine answers most of them there, without waiting for a channel's interrupts.
//!
//! Nothing is assumed of how long a message travels, or that both ways take the same time: a message arrives after it
//! was sent. So each answer gives a bound from either side, and of many the tightest of each side are taken (after D.
//! L. Mills, RFC 5905). The two sides are taken separately, because a way that is free for a moment need not be so
//! for the way back.
//!
//! Questions are sent before and after the measurement, when nothing is measured, and seldom between, right after a
//! tick. The width of the bounds at the two ends is the error that is stated. Between the ends the clocks are taken
//! to run evenly; if an answer meanwhile contradicts that, the difference is added to the error.

use tactus_model::bundle::ClockFit;
use tactus_model::message::ClockAnswer;
use tactus_model::number::{float, whole};
use tactus_system::clock_page::Shown;

/// Questions before the measurement and after it.
pub const MANY: u32 = 64;
/// Questions in the wake of a tick.
pub const FEW: u32 = 2;
/// Answers further apart than this do not belong together, in ns.
const APART_NS: u64 = 3_000_000_000;
/// Answers that are kept. Nearly all are from ticks: two in ten seconds, so 14 hours.
const MOST: usize = 10_000;
/// Bounds that contradict each other by more are those of no clock, in ns.
const CROSSED_NS: f64 = 1_000_000.0;
/// How often the rate is taken from what it gives.
const ROUNDS: usize = 4;

/// Questions and answers.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// The number of the next question.
    next: u64,
    /// Questions that are to follow.
    left: u32,
    /// The open question, and when it left.
    open: Option<(u64, u64)>,
    answered: Vec<Answered>,
    /// Answers that have come.
    answers: u64,
    /// When the environment says that it began to measure, on its own clock.
    began: u64,
}

/// One question: moments of this machine and of the environment, in ns.
#[derive(Clone, Copy, Debug)]
struct Answered {
    left: u64,
    heard: u64,
    said: u64,
    back: u64,
}

/// The bounds by the answers of one time, as offsets of this machine's clock from the environment's.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// When, on the environment's clock.
    at: f64,
    least: f64,
    most: f64,
}

impl Exchange {
    /// Asks `times` times, one after the other. Returns the first question, which leaves at `now`; `None`: an earlier
    /// one is still open.
    pub fn begin(&mut self, times: u32, now: u64) -> Option<u64> {
        self.left = times;
        if self.open.is_some() { None } else { self.question(now) }
    }

    /// Whether none is to be answered any more.
    pub const fn is_over(&self) -> bool {
        self.left == 0 && self.open.is_none()
    }

    /// Stops waiting for the answer of an open question.
    pub const fn give_up(&mut self) {
        (self.left, self.open) = (0, None);
    }

    fn question(&mut self, now: u64) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        self.next += 1;
        self.open = Some((self.next, now));
        Some(self.next)
    }

    /// An answer has come at `back`. Returns whether it was asked for.
    pub fn heard(&mut self, answer: &ClockAnswer, back: u64) -> bool {
        self.answers += 1;
        let Some((_, left)) = self.open.take_if(|(n, _)| *n == answer.n) else {
            // It may have come too late.
            return answer.n > 0 && answer.n <= self.next && self.answers <= self.next;
        };
        self.began = answer.began_ns;
        self.take(Answered { left, heard: answer.heard_ns, said: answer.said_ns, back });
        true
    }

    /// An exchange by the environment's page of memory.
    pub fn shown(&mut self, shown: Shown) {
        let Shown { left, heard, said, back } = shown;
        self.take(Answered { left, heard, said, back });
    }

    /// One that says that time went back says nothing.
    fn take(&mut self, one: Answered) {
        if one.heard <= one.said && one.left <= one.back && self.answered.len() < MOST {
            self.answered.push(one);
        }
    }

    /// The question after an answer.
    pub fn next(&mut self, now: u64) -> Option<u64> {
        if self.open.is_some() { None } else { self.question(now) }
    }

    /// The clock; none where there were no answers before the environment began to measure and after that.
    pub fn fit(&self) -> Option<ClockFit> {
        let began = self.began;
        let (first, last) = (self.answered.first()?, self.answered.last()?);
        if began == 0 || first.heard > began || last.said <= began {
            return None;
        }
        let groups: Vec<&[Answered]> =
            self.answered.chunk_by(|one, next| next.left.saturating_sub(one.back) < APART_NS).collect();
        let (before, after) = (groups.first()?, groups.last()?);
        // Offsets from the first moments: differences of large numbers are exact before they become fractions.
        let (here, there) = (first.left, first.heard);
        let bounds = |group: &[Answered], rate: f64| bounds(group, here, there, rate);
        let mut rate = 0.0;
        let mut line = None;
        for _ in 0..ROUNDS {
            let (one, two) = (bounds(before, rate), bounds(after, rate));
            if two.at <= one.at {
                return None;
            }
            let grown = (two.middle() - one.middle()) / (two.at - one.at);
            rate += grown;
            line = Some((one, two));
        }
        // Bounds that cross contradict each other by that much; a little of it is what the rate leaves open.
        let (one, two) = line.filter(|(one, two)| one.crossed().max(two.crossed()) <= CROSSED_NS)?;
        let own = bounds(before, rate).middle();
        let strays = groups.iter().map(|group| {
            let here = bounds(group, rate);
            (here.least - own).max(own - here.most).max(0.0)
        });
        let error = one.open().max(two.open()) + strays.fold(0.0, f64::max);
        let since = difference(began, there);
        let began_ns = whole((float(here) + since * (1.0 + rate) + own).max(0.0));
        // To a thousandth: more digits say nothing, and do not come back from JSON as they were.
        let ppm = (rate * 1e9).round() / 1e3;
        let error_ns = whole(error.ceil()).max(1);
        let span_ns = last.said.saturating_sub(first.heard);
        Some(ClockFit { began_ns, ppm, span_ns, late_ns: error_ns, error_ns: Some(error_ns) })
    }
}

impl Bounds {
    fn middle(&self) -> f64 {
        f64::midpoint(self.least, self.most)
    }

    fn open(&self) -> f64 {
        (self.most - self.least).abs() / 2.0
    }

    fn crossed(&self) -> f64 {
        self.least - self.most
    }
}

/// The bounds by some answers, if this machine's clock is faster by `rate`: offsets of the time here since `here`
/// from the time there since `there`.
fn bounds(group: &[Answered], here: u64, there: u64, rate: f64) -> Bounds {
    let offset = |own: u64, other: u64| difference(own, here) - difference(other, there) * (1.0 + rate);
    let each =
        |of: fn(&Answered) -> (u64, u64)| group.iter().map(of).map(move |(own, other)| offset(own, other));
    let at = group.iter().map(|one| difference(one.heard, there)).sum::<f64>() / float(group.len() as u64);
    Bounds {
        at,
        least: each(|one| (one.left, one.heard)).fold(f64::MIN, f64::max),
        most: each(|one| (one.back, one.said)).fold(f64::MAX, f64::min),
    }
}

fn difference(one: u64, other: u64) -> f64 {
    if one >= other { float(one - other) } else { -float(other - one) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    /// A clock that is slower than this machine's by `ppm`, with messages whose delays `delay` gives for both ways.
    struct Simulated {
        exchange: Exchange,
        began: u64,
        ppm: f64,
        state: u64,
        least: u64,
    }

    const HERE: u64 = 3_600 * S;
    const THERE: u64 = 17 * S;

    impl Simulated {
        fn new(ppm: f64, least: u64) -> Self {
            let began = 0;
            let mut own = Self { exchange: Exchange::default(), began, ppm, state: 7, least };
            own.began = own.there(HERE + 2 * S);
            own
        }

        fn there(&self, here: u64) -> u64 {
            THERE + whole(float(here - HERE) / (1.0 + self.ppm / 1e6))
        }

        fn delay(&mut self) -> u64 {
            self.state =
                self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = self.state >> 40;
            self.least + draw % 200_000 + if draw.is_multiple_of(5) { draw * 2 } else { 0 }
        }

        fn answer(&self, n: u64, heard: u64, said: u64) -> ClockAnswer {
            let (heard_ns, said_ns) = (self.there(heard), self.there(said));
            ClockAnswer { n, heard_ns, said_ns, began_ns: self.began }
        }

        fn ask(&mut self, times: u32, mut here: u64) {
            let mut question = self.exchange.begin(times, here);
            while let Some(n) = question {
                let heard = here + self.delay();
                let said = heard + 20_000;
                let back = said + self.delay();
                let answer = self.answer(n, heard, said);
                assert!(self.exchange.heard(&answer, back));
                here = back + 5_000;
                question = self.exchange.next(here);
            }
        }
    }

    #[test]
    fn a_clock_is_known_to_what_the_shortest_ways_leave_open_and_no_better_than_that() {
        for ppm in [-80.0, 0.0, 35.0, 200.0] {
            for least in [10_000, 300_000] {
                let mut own = Simulated::new(ppm, least);
                own.ask(MANY, HERE + S);
                own.ask(FEW, HERE + 30 * S);
                own.ask(MANY, HERE + 60 * S);
                let began = own.began;
                let fit = own.exchange.fit().unwrap();
                let error = float(fit.error_ns.unwrap());
                assert!(
                    fit.is_even() && error >= float(least) && error < float(least) + 100_000.0,
                    "{fit:?}"
                );
                for at in [2 * S, 20 * S, 59 * S] {
                    let inside = float(own.there(HERE + at) - began);
                    let wrong = (fit.outside(inside) - float(HERE + at)).abs();
                    // A microsecond for what the rate makes of the time in which was asked.
                    assert!(wrong <= error + 1_000.0, "{ppm} ppm, {least} ns, at {at}: {wrong} of {fit:?}");
                }
            }
        }
    }

    #[test]
    fn what_a_guest_shows_in_its_page_is_as_good_as_an_answer_and_more_exact() {
        let ends = |own: &mut Simulated, by_page: bool| {
            for at in [S, 60 * S] {
                own.ask(MANY, HERE + at);
                let left = HERE + at + S;
                let (heard, said) = (own.there(left + 2_000), own.there(left + 40_000));
                let shown = Shown { left, heard, said, back: left + 43_000 };
                let odd = [Shown { heard: said + 1, ..shown }, Shown { back: left - 1, ..shown }];
                odd.iter().for_each(|odd| own.exchange.shown(*odd));
                if by_page {
                    own.exchange.shown(shown);
                }
            }
            own.exchange.fit().unwrap()
        };
        let channel = ends(&mut Simulated::new(35.0, 150_000), false);
        let mut own = Simulated::new(35.0, 150_000);
        let page = ends(&mut own, true);
        assert!(
            channel.error_ns.unwrap() >= 150_000 && page.error_ns.unwrap() < 4_000,
            "{channel:?} {page:?}"
        );
        let wrong = (page.outside(float(own.there(HERE + 20 * S) - own.began)) - float(HERE + 20 * S)).abs();
        assert!(wrong <= float(page.error_ns.unwrap()) + 1_000.0, "{wrong} of {page:?}");
    }

    #[test]
    fn a_way_that_is_longer_than_the_way_back_is_within_the_error_that_is_stated() {
        let mut own = Exchange::default();
        for at in [S, 30 * S] {
            let n = own.begin(1, HERE + at).unwrap();
            // 900 us there, 100 us back: the middle is 400 us wrong.
            let (heard_ns, back) = (THERE + at + 900_000, HERE + at + MS);
            let answer = ClockAnswer { n, heard_ns, said_ns: heard_ns, began_ns: THERE + 2 * S };
            assert!(own.heard(&answer, back));
        }
        let fit = own.fit().unwrap();
        let wrong = fit.began_ns.abs_diff(HERE + 2 * S);
        assert!((399_000..=401_000).contains(&wrong) && fit.error_ns.unwrap() >= wrong, "{fit:?}");
    }

    #[test]
    fn a_clock_that_jumps_between_is_stated_to_be_known_no_better_than_that() {
        let mut own = Simulated::new(0.0, 50_000);
        own.ask(MANY, HERE + S);
        let n = own.exchange.begin(1, HERE + 30 * S).unwrap();
        let heard_ns = THERE + 30 * S + 20 * MS;
        let answer = ClockAnswer { n, heard_ns, said_ns: heard_ns, began_ns: own.began };
        assert!(own.exchange.heard(&answer, HERE + 30 * S + 200_000));
        own.ask(MANY, HERE + 60 * S);
        let fit = own.exchange.fit().unwrap();
        assert!(fit.error_ns.unwrap() > 19 * MS, "{fit:?}");
    }

    #[test]
    fn what_was_not_asked_and_what_is_impossible_says_nothing() {
        let mut own = Exchange::default();
        assert!(own.is_over() && own.fit().is_none());
        let answer = |n, heard_ns, said_ns| ClockAnswer { n, heard_ns, said_ns, began_ns: 2 * S };
        assert!(!own.heard(&answer(1, 1, 1), 1), "nobody asked");
        let n = own.begin(2, S).unwrap();
        assert!(own.begin(2, S).is_none(), "one is open");
        assert!(own.heard(&answer(n, 9, 1), 2 * S), "it is answered");
        assert!(own.fit().is_none(), "and says that time went back");
        own.give_up();
        assert!(own.is_over());
        assert!(!own.heard(&answer(n, 9, 9), 2 * S), "more answers than questions");
        let mut late = Exchange::default();
        let n = late.begin(1, 3 * S).unwrap();
        late.give_up();
        assert!(late.heard(&answer(n, 9, 9), 9 * S) && late.answered.is_empty(), "too late, and forgiven");
        // Ends that contradict themselves: heard before it was said, whatever the clock.
        let mut own = Exchange::default();
        for at in [S, 40 * S] {
            for shift in [0, 10 * S] {
                let n = own.begin(1, at).unwrap();
                own.heard(&answer(n, at + shift, at + shift), at + 1);
            }
        }
        assert!(own.fit().is_none());
        for huge in [0, 1, u64::MAX / 2, u64::MAX] {
            let mut own = Exchange::default();
            for at in [1, huge] {
                if let Some(n) = own.begin(1, at) {
                    own.heard(&answer(n, huge, huge), at);
                }
            }
            let _ = own.fit();
        }
    }
}
