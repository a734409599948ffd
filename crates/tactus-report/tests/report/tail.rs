//! The tail bound of whole rows: bounds, refusals, and verdicts on requirements.

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{Outcome, Side};
use tactus_model::number::{float, whole};
use tactus_model::outcome::RowEnd;
use tactus_model::plan::{Require, TailLimit};
use tactus_model::{Evidence, Nanos};
use tactus_report::render::html;
use tactus_report::render::text::{Style, render};
use tactus_report::row::{NoTail, tail, verdict};
use tactus_statistics::Random;
use tactus_statistics::tail::{Gpd, Maxima, Refusal, bound};

use crate::common::{Shape, Span, empty, measured, planned};

/// Half an hour of one thread, whose latencies have an exponential tail.
fn half_an_hour(seed: u64) -> Row {
    seconds(1_800, 60, seed)
}

/// `ticks` seconds of `cycles` cycles each.
fn seconds(ticks: u64, cycles: u64, seed: u64) -> Row {
    let (planned_ns, interval_ns) = (ticks * 1_000_000_000, 1_000_000_000 / cycles);
    let result = RowResult { planned_ns, interval_ns, ..planned("host, idle", "host", "host", Vec::new()) };
    let shape = Shape { late: 0.0, spread: 4_200.0, ..Shape::IDLE };
    let span = Span { ticks, samples: cycles, per_interval: cycles, series: 1 };
    measured(result, Evidence::BareMetal, shape, span, seed)
}

fn requiring(mut row: Row, max: Nanos, hours: u64) -> Row {
    let tail = Some(TailLimit { max, horizon: Nanos::from_secs(hours * 3_600) });
    row.result.require = Some(Require { tail, ..Require::default() });
    row
}

fn refused(row: &Row) -> NoTail {
    tail(row).expect("it measured latencies").expect_err("no bound")
}

#[test]
fn a_long_quiet_run_has_a_bound_above_what_it_has_seen_and_all_that_belongs_to_it() {
    let row = half_an_hour(4);
    let bound = tail(&row).unwrap().unwrap();
    assert_eq!(bound.horizon_ns, 86_400_000_000_000, "a day, where it carries that far");
    assert!(bound.tail.k() >= 90 && bound.tail.block_ns.abs_diff(1_000_000_000) < 1_000_000);
    assert!(bound.level.low < bound.estimate_ns && bound.estimate_ns < bound.level.high, "{bound:?}");
    assert!(bound.level.high > bound.observed_ns);
    // 48 times the half hour of an exponential tail: about the scale times ln 48 more than its largest.
    let truth = 1_900.0 + 4_200.0 * (60.0_f64 * 86_400.0).ln();
    assert!(bound.level.high > truth && bound.level.high < 2.0 * truth, "{} for {truth}", bound.level.high);
}

#[test]
fn the_return_levels_rise_with_their_band_up_to_the_bound() {
    let row = half_an_hour(4);
    let (bound, levels) = (tail(&row).unwrap().unwrap(), tail(&row).unwrap().unwrap().levels());
    assert!(
        levels.is_sorted_by(|one, next| one.time_ns < next.time_ns && one.estimate_ns < next.estimate_ns)
    );
    assert!(
        levels.iter().all(|one| one.low_ns <= one.estimate_ns && one.estimate_ns <= one.high_ns),
        "{levels:?}"
    );
    let (first, last) = (levels[0], levels[levels.len() - 1]);
    assert!((last.time_ns / float(bound.horizon_ns) - 1.0).abs() < 1e-9, "{last:?}");
    assert!((last.estimate_ns / bound.estimate_ns - 1.0).abs() < 1e-6, "{last:?} {}", bound.estimate_ns);
    assert!((last.high_ns / bound.level.high - 1.0).abs() < 0.05, "{last:?} {:?}", bound.level);
    assert!(last.high_ns - last.low_ns > 2.0 * (first.high_ns - first.low_ns), "{first:?} {last:?}");
    let told = tactus_report::document(&with(row)).scenarios[0].tail.clone().unwrap().levels;
    assert_eq!((told.len(), levels.len()), (25, 25));
    assert!((told[24].time_s * 1e9 / last.time_ns - 1.0).abs() < 1e-9, "{:?}", told[24]);
    assert!((told[24].high_ns / last.high_ns - 1.0).abs() < 1e-9, "{:?}", told[24]);
}

#[test]
fn a_tail_that_a_few_cycles_break_is_broken() {
    // Two seconds against a day.
    let few = seconds(2, 60, 4);
    let max = few.result.all().unwrap().max_ns.unwrap();
    let judged = |limit: u64| verdict(&requiring(few.clone(), Nanos(limit), 24)).unwrap().outcome;
    assert_eq!((judged(max - 1), judged(max)), (Outcome::Fail, Outcome::Inconclusive));
}

#[test]
fn what_carries_no_bound_is_refused_with_the_reason() {
    let mut short = half_an_hour(4);
    short.ticks.series.values_mut().for_each(|own| own.stretches.truncate(120));
    let why = refused(&short);
    assert!(matches!(&why, NoTail::Series(_, Refusal::TooShort { blocks: 120, .. })), "{why:?}");
    assert_eq!(why.longer_ns().map(|ns| whole(float(ns) / 1e9)), Some(180));
    for (evidence, word) in [(Evidence::Emulated, "emulated"), (Evidence::Imported, "imported")] {
        let mut row = half_an_hour(4);
        row.result.evidence = Some(evidence);
        assert_eq!(refused(&row).word(), word);
    }
    let mut row = half_an_hour(4);
    row.result.ended = RowEnd::Broke;
    assert_eq!(refused(&row), NoTail::Broke);
    let mut row = half_an_hour(4);
    row.result.control.clear();
    assert_eq!(refused(&row).word(), "no-ground");
    let mut row = half_an_hour(4);
    for own in row.ticks.series.values_mut() {
        for (n, stretch) in (1..).zip(&mut own.stretches) {
            stretch.max_ns = stretch.max_ns.map(|ns| ns + 20 * n);
        }
    }
    assert_eq!(refused(&row).word(), "not-stationary-or-not-independent", "a level that drifts");
    assert!(refused(&row).to_string().contains("drifts"), "{}", refused(&row));
    let mut row = half_an_hour(4);
    for own in row.ticks.series.values_mut() {
        own.stretches.iter_mut().for_each(|one| one.max_ns = one.max_ns.map(|ns| ns / 10_000 * 10_000));
    }
    assert_eq!(refused(&row).word(), "tied");
    let mut row = half_an_hour(4);
    row.ticks.series.clear();
    assert!(matches!(refused(&row), NoTail::Ground(_)));
}

/// Maxima of a second each.
fn of(values: Vec<u64>) -> Maxima {
    Maxima { values, ticks: 1, tick_ns: 1_000_000_000, starts: Vec::new() }
}

/// The Dow Jones returns of Coles 2001, 4.4.2, have 37 exceedances: whatever they are, they are too few.
#[test]
fn thirty_seven_exceedances_are_too_few() {
    let mut random = Random::new(5);
    let mut draw =
        |n: usize| (0..n).map(|_| 1_000 + whole(-9_000.0 * random.unit().ln())).collect::<Vec<u64>>();
    let few = bound(&[of(draw(185))], None);
    assert!(
        matches!(few, Err((0, Refusal::TooShort { blocks: 185, .. }))),
        "a fifth of them are 37: {few:?}"
    );
    assert!(bound(&[], None).is_err(), "nothing at all");
    for hostile in
        [vec![0; 400], vec![u64::MAX; 400], (0..400).map(|n| if n % 2 == 0 { u64::MAX } else { 0 }).collect()]
    {
        assert!(bound(&[of(hostile)], Some(u64::MAX)).is_err());
    }
}

/// In random order.
fn shuffled<T>(mut all: Vec<T>, random: &mut Random) -> Vec<T> {
    all.sort_by_cached_key(|_| whole(1e15 * random.unit()));
    all
}

#[test]
fn each_reason_to_say_nothing_of_a_tail_has_a_tail_that_it_is_for() {
    let exponential = |random: &mut Random| 20_000 + whole(-4_000.0 * random.unit().ln());
    let mut random = Random::new(2);
    let power_law = Gpd { sigma: 8_000.0, xi: 1.5 };
    let heavy = (0..1_800).map(|_| 20_000 + whole(power_law.one_in(1.0 / random.unit()))).collect();
    let mut random = Random::new(1);
    let pairs = (0..299).map(|_| exponential(&mut random)).flat_map(|value| [value; 2]).collect();
    // The tenth below the largest tenth comes in fours: that is neither seen among all, nor among the largest.
    let mut random = Random::new(2);
    let mut rising: Vec<u64> = (0..599).map(|_| exponential(&mut random)).collect();
    rising.sort_unstable();
    let (low, high) = (&rising[..479], &rising[539..]);
    let alone = low.iter().chain(high).map(|value| vec![*value]);
    let fours = shuffled(alone.chain(rising[479..539].chunks(4).map(<[u64]>::to_vec)).collect(), &mut random);
    let mut random = Random::new(1);
    let spike = |_| {
        let place = random.unit();
        if random.unit() > 0.045 { 20_000 + whole(30_000.0 * place) } else { 60_000 + whole(400.0 * place) }
    };
    let spike = (0..1_800).map(spike).collect();
    let mut random = Random::new(1);
    let mut few = vec![20_000; 370];
    few.extend((0..30).map(|_| exponential(&mut random)));
    let few = shuffled(few, &mut random);
    // One in a hundred is ten times larger: of blocks of ten times the length only some have one.
    let mut random = Random::new(132);
    let mut hump = || {
        let long = if random.unit() < 0.01 { 10.0 } else { 1.0 };
        whole(20_000.0 * (1.0 - long * random.unit().ln()))
    };
    let hump = (0..1_800).map(|_| hump()).collect();
    for (values, word) in [
        (heavy, "too-heavy"),
        (hump, "methods-disagree"),
        (pairs, "not-stationary-or-not-independent"),
        (fours.concat(), "clustered"),
        (spike, "no-threshold"),
        (few, "too-few-exceedances"),
        (vec![20_000; 400], "tied"),
    ] {
        let (_, why) = bound(&[of(values)], None).expect_err(word);
        assert_eq!(why.word(), word, "{why:?}");
    }
}

#[test]
fn a_requirement_passes_on_the_upper_end_alone() {
    let row = half_an_hour(4);
    let found = tail(&row).unwrap().unwrap();
    let ns = |value: f64| Nanos(whole(value));
    let judged = |max, hours| verdict(&requiring(half_an_hour(4), max, hours)).unwrap();
    let pass = judged(ns(found.level.high + 1.0), 24);
    assert_eq!((pass.outcome, pass.limits[0].side), (Outcome::Pass, Side::Kept), "{}", pass.reason);
    let open = judged(ns(f64::midpoint(found.estimate_ns, found.level.high)), 24);
    assert_eq!(open.outcome, Outcome::Inconclusive, "{}", open.reason);
    assert!(open.longer_ns.is_some() && open.reason.contains("the estimate is"), "{}", open.reason);
    // Half an hour is one 48th of the day: a latency reached in it is not reached less than once a day, at
    // 97.5 %.
    let broken = judged(ns(found.observed_ns - 1.0), 24);
    assert_eq!(broken.outcome, Outcome::Fail, "{}", broken.reason);
    let far = judged(ns(10.0 * found.level.high), 24 * 365);
    assert_eq!(far.outcome, Outcome::Inconclusive);
    assert!(far.reason.contains("are too far beyond the measurement"), "{}", far.reason);
    assert!(far.longer_ns.is_some_and(|ns| ns > 80 * 3_600_000_000_000), "{far:?}");
}

#[test]
fn nothing_passes_or_fails_on_a_bound_of_less_than_half_an_hour_but_for_what_was_reached() {
    let of = |ticks: u64, max: Nanos| {
        let mut row = seconds(ticks, 600, 4);
        row.result.require = Some(Require { cycles: Some(1_000), ..Require::default() });
        let tail = Some(TailLimit { max, horizon: Nanos::from_secs(3_600 * 2) });
        row.result.require.iter_mut().for_each(|require| require.tail = tail);
        row
    };
    let generous = Nanos::from_us(10_000);
    let short = of(900, generous);
    let bound = tail(&short).unwrap().expect("a bound that is shown");
    assert!(!bound.is_promise() && bound.lacking_ns.abs_diff(900_000_000_000) < 1_000_000_000, "{bound:?}");
    let judged = verdict(&short).unwrap();
    assert_eq!((judged.outcome, judged.limits[0].side), (Outcome::Inconclusive, Side::Open), "{judged:?}");
    assert_eq!(judged.longer_ns, Some(bound.lacking_ns));
    assert!(
        judged.reason.contains("provisional") && judged.reason.contains("15 min more"),
        "{}",
        judged.reason
    );
    assert_eq!(verdict(&of(1_799, generous)).unwrap().outcome, Outcome::Inconclusive);
    assert_eq!(verdict(&of(1_800, generous)).unwrap().outcome, Outcome::Pass);
    // Without any bound yet, the reason gives the time for a promise, and not the time for a bound that is
    // shown.
    let none = verdict(&of(200, generous)).unwrap();
    assert_eq!(none.longer_ns.map(|ns| whole((float(ns) / 1e9).round())), Some(1_600), "{none:?}");
    // Nothing fails on its lower end either, ...
    let low = Nanos(whole(tail(&seconds(900, 600, 4)).unwrap().unwrap().observed_ns) + 1);
    let mut open = of(900, low);
    open.result.require.as_mut().unwrap().tail.as_mut().unwrap().horizon = Nanos::from_secs(86_400);
    let judged = verdict(&open).unwrap();
    assert_eq!(judged.outcome, Outcome::Inconclusive, "{judged:?}");
    // ... but what was reached within a fortieth of the horizon is certain.
    let mut broken = of(900, Nanos(low.0 - 2));
    broken.result.require.as_mut().unwrap().tail.as_mut().unwrap().horizon = Nanos::from_secs(86_400);
    assert_eq!(verdict(&broken).unwrap().outcome, Outcome::Fail);
    let entry = tactus_report::document(&with(of(900, generous))).scenarios[0].tail.clone().unwrap();
    assert_eq!(
        (entry.blocks, entry.provisional.map(|why| why.longer_ns)),
        (Some(900), Some(bound.lacking_ns))
    );
    let long = tactus_report::document(&with(half_an_hour(4))).scenarios[0].tail.clone().unwrap();
    assert_eq!((long.blocks, long.provisional), (Some(1_800), None));
    let text = render(&with(seconds(900, 600, 4)), Style { width: 2_000, ..Style::default() });
    assert!(text.contains("provisional: fewer than") && text.contains("15 min more"), "{text}");
    assert!(
        !render(&with(half_an_hour(4)), Style { width: 2_000, ..Style::default() }).contains("provisional")
    );
    let page = html::render(&with(seconds(900, 600, 4))).unwrap();
    assert!(page.contains(">provisional<"), "a word before the sentence");
}

/// A run whose tail is known, with something required of it.
pub fn with_a_tail() -> Contents {
    with(requiring(half_an_hour(4), Nanos::from_us(200), 24))
}

fn with(row: Row) -> Contents {
    let mut contents = empty();
    contents.rows = vec![row];
    contents
}

#[test]
fn the_report_says_it_in_words_and_draws_it_and_refusals_of_one_reason_stand_together() {
    let mut contents: Contents = empty();
    contents.rows = vec![requiring(half_an_hour(4), Nanos::from_us(200), 24)];
    for n in 0..9 {
        let mut row = half_an_hour(4);
        row.result.name = format!("guest {n}");
        row.result.evidence = Some(Evidence::Emulated);
        contents.rows.push(row);
    }
    let page = html::render(&contents).unwrap();
    let section = page.split("id=\"tail\"").nth(1).expect("the section");
    for text in [
        "exceeded less than once in 24 h of this load",
        "not a worst case",
        "and 3 more",
        "shape xi",
        "required: 200 us",
    ] {
        assert!(section.contains(text) || page.contains(text), "{text}");
    }
    assert_eq!(section.matches("guest 0; guest 1").count(), 1);
    let text = render(&contents, Style::default());
    assert!(text.contains("exceeded less than once in 24 h") && !text.contains("no bound"), "{text}");
}
