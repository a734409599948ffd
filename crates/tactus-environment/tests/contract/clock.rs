//! Answers of a guest for its clock, on the real QEMU.

use std::time::{Duration, Instant};

use tactus_model::message::{CLOCK, ClockAnswer, ClockQuestion, FromProbe, ToProbe};
use tactus_system::clock_page::Shown;
use tactus_system::monotonic_ns;

use super::conversation::{Conversation, PATIENCE};
use super::{alone, leftovers, qemu, spec};

const QUESTIONS: u64 = 200;

#[test]
fn a_guest_answers_for_its_clock_and_nothing_is_heard_before_it_was_said() {
    let _turn = alone();
    let Some(qemu) = qemu() else { return };
    let mut guest = Conversation::begin(qemu, &spec("qemu", &[("kernel", "rt"), ("accel", "tcg")]))
        .unwrap_or_else(|error| panic!("{error}"));
    let FromProbe::Hello(hello) = guest.hear(PATIENCE) else { panic!("hello comes first") };
    assert!(hello.can.iter().any(|word| word == CLOCK), "{hello:?}");
    while !matches!(guest.hear(PATIENCE), FromProbe::Facts { last: true, .. }) {}
    let began = monotonic_ns();
    let (mut least, mut most, mut shortest) = (i128::MIN, i128::MAX, u64::MAX);
    for n in 1..=QUESTIONS {
        let left = monotonic_ns();
        guest.say(&ToProbe::Clock(ClockQuestion { n, page: false }));
        let answer = loop {
            if let FromProbe::Clock(answer) = guest.hear(PATIENCE) {
                break answer;
            }
        };
        let back = monotonic_ns();
        let ClockAnswer { heard_ns, said_ns, began_ns, .. } = answer;
        assert!(answer.n == n && heard_ns <= said_ns && began_ns == 0, "{answer:?}");
        least = least.max(offset(left, heard_ns));
        most = most.min(offset(back, said_ns));
        shortest = shortest.min((back - left).saturating_sub(said_ns - heard_ns));
    }
    let by_page = by_page(&mut guest);
    // Clocks drift apart during the exchange. An emulated guest that boots on a busy machine finds its clock's rate
    // to some thousandths; an error of more than a hundredth means that the clock is broken.
    let drift = i128::from((monotonic_ns() - began) / 100);
    assert!(least <= most + drift, "{least} {most} {drift}");
    assert!(by_page.0 <= by_page.1 + drift, "{by_page:?} {drift}");
    assert!(by_page.0 <= most + drift && least <= by_page.1 + drift, "{least} {most} {by_page:?} {drift}");
    eprintln!(
        "without a word of their rates the clocks are known to {} ns by the channel, to {} ns by the page; half of the \
channel's shortest round trip: {} ns",
        (most - least) / 2,
        (by_page.1 - by_page.0) / 2,
        shortest / 2
    );
    let id = guest.id().to_owned();
    guest.end();
    leftovers::none_within(&id, Duration::from_secs(5)).unwrap_or_else(|left| panic!("qemu leaves {left}"));
}

/// The difference of two clocks.
fn offset(here: u64, there: u64) -> i128 {
    i128::from(here) - i128::from(there)
}

/// The bounds that a guest's answers in its page of memory give of that.
fn by_page(guest: &mut Conversation) -> (i128, i128) {
    let n = QUESTIONS + 1;
    guest.say(&ToProbe::Clock(ClockQuestion { n, page: true }));
    let page = guest.running.clock_page().expect("QEMU gives such a page");
    let mut bounds = (i128::MIN, i128::MAX);
    for _ in 0..QUESTIONS / 4 {
        let Shown { left, heard, said, back } =
            page.ask(Instant::now() + PATIENCE).expect("the guest answers in it");
        assert!(heard <= said && left <= back, "{heard} {said} {left} {back}");
        bounds = (bounds.0.max(offset(left, heard)), bounds.1.min(offset(back, said)));
    }
    page.end();
    while !matches!(guest.hear(PATIENCE), FromProbe::Clock(answer) if answer.n == n) {}
    bounds
}
