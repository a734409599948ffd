use tactus_audit::{Intent, Subject};
use tactus_model::change::{Change, Effect, Target};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

use super::*;

fn boot(profile: &str, vendor: &str) -> String {
    let (isolated, housekeeping) = ("2-7".parse().unwrap(), "0,1".parse().unwrap());
    let words = find(profile).unwrap().boot(Role::Host, &isolated, &housekeeping, vendor);
    let words = words.into_iter().map(|(name, value)| match value.as_str() {
        "" => name,
        _ => format!("{name}={value}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A machine of eight CPUs, untuned, as far as the profiles read it.
fn machine() -> Facts {
    let mut facts = Facts::default();
    let mut keep = |name: &str, text: &str| facts.keep(name, text);
    keep("uname:machine", "x86_64");
    keep("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
    keep("/proc/cmdline", "root=/dev/vda1 ro skew_tick=0 isolcpus=2,3 isolcpus=4-7");
    keep("/sys/devices/system/cpu/online", "0-7");
    keep("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2");
    for cpu in 0..8 {
        keep(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"), "powersave");
        keep(&format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"), "0");
    }
    keep("/sys/devices/system/cpu/cpufreq/boost", "1");
    keep("/sys/devices/virtual/workqueue/cpumask", "ff");
    keep("/sys/devices/virtual/workqueue/writeback/cpumask", "ff");
    keep("/proc/sys/vm/swappiness", "60");
    keep("/proc/sys/kernel/sched_rt_runtime_us", "950000");
    keep("/sys/module/kvm/parameters/kvmclock_periodic_sync", "Y");
    keep("/sys/module/kvm/parameters/nx_huge_pages", "N");
    keep("/proc/irq/default_smp_affinity", "ff");
    keep("/proc/irq/24/smp_affinity_list", "0-7");
    keep("/proc/irq/25/smp_affinity_list", "5");
    keep("/proc/irq/26/smp_affinity_list", "0,1");
    keep(
        "threads:0",
        "1\t1\t0\t400100\tOTHER\t0\t0-7\tsystemd\n\
         2\t2\t0\t208040\tOTHER\t0\t0-7\tkthreadd\n\
         15\t15\t2\t4208040\tOTHER\t0\t3\tksoftirqd/3\n\
         16\t16\t2\t4208040\tFIFO\t1\t3\trcuc/3\n\
         17\t17\t2\t208040\tOTHER\t0\t0-7\trcuop/3\n\
         90\t90\t1\t400040\tFIFO\t1\t5\tCPU 1/KVM",
    );
    facts
}

fn changes(profile: &str, role: Role, facts: &Facts) -> Vec<Change> {
    let intent = Intent { isolated: Some("2-7".parse().unwrap()), ..Intent::default() };
    find(profile).unwrap().changes(&Subject::new(facts, role, &intent))
}

#[test]
fn a_kernel_is_told_no_flag_of_isolcpus_that_it_does_not_know() {
    let told = |release: &str| {
        let mut facts = machine();
        facts.keep("uname:release", release);
        let isolcpus = |change: &Change| change.target == Target::Kernel { parameter: "isolcpus".into() };
        changes("realtime", Role::Host, &facts).into_iter().find(isolcpus).unwrap().then
    };
    // Until 5.8 one unknown flag makes the kernel give up the whole parameter; managed_irq came with 5.6.
    assert_eq!(told("5.4.0-150-generic"), "2-7");
    assert_eq!(told("6.1.0-56-rt-amd64"), "managed_irq,domain,2-7");
}

#[test]
fn the_command_lines_are_those_of_tuned() {
    let network = "skew_tick=1 tsc=reliable rcupdate.rcu_normal_after_boot=1 \
                   rcutree.nohz_full_patience_delay=1000";
    let realtime = format!("{network} isolcpus=managed_irq,domain,2-7 intel_pstate=disable nosoftlockup");
    let nohz = "nohz=on nohz_full=2-7 rcu_nocbs=2-7 irqaffinity=0,1";
    assert_eq!(boot("network-latency", "GenuineIntel"), network);
    assert_eq!(boot("realtime", "GenuineIntel"), realtime);
    assert_eq!(boot("realtime-virtual-host", "GenuineIntel"), format!("{realtime} {nohz}"));
    assert_eq!(boot("realtime-virtual-guest", "GenuineIntel"), format!("{realtime} {nohz}"));
    let partitioning = "nohz=on nohz_full=2-7 rcu_nocbs=2-7 tuned.non_isolcpus=03 \
                        systemd.cpu_affinity=0,1 intel_pstate=disable nosoftlockup";
    assert_eq!(boot("cpu-partitioning", "GenuineIntel"), format!("{network} {partitioning}"));
    assert!(boot("cpu-partitioning-isolcpus", "GenuineIntel").ends_with(" isolcpus=2-7"));
    assert!(boot("realtime", "AuthenticAMD").contains(" amd_pstate=disable "));
    let arm = boot("realtime", "");
    assert!(!arm.contains("tsc=") && !arm.contains("pstate"), "{arm}");
}

#[test]
fn a_container_has_no_command_line_and_nothing_to_set() {
    let (isolated, housekeeping) = ("2".parse().unwrap(), "0".parse().unwrap());
    let realtime = find("realtime").unwrap();
    assert!(realtime.boot(Role::Container, &isolated, &housekeeping, "").is_empty());
    assert!(changes("realtime", Role::Container, &machine()).is_empty());
}

#[test]
fn the_changes_of_a_machine_are_those_that_it_has_files_for() {
    let lines: Vec<String> = changes("realtime-virtual-host", Role::Host, &machine())
        .iter()
        .map(|change| {
            let now = change.now.as_deref().unwrap_or("-");
            let holds = if change.holds() { " (holds)" } else { "" };
            format!("{}: {} {now} -> {}{holds}", change.check, change.target, change.then)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_thread_that_somebody_pinned_to_isolated_cpus_is_left_there() {
    let moved = changes("realtime", Role::Host, &machine());
    assert!(!moved.iter().any(|change| matches!(&change.target, Target::Affinity(t) if t.tid == 90)));
    assert!(moved.iter().any(|change| matches!(&change.target, Target::Affinity(t) if t.tid == 1)));
}

#[test]
fn of_a_repeated_parameter_the_last_is_what_holds_now() {
    let facts = machine();
    let intent = Intent { isolated: Some("2-7".parse().unwrap()), ..Intent::default() };
    let parameters = find("realtime").unwrap().kernel_parameters(&Subject::new(&facts, Role::Host, &intent));
    let now = |name: &str| {
        let of = |c: &&Change| c.target == Target::Kernel { parameter: name.into() };
        parameters.iter().find(of).unwrap().now.clone()
    };
    assert_eq!(now("isolcpus").as_deref(), Some("4-7"));
    assert_eq!(now("nosoftlockup"), None);
    assert!(parameters.iter().all(|change| change.effect == Effect::Boot));
}

#[test]
fn facts_that_say_nothing_give_only_what_is_for_the_next_boot() {
    for profile in PROFILES {
        for change in changes(profile.name, Role::Host, &Facts::default()) {
            assert_ne!(change.effect, Effect::Runtime, "{change:?}");
        }
    }
}

#[test]
fn a_profile_names_each_thing_once() {
    for profile in PROFILES {
        let all = profile.all();
        for (n, setting) in all.iter().enumerate() {
            assert!(all[..n].iter().all(|other| other.what != setting.what), "{setting:?}");
        }
    }
    assert!(find("throughput-performance").is_none());
}
