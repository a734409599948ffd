//! The bound on all series together: the worst of them decides.

use tactus_model::number::{float, whole};

use super::gev;
use super::gpd::Range;
use super::refusal::Refusal;
use super::series::{ERROR, Maxima, PROMISED_BLOCKS, Tail, drop_for, level_drop};

/// The longest time that is spoken of unasked, in ns.
pub const DAY_NS: u64 = 86_400_000_000_000;
/// From this number of exceedances on, the horizon may be a hundred times the measured time; below it, ten
/// times.
const MANY: usize = 100;
/// From this upper end of the shape on it is ten times, whatever their number.
const HEAVY: f64 = 0.5;
/// From this upper end of the shape on, there is no bound.
const TOO_HEAVY: f64 = 1.0;
/// Length of the blocks of the other method, in blocks.
const LONGER: usize = 10;
/// Steps of a return-level plot, from its first time to the horizon.
const STEPS: u32 = 24;
/// Largest ratio between the estimates of the two methods.
const APART: f64 = 1.5;

/// The bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The series that decides, by its number.
    pub series: usize,
    /// The number of series.
    pub among: usize,
    /// The tail of that series.
    pub tail: Tail,
    /// The time that it is for, in ns.
    pub horizon_ns: u64,
    /// The level that is exceeded once in that time, in ns.
    pub estimate_ns: f64,
    /// Its interval, all series together, with 2.5 % outside on either side.
    pub level: Range,
    /// The largest value of that series, in ns.
    pub observed_ns: f64,
    /// How much longer it must be measured until each series has the blocks of a promise, in ns; 0: it is one.
    pub lacking_ns: u64,
}

/// A level that is exceeded once in a time, and where it lies but for 2.5 % on either side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The time, in ns.
    pub time_ns: f64,
    /// The estimate, in ns.
    pub estimate_ns: f64,
    /// The lower end of its interval, in ns.
    pub low_ns: f64,
    /// The upper end of it, in ns.
    pub high_ns: f64,
}

impl Bound {
    /// The levels that are exceeded once in a time, for times up to the horizon: the points of a return-level
    /// plot with its band. The shortest time is that in which the threshold is exceeded twice.
    #[must_use]
    pub fn levels(&self) -> Vec<Level> {
        let tail = &self.tail;
        let many = float(tail.k() as u64);
        let drop = level_drop(ERROR / float(self.among.max(1) as u64), tail.k());
        let first = 2.0 * float(tail.measured_ns()) / many;
        let last = float(self.horizon_ns).max(first * 2.0);
        let at = |time_ns: f64| {
            let expected = many * time_ns / float(tail.measured_ns().max(1));
            let excess = tail.excesses.level_range(tail.fit, expected, drop);
            Level {
                time_ns,
                estimate_ns: tail.threshold + tail.fit.gpd.one_in(expected),
                low_ns: tail.threshold + excess.low,
                high_ns: tail.threshold + excess.high,
            }
        };
        (0..=STEPS).map(|n| at(first * (last / first).powf(f64::from(n) / f64::from(STEPS)))).collect()
    }

    /// Whether it is a promise; else it is provisional, and nothing passes on it.
    #[must_use]
    pub const fn is_promise(&self) -> bool {
        self.lacking_ns == 0
    }
}

/// The level that all series together exceed less than once in a time, or why it is unknown, and for which
/// series.
///
/// Without a given time the horizon is a day, or the longest time that the measurement allows. The worst
/// series decides, and the error of each is divided by their number (C. E. Bonferroni).
///
/// # Errors
/// The reason, with the number of the series that it is about.
pub fn bound(series: &[Maxima], horizon_ns: Option<u64>) -> Result<Bound, (usize, Refusal)> {
    let among = series.len();
    let mut tails = Vec::new();
    for (n, one) in series.iter().enumerate() {
        let tail = Tail::of(one, among).map_err(|why| (n, why))?;
        let most_ns = carries(&tail).map_err(|why| (n, why))?;
        if let Some(horizon_ns) = horizon_ns.filter(|horizon| *horizon > most_ns) {
            let longer_ns = longer_for(&tail, horizon_ns);
            let of = tail.blocks();
            return Err((n, Refusal::TooFar { horizon_ns, most_ns, longer_ns, of }));
        }
        tails.push((n, tail, most_ns));
    }
    let measured = tails.iter().map(|(_, tail, _)| tail.measured_ns()).max().unwrap_or(0);
    let lacking = tails.iter().map(|(_, tail, _)| tail.blocks().lacking_ns(PROMISED_BLOCKS));
    let lacking_ns = lacking.max().unwrap_or(0);
    let carried = tails.iter().map(|(_, _, most)| *most).min().unwrap_or(0);
    // Less than once in a longer time is less than once in a shorter one.
    let horizon_ns = horizon_ns.unwrap_or_else(|| carried.min(DAY_NS)).max(measured);
    let error = ERROR / float(among.max(1) as u64);
    let mut worst: Option<Bound> = None;
    let mut least = 0.0_f64;
    for (series, tail, _) in tails {
        let (estimate_ns, level) = (tail.level(horizon_ns), tail.level_range(horizon_ns, error));
        agreement(&tail, horizon_ns, estimate_ns, level, error).map_err(|why| (series, why))?;
        if !level.high.is_finite() {
            return Err((series, Refusal::TooHeavy { xi: tail.xi.high }));
        }
        least = least.max(level.low);
        let observed_ns = tail.maxima.iter().copied().fold(0.0, f64::max);
        if worst.as_ref().is_none_or(|worst| level.high > worst.level.high) {
            worst =
                Some(Bound { series, among, tail, horizon_ns, estimate_ns, level, observed_ns, lacking_ns });
        }
    }
    let none = Refusal::TooShort { blocks: 0, least: super::series::LEAST_BLOCKS, block_ns: 0 };
    let worst = worst.ok_or((0, none))?;
    Ok(Bound { level: Range { low: least, ..worst.level }, ..worst })
}

/// The longest horizon that a tail allows, in ns.
fn carries(tail: &Tail) -> Result<u64, Refusal> {
    if tail.xi.high >= TOO_HEAVY {
        return Err(Refusal::TooHeavy { xi: tail.xi.high });
    }
    Ok(tail.measured_ns().saturating_mul(times(tail)))
}

fn times(tail: &Tail) -> u64 {
    if tail.k() < MANY || tail.xi.high >= HEAVY { 10 } else { 100 }
}

/// How much longer it must be measured so that this time is carried, in ns, if the shape stays where it is.
fn longer_for(tail: &Tail, horizon_ns: u64) -> u64 {
    let measured = tail.measured_ns();
    let part = horizon_ns.div_ceil(if tail.xi.high >= HEAVY { 10 } else { 100 });
    let many = whole(float(measured) * float(MANY as u64) / float(tail.k().max(1) as u64));
    let needed = if tail.xi.high >= HEAVY { part } else { part.max(many).min(horizon_ns.div_ceil(10)) };
    needed.saturating_sub(measured)
}

/// Checks that the maxima of blocks of ten times the length agree.
fn agreement(tail: &Tail, horizon_ns: u64, estimate: f64, level: Range, error: f64) -> Result<(), Refusal> {
    let maxima: Vec<f64> =
        tail.maxima.chunks_exact(LONGER).map(|some| some.iter().copied().fold(0.0, f64::max)).collect();
    let Some(fit) = gev::fit(&maxima) else { return Ok(()) };
    let n = float(horizon_ns) / (float(tail.block_ns) * float(LONGER as u64));
    let other = fit.gev.once_in(n);
    if other <= estimate * APART && estimate <= other * APART {
        return Ok(());
    }
    let within = |range: Range, value: f64| range.low <= value && value <= range.high;
    let range = gev::level_range(&maxima, fit, n, drop_for(error));
    if within(level, other) || within(range, estimate) {
        return Ok(());
    }
    Err(Refusal::Disagreement { by_exceedances_ns: estimate, by_blocks_ns: other })
}
