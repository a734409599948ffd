//! Rules for every check of this directory.

use proptest::prelude::*;
use tactus_model::change::{Effect, Target};
use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::{Role, State};

use super::FILES;
use crate::testing::HOSTILE;
use crate::{Check, Intent, Subject};

/// Every name that the checks of this room read, for two CPUs.
const NAMES: &[&str] = &[
    "/dev/cpu_dma_latency",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/interrupts",
    "/proc/uptime",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/devices/system/cpu/amd_pstate/status",
    "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq",
    "/sys/devices/system/cpu/cpu0/power/energy_perf_bias",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
    "/sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "/sys/devices/system/cpu/cpu1/cpuidle/state/disable",
    "/sys/devices/system/cpu/cpu1/cpuidle/state2/disable",
    "/sys/devices/system/cpu/cpu1/cpuidle/state2/latency",
    "/sys/devices/system/cpu/cpu1/cpuidle/state2/name",
    "/sys/devices/system/cpu/cpu1/cpuidle/state2/usage",
    "/sys/devices/system/cpu/cpu1/cpuidle/state99999999999/disable",
    "/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us",
    "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/cpuidle/current_driver",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/intel_pstate/status",
    "/sys/devices/system/cpu/intel_uncore_frequency/uncore00/max_freq_khz",
    "/sys/devices/system/cpu/intel_uncore_frequency/uncore00/min_freq_khz",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/edac/mc/mc0/sdram_scrub_rate",
    "/sys/devices/system/node/node0/cpulist",
    "/sys/devices/system/node/node1/cpulist",
    "/sys/kernel/tracing/current_tracer",
    "/sys/module/kvm_amd/parameters/avic",
    "/sys/module/kvm_amd/parameters/npt",
    "/sys/module/kvm_amd/parameters/sev_snp",
    "/sys/module/kvm_intel/parameters/ept",
    "/sys/module/pcie_aspm/parameters/policy",
    "config:CONFIG_HWLAT_TRACER",
    "cpuid:0x1:0",
    "cpuid:0x40000000:0",
    "cpuid:0x6:0",
    "cpuid:0x80000007:0",
    "device:kvm",
    "dmesg:start",
    "dmesg:thermal",
    "dmesg:tsc-deadline",
    "dmi:memory:0",
    "list:/etc/systemd/system/timers.target.wants",
    "list:/sys/bus/pci/drivers/vfio-pci",
    "list:/sys/bus/usb/devices",
    "list:/sys/class/iommu",
    "msr:0:0x1fc",
    "msr:0:0x34",
    "msr:0:0x3a",
    "msr:0:0xc0010114",
    "msr:0:0xe2",
    "msr:x:0x34",
    "pci:0000:00:14.0",
    "uname:machine",
];

fn checks() -> impl Iterator<Item = &'static Check> {
    FILES.iter().copied().flatten()
}

fn reading() -> impl Strategy<Value = Reading> {
    const LIKELY: &[&str] = &[
        "0",
        "1",
        "0-1",
        "2",
        "133",
        "x86_64",
        "aarch64",
        "Y",
        "n/a",
        "none",
        "intel_idle",
        "performance",
        "intel_pstate",
        "amd-pstate",
        "[default] performance",
        "0x2f",
        "0x0c0330 8086:a36d - - 4",
        "usb1",
        "0000:00:14.0",
        "present",
        "iommu=pt",
        "size=1MB rated=3200 configured=1600",
        "eax=0x77 ebx=0x4b4d564b ecx=0x564b4d56 edx=0x4d",
        "processor : 0\nvendor_id : GenuineIntel\nmodel : 95\nflags : vmx hwp",
        "processor : 0\nvendor_id : AuthenticAMD\nflags : svm hypervisor",
    ];
    let text = prop_oneof![
        4 => proptest::sample::select(LIKELY).prop_map(str::to_owned),
        1 => proptest::sample::select(HOSTILE).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop_oneof![
        8 => text.clone().prop_map(Reading::Text),
        1 => text.clone().prop_map(Reading::Cut),
        1 => text.prop_map(Reading::Unreadable),
        1 => Just(Reading::Absent),
    ]
}

fn some_facts() -> impl Strategy<Value = Facts> {
    proptest::collection::vec((proptest::sample::select(NAMES), reading()), 0..60)
        .prop_map(|readings| Facts(readings.into_iter().map(|(name, it)| (name.to_owned(), it)).collect()))
}

proptest! {
    #[test]
    fn no_facts_make_a_check_panic_or_speak_in_riddles(facts in some_facts(), later in some_facts(), role in 0..3) {
        let role = match role { 0 => Role::Host, 1 => Role::Guest, _ => Role::Container };
        let intent = Intent { later: Some(later), ..Intent::default() };
        let subject = Subject::new(&facts, role, &intent);
        for check in checks() {
            let (Ok(judgement) | Err(judgement)) = (check.judge)(&subject);
            prop_assert!(!judgement.said.trim().is_empty(), "{} says nothing", check.id);
            prop_assert!(judgement.state != State::NotApplicable || judgement.severity.is_none());
            for change in (check.changes)(&subject) {
                prop_assert_eq!(&change.check, check.id);
                let boot = matches!(change.target, Target::Kernel { .. });
                prop_assert_eq!(boot, change.effect == Effect::Boot, "{}", check.id);
                // Only what is there can be set, and put back.
                if let Target::File { path, .. } = &change.target {
                    prop_assert!(facts.text(path).is_some() && change.now.is_some(), "{}: {}", check.id, path);
                }
            }
        }
    }
}

#[test]
fn facts_of_nothing_are_good_for_no_check() {
    for role in [Role::Host, Role::Guest, Role::Container] {
        let (facts, intent) = (Facts::default(), Intent::default());
        let subject = Subject::new(&facts, role, &intent);
        for check in checks() {
            let (Ok(judgement) | Err(judgement)) = (check.judge)(&subject);
            assert!(
                !matches!(judgement.state, State::Ok | State::Finding),
                "{}: {}",
                check.id,
                judgement.said
            );
        }
    }
}

#[test]
fn readings_that_were_refused_are_good_for_no_check() {
    let mut facts = Facts::default();
    for name in NAMES {
        facts.0.insert((*name).to_owned(), Reading::Unreadable("Permission denied".into()));
    }
    facts.keep("uname:machine", "x86_64");
    facts.keep("/sys/devices/system/cpu/online", "0-1");
    let intent = Intent::default();
    let subject = Subject::new(&facts, Role::Host, &intent);
    for check in checks() {
        let (Ok(judgement) | Err(judgement)) = (check.judge)(&subject);
        assert!(!matches!(judgement.state, State::Ok | State::Finding), "{}: {}", check.id, judgement.said);
    }
}
