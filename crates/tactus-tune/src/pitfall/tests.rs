use std::time::Duration;

use tactus_audit::Intent;
use tactus_model::change::{Change, Effect, Form, Target, Thread};
use tactus_model::facts::Facts;
use tactus_model::finding::Role;

use super::*;
use crate::cpu_time::cpu_time;

/// A pitfall, the readings and changes that run into it, and what keeps it away: a reading more, or a
/// change less.
struct Case {
    number: u8,
    readings: &'static [(&'static str, &'static str)],
    changes: &'static [Planned],
    unless: Unless,
}

enum Unless {
    /// Readings in the place of those of the same names.
    Reading(&'static [(&'static str, &'static str)]),
    /// Nothing of it planned.
    NoChange,
}
use Unless::{NoChange, Reading};

#[derive(Clone, Copy)]
enum Planned {
    File(&'static str, &'static str),
    Boot(&'static str, &'static str),
    Module(&'static str, &'static str),
    Fifo(u32),
}
use Planned::{Boot, Fifo, File, Module};

const RT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const THROTTLING: &[Planned] = &[File(RT, "-1")];
const GUEST: &str = "500\t500\t1\t400140\tOTHER\t0\t0-1\tqemu\n\
                     501\t500\t1\t400140\tFIFO\t1\t2\tCPU 0/KVM\n\
                     502\t500\t1\t400140\tFIFO\t1\t3\tCPU 1/KVM\n";
const CASES: &[Case] = &[
    Case {
        number: 1,
        readings: &[("threads:0", GUEST)],
        changes: THROTTLING,
        unless: Reading(&[
            ("threads:0", "7\t7\t1\t400140\tFIFO\t10\t0-1\tstalld"),
            ("process:7:uid", "0"),
            ("process:7:NSpid", "7"),
            ("process:7:exe", "/usr/sbin/stalld"),
        ]),
    },
    Case {
        number: 2,
        readings: &[("uname:release", "6.12.43-rt")],
        changes: THROTTLING,
        unless: Reading(&[("uname:release", "6.1.0-26-amd64")]),
    },
    Case { number: 3, readings: &[], changes: &[Boot("nohz_full", "2-3")], unless: NoChange },
    Case {
        number: 4,
        readings: &[],
        changes: &[Boot("isolcpus", "managed_irq,domain,2-3")],
        unless: NoChange,
    },
    Case {
        number: 5,
        readings: &[
            ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io"),
            ("/proc/cmdline", "isolcpus=2-3"),
        ],
        changes: &[],
        unless: Reading(&[("/proc/cmdline", "quiet")]),
    },
    Case {
        number: 6,
        readings: &[
            ("program:tuned-adm", "/usr/sbin/tuned-adm"),
            ("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2"),
        ],
        changes: &[],
        unless: Reading(&[("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0")]),
    },
    Case {
        number: 7,
        readings: &[(
            "dmesg:unknown-parameters",
            "Unknown kernel command line parameters \"kthread_cpus=0\"",
        )],
        changes: &[],
        unless: Reading(&[("dmesg:unknown-parameters", "")]),
    },
    Case {
        number: 8,
        readings: &[("/proc/cmdline", "quiet")],
        changes: &[Boot("intel_idle.max_cstate", "0")],
        unless: Reading(&[("/proc/cmdline", "processor.max_cstate=1")]),
    },
    Case {
        number: 9,
        readings: &[],
        changes: &[File("/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "n/a")],
        unless: NoChange,
    },
    Case {
        number: 10,
        readings: &[("/proc/cmdline", "idle=poll")],
        changes: &[],
        unless: Reading(&[("/proc/cmdline", "idle=halt")]),
    },
    Case {
        number: 11,
        readings: &[(
            "threads:0",
            "500\t500\t1\t0\tOTHER\t0\t0-1\tqemu\n501\t500\t1\t0\tOTHER\t0\t2\tCPU 0/KVM\n600\t600\t2\t208040\tOTHER\t0\t2\tvhost-500",
        )],
        changes: &[Fifo(501)],
        unless: Reading(&[(
            "threads:0",
            "501\t500\t1\t0\tOTHER\t0\t2\tCPU 0/KVM\n600\t600\t2\t208040\tOTHER\t0\t0-1\tvhost-500",
        )]),
    },
    Case {
        number: 12,
        readings: &[(
            "threads:0",
            "500\t500\t1\t0\tOTHER\t0\t0-3\tqemu\n501\t500\t1\t0\tFIFO\t1\t2\tCPU 0/KVM",
        )],
        changes: &[],
        unless: Reading(&[("threads:0", GUEST)]),
    },
    Case {
        number: 13,
        readings: &[("vm:500:cmdline", "qemu-system-x86_64 -overcommit mem-lock=on,cpu-pm=on")],
        changes: &[],
        unless: Reading(&[("vm:500:cmdline", "qemu-system-x86_64 -overcommit mem-lock=on")]),
    },
    Case {
        number: 14,
        readings: &[(
            "threads:0",
            "501\t500\t1\t0\tOTHER\t0\t2\tCPU 0/KVM\n601\t600\t1\t0\tOTHER\t0\t2\tCPU 0/KVM",
        )],
        changes: &[Module("ple_gap", "0")],
        unless: Reading(&[("threads:0", GUEST)]),
    },
    Case {
        number: 18,
        readings: &[("/sys/fs/cgroup/cgroup.controllers", "cpu"), ("config:CONFIG_RT_GROUP_SCHED", "y")],
        changes: &[],
        unless: Reading(&[("config:CONFIG_RT_GROUP_SCHED", "n")]),
    },
    Case {
        number: 19,
        readings: &[],
        changes: &[File("/proc/sys/kernel/timer_migration", "0")],
        unless: NoChange,
    },
    Case { number: 20, readings: &[], changes: &[Boot("tsc", "reliable")], unless: NoChange },
    Case {
        number: 21,
        readings: &[
            ("/etc/tuned/active_profile", "balanced"),
            ("threads:0", "300\t300\t1\t400140\tOTHER\t0\t0-3\ttuned"),
        ],
        changes: &[],
        unless: Reading(&[("threads:0", GUEST)]),
    },
    Case {
        number: 22,
        readings: &[
            ("/proc/interrupts", "  CPU0 CPU1 CPU2 CPU3\n 24: 0 0 0 1 PCI-MSIX-0000:01:00.0 1-edge nvme0q2"),
            ("/proc/irq/24/smp_affinity_list", "2-3"),
        ],
        changes: &[Boot("isolcpus", "managed_irq,domain,2-3")],
        unless: Reading(&[("/proc/irq/24/smp_affinity_list", "0-3")]),
    },
    Case { number: 24, readings: &[], changes: &[Boot("nosoftlockup", "")], unless: NoChange },
    Case {
        number: 25,
        readings: &[("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512")],
        changes: &[Boot("default_hugepagesz", "1G")],
        unless: Reading(&[("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0")]),
    },
    Case {
        number: 26,
        readings: &[("/sys/fs/resctrl/info/L3/shareable_bits", "c00")],
        changes: &[],
        unless: Reading(&[("/sys/fs/resctrl/info/L3/shareable_bits", "0")]),
    },
    Case {
        number: 27,
        readings: &[("uname:machine", "ppc64"), ("uname:version", "#1 SMP PREEMPT_RT")],
        changes: &[],
        unless: Reading(&[("uname:machine", "x86_64")]),
    },
    Case {
        number: 28,
        readings: &[("/proc/cpuinfo", "flags\t: fpu hypervisor")],
        changes: &[File("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance")],
        unless: Reading(&[("/proc/cpuinfo", "flags\t: fpu")]),
    },
    Case {
        number: 29,
        readings: &[("uname:version", "#1 SMP PREEMPT_RT Debian")],
        changes: &[],
        unless: Reading(&[("uname:version", "#1 SMP PREEMPT_DYNAMIC Debian")]),
    },
];

fn change(planned: Planned) -> Change {
    let (target, then, effect) = match planned {
        File(path, then) => (Target::File { path: path.into(), form: Form::Plain }, then, Effect::Runtime),
        Boot(parameter, then) => (Target::Kernel { parameter: parameter.into() }, then, Effect::Boot),
        Module(parameter, then) => (
            Target::Module { module: "kvm_intel".into(), parameter: parameter.into() },
            then,
            Effect::Restart,
        ),
        Fifo(tid) => {
            let thread = Thread { tid, name: "CPU 0/KVM".into(), started: None };
            (Target::Scheduling(thread), "FIFO 1", Effect::Runtime)
        }
    };
    Change { check: "x".into(), target, now: None, then: then.into(), effect }
}

fn fires(number: u8, readings: &[&[(&str, &str)]], changes: &[Planned]) -> Option<String> {
    let mut facts = Facts::default();
    facts.keep("/sys/devices/system/cpu/online", "0-3");
    facts.keep("uname:release", "6.12.43");
    for (name, text) in readings.iter().copied().flatten() {
        facts.keep(*name, *text);
    }
    let intent = Intent { isolated: Some("2-3".parse().unwrap()), ..Intent::default() };
    let subject = Subject::new(&facts, Role::Host, &intent);
    let changes: Vec<Change> = changes.iter().copied().map(change).collect();
    let changes: Vec<&Change> = changes.iter().collect();
    let warnings = warnings(&subject, &changes);
    warnings.into_iter().find(|warning| warning.number == number).map(|warning| warning.here)
}

#[test]
fn a_pitfall_says_of_kernel_threads_what_their_check_says() {
    let pitfall = all().find(|pitfall| pitfall.number == 7).unwrap();
    let check = tactus_audit::find("kthread-affinity").unwrap();
    // Which of two parameters keeps them away is a matter of the kernel's version, in both texts.
    for words in ["nohz_full", "isolcpus=domain", "041ee6f3727a"] {
        assert!(pitfall.text.contains(words), "{}", pitfall.text);
        assert!(check.why.contains(words), "{}", check.why);
    }
}

#[test]
fn each_is_there_once_and_says_what_it_is() {
    let numbers: Vec<u8> = all().map(|pitfall| pitfall.number).collect();
    assert_eq!(numbers, (1..=31).collect::<Vec<u8>>());
    for pitfall in all() {
        assert!(!pitfall.title.is_empty() && pitfall.text.len() > 40, "{}", pitfall.number);
        let cased = CASES.iter().any(|case| case.number == pitfall.number);
        assert_eq!(cased, matches!(pitfall.scope, Scope::Plan(_)), "{} has no test", pitfall.number);
    }
}

#[test]
fn each_fires_where_it_lies_on_the_way() {
    for case in CASES {
        let here = fires(case.number, &[case.readings], case.changes);
        assert!(here.is_some_and(|text| !text.is_empty()), "{} does not fire", case.number);
    }
}

#[test]
fn none_fires_where_it_does_not() {
    for case in CASES {
        let here = match case.unless {
            Reading(instead) => fires(case.number, &[case.readings, instead], case.changes),
            NoChange => fires(case.number, &[case.readings], &[]),
        };
        assert_eq!(here, None, "{} fires", case.number);
    }
}

/// The shortest of three times in which a machine with `threads` vCPUs and `threads` helpers is checked. All vCPUs
/// but the first are planned to be FIFO.
fn time(threads: u32) -> Duration {
    let mut facts = Facts::default();
    facts.keep("/sys/devices/system/cpu/online", "0-3");
    for n in 0..threads {
        let (vcpu, helper) = (1_000 + n, 1_000_000 + n);
        let pair = format!(
            "{vcpu}\t1000\t1\t400140\tOTHER\t0\t2\tCPU {n}/KVM\n{helper}\t1000\t1\t400140\tOTHER\t0\t3\tw\n"
        );
        facts.keep(format!("threads:{n}"), pair);
    }
    let intent = Intent::default();
    let subject = Subject::new(&facts, Role::Host, &intent);
    let changes: Vec<Change> = (1_001..1_000 + threads).map(|tid| change(Fifo(tid))).collect();
    let changes: Vec<&Change> = changes.iter().collect();
    cpu_time(|| {
        assert!(warnings(&subject, &changes).iter().all(|warning| ![11, 12].contains(&warning.number)));
    })
}

#[test]
fn a_machine_of_ten_times_the_vcpus_is_looked_at_ten_times_as_long_and_not_a_hundred() {
    let (few, many) = (time(1_000), time(10_000));
    assert!(many < few * 40, "{few:?}, {many:?}");
}

#[test]
fn a_change_knows_the_pitfalls_that_it_runs_into() {
    assert!(concerns(1, &change(File(RT, "-1"))));
    assert!(concerns(4, &change(Boot("isolcpus", "2"))));
    assert!(!concerns(4, &change(File(RT, "-1"))));
}
