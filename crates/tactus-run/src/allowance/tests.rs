use std::sync::LazyLock;
use std::time::Duration;

use tactus_model::catalogue::fault::Block;
use tactus_model::catalogue::load::Cpu;
use tactus_model::catalogue::measure::{Os, Spin, Timer};
use tactus_model::catalogue::{Fault, Load, Measure};
use tactus_model::control::ControlBy;
use tactus_model::facts::MAX_READING;
use tactus_model::latency::{Sparse, Totals};
use tactus_model::message::{
    Activity, BreakdownOf, CardOf, Done, End, Injected, LockIn, Note, Outlier, Proven, ThreadCounters, Tick,
    Total, Value, What, Windows,
};
use tactus_model::outcome::breakdown::{Arrivals, Breakdown, CpuTime, ThreadTime};
use tactus_model::outcome::{CardCounts, Point, ValueResult};
use tactus_model::rpc::{Answer, Exited, Output};
use tactus_model::scheduling::Policy;
use tactus_model::series::SeriesKey;
use tactus_model::windows::Moments;
use tactus_model::{CpuSet, Nanos};

use super::*;

const S: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * S;

/// A fixed moment: the limits of a flood must not depend on how fast the machine is.
fn now() -> Instant {
    static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);
    *NOW
}

fn measuring(measure: Measure, interval_ns: u64) -> What {
    What::Measure { measure, interval_ns, priority: 95, policy: Policy::Fifo }
}

fn job(what: What, cpus: &str, duration_ns: u64, tick_ns: u64) -> Job {
    Job {
        duration_ns,
        tick_ns,
        control: ControlBy::Nothing,
        no_side_effects: false,
        housekeeping: CpuSet::one(0),
        activities: vec![Activity::new(0, cpus.parse().unwrap(), what)],
        changes: Vec::new(),
        restore: false,
        budget: 0,
        cache_misses: false,
        blame_above: None,
        blame_by: None,
        lock_in: None,
    }
}

fn series(cpu: u32) -> SeriesKey {
    SeriesKey { cpu, thread: 0, priority: 95, kind: "thread".into() }
}

fn tick(cpu: u32, n: u64, numbers: usize) -> Tick {
    Tick {
        activity: 0,
        series: series(cpu),
        n,
        at_ns: (n + 1) * S,
        now: Totals::default(),
        total: Totals::default(),
        counts: Sparse(vec![1; numbers]),
        missed: Sparse::default(),
        thread: ThreadCounters::default(),
    }
}

/// An allowance for a timer on CPUs 1 and 2, ten seconds with a tick each.
fn ten_seconds() -> Allowance {
    let mut allowance = Allowance::new(now());
    allowance.begin(
        &job(measuring(Measure::Timer(Timer::default()), 200_000), "1-2", 10 * S, S),
        false,
        None,
    );
    allowance
}

fn send(allowance: &mut Allowance, message: FromProbe) -> Result<FromProbe, String> {
    match allowance.admit(Item::Message(message), now()) {
        Ok(Item::Message(message)) => Ok(message),
        Ok(other) => panic!("{other:?}"),
        Err(excess) => Err(excess.to_string()),
    }
}

/// Sends the same until it is refused; how often it was taken, and the refusal.
fn flood(allowance: &mut Allowance, message: impl Fn(u64) -> FromProbe) -> (u64, String) {
    for n in 0..10_000_000 {
        if let Err(refusal) = send(allowance, message(n)) {
            return (n, refusal);
        }
    }
    panic!("it is never refused")
}

/// The limits grow with the duration as the measurements do: an hour shows the same as a day.
#[test]
fn eight_polling_threads_that_see_6000_values_a_second_meet_no_bound() {
    let mut allowance = Allowance::new(now());
    allowance.begin(&job(measuring(Measure::Spin(Spin::default()), 20_000), "0-7", HOUR, S), false, None);
    for n in 0..HOUR / S {
        for cpu in 0..8 {
            let mut own = tick(cpu, n, 12_000);
            own.series.kind = "gap".into();
            let series = own.series.clone();
            send(&mut allowance, FromProbe::Tick(own)).unwrap();
            for value_ns in 0..4 {
                let (series, at_ns) = (series.clone(), n * S);
                let outlier = Outlier { activity: 0, series, at_ns, value_ns, trace: None };
                send(&mut allowance, FromProbe::Outlier(outlier)).unwrap();
            }
        }
    }
}

#[test]
fn a_series_that_the_plan_does_not_have_is_refused_by_its_name() {
    let mut allowance = ten_seconds();
    send(&mut allowance, FromProbe::Tick(tick(1, 0, 2))).unwrap();
    let refusal = send(&mut allowance, FromProbe::Tick(tick(3, 0, 2))).unwrap_err();
    assert!(refusal.contains("cpu3/t0/thread") && refusal.contains("plan"), "{refusal}");
    // Neither by another priority or kind of a thread that there is, nor of an activity that there is not.
    let strange = |change: &dyn Fn(&mut Tick)| {
        let mut tick = tick(1, 1, 2);
        change(&mut tick);
        FromProbe::Tick(tick)
    };
    for message in [
        strange(&|tick| tick.series.priority = 1),
        strange(&|tick| tick.series.kind = "gap".into()),
        strange(&|tick| tick.series.thread = 1),
        strange(&|tick| tick.activity = 7),
    ] {
        assert!(send(&mut allowance, message.clone()).is_err(), "{message:?}");
    }
    let mut nothing = Allowance::new(now());
    assert!(send(&mut nothing, FromProbe::Tick(tick(1, 0, 2))).is_err(), "it has no job");
}

/// A reader of the bundle would take it for an unreadable line.
#[test]
fn a_tick_comes_after_those_before_it_and_once() {
    let mut allowance = ten_seconds();
    for n in [0, 1, 3] {
        send(&mut allowance, FromProbe::Tick(tick(1, n, 2))).unwrap();
    }
    send(&mut allowance, FromProbe::Tick(tick(2, 0, 2))).unwrap();
    for n in [2, 3] {
        let refusal = send(&mut allowance, FromProbe::Tick(tick(1, n, 2))).unwrap_err();
        assert!(refusal.contains(&format!("sent tick {n} of cpu1/t0/thread after tick 3")), "{refusal}");
    }
}

#[test]
fn a_kind_that_would_end_the_name_of_its_series_is_refused() {
    for kind in ["a,b", "a b", "a\nb", "a/b", "\u{202e}"] {
        let mut tick = tick(1, 0, 2);
        tick.series.kind = kind.into();
        assert!(send(&mut ten_seconds(), FromProbe::Tick(tick)).is_err(), "{kind:?}");
    }
}

#[test]
fn an_instrument_of_others_numbers_its_threads_itself_and_has_64() {
    let mut allowance = Allowance::new(now());
    let timer = measuring(Measure::Timer(Timer::default()), 200_000);
    allowance.begin(&job(timer, "0", 10 * S, S), true, None);
    let (taken, _) = flood(&mut allowance, |n| {
        let thread = u32::try_from(n).unwrap();
        FromProbe::Tick(Tick { series: SeriesKey { thread, ..series(thread) }, ..tick(0, 0, 2) })
    });
    assert_eq!(taken, 64);
}

#[test]
fn a_fact_is_as_long_as_facts_are_and_so_is_its_name() {
    let facts = |name: &str, text: &str| {
        let message =
            serde_json::json!({ "t": "facts", "readings": { name: { "text": text } }, "last": false });
        serde_json::from_value::<FromProbe>(message).unwrap()
    };
    let long = "x".repeat(MAX_READING + 1);
    let FromProbe::Facts { readings, .. } = send(&mut ten_seconds(), facts("/proc/a", &long)).unwrap() else {
        panic!("no facts");
    };
    assert_eq!(readings.0["/proc/a"], Reading::Cut("x".repeat(MAX_READING)));
    let refusal = send(&mut ten_seconds(), facts(&"x".repeat(LONGEST_TEXT + 1), "1")).unwrap_err();
    assert!(refusal.contains("whose name is longer than"), "{refusal}");
}

#[test]
fn facts_that_are_said_anew_with_every_job_are_no_more_than_those_of_one_system() {
    let facts = |n: u64| {
        let mut readings = Facts::default();
        readings.keep(format!("/proc/{n}"), "x".repeat(MAX_READING).as_str());
        FromProbe::Facts { readings, last: true }
    };
    let mut allowance = Allowance::new(now());
    let mut taken = 0;
    for _ in 0..10 {
        allowance.begin(&job(measuring(Measure::Timer(Timer::default()), S), "1", 10 * S, S), false, None);
        taken += (0..500).take_while(|n| send(&mut allowance, facts(*n)).is_ok()).count();
    }
    assert!(taken <= 1024, "{taken} times 16 KiB");
}

#[test]
fn what_comes_with_an_outlier_is_cut_to_what_a_probe_keeps_and_ends_before_a_disk_is_full() {
    use tactus_model::trace::{LONGEST_THREAD, MOST_EVENTS, MOST_THREADS, PER_EVENT, Trace};
    let mut allowance = Allowance::new(now());
    allowance.begin(&job(measuring(Measure::Timer(Timer::default()), 200_000), "1", HOUR, S), false, None);
    let trace = Trace { events: vec![7; 9_000], threads: vec!["1 x".repeat(999); 999], ..Trace::default() };
    let mut kept = 0;
    for n in 0..2_000 {
        let trace = Some(trace.clone());
        let outlier = Outlier { activity: 0, series: series(1), at_ns: n, value_ns: n, trace };
        let sent = send(&mut allowance, FromProbe::Outlier(outlier)).unwrap();
        let FromProbe::Outlier(Outlier { trace: Some(trace), .. }) = sent else { continue };
        kept += 1;
        assert!(trace.events.len() == MOST_EVENTS * PER_EVENT && trace.threads.len() == MOST_THREADS);
        assert!(trace.threads.iter().all(|thread| thread.len() <= LONGEST_THREAD));
    }
    assert_eq!(kept, 1_024);
}

#[test]
fn every_kind_of_message_has_a_limit() {
    let total = |_| {
        FromProbe::Total(Total {
            activity: 0,
            series: series(1),
            at_ns: 1,
            total: Totals::default(),
            last: false,
        })
    };
    let outlier = |n| {
        FromProbe::Outlier(Outlier { activity: 0, series: series(1), at_ns: n, value_ns: n, trace: None })
    };
    let facts = |n: u64| {
        let mut readings = Facts::default();
        readings.keep(format!("/proc/{n}"), "x".repeat(1000).as_str());
        FromProbe::Facts { readings, last: false }
    };
    let done = |_| {
        let load_rounds = Vec::new();
        FromProbe::Done(Done { end: End::Complete, reason: None, measured_ns: 1, load_rounds, jump_ns: 0 })
    };
    let windows = |_| {
        FromProbe::Windows(Windows { activity: 0, series: series(1), began_ns: 0, first: 0, maxima: vec![1] })
    };
    let floods: [(u64, (u64, String)); 10] = [
        (13, flood(&mut ten_seconds(), |n| FromProbe::Tick(tick(1, n, 2)))),
        (10, flood(&mut ten_seconds(), |n| FromProbe::Tick(tick(1, n.min(9), 2)))),
        (29, flood(&mut ten_seconds(), total)),
        (116, flood(&mut ten_seconds(), outlier)),
        (264, flood(&mut ten_seconds(), |_| FromProbe::Note(Note::info("again")))),
        (64, flood(&mut ten_seconds(), |_| FromProbe::Proven(Proven::default()))),
        (64, flood(&mut ten_seconds(), done)),
        (0, flood(&mut ten_seconds(), windows)),
        (
            8,
            flood(&mut ten_seconds(), |_| {
                FromProbe::Note(Note::obstacle("x".repeat(LONGEST_TEXT), "y".repeat(LONGEST_TEXT)))
            }),
        ),
        (14_739, flood(&mut ten_seconds(), facts)),
    ];
    for (most, (taken, refusal)) in floods {
        assert_eq!(taken, most, "{refusal}");
        assert!(refusal.contains("a probe never does this"), "{refusal}");
    }
}

#[test]
fn values_come_from_measurements_that_have_some_and_are_of_few_items() {
    let value = |_| {
        let of = tactus_model::catalogue::measure::os::SYSTEM_CALL;
        let mut repeats = tactus_model::outcome::Repeats { kept: vec![1.0; 5], dropped: 0, batch: 1 };
        FromProbe::Value(Value { activity: 0, value: ValueResult::of(&of, &mut repeats).unwrap() })
    };
    assert_eq!(flood(&mut ten_seconds(), value).0, 0);
    let point = |n: u64| {
        let FromProbe::Value(Value { activity, value }) = value(0) else { panic!() };
        FromProbe::Value(Value { activity, value: ValueResult { at: Some(Point::Bytes(n)), ..value } })
    };
    let mut allowance = Allowance::new(now());
    allowance.begin(&job(measuring(Measure::Os(Os::default()), 0), "1", 10 * S, S), false, None);
    assert_eq!(flood(&mut allowance, point).0, 256, "each point of a curve is one");
}

#[test]
fn a_value_that_the_plan_does_not_have_or_of_another_unit_is_refused_by_its_name() {
    let send_as = |change: &dyn Fn(&mut ValueResult)| {
        let of = tactus_model::catalogue::measure::os::SYSTEM_CALL;
        let mut repeats = tactus_model::outcome::Repeats { kept: vec![1.0; 5], dropped: 0, batch: 1 };
        let mut value = ValueResult::of(&of, &mut repeats).unwrap();
        change(&mut value);
        let mut allowance = Allowance::new(now());
        allowance.begin(&job(measuring(Measure::Os(Os::default()), 0), "1", 10 * S, S), false, None);
        send(&mut allowance, FromProbe::Value(Value { activity: 0, value }))
    };
    assert!(send_as(&|_| {}).is_ok());
    let refusal = send_as(&|value| value.item = "invented".into()).unwrap_err();
    assert!(refusal.contains("`invented`, which is not measured"), "{refusal}");
    let refusal = send_as(&|value| value.unit = tactus_model::outcome::Unit::Ms).unwrap_err();
    assert!(refusal.contains("`system call` as something else than"), "{refusal}");
    assert!(send_as(&|value| value.better = tactus_model::outcome::Better::Higher).is_err());
}

#[test]
fn what_threads_count_at_most_can_be_read_from_the_log() {
    let counted = |count| Tick { counts: Sparse(vec![5, count]), ..tick(1, 0, 0) };
    let most = tactus_model::histograms::MOST_COUNTED;
    assert!(send(&mut ten_seconds(), FromProbe::Tick(counted(most))).is_ok());
    assert!(send(&mut ten_seconds(), FromProbe::Tick(counted(most + 1))).is_err());
    let mut folding = tactus_model::histograms::Folding::new(vec![S], 1 << 20);
    let place = tactus_model::histograms::Place { start_ns: 0, length_ns: S };
    assert!(folding.add("1", place, &[(5, most)]) && !folding.add("1", place, &[(5, 1)]));
}

#[test]
fn numbers_that_no_measurement_has_are_cut_to_the_largest_there_can_be() {
    let mut allowance = ten_seconds();
    let most = Totals { cycles: u64::MAX, overruns: u64::MAX, min_ns: 0, max_ns: u64::MAX, sum_ns: u64::MAX };
    let sent = Tick { at_ns: u64::MAX, now: most, total: most, ..tick(1, 0, 2) };
    let FromProbe::Tick(taken) = send(&mut allowance, FromProbe::Tick(sent)).unwrap() else { panic!() };
    assert!(taken.now.max_ns <= HOUR && taken.now.cycles <= 1 << 60, "{:?}", taken.now);
    assert!(taken.at_ns < HOUR);
    let unsaid = Totals { cycles: 1, ..Totals::default() };
    assert_eq!(unsaid.min_ns, u64::MAX);
    let counters = ThreadCounters {
        minor_faults: Some(u64::MAX),
        major_faults: Some(u64::MAX),
        voluntary_switches: Some(u64::MAX),
        involuntary_switches: Some(u64::MAX),
        cpu_ns: Some(u64::MAX),
        steal_ns: Some(u64::MAX),
        smi: Some(u64::MAX),
        llc_misses: None,
    };
    let sent = Tick { total: unsaid, thread: counters, ..tick(2, 0, 2) };
    let FromProbe::Tick(taken) = send(&mut allowance, FromProbe::Tick(sent)).unwrap() else { panic!() };
    assert!(taken.total.min_ns <= HOUR, "one cycle has a smallest: {:?}", taken.total);
    let most = Some(tactus_model::histograms::MOST_COUNTED);
    let cut = ThreadCounters {
        minor_faults: most,
        major_faults: most,
        voluntary_switches: most,
        involuntary_switches: most,
        cpu_ns: most,
        steal_ns: most,
        smi: most,
        llc_misses: None,
    };
    assert_eq!(taken.thread, cut);
    let none = Tick { now: Totals::default(), ..tick(1, 1, 0) };
    let FromProbe::Tick(taken) = send(&mut allowance, FromProbe::Tick(none)).unwrap() else { panic!() };
    assert_eq!(taken.now, Totals::default(), "nothing measured stays nothing measured");
    let late = Tick { n: u64::MAX, ..tick(1, 0, 0) };
    assert!(send(&mut allowance, FromProbe::Tick(late)).is_err(), "no run has such a tick");
    assert!(
        send(&mut allowance, FromProbe::Tick(tick(2, 1, 70_000))).is_err(),
        "there are no such histograms"
    );
    let full = Tick { counts: Sparse(vec![5, 1 << 62]), ..tick(2, 2, 0) };
    let refusal = send(&mut allowance, FromProbe::Tick(full)).unwrap_err();
    assert!(refusal.contains("in a month"), "{refusal}");
    let lost = allowance.admit(Item::Lost(u64::MAX), now());
    assert!(lost.unwrap_err().to_string().contains("18446744073709551615"));
}

#[test]
fn texts_are_cut_where_they_are_longer_than_anybody_reads() {
    let mut allowance = ten_seconds();
    let long = "ä".repeat(300_000);
    let note = Note::obstacle(long.clone(), long.clone());
    let FromProbe::Note(taken) = send(&mut allowance, FromProbe::Note(note)).unwrap() else { panic!() };
    assert!(taken.text.len() <= LONGEST_TEXT && taken.text.ends_with("[...]"));
    assert!(taken.hint.unwrap().len() <= LONGEST_TEXT);
    let refused = FromProbe::Refused(Refusal { reason: long.clone(), hint: Some(long) });
    let FromProbe::Refused(taken) = send(&mut allowance, refused).unwrap() else { panic!() };
    assert!(taken.reason.len() <= LONGEST_TEXT && taken.hint.unwrap().len() <= LONGEST_TEXT);
}

#[test]
fn a_new_job_begins_anew() {
    let mut allowance = ten_seconds();
    flood(&mut allowance, |_| FromProbe::Note(Note::info("again")));
    let timer = measuring(Measure::Timer(Timer::default()), 200_000);
    allowance.begin(&job(timer, "5", 10 * S, S), false, None);
    send(&mut allowance, FromProbe::Note(Note::info("again"))).unwrap();
    send(&mut allowance, FromProbe::Tick(tick(5, 0, 2))).unwrap();
    assert!(send(&mut allowance, FromProbe::Tick(tick(1, 0, 2))).is_err(), "that was the job before");
    assert!(longest(Duration::from_secs(10), 1) > Duration::from_secs(10));
}

#[test]
fn the_cpu_time_of_a_few_phases_is_taken_and_cut_where_there_is_more_of_it_than_any_machine_has() {
    let of = |n: u64| {
        let thread = ThreadTime { name: "x".repeat(100), ..ThreadTime::default() };
        let arrivals = Arrivals { name: "y".repeat(100), counts: vec![(0, 1); 10_000] };
        let breakdown = Breakdown {
            phase: Some("z".repeat(100)),
            ns: u64::MAX,
            switches: n,
            cpus: vec![CpuTime::default(); 10_000],
            threads: vec![thread; 1_000],
            interrupts: vec![arrivals.clone(); 1_000],
            softirqs: vec![arrivals; 1_000],
        };
        FromProbe::Breakdown(BreakdownOf { activity: 0, breakdown })
    };
    let mut allowance = Allowance::new(now());
    allowance.begin(&job(measuring(Measure::Os(Os::default()), 0), "1", 10 * S, S), false, None);
    let FromProbe::Breakdown(taken) = send(&mut allowance, of(1)).unwrap() else { panic!("another") };
    let taken = taken.breakdown;
    assert!(taken.ns < u64::MAX && taken.cpus.len() == 4096 && taken.threads.len() == 64, "{}", taken.ns);
    // Those that came most often stay, each as it was counted.
    assert!(taken.interrupts.len() == 8 && taken.interrupts.iter().all(|kind| kind.counts.len() == 4096));
    assert!(taken.softirqs.is_empty());
    assert!(taken.threads[0].name.len() <= 64 && taken.phase.unwrap().len() <= 64);
    let (more, refusal) = flood(&mut allowance, of);
    assert!(more == 3 && refusal.contains("4 phases"), "{more}: {refusal}");
    let none = send(&mut ten_seconds(), of(1)).unwrap_err();
    assert!(none.contains("without values"), "{none}");
}

#[test]
fn what_a_card_counted_is_taken_once_and_bounded_and_of_a_measurement_that_has_one() {
    let counts = CardCounts { lost: u64::MAX, ..CardCounts::default() };
    let of = |_| FromProbe::Card(CardOf { activity: 0, counts });
    let mut allowance = ten_seconds();
    let FromProbe::Card(taken) = send(&mut allowance, of(0)).unwrap() else { panic!("another") };
    assert!(taken.counts.lost < u64::MAX && taken.counts.late == 0, "{taken:?}");
    assert!(send(&mut allowance, of(0)).unwrap_err().contains("accounts of a card"));
    let mut allowance = Allowance::new(now());
    allowance.begin(&job(measuring(Measure::Os(Os::default()), 0), "1", 10 * S, S), false, None);
    assert!(send(&mut allowance, of(0)).unwrap_err().contains("without a card"));
}

#[test]
fn answers_that_nobody_asked_for_are_counted_and_have_an_end() {
    let words: [fn(u64) -> FromProbe; 3] = [
        |id| FromProbe::Answer(Answer { id, ..Answer::default() }),
        |child| FromProbe::Output(Output { child, stream: 1, data: "eA==".into() }),
        |child| FromProbe::Exited(Exited { child, code: None }),
    ];
    for word in words {
        let (passed, refusal) = flood(&mut ten_seconds(), word);
        assert!(
            (1_000..1_000_000).contains(&passed) && refusal.contains("answers without a question"),
            "{passed}: {refusal}"
        );
    }
    let large = FromProbe::Answer(Answer { words: vec!["x".repeat(1000); 10], ..Answer::default() });
    assert!(weight(&Item::Message(large)) > 10_000, "it waits with all that it says");
}

#[test]
fn another_start_continues_the_series_of_the_first_and_no_other() {
    let mut first = ten_seconds();
    send(&mut first, FromProbe::Tick(tick(1, 0, 2))).unwrap();
    let half = job(measuring(Measure::Timer(Timer::default()), 200_000), "1-2", 5 * S, S);
    let mut second = Allowance::new(now());
    second.begin(&half, false, first.before().as_ref());
    let strange = |cpu: u32| {
        let mut own = tick(cpu, 0, 2);
        own.series.kind = "another".into();
        FromProbe::Tick(own)
    };
    let refusal = send(&mut second, strange(1)).unwrap_err();
    assert!(refusal.contains("cpu1/t0/another"), "{refusal}");
    send(&mut second, FromProbe::Tick(tick(1, 0, 2))).unwrap();
    // One that had said nothing yet says now what it is.
    send(&mut second, strange(2)).unwrap();
    let mut third = Allowance::new(now());
    third.begin(&half, false, second.before().as_ref());
    assert!(send(&mut third, FromProbe::Tick(tick(2, 0, 2))).is_err());
    send(&mut third, strange(2)).unwrap();
    assert!(
        Allowance::new(now()).before().is_none(),
        "a start that had no job takes nothing from those before"
    );
}

#[test]
fn what_may_be_counted_may_be_counted_once_over_all_starts() {
    let counting =
        |n| Tick { counts: Sparse(vec![5, tactus_model::histograms::MOST_COUNTED / 2]), ..tick(1, n, 0) };
    let mut allowance = ten_seconds();
    for _ in 0..2 {
        send(&mut allowance, FromProbe::Tick(counting(0))).unwrap();
        let before = allowance.before();
        allowance = Allowance::new(now());
        let timer = measuring(Measure::Timer(Timer::default()), 200_000);
        allowance.begin(&job(timer, "1-2", 10 * S, S), false, before.as_ref());
    }
    let refusal = send(&mut allowance, FromProbe::Tick(counting(0))).unwrap_err();
    assert!(refusal.contains("counted more"), "{refusal}");
}

#[test]
fn histograms_of_many_starts_are_not_larger_than_those_of_one() {
    let start = |before: Option<&Before>| {
        let mut allowance = Allowance::new(now());
        let timer = measuring(Measure::Timer(Timer::default()), 200_000);
        allowance.begin(&job(timer, "1-2", HOUR, S), false, before);
        allowance
    };
    // As much as it may; then it dies, over and over.
    let (mut first, mut allowance) = (0, start(None));
    while first < HOUR / S && send(&mut allowance, FromProbe::Tick(tick(1, first, 30_000))).is_ok() {
        first += 1;
    }
    let mut further = 0;
    for _ in 0..20 {
        allowance = start(allowance.before().as_ref());
        let taken =
            (0..100).take_while(|n| send(&mut allowance, FromProbe::Tick(tick(1, *n, 30_000))).is_ok());
        further += taken.count();
    }
    assert!(first > 1000 && further < 20 * 30, "{first} and then {further} more");
}

fn block() -> Fault {
    let (length, every) = (Nanos(500_000), Nanos(S));
    Fault::Block(Block { length, every, emulated: None, off: None, way: None })
}

/// A block on CPU 1, and a load beside it that is let run in turns where that is asked for.
fn disturbed(lock_in: bool) -> Allowance {
    let mut job = job(What::Fault(block()), "1", 10 * S, S);
    job.activities.push(Activity::new(1, CpuSet::one(0), What::Load(Load::Cpu(Cpu::default()))));
    job.lock_in = lock_in.then_some(LockIn { seed: 1, window_ns: 1_000_000 });
    let mut allowance = Allowance::new(now());
    allowance.begin(&job, false, None);
    allowance
}

fn injected(activity: u32, kind: &str, cpu: u32) -> Injected {
    Injected {
        activity,
        kind: kind.into(),
        way: "hwlat tracer".into(),
        cpus: CpuSet::one(cpu),
        length_ns: u64::MAX,
        every_ns: u64::MAX,
        times: Some(u64::MAX),
        longest_ns: Some(u64::MAX),
        at: Moments::default(),
    }
}

#[test]
fn a_fault_that_the_job_does_not_have_is_refused_and_its_own_is_told_once_and_as_it_was_planned() {
    let strange =
        [injected(7, "block", 1), injected(0, "hog", 1), injected(0, "block", 2), injected(1, "cpu", 0)];
    for strange in strange {
        let refusal = send(&mut disturbed(false), FromProbe::Injected(strange.clone()));
        assert!(refusal.is_err(), "{strange:?}");
    }
    send(&mut disturbed(true), FromProbe::Injected(injected(1, "cpu", 0))).unwrap();
    let mut allowance = disturbed(false);
    let FromProbe::Injected(taken) =
        send(&mut allowance, FromProbe::Injected(injected(0, "block", 1))).unwrap()
    else {
        panic!("another message comes back")
    };
    let planned = block().size();
    assert_eq!((taken.length_ns, taken.every_ns), planned);
    assert!(taken.times < Some(u64::MAX) && taken.longest_ns < Some(u64::MAX), "{taken:?}");
    let refusal = send(&mut allowance, FromProbe::Injected(injected(0, "block", 1))).unwrap_err();
    assert!(refusal.contains("activity 0"), "{refusal}");
}

#[test]
fn times_of_windows_and_ends_that_no_clock_shows_become_the_latest_there_are() {
    let mut allowance = Allowance::new(now());
    let mut job = job(measuring(Measure::Timer(Timer::default()), 200_000), "1-2", 10 * S, S);
    job.lock_in = Some(LockIn { seed: 1, window_ns: 1_000_000 });
    allowance.begin(&job, false, None);
    let most = u64::MAX;
    let wild = Windows { activity: 0, series: series(1), began_ns: most, first: most, maxima: vec![most, 5] };
    let Ok(FromProbe::Windows(taken)) = send(&mut allowance, FromProbe::Windows(wild)) else {
        panic!("it may be said")
    };
    assert!(taken.began_ns < most && taken.first < most && taken.maxima[0] < most, "{taken:?}");
    assert_eq!(taken.maxima[1], 5);
    let end =
        Done { end: End::Complete, reason: None, measured_ns: S, load_rounds: Vec::new(), jump_ns: most };
    let Ok(FromProbe::Done(taken)) = send(&mut allowance, FromProbe::Done(end)) else {
        panic!("it may be said")
    };
    assert!(taken.jump_ns < most);
}
