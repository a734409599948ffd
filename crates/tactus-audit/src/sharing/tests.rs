//! No text under any name may break the checks of this directory.

use crate::testing::survives;

const NAMES: &[&str] = &[
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/self/cgroup",
    "/proc/self/status",
    "/proc/self/uid_map",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/sys/devices/system/cpu/cpu2/cache/index2/level",
    "/sys/devices/system/cpu/cpu2/cache/index2/shared_cpu_list",
    "/sys/devices/system/cpu/cpu2/cache/index3/id",
    "/sys/devices/system/cpu/cpu2/cache/index3/shared_cpu_list",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/online",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu.stat",
    "/sys/fs/cgroup/cpu.weight",
    "/sys/fs/cgroup/cpu/cpu.rt_runtime_us",
    "/sys/fs/cgroup/cpuset.cpus.effective",
    "/sys/fs/cgroup/cpuset.cpus.partition",
    "/sys/fs/cgroup/cpuset/cpuset.cpus",
    "/sys/fs/resctrl/cpus_list",
    "/sys/fs/resctrl/info/L3/shareable_bits",
    "/sys/fs/resctrl/info/L3_MON/mon_features",
    "/sys/fs/resctrl/rt/cpus_list",
    "/sys/fs/resctrl/rt/schemata",
    "/sys/fs/resctrl/schemata",
    "config:CONFIG_RT_GROUP_SCHED",
    "limit:memlock",
    "limit:rtprio",
    "pci:0000:00:02.0",
    "pci:x",
    "sched:affinity",
    "uname:release",
];

#[test]
fn no_text_makes_a_check_of_caches_and_containers_panic() {
    survives(NAMES);
}
