//! The plan for a machine without a plan.

use std::path::Path;

use tactus_model::Nanos;
use tactus_model::catalogue::Load;
use tactus_model::catalogue::load::Scheduler;
use tactus_model::cpus::CpuRequest;
use tactus_model::plan::{Compare, Environment, Placed, Plan, Scenario};
use tactus_model::scheduling::Policy;

use tactus_environment::{self as environment, Usable};
use tactus_system::System;

/// How long a scenario measures by default.
pub const QUICK_DURATION: Nanos = Nanos::from_secs(10);

/// Kinds that stand for the same thing: the first usable one is measured.
pub const CONTAINERS: [&str; 5] = ["podman", "docker", "oci", "lxc", "nspawn"];

/// The scope of the measurement, if the user gave one.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Environments by their names; empty: the host, a container and a virtual machine.
    pub places: Vec<(String, Environment)>,
    /// On which CPUs.
    pub cpus: Option<CpuRequest>,
    /// The loads, which run together; empty: scheduler load.
    pub loads: Vec<Placed<Load>>,
    /// Whether threads of `SCHED_OTHER` measure, because real-time ones are refused.
    pub ordinary: bool,
}

/// The plan of `tactus run` without a plan: every environment that is asked for, idle and under load.
#[must_use]
pub fn this_machine(scope: &Scope, system: &dyn System) -> Plan {
    let mut plan = Plan {
        name: "this-machine".into(),
        title: Some("This machine".into()),
        // Where and under which load it was measured, the report says: not all of the plan need be done.
        about: Some("Wake-up latency, everywhere with the same probe, CPUs, priority and interval.".into()),
        ..Plan::default()
    };
    plan.quick.duration = Some(QUICK_DURATION);
    plan.defaults.cpus.clone_from(&scope.cpus);
    plan.defaults.policy = scope.ordinary.then_some(Policy::Other);
    let marked = if scope.ordinary { " (SCHED_OTHER)" } else { "" };
    let loads = match &scope.loads[..] {
        [] => vec![Placed { what: Load::Scheduler(Scheduler::default()), environment: None, cpus: None }],
        own => own.to_vec(),
    };
    let what = if scope.loads.is_empty() { "Scheduler load" } else { "Load" };
    let places = if scope.places.is_empty() { everywhere(system) } else { scope.places.clone() };
    for (name, spec) in places {
        let idle = Scenario {
            name: Some(format!("{name} idle{marked}")),
            environment: Some(name.clone()),
            ..Scenario::default()
        };
        let loaded =
            Scenario { name: Some(format!("{name} loaded{marked}")), load: loads.clone(), ..idle.clone() };
        plan.compare.push(Compare {
            name: format!("{what} on {name}"),
            base: idle.name.clone().unwrap_or_default(),
            with: loaded.name.clone().unwrap_or_default(),
            claim: None,
        });
        plan.scenario.extend([idle, loaded]);
        plan.environment.insert(name, spec);
    }
    plan
}

/// The host, the first kind of container that is usable here, and a virtual machine.
fn everywhere(system: &dyn System) -> Vec<(String, Environment)> {
    let usable = |kind: &str| {
        environment::find(kind).is_some_and(|kind| matches!(kind.usable(system), Usable::Yes { .. }))
    };
    let container = CONTAINERS.into_iter().find(|kind| usable(kind)).unwrap_or(CONTAINERS[0]);
    let of = |kind: &str| (kind.to_owned(), Environment { kind: kind.into(), ..Environment::default() });
    ["host", container, "qemu"].map(of).to_vec()
}

/// CAP_SYS_NICE in include/uapi/linux/capability.h.
const CAP_SYS_NICE: u32 = 23;
/// Files of /proc/self are shorter.
const LONGEST: u64 = 1 << 16;

/// Whether this process may have threads of `SCHED_FIFO`: by CAP_SYS_NICE, or by a limit of RLIMIT_RTPRIO. Where that cannot be
/// read it may, and what refuses says why.
#[must_use]
pub fn may_be_real_time(system: &dyn System) -> bool {
    let line = |file: &str, begins: &str| -> Option<String> {
        let bytes = system.read_at_most(Path::new(file), LONGEST).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().find_map(|line| line.strip_prefix(begins)).map(str::to_owned)
    };
    let capable = line("/proc/self/status", "CapEff:")
        .and_then(|shown| u64::from_str_radix(shown.trim(), 16).ok())
        .is_none_or(|granted| granted >> CAP_SYS_NICE & 1 == 1);
    let limited = line("/proc/self/limits", "Max realtime priority")
        .is_some_and(|limits| limits.split_whitespace().next() == Some("0"));
    capable || !limited
}

#[cfg(test)]
mod tests {
    use tactus_system::Memory;

    use super::*;

    #[test]
    fn real_time_threads_need_a_capability_or_a_limit_that_allows_them() {
        let of = |granted: &str, limit: &str| {
            let status = format!("Name:\ttactus\nCapEff:\t{granted}\n");
            let limits = format!("Max realtime priority     {limit}          0\n");
            may_be_real_time(
                &Memory::new().file("/proc/self/status", status).file("/proc/self/limits", limits),
            )
        };
        assert!(of("000001ffffffffff", "0"), "root");
        assert!(of("0000000000000000", "95"), "a member of a group for real-time work");
        assert!(!of("0000000000000000", "0"));
        assert!(may_be_real_time(&Memory::new()), "nobody knows");
    }
}
