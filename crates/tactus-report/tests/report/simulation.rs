//! How often a false effect is reported: the same thing is compared with itself, with the noise of real
//! machines. `make simulate` runs the whole of it, `make test` a small part.
#![expect(clippy::print_stdout, reason = "a simulation says what it found")]

use std::collections::BTreeMap;
use std::thread;

use tactus_model::Evidence;
use tactus_model::buckets::{Counts, bucket_of};
use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::histograms::Histograms;
use tactus_model::latency::{Latency, Totals};
use tactus_model::number::whole;
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome};
use tactus_model::plan::Compare;
use tactus_report::stats::{Claim, Design, claims};
use tactus_statistics::Random;

use crate::common;

/// Wake-ups in an interval of a second. Few suffice, because only the differences between intervals matter.
const WAKE_UPS: u32 = 200;
/// Typical latency, in ns, and its spread within an interval.
const BASE: f64 = 5_000.0;
const WITHIN: f64 = 0.2;

/// The cause of differences between seconds.
#[derive(Clone, Copy)]
pub enum Noise {
    /// Nothing but the wake-ups themselves.
    Independent,
    /// A first-order autoregression of the level with this coefficient, standard deviation 10 %.
    Autoregression(f64),
    /// Quiet for 60 s on average, then twice as slow for 20 s: a neighbour in a cloud.
    Markov,
    /// Each run has a separate level, standard deviation 2 %.
    Runs,
}

const NOISES: [(&str, Noise); 5] = [
    ("independent", Noise::Independent),
    ("AR(1) 0.7", Noise::Autoregression(0.7)),
    ("AR(1) 0.9", Noise::Autoregression(0.9)),
    ("Markov 60/20 s", Noise::Markov),
    ("run shift 2 %", Noise::Runs),
];

/// A machine whose noise continues from one run to the next.
pub struct Machine {
    noise: Noise,
    pub random: Random,
    level: f64,
    noisy: bool,
}

impl Machine {
    pub fn new(noise: Noise, seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9));
        let level = random.normal();
        let noisy = random.unit() < 0.25;
        Self { noise, random, level, noisy }
    }

    /// The logarithm of this second's level; `run` is the level of the run, used where runs differ.
    pub fn second(&mut self, run: f64) -> f64 {
        match self.noise {
            Noise::Independent => 0.0,
            Noise::Autoregression(coefficient) => {
                let rest = (1.0 - coefficient * coefficient).sqrt();
                self.level = coefficient * self.level + rest * self.random.normal();
                0.1 * self.level
            }
            Noise::Markov => {
                let leaves = if self.noisy { 1.0 / 20.0 } else { 1.0 / 60.0 };
                self.noisy ^= self.random.unit() < leaves;
                if self.noisy { 2.0_f64.ln() } else { 0.0 }
            }
            Noise::Runs => run,
        }
    }

    /// A run of `seconds` seconds.
    fn run(&mut self, name: &str, seconds: u64, repeat: Option<u32>) -> Row {
        let shift = 0.02 * self.random.normal();
        let (mut total, mut intervals) = (Counts::default(), BTreeMap::new());
        for second in 0..seconds {
            let level = BASE.ln() + self.second(shift);
            let mut counts = Counts::default();
            for _ in 0..WAKE_UPS {
                let value = whole((level + WITHIN * self.random.normal()).exp());
                counts.add(bucket_of(value), 1);
            }
            let counts = counts.pack();
            total.add_packed(&counts);
            intervals.insert(second, counts);
        }
        let mut all = Latency::new();
        for (value, count) in total.pack().buckets() {
            all.raw.saturating_record_n(value, count);
            let (min_ns, max_ns, sum_ns) = (value, value, value * count);
            all.totals.add(&Totals { cycles: count, overruns: 0, min_ns, max_ns, sum_ns });
        }
        let length_ns = 1_000_000_000;
        let mut result = RowResult {
            evidence: Some(Evidence::BareMetal),
            outcome: Outcome::Latency(LatencyOutcome { series: Vec::new(), all: Some(all.summary()) }),
            planned_ns: seconds * length_ns,
            measured_ns: seconds * length_ns,
            repeat,
            ..RowResult::unmeasured(name, "host", "host")
        };
        result.end(Ending::complete());
        let end_ns = seconds * length_ns;
        Row {
            histograms: Histograms { length_ns, end_ns, intervals, ..Histograms::default() },
            ..Row::of(result)
        }
    }
}

fn compare(base: &str, with: &str) -> Compare {
    Compare { name: with.into(), base: base.into(), with: with.into(), claim: None }
}

/// A report of one claim from one run each.
fn single(noise: Noise, seconds: u64, seed: u64) -> Contents {
    let mut machine = Machine::new(noise, seed);
    let mut contents = common::empty();
    contents.rows = vec![machine.run("a", seconds, None), machine.run("b", seconds, None)];
    contents.plan.compare = vec![compare("a", "b")];
    contents
}

/// A report of several claims against one scenario, each repeated `repeats` times in randomised order.
fn repeated(noise: Noise, seconds: u64, (claims, repeats): (usize, u32), seed: u64) -> Contents {
    let mut machine = Machine::new(noise, seed);
    let mut contents = common::empty();
    let names: Vec<String> = (0..=claims).map(|n| format!("scenario {n}")).collect();
    for round in 1..=repeats {
        let mut order: Vec<(f64, &String)> = names.iter().map(|name| (machine.random.unit(), name)).collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        contents.rows.extend(order.into_iter().map(|(_, name)| machine.run(name, seconds, Some(round))));
    }
    contents.plan.compare = names[1..].iter().map(|name| compare(&names[0], name)).collect();
    contents
}

/// The result of a report on its claims.
fn says(contents: &Contents) -> Said {
    let claims = claims(contents);
    let effects = || claims.iter().filter_map(|claim: &Claim| claim.effect().ok());
    let found = effects().any(|effect| effect.found() == Some(true));
    let two_runs = effects().all(|effect| matches!(effect.design, Design::TwoRuns { .. }));
    if found && two_runs {
        for effect in effects() {
            let between = |text: &String| !text.contains("higher") || text.contains("between these two runs");
            assert!(effect.answer().starts_with("these two runs differ"), "{}", effect.answer());
            assert!(effect.sentences().iter().all(between), "{:?}", effect.sentences());
        }
    }
    match (found, effects().all(|effect| effect.found().is_none())) {
        (true, _) => Said::Differs,
        (_, true) => Said::Unknown,
        _ => Said::Nothing,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Said {
    Differs,
    Unknown,
    Nothing,
}

/// The results of `trials` trials, on all cores; each gets its seed, from 1.
pub fn all_of<T: Send>(trials: u64, trial: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, |n| u64::try_from(n.get()).unwrap_or(1));
    let part =
        |core: u64| -> Vec<T> { (0..trials).filter(|n| n % cores == core).map(|n| trial(n + 1)).collect() };
    let part = &part;
    thread::scope(|scope| {
        let parts: Vec<_> = (0..cores).map(|core| scope.spawn(move || part(core))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

/// How many of 100 reports announce something, and how many cannot say.
fn rates(trials: u64, report: impl Fn(u64) -> Contents + Sync) -> [f64; 2] {
    let said = all_of(trials, |seed| says(&report(seed)));
    [Said::Differs, Said::Unknown].map(|what| {
        let n = said.iter().filter(|said| **said == what).count();
        f64::from(u32::try_from(n).unwrap()) * 100.0 / f64::from(u32::try_from(said.len()).unwrap())
    })
}

/// The largest rate that a true one of 5 % comes to by chance, but for one table in a thousand.
pub fn at_most(trials: u64) -> f64 {
    5.0 + 3.7 * (5.0 * 95.0 / f64::from(u32::try_from(trials).unwrap())).sqrt()
}

/// Prints the table; asserts on what is announced as an effect.
fn table(trials: u64, lengths: &[u64]) {
    println!(
        "false alarms in reports of a thing against itself, in % ({trials} each; in brackets: \"cannot say\")"
    );
    for (name, noise) in NOISES {
        let mut line = format!("{name:<16}");
        for seconds in lengths {
            let [two, unknown] = rates(trials, |seed| single(noise, *seconds, seed));
            let [effect, _] = rates(trials, |seed| repeated(noise, *seconds, (1, 8), seed));
            line += &format!("  n={seconds}: two runs {two:.1} ({unknown:.0}), 8 repeats {effect:.1};");
            assert!(effect <= at_most(trials), "{name}, {seconds} intervals: {effect} %");
        }
        println!("{line}");
    }
}

#[test]
fn a_repeated_thing_has_no_effect_against_itself_under_the_noises_of_real_machines() {
    table(40, &[8]);
}

#[test]
#[ignore = "long: make simulate"]
fn simulation_of_effects() {
    let trials = std::env::var("TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(1_000);
    table(trials, &[8, 10, 30, 60, 240]);
    // Eight pairs and three quantities: exactly 12 of 256 at most, whatever the noise. This many reports tell
    // that from 5 %.
    let long = 20 * trials;
    let [one, _] = rates(long, |seed| repeated(Noise::Independent, 10, (1, 8), seed));
    let error = (one * (100.0 - one) / f64::from(u32::try_from(long).unwrap())).sqrt();
    println!("independent, n=10, 8 repeats, {long} reports: {one:.2} (standard error {error:.2})");
    assert!(one <= 5.0, "{one} % (standard error {error})");
    let many = rates(trials, |seed| repeated(Noise::Markov, 10, (20, 13), seed));
    println!("20 claims, 13 repeats, Markov 60/20 s: {:.1}", many[0]);
    assert!(many[0] <= at_most(trials));
}
