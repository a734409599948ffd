//! TuneD's `realtime`, `realtime-virtual-host` and `realtime-virtual-guest`.

use tactus_model::change::Form::Plain;

use super::base::{INTERRUPTS, IRQBALANCE, NETWORK_LATENCY, THREADS, WORKQUEUES};
use super::extra_checks;
use super::setting::{Profile, Setting, Value, What, file, kernel};

/// TuneD's `realtime`.
pub static REALTIME: Profile = Profile {
    name: "realtime",
    summary: "real-time work on isolated CPUs of this machine",
    parent: Some(&NETWORK_LATENCY),
    settings: &[
        file("/proc/sys/kernel/sched_rt_runtime_us", Plain, "-1", "rt-throttling"),
        WORKQUEUES[0],
        WORKQUEUES[1],
        WORKQUEUES[2],
        WORKQUEUES[3],
        kernel("isolcpus", Value::Isolated("managed_irq,domain,{}"), "isolcpus"),
        kernel("intel_pstate", Value::OnlyOn("GenuineIntel", "disable"), "pstate-driver"),
        kernel("amd_pstate", Value::OnlyOn("AuthenticAMD", "disable"), "pstate-driver"),
        kernel("nosoftlockup", Value::Is(""), "watchdogs"),
        IRQBALANCE,
        INTERRUPTS,
        THREADS,
    ],
    beyond: extra_checks::REALTIME,
    guest: false,
    host: false,
};

/// Boot parameters of both virtual profiles, and the threads of the kernel that must not starve
/// behind a real-time thread.
const NOHZ: [Setting; 4] = [
    kernel("nohz", Value::Is("on"), "nohz-full"),
    kernel("nohz_full", Value::Isolated("{}"), "nohz-full"),
    kernel("rcu_nocbs", Value::Isolated("{}"), "rcu-nocbs"),
    kernel("irqaffinity", Value::Housekeeping, "irq-default-affinity"),
];
const GROUPS: [Setting; 5] = [
    group("ksoftirqd/", "FIFO 2"),
    group("ktimers/", "FIFO 2"),
    group("rcuc/", "FIFO 4"),
    group("rcub/", "FIFO 4"),
    group("ktimersoftd/", "FIFO 3"),
];

const fn group(beginning: &'static str, scheduling: &'static str) -> Setting {
    Setting::new(What::Group(beginning), Value::Is(scheduling), "rcu-softirq-priority")
}

/// The settings that TuneD's `setup_kvm_mod_low_latency` writes to modprobe.d, and `disable_ksm`.
pub const KVM: [Setting; 3] = [
    Setting::new(What::Module("kvm", "kvmclock_periodic_sync"), Value::Is("0"), "kvmclock-sync"),
    Setting::new(What::Module("kvm", "nx_huge_pages"), Value::Is("0"), "nx-huge-pages"),
    Setting::new(What::Module("kvm_intel", "ple_gap"), Value::Is("0"), "ple"),
];
/// All pages that are shared are unmerged: `2`.
pub const KSM: Setting = file("/sys/kernel/mm/ksm/run", Plain, "2", "ksm");

/// TuneD's `realtime-virtual-host`.
pub static VIRTUAL_HOST: Profile = Profile {
    name: "realtime-virtual-host",
    summary: "a machine whose isolated CPUs run real-time virtual machines",
    parent: Some(&REALTIME),
    settings: &[
        NOHZ[0], NOHZ[1], NOHZ[2], NOHZ[3], GROUPS[0], GROUPS[1], GROUPS[2], GROUPS[3], GROUPS[4], KSM,
        KVM[0], KVM[1], KVM[2],
    ],
    beyond: extra_checks::VIRTUAL_HOST,
    guest: false,
    host: true,
};

/// TuneD's `realtime-virtual-guest`.
pub static VIRTUAL_GUEST: Profile = Profile {
    name: "realtime-virtual-guest",
    summary: "real-time work on isolated CPUs of a virtual machine",
    parent: Some(&REALTIME),
    settings: &[NOHZ[0], NOHZ[1], NOHZ[2], NOHZ[3], GROUPS[0], GROUPS[1], GROUPS[2], GROUPS[3], GROUPS[4]],
    beyond: extra_checks::VIRTUAL_GUEST,
    guest: true,
    host: false,
};
