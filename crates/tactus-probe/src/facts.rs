//! Facts: raw readings of the system in one pass. Nothing here judges; whoever reads them does.
//!
//! A name is the path that was read. `*` in the tables stands for every entry of a directory; what a
//! pattern does not meet is not there and is left out. What the first table names is recorded even
//! when it is absent, since its absence says something.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit};
use tactus_model::facts::{Facts, MAX_READING, Reading};

use crate::clock::Pair;
use crate::measure::thread::allowed;

/// Readings whose absence matters.
const FILES: &[&str] = &[
    "/proc/cmdline",
    "/proc/version",
    "/proc/interrupts",
    "/proc/stat",
    "/proc/meminfo",
    "/proc/swaps",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/self/cgroup",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/self/uid_map",
    "/proc/irq/default_smp_affinity",
    "/sys/kernel/realtime",
    "/sys/hypervisor/type",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
    "/sys/devices/system/cpu/present",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/cpu/cpuidle/current_driver",
    "/sys/devices/system/cpu/cpuidle/current_governor",
    "/sys/devices/system/cpu/intel_pstate/status",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/amd_pstate/status",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    "/sys/kernel/mm/ksm/run",
    "/sys/fs/selinux/enforce",
    "/sys/module/pcie_aspm/parameters/policy",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/sched_rt_period_us",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/soft_watchdog",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/kernel/watchdog_thresh",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/printk",
    "/proc/sys/kernel/hung_task_timeout_secs",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/dirty_writeback_centisecs",
    "/proc/sys/vm/nr_hugepages",
    "/dev/cpu_dma_latency",
];

/// Readings that are there on some systems.
const PATTERNS: &[&str] = &[
    "/etc/os-release",
    "/proc/device-tree/model",
    "/proc/device-tree/hypervisor/compatible",
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/*/effective_affinity_list",
    "/proc/sys/kernel/sched_deadline_period_max_us",
    "/proc/sys/kernel/sched_deadline_period_min_us",
    "/proc/sys/kernel/sched_energy_aware",
    "/proc/sys/kernel/sched_rr_timeslice_ms",
    "/proc/sys/kernel/tainted",
    "/proc/sys/net/core/rps_sock_flow_entries",
    "/sys/class/dmi/id/bios_date",
    "/sys/class/dmi/id/bios_vendor",
    "/sys/class/dmi/id/bios_version",
    "/sys/class/dmi/id/board_name",
    "/sys/class/dmi/id/chassis_type",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/product_version",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/net/*/device/numa_node",
    "/sys/class/net/*/queues/rx-*/rps_cpus",
    "/sys/class/tty/console/active",
    "/sys/devices/system/clockevents/clockevent*/current_device",
    "/sys/devices/system/clockevents/broadcast/current_device",
    "/sys/devices/system/cpu/cpu*/cache/index*/coherency_line_size",
    "/sys/devices/system/cpu/cpu*/cache/index*/id",
    "/sys/devices/system/cpu/cpu*/cache/index*/level",
    "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list",
    "/sys/devices/system/cpu/cpu*/cache/index*/size",
    "/sys/devices/system/cpu/cpu*/cache/index*/type",
    "/sys/devices/system/cpu/cpu*/cache/index*/ways_of_associativity",
    "/sys/devices/system/cpu/cpu*/cpufreq/base_frequency",
    "/sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq",
    "/sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_min_freq",
    "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_driver",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_min_freq",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/default_status",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/latency",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/name",
    "/sys/devices/system/cpu/cpu*/microcode/version",
    "/sys/devices/system/cpu/cpu*/power/energy_perf_bias",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count",
    "/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count",
    "/sys/devices/system/cpu/cpu*/topology/cluster_cpus_list",
    "/sys/devices/system/cpu/cpu*/topology/core_cpus_list",
    "/sys/devices/system/cpu/cpu*/topology/core_id",
    "/sys/devices/system/cpu/cpu*/topology/die_id",
    "/sys/devices/system/cpu/cpu*/topology/package_cpus_list",
    "/sys/devices/system/cpu/cpu*/topology/physical_package_id",
    "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
    "/sys/devices/system/cpu/vulnerabilities/*",
    "/sys/devices/system/machinecheck/machinecheck0/check_interval",
    "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
    "/sys/devices/system/node/node*/cpulist",
    "/sys/devices/system/node/node*/distance",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/firmware/devicetree/base/model",
    "/sys/fs/cgroup/cgroup.controllers",
    "/sys/fs/cgroup/cpu/cpu.rt_runtime_us",
    "/sys/fs/cgroup/cpu/cpu.rt_period_us",
    "/sys/fs/cgroup/cpuset.cpus.effective",
    "/sys/fs/cgroup/cpuset.cpus.isolated",
    "/sys/fs/cgroup/cpuset/cpuset.cpus",
    "/sys/fs/resctrl/schemata",
    "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
    "/sys/kernel/debug/sched/preempt",
    "/sys/kernel/mm/hugepages/*/nr_hugepages",
    "/sys/kernel/rcu_expedited",
    "/sys/kernel/rcu_normal",
    "/sys/kernel/tracing/current_tracer",
    "/sys/module/kvm/parameters/*",
    "/sys/module/kvm_amd/parameters/*",
    "/sys/module/kvm_intel/parameters/*",
    "/sys/module/rcutree/parameters/kthread_prio",
    "/sys/module/rcutree/parameters/use_softirq",
    "/sys/module/workqueue/parameters/power_efficient",
];

/// Readings of the own cgroup, below its directory.
const OF_CGROUP: &[&str] = &[
    "cpu.max",
    "cpu.weight",
    "cpu.stat",
    "cpu.rt_runtime_us",
    "cpu.rt_period_us",
    "cpu.cfs_quota_us",
    "cpu.shares",
    "cpuset.cpus",
    "cpuset.cpus.effective",
    "cpuset.effective_cpus",
    "cpuset.cpus.partition",
    "cpuset.cpu_exclusive",
    "memory.max",
];

/// Reads everything.
pub fn collect() -> Facts {
    let began = counts_evenly().then(Pair::read);
    let mut facts = Facts::default();
    for path in FILES {
        let reading = read(path).unwrap_or(Reading::Absent);
        facts.0.insert((*path).to_owned(), reading);
    }
    for pattern in PATTERNS {
        expand(&mut facts, "", pattern);
    }
    keep_cpuinfo(&mut facts);
    keep_cgroup(&mut facts);
    keep_system(&mut facts);
    if let Some(hertz) = began.and_then(|began| began.to(Pair::read())).map(crate::clock::Scale::hertz) {
        facts.keep("cpu:tsc_hz", hertz.to_string());
    }
    facts
}

/// Reads a file; `None` when there is none.
fn read(path: &str) -> Option<Reading> {
    // The device answers with four bytes, not with text.
    if path == "/dev/cpu_dma_latency" {
        let bytes = fs::read(path).map(|bytes| <[u8; 4]>::try_from(bytes.as_slice()).map(i32::from_ne_bytes));
        return Some(match bytes {
            Ok(Ok(us)) => Reading::Text(us.to_string()),
            Ok(Err(_)) => Reading::Unreadable("not four bytes".into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Reading::Unreadable(error.to_string()),
        });
    }
    match read_some(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let mut kept = Facts::default();
            kept.keep("", text.trim_end_matches(['\n', '\0']));
            kept.0.remove("")
        }
        Err(error) if is_absent(&error) => None,
        Err(error) => Some(Reading::Unreadable(error.to_string())),
    }
}

/// The beginning of a file, as much as a reading can hold and a little more, so that it is known to
/// be cut. With as few system calls as possible: there are hundreds of files.
fn read_some(path: &str) -> io::Result<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    // On the stack: musl's allocator would map and unmap memory for each of them.
    let mut bytes = [0; MAX_READING + 4];
    let mut length = 0;
    while length < bytes.len() {
        match rustix::io::read(&file, &mut bytes[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(bytes[..length].to_vec())
}

/// No such file, or no such device behind it.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ENXIO | libc::EISDIR)
    )
}

/// Keeps every file that `pattern` (below `done`) meets.
fn expand(facts: &mut Facts, done: &str, pattern: &str) {
    let Some(star) = pattern.find('*') else {
        let path = format!("{done}{pattern}");
        if let Some(reading) = read(&path) {
            facts.0.insert(path, reading);
        }
        return;
    };
    let start = pattern[..star].rfind('/').map_or(0, |slash| slash + 1);
    let end = pattern[star..].find('/').map_or(pattern.len(), |slash| star + slash);
    let (before, after) = (&pattern[start..star], &pattern[star + 1..end]);
    let directory = format!("{done}{}", &pattern[..start]);
    let Ok(entries) = fs::read_dir(&directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let fits = name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after));
        // `cpu*` means the CPUs, not their neighbours `cpuidle` and `cpufreq`.
        let numbered = before != "cpu" || name[before.len()..].bytes().all(|byte| byte.is_ascii_digit());
        if fits && numbered {
            expand(facts, &format!("{directory}{name}"), &pattern[end..]);
        }
    }
}

/// The first processor whole, and of the others what may differ: on a large machine the text would
/// be cut before the last.
fn keep_cpuinfo(facts: &mut Facts) {
    const PATH: &str = "/proc/cpuinfo";
    match fs::read_to_string(PATH) {
        Ok(text) if text.len() <= MAX_READING => facts.keep(PATH, text),
        Ok(text) => facts.keep(PATH, short_cpuinfo(&text)),
        Err(error) => {
            facts.0.insert(PATH.into(), Reading::Unreadable(error.to_string()));
        }
    }
}

fn short_cpuinfo(text: &str) -> String {
    let mut blocks = text.split("\n\n");
    let mut short = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        short.push_str("\n\n");
        for line in block.lines() {
            if ["processor", "model name", "cpu MHz", "microcode"].iter().any(|key| line.starts_with(key)) {
                short.push_str(line);
                short.push('\n');
            }
        }
    }
    short
}

/// Readings of the cgroups that this process is in, as far as they are mounted in the usual places.
fn keep_cgroup(facts: &mut Facts) {
    let Ok(text) = fs::read_to_string("/proc/self/cgroup") else { return };
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mounts: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            "cpu" | "cpu,cpuacct" => &["/sys/fs/cgroup/cpu"],
            "cpuset" => &["/sys/fs/cgroup/cpuset"],
            _ => continue,
        };
        let path = path.trim_end_matches('/');
        for mount in mounts {
            for name in OF_CGROUP {
                let path = format!("{mount}{path}/{name}");
                if let Some(reading) = read(&path) {
                    facts.0.insert(path, reading);
                }
            }
        }
    }
}

/// What is no file.
fn keep_system(facts: &mut Facts) {
    let uname = rustix::system::uname();
    for (name, text) in [
        ("uname:sysname", uname.sysname()),
        ("uname:nodename", uname.nodename()),
        ("uname:release", uname.release()),
        ("uname:version", uname.version()),
        ("uname:machine", uname.machine()),
    ] {
        facts.keep(name, text.to_string_lossy());
    }
    facts.keep("sched:affinity", allowed().to_string());
    for (name, resource) in [("limit:rtprio", Resource::Rtprio), ("limit:memlock", Resource::Memlock)] {
        let text = getrlimit(resource).current.map_or("unlimited".to_owned(), |limit| limit.to_string());
        facts.keep(name, text);
    }
    facts.keep("probe:version", env!("CARGO_PKG_VERSION"));
    for (name, path) in [("device:kvm", "/dev/kvm"), ("device:msr", "/dev/cpu/0/msr")] {
        facts.keep(name, if Path::new(path).exists() { "present" } else { "absent" });
    }
}

/// Whether the processor's own clock can be read and runs evenly.
fn counts_evenly() -> bool {
    crate::clock::is_even(std::env::consts::ARCH, &fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_finds_what_the_run_needs() {
        let facts = collect();
        for name in [
            "/proc/cmdline",
            "/proc/cpuinfo",
            "/sys/devices/system/cpu/online",
            "uname:release",
            "sched:affinity",
        ] {
            assert!(facts.text(name).is_some_and(|text| !text.is_empty()), "{name}");
        }
        let topology = tactus_model::topology::Topology::of(&facts);
        assert!(!topology.measuring().is_empty());
    }

    #[test]
    fn absence_is_recorded_where_it_says_something() {
        let facts = collect();
        assert!(FILES.iter().all(|path| facts.0.contains_key(*path)));
        assert_eq!(read("/proc/no/such/file"), None);
    }

    #[test]
    fn a_star_meets_the_cpus_and_not_their_neighbours() {
        let mut facts = Facts::default();
        expand(&mut facts, "", "/sys/devices/system/cpu/cpu*/topology/core_id");
        assert!(!facts.0.is_empty());
        assert!(facts.0.keys().all(|name| !name.contains("cpuidle") && name.ends_with("/topology/core_id")));
    }

    #[test]
    fn a_large_cpuinfo_keeps_its_first_processor_and_the_names_of_all() {
        let block = |cpu: u32| {
            format!(
                "processor\t: {cpu}\nmodel name\t: X\nflags\t\t: fpu hypervisor\nmicrocode\t: 0x{cpu:x}\n"
            )
        };
        let text = (0..3).map(block).collect::<Vec<_>>().join("\n");
        let short = short_cpuinfo(&text);
        assert_eq!(short.matches("flags").count(), 1);
        assert_eq!(short.matches("processor\t").count(), 3);
        assert_eq!(short.matches("microcode").count(), 3);
    }
}
