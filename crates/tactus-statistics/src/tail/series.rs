//! The tail of one series: the shortest blocks that are practically independent, the lowest threshold above
//! which they have one law, and that law.

use statrs::distribution::{ContinuousCDF, Normal};
use tactus_model::number::{float, whole};

use super::extremal_index::extremal_index;
use super::goodness_of_fit::{anderson_darling, forward_stop};
use super::gpd::{Excesses, Fit, Range};
use super::null::anderson_darling_p;
use super::refusal::{Blocks, Refusal};
use super::stationarity::{Tested, tests};

/// Blocks in ticks, shortest first.
pub const BLOCKS: [u64; 5] = [1, 2, 5, 10, 30];
/// The least number of blocks.
pub const LEAST_BLOCKS: u64 = 300;
/// The least number of blocks of a bound that is a promise; with fewer it is provisional. Suppose that one
/// block in a hundred has ten times the latency. Then 300 blocks have three such, which look like a heavy
/// tail, and 19 to 26 % of all bounds are too low. With 1800 blocks it is 3 to 9 % (docs/design/tail.md).
pub const PROMISED_BLOCKS: u64 = 1_800;
/// The least number of exceedances.
pub const LEAST_EXCEEDANCES: u64 = 50;
/// Parts of all blocks that lie above the thresholds which are tried, from the lowest threshold.
const PARTS: [f64; 4] = [0.2, 0.15, 0.1, 0.05];
/// The error of each of the tests.
const EACH: f64 = 0.0125;
/// Below this extremal index longer blocks are tried.
const ALONE: f64 = 0.8;
/// The part of rejected thresholds that may be good ones.
const WRONGLY_REJECTED: f64 = 0.1;
/// The same with one threshold only, without which there is no bound. Independent values of one law may be
/// refused in 7 % of cases at most, of which the four tests take 5.
const WRONGLY_REFUSED: f64 = 0.02;
/// The largest share of the exceedances that a single value may have.
const ONE_VALUE: f64 = 0.05;
/// By how much the likelihood of a level may fall further where there are few exceedances, over their number.
const FEW: f64 = 8.0;
/// The error on either side of an interval of a shape or a level.
pub const ERROR: f64 = 0.025;

/// A series to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Maxima {
    /// The largest value of each stretch of time, in order, in ns.
    pub values: Vec<u64>,
    /// Ticks in a stretch.
    pub ticks: u64,
    /// Length of a tick, in ns.
    pub tick_ns: u64,
    /// Where in `values` a new slice of the measurement begins: between two of them it was another scenario's turn, and
    /// no block is of both.
    pub starts: Vec<usize>,
}

/// A threshold that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Where it is, in ns.
    pub value: f64,
    /// How many are above it.
    pub k: usize,
    /// Shape above it.
    pub xi: f64,
    /// Where that lies.
    pub xi_range: Range,
    /// The chance of exceedances that look so little like the law, if it is theirs.
    pub p: f64,
}

/// The tail of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Length of a block, in ns.
    pub block_ns: u64,
    /// The maxima of the blocks, in ns.
    pub maxima: Vec<f64>,
    /// How the tests of those went.
    pub tests: [Tested; 4],
    /// The threshold, in ns.
    pub threshold: f64,
    /// The values above it, less the threshold.
    pub excesses: Excesses,
    /// The law of the excesses.
    pub fit: Fit,
    /// Where its shape lies.
    pub xi: Range,
    /// Extremal index of the exceedances.
    pub extremal: f64,
    /// All thresholds that were tried, from the lowest.
    pub tried: Vec<Threshold>,
}

/// The upper end of a standard normal distribution.
fn normal_end(error: f64) -> f64 {
    -Normal::standard().inverse_cdf(error)
}

/// How far twice the log likelihood may fall, for an interval with this error on either side.
#[must_use]
pub fn drop_for(error: f64) -> f64 {
    normal_end(error).powi(2)
}

/// The same of the level of `k` exceedances. With few of them the profile falls a little faster than it
/// should: an interval at 97.5 % of 50 held in 94 % (docs/design/tail.md). This corrects the term of the
/// order of 1/k (M. S. Bartlett, 1937), with a factor from the simulation.
#[must_use]
pub fn level_drop(error: f64, k: usize) -> f64 {
    drop_for(error) * (1.0 + FEW / float(k.max(1) as u64))
}

impl Tail {
    /// The tail of one of `among` series: the errors of its tests are divided by their number.
    ///
    /// # Errors
    /// Why nothing can be said.
    pub fn of(series: &Maxima, among: usize) -> Result<Self, Refusal> {
        let among = float(among.max(1) as u64);
        let mut last = Err(Refusal::TooShort { blocks: 0, least: LEAST_BLOCKS, block_ns: series.tick_ns });
        for (block_ns, maxima) in series.blocks() {
            let blocks = maxima.len() as u64;
            if blocks < LEAST_BLOCKS {
                let longer = Some(Blocks { many: blocks, length_ns: block_ns });
                return match last {
                    Err(Refusal::Unsteady { failed, block_ns, .. }) => {
                        Err(Refusal::Unsteady { failed, block_ns, longer })
                    }
                    Err(Refusal::Clustered { index, block_ns, .. }) => {
                        Err(Refusal::Clustered { index, block_ns, longer })
                    }
                    _ => Err(Refusal::TooShort { blocks, least: LEAST_BLOCKS, block_ns }),
                };
            }
            last = Self::of_blocks(block_ns, maxima, among);
            if !matches!(last, Err(Refusal::Unsteady { .. } | Refusal::Clustered { .. })) {
                return last;
            }
        }
        last
    }

    fn of_blocks(block_ns: u64, maxima: Vec<f64>, among: f64) -> Result<Self, Refusal> {
        let tests = tests(&maxima);
        let failed: Vec<Tested> = tests.into_iter().filter(|test| test.p < EACH / among).collect();
        if !failed.is_empty() {
            return Err(Refusal::Unsteady { failed, block_ns, longer: None });
        }
        let mut falling = maxima.clone();
        falling.sort_by(|one, other| other.total_cmp(one));
        let mut tried = Vec::new();
        for part in PARTS {
            tried.extend(above(&falling, part, among));
        }
        if tried.is_empty() {
            // There are enough blocks, but few values, no values or a single value above the lowest
            // threshold.
            let exceedances = exceedances(&falling, PARTS[0]);
            return Err(match exceedances {
                1..LEAST_EXCEEDANCES => Refusal::TooFew { exceedances, least: LEAST_EXCEEDANCES },
                _ => Refusal::Tied { part: 1.0 },
            });
        }
        too_coarse(&tried[0].0)?;
        let chances: Vec<f64> = tried.iter().map(|(_, _, threshold)| threshold.p).collect();
        let wrongly = if chances.len() > 1 { WRONGLY_REJECTED } else { WRONGLY_REFUSED };
        let rejected = forward_stop(&chances, wrongly / among);
        let Some((excesses, fit, found)) = tried.get(rejected).cloned() else {
            return Err(Refusal::NoThreshold { p: chances.into_iter().fold(0.0, f64::max) });
        };
        let places: Vec<usize> = (0..maxima.len()).filter(|at| maxima[*at] > found.value).collect();
        let extremal = extremal_index(&places);
        // Of independent ones the estimate has a standard error of one over the root of their number.
        let alone = 1.0 - normal_end(EACH / among) / float(places.len() as u64).sqrt();
        if extremal < ALONE.min(alone) {
            return Err(Refusal::Clustered { index: extremal, block_ns, longer: None });
        }
        let tried = tried.into_iter().map(|(_, _, threshold)| threshold).collect();
        let (threshold, xi) = (found.value, found.xi_range);
        Ok(Self { block_ns, maxima, tests, threshold, excesses, fit, xi, extremal, tried })
    }

    /// How long was measured, in ns.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        self.block_ns.saturating_mul(self.maxima.len() as u64)
    }

    /// The blocks that it is of.
    #[must_use]
    pub const fn blocks(&self) -> Blocks {
        Blocks { many: self.maxima.len() as u64, length_ns: self.block_ns }
    }

    /// How many exceedances there are.
    #[must_use]
    pub fn k(&self) -> usize {
        self.excesses.len()
    }

    /// How many exceedances are expected in this time.
    #[must_use]
    pub fn expected(&self, horizon_ns: u64) -> f64 {
        float(self.k() as u64) * float(horizon_ns) / float(self.measured_ns().max(1))
    }

    /// The level that is exceeded once in this time, in ns; not for a shorter time than was measured.
    #[must_use]
    pub fn level(&self, horizon_ns: u64) -> f64 {
        self.threshold + self.fit.gpd.one_in(self.expected(horizon_ns))
    }

    /// Where it lies but for this error on either side.
    #[must_use]
    pub fn level_range(&self, horizon_ns: u64, error: f64) -> Range {
        let drop = level_drop(error, self.k());
        let range = self.excesses.level_range(self.fit, self.expected(horizon_ns), drop);
        Range { low: self.threshold + range.low, high: self.threshold + range.high }
    }

    /// Standard deviation over mean of the excesses, and whether that says that the tail is no heavier than exponential
    /// (J. Abella and others, "Measurement-based worst-case execution time estimation using the coefficient of variation",
    /// ACM TODAES 22, 2017). To be looked at: as a bound it fails where the tail is a little heavier.
    #[must_use]
    pub fn variation(&self) -> (f64, bool) {
        let n = float(self.k() as u64);
        let mean = self.excesses.values().iter().sum::<f64>() / n;
        let squares: f64 = self.excesses.values().iter().map(|x| (x - mean).powi(2)).sum();
        let cv = (squares / (n - 1.0)).sqrt() / mean;
        (cv, cv + 1.645 / n.sqrt() < 1.0)
    }
}

impl Maxima {
    /// Maxima of longer and longer blocks, with their length in ns.
    fn blocks(&self) -> impl Iterator<Item = (u64, Vec<f64>)> {
        let mut joined: Vec<u64> = BLOCKS.iter().map(|ticks| ticks.div_ceil(self.ticks.max(1))).collect();
        joined.dedup();
        joined.into_iter().map(|each| {
            let length = each.saturating_mul(self.ticks).saturating_mul(self.tick_ns);
            let each = usize::try_from(each).unwrap_or(usize::MAX);
            let chunks = self.slices().flat_map(|slice| slice.chunks_exact(each));
            (length, chunks.map(|some| float(some.iter().copied().max().unwrap_or(0))).collect())
        })
    }

    /// The parts that were measured without interruption.
    fn slices(&self) -> impl Iterator<Item = &[u64]> {
        let ends = self.starts.iter().copied().chain([self.values.len()]);
        ends.scan(0, |begin, end| {
            let slice = self.values.get(*begin..end).unwrap_or_default();
            *begin = end.max(*begin);
            Some(slice)
        })
    }
}

/// How many are above the threshold that this part of all values is above, but for those that are equal to it.
fn exceedances(falling: &[f64], part: f64) -> u64 {
    let threshold = falling.get(place(falling, part)).copied().unwrap_or(f64::INFINITY);
    falling.iter().take_while(|value| **value > threshold).count() as u64
}

/// Where that threshold stands.
fn place(falling: &[f64], part: f64) -> usize {
    usize::try_from(whole((part * float(falling.len() as u64)).floor())).unwrap_or(usize::MAX)
}

/// The law above the threshold that this part of all values is above.
fn above(falling: &[f64], part: f64, among: f64) -> Option<(Excesses, Fit, Threshold)> {
    let value = *falling.get(place(falling, part))?;
    let excesses = Excesses::new(falling.iter().map(|x| x - value).take_while(|x| *x > 0.0).collect())?;
    if (excesses.len() as u64) < LEAST_EXCEEDANCES {
        return None;
    }
    let fit = excesses.fit();
    let xi_range = excesses.shape_range(fit, drop_for(ERROR / among));
    let p = anderson_darling_p(anderson_darling(&excesses.rising(), fit.gpd), excesses.len(), fit.gpd.xi);
    let threshold = Threshold { value, k: excesses.len(), xi: fit.gpd.xi, xi_range, p };
    Some((excesses, fit, threshold))
}

/// Whether values are equal that would differ if they were measured finely.
///
/// Some equal values are normal: a clock counts whole nanoseconds, and of 400 maxima within a microsecond a
/// fifth equal another one. Steps matter if they are large against the resolution of the fit, which is the
/// scale over the root of the number of excesses. A fifth of that passes. With steps of `d`, a share of
/// `1 - exp(-k d / (2 sigma))` of exponential excesses equals another one. Also, no single value may be a
/// twentieth of all.
fn too_coarse(excesses: &Excesses) -> Result<(), Refusal> {
    let rising = excesses.rising();
    let n = float(rising.len() as u64);
    let same = || rising.chunk_by(|one, other| one.total_cmp(other).is_eq());
    let tied: usize = same().map(<[f64]>::len).filter(|many| *many > 1).sum();
    let most = same().map(<[f64]>::len).max().unwrap_or(0);
    let part = float(tied as u64) / n;
    let allowed = 1.0 - (-0.1 * n.sqrt()).exp();
    if part > allowed || float(most as u64) > ONE_VALUE * n { Err(Refusal::Tied { part }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_is_of_two_slices() {
        let of = |starts| Maxima { values: (1..=12).collect(), ticks: 1, tick_ns: 10, starts };
        let blocks = |maxima: &Maxima| maxima.blocks().collect::<Vec<_>>();
        let whole = blocks(&of(Vec::new()));
        assert_eq!(whole[1], (20, vec![2.0, 4.0, 6.0, 8.0, 10.0, 12.0]));
        let sliced = blocks(&of(vec![5, 10]));
        assert_eq!(sliced[0], whole[0], "blocks of one tick are all there");
        assert_eq!(sliced[1], (20, vec![2.0, 4.0, 7.0, 9.0, 12.0]));
        assert_eq!(sliced[2], (50, vec![5.0, 10.0]));
        // Whatever was in a bundle.
        for starts in [vec![99], vec![7, 3], vec![0, 0, 12, 12]] {
            assert!(blocks(&of(starts)).iter().all(|(_, values)| values.len() <= 12));
        }
    }
}
