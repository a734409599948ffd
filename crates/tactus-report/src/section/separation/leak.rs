//! The environments that a disturbance in one of them reaches: the test is in docs/design/separation.md.

use tactus_model::bundle::{Contents, InjectedIn, Row, RowResult};
use tactus_model::document::{Doubt, Leak, LeakEntry, SeparationEntry};
use tactus_model::event::RowStatus;
use tactus_model::number::float;
use tactus_model::plan::{Disturbed, Separation};
use tactus_model::series::SeriesKey;
use tactus_model::{CpuSet, Evidence};
use tactus_statistics::{Stratum, at_most};

use super::judge::{Size, judge_fault, judge_load};
use super::lock_in::{LockIn, NO_TIMES, WITH_TIMES};
use crate::row::{control, reason};
use crate::units::clean;

/// The chance that any cell of a bundle without leaks is called a leak (Bonferroni).
pub const ERROR: f64 = 0.05;
/// How surely something must be seen.
struct Tests {
    /// In another environment, or on another CPU than it was made on: the chance that any of these cells is
    /// falsely called a leak is [`ERROR`].
    cells: f64,
    /// Where it was made: the chance that any absent disturbance is taken for present is [`ERROR`].
    made: f64,
}

/// The cells of a bundle; `None` where its plan asks for no separation.
#[must_use]
pub fn separation(contents: &Contents) -> Option<SeparationEntry> {
    let plan = contents.plan.separation.as_ref()?;
    let others = plan.environments.len().saturating_sub(plan.absent.len()).saturating_sub(1);
    let tested = (plan.disturbed.len() * others * 2).max(1);
    let tests = Tests {
        cells: ERROR / float(tested as u64),
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
        Leak::Yes | Leak::Sometimes | Leak::Weaker => None,
        Leak::No | Leak::NotSeen => {
            Some(format!("the disturbance was not seen in {place} itself, where it was made"))
        }
        Leak::NotKnown => {
            Some(format!("whether {place} itself, where it was made, saw it is unknown ({})", at.reason))
        }
    }
}

/// A `no` needs a disturbance that was there, and an instrument that would have seen it.
fn doubted(cell: &mut LeakEntry, made: Option<&str>) {
    if matches!(cell.leak, Leak::No | Leak::NotSeen)
        && cell.disturbed != cell.measured
        && let Some(why) = made
    {
        (cell.leak, cell.doubt) = (Leak::NotKnown, Some(Doubt::Source));
        cell.reason = format!("this proves nothing: {why}");
    }
}

/// A cell without numbers.
fn empty(plan: &Separation, disturbed: &Disturbed, measured: &str, same_cpu: bool) -> LeakEntry {
    let fault = plan.disturbance(&disturbed.scenario).and_then(|disturbance| disturbance.fault.as_ref());
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
        stand_out: None,
        by_chance: None,
        with_seen_ns: None,
        at_most: None,
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
    let rests = plan.rest.iter().filter_map(|name| row(name, measured));
    let Some(with) = with else {
        cell.reason = "it was not requested in this run".into();
        return cell;
    };
    let at = row(&disturbed.scenario, &disturbed.environment);
    cell.disturbed_inside = at.and_then(|at| inside(&at.result, disturbed.cpu?));
    cell.evidence = lesser(with.result.evidence, at.and_then(|at| at.result.evidence));
    if with.result.damaged {
        cell.reason = "the bundle is damaged".into();
        return cell;
    }
    let measured = |row: &&Row| row.result.status == RowStatus::Measured;
    if !measured(&with) {
        let why = reason(contents, &with.result).unwrap_or_default();
        cell.reason = format!("not measured: {}", clean(&why));
        return cell;
    }
    let rests: Vec<&Row> = rests.filter(measured).collect();
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
    let max = |row: &Row| {
        let own = row.result.series().iter().filter(|series| here(&row.result, &series.key));
        own.filter_map(|series| series.summary.max_ns).max()
    };
    (cell.rest_max_ns, cell.with_max_ns) = (rests.iter().filter_map(|rest| max(rest)).max(), max(with));
    let made = |made: &&InjectedIn| {
        made.environment == disturbed.environment && made.injected.kind == disturbed.what
    };
    let Some(made) = with.result.injected.iter().find(made) else {
        let (doubt, why) = untold(contents);
        (cell.doubt, cell.reason) = (Some(doubt), why.into());
        return cell;
    };
    let load = plan.disturbance(&disturbed.scenario).is_some_and(|disturbance| disturbance.load.is_some());
    cell.length_ns = Some(made.injected.length_ns).filter(|_| !load);
    let lock_in = LockIn { contents, source: at, with, made, load };
    match lock_in.strata(&keys) {
        Ok(strata) => judge(&mut cell, &strata, with, load, tests),
        Err((doubt, why)) => (cell.doubt, cell.reason) = (Some(doubt), why),
    }
    cell
}

/// The doubt about a disturbance whose times were not reported.
fn untold(contents: &Contents) -> (Doubt, &'static str) {
    if contents.manifest.format < WITH_TIMES {
        (Doubt::NoTimes, NO_TIMES)
    } else {
        (Doubt::NoTimes, "its source did not report when")
    }
}

/// Fills in the numbers of a cell and says what they mean.
fn judge(cell: &mut LeakEntry, strata: &[Stratum], with: &Row, load: bool, tests: &Tests) {
    let own = cell.disturbed == cell.measured;
    let error = if own && cell.same_cpu { tests.made } else { tests.cells };
    let judged = match cell.length_ns {
        Some(length_ns) if !load => {
            judge_fault(strata, Size { length_ns, interval_ns: with.result.interval_ns }, error)
        }
        _ => judge_load(strata, error),
    };
    cell.injected = Some(strata.len() as u64);
    cell.slots = [strata.iter().map(|stratum| stratum.apart(stratum.drawn).count()).sum(), strata.len()];
    cell.with_seen_ns = strata.iter().map(Stratum::with).max();
    (cell.stand_out, cell.by_chance) = judged.stand_out.unzip();
    (cell.half, cell.half_at_rest) = judged.half.unzip();
    cell.full = judged.full;
    cell.ratio = judged.ratio.map(|(estimate, _)| estimate);
    (cell.ratio_low, cell.ratio_high) = judged.ratio.and_then(|(_, interval)| interval).unzip();
    (cell.leak, cell.doubt) = (judged.leak.unwrap_or(Leak::NotKnown), judged.doubt);
    cell.reason = judged.reason;
    if matches!(cell.leak, Leak::No | Leak::NotSeen) {
        cell.at_most = Some(at_most(strata.len()));
        let proven = control(&with.result).is_some_and(|control| control.passed);
        if !proven && !own {
            (cell.leak, cell.doubt) = (Leak::NotKnown, Some(Doubt::Control));
            cell.reason = format!("self-test not passed: {}", cell.reason);
        }
    }
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
