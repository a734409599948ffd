//! Everything that a check or a profile may set on a system. The code that makes or reverts changes refuses every
//! other setting: a journal is a list of values of these settings, and of nothing else.

use tactus_model::change::Target;

/// Files of `/proc` and `/sys`; each `*` stands for part of one name.
const FILES: &[&str] = &[
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/hung_task_timeout_secs",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/printk",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/soft_watchdog",
    "/proc/sys/kernel/split_lock_mitigate",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/net/core/busy_poll",
    "/proc/sys/net/core/busy_read",
    "/proc/sys/net/core/rps_default_mask",
    "/proc/sys/net/ipv4/tcp_fastopen",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/sys/bus/workqueue/devices/writeback/cpumask",
    "/sys/class/net/*/queues/rx-*/rps_cpus",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_min_freq",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/power/energy_perf_bias",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/cpufreq/policy*/boost",
    "/sys/devices/system/cpu/intel_pstate/min_perf_pct",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/edac/mc/mc*/sdram_scrub_rate",
    "/sys/devices/system/machinecheck/machinecheck*/ignore_ce",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/firmware/acpi/platform_profile",
    "/sys/fs/selinux/avc/cache_threshold",
    "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled",
    "/sys/kernel/rcu_normal",
    "/sys/kernel/tracing/current_tracer",
    "/sys/module/kvm/parameters/halt_poll_ns",
    "/sys/module/kvm/parameters/lapic_timer_advance_ns",
    "/sys/module/kvm/parameters/nx_huge_pages",
    "/sys/module/kvm/parameters/nx_huge_pages_recovery_ratio",
    "/sys/module/kvm/parameters/pi_inject_timer",
    "/sys/module/pcie_aspm/parameters/policy",
];

/// Parameters of the kernel's command line.
const KERNEL: &[&str] = &[
    "amd_pstate",
    "audit",
    "clocksource",
    "cpuidle_haltpoll.force",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "iommu.passthrough",
    "irqaffinity",
    "isolcpus",
    "kvm-arm.wfi_trap_policy",
    "mce",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "pcie_aspm.policy",
    "preempt",
    "processor.max_cstate",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.rcu_normal_after_boot",
    "rcutree.nohz_full_patience_delay",
    "skew_tick",
    "systemd.cpu_affinity",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "tuned.non_isolcpus",
];

/// Parameters that modules read when they are loaded.
const MODULES: &[(&str, &[&str])] = &[
    ("cpuidle_haltpoll", &["force"]),
    ("kvm", &["halt_poll_ns", "kvmclock_periodic_sync", "lapic_timer_advance", "nx_huge_pages"]),
    ("kvm_amd", &["avic", "npt", "pause_filter_count"]),
    ("kvm_intel", &["enable_apicv", "ept", "ple_gap"]),
];

/// Services that are started or stopped.
const SERVICES: &[&str] = &["fwupd-refresh.timer", "stalld.service"];

/// Settings of the service manager and of units: unit, section, key.
const DROP_INS: &[(&str, &str, &str)] = &[
    ("irqbalance.service", "Service", "Environment"),
    ("machine.slice", "Slice", "AllowedCPUs"),
    ("system.conf", "Manager", "CPUAffinity"),
];

/// Whether a check or a profile may set this.
#[must_use]
pub fn is_settable(target: &Target) -> bool {
    match target {
        Target::File { path, .. } => is_file(path),
        Target::Kernel { parameter } => is_kernel_parameter(parameter),
        Target::Module { module, parameter } => is_module_parameter(module, parameter),
        Target::Scheduling(_) | Target::Affinity(_) => true,
        Target::Service { unit } => is_service(unit),
        Target::DropIn { unit, section, key } => DROP_INS.contains(&(unit, section, key)),
    }
}

/// Whether a check or a profile may write to this file of `/proc` or `/sys`.
#[must_use]
pub fn is_file(path: &str) -> bool {
    FILES.iter().any(|pattern| is_of_pattern(path, pattern))
}

/// The parameters of the kernel's command line that a check or a profile may set.
pub fn kernel_parameters() -> impl Iterator<Item = &'static str> {
    KERNEL.iter().copied()
}

/// Whether a check or a profile may set this parameter of the kernel's command line.
#[must_use]
pub fn is_kernel_parameter(name: &str) -> bool {
    KERNEL.contains(&name)
}

/// Whether a check or a profile may set this parameter of a module.
#[must_use]
pub fn is_module_parameter(module: &str, parameter: &str) -> bool {
    MODULES.iter().any(|(name, parameters)| *name == module && parameters.contains(&parameter))
}

/// Whether a check or a profile may start or stop this unit.
#[must_use]
pub fn is_service(unit: &str) -> bool {
    SERVICES.contains(&unit)
}

/// Whether a check or a profile has a setting for this unit, `system.conf` among them.
#[must_use]
pub fn has_drop_in(unit: &str) -> bool {
    DROP_INS.iter().any(|(name, ..)| *name == unit)
}

/// Whether a path is of a pattern whose `*` stand for parts of one name.
#[must_use]
pub fn is_of_pattern(path: &str, pattern: &str) -> bool {
    let (mut path, mut pattern) = (path.split('/'), pattern.split('/'));
    loop {
        match (path.next(), pattern.next()) {
            (None, None) => return true,
            (Some(name), Some(part)) => {
                let good = match part.split_once('*') {
                    None => name == part,
                    Some((front, back)) => {
                        name.len() > front.len() + back.len()
                            && ![".", ".."].contains(&name)
                            && name.starts_with(front)
                            && name.ends_with(back)
                            // cpu* is cpu0, not cpufreq.
                            && (front != "cpu" || name[front.len()..].bytes().all(|b| b.is_ascii_digit()))
                    }
                };
                if !good {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_part_of_one_name() {
        let pattern = "/sys/devices/system/cpu/cpu*/power/energy_perf_bias";
        assert!(is_of_pattern("/sys/devices/system/cpu/cpu12/power/energy_perf_bias", pattern));
        for other in [
            "/sys/devices/system/cpu/cpufreq/power/energy_perf_bias",
            "/sys/devices/system/cpu/cpu1/x/power/energy_perf_bias",
            "/sys/devices/system/cpu/cpu/power/energy_perf_bias",
            "/sys/devices/system/cpu/cpu1/power",
            "",
        ] {
            assert!(!is_of_pattern(other, pattern), "{other}");
        }
        assert!(!is_of_pattern("/sys/class/net/../queues/rx-0/rps_cpus", FILES[24]), "{}", FILES[24]);
    }

    #[test]
    fn what_names_a_program_or_ends_a_guard_of_the_kernel_is_no_setting() {
        for path in [
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/proc/sys/kernel/hotplug",
            "/proc/sys/kernel/randomize_va_space",
            "/proc/sysrq-trigger",
            "/sys/kernel/uevent_helper",
            "/sys/class/net/../../kernel/uevent_helper",
            "/sys/devices/virtual/workqueue/../cpumask",
            "/proc/irq/../smp_affinity_list",
            "/proc/sys/vm/swappiness/",
            "proc/sys/vm/swappiness",
        ] {
            assert!(!is_file(path), "{path}");
        }
        for parameter in ["init", "rdinit", "module.sig_enforce", "mitigations", "lsm", "selinux", ""] {
            assert!(!is_kernel_parameter(parameter), "{parameter}");
        }
    }
}
