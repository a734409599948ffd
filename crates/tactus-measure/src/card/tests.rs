use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tactus_model::scheduling::Policy;
use tactus_model::series::SeriesKey;

use super::*;
use crate::lane::{Lane, Run, Spec};
use crate::{Measurement, interrupt};

fn card_of(warm_up: u32) -> Arc<Card> {
    let (bell, table) = (
        Doorbell { page: Arc::new(Page::own().unwrap()), ring: Ring::Nothing },
        Interrupt { warm_up: Some(warm_up), ..Interrupt::default() },
    );
    Arc::new(Card::new(bell, &table))
}

fn card() -> Arc<Card> {
    card_of(5)
}

/// A guest that does this whenever something else was sent, until the card is done.
fn with_guest(card: &Card, guest: impl Fn(&Page, u32) + Sync, then: impl FnOnce()) {
    /// Ends the guest, however the card ends.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    let page = &card.bell.page;
    let mut last = page.word(SENT).load(Ordering::Acquire);
    std::thread::scope(|scope| {
        let (over, guest) = (&over, &guest);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let sent = page.word(SENT).load(Ordering::Acquire);
                if sent != last {
                    last = sent;
                    guest(page, sent);
                }
                std::thread::yield_now();
            }
        });
        let _over = Over(over);
        then();
    });
}

fn answer(page: &Page, number: u32) {
    page.word(ANSWERED).store(number, Ordering::Release);
    page.word(HANDLED).fetch_add(1, Ordering::Relaxed);
}

#[test]
fn what_is_answered_is_timed_from_raising_to_seeing() {
    let card = card();
    with_guest(&card, answer, || {
        for _ in 0..100 {
            let (raised, answer) = card.ask(|| false);
            let Answer::At(at) = answer else { panic!("{answer:?}") };
            assert!(at >= raised && at <= sys::now());
        }
        assert_eq!(card.trouble(), None);
    });
    assert!(card.account().is_empty(), "{:?}", card.account());
}

/// CPU time of this thread, in ns.
fn own_cpu_time() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

#[test]
fn a_guest_that_never_answers_is_given_up_after_three_lost_interrupts() {
    let card = card();
    let (began, used) = (sys::now(), own_cpu_time());
    for lost in 1..=SILENT {
        assert_eq!(card.trouble(), None);
        let (raised, answer) = card.ask(|| false);
        assert!(matches!(answer, Answer::Lost(at) if at >= raised + LOST_NS), "{lost}: {answer:?}");
    }
    let (took, used) = (sys::now() - began, own_cpu_time() - used);
    assert!(used < took, "who answers may need this CPU: {used} ns of {took} were used");
    assert!(card.trouble().unwrap().contains("answered none of the last 3 interrupts, each within 1s"));
    let told = &card.account()[0];
    assert!(told.text.starts_with("3 interrupts were lost") && told.hint.is_some(), "{told:?}");
    // One that has been told so asks no more.
    card.warm_up();
    assert_eq!(card.sent.load(Ordering::Relaxed), SILENT);
}

#[test]
fn a_late_answer_is_no_answer_to_the_next_interrupt_and_is_counted() {
    let card = card();
    assert!(matches!(card.ask(|| false).1, Answer::Lost(_)));
    // The answer comes while the next one is awaited, which is answered later.
    let guest = |page: &Page, number: u32| {
        answer(page, number - 1);
        std::thread::sleep(std::time::Duration::from_millis(20));
        answer(page, number);
    };
    with_guest(&card, guest, || {
        let (raised, answer) = card.ask(|| false);
        assert!(matches!(answer, Answer::At(at) if at >= raised + 10_000_000), "{answer:?}");
    });
    let told = card.account();
    assert!(
        told[0].text.contains("1 interrupts were lost") && told[0].text.contains("1 of them"),
        "{told:?}"
    );
}

#[test]
fn an_answer_seen_after_a_second_counts_as_lost_even_if_the_card_looked_late() {
    let card = card();
    // The answer comes just before the card would give it up. It is there at the card's next look, which comes later.
    let guest = |page: &Page, number: u32| {
        std::thread::sleep(std::time::Duration::from_millis(950));
        answer(page, number);
    };
    with_guest(&card, guest, || {
        let (raised, answer) = card.ask(|| false);
        let (Answer::At(at) | Answer::Lost(at)) = answer else { panic!("{answer:?}") };
        let counts = card.counts();
        let lost = u64::from(at >= raised + LOST_NS);
        assert_eq!(
            (matches!(answer, Answer::Lost(_)), counts.lost),
            (lost == 1, lost),
            "{answer:?}, {counts:?}"
        );
        assert!(counts.late <= lost, "{counts:?}");
    });
}

#[test]
fn a_guest_that_writes_what_was_never_sent_ends_it_with_what_it_wrote() {
    for garbage in [77_u32, u32::MAX, 3, 0x8000_0000] {
        let card = card();
        with_guest(&card, answer, || assert!(matches!(card.ask(|| false).1, Answer::At(_))));
        with_guest(
            &card,
            |page, _| answer(page, garbage),
            || {
                assert_eq!(card.ask(|| false).1, Answer::None);
            },
        );
        let why = card.trouble().unwrap();
        assert!(why.contains(&format!("{garbage:#x}")) && why.contains("0x2 was awaited"), "{why}");
    }
    // Nor does an answer that was given before come back.
    let card = card();
    with_guest(&card, answer, || card.warm_up());
    with_guest(
        &card,
        |page, number| answer(page, number - 2),
        || {
            assert_eq!(card.ask(|| false).1, Answer::None);
        },
    );
    assert!(card.trouble().is_some());
}

#[test]
fn who_answers_each_interrupt_just_before_it_is_lost_keeps_nobody_waiting() {
    const MOST_NS: u64 = 100_000_000;
    let guest = |page: &Page, number: u32| {
        std::thread::sleep(std::time::Duration::from_millis(30));
        answer(page, number);
    };
    let card = card_of(100_000);
    with_guest(&card, guest, || card.warm_up_within(MOST_NS));
    let asked = card.sent.load(Ordering::Relaxed);
    assert!(asked < 100, "{asked} of 100000 were raised in the time of three");
    assert_eq!(card.trouble(), None, "it is slow, and answers");
    let told = &card.account()[0];
    assert!(told.text.contains("of 100000 warm-up interrupts were left out"), "{told:?}");
    assert!(told.hint.is_some());
    // A guest that answers at once gets all of them, and no note is made.
    let card = card_of(50);
    with_guest(&card, answer, || card.warm_up());
    assert_eq!(card.sent.load(Ordering::Relaxed), 50);
    assert!(card.account().is_empty(), "{:?}", card.account());
}

#[test]
fn duplicates_are_counted_by_how_often_the_guest_handled_something() {
    let card = card_of(7);
    let guest = |page: &Page, number: u32| {
        page.word(HANDLED).fetch_add(1, Ordering::Relaxed);
        answer(page, number);
    };
    with_guest(&card, guest, || card.warm_up());
    assert!(card.account()[0].text.contains("7 interrupts more than were raised"), "{:?}", card.account());
}

#[test]
fn numbers_go_round() {
    let card = card_of(6);
    for word in [SENT, ANSWERED] {
        card.bell.page.word(word).store(u32::MAX - 2, Ordering::Relaxed);
    }
    card.sent.store(u32::MAX - 2, Ordering::Relaxed);
    card.seen.store(u32::MAX - 2, Ordering::Relaxed);
    with_guest(&card, answer, || card.warm_up());
    assert_eq!((card.sent.load(Ordering::Relaxed), card.trouble()), (3, None));
}

#[test]
fn who_waits_for_an_answer_hears_that_the_job_ends() {
    let card = card();
    assert_eq!(card.ask(|| true).1, Answer::None);
    assert_eq!(card.trouble(), None);
}

#[test]
fn what_was_measured_stays_when_a_guest_falls_silent_or_answers_what_was_never_sent() {
    type Guest<'a> = &'a (dyn Fn(&Page, u32) + Sync);
    const GOOD: u32 = 5;
    let silent = |page: &Page, number: u32| {
        if number <= GOOD {
            answer(page, number);
        }
    };
    let garbage = |page: &Page, number: u32| answer(page, if number <= GOOD { number } else { u32::MAX });
    let guests: [(Guest, _, _); 2] = [(&silent, SILENT, "answered none"), (&garbage, 0, "never sent")];
    for (guest, lost, said) in guests {
        let card = card();
        let series = SeriesKey { cpu: 0, thread: 0, priority: 0, kind: "interrupt".into() };
        let spec = Spec {
            activity: 0,
            series,
            interval_ns: 1_000_000,
            policy: Policy::Other,
            limit_ns: u64::MAX,
            busy: 0,
            reads_on: None,
        };
        let mut lane = Lane::new(spec, None, Arc::default());
        lane.card = Some(Arc::clone(&card));
        let start = sys::now() + 1_000_000;
        let run = Run {
            start,
            end: start + 3_600_000_000_000,
            interval_ns: 1_000_000,
            control: false,
            open: false,
        };
        with_guest(&card, guest, || Measurement::run(&interrupt::Interrupt, &lane, run));
        let mut samples = Vec::new();
        lane.ring.drain(|sample| samples.push(sample.value));
        let (good, given_up) = samples.split_at(GOOD as usize);
        assert!(good.iter().all(|ns| *ns < LOST_NS), "{samples:?}");
        assert_eq!(given_up.len(), lost as usize, "{samples:?}");
        assert!(given_up.iter().all(|ns| *ns >= LOST_NS), "{samples:?}");
        assert!(card.trouble().unwrap().contains(said), "{:?}", card.trouble());
    }
}
