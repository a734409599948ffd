//! No text under any name may break the checks of this directory.

use crate::testing::survives;

const NAMES: &[&str] = &[
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/swaps",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/swappiness",
    "/sys/devices/system/clockevents/clockevent0/current_device",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/node/node0/cpulist",
    "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/free_hugepages",
    "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages",
    "/sys/devices/system/node/node9/hugepages/",
    "/sys/kernel/mm/ksm/pages_sharing",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "dmesg:tsc",
    "process:7:VmLck",
    "process:7:majflt",
    "process:7:name",
    "process:x:VmLck",
    "threads:0",
    "vm:9:VmRSS",
    "vm:9:hugepages",
];

#[test]
fn no_text_makes_a_check_of_memory_and_time_panic() {
    survives(NAMES);
}
