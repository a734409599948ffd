//! The plan for a machine that nobody wrote one for.

use tactus_model::Nanos;
use tactus_model::catalogue::Load;
use tactus_model::catalogue::load::Scheduler;
use tactus_model::plan::{Compare, Environment, Placed, Plan, Scenario};

use tactus_environment::{self as environment, Usable};
use tactus_system::System;

/// How long a scenario of `--quick` measures.
pub const QUICK_DURATION: Nanos = Nanos::from_secs(10);

/// Kinds that stand for the same thing: the first usable one is measured.
pub const CONTAINERS: [&str; 5] = ["podman", "docker", "oci", "lxc", "nspawn"];

/// The plan of `tactus run` without an argument: every environment that this machine has, idle and
/// under scheduler load.
#[must_use]
pub fn this_machine(system: &dyn System) -> Plan {
    let usable = |kind: &str| {
        environment::find(kind).is_some_and(|kind| matches!(kind.usable(system), Usable::Yes { .. }))
    };
    let container = CONTAINERS.into_iter().find(|kind| usable(kind)).unwrap_or(CONTAINERS[0]);
    let kinds = ["host", container, "qemu"];
    let mut plan = Plan {
        name: "this-machine".into(),
        title: Some("This machine".into()),
        // Where and under which load it was measured, the report says: not all of the plan need be done.
        about: Some("Wake-up latency, everywhere with the same probe, CPUs, priority and interval.".into()),
        ..Plan::default()
    };
    plan.quick.duration = Some(QUICK_DURATION);
    for kind in kinds {
        plan.environment.insert(kind.into(), Environment { kind: kind.into(), ..Environment::default() });
        let idle = Scenario {
            name: Some(format!("{kind}, idle")),
            environment: Some(kind.into()),
            ..Scenario::default()
        };
        let load = Placed { what: Load::Scheduler(Scheduler::default()), environment: None, cpus: None };
        let loaded = Scenario { name: Some(format!("{kind}, loaded")), load: vec![load], ..idle.clone() };
        plan.scenario.extend([idle, loaded]);
        plan.compare.push(Compare {
            name: format!("Scheduler load on {kind}"),
            base: format!("{kind}, idle"),
            with: format!("{kind}, loaded"),
            claim: None,
        });
    }
    plan
}
