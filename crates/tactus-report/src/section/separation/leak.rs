//! Which environments a disturbance in one of them reaches: the test is in docs/design/separation.md.

use std::collections::BTreeMap;

use tactus_model::bundle::{Contents, Row, RowResult};
use tactus_model::document::{Doubt, Leak, LeakEntry, SeparationEntry};
use tactus_model::event::RowStatus;
use tactus_model::number::{float, whole};
use tactus_model::plan::{Disturbed, Separation};
use tactus_model::series::SeriesKey;
use tactus_model::{CpuSet, Evidence};

use crate::row::{control, reason};
use crate::stats::{Ratio, Test, more};
use crate::units::{clean, count, latency};

/// The chance that any cell of a bundle is called a leak where there is none (Bonferroni).
pub const ERROR: f64 = 0.05;
/// A disturbance without a size leaks when typical maxima are at least this many times those at rest.
pub const FACTOR: f64 = 2.0;
/// What is below this factor is no leak: two rests differ by as much.
pub const SLACK: f64 = 1.1;
/// Part of the injections that must be seen for `yes`: the first and the last may lie outside of the
/// measurement.
const OFTEN: f64 = 0.8;
/// Part of its length at which a fault counts as seen at its size.
const SIZE: f64 = 0.9;
/// Slots of time are at least this long, in ns.
const SLOT_NS: u64 = 1_000_000_000;

/// How surely something must be seen.
struct Tests {
    /// In another environment, or on another CPU than it was made on.
    cells: Test,
    /// Where it was made: the chance that any disturbance is thought to be there that was not is [`ERROR`].
    made: f64,
}

/// The cells of a bundle; `None` where its plan asks for no separation.
#[must_use]
pub fn separation(contents: &Contents) -> Option<SeparationEntry> {
    let plan = contents.plan.separation.as_ref()?;
    let others = plan.environments.len().saturating_sub(plan.absent.len()).saturating_sub(1);
    let tested = (plan.disturbed.len() * others * 2).max(1);
    let tests = Tests {
        cells: Test::new(ERROR / float(tested as u64)),
        made: ERROR / float(plan.disturbed.len().max(1) as u64),
    };
    let mut cells = Vec::new();
    for disturbed in &plan.disturbed {
        let mut own: Vec<LeakEntry> = Vec::new();
        for measured in plan.environments.iter().filter(|name| !plan.absent.contains_key(*name)) {
            for same_cpu in [true, false] {
                own.push(cell(contents, plan, disturbed, measured, same_cpu, &tests));
            }
        }
        let made = made(&own);
        for cell in &mut own {
            doubted(cell, made.as_deref());
        }
        cells.extend(own);
    }
    Some(SeparationEntry {
        environments: plan.environments.clone(),
        absent: plan.absent.clone(),
        error: ERROR,
        cells,
    })
}

/// Whether the disturbance was seen where it was made, as far as that could be measured: if not, why.
fn made(cells: &[LeakEntry]) -> Option<String> {
    let at = cells.iter().find(|cell| cell.same_cpu && cell.disturbed == cell.measured)?;
    let place = clean(&at.disturbed);
    match at.leak {
        Leak::Yes | Leak::Partly => None,
        Leak::No => Some(format!("the disturbance was not seen in {place} itself, where it was made")),
        Leak::NotKnown => {
            Some(format!("it is not known whether {place} itself, where it was made, saw it ({})", at.reason))
        }
    }
}

/// A `no` needs a disturbance that was there, and an instrument that would have seen it.
fn doubted(cell: &mut LeakEntry, made: Option<&str>) {
    if cell.leak == Leak::No
        && cell.disturbed != cell.measured
        && let Some(why) = made
    {
        (cell.leak, cell.doubt) = (Leak::NotKnown, Some(Doubt::Source));
        cell.reason = format!("this proves nothing: {why}");
    }
}

/// A cell without numbers.
fn empty(plan: &Separation, disturbed: &Disturbed, measured: &str, same_cpu: bool) -> LeakEntry {
    let of = |d: &&tactus_model::plan::Disturbance| d.kind() == Some(disturbed.what.as_str());
    let fault = plan.disturb.iter().find(of).and_then(|d| d.fault.as_ref());
    LeakEntry {
        disturbance: disturbed.what.clone(),
        disturbed: disturbed.environment.clone(),
        disturbed_cpu: disturbed.cpu,
        disturbed_inside: None,
        measured: measured.to_owned(),
        same_cpu,
        cpus: String::new(),
        inside: String::new(),
        scenario: disturbed.scenario.clone(),
        evidence: None,
        length_ns: fault.map(|fault| fault.size().0),
        injected: None,
        rest_max_ns: None,
        with_max_ns: None,
        half_at_rest: None,
        half: None,
        full: None,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        slots: [0, 0],
        leak: Leak::NotKnown,
        doubt: Some(Doubt::NotMeasured),
        reason: String::new(),
    }
}

fn cell(
    contents: &Contents,
    plan: &Separation,
    disturbed: &Disturbed,
    measured: &str,
    same_cpu: bool,
    tests: &Tests,
) -> LeakEntry {
    let mut cell = empty(plan, disturbed, measured, same_cpu);
    let row = |name: &str, environment: &str| {
        let own = |row: &&Row| row.result.name == name && row.result.environment == environment;
        contents.rows.iter().find(own)
    };
    let with = row(&disturbed.scenario, measured);
    let rests: Vec<&Row> = plan.rest.iter().filter_map(|name| row(name, measured)).collect();
    let (Some(with), false) = (with, rests.is_empty()) else {
        cell.reason = "it was not asked for in this run".into();
        return cell;
    };
    let at = row(&disturbed.scenario, &disturbed.environment);
    cell.disturbed_inside = at.and_then(|at| inside(&at.result, disturbed.cpu?));
    cell.evidence = lesser(with.result.evidence, at.and_then(|at| at.result.evidence));
    let measured = |row: &&Row| row.result.status == RowStatus::Measured;
    // The last rest is missing where a run was interrupted.
    let rested = rests.iter().find(|row| measured(row)).or(rests.first()).copied();
    let unmeasured = [(Some(with), "with it"), (rested, "at rest")]
        .into_iter()
        .find_map(|(row, what)| Some((row.filter(|row| !measured(row))?, what)));
    if let Some((row, what)) = unmeasured {
        let why = reason(contents, &row.result).unwrap_or_default();
        cell.reason = format!("not measured {what}: {}", clean(&why));
        return cell;
    }
    let rests: Vec<&Row> = rests.into_iter().filter(measured).collect();
    let here = |result: &RowResult, key: &SeriesKey| {
        let outside =
            result.layout.iter().find(|(inside, _)| *inside == key.cpu).map(|(_, outside)| *outside);
        (outside.is_some() && outside == disturbed.cpu) == same_cpu
    };
    let keys: Vec<&SeriesKey> =
        with.result.series().iter().map(|series| &series.key).filter(|key| here(&with.result, key)).collect();
    let inside: CpuSet = keys.iter().map(|key| key.cpu).collect();
    let layout = with.result.layout.iter().filter(|(cpu, _)| inside.contains(*cpu));
    cell.cpus = layout.map(|(_, outside)| *outside).collect::<CpuSet>().to_string();
    cell.inside = inside.to_string();
    if keys.is_empty() {
        cell.doubt = Some(Doubt::NoSuchCpu);
        cell.reason = match disturbed.cpu {
            Some(cpu) if same_cpu => format!("it is not measured on CPU {cpu} of the machine"),
            _ => "it is measured on no other CPU".into(),
        };
        return cell;
    }
    judge(&mut cell, disturbed, (&rests, with), |result, key| here(result, key), tests);
    cell
}

/// Fills in the numbers of a cell and says what they mean.
fn judge(
    cell: &mut LeakEntry,
    disturbed: &Disturbed,
    (rests, with): (&[&Row], &Row),
    here: impl Fn(&RowResult, &SeriesKey) -> bool,
    tests: &Tests,
) {
    let injected = with
        .result
        .injected
        .iter()
        .find(|at| at.environment == disturbed.environment && at.injected.kind == disturbed.what);
    let (length, every) = injected.map_or((cell.length_ns, None), |at| {
        (Some(at.injected.length_ns).filter(|ns| *ns > 0), Some(at.injected.every_ns).filter(|ns| *ns > 0))
    });
    cell.length_ns = length;
    let every = every.or_else(|| every_of(&with.result, disturbed));
    let slot = slot_of(rests.iter().copied().chain([with]), every.unwrap_or(0).max(SLOT_NS));
    let slots = |row: &Row| slots(row, slot, |key| here(&row.result, key));
    let (at_rest, with_it): (Vec<Vec<u64>>, _) =
        (rests.iter().map(|rest| slots(rest)).collect(), slots(with));
    // It is held against each rest by itself: what exceeds one alone is the machine's own drift.
    let ratios: Option<Vec<Ratio>> = at_rest.iter().map(|rest| tests.cells.ratio(rest, &with_it)).collect();
    let ratios = ratios.unwrap_or_default();
    let ratio = ratios.iter().copied().reduce(Ratio::and);
    let most = ratios.iter().zip(&at_rest).map(|(ratio, rest)| ratio.high * median(rest));
    let most = most.fold(0.0, f64::max);
    let at_rest = at_rest.concat();
    cell.slots = [at_rest.len(), with_it.len()];
    let max = |row: &Row| {
        let own = row.result.series().iter().filter(|series| here(&row.result, &series.key));
        own.filter_map(|series| series.summary.max_ns).max()
    };
    (cell.rest_max_ns, cell.with_max_ns) = (rests.iter().filter_map(|rest| max(rest)).max(), max(with));
    if let Some(ratio) = ratio {
        cell.ratio = Some(ratio.estimate);
        cell.ratio_low = Some(ratio.low);
        cell.ratio_high = Some(ratio.high).filter(|high| high.is_finite());
    }
    let Some(ratio) = ratio else {
        cell.reason = "nothing was measured".into();
        return;
    };
    let proven = control(&with.result).is_some_and(|control| control.proven);
    match length {
        None => unsized_leak(cell, ratio),
        Some(length) => {
            let times = every.map(|every| with.result.measured_ns / every.max(1));
            let told = injected.and_then(|at| at.injected.times);
            cell.injected = match (told, times) {
                (Some(told), Some(times)) => Some(told.min(times.max(1))),
                (told, times) => told.or(times),
            };
            let own = |row: &Row, least| seen(row, least, |key| here(&row.result, key));
            let full = whole_size(length, with.result.interval_ns);
            let rested: u64 = rests.iter().map(|rest| rest.result.measured_ns).sum();
            let scale = float(with.result.measured_ns) / float(rested.max(1));
            let at_rest_at_least = |least| {
                let all: u64 = rests.iter().map(|rest| own(rest, least)).sum();
                float(all) * scale
            };
            cell.half = Some(own(with, length / 2));
            cell.half_at_rest = Some(at_rest_at_least(length / 2));
            cell.full = Some(own(with, full).saturating_sub(whole(at_rest_at_least(full).ceil())));
            let typical = median(&at_rest);
            let reached = [&at_rest, &with_it].map(|of| of.iter().filter(|ns| **ns >= length / 2).count());
            let made =
                cell.disturbed == cell.measured && cell.same_cpu && more(reached, cell.slots) <= tests.made;
            sized_leak(cell, length, ratio, &Seen { typical, most, made });
        }
    }
    if cell.leak == Leak::No && !proven && cell.disturbed != cell.measured {
        (cell.leak, cell.doubt) = (Leak::NotKnown, Some(Doubt::Control));
        cell.reason = format!("instrument not proven here: {}", cell.reason);
    }
}

/// A late wake-up shows the length of a block less the part that was over when it fell due.
fn whole_size(length: u64, interval: u64) -> u64 {
    let size = whole(float(length) * SIZE);
    size.min(length.saturating_sub(interval)).max(length / 2)
}

/// What was seen of a disturbance of known size, beside the ratio.
struct Seen {
    /// The typical maximum at rest, in ns.
    typical: f64,
    /// Typical maxima above this are excluded, in ns.
    most: f64,
    /// It is certain, by how many slots of time have it, that it was there.
    made: bool,
}

/// A disturbance of known size.
fn sized_leak(cell: &mut LeakEntry, length: u64, ratio: Ratio, seen: &Seen) {
    let (full, half) = (cell.full.unwrap_or(0), cell.half.unwrap_or(0));
    let rest = cell.half_at_rest.unwrap_or(0.0);
    let injected = cell.injected.unwrap_or(0);
    let often = |count: u64| float(count) >= OFTEN * float(injected.max(1));
    let size = latency(float(length));
    let shown = ratio.low > 1.0 || seen.made;
    let of = format!("{} of {} injections", count(full.min(injected.max(full))), count(injected));
    let (leak, doubt, reason) = if cell.slots.contains(&0) || ratio.low <= 0.0 {
        let [rest, with] = cell.slots;
        (
            Leak::NotKnown,
            Some(Doubt::TooShort),
            format!("too short to tell: {rest} slots of time at rest, {with} with it"),
        )
    } else if shown && often(full) {
        (Leak::Yes, None, format!("seen at its size ({size}) as often as it was made ({of})"))
    } else if shown && full > 0 {
        (Leak::Partly, None, format!("seen at its size ({size}), but not each time ({of})"))
    } else if ratio.low > SLACK {
        (
            Leak::Partly,
            None,
            format!("typical maxima are {} those at rest, below the size of it ({size})", factor(ratio)),
        )
    } else if float(half) > rest {
        let times = if rest > 0.0 { format!(" ({rest:.0} at rest)") } else { String::new() };
        (
            Leak::NotKnown,
            Some(Doubt::TooFew),
            format!("{half} latencies of half its size or more{times}: too few to tell from noise"),
        )
    } else if !seen.most.is_finite() || seen.most >= float(length / 2) {
        let noise = latency(seen.typical);
        (
            Leak::NotKnown,
            Some(Doubt::Noise),
            format!("its own noise (typical maximum {noise}) could hide it ({size})"),
        )
    } else {
        let least = latency(seen.most);
        (
            Leak::No,
            None,
            format!("not seen in {injected} injections; typical maxima above {least} are excluded"),
        )
    };
    (cell.leak, cell.doubt, cell.reason) = (leak, doubt, reason);
}

/// A disturbance that has no size of its own: a load.
fn unsized_leak(cell: &mut LeakEntry, ratio: Ratio) {
    let seen = factor(ratio);
    let (leak, doubt, reason) = if ratio.low <= 0.0 {
        let [rest, with] = cell.slots;
        (
            Leak::NotKnown,
            Some(Doubt::TooShort),
            format!("too short to tell: {rest} slots of time at rest, {with} with it"),
        )
    } else if ratio.low > SLACK && ratio.estimate >= FACTOR {
        (Leak::Yes, None, format!("typical maxima are {seen} those at rest"))
    } else if ratio.low > SLACK {
        (Leak::Partly, None, format!("typical maxima are {seen} those at rest"))
    } else if ratio.high < FACTOR {
        (Leak::No, None, format!("typical maxima are at most {:.2} times those at rest", ratio.high))
    } else {
        (
            Leak::NotKnown,
            Some(Doubt::Noise),
            format!("typical maxima may be up to {:.1} times those at rest: measure longer", ratio.high),
        )
    };
    (cell.leak, cell.doubt, cell.reason) = (leak, doubt, reason);
}

/// "3.1 times (2.0 to 4.4)".
fn factor(ratio: Ratio) -> String {
    let high = if ratio.high.is_finite() { format!("{:.2}", ratio.high) } else { "any".into() };
    format!("{:.2} times ({:.2} to {high})", ratio.estimate, ratio.low)
}

/// How often the fault of a row comes, in ns, as its plan has it.
fn every_of(result: &RowResult, disturbed: &Disturbed) -> Option<u64> {
    let own = |table: &&serde_json::Value| {
        table.get("kind").and_then(|kind| kind.as_str()) == Some(&disturbed.what)
    };
    let table = result.fault.iter().find(own)?;
    table.get("every")?.as_str()?.parse::<tactus_model::Nanos>().ok().map(|every| every.0)
}

/// The CPU of the environment that is this CPU of the machine.
fn inside(result: &RowResult, cpu: u32) -> Option<u32> {
    result.layout.iter().find(|(_, outside)| *outside == cpu).map(|(inside, _)| *inside)
}

/// Emulated numbers make a pair emulated, numbers of a virtual host one of those.
fn lesser(one: Option<Evidence>, other: Option<Evidence>) -> Option<Evidence> {
    let rank = |evidence: Evidence| match evidence {
        Evidence::BareMetal => 0,
        Evidence::VirtualHost => 1,
        Evidence::Imported => 2,
        Evidence::Emulated => 3,
    };
    one.into_iter().chain(other).max_by_key(|evidence| rank(*evidence))
}

/// A slot of time, in ns, at least this long, into which the ticks of these rows go as they are kept: what is held
/// against each other must be equally long.
#[must_use]
pub fn slot_of<'a>(rows: impl Iterator<Item = &'a Row>, least_ns: u64) -> u64 {
    let joined = rows.filter_map(|row| row.ticks.joined_ns()).max();
    joined.map_or(least_ns, |joined| least_ns.next_multiple_of(joined.max(1)))
}

/// The largest latency of every slot of time, in ns. Slots that are not measured to at least a half are
/// left out.
pub fn slots(row: &Row, slot_ns: u64, here: impl Fn(&SeriesKey) -> bool) -> Vec<u64> {
    let own = || row.ticks.iter().filter(|(key, _)| here(key)).map(|(_, stretch)| stretch);
    // Ticks end on their time or a little later: the middle says to which slot one belongs.
    let last = own().map(|stretch| (stretch.last + 1, stretch.at_ns)).max().unwrap_or((1, 0));
    let half = last.1 / last.0.max(1) / 2;
    let mut slots: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for stretch in own() {
        let middle = stretch.at_ns.saturating_sub(half.saturating_mul(stretch.span()));
        let slot = slots.entry(middle / slot_ns.max(1)).or_default();
        slot.0 = slot.0.max(stretch.max_ns.unwrap_or(0));
        slot.1 = slot.1.saturating_add(stretch.cycles).saturating_add(stretch.overruns);
    }
    let most = slots.values().map(|(_, cycles)| *cycles).max().unwrap_or(0);
    slots
        .into_values()
        .filter(|(max, cycles)| *max > 0 && cycles.saturating_mul(2) >= most)
        .map(|(max, _)| max)
        .collect()
}

/// How many latencies of these series were at least this long.
fn seen(row: &Row, least_ns: u64, here: impl Fn(&SeriesKey) -> bool) -> u64 {
    let mut tags: Vec<String> = Vec::new();
    for series in row.result.series().iter().filter(|series| here(&series.key)) {
        let shares = row.result.series_share_cpus();
        tags.push(if shares { series.key.to_string() } else { series.key.cpu.to_string() });
    }
    let own = row.histograms.series.iter().filter(|(tag, _)| tags.contains(tag));
    own.flat_map(|(_, counts)| counts.buckets())
        .filter(|(value, _)| *value >= least_ns)
        .map(|(_, count)| count)
        .sum()
}

fn median(values: &[u64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).map_or(0.0, |value| float(*value))
}
