//! The verdict on the strata of a cell, in a word.

use tactus_model::document::{Doubt, Leak};
use tactus_model::number::{float, whole};
use tactus_statistics::{Stratum, at_most, chance, drawn, paired};

use crate::units::{count, latency};

/// A disturbance without a size leaks when typical maxima are at least this many times those at rest.
pub const FACTOR: f64 = 2.0;
/// A factor below this is no leak: two measurements at rest differ as much.
pub const SLACK: f64 = 1.1;
/// Part of the injections that must be seen for `yes`: the first and the last may lie outside of the
/// measurement.
const OFTEN: f64 = 0.8;
/// Part of its length at which a fault counts as seen at its size.
const SIZE: f64 = 0.9;
/// Injections that a `no` needs: it says that at most a tenth of the injections may be seen.
const ENOUGH: usize = 29;
/// Most pairs of seconds that are compared.
const MOST_PAIRS: usize = 1000;

/// A word, and the numbers behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Whether it is seen; `None` if unknown.
    pub leak: Option<Leak>,
    /// Why it is unknown.
    pub doubt: Option<Doubt>,
    /// In a sentence.
    pub reason: String,
    /// Injections that stand out from the rest of their period, and how many would by chance.
    pub stand_out: Option<(u64, f64)>,
    /// Injections with half the size of the fault, and how many would have it by chance.
    pub half: Option<(u64, f64)>,
    /// Injections with its size, beyond what chance gives.
    pub full: Option<u64>,
    /// The ratio of maxima with it to those without: its estimate and where it lies.
    pub ratio: Option<(f64, Option<(f64, f64)>)>,
}

impl Judged {
    fn known(mut self, leak: Leak, reason: String) -> Self {
        (self.leak, self.reason) = (Some(leak), reason);
        self
    }

    fn doubt(mut self, doubt: Doubt, reason: String) -> Self {
        (self.doubt, self.reason) = (Some(doubt), reason);
        self
    }
}

/// A fault of known size.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// How long it is, in ns.
    pub length_ns: u64,
    /// Time between two wake-ups of what is measured, in ns.
    pub interval_ns: u64,
}

impl Size {
    /// A late wake-up shows the length of a block less the part that was over when it fell due.
    fn whole(self) -> u64 {
        let size = whole(float(self.length_ns) * SIZE);
        size.min(self.length_ns.saturating_sub(self.interval_ns)).max(self.length_ns / 2)
    }
}

/// A result that chance makes this rarely proves no leak among many cells. But it forbids to say that there
/// is no leak.
const HINT: f64 = 0.05;

/// How large a place's value is beside the typical value of its period, in half doublings; 0 if it is not
/// larger. Maxima of latencies have a heavy tail: the chance of a multiple of the typical value falls with a
/// power of that multiple. Its logarithm therefore counts rare values in proportion (a likelihood ratio's, J.
/// Neyman and E. S. Pearson, "On the problem of the most efficient tests of statistical hypotheses", 1933). A
/// leak in some of the injections is not lost among periods, some of which must always be the largest. A leak
/// in each of them is not hidden by a stall elsewhere.
fn size(stratum: &Stratum, place: usize) -> usize {
    usize::try_from(whole(2.0 * stratum.times_typical(place).max(1.0).log2())).unwrap_or(usize::MAX)
}

/// The chance that the random choice alone makes the values with a disturbance this large. They may be larger
/// by [`SLACK`], so it is divided out first (the test of a shifted value; J. L. Hodges and E. L. Lehmann,
/// 1963).
fn randomization_test(strata: &[Stratum]) -> f64 {
    let less = |stratum: &Stratum| {
        let mut less = stratum.clone();
        if let Some(with) = less.values.get_mut(less.drawn) {
            *with = whole(float(*with) / SLACK);
        }
        less
    };
    chance(&strata.iter().map(less).collect::<Vec<_>>(), size)
}

/// Whether a fault is seen, where chance alone may say so with this probability.
#[must_use]
pub fn judge_fault(strata: &[Stratum], size: Size, error: f64) -> Judged {
    let length = size.length_ns;
    let says = latency(float(length));
    let reaches = |least: u64| drawn(strata, |stratum, place| stratum.values[place] >= least);
    let out = drawn(strata, |stratum, place| stratum.stands_out(place, SLACK));
    let larger = randomization_test(strata);
    let (half, full) = (reaches(length / 2), reaches(size.whole()));
    let by_chance = |least: u64| -> f64 {
        let share = |stratum: &Stratum| {
            let apart: Vec<u64> = stratum.apart(stratum.drawn).collect();
            let seen = apart.iter().filter(|value| **value >= least).count();
            float(seen as u64) / float(apart.len().max(1) as u64)
        };
        strata.iter().map(share).sum()
    };
    let half_by_chance = by_chance(length / 2);
    let full_beyond = full.times.saturating_sub(rounded_up(by_chance(size.whole())));
    let judged = Judged {
        stand_out: Some((out.times as u64, out.expected)),
        half: Some((half.times as u64, half_by_chance)),
        full: Some(full_beyond as u64),
        ratio: typical_ratio(strata).map(|ratio| (ratio, None)),
        ..Judged::default()
    };
    let of = strata.len();
    // Two questions are asked of each cell.
    let seen = larger.min(half.chance) <= error / 2.0;
    if seen && float(full_beyond as u64) >= OFTEN * float(of as u64) {
        let reason =
            format!("seen at its size ({says}) as often as it was made ({full_beyond} of {of} injections)");
        return judged.known(Leak::Yes, reason);
    }
    if seen && full.chance <= error / 2.0 {
        let reason =
            format!("seen at its size ({says}), but not each time ({full_beyond} of {of} injections)");
        return judged.known(Leak::Sometimes, reason);
    }
    if seen && float(out.times as u64) <= out.expected {
        // Larger in most periods, and the largest in none: by how much is what was seen.
        let ratio =
            judged.ratio.map_or_else(String::new, |(ratio, _)| format!(", typically {ratio:.1} times"));
        let reason = format!(
            "smaller than its size ({says}): latencies with it are larger than those of the rest of its period{ratio}, more \
             often than chance explains"
        );
        return judged.known(Leak::Weaker, reason);
    }
    if seen {
        let standing = strata.iter().filter(|stratum| stratum.stands_out(stratum.drawn, SLACK));
        let typical = middle(standing.map(|stratum| float(stratum.with())));
        let typical = typical.map(|typical| format!(", typically with {}", latency(typical)));
        let reason = format!(
            "smaller than its size ({says}): in {} of {of} injections ({:.1} by chance) it stands out from the rest of \
             its period{}",
            out.times,
            out.expected,
            typical.unwrap_or_default()
        );
        return judged.known(Leak::Weaker, reason);
    }
    if !can_tell(strata, error / 2.0) {
        let reason = format!("too short to tell: {of} injections with everything around them measured");
        return judged.doubt(Doubt::TooShort, reason);
    }
    if half.times > 0 && half_by_chance >= 1.0 {
        let reason = format!(
            "noise could hide it ({says}): half its size is seen in {} of {of} injections, and chance alone \
             would give {half_by_chance:.1}",
            half.times
        );
        return judged.doubt(Doubt::Noise, reason);
    }
    if half.times > 0 {
        let times = half.times;
        let reason =
            format!("half its size or more in {times} of {of} injections: too few to tell from noise");
        return judged.doubt(Doubt::TooFew, reason);
    }
    if larger <= HINT {
        let reason = format!(
            "larger than the rest of its period more often than by chance ({} of {of} injections stand out \
             from it, {:.1} would by chance): too little to tell from noise",
            out.times, out.expected
        );
        return judged.doubt(Doubt::TooFew, reason);
    }
    none_seen(judged, strata, "injections")
}

/// Whether a load is seen: each second with it against the other one of its two.
#[must_use]
pub fn judge_load(strata: &[Stratum], error: f64) -> Judged {
    let strata = &strata[..strata.len().min(MOST_PAIRS)];
    let difference = |stratum: &Stratum| {
        let without = stratum.apart(stratum.drawn).max().unwrap_or(0);
        float(stratum.with().max(1)).ln() - float(without.max(1)).ln()
    };
    let pairs: Vec<f64> = strata.iter().map(difference).collect();
    // Each side errs with this probability, both together with twice that.
    let Some(found) = paired(&pairs, 2.0 * error) else {
        let reason = format!("too short to tell: {} pairs of seconds with and without it", pairs.len());
        return Judged::default().doubt(Doubt::TooShort, reason);
    };
    let [estimate, low, high] = [found.estimate, found.low, found.high].map(f64::exp);
    let judged = Judged { ratio: Some((estimate, Some((low, high)))), ..Judged::default() };
    let seen = format!("typical maxima are {estimate:.2} times ({low:.2} to {high:.2}) those without it");
    if low > SLACK && estimate >= FACTOR {
        return judged.known(Leak::Yes, seen);
    }
    if low > SLACK {
        return judged.known(Leak::Weaker, seen);
    }
    if high >= FACTOR {
        let reason = format!("typical maxima may be up to {high:.1} times those without it: measure longer");
        return judged.doubt(Doubt::Noise, reason);
    }
    let judged = none_seen(judged, strata, "seconds with it");
    let reason = format!("typical maxima are at most {high:.2} times those without it; {}", judged.reason);
    Judged { reason, ..judged }
}

/// None was seen: what that excludes.
fn none_seen(judged: Judged, strata: &[Stratum], what: &str) -> Judged {
    let most = strata.iter().map(Stratum::with).max().unwrap_or(0);
    let n = strata.len();
    let leak = if n >= ENOUGH { Leak::No } else { Leak::NotSeen };
    let (share, of) = (percent(at_most(n)), count(n as u64));
    judged.known(
        leak,
        format!("at most {share} of the {what} (95 %, none of {of}) are seen above {}", latency(float(most))),
    )
}

/// A part of all injections: `9.5 %`.
#[must_use]
pub fn percent(part: f64) -> String {
    let percent = part * 100.0;
    // Rounded up: it is a bound.
    let places = if percent >= 9.95 { 1.0 } else { 10.0 };
    let rounded = (percent * places).ceil() / places;
    if places > 1.0 { format!("{rounded:.1} %") } else { format!("{rounded:.0} %") }
}

/// Whether the lot could prove anything, whatever was measured.
fn can_tell(strata: &[Stratum], error: f64) -> bool {
    let chance = |stratum: &Stratum| 1.0 / float(stratum.values.len().max(1) as u64);
    strata.iter().map(chance).product::<f64>() <= error
}

/// The middle of the ratios between what is measured with it and what is typical without.
fn typical_ratio(strata: &[Stratum]) -> Option<f64> {
    let ratio = |stratum: &Stratum| {
        let apart = middle(stratum.apart(stratum.drawn).map(|value| float(value.max(1))))?;
        Some(float(stratum.with().max(1)) / apart)
    };
    middle(strata.iter().filter_map(ratio))
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn rounded_up(value: f64) -> usize {
    usize::try_from(whole(value.ceil())).unwrap_or(usize::MAX)
}
