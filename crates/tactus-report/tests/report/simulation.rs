//! How often a false effect is reported: the same thing is compared with itself, with the noise of real
//! machines. `make simulate` runs the whole of it, `make test` a small part.
#![expect(clippy::print_stdout, reason = "a simulation says what it found")]

use std::collections::BTreeMap;
use std::thread;

use tactus_model::Evidence;
use tactus_model::buckets::{Counts, bucket_of};
use tactus_model::bundle::{Contents, Row, RowResult, Slice, Sliced};
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
/// Time between two wake-ups: no stall here misses one.
const INTERVAL_NS: u64 = 5_000_000;
const SECOND_NS: u64 = 1_000_000_000;

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
    /// One second in five has a stall, as long as a Pareto law of index 1.1 above 20 us says.
    Pareto,
    /// The level rises and falls by 20 % in ten minutes.
    Wave,
    /// A sibling thread is busy and idle in turn, for 3 s each on average: a third slower.
    Sibling,
    /// The level rises by 0.1 % a second.
    Leak,
    /// One second in five is half as slow again.
    Beat,
    /// From some moment on everything is a fifth slower.
    Regime,
    /// A job every 10 s: that second is twice as slow, and has a stall of 500 us.
    Cron,
    /// The level rises by 30 % in 45 s, and falls at once: heat, and a governor.
    Saw,
    /// A neighbour comes for a second every four on average: twice as slow.
    Neighbour,
    /// The level walks at random, by 1 % a second.
    Walk,
}

/// Those of the minute in slices: ten that others chose, and four more.
const IN_TURN: [(&str, Noise); 14] = [
    ("independent", Noise::Independent),
    ("AR(1) 0.9", Noise::Autoregression(0.9)),
    ("Markov 60/20 s", Noise::Markov),
    ("run shift 2 %", Noise::Runs),
    ("Pareto stalls", Noise::Pareto),
    ("wave of 10 min", Noise::Wave),
    ("SMT 3 s", Noise::Sibling),
    ("leak 0.1 %/s", Noise::Leak),
    ("beat of 5 s", Noise::Beat),
    ("regime change", Noise::Regime),
    ("job every 10 s", Noise::Cron),
    ("saw of 45 s", Noise::Saw),
    ("neighbour 3/1 s", Noise::Neighbour),
    ("random walk", Noise::Walk),
];

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
    /// Seconds since it began, and a moment of it that is drawn.
    clock: f64,
    moment: f64,
}

impl Machine {
    pub fn new(noise: Noise, seed: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9));
        let level = random.normal();
        let noisy = random.unit() < 0.25;
        let moment = random.unit();
        Self { noise, random, level, noisy, clock: 0.0, moment }
    }

    /// Whether it is noisy in this second, with these mean lengths of quiet and of noise.
    fn is_noisy(&mut self, quiet: f64, noisy: f64) -> bool {
        let leaves = 1.0 / if self.noisy { noisy } else { quiet };
        self.noisy ^= self.random.unit() < leaves;
        self.noisy
    }

    /// Whether this second is one of those of a job with this period.
    fn is_due(&self, every: f64) -> bool {
        (self.clock + (self.moment * every).floor()) % every < 1.0
    }

    /// The stalls of this second, in ns; called after [`Self::second`].
    fn stall(&mut self) -> Option<f64> {
        match self.noise {
            Noise::Pareto if self.random.unit() < 0.2 => {
                Some(20_000.0 * self.random.unit().max(1e-6).powf(-1.0 / 1.1))
            }
            Noise::Cron if self.is_due(10.0) => Some(500_000.0),
            _ => None,
        }
    }

    /// The logarithm of this second's level; `run` is the level of the run, used where runs differ.
    pub fn second(&mut self, run: f64) -> f64 {
        self.clock += 1.0;
        match self.noise {
            Noise::Autoregression(coefficient) => {
                let rest = (1.0 - coefficient * coefficient).sqrt();
                self.level = coefficient * self.level + rest * self.random.normal();
                0.1 * self.level
            }
            Noise::Markov => f64::from(self.is_noisy(60.0, 20.0)) * 2.0_f64.ln(),
            Noise::Sibling => f64::from(self.is_noisy(3.0, 3.0)) * 1.33_f64.ln(),
            Noise::Neighbour => f64::from(self.is_noisy(3.0, 1.0)) * 2.0_f64.ln(),
            Noise::Runs => run,
            Noise::Independent | Noise::Pareto => 0.0,
            Noise::Wave => {
                let turn = std::f64::consts::TAU * (self.clock / 600.0 + self.moment);
                0.2 * turn.sin()
            }
            Noise::Leak => 0.001 * self.clock,
            Noise::Beat => f64::from(self.is_due(5.0)) * 1.5_f64.ln(),
            Noise::Cron => f64::from(self.is_due(10.0)) * 2.0_f64.ln(),
            Noise::Regime => f64::from(self.clock > 60.0 * self.moment) * 1.2_f64.ln(),
            Noise::Saw => 0.3 * ((self.clock / 45.0 + self.moment) % 1.0),
            Noise::Walk => {
                self.level += 0.01 * self.random.normal();
                self.level
            }
        }
    }

    /// A second of a slice.
    fn slice(&mut self, change: Change) -> Latency {
        let shift = 0.02 * self.random.normal();
        let level =
            BASE.ln() + self.second(shift) + if matches!(change, Change::Shift) { 1.2_f64.ln() } else { 0.0 };
        let mut all = Latency::new();
        for _ in 0..WAKE_UPS {
            all.record(whole((level + WITHIN * self.random.normal()).exp()), INTERVAL_NS);
        }
        let stalls = if matches!(change, Change::Stalls) { vec![300_000.0; 2] } else { Vec::new() };
        for stall in stalls.into_iter().chain(self.stall()) {
            all.record(whole(stall), INTERVAL_NS);
        }
        all
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

/// The change that the second scenario makes.
#[derive(Clone, Copy)]
enum Change {
    Nothing,
    /// Everything takes a fifth longer.
    Shift,
    /// Two stalls of 300 us a second.
    Stalls,
}

/// A report of one claim, measured in turn: `slices` slices of a second of each of two scenarios, in random order in each
/// round, as `tactus run` makes them.
fn in_turn(noise: Noise, slices: u32, change: Change, seed: u64) -> Contents {
    let mut machine = Machine::new(noise, seed);
    let mut contents = common::empty();
    let mut rows = ["a", "b"].map(|name| (machine.run(name, 1, None), Latency::new()));
    for number in 1..=slices {
        let first = usize::from(machine.random.unit() < 0.5);
        for at in [first, 1 - first] {
            let change = if at == 1 { change } else { Change::Nothing };
            let (row, all) = &mut rows[at];
            let own = machine.slice(change);
            all.merge(&own);
            row.slices.push(sliced(&row.result, &own, [number, slices]));
        }
    }
    contents.rows = rows.map(|(row, all)| whole_of(row, &all)).into();
    contents.plan.compare = vec![compare("a", "b")];
    contents
}

fn latencies_of(all: &Latency) -> Outcome {
    Outcome::Latency(LatencyOutcome { series: Vec::new(), all: Some(all.summary()) })
}

fn sliced(of: &RowResult, own: &Latency, [number, slices]: [u32; 2]) -> Sliced {
    let whole_ns = u64::from(slices) * SECOND_NS;
    let slice = Slice { number, of: slices, whole_ns, tick_ns: SECOND_NS };
    let mut result = RowResult { slice: Some(slice), outcome: latencies_of(own), ..of.clone() };
    result.end(Ending::complete());
    let at = u64::from(number) * 2;
    Sliced { first_tick: at, at_ns: at * SECOND_NS, result }
}

fn whole_of(mut row: Row, all: &Latency) -> Row {
    row.result.outcome = latencies_of(all);
    row
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

fn noise_of(name: &str) -> Noise {
    IN_TURN.into_iter().find_map(|(own, noise)| (own == name).then_some(noise)).unwrap()
}

/// A noise, and the rates where nothing changes, where everything is slower, and where there are stalls.
type Turns = (&'static str, [f64; 2], [f64; 2], [f64; 2]);

/// What scenarios that take turns show under each noise: false alarms, two changes found, and how many of 100 reports cannot
/// say anything.
fn turns(trials: u64, slices: u32) -> Vec<Turns> {
    let cell = |noise, change| rates(trials, |seed| in_turn(noise, slices, change, seed));
    let of = |(name, noise): (&'static str, Noise)| {
        let [none, shift, stalls] =
            [Change::Nothing, Change::Shift, Change::Stalls].map(|change| cell(noise, change));
        (name, none, shift, stalls)
    };
    IN_TURN.into_iter().map(of).collect()
}

#[test]
fn scenarios_that_take_turns_have_no_effect_against_themselves_and_a_real_one_is_seen() {
    for (name, none, shift, stalls) in turns(16, 30) {
        assert!(none[0] <= at_most(16), "{name}: {none:?}");
        assert!(none[1] <= 0.0, "{name}: some reports could not say: {none:?}");
        assert!(stalls[0] >= 80.0, "{name}: {shift:?}, {stalls:?}");
    }
}

#[test]
#[ignore = "long: make simulate"]
fn simulation_of_slices() {
    let trials = std::env::var("TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(1_000);
    for slices in [10, 30] {
        println!(
            "{slices} slices of 1 s of each of two scenarios, in % of {trials}: an effect (nothing can be said)"
        );
        println!("{:<16} {:>14} {:>14} {:>14}", "noise", "the same", "p50 +20 %", "300 us stalls");
        for (name, none, shift, stalls) in turns(trials, slices) {
            let [none_said, shift_said, stalls_said] =
                [none, shift, stalls].map(|[found, unknown]| format!("{found:.1} ({unknown:.1})"));
            println!("{name:<16} {none_said:>14} {shift_said:>14} {stalls_said:>14}");
            assert!(none[0] <= at_most(trials), "{name}: {none:?}");
            if slices == 30 {
                let [differs, unknown] = rates(trials, |seed| single(noise_of(name), 60, seed));
                println!("{:<16} two runs of 60 s, one after the other: {differs:.1} ({unknown:.1})", "");
            }
            assert!(none[1].max(shift[1]).max(stalls[1]) <= 10.0, "{name}: too many reports cannot say");
        }
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
