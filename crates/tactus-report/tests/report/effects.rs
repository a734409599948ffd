//! The effects from one scenario to another: answers that are known beforehand.

use std::collections::BTreeMap;

use tactus_model::Evidence;
use tactus_model::buckets::{Counts, Packed, bucket_of};
use tactus_model::bundle::{Row, RowResult, Slice, Sliced};
use tactus_model::histograms::Histograms;
use tactus_model::latency::Latency;
use tactus_model::number::whole;
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, Restart, RowEnd};
use tactus_report::row::Quantity;
use tactus_report::stats::{Change, Effect, claims};
use tactus_statistics::{Random, Unknown};

use crate::common::{Shape, Span, compared, latency, measured, planned};

const INTERVAL_NS: u64 = 200_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Seconds of a timer that wakes 5 us late, or 10 ms late `stalls` times a second. The periods that it missed
/// are kept separately, as in a run.
fn stalled(name: &str, seconds: u64, stalls: u64, seed: u64) -> Row {
    let mut random = Random::new(seed);
    let mut all = Latency::new();
    let (mut raw, mut missed) = (BTreeMap::new(), BTreeMap::new());
    for second in 0..seconds {
        let mut own = Latency::new();
        let late = 10_000_000;
        let periods = SECOND_NS / INTERVAL_NS - stalls * (late / INTERVAL_NS);
        for _ in 0..periods {
            own.record(whole(5_000.0 * (0.15 * random.normal()).exp()), INTERVAL_NS);
        }
        for _ in 0..stalls {
            own.record(late + whole(20_000.0 * random.unit()), INTERVAL_NS);
        }
        all.merge(&own);
        let packed = |histogram: &hdrhistogram::Histogram<u64>| -> Packed {
            let mut counts = Counts::default();
            histogram
                .iter_recorded()
                .for_each(|b| counts.add(bucket_of(b.value_iterated_to()), b.count_at_value()));
            counts.pack()
        };
        raw.insert(second, packed(&own.raw));
        if stalls > 0 {
            missed.insert(second, packed(&own.missed));
        }
    }
    row(name, seconds, &all, raw, missed)
}

fn row(
    name: &str,
    seconds: u64,
    all: &Latency,
    raw: BTreeMap<u64, Packed>,
    missed: BTreeMap<u64, Packed>,
) -> Row {
    let mut result = RowResult {
        evidence: Some(Evidence::BareMetal),
        outcome: Outcome::Latency(LatencyOutcome { series: Vec::new(), all: Some(all.summary()) }),
        planned_ns: seconds * SECOND_NS,
        measured_ns: seconds * SECOND_NS,
        ..RowResult::unmeasured(name, "host", "host")
    };
    result.end(Ending::complete());
    let over = |intervals| Histograms {
        length_ns: SECOND_NS,
        end_ns: seconds * SECOND_NS,
        intervals,
        ..Histograms::default()
    };
    Row { histograms: over(raw), missed: over(missed), ..Row::of(result) }
}

/// The effect of `b` against `a`.
fn effect(base: Row, with: Row) -> Effect {
    claims(&compared(vec![base, with])).remove(0).effect().unwrap().clone()
}

fn of(effect: &Effect, quantity: Quantity) -> &Change {
    effect.changes.iter().find(|change| change.quantity == quantity).unwrap()
}

#[test]
fn stalls_of_ten_milliseconds_are_seen_in_the_corrected_quantile_at_their_size() {
    for (stalls, p999) in [(1, 9.0e6), (2, 9.6e6), (4, 9.8e6)] {
        let effect = effect(stalled("a", 60, 0, 1), stalled("b", 60, stalls, 2));
        let change = of(&effect, Quantity::P999);
        assert!((change.with_ns / p999 - 1.0).abs() < 0.01, "{stalls} stalls: {}", change.with_ns);
        let difference = change.difference.unwrap();
        assert!(
            difference.is_shown() && (difference.estimate_ns / p999 - 1.0).abs() < 0.01,
            "{difference:?}"
        );
        assert!(difference.interval.low_ns > 8e6 && difference.interval.high_ns < 11e6, "{difference:?}");
        let said = &effect.sentences()[1];
        assert!(said.starts_with("corrected p99.9 is ") && said.contains(" ms higher"), "{said}");
        let p50 = of(&effect, Quantity::P50);
        assert!(
            (p50.with_ns / p50.base_ns - 1.0).abs() < 0.02,
            "half of all periods are nearly as before: {p50:?}"
        );
    }
}

#[test]
fn a_run_of_twice_the_length_has_no_larger_maxima() {
    let mut seemed = 0;
    for seed in 0..20 {
        let effect = effect(stalled("a", 30, 0, seed), stalled("b", 60, 0, 100 + seed));
        seemed += usize::from(of(&effect, Quantity::Maximum).is_shown());
    }
    assert!(seemed <= 3, "{seemed} of 20");
}

/// Joins each pair of a row's intervals, as a log of a longer run has them.
fn in_intervals_of_two_seconds(mut row: Row) -> Row {
    for histograms in [&mut row.histograms, &mut row.missed] {
        let mut joined: BTreeMap<u64, Counts> = BTreeMap::new();
        for (number, counts) in &histograms.intervals {
            joined.entry(number / 2).or_default().add_packed(counts);
        }
        histograms.intervals = joined.into_iter().map(|(number, counts)| (number, counts.pack())).collect();
        histograms.length_ns = 2 * SECOND_NS;
    }
    row
}

#[test]
fn maxima_are_of_equal_stretches_of_time_whatever_the_intervals_of_the_logs_were() {
    let mut seemed = 0;
    for seed in 0..20 {
        let long = in_intervals_of_two_seconds(stalled("b", 61, 0, 200 + seed));
        let effect = effect(stalled("a", 60, 0, seed), long);
        let change = of(&effect, Quantity::Maximum);
        seemed += usize::from(change.is_shown());
        assert!(effect.method().contains("30 and 30 report intervals"), "{}", effect.method());
    }
    assert!(seemed <= 3, "{seemed} of 20");
}

#[test]
fn what_was_not_measured_alike_is_not_compared() {
    let refused =
        |base: Row, with: Row| claims(&compared(vec![base, with])).remove(0).effect().unwrap_err().to_owned();
    let mut slow = stalled("b", 20, 0, 2);
    slow.result.interval_ns = 1_000_000;
    assert!(refused(stalled("a", 20, 0, 1), slow).contains("different intervals"));
    let mut odd = stalled("b", 20, 0, 2);
    odd.histograms.length_ns = 1_400_000_000;
    assert!(refused(stalled("a", 20, 0, 1), odd).contains("their `tick` differs"));
}

#[test]
fn what_does_not_vary_is_too_discrete_to_say() {
    let coarse = |name: &str| {
        let mut all = Latency::new();
        let mut counts = Counts::default();
        for _ in 0..500 {
            all.record(4_000, INTERVAL_NS);
            counts.add(bucket_of(4_000), 1);
        }
        let raw = (0..20).map(|second| (second, counts.pack())).collect();
        row(name, 20, &all, raw, BTreeMap::new())
    };
    let effect = effect(coarse("a"), coarse("b"));
    assert!(effect.changes.iter().all(|change| change.difference == Err(Unknown::TooDiscrete)), "{effect:?}");
    assert_eq!(effect.answer(), "inconclusive: too few distinct values");
}

#[test]
fn slow_waves_are_too_correlated_to_say_anything() {
    let waves = |name: &str, seed| {
        let mut random = Random::new(seed);
        let mut all = Latency::new();
        let mut raw = BTreeMap::new();
        for second in 0..60 {
            let level = if second / 20 == seed { 10_000.0 } else { 5_000.0 };
            let mut counts = Counts::default();
            for _ in 0..500 {
                let value = whole(level * (0.1 * random.normal()).exp());
                all.record(value, INTERVAL_NS);
                counts.add(bucket_of(value), 1);
            }
            raw.insert(second, counts.pack());
        }
        row(name, 60, &all, raw, BTreeMap::new())
    };
    let effect = effect(waves("a", 0), waves("b", 2));
    assert_eq!(effect.answer(), "inconclusive: not enough independent data");
    assert!(effect.sentences()[0].contains("60 count as "), "{:?}", effect.sentences());
}

/// `a` and `b` in eight rounds; `b` is slower by a factor.
fn rounds(factor: f64) -> Vec<Row> {
    let span = Span { ticks: 4, samples: 1_000, per_interval: 1, series: 1 };
    let run = |name: &str, round: u32, shape| {
        let result = RowResult { repeat: Some(round), ..planned(name, "host", "host", Vec::new()) };
        measured(
            result,
            Evidence::BareMetal,
            shape,
            span,
            u64::from(round) + if name == "a" { 0 } else { 50 },
        )
    };
    let slower = Shape { base: Shape::IDLE.base * factor, ..Shape::IDLE };
    (1..=8).flat_map(|round| [run("a", round, Shape::IDLE), run("b", round, slower)]).collect()
}

#[test]
fn repeated_scenarios_have_an_effect_and_its_bound() {
    let effect = |factor| claims(&compared(rounds(factor))).remove(0).effect().unwrap().clone();
    let slower = effect(1.5);
    assert_eq!(slower.answer(), "an effect on p50");
    assert!(slower.sentences()[0].starts_with("`b` raises p50 by 0.9"), "{:?}", slower.sentences());
    assert_eq!(slower.method(), "8 pairs of runs in randomised order");
    let same = effect(1.0);
    assert_eq!(same.answer(), "no effect shown");
    assert!(
        same.sentences()[0].starts_with("`b` has no effect on p50 larger than 0.0"),
        "{:?}",
        same.sentences()
    );
    let wide = &same.sentences()[2];
    assert!(
        wide.contains("no effect of `b` on the typical maximum of a run is shown; a change of up to")
            || wide.contains("has no effect"),
        "{wide}"
    );
}

#[test]
fn too_few_whole_pairs_of_runs_are_told_with_how_many_it_takes() {
    let mut rows = rounds(1.5);
    for row in rows.iter_mut().take(4) {
        row.result.end(Ending::because(RowEnd::Interrupted, "interrupted after 1 s"));
    }
    let effect = claims(&compared(rows)).remove(0).effect().unwrap().clone();
    assert_eq!(effect.answer(), "inconclusive: too few runs; a run ended early");
    assert!(
        effect.sentences()[2].contains("6 pairs of complete runs; 7 are needed"),
        "{:?}",
        effect.sentences()
    );
}

#[test]
fn runs_that_broke_count_as_worse_and_are_never_dropped() {
    let span = Span { ticks: 4, samples: 1_000, per_interval: 1, series: 1 };
    let run = |name: &str, round: u32| {
        let result = RowResult { repeat: Some(round), ..planned(name, "host", "host", Vec::new()) };
        let seed = u64::from(round) + if name == "a" { 0 } else { 50 };
        measured(result, Evidence::BareMetal, Shape::IDLE, span, seed)
    };
    let mut rows: Vec<Row> = (1..=12).flat_map(|round| [run("a", round), run("b", round)]).collect();
    let of = |rows: Vec<Row>| claims(&compared(rows)).remove(0).effect().unwrap().clone();
    let whole = of(rows.clone());
    assert!(whole.answer() == "no effect shown" && whole.is_whole(), "{}", whole.answer());
    for (n, row) in rows.iter_mut().filter(|row| row.result.name == "b").take(4).enumerate() {
        match n {
            0 => row.result.end(Ending::because(RowEnd::Failed, "the guest's kernel panicked")),
            1 => row.result.restarts.push(Restart {
                at_ns: 1,
                first_tick: 1,
                gap_ns: 4_000_000_000,
                reason: "the guest's kernel panicked".into(),
            }),
            _ => {
                row.result.end(Ending::because(RowEnd::Broke, "ended by a latency of 5 ms"));
                row.result.measured_ns = 3_000_000_000;
                latency(row).all.as_mut().unwrap().max_ns = Some(5_000_000);
            }
        }
    }
    let broke = of(rows.clone());
    assert_eq!(broke.answer(), "no effect shown; in 4 of 12 pairs a run did not complete");
    assert!(
        broke.method().contains("12 pairs of runs in randomised order, 8 of 12 of them complete"),
        "{}",
        broke.method()
    );
    let said = broke.sentences();
    assert!(said[0].starts_with("`b`: 1 of 12 runs failed: the guest's kernel panicked"), "{said:?}");
    assert!(
        said.iter().all(|sentence| !sentence.contains("no effect on the typical maximum of a run larger")),
        "{said:?}"
    );
    let maximum = said.last().unwrap();
    assert!(
        maximum.contains("a change of any size is possible") && maximum.contains("to unknown"),
        "{maximum}"
    );
    assert!(maximum.contains("the largest of all runs is 5 ms against "), "{maximum}");
    // If all of them broke, that is an effect of unknown size.
    for row in rows.iter_mut().filter(|row| row.result.name == "b") {
        row.result.end(Ending::because(RowEnd::Failed, "the guest's kernel panicked"));
    }
    let all = of(rows);
    assert!(all.found() == Some(true), "{:?}", all.sentences());
    let entry = all.changes[2].entry();
    assert_eq!((entry.with_ns, entry.effect_ns, entry.high_ns, entry.shown), (None, None, None, true));
    assert!(
        all.sentences()[1].contains("by an unknown amount: too many runs failed"),
        "{:?}",
        all.sentences()
    );
}

#[test]
fn the_maximum_of_repeats_is_a_typical_one_and_the_largest_of_all_stands_beside_it() {
    let mut rows = rounds(1.0);
    let rare = rows.iter_mut().rfind(|row| row.result.name == "b").unwrap();
    latency(rare).all.as_mut().unwrap().max_ns = Some(1_000_000);
    let effect = claims(&compared(rows)).remove(0).effect().unwrap().clone();
    let said = effect.sentences().pop().unwrap();
    assert!(said.contains("typical maximum of a run"), "{said}");
    assert!(said.contains("the largest of all runs is 1 ms against "), "{said}");
    assert!(said.ends_with("31 % of all runs may behave in ways that 8 do not show (95 %)"), "{said}");
}

#[test]
fn runs_of_different_length_are_no_pairs() {
    let mut rows = rounds(1.0);
    for row in rows.iter_mut().filter(|row| row.result.name == "b") {
        row.result.planned_ns *= 2;
    }
    let why = claims(&compared(rows)).remove(0).effect().unwrap_err().to_owned();
    assert!(why.contains("different durations"), "{why}");
}

#[test]
fn eight_runs_are_one_row_of_the_table_with_each_run_and_their_median_below_it() {
    let contents = compared(rounds(1.5));
    let lines = tactus_report::stats::comparison(&contents);
    assert_eq!(lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let of = |row: &Row| row.result.all().unwrap().max_ns.unwrap();
    let mut maxima: Vec<u64> = contents.rows.iter().step_by(2).map(of).collect();
    maxima.sort_unstable();
    let repeated = lines[0].repeated.as_ref().unwrap();
    assert_eq!((repeated.runs.len(), lines[0].figures.as_ref().unwrap().max_ns), (8, Some(maxima[7])));
    let median = repeated.median.as_ref().unwrap().max_ns.unwrap();
    assert!(median.abs_diff(u64::midpoint(maxima[3], maxima[4])) <= 1, "{median} of {maxima:?}");
    let text = tactus_report::render::text::render(&contents, tactus_report::render::text::Style::default());
    for said in ["a (8 runs together)", "run 8", "median of 8 runs"] {
        assert!(text.contains(said), "{text}");
    }
    let document = tactus_report::document(&contents);
    assert_eq!((document.scenarios.len(), document.scenarios[15].repeat), (16, Some(8)));
    assert_eq!(document.repeated.iter().map(|entry| entry.runs).collect::<Vec<_>>(), [8, 8]);
}

/// A row of `slices` slices of ten seconds, on a machine whose latency grows from slice to slice.
fn sliced(name: &str, slices: u32, later_ns: f64, seed: u64) -> Row {
    let mut random = Random::new(seed);
    let mut whole_row = Latency::new();
    let mut row = stalled(name, 10, 0, seed);
    for number in 1..=slices {
        let mut own = Latency::new();
        let drift = 500.0 * f64::from(number);
        for _ in 0..2_000 {
            own.record(whole((5_000.0 + drift + later_ns) * (0.15 * random.normal()).exp()), INTERVAL_NS);
        }
        whole_row.merge(&own);
        let whole_ns = u64::from(slices) * 10 * SECOND_NS;
        let mut result = RowResult {
            slice: Some(Slice { number, of: slices, whole_ns, tick_ns: SECOND_NS }),
            outcome: Outcome::Latency(LatencyOutcome { series: Vec::new(), all: Some(own.summary()) }),
            ..row.result.clone()
        };
        result.end(Ending::complete());
        let at = u64::from(number) * 40;
        row.slices.push(Sliced { first_tick: at, at_ns: at * SECOND_NS, result });
    }
    row.result.outcome =
        Outcome::Latency(LatencyOutcome { series: Vec::new(), all: Some(whole_row.summary()) });
    row
}

#[test]
fn slices_of_one_round_are_pairs_in_which_drift_is_no_effect() {
    let shown = effect(sliced("a", 12, 0.0, 1), sliced("b", 12, 2_000.0, 2));
    let p50 = of(&shown, Quantity::P50);
    assert!(p50.is_shown() && (p50.difference.unwrap().estimate_ns / 2_000.0 - 1.0).abs() < 0.1, "{p50:?}");
    assert!(shown.method().contains("12 pairs of slices of 10 s"), "{}", shown.method());
    assert!(
        shown.sentences().iter().any(|said| said.contains("the typical maximum of a slice")),
        "{:?}",
        shown.sentences()
    );
    let mut wrong = 0;
    for seed in 0..40 {
        let none = effect(sliced("a", 12, 0.0, 10 + seed), sliced("b", 12, 0.0, 100 + seed));
        wrong += usize::from(none.found() == Some(true));
    }
    assert!(wrong <= 7, "{wrong} of 40 reports of nothing: 2 are expected");
    // Of so few nothing could be told: they are two runs again.
    let few = effect(sliced("a", 3, 0.0, 1), sliced("b", 3, 2_000.0, 2));
    assert!(few.method().contains("one run each"), "{}", few.method());
}
