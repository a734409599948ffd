//! How often a comparison reports a false regression, and how often it sees a real one. It compares bundles
//! of a machine with others of the same machine, with the noise of real machines. `make simulate` runs the
//! whole of it, `make test` a small part.

use tactus_model::Evidence;
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::catalogue::{Item, Measure, measure::Os};
use tactus_model::document::{CompareDocument, Judgement};
use tactus_model::latency::{Latency, Totals};
use tactus_model::number::{float, whole};
use tactus_model::outcome::{
    Better, Ending, LatencyOutcome, Outcome, Repeats, SeriesResult, Unit, ValueResult,
};
use tactus_model::series::SeriesKey;
use tactus_report::compare::{Condition, Options, compare};
use tactus_statistics::{Random, runs_needed};

use crate::common;
use crate::simulation::{Machine, Noise, all_of, at_most};

/// Seconds of a run, and the wake-ups of one: 10 000 in all, which is what p99.9 takes.
const SECONDS: u64 = 10;
const WAKE_UPS: usize = 1_000;
const INTERVAL_NS: u64 = 1_000_000;
/// Typical latency, in ns. With less than 10 us the floor of a microsecond would be more than the margin.
const BASE: f64 = 20_000.0;
/// Standard deviation of a run's own level.
const SHIFT: f64 = 0.05;
/// Runs of each scenario.
const REPEATS: u32 = 8;

const NOISES: [(&str, Noise); 3] = [
    ("AR(1) 0.9", Noise::Autoregression(0.9)),
    ("Markov 60/20 s", Noise::Markov),
    ("run shift 5 %", Noise::Runs),
];

/// Seconds of wake-ups, drawn once. A simulated second is one of them, times its level. A value stands for
/// its neighbours; each of the largest ten stands for itself.
struct Pool(Vec<Vec<(f64, u64)>>);

impl Pool {
    fn new() -> Self {
        let mut random = Random::new(11);
        let mut second = || {
            let mut values: Vec<f64> = (0..WAKE_UPS).map(|_| BASE * (0.2 * random.normal()).exp()).collect();
            values.sort_by(f64::total_cmp);
            let largest = values.split_off(WAKE_UPS - 10);
            let joined = values.chunks(10).map(|some| (some[some.len() / 2], some.len() as u64));
            joined.chain(largest.into_iter().map(|value| (value, 1))).collect()
        };
        Self((0..64).map(|_| second()).collect())
    }
}

/// The levels of a run's seconds.
fn levels(machine: &mut Machine) -> Vec<f64> {
    let shift = SHIFT * machine.random.normal();
    (0..SECONDS).map(|_| machine.second(shift).exp()).collect()
}

fn ended(mut result: RowResult, outcome: Outcome, repeat: u32) -> Row {
    result.evidence = Some(Evidence::BareMetal);
    result.interval_ns = INTERVAL_NS;
    result.planned_ns = SECONDS * 1_000_000_000;
    result.measured_ns = result.planned_ns;
    result.repeat = Some(repeat);
    result.outcome = outcome;
    result.end(Ending::complete());
    Row::of(result)
}

/// A run of latencies.
fn latencies(machine: &mut Machine, pool: &Pool, name: &str, repeat: u32) -> Row {
    let mut all = Latency::new();
    for level in levels(machine) {
        let at = usize::try_from(whole(machine.random.unit() * 64.0)).unwrap().min(63);
        for (value, count) in &pool.0[at] {
            let value = whole(value * level);
            all.raw.saturating_record_n(value, *count);
            let (min_ns, max_ns, sum_ns) = (value, value, value * count);
            all.totals.add(&Totals { cycles: *count, overruns: 0, min_ns, max_ns, sum_ns });
        }
    }
    let key = SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() };
    let mut result = RowResult::unmeasured(name, "host", "host");
    result.threads = Some(vec![key.of_thread()]);
    let summary = all.summary();
    let series = SeriesResult {
        key,
        summary: summary.clone(),
        counters: common::counters(),
        outliers: Vec::new(),
        whole: true,
    };
    ended(result, Outcome::Latency(LatencyOutcome { series: vec![series], all: Some(summary) }), repeat)
}

/// A run of values.
fn values(name: &str, of: &[f64], repeat: u32) -> Row {
    let names = ["system call", "signal handler"];
    let value = |(n, value): (usize, &f64)| {
        let item = Item { name: names[n % 2], unit: Unit::Ns, better: Better::Lower, about: "" };
        let mut repeats = Repeats { kept: vec![*value], dropped: 0, batch: 1 };
        ValueResult { item: format!("{} {n}", names[n % 2]), ..ValueResult::of(&item, &mut repeats).unwrap() }
    };
    let mut result = RowResult::unmeasured(name, "host", "host");
    result.measurement = Measure::Os(Os::default());
    ended(result, Outcome::Values(of.iter().enumerate().map(value).collect()), repeat)
}

/// A bundle of scenarios, repeated in rounds: `scenarios` of latencies (four quantities each), and one of
/// `items` values.
fn sitting(machine: &mut Machine, pool: &Pool, (scenarios, items): (usize, usize)) -> Contents {
    let mut contents = common::empty();
    for round in 1..=REPEATS {
        for n in 0..scenarios {
            contents.rows.push(latencies(machine, pool, &format!("scenario {n}"), round));
        }
        // Each item has separate seconds.
        let mean = |_| levels(machine).iter().sum::<f64>() / float(SECONDS);
        let own: Vec<f64> = (0..items).map(mean).collect();
        if items > 0 {
            contents.rows.push(values("values", &own, round));
        }
    }
    contents
}

/// Compares the runs of two bundles as if each run were a sitting.
fn held(base: &Contents, now: &Contents) -> CompareDocument {
    between(common::sittings(base), common::sittings(now))
}

fn between(base: Vec<Contents>, now: Vec<Contents>) -> CompareDocument {
    compare(&[Condition::new("base", base), Condition::new("now", now)], &Options::default())
}

fn has(document: &CompareDocument, outcome: Judgement) -> bool {
    document.scenarios.iter().flat_map(|one| &one.quantities).any(|of| of.outcome == Some(outcome))
}

/// Comparisons in each cell.
fn trials() -> u64 {
    std::env::var("TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(2_000)
}

fn percent(found: usize, of: usize) -> f64 {
    100.0 * float(found as u64) / float(of as u64)
}

/// Of bundles of a machine against itself, how many of 100 have a regression, how many something better, and how many
/// pass as a whole.
fn against_itself(trials: u64, noise: Noise, shape: (usize, usize), quantities: usize) -> [f64; 3] {
    let pool = Pool::new();
    let found = all_of(trials, |seed| {
        let mut machine = Machine::new(noise, seed);
        let (base, now) = (sitting(&mut machine, &pool, shape), sitting(&mut machine, &pool, shape));
        let document = held(&base, &now);
        assert_eq!(document.gated, quantities, "{}", document.reason);
        let better = document.scenarios.iter().flat_map(|one| &one.quantities).any(|of| of.improved);
        [has(&document, Judgement::Regression), better, document.outcome == Judgement::Pass]
    });
    [0, 1, 2].map(|at| percent(found.iter().filter(|said| said[at]).count(), found.len()))
}

/// Simulates runs whose logarithms have this standard deviation; one of `quantities` is `ratio` times worse.
/// Returns how many of 100 comparisons call that one a regression, and how many pass it.
fn power(trials: u64, (ratio, spread): (f64, f64), quantities: usize, runs: u32) -> [f64; 2] {
    let found = all_of(trials, |seed| {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9));
        let mut bundle = |factor: f64| {
            let mut contents = common::empty();
            for round in 1..=runs {
                let value = |n: usize| {
                    let worse = if n == 0 { factor } else { 1.0 };
                    100.0 * worse * (spread * random.normal()).exp()
                };
                contents.rows.push(values("values", &(0..quantities).map(value).collect::<Vec<_>>(), round));
            }
            contents
        };
        let document = held(&bundle(1.0), &bundle(ratio));
        document.scenarios[0].quantities[0].outcome
    });
    [Judgement::Regression, Judgement::Pass]
        .map(|what| percent(found.iter().filter(|said| **said == Some(what)).count(), found.len()))
}

/// Draws the logarithm of a run's value.
type Law = fn(&mut Random) -> f64;

/// How runs of one sitting differ, as logarithms of their values: the laws of the maxima of stalls among them.
const RUNS: [(&str, Law); 4] = [
    ("3 %", |random| 0.03 * random.normal()),
    ("30 %", |random| 0.3 * random.normal()),
    ("Pareto 1.1", |random| -(-random.unit().max(1e-12).ln()).ln() / 1.1),
    ("one in ten x 10", |random| {
        0.05 * random.normal() + if random.unit() < 0.1 { 10.0_f64.ln() } else { 0.0 }
    }),
];

/// Simulates sittings of eight runs whose levels differ by `day` from day to day. The last of four quantities has runs of
/// this law, and all are `ratio` times worse in the other condition. Returns how many of 100 comparisons call one a
/// regression, and how many are undecided.
fn sittings(trials: u64, counts: [u32; 2], day: f64, law: Law, ratio: f64) -> [f64; 2] {
    let found = all_of(trials, |seed| {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9));
        let mut sitting = |factor: f64| {
            let levels: Vec<f64> = (0..4).map(|_| day * random.normal()).collect();
            let mut contents = common::empty();
            for round in 1..=REPEATS {
                let mut own: Vec<f64> = levels.iter().map(|level| level + 0.03 * random.normal()).collect();
                own[3] = levels[3] + law(&mut random);
                let own: Vec<f64> = own.iter().map(|level| 100.0 * factor * level.exp()).collect();
                contents.rows.push(values("values", &own, round));
            }
            contents
        };
        let base = (0..counts[0]).map(|_| sitting(1.0)).collect();
        let document = between(base, (0..counts[1]).map(|_| sitting(ratio)).collect());
        [has(&document, Judgement::Regression), document.outcome == Judgement::Inconclusive]
    });
    [0, 1].map(|at| percent(found.iter().filter(|said| said[at]).count(), found.len()))
}

#[test]
fn a_machine_that_differs_from_day_to_day_is_no_regression() {
    for (name, law) in RUNS {
        for (counts, day) in [([5, 1], 0.2), ([3, 3], 0.1)] {
            let [regressions, _] = sittings(120, counts, day, law, 1.0);
            assert!(regressions <= at_most(120), "{name}, {counts:?}: {regressions} %");
        }
    }
    let [regressions, undecided] = sittings(20, [1, 1], 0.2, RUNS[0].1, 1.0);
    assert!(regressions <= 0.0 && undecided >= 100.0, "one sitting each decides nothing");
}

#[test]
#[ignore = "long: make simulate"]
fn simulation_of_sittings() {
    let trials = trials();
    println!("sittings of 8 runs, 4 values: a regression (undecided), in % of {trials}");
    println!(
        "{:<16} {:<8} {:<6} {:>14} {:>14} {:>14}",
        "runs of one", "sittings", "day", "x 1", "x 1.3", "x 1.5"
    );
    for (name, law) in RUNS {
        for counts in [[5, 1], [10, 1], [3, 3], [5, 5]] {
            for day in [0.0, 0.05, 0.1, 0.2] {
                let cells = [1.0, 1.3, 1.5].map(|ratio| sittings(trials, counts, day, law, ratio));
                assert!(cells[0][0] <= at_most(trials), "{name}, {counts:?}, {day}: {} %", cells[0][0]);
                let said = cells.map(|[found, open]| format!("{found:.1} ({open:.1})"));
                let counts = format!("{} : {}", counts[0], counts[1]);
                println!("{name:<16} {counts:<8} {day:<6} {:>14} {:>14} {:>14}", said[0], said[1], said[2]);
            }
        }
    }
}

#[test]
fn a_machine_against_itself_is_no_regression_under_the_noises_of_real_machines() {
    for (name, noise) in NOISES {
        let [regressions, better, _] = against_itself(120, noise, (0, 30), 30);
        assert!(regressions <= at_most(120) && better <= at_most(120), "{name}: {regressions} %, {better} %");
    }
}

#[test]
fn latencies_of_a_machine_against_itself_are_judged_in_thirty_quantities() {
    let [regressions, ..] = against_itself(3, Noise::Runs, (7, 2), 30);
    assert!(regressions <= 40.0, "{regressions}");
}

#[test]
fn eight_runs_see_a_third_more_among_thirty_quantities() {
    let [seen, passed] = power(60, (1.3, 0.05), 30, REPEATS);
    assert!(seen >= 75.0 && passed <= 5.0, "{seen} % seen, {passed} % passed");
}

#[test]
#[ignore = "long: make simulate"]
fn simulation_of_comparisons() {
    let trials = trials();
    println!("a machine against itself, 8 runs of 10 s each: in % of {trials} comparisons");
    println!("{:<16} {:>10} {:>11} {:>7} {:>7}", "noise", "quantities", "regressions", "better", "passes");
    for (name, noise) in NOISES {
        for (shape, quantities) in [((7, 2), 30), ((1, 0), 4)] {
            let [regressions, better, passes] = against_itself(trials, noise, shape, quantities);
            println!("{name:<16} {quantities:>10} {regressions:>11.2} {better:>7.2} {passes:>7.1}");
            assert!(regressions <= at_most(trials), "{name}, {quantities} quantities: {regressions} %");
            assert!(better <= at_most(trials), "{name}, {quantities} quantities: {better} %");
        }
    }
    println!("8 runs, one quantity of m so many times worse: called a regression (passed), in % of {trials}");
    println!("{:<8} {:<6} {:>14} {:>14} {:>14}", "spread", "ratio", "m = 1", "m = 10", "m = 30");
    for (spread, ratio) in [(0.05, 1.0), (0.05, 1.1), (0.05, 1.2), (0.05, 1.3), (0.1, 1.3), (0.1, 1.5)] {
        let cells = [1, 10, 30].map(|quantities| {
            let [seen, passed] = power(trials, (ratio, spread), quantities, REPEATS);
            // On the margin itself either answer is an error, of 5 % at most.
            if ratio <= 1.1 {
                assert!(seen <= at_most(trials), "{ratio}, {quantities}: {seen} %");
            }
            if ratio >= 1.1 {
                assert!(passed <= at_most(trials), "{ratio}, {quantities}: {passed} %");
            }
            if spread < 0.06 && ratio > 1.25 {
                assert!(seen >= 80.0, "{ratio}, {quantities}: {seen} %");
            }
            format!("{seen:.1} ({passed:.1})")
        });
        println!("{spread:<8} {ratio:<6} {:>14} {:>14} {:>14}", cells[0], cells[1], cells[2]);
    }
}

#[test]
#[ignore = "long: make simulate"]
fn simulation_of_the_runs_that_are_said_to_decide() {
    let trials = trials();
    println!("as many runs as are said to decide: called a regression, in % of {trials}");
    for (spread, ratio, quantities) in
        [(0.05, 1.3, 30), (0.1, 1.3, 1), (0.1, 1.3, 10), (0.1, 1.3, 30), (0.1, 1.5, 10)]
    {
        let error = 0.05 / float(quantities as u64);
        let runs = runs_needed(spread, (ratio / 1.1_f64).ln(), error).unwrap();
        let [seen, _] = power(trials, (ratio, spread), quantities, u32::try_from(runs).unwrap());
        println!("spread {spread}, ratio {ratio}, m = {quantities}: {runs} runs, {seen:.1}");
        assert!(seen >= 75.0, "{seen} %");
    }
}
