//! TuneD's `cpu-partitioning`.

use super::base::{INTERRUPTS, IRQBALANCE, NETWORK_LATENCY, THREADS, WORKQUEUES};
use super::extra_checks;
use super::realtime::{KSM, KVM};
use super::setting::{Profile, Setting, Value, What, kernel};

/// TuneD's `cpu-partitioning`: polling work on its own CPUs, without real-time priorities.
pub static CPU_PARTITIONING: Profile = Profile {
    name: "cpu-partitioning",
    summary: "polling work on dedicated CPUs, without real-time priorities",
    parent: Some(&NETWORK_LATENCY),
    settings: &[
        WORKQUEUES[0],
        WORKQUEUES[1],
        WORKQUEUES[2],
        WORKQUEUES[3],
        kernel("nohz", Value::Is("on"), "nohz-full"),
        kernel("nohz_full", Value::Isolated("{}"), "nohz-full"),
        kernel("rcu_nocbs", Value::Isolated("{}"), "rcu-nocbs"),
        kernel("tuned.non_isolcpus", Value::HousekeepingMask, ""),
        kernel("systemd.cpu_affinity", Value::Housekeeping, "systemd-cpu-affinity"),
        kernel("intel_pstate", Value::OnX86("disable"), "pstate-driver"),
        kernel("nosoftlockup", Value::Is(""), "watchdogs"),
        Setting::new(
            What::DropIn("system.conf", "Manager", "CPUAffinity"),
            Value::Housekeeping,
            "systemd-cpu-affinity",
        ),
        IRQBALANCE,
        INTERRUPTS,
        THREADS,
        KSM,
        KVM[0],
        KVM[1],
        KVM[2],
    ],
    beyond: extra_checks::PARTITIONING,
    guest: false,
    host: false,
};

/// The same with TuneD's variable `no_balance_cores` set to all isolated CPUs: "cpu-partitioning
/// (isolcpus)" in redhat-openstack-2018.
pub static WITH_ISOLCPUS: Profile = Profile {
    name: "cpu-partitioning-isolcpus",
    summary: "cpu-partitioning whose isolated CPUs are not balanced (no_balance_cores)",
    parent: Some(&CPU_PARTITIONING),
    settings: &[kernel("isolcpus", Value::Isolated("{}"), "isolcpus")],
    beyond: extra_checks::PARTITIONING,
    guest: false,
    host: false,
};
