//! Whether what a row was to measure has arrived, and is enough: nothing passes on a part of it.

use tactus_model::bundle::RowResult;
use tactus_model::catalogue::Measure;
use tactus_model::number::{float, whole};
use tactus_model::outcome::{SeriesResult, Yields};
use tactus_model::plan::Require;
use tactus_statistics::tail::PROMISED_BLOCKS;

use super::grounds::Doubt;
use super::name::ended_load;
use super::quantile;
use crate::units::{count, duration};

/// The least part of its periods that a thread must have measured, or counted as missed; of `spin`, of the time that it was
/// to poll. A part of that which a slice begins late is a gap, and was looked at.
const LEAST_PART: f64 = 0.99;
/// The least number of cycles of each thread for a verdict when the plan does not say.
pub const CYCLES_FOR_A_VERDICT: u64 = 100_000;
/// The least time for a pass, in ns.
pub const LEAST_NS: u64 = 60_000_000_000;
/// A tick of a run, of whose maxima the blocks of a tail are made, in ns.
const TICK_NS: u64 = 1_000_000_000;

/// How a result falls short of its plan; `None` if it does not.
pub fn lacking(result: &RowResult) -> Option<String> {
    if result.threads.is_none() {
        return Some("the bundle does not record which threads were to measure".into());
    }
    if let Some(ended) = ended_load(result) {
        return Some(ended);
    }
    if let Some(clock) = result.clock.as_ref().filter(|clock| clock.jumped()) {
        return Some(format!(
            "its clock and others moved apart by {}: no latency includes that time",
            duration(clock.jump_ns)
        ));
    }
    if let Some(thread) = result.missing().next() {
        return Some(format!("nothing arrived of thread {} on CPU {}", thread.thread, thread.cpu));
    }
    let cut = result.series().iter().find(|series| !series.whole);
    if let Some(series) = cut {
        return Some(format!("the last totals of {} did not arrive", series.key));
    }
    // Of those that a full ring of ours did not take the extremes are known; of these nothing is.
    let unread = result.series().iter().find(|series| series.summary.lost > 0);
    if let Some(series) = unread.filter(|_| result.measurement.only_reads()) {
        return Some(format!(
            "{} cycles of {} were left out; how long they took is unknown",
            count(series.summary.lost),
            series.key
        ));
    }
    let (series, part) = result
        .series()
        .iter()
        .map(|series| (series, part(result, series)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let counted = if matches!(result.measurement, Measure::Spin(_)) { "time" } else { "periods" };
    (part < LEAST_PART).then(|| format!("{} has {:.1} % of its planned {counted}", series.key, 100.0 * part))
}

/// The part of its planned measurement that a series has.
fn part(result: &RowResult, series: &SeriesResult) -> f64 {
    let of = &series.summary;
    let (measured, planned) = match &result.measurement {
        Measure::Spin(spin) => {
            let polled = of.mean_ns.unwrap_or(0.0) * float(of.cycles);
            (polled, float(result.planned_ns) * f64::from(spin.busy()) / 100.0)
        }
        _ => (float(of.cycles) + float(of.missed()), float(result.planned_ns / result.interval_ns.max(1))),
    };
    if planned > 0.0 { measured / planned } else { 0.0 }
}

/// Why the data is too little for a pass, whatever it says; `None` if it is enough.
pub fn too_short(result: &RowResult, require: &Require) -> Option<Doubt> {
    (result.measured_ns < LEAST_NS).then(|| {
        let (measured, least) = (duration(result.measured_ns), duration(LEAST_NS));
        let said = format!("{measured} are too short for a pass, which needs {least}");
        Doubt { said, longer_ns: longer_ns(result, require, 0) }
    })
}

/// How long to measure at least for a pass, and the requirement that needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassNeeds {
    /// How long, in ns.
    pub ns: u64,
    /// The requirement that needs it, in a few words.
    pub why: String,
}

/// The shortest measurement that can pass, if nothing else forbids it and each thread has the cycles it
/// needs.
fn least(require: &Require, measure: &Measure, interval_ns: u64) -> PassNeeds {
    let quantiles = require.quantiles().into_iter().filter(|_| measure.has_periods());
    let quantiles = quantiles.map(|(name, part, _)| (quantile::least_ns(part, interval_ns), name));
    // No requirement on a tail is decided by fewer blocks, and a block has at least one tick.
    let tail = require.tail.map(|_| (PROMISED_BLOCKS * TICK_NS, "the tail"));
    let all = quantiles.chain(tail).filter(|(ns, _)| *ns > LEAST_NS);
    let (ns, why) = all.max_by_key(|(ns, _)| *ns).unwrap_or((LEAST_NS, "whatever the limit"));
    PassNeeds { ns, why: why.into() }
}

/// How long to measure at least to pass the requirements; `None` without any.
#[must_use]
pub fn pass_needs(require: &Require, measure: &Measure, interval_ns: u64) -> Option<PassNeeds> {
    let require = require.on(measure.yields())?;
    if !require.bounds_latency() && require.values.is_empty() {
        return None;
    }
    // Without periods none can be missed: that never passes.
    if require.overruns.is_some() && !measure.has_periods() {
        return None;
    }
    let least = least(&require, measure, interval_ns);
    if measure.yields() == Yields::Values || !measure.has_periods() {
        return Some(least);
    }
    let cycles = require.cycles.unwrap_or(CYCLES_FOR_A_VERDICT);
    let ns = cycles.saturating_mul(interval_ns);
    let why = || format!("{} cycles of each thread", count(cycles));
    Some(if ns > least.ns { PassNeeds { ns, why: why() } } else { least })
}

/// The fewest periods of a thread, with those that were missed.
pub fn fewest_periods(result: &RowResult) -> u64 {
    let periods = |series: &SeriesResult| series.summary.cycles.saturating_add(series.summary.missed());
    result.series().iter().map(periods).min().unwrap_or(0)
}

/// The fewest cycles of a thread.
pub fn fewest_cycles(result: &RowResult) -> u64 {
    result.series().iter().map(|series| series.summary.cycles).min().unwrap_or(0)
}

/// How much longer to measure, in ns, for a pass: long enough, and with the cycles that are asked for in each
/// thread. `None` if nothing is lacking, or if there are no cycles yet that show their rate.
pub fn longer_ns(result: &RowResult, require: &Require, cycles: u64) -> Option<u64> {
    let (have, need) = (fewest_cycles(result), cycles);
    let more = match need.checked_sub(have).filter(|lack| *lack > 0) {
        None => 0,
        Some(_) if have == 0 => return None,
        Some(lack) => {
            // The wait for the first one is unknown.
            let each = (float(result.measured_ns) / float(have)).max(float(result.interval_ns));
            whole((each * float(lack)).ceil())
        }
    };
    let least = least(require, &result.measurement, result.interval_ns).ns;
    let longest = more.max(least.saturating_sub(result.measured_ns));
    (longest > 0).then_some(longest)
}

/// The rate of exceedances that a time without one bounds. If none of `n` independent seconds had one, at
/// most a share of 3/n of all seconds has one, with 95 % confidence. This is the rule of three: 0.95 = 1 -
/// (1 - p)^n.
#[must_use]
pub fn bounded_rate(measured_ns: u64) -> f64 {
    3.0 / (float(measured_ns) / 1e9)
}

/// A rate in a second, to one digit.
#[must_use]
pub fn rate_words(rate: f64) -> String {
    let digits = usize::try_from(whole((-rate.log10()).ceil().max(0.0))).unwrap_or(0) + 1;
    let rate = format!("{rate:.digits$}");
    rate.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Less than this part of the time that lacks is how a measurement begins and ends.
const NOTHING_LACKS: f64 = 0.001;

/// The time for which all of its threads have their periods, in ns. Time with lost data does not count.
pub fn looked_ns(result: &RowResult) -> u64 {
    let polled = match &result.measurement {
        Measure::Spin(spin) => f64::from(spin.busy()) / 100.0,
        _ => 1.0,
    };
    let planned = float(result.planned_ns) * polled;
    let parts = result.series().iter().map(|series| part(result, series) * planned);
    let looked = parts.fold(float(result.measured_ns), f64::min);
    match result.measurement {
        Measure::Spin(_) => whole(looked),
        _ if looked < float(result.measured_ns) * (1.0 - NOTHING_LACKS) => whole(looked),
        _ => result.measured_ns,
    }
}

/// For how long it was measured: `10 min`, or `594 of 600 s` where some of it lacks.
pub fn time_words(result: &RowResult) -> String {
    match looked_ns(result) {
        looked if looked < result.measured_ns && !matches!(result.measurement, Measure::Spin(_)) => {
            format!("{} of {} s", seconds(looked), seconds(result.measured_ns))
        }
        _ => duration(result.measured_ns),
    }
}

/// Seconds, and tenths where there are fewer than a hundred; rounded down.
fn seconds(ns: u64) -> String {
    let tenths = ns / 100_000_000;
    if tenths < 1000 && !tenths.is_multiple_of(10) {
        format!("{}.{}", tenths / 10, tenths % 10)
    } else {
        (tenths / 10).to_string()
    }
}

/// The bound that a pass states for the time that was not measured; it follows a verdict.
pub fn bound(result: &RowResult) -> String {
    let (looked, measured) = (looked_ns(result), result.measured_ns);
    let of = if looked < measured { format!(" of {}", seconds(measured)) } else { String::new() };
    let rate = rate_words(bounded_rate(looked));
    let looked = seconds(looked);
    format!("; no exceedance in {looked}{of} s: at most {rate} a second (95 %, independent seconds)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_exceedance_bounds_the_rate_of_them() {
        for (seconds, rate) in [(60, "0.05"), (600, "0.005"), (86_400, "0.000035")] {
            assert_eq!(rate_words(bounded_rate(seconds * 1_000_000_000)), rate);
        }
    }

    #[test]
    fn seconds_are_never_rounded_up() {
        let said = [59_400, 59_999, 60_000, 594_960, 600_000].map(|ms| seconds(ms * 1_000_000));
        assert_eq!(said, ["59.4", "59.9", "60", "594", "600"]);
    }
}
