//! Latency over the time of a row, in few enough bins to draw. No maximum and no minimum is lost.

use std::collections::BTreeMap;

use tactus_model::buckets::Packed;
use tactus_model::bundle::Row;
use tactus_model::latency::ratio_mean;
use tactus_model::outcome::restart::gaps_between;
use tactus_model::ticks::Ticks;

/// A stretch of time, all series together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Number of the stretch; a missing number is a gap.
    pub n: u64,
    /// Smallest latency, in ns, exact.
    pub min_ns: Option<u64>,
    /// Mean latency, in ns.
    pub mean_ns: Option<f64>,
    /// 99th percentile of the stretch, in ns.
    pub p99_ns: Option<u64>,
    /// Largest latency, in ns, exact.
    pub max_ns: Option<u64>,
}

/// A row over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Length of a bin, in ns.
    pub width_ns: u64,
    /// The bins in which something was measured, in order.
    pub bins: Vec<Bin>,
}

/// A row over time in at most about `most` bins. Exact values come from the ticks; the percentile
/// comes from the histograms of the stretch together.
#[must_use]
pub fn timeline(row: &Row, most: u64) -> Timeline {
    let tick = median(tick_lengths(&row.ticks));
    let intervals = &row.histograms;
    // The time in which the clock stood still, or the environment was dead, is a gap.
    let clock = row.result.clock.clone().unwrap_or_default();
    let place = |at_ns: u64| {
        // The next slice lies where it was by the clock of the machine, in which the gaps of this one are.
        let slice = row.slices.partition_point(|slice| slice.at_ns <= at_ns).checked_sub(1);
        let from = slice.and_then(|at| row.slices.get(at)).map_or(0, |slice| slice.at_ns);
        let stood = clock.stood_between(from, at_ns);
        at_ns.saturating_add(stood).saturating_add(gaps_between(&row.result.restarts, from, at_ns))
    };
    let ends = row.ticks.iter().map(|(_, stretch)| stretch.at_ns);
    let total = place(ends.max().unwrap_or(0).max(intervals.end_ns));
    // A bin holds whole intervals, so that its percentile covers the stretch of its maximum.
    let grain = intervals.length_ns.max(tick).max(1);
    let narrow = grain.saturating_mul(total.div_ceil(grain).div_ceil(most.max(1)).max(1));
    let width = round(row).filter(|round| *round < narrow.saturating_mul(4)).map_or(narrow, |round| {
        // Gaps that are no wider than a dot would tear every line to pieces: in two rounds each scenario has its turn.
        narrow.max(grain.saturating_mul(round.saturating_mul(2).div_ceil(grain)))
    });
    let mut bins: BTreeMap<u64, (Bin, u64, u64)> = BTreeMap::new();
    // The middle of a stretch says where it belongs: its end may come a little late.
    for (_, stretch) in row.ticks.iter().filter(|(_, stretch)| stretch.cycles > 0) {
        let half = tick.saturating_mul(stretch.span()) / 2;
        let (bin, sum, cycles) = bins.entry(place(stretch.at_ns.saturating_sub(half)) / width).or_default();
        bin.min_ns = [bin.min_ns, stretch.min_ns].into_iter().flatten().min();
        bin.max_ns = bin.max_ns.max(stretch.max_ns);
        *sum = sum.saturating_add(stretch.sum_ns);
        *cycles = cycles.saturating_add(stretch.summed);
    }
    let middle = |n: u64| n.saturating_mul(intervals.length_ns).saturating_add(intervals.length_ns / 2);
    let places: Vec<(u64, &Packed)> =
        intervals.intervals.iter().map(|(n, counts)| (place(middle(*n)) / width, counts)).collect();
    let mut histogram = tactus_model::latency::histogram();
    for together in places.chunk_by(|one, next| one.0 == next.0) {
        histogram.reset();
        together.iter().for_each(|(_, counts)| counts.add_to(&mut histogram));
        let (bin, _, cycles) = bins.entry(together[0].0).or_default();
        if *cycles == 0 {
            // The ticks are gone: the histogram knows all of it within 0.1 %.
            bin.min_ns = Some(histogram.min());
            bin.max_ns = Some(histogram.max());
            bin.mean_ns = Some(histogram.mean());
        }
        let p99 = histogram.value_at_quantile(0.99);
        bin.p99_ns = Some(bin.max_ns.map_or(p99, |max| p99.min(max)));
    }
    let bins = bins.into_iter().map(|(n, (bin, sum, cycles))| Bin {
        n,
        mean_ns: ratio_mean(sum, cycles).or(bin.mean_ns),
        ..bin
    });
    Timeline { width_ns: width, bins: bins.collect() }
}

/// From one slice of a row to its next, on average, in ns.
fn round(row: &Row) -> Option<u64> {
    let (first, last) = (row.slices.first()?, row.slices.last()?);
    let rounds = (row.slices.len() as u64).checked_sub(1).filter(|rounds| *rounds > 0)?;
    Some(last.at_ns.saturating_sub(first.at_ns) / rounds).filter(|round| *round > 0)
}

/// Times between ticks of the same series that follow each other.
fn tick_lengths(ticks: &Ticks) -> Vec<u64> {
    let mut lengths = Vec::new();
    for (n, series) in ticks.series.values().enumerate() {
        let mut before = (0, 0);
        for stretch in &series.stretches {
            if let Some(steps) = stretch.last.checked_sub(before.0).filter(|steps| *steps > 0) {
                lengths.push(stretch.at_ns.saturating_sub(before.1) / steps);
            }
            before = (stretch.last, stretch.at_ns);
        }
        if n == 0 {
            lengths.extend(series.stretches.first().map(|first| first.at_ns / (first.last + 1)));
        }
    }
    lengths
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tactus_model::bundle::{RowResult, Sliced};
    use tactus_model::clock::{ClockCheck, Hole};
    use tactus_model::outcome::Restart;
    use tactus_model::series::SeriesKey;
    use tactus_model::ticks::TickScalars;

    use super::*;

    /// Slices of ten seconds, forty apart, in each of which one tick is late.
    fn sliced(slices: u64) -> Row {
        let result = RowResult {
            planned_ns: slices * 10_000_000_000,
            ..RowResult::unmeasured("idle", "host", "host")
        };
        let mut row = Row::of(result.clone());
        let key = SeriesKey { cpu: 1, thread: 0, priority: 95, kind: "thread".into() };
        for slice in 0..slices {
            let (first_tick, at_ns) = (slice * 40, slice * 40_000_000_000);
            for n in 0..10 {
                let max_ns = if n == 5 { 9_000 + slice } else { 20 };
                let tick = TickScalars {
                    n: first_tick + n,
                    at_ns: at_ns + (n + 1) * 1_000_000_000,
                    cycles: 2,
                    min_ns: Some(10),
                    sum_ns: Some(10 + max_ns),
                    max_ns: Some(max_ns),
                    ..TickScalars::default()
                };
                assert!(row.ticks.add(&key, &tick));
            }
            row.slices.push(Sliced { first_tick, at_ns, result: result.clone() });
        }
        row
    }

    #[test]
    fn slices_that_are_a_lifetime_apart_are_drawn_like_any() {
        let mut row = sliced(3);
        row.histograms.length_ns = u64::MAX / 2;
        row.slices[2].at_ns = u64::MAX;
        assert_eq!(timeline(&row, 320).bins.len(), 1);
        let mut far = sliced(3);
        (far.histograms.end_ns, far.slices[2].at_ns) = (u64::MAX, u64::MAX);
        assert!(!timeline(&far, 1).bins.is_empty());
    }

    #[test]
    fn the_time_in_which_a_clock_stood_still_is_a_gap_of_its_length_and_no_extreme_is_lost() {
        let mut row = sliced(1);
        row.slices.clear();
        assert_eq!(gaps(&timeline(&row, 320)), 0);
        let hole = Hole { at_ns: 4_000_000_000, length_ns: 8_000_000_000 };
        row.result.clock = Some(ClockCheck { holes: vec![hole], ..ClockCheck::default() });
        let shown = timeline(&row, 320);
        let bins: Vec<u64> = shown.bins.iter().map(|bin| bin.n).collect();
        assert_eq!(bins, [0, 1, 2, 3, 12, 13, 14, 15, 16, 17]);
        assert_eq!(shown.bins.iter().filter_map(|bin| bin.max_ns).max(), Some(9_000));
        let hole = Hole { at_ns: 4_000_000_000, length_ns: u64::MAX };
        row.result.clock = Some(ClockCheck { holes: vec![hole; 64], ..ClockCheck::default() });
        assert!(timeline(&row, 320).bins.len() < 10, "what a stranger writes takes no memory");
    }

    #[test]
    fn the_time_between_a_death_and_a_new_start_is_a_gap_where_it_was_and_moves_no_other_slice() {
        let died = |at_ns: u64| Restart {
            at_ns,
            first_tick: at_ns / 1_000_000_000,
            gap_ns: 8_000_000_000,
            reason: "it died".into(),
        };
        let mut row = sliced(1);
        row.slices.clear();
        row.result.restarts = vec![died(4_000_000_000)];
        let bins: Vec<u64> = timeline(&row, 320).bins.iter().map(|bin| bin.n).collect();
        assert_eq!(bins, [0, 1, 2, 3, 12, 13, 14, 15, 16, 17]);
        let mut row = sliced(3);
        row.result.restarts = vec![died(44_000_000_000)];
        let shown = timeline(&row, 320);
        let of =
            |from: u64| shown.bins.iter().map(|bin| bin.n).filter(move |n| (from..from + 40).contains(n));
        assert!(of(0).eq(0..10), "the slice before it stays where it was");
        assert!(of(40).eq((40..44).chain(52..58)), "{:?}", of(40).collect::<Vec<_>>());
        assert!(of(80).eq(80..90), "and so does the slice after it");
    }

    fn gaps(timeline: &Timeline) -> usize {
        timeline.bins.windows(2).filter(|pair| pair[1].n > pair[0].n + 1).count()
    }

    #[test]
    fn the_turns_of_others_are_gaps_and_of_very_many_slices_no_line_is_torn() {
        let few = timeline(&sliced(5), 320);
        assert_eq!((few.width_ns, few.bins.len(), gaps(&few)), (1_000_000_000, 50, 4));
        let many = timeline(&sliced(144), 320);
        assert_eq!(gaps(&many), 0, "{}", many.width_ns);
        assert!((60..=320).contains(&many.bins.len()), "{}", many.bins.len());
        assert_eq!(many.bins.iter().filter_map(|bin| bin.max_ns).max(), Some(9_143), "no extreme is lost");
        assert!(many.bins.iter().all(|bin| bin.max_ns >= Some(9_000) && bin.min_ns == Some(10)));
    }
}
