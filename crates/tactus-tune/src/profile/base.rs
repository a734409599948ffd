//! The settings that all four profiles inherit: TuneD's `latency-performance` and `network-latency`.

use tactus_model::change::Form::{Choice, Plain, Words};

use super::setting::{Profile, Setting, Value, What, file, kernel};

/// TuneD's `latency-performance`.
pub static LATENCY_PERFORMANCE: Profile = Profile {
    name: "latency-performance",
    summary: "deterministic performance at the cost of power",
    parent: None,
    settings: &[
        // force_latency=cstate.id_no_zero:1|3. TuneD holds /dev/cpu_dma_latency open; the constraint of
        // each CPU says the same and needs no process (Documentation/admin-guide/pm/cpuidle.rst).
        Setting::new(
            What::File("/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us", Plain),
            Value::IdleLatency("3"),
            "pm-qos",
        ),
        file(
            "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
            Plain,
            "performance",
            "cpufreq-governor",
        ),
        // energy_perf_bias=performance: 0 in the processor's register.
        file("/sys/devices/system/cpu/cpu*/power/energy_perf_bias", Plain, "0", "epb-epp-hwp"),
        // min_perf_pct=100
        file("/sys/devices/system/cpu/intel_pstate/min_perf_pct", Plain, "100", "cpufreq-pinned"),
        // boost=1, and with intel_pstate no_turbo=0: TuneD wants the fastest clock, not a steady one.
        file("/sys/devices/system/cpu/cpufreq/policy*/boost", Plain, "1", "turbo"),
        file("/sys/devices/system/cpu/intel_pstate/no_turbo", Plain, "0", "turbo"),
        file("/sys/firmware/acpi/platform_profile", Plain, "performance", ""),
        // dirty_bytes=10%, dirty_background_bytes=3%: TuneD writes a percentage to the ratio.
        file("/proc/sys/vm/dirty_ratio", Plain, "10", "dirty-writeback"),
        file("/proc/sys/vm/dirty_background_ratio", Plain, "3", "dirty-writeback"),
        file("/proc/sys/vm/swappiness", Plain, "10", "swap"),
    ],
    beyond: &[],
    guest: false,
    host: false,
};

/// TuneD's `network-latency`.
pub static NETWORK_LATENCY: Profile = Profile {
    name: "network-latency",
    summary: "latency-performance for the network",
    parent: Some(&LATENCY_PERFORMANCE),
    settings: &[
        file("/sys/kernel/mm/transparent_hugepage/enabled", Choice, "never", "thp"),
        file("/proc/sys/net/core/busy_read", Plain, "50", "busy-poll"),
        file("/proc/sys/net/core/busy_poll", Plain, "50", "busy-poll"),
        file("/proc/sys/net/ipv4/tcp_fastopen", Plain, "3", ""),
        file("/proc/sys/kernel/numa_balancing", Plain, "0", "numa-balancing"),
        file("/proc/sys/kernel/hung_task_timeout_secs", Words, "600", "hung-task"),
        file("/proc/sys/kernel/nmi_watchdog", Plain, "0", "watchdogs"),
        file("/proc/sys/vm/stat_interval", Plain, "10", "vmstat-interval"),
        file("/proc/sys/kernel/timer_migration", Plain, "0", "timer-migration"),
        // [selinux] avc_cache_threshold, since TuneD 2.28.
        file("/sys/fs/selinux/avc/cache_threshold", Plain, "8192", "selinux-avc-cache"),
        kernel("skew_tick", Value::Is("1"), "skew-tick"),
        kernel("tsc", Value::OnX86("reliable"), "clocksource"),
        kernel("rcupdate.rcu_normal_after_boot", Value::Is("1"), "rcu-expedited"),
        kernel("rcutree.nohz_full_patience_delay", Value::Is("1000"), "nohz-full-patience"),
    ],
    beyond: &[],
    guest: false,
    host: false,
};

/// Common settings of `[sysfs]`, `[irqbalance]` and `[scheduler] isolated_cores` in `realtime` and
/// `cpu-partitioning`.
pub const WORKQUEUES: [Setting; 4] = [
    mask("/sys/bus/workqueue/devices/writeback/cpumask"),
    mask("/sys/devices/virtual/workqueue/cpumask"),
    mask("/sys/devices/virtual/workqueue/*/cpumask"),
    file("/sys/devices/system/machinecheck/machinecheck*/ignore_ce", Plain, "1", "mce-polling"),
];

/// `[irqbalance] banned_cpus`, in a drop-in of its unit rather than in a file of its package.
pub const IRQBALANCE: Setting = Setting::new(
    What::DropIn("irqbalance.service", "Service", "Environment"),
    Value::Isolated("IRQBALANCE_BANNED_CPULIST={}"),
    "irqbalance",
);

/// `[scheduler] isolated_cores`: interrupts and threads leave the isolated CPUs.
pub const INTERRUPTS: Setting = Setting::new(What::Interrupts, Value::Housekeeping, "irq-affinity");
/// See [`INTERRUPTS`].
pub const THREADS: Setting = Setting::new(What::Threads, Value::Housekeeping, "foreign-tasks");

const fn mask(path: &'static str) -> Setting {
    Setting::new(
        What::File(path, tactus_model::change::Form::Mask),
        Value::HousekeepingMask,
        "workqueue-cpumask",
    )
}
