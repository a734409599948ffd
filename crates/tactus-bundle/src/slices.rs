//! Joins a measurement that was made in slices into one row: histograms and counts are added up, extremes are
//! kept, and the turns of other scenarios are gaps.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use tactus_model::bundle::{InjectedIn, Row, RowResult, Slice, Sliced};
use tactus_model::histograms;
use tactus_model::latency::{Latency, Totals};
use tactus_model::message::{Control, Note, Stage};
use tactus_model::outcome::restart::MOST_RESTARTS;
use tactus_model::outcome::{Ending, LatencyOutcome, Outcome, Restart, RowEnd, SeriesResult};
use tactus_model::plan::Plan;
use tactus_model::series::{SeriesKey, Thread};
use tactus_model::{CpuSet, Nanos};

use super::limits::OUTLIERS;

/// The rows of a bundle by their number: the name of the directory, and the result.
pub type Results = BTreeMap<usize, (String, RowResult)>;

/// Remarks that are kept of a row.
const NOTES: usize = 64;
/// The latest beginning of a slice, in ns on the time of its row: 50 years. Clocks jump.
const LATEST_NS: u64 = 50 * 366 * 86_400 * 1_000_000_000;

/// Where a row of a bundle belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number in the bundle.
    pub row: usize,
    /// Its slice; `None` for a row by itself.
    pub slice: Option<Slice>,
    /// The number of its first tick in the whole.
    pub first_tick: u64,
    /// The number of its first interval in the whole.
    pub first_interval: u64,
    /// When it begins in the whole, in ns.
    pub at_ns: u64,
}

impl Part {
    const fn single(row: usize) -> Self {
        Self { row, slice: None, first_tick: 0, first_interval: 0, at_ns: 0 }
    }
}

/// Every row by itself.
pub fn apart(results: &Results, _: &Plan) -> Vec<Vec<Part>> {
    results.keys().map(|row| vec![Part::single(*row)]).collect()
}

/// The rows to report, each with the parts that it is joined from. Rows are in the order of their time, those in slices in
/// that of the plan: which of them had the first slice was random. A slice begins
/// at a whole interval of the histogram log, at least one after the end of the slice before it. Its distance
/// from the first slice is otherwise that of the clock when it was measured.
pub fn group(results: &Results, plan: &Plan) -> Vec<Vec<Part>> {
    let mut groups: Vec<(Option<Slice>, Vec<usize>)> = Vec::new();
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    let mut seen: BTreeMap<_, usize> = BTreeMap::new();
    for (row, (_, result)) in results {
        let Some(slice) = result.slice.filter(|slice| slice.ticks_per_interval() > 0 && slice.tick_ns > 0)
        else {
            groups.push((None, vec![*row]));
            continue;
        };
        let RowResult { name, environment, to, repeat, .. } = result;
        let own = (name, environment, to, repeat, result.measurement.kind());
        // A scenario may have several measurements of one kind in one environment.
        let nth = seen.entry((own, slice.number)).and_modify(|n| *n += 1).or_default();
        match known.get(&(own, *nth)) {
            Some(at) => groups[*at].1.push(*row),
            None => {
                known.insert((own, *nth), groups.len());
                groups.push((Some(slice), vec![*row]));
            }
        }
    }
    let placed = groups.into_iter().map(|(slice, rows)| match slice {
        Some(slice) => placed(results, slice, rows),
        None => rows.into_iter().map(Part::single).collect(),
    });
    in_plan_order(placed.collect(), results, plan)
}

/// The groups of slices in the order of the plan; all others stay where they are.
fn in_plan_order(mut groups: Vec<Vec<Part>>, results: &Results, plan: &Plan) -> Vec<Vec<Part>> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, scenario) in plan.scenario.iter().enumerate() {
        if let Some(name) = &scenario.name {
            places.entry(name).or_insert(place);
        }
    }
    let place = |group: &[Part]| {
        let first = group.first().filter(|first| first.slice.is_some())?;
        places.get(results.get(&first.row)?.1.name.as_str()).copied()
    };
    let known: Vec<usize> = (0..groups.len()).filter(|at| place(&groups[*at]).is_some()).collect();
    let mut ordered: Vec<Vec<Part>> = known.iter().map(|at| std::mem::take(&mut groups[*at])).collect();
    ordered.sort_by_key(|group| place(group));
    for (at, group) in known.into_iter().zip(ordered) {
        groups[at] = group;
    }
    groups
}

fn placed(results: &Results, of: Slice, rows: Vec<usize>) -> Vec<Part> {
    let began = |row: &usize| {
        let started = results.get(row)?.1.started.as_ref()?;
        started.parse::<Timestamp>().ok().map(Timestamp::as_nanosecond)
    };
    let mut rows: Vec<(Option<i128>, usize)> = rows.into_iter().map(|row| (began(&row), row)).collect();
    rows.sort_by_key(|(began, row)| (began.is_none(), *began, *row));
    let first = rows.first().and_then(|(began, _)| *began).unwrap_or(0);
    let ticks = of.ticks_per_interval();
    let length = ticks.saturating_mul(of.tick_ns).max(1);
    let mut next: u64 = 0;
    let part = |(began, row): (Option<i128>, usize)| {
        let planned = results.get(&row).map_or(0, |(_, result)| result.planned_ns);
        let after = began.map_or(0, |began| u64::try_from(began - first).unwrap_or(0));
        let wall = if after < LATEST_NS { after / length } else { 0 };
        let interval = wall.max(next);
        if began.is_some() {
            next = interval.saturating_add(planned.div_ceil(length)).saturating_add(1);
        }
        Part {
            row,
            slice: results.get(&row).and_then(|(_, result)| result.slice),
            first_tick: interval.saturating_mul(ticks),
            first_interval: interval,
            at_ns: interval.saturating_mul(length),
        }
    };
    rows.into_iter().map(part).collect()
}

/// A row that is being joined.
pub struct Joining {
    row: Row,
    measured: histograms::Joining,
    missed: histograms::Joining,
    series: BTreeMap<SeriesKey, SeriesResult>,
    totals: BTreeMap<SeriesKey, Totals>,
    faults: Faults,
}

impl Joining {
    /// Nothing yet, of the row that this is a slice of.
    pub fn new(first: &RowResult) -> Self {
        let length = first.slice.map_or(1, |slice| slice.ticks_per_interval().saturating_mul(slice.tick_ns));
        let planned_ns = first.slice.map_or(first.planned_ns, |slice| slice.whole_ns);
        let result = RowResult {
            slice: None,
            planned_ns,
            measured_ns: 0,
            frames_lost: 0,
            control: Vec::new(),
            clock: None,
            restarts: Vec::new(),
            notes: Vec::new(),
            outcome: Outcome::empty(first.outcome.yields()),
            injected: Vec::new(),
            waits: None,
            clock_fit: None,
            ..first.clone()
        };
        Self {
            row: Row::of(result),
            measured: histograms::Joining::new(length),
            missed: histograms::Joining::new(length),
            series: BTreeMap::new(),
            totals: BTreeMap::new(),
            faults: Faults::default(),
        }
    }

    /// Takes in the next slice. Returns by how many bytes it has grown, about.
    pub fn add(&mut self, part: Part, slice: Row) -> usize {
        let Row { result, ticks, histograms, missed, held, .. } = slice;
        let before = self.row.ticks.bytes();
        let grown = histograms.bytes() + missed.bytes() + size_of::<Sliced>() + result.notes.len() * 128;
        self.row.ticks.add_slice(&ticks, part.first_tick, part.at_ns);
        self.measured.add(histograms, part.first_interval, part.at_ns);
        self.missed.add(missed, part.first_interval, part.at_ns);
        if self.row.held.is_empty() {
            self.row.held = held;
        }
        self.figures(&result, part.at_ns);
        self.circumstances(&result, part);
        self.row.slices.push(Sliced { first_tick: part.first_tick, at_ns: part.at_ns, result });
        grown + self.row.ticks.bytes().saturating_sub(before)
    }

    fn figures(&mut self, slice: &RowResult, at_ns: u64) {
        for own in slice.series() {
            self.totals.entry(own.key.clone()).or_default().add(&own.summary.totals());
            let outliers = own.outliers.iter().cloned().map(|mut one| {
                one.at_ns = one.at_ns.saturating_add(at_ns);
                one
            });
            match self.series.get_mut(&own.key) {
                Some(series) => {
                    series.outliers.extend(outliers);
                    series.outliers.sort_by_key(|outlier| std::cmp::Reverse(outlier.value_ns));
                    series.outliers.truncate(OUTLIERS);
                    series.counters = series.counters.plus(&own.counters);
                    series.whole &= own.whole;
                }
                None => {
                    let series = SeriesResult { outliers: outliers.collect(), ..own.clone() };
                    self.series.insert(own.key.clone(), series);
                }
            }
        }
    }

    fn circumstances(&mut self, slice: &RowResult, part: Part) {
        let all = &mut self.row.result;
        all.measured_ns = all.measured_ns.saturating_add(slice.measured_ns);
        all.frames_lost = all.frames_lost.saturating_add(slice.frames_lost);
        all.evidence = match (all.evidence, slice.evidence) {
            (Some(one), Some(other)) => Some(one.weaker(other)),
            (one, other) => one.or(other),
        };
        all.started = all.started.take().or_else(|| slice.started.clone());
        all.start_up_ms = all.start_up_ms.or(slice.start_up_ms);
        if let Some(mut clock) = slice.clock.clone() {
            clock.holes.iter_mut().for_each(|hole| hole.at_ns = hole.at_ns.saturating_add(part.at_ns));
            all.clock.get_or_insert_default().add(clock);
        }
        let room = (MOST_RESTARTS as usize).saturating_sub(all.restarts.len());
        all.restarts.extend(slice.restarts.iter().take(room).cloned().map(|restart| Restart {
            at_ns: restart.at_ns.saturating_add(part.at_ns),
            first_tick: restart.first_tick.saturating_add(part.first_tick),
            ..restart
        }));
        for note in &slice.notes {
            if all.notes.len() < NOTES && !all.notes.contains(note) {
                all.notes.push(note.clone());
            }
        }
        slice.injected.iter().for_each(|one| self.faults.add(one));
    }

    /// The row.
    pub fn finish(self) -> Row {
        let Self { mut row, measured, missed, mut series, totals, faults } = self;
        row.result.injected = faults.all;
        (row.histograms, row.missed) = (measured.finish(), missed.finish());
        let mut all = Latency::new();
        for (key, own) in &mut series {
            let mut latency =
                Latency { totals: totals.get(key).copied().unwrap_or_default(), ..Latency::new() };
            for tag in [key.to_string(), key.cpu.to_string()] {
                if let Some(counts) = row.histograms.series.get(&tag) {
                    counts.add_to(&mut latency.raw);
                }
                if let Some(counts) = row.missed.series.get(&tag) {
                    counts.add_to(&mut latency.missed);
                }
            }
            own.summary = latency.summary();
            all.merge(&latency);
        }
        if row.result.outcome.yields() == tactus_model::outcome::Yields::Latency {
            let all = (all.totals.cycles > 0).then(|| all.summary());
            row.result.outcome =
                Outcome::Latency(LatencyOutcome { series: series.into_values().collect(), all });
        }
        row.result.control = controls(&row.slices);
        row.result.end(ending(&row.slices));
        row.result.notes.insert(0, told(&row.slices));
        row
    }
}

/// Key of a fault: equal for the same fault in different slices.
type Fault = (String, CpuSet, u32, String, String, CpuSet);

/// The effects of the faults of all slices, in order of time: a stranger may have written very many.
#[derive(Default)]
struct Faults {
    all: Vec<InjectedIn>,
    places: HashMap<Fault, usize>,
}

impl Faults {
    fn add(&mut self, one: &InjectedIn) {
        let now = &one.injected;
        let same = (
            one.environment.clone(),
            one.outside.clone(),
            now.activity,
            now.kind.clone(),
            now.way.clone(),
            now.cpus.clone(),
        );
        match self.places.entry(same) {
            Entry::Occupied(place) => {
                let Some(InjectedIn { injected: known, .. }) = self.all.get_mut(*place.get()) else { return };
                // One that was not counted makes the sum unknown.
                known.times = known.times.zip(now.times).map(|(one, other)| one.saturating_add(other));
                known.longest_ns = known.longest_ns.max(now.longest_ns);
            }
            Entry::Vacant(place) => {
                place.insert(self.all.len());
                self.all.push(one.clone());
            }
        }
    }
}

/// For each thread the worst control of any slice. A thread that had none in one of them has none: that slice's
/// instrument is not proven.
fn controls(slices: &[Sliced]) -> Vec<Control> {
    let (mut worst, mut places): (Vec<Control>, BTreeMap<_, usize>) = (Vec::new(), BTreeMap::new());
    // In how many slices a thread has a control of a stage.
    let mut slices_of: BTreeMap<(Stage, Thread), usize> = BTreeMap::new();
    let measured = slices.iter().map(|slice| &slice.result).filter(|result| !result.outcome.is_empty());
    let mut count = 0;
    for result in measured {
        count += 1;
        let own = result.control.iter().map(|one| (one.stage, one.series.of_thread()));
        own.collect::<BTreeSet<_>>().into_iter().for_each(|of| *slices_of.entry(of).or_default() += 1);
        for control in &result.control {
            let bad = |one: &Control| {
                (one.is_resolvable() && !one.is_seen(), !one.is_seen(), one.seen_ns.abs_diff(one.injected_ns))
            };
            let at = *places.entry((control.stage, &control.series)).or_insert(worst.len());
            match worst.get_mut(at) {
                Some(known) if bad(known) < bad(control) => *known = control.clone(),
                Some(_) => {}
                None => worst.push(control.clone()),
            }
        }
    }
    let in_all = |one: &Control| slices_of.get(&(one.stage, one.series.of_thread())) == Some(&count);
    worst.retain(|one| one.stage == Stage::Fine || in_all(one));
    worst
}

/// How the whole ended: as planned where every slice did.
fn ending(slices: &[Sliced]) -> Ending {
    let own = |slice: &Sliced| {
        let RowResult { ended, reason, .. } = &slice.result;
        Ending { ended: *ended, reason: reason.clone() }
    };
    let has = |ended: RowEnd| slices.iter().find(move |slice| slice.result.ended == ended);
    if let Some(broke) = has(RowEnd::Broke) {
        return own(broke);
    }
    let of = slices.iter().filter_map(|slice| slice.result.slice).map(|slice| slice.of).max().unwrap_or(0);
    let whole: BTreeSet<u32> = slices
        .iter()
        .filter(|slice| slice.result.is_complete())
        .filter_map(|slice| slice.result.slice.map(|of| of.number))
        .collect();
    if of > 0 && u32::try_from(whole.len()) == Ok(of) {
        return Ending::complete();
    }
    let lacking = || slices.iter().filter(|slice| !slice.result.is_complete());
    let first = lacking().find(|slice| slice.result.ended != RowEnd::Waiting).or_else(|| lacking().next());
    let Some(first) = first else {
        let reason = format!("{} of its {of} slices are in the bundle", whole.len());
        return Ending::because(RowEnd::Interrupted, reason);
    };
    if slices.iter().all(|slice| slice.result.outcome.is_empty()) {
        return own(first);
    }
    let ended = match first.result.ended {
        RowEnd::Failed | RowEnd::Refused | RowEnd::Unavailable => RowEnd::Stopped,
        RowEnd::Waiting => RowEnd::Interrupted,
        other => other,
    };
    let number = first.result.slice.map_or(0, |slice| slice.number);
    let why = first.result.reason.as_deref().unwrap_or("nothing is known about it");
    Ending::because(ended, format!("{} of {of} slices are complete; slice {number}: {why}", whole.len()))
}

/// Says that it was measured in slices.
fn told(slices: &[Sliced]) -> Note {
    let begun = slices.iter().filter(|slice| slice.result.started.is_some()).count();
    let of = slices.first().and_then(|slice| slice.result.slice).map_or(0, |slice| slice.of);
    let length = Nanos(slices.first().map_or(0, |slice| slice.result.planned_ns)).to_string();
    let (length, unit) = length.split_at(length.find(char::is_alphabetic).unwrap_or(length.len()));
    let is = |count: usize| u32::try_from(count) == Ok(of);
    let begun = match slices.len() {
        _ if is(begun) => String::new(),
        all if is(all) => format!(", of which {begun} were begun"),
        all => format!(", of which {all} are in the bundle"),
    };
    Note::info(format!("measured in {of} slices of {length} {unit}, in turn with other scenarios{begun}"))
}
