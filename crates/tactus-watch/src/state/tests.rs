use tactus_model::event::Event;
use tactus_model::latency::{Sparse, Totals};
use tactus_model::message::{Note, Tick};
use tactus_model::outcome::Ending;

use super::*;

pub(crate) fn key(cpu: u32) -> SeriesKey {
    SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() }
}

pub(crate) fn at(at_ms: i64, event: Event) -> Stamped {
    Stamped { at_ms, event }
}

/// The n-th tick of a thread: 99 cycles of `usual` ns, and one of `max` ns.
pub(crate) fn ticked(row: usize, cpu: u32, n: u64, usual: u64, max: u64, total: &mut Totals) -> Event {
    let now =
        Totals { cycles: 100, overruns: max / 200_000, min_ns: usual, max_ns: max, sum_ns: usual * 99 + max };
    total.add(&now);
    let counts = Sparse(vec![usual, 99, max - usual, 1]);
    let tick = Tick {
        activity: 0,
        series: key(cpu),
        n,
        at_ns: (n + 1) * 1_000_000_000,
        now,
        total: *total,
        counts,
        missed: Sparse::default(),
        thread: tactus_model::series::ThreadCounters::default(),
    };
    Event::Ticked(Ticked::of(row, tick, Some(max)))
}

pub(crate) fn planned(name: &str, environment: &str) -> Planned {
    Planned {
        name: name.into(),
        environment: environment.into(),
        measurement: "timer".into(),
        periods: true,
        beside: vec!["scheduler".into()],
        planned_ns: 60_000_000_000,
        slice: None,
        limit_ns: Some(100_000),
    }
}

fn started(row: usize, environment: &str) -> Event {
    let (name, environment) = (environment.to_owned(), environment.to_owned());
    Event::RowStarted { row, name, environment, duration_ns: 60_000_000_000 }
}

/// Host and guest at the same time, for `seconds` seconds; the guest had one late wake-up.
pub(crate) fn two_at_once(seconds: u64) -> Watched {
    let mut watched =
        Watched::new("night", [planned("both", "host"), planned("both", "guest"), planned("next", "host")]);
    watched.take(&at(1_000, Event::EnvironmentStarting { environment: "guest".into() }));
    let evidence = Evidence::VirtualHost;
    for environment in ["host", "guest"] {
        let environment = environment.to_owned();
        watched.take(&at(1_400, Event::EnvironmentUp { environment, evidence, after_ms: 400 }));
    }
    watched.found("host", [Severity::Blocker, Severity::Major, Severity::Major]);
    for (row, place) in [(0, "host"), (1, "guest")] {
        watched.take(&at(2_000, started(row, place)));
    }
    for (row, cpu, usual) in [(0, 2, 3_000), (0, 3, 4_000), (1, 1, 21_000)] {
        let mut total = Totals::default();
        for n in 0..seconds {
            let max = if row == 1 && n == 5 { 1_300_000 } else { usual * (2 + n % 3) };
            let at_ms = 3_000 + i64::try_from(n).unwrap() * 1_000;
            watched.take(&at(at_ms, ticked(row, cpu, n, usual, max, &mut total)));
        }
    }
    watched.left = Some(Duration::from_secs(108));
    watched
}

#[test]
fn events_add_up_to_what_each_thread_measured() {
    let watched = two_at_once(12);
    assert_eq!(watched.current(), [0, 1], "those that measure now");
    let guest = &watched.rows[1].series[&key(1)];
    assert_eq!((guest.totals.cycles, guest.totals.overruns), (1_200, 6));
    assert_eq!(guest.max_ns(), Some(1_300_000));
    assert_eq!(guest.p99_ns(), Some(21_007), "within the bucket of 21 us, whose upper end it is");
    assert!(watched.rows[1].is_above(1_300_000) && !watched.rows[0].is_above(16_000));
    assert_eq!(guest.packed().total(), 1_200);
}

#[test]
fn what_guests_say_cannot_drive_the_terminal_and_takes_no_memory_without_end() {
    let mut watched = Watched::new("a\u{1b}[2Jb", [planned("x\u{202e}", "gu\nest")]);
    assert_eq!(watched.plan, "a\u{fffd}[2Jb");
    assert_eq!(watched.rows[0].planned.environment, "gu est");
    for n in 0..10_000 {
        let environment = Some("guest\u{7}".to_owned());
        let note = Note::info(format!("{n}\u{1b}]0;title\u{7}{}", "x".repeat(5_000)));
        watched.take(&at(n, Event::Noted { environment, note }));
    }
    assert!(watched.remarks.len() <= MOST_REMARKS);
    assert!(watched.remarks.iter().all(|remark| !remark.text.contains(char::is_control)));
    assert!(watched.remarks.iter().all(|remark| remark.text.chars().count() <= REMARK_CHARACTERS));
    let mut total = Totals::default();
    watched.take(&at(0, started(0, "guest")));
    for cpu in 0..5_000 {
        watched.take(&at(0, ticked(0, cpu, 0, 1_000, 2_000, &mut total)));
    }
    assert_eq!(watched.rows[0].series.len(), MOST_SERIES);
    // A row that no plan has.
    watched.take(&at(0, ticked(77, 0, 0, 1_000, 2_000, &mut total)));
    watched.take(&at(0, Event::RowFinished { row: 77, ending: Ending::complete(), measured_ns: 0 }));
}

#[test]
fn a_row_that_is_measured_again_begins_anew() {
    let mut watched = two_at_once(3);
    watched.take(&at(9_000, Event::RowFinished { row: 0, ending: Ending::complete(), measured_ns: 7 }));
    assert_eq!((watched.done(), watched.current()), (1, vec![1]));
    watched.take(&at(9_000, started(0, "host")));
    assert!(watched.rows[0].series.is_empty() && watched.rows[0].at_ns == 0);
}

#[test]
fn slices_of_a_measurement_are_one_that_goes_on() {
    let slice = |number| Some(Slice { number, of: 2, whole_ns: 60_000_000_000, tick_ns: 1_000_000_000 });
    let of = |name: &str, number| Planned { slice: slice(number), ..planned(name, "host") };
    let rows = [of("idle", 1), of("loaded", 1), of("loaded", 2), of("idle", 2)];
    let mut watched = Watched::new("turns", rows);
    assert_eq!(watched.rows.len(), 2);
    let mut measured = |row: usize, max_ns: u64| {
        watched.take(&at(0, started(row, "host")));
        watched.take(&at(0, ticked(row, 1, 0, 1_000, max_ns, &mut Totals::default())));
        let ending = Ending::complete();
        watched.take(&at(0, Event::RowFinished { row, ending, measured_ns: 1_000_000_000 }));
        (watched.done(), watched.rows.iter().map(|row| row.stage).collect::<Vec<_>>())
    };
    assert_eq!(measured(0, 900_000), (0, vec![Stage::Waiting, Stage::Waiting]));
    assert_eq!(measured(1, 50_000).0, 0);
    let ended = Stage::Ended(RowStatus::Measured);
    assert_eq!(measured(2, 70_000), (1, vec![Stage::Waiting, ended]));
    assert_eq!(measured(3, 30_000).0, 2);
    let series = &watched.rows[0].series[&key(1)];
    assert_eq!((series.totals.cycles, series.max_ns()), (200, Some(900_000)));
    assert_eq!(watched.rows[0].at_ns, 2_000_000_000);
}
