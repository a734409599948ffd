//! The value of a setting on an untuned system: the kernel's default, for settings that are already made.

use tactus_model::change::Target;

/// Defaults of mainline kernels: kernel/sysctl documentation (admin-guide/sysctl/{kernel,vm}.rst), mm/huge_memory.c,
/// mm/ksm.c, arch/x86/kernel/cpu/mce, kernel/sched. Settings whose default depends on the distribution or the machine
/// (governors, masks, priorities) are not in the table.
const DEFAULTS: &[(&str, &str)] = &[
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
    ("/proc/sys/kernel/timer_migration", "1"),
    ("/proc/sys/kernel/numa_balancing", "1"),
    ("/proc/sys/kernel/nmi_watchdog", "1"),
    ("/proc/sys/kernel/soft_watchdog", "1"),
    ("/proc/sys/kernel/watchdog", "1"),
    ("/proc/sys/kernel/hung_task_timeout_secs", "120"),
    ("/proc/sys/kernel/printk", "7 4 1 7"),
    ("/proc/sys/kernel/split_lock_mitigate", "1"),
    ("/proc/sys/vm/stat_interval", "1"),
    ("/proc/sys/vm/swappiness", "60"),
    ("/proc/sys/vm/compaction_proactiveness", "20"),
    ("/proc/sys/vm/dirty_ratio", "20"),
    ("/proc/sys/vm/dirty_background_ratio", "10"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always"),
    ("/sys/kernel/mm/ksm/run", "1"),
    ("/sys/module/kvm/parameters/halt_poll_ns", "200000"),
];

/// Files of one kind that lie in many directories: where they begin and end, and their default.
const PATTERNS: &[(&str, &str, &str)] = &[
    ("/sys/devices/system/machinecheck/machinecheck", "/ignore_ce", "0"),
    ("/sys/devices/system/cpu/cpu", "/power/pm_qos_resume_latency_us", "0"),
    ("/sys/devices/system/cpu/cpu", "/disable", "0"),
];

/// The default of a setting; `None` if it is unknown.
pub fn default_value(target: &Target) -> Option<&'static str> {
    let Target::File { path, .. } = target else { return None };
    let exact = DEFAULTS.iter().find(|(known, _)| known == path).map(|(_, value)| *value);
    exact.or_else(|| {
        let fits = |(start, end, _): &&(&str, &str, &str)| path.starts_with(start) && path.ends_with(end);
        PATTERNS.iter().find(fits).map(|(_, _, value)| *value)
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::change::Form;

    use super::*;

    #[test]
    fn a_default_is_known_by_its_path_and_otherwise_unknown() {
        let file = |path: &str| Target::File { path: path.into(), form: Form::Plain };
        assert_eq!(default_value(&file("/proc/sys/kernel/timer_migration")), Some("1"));
        assert_eq!(default_value(&file("/sys/devices/system/cpu/cpu3/cpuidle/state2/disable")), Some("0"));
        assert_eq!(default_value(&file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor")), None);
        assert_eq!(default_value(&Target::Kernel { parameter: "isolcpus".into() }), None);
    }
}
