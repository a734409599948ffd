//! How often noise is called a leak, and how often a leak is seen: simulated, with fixed seeds.
//! `make simulate` prints the whole tables; each test run checks a part of them.
#![expect(clippy::print_stdout, reason = "a simulation says what it found")]

use std::fmt::Write as _;
use std::thread;

use tactus_model::document::Leak as Word;
use tactus_model::lot::Lots;
use tactus_model::number::{float, whole};
use tactus_report::section::separation::{Size, judge_fault, judge_load};
use tactus_statistics::Stratum;

const US: f64 = 1_000.0;
const MS: f64 = 1_000_000.0;
/// Cells of a bundle with five environments and two disturbances.
const CELLS: usize = 80;
const ERROR: f64 = 0.05 / 80.0;
/// A fault of 4 ms, seen by a thread that wakes every millisecond.
const SIZE: Size = Size { length_ns: 4_000_000, interval_ns: 1_000_000 };
const WINDOWS: usize = 10;

/// Numbers that are the same on every machine.
struct Random {
    lots: Lots,
    drawn: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        Self { lots: Lots { every_ns: 1, part_ns: 1, places: 1 << 53, seed: seed * 7_919 + 1 }, drawn: 0 }
    }

    /// Between 0 and 1, and neither.
    fn unit(&mut self) -> f64 {
        self.drawn += 1;
        (float(self.lots.place(self.drawn)) + 0.5) / float(1 << 53)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// How the noise of a place changes over time.
#[derive(Clone, Copy, Debug)]
enum Noise {
    Independent,
    /// Quiet and ten times noisier in turn, each for this many seconds on average.
    Markov(f64, f64),
    /// Five times more at the end than at the beginning.
    Drift,
    /// A size that changes slowly, and single stalls.
    Bursts,
    /// A job once a second, always at the same moment of it.
    Beat,
}

const NOISES: [Noise; 6] = [
    Noise::Independent,
    Noise::Markov(30.0, 10.0),
    Noise::Markov(60.0, 20.0),
    Noise::Drift,
    Noise::Bursts,
    Noise::Beat,
];

/// Largest latencies of windows of 100 ms, in ns, around 60 us.
fn windows(noise: Noise, seconds: usize, random: &mut Random) -> Vec<f64> {
    let (mut noisy, mut level) = (random.unit() < 0.25, random.normal());
    let beat = whole(random.unit() * 10.0);
    let all = seconds * WINDOWS;
    let mut maxima = Vec::with_capacity(all);
    for n in 0..all {
        // Heavy in the tail, as maxima of latencies are.
        let plain = 45.0 * US * random.unit().powf(-1.0 / 3.0);
        let factor = match noise {
            Noise::Independent => 1.0,
            Noise::Markov(quiet, loud) => {
                let stays = if noisy { loud } else { quiet };
                noisy ^= random.unit() < 0.1 / stays;
                if noisy { 10.0 } else { 1.0 }
            }
            Noise::Drift => 1.0 + 4.0 * float(n as u64) / float(all as u64),
            Noise::Bursts => {
                level = 0.9 * level + (1.0_f64 - 0.81).sqrt() * random.normal();
                level.exp() * if random.unit() < 0.02 { 30.0 } else { 1.0 }
            }
            Noise::Beat => {
                if (n % WINDOWS) as u64 == beat {
                    20.0
                } else {
                    1.0
                }
            }
        };
        maxima.push(plain * factor);
    }
    maxima
}

/// A leak: how large, in ns, and in which part of the injections.
#[derive(Clone, Copy)]
struct Leak {
    ns: f64,
    share: f64,
}

/// One injection a second; `reach` is the uncertainty of clocks, in windows.
fn injections(
    noise: Noise,
    seconds: usize,
    leak: Option<Leak>,
    reach: usize,
    random: &mut Random,
) -> Vec<Stratum> {
    let seed = whole(random.unit() * 1e15);
    let lots = Lots::of_fault(SIZE.length_ns, 1_000_000_000, seed);
    let mut maxima = windows(noise, seconds + 1, random);
    let place = |second: usize| usize::try_from(lots.place(second as u64)).unwrap();
    for second in 0..seconds {
        if let Some(leak) = leak.filter(|leak| random.unit() < leak.share) {
            let at = &mut maxima[second * WINDOWS + place(second)];
            *at = at.max(leak.ns);
        }
    }
    let stratum = |second: usize| {
        let value = |place: usize| {
            let from = second * WINDOWS + place;
            whole(maxima[from..=from + reach].iter().copied().fold(0.0, f64::max))
        };
        Stratum { values: (0..WINDOWS).map(value).collect(), drawn: place(second), reach }
    };
    (0..seconds).map(stratum).collect()
}

/// A load that is on for one second of every two, and does nothing.
fn loads(noise: Noise, seconds: usize, random: &mut Random) -> Vec<Stratum> {
    let lots = Lots::of_load(whole(random.unit() * 1e15));
    let maxima = windows(noise, seconds, random);
    let second =
        |n: usize| whole(maxima[n * WINDOWS + 1..(n + 1) * WINDOWS].iter().copied().fold(0.0, f64::max));
    let pair = |n: usize| Stratum {
        values: vec![second(2 * n), second(2 * n + 1)],
        drawn: usize::try_from(lots.place(n as u64)).unwrap(),
        reach: 0,
    };
    (0..seconds / 2).map(pair).collect()
}

fn leaks(strata: &[Stratum], load: bool) -> bool {
    let judged = if load { judge_load(strata, ERROR) } else { judge_fault(strata, SIZE, ERROR) };
    judged.leak.is_some_and(Word::reaches)
}

/// The number of `trials` trials in which it is so; all cores work on them.
fn count(trials: u64, is_so: impl Fn(u64) -> bool + Sync) -> usize {
    let cores = thread::available_parallelism().map_or(1, |n| u64::try_from(n.get()).unwrap_or(1));
    let part =
        |core: u64| (core..trials).step_by(usize::try_from(cores).unwrap()).filter(|n| is_so(*n)).count();
    thread::scope(|scope| {
        let parts: Vec<_> = (0..cores).map(|core| scope.spawn(move || part(core))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).sum()
    })
}

/// In how many bundles in which nothing leaks a leak is found: half of the cells are faults, half loads.
fn false_leaks(noise: Noise, seconds: usize, bundles: u64) -> usize {
    count(bundles, |bundle| {
        let mut random = Random::new(bundle + 1_000_000 * seconds as u64);
        (0..CELLS).any(|cell| {
            let load = cell % 2 == 1;
            let strata = if load {
                loads(noise, seconds, &mut random)
            } else {
                injections(noise, seconds, None, cell / 2 % 2, &mut random)
            };
            leaks(&strata, load)
        })
    })
}

/// In how many of 100 runs a leak gets this word.
fn said(
    noise: Noise,
    seconds: usize,
    leak: Leak,
    reach: usize,
    runs: u64,
    what: impl Fn(Word) -> bool + Sync,
) -> f64 {
    let said = count(runs, |run| {
        let mut random = Random::new(77_000 + run);
        let strata = injections(noise, seconds, Some(leak), reach, &mut random);
        judge_fault(&strata, SIZE, ERROR).leak.is_some_and(&what)
    });
    100.0 * float(said as u64) / float(runs)
}

#[test]
fn noise_is_called_a_leak_in_fewer_than_one_of_twenty_bundles() {
    for noise in NOISES {
        let wrong = false_leaks(noise, 30, 40);
        assert!(wrong <= 5, "{noise:?}: {wrong} of 40");
    }
}

#[test]
fn a_millisecond_in_half_of_the_injections_is_seen_in_half_a_minute_with_one_clock_and_with_two() {
    for noise in [Noise::Independent, Noise::Markov(30.0, 10.0), Noise::Bursts] {
        for reach in [0, 1] {
            let seen = said(noise, 30, Leak { ns: MS, share: 0.5 }, reach, 100, Word::reaches);
            assert!(seen >= 70.0, "{noise:?}, {reach}: {seen}");
        }
    }
}

#[test]
fn a_leak_in_three_of_ten_injections_is_not_lost_among_periods_of_which_some_part_is_the_largest() {
    for reach in [0, 1] {
        let seen = said(Noise::Independent, 30, Leak { ns: MS, share: 0.3 }, reach, 100, Word::reaches);
        assert!(seen >= 75.0, "{reach}: {seen}");
    }
}

#[test]
fn what_is_larger_by_less_than_a_tenth_is_no_leak_however_often_it_comes() {
    let mut random = Random::new(3);
    let mut strata = injections(Noise::Independent, 3_000, None, 0, &mut random);
    for stratum in &mut strata {
        let with = &mut stratum.values[stratum.drawn];
        *with = whole(float(*with) * 1.09);
    }
    assert!(!leaks(&strata, false));
    for stratum in &mut strata {
        let with = &mut stratum.values[stratum.drawn];
        *with = whole(float(*with) * 1.2);
    }
    assert!(leaks(&strata, false), "what is larger by three tenths is one");
}

#[test]
#[ignore = "takes minutes: make simulate"]
fn simulation_of_false_leaks() {
    const BUNDLES: u64 = 1000;
    for noise in NOISES {
        for seconds in [8, 30, 60] {
            let wrong = false_leaks(noise, seconds, BUNDLES);
            println!("{noise:?}, {seconds} s: {wrong} of {BUNDLES} bundles");
            // 5 % are 50; a false rate of 5 % gives 63 or fewer in 97 of 100 simulations.
            assert!(wrong <= 63, "{noise:?}, {seconds} s: {wrong} of {BUNDLES}");
        }
    }
}

/// Prints a table of the page: the word for each leak, with one clock and with two, in each noise.
fn table(all_seconds: &[usize], what: impl Fn(Word) -> bool + Sync + Copy) {
    let noises = [Noise::Independent, Noise::Markov(30.0, 10.0), Noise::Bursts];
    for (ms, share) in [(1.0, 1.0), (1.0, 0.5), (1.0, 0.3), (1.9, 0.3), (3.9, 0.1)] {
        let leak = Leak { ns: ms * MS, share };
        for (reach, name) in [(0, format!("{ms} ms in {share}")), (1, "two clocks".to_owned())] {
            let mut line = format!("| {name} |");
            for seconds in all_seconds {
                let said = noises.map(|noise| said(noise, *seconds, leak, reach, 400, what));
                let words = said.map(|said| format!("{said:.0}")).join(" / ");
                write!(line, " {words} |").unwrap();
                let asked = (ms, share, *seconds) == (1.0, 0.5, 30) && what(Word::Yes);
                assert!(!asked || said.iter().all(|seen| *seen >= 70.0), "{line}");
            }
            println!("{line}");
        }
    }
}

#[test]
#[ignore = "takes minutes: make simulate"]
fn simulation_of_power() {
    println!(
        "seen, in % of 400 runs, in independent noise / Markov 30/10 / bursts, after 8, 10, 30, 60, 300 s:"
    );
    table(&[8, 10, 30, 60, 300], Word::reaches);
    println!("\"no\" is said, after 30, 60, 300 s:");
    table(&[30, 60, 300], |word| word == Word::No);
}

/// A job runs in the last part of every period, so no window of the fault is the largest of its period.
#[test]
fn a_weak_leak_beside_a_job_with_the_same_period_is_told_without_a_contradiction() {
    let strata = (0..40).map(|period| {
        let drawn = period % 9;
        let mut values = vec![100_000; WINDOWS];
        (values[9], values[drawn]) = (2_000_000, 300_000);
        Stratum { values, drawn, reach: 0 }
    });
    let judged = judge_fault(&strata.collect::<Vec<_>>(), SIZE, ERROR);
    assert_eq!(judged.leak, Some(Word::Weaker), "{}", judged.reason);
    assert!(judged.reason.contains("typically 3.0 times"), "{}", judged.reason);
    assert!(!judged.reason.contains("0 of 40"), "{}", judged.reason);
}
