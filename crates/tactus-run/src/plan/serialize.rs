//! A resolved plan as a bundle keeps it.

use std::collections::{BTreeMap, BTreeSet};

use tactus_model::Nanos;
use tactus_model::cpus::CpuRequest;
use tactus_model::message::{Peer, What};
use tactus_model::plan::{self, Figure, FigureKind, Page, Plan, Scenario, Technology};

use super::resolved::{ResolvedActivity, ResolvedEnvironment, ResolvedScenario};

/// The plan with every value filled in: running it again on this machine does the same.
pub(super) fn written(
    plan: &Plan,
    scenarios: &[ResolvedScenario],
    environments: &BTreeMap<String, ResolvedEnvironment>,
) -> Plan {
    let scenario = |resolved: &ResolvedScenario| Scenario {
        name: Some(resolved.name.clone()),
        duration: Some(Nanos(resolved.whole_ns())),
        repeat: resolved.repeat.map(|(_, of)| of),
        interleave: resolved.slice.map(|_| Nanos(resolved.duration_ns)),
        restart: (resolved.restart > 0).then_some(resolved.restart),
        dead_after: resolved.dead_after,
        tick: Some(Nanos(resolved.tick_ns)),
        control: Some(resolved.control.clone()),
        no_side_effects: Some(resolved.no_side_effects),
        settings: resolved.settings.clone(),
        cache_misses: resolved.cache_misses,
        kvm_exits: resolved.kvm_exits.then_some(true),
        blame_above: resolved.blame_above.map(Nanos),
        partition: resolved.partition,
        require: resolved.require.clone(),
        host: resolved.host.clone(),
        idle: resolved.idle.clone(),
        skip: plan
            .scenario
            .iter()
            .find(|own| own.name.as_ref() == Some(&resolved.name))
            .and_then(|own| own.skip.clone()),
        activity: resolved.activities.iter().map(activity).collect(),
        ..Scenario::default()
    };
    let environment = |(name, resolved): (&String, &ResolvedEnvironment)| {
        let cpus = Some(CpuRequest::List(resolved.near.outside()));
        (name.clone(), plan::Environment { cpus, ..resolved.spec.clone() })
    };
    let names: BTreeSet<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
    let has = |name: &String| names.contains(name.as_str());
    Plan {
        defaults: Scenario::default(),
        quick: Scenario::default(),
        environment: environments.iter().map(environment).collect(),
        scenario: in_order(plan, scenarios).into_iter().map(scenario).collect(),
        reference: plan.reference.iter().filter(|r| has(&r.scenario)).cloned().collect(),
        compare: plan.compare.iter().filter(|c| has(&c.base) && has(&c.with)).cloned().collect(),
        figure: plan.figure.iter().filter_map(|figure| left_of(figure, has)).collect(),
        technology: plan.technology.iter().filter_map(|own| technology(own, environments, has)).collect(),
        page: plan.page.iter().filter_map(|own| page(own, environments, has)).collect(),
        ..plan.clone()
    }
}

/// The first run or slice of each scenario, in the plan's order.
fn in_order<'s>(plan: &Plan, scenarios: &'s [ResolvedScenario]) -> Vec<&'s ResolvedScenario> {
    let mut own: Vec<_> = scenarios.iter().filter(|one| one.is_first()).collect();
    let place = |one: &&ResolvedScenario| {
        plan.scenario.iter().position(|scenario| scenario.name.as_ref() == Some(&one.name))
    };
    own.sort_by_key(place);
    own
}

/// The rest of a technology: nothing if its environments are not used.
fn technology(
    own: &Technology,
    environments: &BTreeMap<String, ResolvedEnvironment>,
    has: impl Fn(&String) -> bool,
) -> Option<Technology> {
    let there = environments.contains_key(&own.environment) && environments.contains_key(&own.host);
    let alike = own.alike.iter().filter(|pair| pair.iter().all(&has)).cloned().collect();
    there.then(|| Technology { alike, ..own.clone() })
}

/// The rest of a page: the document's words stay in any case.
fn page(
    own: &Page,
    environments: &BTreeMap<String, ResolvedEnvironment>,
    has: impl Fn(&String) -> bool,
) -> Option<Page> {
    let there = own.environment.as_ref().is_none_or(|name| environments.contains_key(name));
    let scenarios = own.scenarios.iter().filter(|name| has(name)).cloned().collect();
    there.then(|| Page { scenarios, ..own.clone() })
}

/// The rest of a figure when only some scenarios are left. A figure with a separate place for each scenario works
/// without the others; one that compares several does not.
fn left_of(figure: &Figure, has: impl Fn(&String) -> bool) -> Option<Figure> {
    let scenarios: Vec<String> = figure.scenarios.iter().filter(|name| has(name)).cloned().collect();
    let stands = match figure.kind {
        FigureKind::LatencyOverTime | FigureKind::Histogram => scenarios.len() == figure.scenarios.len(),
        FigureKind::PerCore | FigureKind::Matrix | FigureKind::Threads => !scenarios.is_empty(),
    };
    stands.then(|| Figure { scenarios, ..figure.clone() })
}

fn activity(at: &ResolvedActivity) -> plan::Activity {
    let peer = |is: fn(&Peer) -> bool| {
        at.activity.peer.as_ref().filter(|peer| is(peer)).map(|peer| peer.environment().to_owned())
    };
    let mut activity = plan::Activity {
        environment: at.environment.clone(),
        cpus: Some(CpuRequest::List(at.activity.cpus.clone())),
        to: peer(|peer| matches!(peer, Peer::To(_))),
        from: peer(|peer| matches!(peer, Peer::From(_))),
        path: at.path.clone(),
        ..plan::Activity::default()
    };
    match &at.activity.what {
        What::Measure { measure, interval_ns, priority, policy } => {
            activity.measure = Some(measure.clone());
            activity.interval = Some(Nanos(*interval_ns));
            activity.priority = Some(*priority);
            activity.policy = Some(*policy);
        }
        What::Load(load) => activity.load = Some(load.clone()),
        What::Fault(fault) => activity.fault = Some(fault.clone()),
    }
    activity
}
