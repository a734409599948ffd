//! The scenarios of a plan's separation: every environment is measured at once, at rest and while one of them is
//! disturbed.
//!
//! All are measured on the same CPUs of the machine, as far as they have any in common, and the disturbance is on one
//! of them. The series on that CPU show the effect on another environment there; all others show the effect
//! elsewhere. So one scenario for each environment and disturbance answers for every ordered pair, with and without a
//! CPU in common (docs/design/separation.md).

use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Timer;
use tactus_model::cpus::CpuRequest;
use tactus_model::plan::{Activity, Disturbed, Plan, Scenario, Separation};
use tactus_model::topology::Topology;
use tactus_model::{CpuSet, Nanos};

use super::PlanError;
use super::resolved::ResolvedEnvironment;

/// Name of the scenario at rest, whose maxima stand beside those with a disturbance; no word follows from it.
pub const AT_REST: &str = "separation: at rest";

/// Why an environment on another machine is in no separation.
const ELSEWHERE: &str = "it is on another machine, which has no CPU in common with this one";

/// Name of the scenario in which `place` is disturbed.
pub fn name(what: &str, place: &str) -> String {
    format!("separation: {what} in {place}")
}

/// Adds the scenarios of the plan's separation, where it has one that is not spelt out yet. `seed` decides the moments
/// of its disturbances, `environment` resolves one by its name.
///
/// # Errors
/// Those of `environment`.
pub fn expand(
    plan: &Plan,
    machine: &Topology,
    seed: u64,
    environment: impl Fn(&str) -> Result<ResolvedEnvironment, PlanError>,
) -> Result<Plan, PlanError> {
    let mut plan = plan.clone();
    let Some(mut separation) = plan.separation.clone().filter(|s| s.rest.is_empty()) else { return Ok(plan) };
    separation.seed.get_or_insert(seed);
    let mut present: Vec<(String, ResolvedEnvironment)> = Vec::new();
    for name in &separation.environments {
        let resolved = environment(name)?;
        let elsewhere = resolved.elsewhere.as_ref().map(|_| ELSEWHERE.to_owned());
        match resolved.obstacle.clone().or(elsewhere) {
            Some(why) => {
                separation.absent.insert(name.clone(), why);
            }
            None => present.push((name.clone(), resolved)),
        }
    }
    if !present.is_empty() {
        let common = common(&present, machine);
        let scenarios = scenarios(&mut separation, &present, &common);
        plan.scenario.extend(scenarios);
    }
    plan.separation = Some(separation);
    Ok(plan)
}

/// CPUs of the machine that the environments are measured on: those that are best measured on, where that
/// leaves two, else all that they have in common. One that has none of these (a partition, a machine
/// elsewhere) is measured on its own.
fn common(present: &[(String, ResolvedEnvironment)], machine: &Topology) -> CpuSet {
    let outside = present.iter().map(|(_, environment)| environment.layout.outside());
    let all = outside.filter(|own| !own.is_empty()).reduce(|all, own| {
        let both = all.and(&own);
        if both.is_empty() { all } else { both }
    });
    let Some(all) = all else { return CpuSet::default() };
    let best = all.and(&machine.measuring());
    if best.len() > 1 { best } else { all }
}

/// CPUs of an environment, as seen inside, that are `cpus` of the machine.
fn inside(environment: &ResolvedEnvironment, cpus: &CpuSet) -> CpuSet {
    let cpus = environment.layout.cpus.iter().filter(|(_, outside)| cpus.contains(*outside));
    cpus.map(|(inside, _)| *inside).collect()
}

/// The CPU of the machine on which an environment is disturbed: the last one in common, else its own last.
fn disturbed_cpu(environment: &ResolvedEnvironment, common: &CpuSet) -> Option<u32> {
    let outside = environment.layout.outside();
    common.and(&outside).last().or_else(|| outside.last())
}

/// Time between two reports: a slot of time in which each disturbance comes once, so that its slots can be
/// told from those at rest.
fn tick(separation: &Separation) -> Option<Nanos> {
    let faults = separation.disturb.iter().filter_map(|disturbance| disturbance.fault.as_ref());
    faults.map(|fault| Nanos(fault.size().1)).max().filter(|every| every.0 >= Nanos::from_secs(1).0)
}

/// The scenario at rest, and one for each disturbance in each environment.
fn scenarios(
    separation: &mut Separation,
    present: &[(String, ResolvedEnvironment)],
    common: &CpuSet,
) -> Vec<Scenario> {
    let measured = || -> Vec<Activity> {
        let timer = |(name, environment): &(String, ResolvedEnvironment)| {
            let cpus = Some(inside(environment, common)).filter(|cpus| !cpus.is_empty());
            Activity {
                measure: Some(Measure::Timer(Timer::default())),
                environment: name.clone(),
                cpus: cpus.map(CpuRequest::List),
                ..Activity::default()
            }
        };
        present.iter().map(timer).collect()
    };
    let (tick, interval) = (tick(separation), separation.interval);
    let scenario = |name: &str, activity| Scenario {
        name: Some(name.into()),
        activity,
        tick,
        interval,
        ..Scenario::default()
    };
    let mut all = vec![scenario(AT_REST, measured())];
    separation.rest = vec![AT_REST.to_owned()];
    for disturbance in &separation.disturb {
        let Some(what) = disturbance.kind() else { continue };
        for (place, environment) in present {
            let name = name(what, place);
            let cpu = disturbed_cpu(environment, common);
            let own = cpu.map(|cpu| inside(environment, &CpuSet::one(cpu)));
            let disturbing = Activity {
                load: disturbance.load.clone(),
                fault: disturbance.fault.clone(),
                environment: place.clone(),
                cpus: own.map(CpuRequest::List).or(Some(CpuRequest::First)),
                ..Activity::default()
            };
            let mut activities = measured();
            activities.push(disturbing);
            all.push(scenario(&name, activities));
            let what = what.to_owned();
            separation.disturbed.push(Disturbed { scenario: name, environment: place.clone(), what, cpu });
        }
    }
    all
}
