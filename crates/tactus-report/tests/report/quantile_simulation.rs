//! How often a limit on a quantile passes where the truth is known. `make simulate` runs the whole of it, `make test` a
//! small part.
#![expect(clippy::print_stdout, reason = "a simulation says what it found")]

use tactus_model::Nanos;
use tactus_model::buckets::bucket_of;
use tactus_model::bundle::Row;
use tactus_model::document::Outcome;
use tactus_model::histograms::{Folding, Histograms, Place};
use tactus_model::latency::Summary;
use tactus_model::number::{float, whole};
use tactus_model::plan::Require;
use tactus_report::row::verdict;
use tactus_statistics::Random;

use crate::common::{latency, whole_minute};

const SECOND_NS: u64 = 1_000_000_000;
const INTERVAL_NS: u64 = 200_000;
/// The latency of an undelayed period, the limit, and by how much the last period of a stall is late.
const USUAL_NS: u64 = 5_000;
const LIMIT_NS: u64 = 100_000;
const LAST_NS: u64 = 150_000;

/// The cause of late periods.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Stalls of this many periods, at random.
    Stalls(u64),
    /// Half of the late periods alone, the other half in stalls of this many.
    Both(u64),
    /// Late periods alone, ten times more in half of the minutes than in the others.
    Waves,
}

/// A run of `seconds` seconds, in which this share of the periods is expected to be late.
fn run(noise: Noise, part: f64, seconds: u64, random: &mut Random) -> Row {
    let periods = seconds * SECOND_NS / INTERVAL_NS;
    let mut late = vec![Vec::new(); usize::try_from(seconds).unwrap()];
    let mut stalls = |length: u64, part: f64, rate_at: &dyn Fn(f64) -> f64| {
        let mean = float(length) / part;
        let mut at = 0.0;
        loop {
            // Thinning: times are drawn at the highest rate, and dropped where the rate is lower.
            at -= random.unit().ln() * mean;
            if at >= float(periods) {
                return;
            }
            if random.unit() < rate_at(at) {
                let second = whole(at) * INTERVAL_NS / SECOND_NS;
                late[usize::try_from(second.min(seconds - 1)).unwrap()].push(length);
            }
        }
    };
    let always = |_: f64| 1.0;
    match noise {
        Noise::Stalls(length) => stalls(length, part, &always),
        Noise::Both(length) => {
            stalls(1, part / 2.0, &always);
            stalls(length, part / 2.0, &always);
        }
        Noise::Waves => {
            let minute = float(60 * SECOND_NS / INTERVAL_NS);
            let loud = |at: f64| if whole(at / minute).is_multiple_of(2) { 1.0 } else { 0.1 };
            stalls(1, part * 2.0 / 1.1, &loud);
        }
    }
    of_stalls(&late)
}

/// The row of a run with these stalls, second by second.
fn of_stalls(late: &[Vec<u64>]) -> Row {
    let lengths = vec![SECOND_NS; late.len()];
    let (mut measured, mut missed) =
        (Folding::new(lengths.clone(), usize::MAX), Folding::new(lengths, usize::MAX));
    let (mut cycles, mut overruns, mut max_ns) = (0, 0, USUAL_NS);
    for (second, stalls) in (0..).zip(late) {
        let mut own: Vec<u64> = stalls.iter().map(|length| (length - 1) * INTERVAL_NS + LAST_NS).collect();
        let swallowed: u64 = stalls.iter().map(|length| length - 1).sum();
        let kept = (SECOND_NS / INTERVAL_NS).saturating_sub(swallowed + stalls.len() as u64);
        let place = Place { start_ns: second * SECOND_NS, length_ns: SECOND_NS };
        own.sort_unstable();
        let alone = own.iter().map(|ns| (bucket_of(*ns), 1));
        let counts: Vec<(usize, u64)> = std::iter::once((bucket_of(USUAL_NS), kept)).chain(alone).collect();
        assert!(measured.add("1", place, &counts));
        let mut behind: Vec<u64> =
            stalls.iter().flat_map(|length| (0..length - 1).map(|n| n * INTERVAL_NS + LAST_NS)).collect();
        behind.sort_unstable();
        let counts: Vec<(usize, u64)> = behind.iter().map(|ns| (bucket_of(*ns), 1)).collect();
        assert!(missed.add("1", place, &counts));
        cycles += kept + stalls.len() as u64;
        overruns += swallowed;
        max_ns = own.last().map_or(max_ns, |last| max_ns.max(*last));
    }
    row(
        measured.finish(),
        missed.finish(),
        late.len() as u64,
        &Summary {
            cycles,
            overruns: Some(overruns),
            min_ns: Some(USUAL_NS),
            max_ns: Some(max_ns),
            ..Summary::default()
        },
    )
}

fn row(histograms: Histograms, missed: Histograms, seconds: u64, summary: &Summary) -> Row {
    let mut row = Row { histograms, missed, ..whole_minute() };
    row.result.interval_ns = INTERVAL_NS;
    row.result.planned_ns = seconds * SECOND_NS;
    row.result.measured_ns = seconds * SECOND_NS;
    let own = latency(&mut row);
    own.series.truncate(1);
    own.series[0].summary = summary.clone();
    own.all = Some(summary.clone());
    let key = own.series[0].key.clone();
    row.result.threads = Some(vec![key.of_thread()]);
    row.result.control.retain(|control| control.series == key);
    row
}

/// How many of 100 such runs pass a limit on this quantile if `times` times the allowed share is late.
fn passes(noise: Noise, quantile: &str, seconds: u64, times: f64, trials: u32) -> f64 {
    let limit = Some(Nanos(LIMIT_NS));
    let require = match quantile {
        "p99" => Require { p99: limit, ..Require::default() },
        "p99.9" => Require { p999: limit, ..Require::default() },
        "p99.99" => Require { p9999: limit, ..Require::default() },
        _ => Require { p99999: limit, ..Require::default() },
    };
    let (_, part, _) = require.quantiles()[0];
    let mut random = Random::new(0x5EED);
    let passed = (0..trials).filter(|_| {
        let mut row = run(noise, times * (1.0 - part), seconds, &mut random);
        row.result.require = Some(require.clone());
        let verdict = verdict(&row).expect("it is required something");
        verdict.outcome == Outcome::Pass
    });
    let part = 100.0 * float(passed.count() as u64) / f64::from(trials);
    println!("{noise:?}, {quantile} of {seconds} s, {times} times what is allowed: {part:.1} % pass");
    part
}

/// Where more is late than allowed, a pass is rare; where clearly less is, it is usual in a run that is long enough.
fn simulate(trials: u32, most: f64) {
    // Stalls that keep 50 periods each: what was seen when the quantile of the run itself was judged stands beside it.
    for (quantile, seconds, times) in [
        ("p99.9", 60, 1.0),
        ("p99.99", 60, 3.0),
        ("p99.99", 600, 1.0),
        ("p99.999", 201, 5.0),
        ("p99.999", 3_600, 1.0),
    ] {
        assert!(passes(Noise::Stalls(50), quantile, seconds, times, trials) <= most);
    }
    for noise in [Noise::Stalls(1), Noise::Stalls(10), Noise::Both(50), Noise::Waves] {
        assert!(passes(noise, "p99.9", 240, 1.0, trials) <= most, "{noise:?}");
    }
    assert!(passes(Noise::Stalls(1), "p99", 60, 1.0, trials) <= most);
    for (noise, quantile, seconds, times) in [
        (Noise::Stalls(50), "p99.9", 240, 0.25),
        (Noise::Stalls(1), "p99.9", 60, 0.4),
        (Noise::Stalls(1), "p99", 60, 0.75),
        (Noise::Waves, "p99.9", 240, 0.5),
    ] {
        assert!(passes(noise, quantile, seconds, times, trials) >= 80.0, "{noise:?} {quantile}");
    }
    // Longer than is supposed of stalls that did not come: the verdict names that.
    passes(Noise::Stalls(250), "p99.9", 60, 1.0, trials);
}

#[test]
fn a_quantile_at_its_limit_hardly_ever_passes() {
    simulate(60, 10.0);
}

#[test]
#[ignore = "minutes; `make simulate` runs it"]
fn simulation_of_quantiles_at_their_limits() {
    simulate(2_000, 6.0);
}
