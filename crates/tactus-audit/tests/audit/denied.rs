//! Findings that the kernel's documents and code rule out must not appear on any machine. Each recorded machine, as a
//! host and as a guest, is put into the state that the document describes. In the opposite state some machine must
//! have the finding, so that no line of the table passes only because the check never reports anything.

use tactus_audit::{Intent, Subject, audit};
use tactus_model::facts::Facts;
use tactus_model::finding::{Finding, Role, Severity};
use tactus_model::topology::Topology;

use crate::machines::{MACHINES, machine};

/// A statement of a document.
struct Denied {
    /// The file, and what it says.
    says: &'static str,
    /// Puts a system into the state of the document.
    so: fn(&mut Facts),
    /// Puts it into another.
    otherwise: fn(&mut Facts),
    /// Whether a finding contradicts the statement.
    contradicts: fn(&Finding, Role) -> bool,
}

const GOVERNOR: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const MULTIHIT: &str = "/sys/devices/system/cpu/vulnerabilities/itlb_multihit";
const NX_PAGES: &str = "/sys/module/kvm/parameters/nx_huge_pages";

fn keep(facts: &mut Facts, readings: &[(&str, &str)]) {
    for (name, text) in readings {
        facts.keep(*name, *text);
    }
}

/// Sets a file of every CPU that has it.
fn each_cpu(facts: &mut Facts, pattern: &str, text: &str) {
    for cpu in Topology::of(facts).online.iter() {
        let path = pattern.replace('*', &cpu.to_string());
        if facts.0.contains_key(&path) {
            facts.keep(path, text);
        }
    }
}

/// Has CPU 1 isolated at boot, as nothing else is.
fn isolated(facts: &mut Facts) {
    // By default irqbalance goes by the CPUs that were isolated at boot.
    facts.0.retain(|name, _| !name.ends_with("/irqbalance"));
    keep(
        facts,
        &[(ISOLATED, "1"), (NOHZ_FULL, "(null)"), ("/proc/cmdline", "isolcpus=managed_irq,domain,1")],
    );
}

fn not_isolated(facts: &mut Facts) {
    keep(facts, &[(ISOLATED, ""), (NOHZ_FULL, "(null)"), ("/proc/cmdline", "quiet")]);
}

fn version(facts: &mut Facts, release: &str) {
    keep(facts, &[("uname:release", release), ("uname:version", "#1 SMP")]);
}

/// The options that the check of the configuration asks for, as it wants them.
fn configured(facts: &mut Facts) {
    for option in ["HIGH_RES_TIMERS", "NO_HZ_FULL", "RCU_NOCB_CPU", "CPU_ISOLATION", "CPUSETS"] {
        facts.keep(format!("config:CONFIG_{option}"), "y");
    }
    for option in ["RT_GROUP_SCHED", "PROVE_LOCKING", "KASAN", "IRQSOFF_TRACER", "PREEMPT_TRACER"] {
        facts.keep(format!("config:CONFIG_{option}"), "n");
    }
    facts.keep("config:source", "/boot/config");
}

const DENIED: &[Denied] = &[
    Denied {
        says: "core-api/real-time/kernel-configuration.rst: NO_HZ_FULL off for short periods",
        so: |facts| {
            configured(facts);
            facts.keep("config:CONFIG_NO_HZ_FULL", "n");
        },
        otherwise: |facts| {
            configured(facts);
            facts.keep("config:CONFIG_RCU_NOCB_CPU", "n");
        },
        contradicts: |one, _| one.id == "kernel-config" && one.severity > Severity::Info,
    },
    Denied {
        says: "core-api/real-time/kernel-configuration.rst: LOCKUP_DETECTOR and the tracers of sections off",
        so: |facts| {
            configured(facts);
            facts.keep("config:CONFIG_LOCKUP_DETECTOR", "n");
        },
        otherwise: |facts| {
            configured(facts);
            facts.keep("config:CONFIG_IRQSOFF_TRACER", "y");
        },
        contradicts: |one, _| ["kernel-config", "latency-tracers"].contains(&&*one.id),
    },
    Denied {
        says: "core-api/real-time/kernel-configuration.rst: consistent ticks where work is periodic; nohz_full is asked of \
               nobody whose CPUs carry no vCPUs",
        so: |facts| {
            not_isolated(facts);
            facts.0.retain(|name, _| !name.starts_with("threads:") && !name.starts_with("vm:"));
        },
        otherwise: |facts| facts.keep(NOHZ_FULL, "(null)"),
        contradicts: |one, _| one.id == "nohz-full" && one.severity > Severity::Minor,
    },
    Denied {
        says: "core-api/real-time/kernel-configuration.rst: a fixed clock, by userspace too",
        so: |facts| each_cpu(facts, GOVERNOR, "userspace"),
        otherwise: |facts| each_cpu(facts, GOVERNOR, "ondemand"),
        contradicts: |one, _| one.id == "cpufreq-governor",
    },
    Denied {
        says: "admin-guide/pm/cpuidle.rst: a state above the bound of /dev/cpu_dma_latency is not entered",
        so: |facts| facts.keep("/dev/cpu_dma_latency", "1"),
        otherwise: |facts| {
            facts.keep("/dev/cpu_dma_latency", "2000000000");
            each_cpu(facts, "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us", "0");
        },
        contradicts: |one, role| {
            ["c-states", "c-state-per-cpu", "pm-qos"].contains(&&*one.id)
                || (one.id == "idle-poll" && role == Role::Host)
        },
    },
    Denied {
        says: "drivers/cpuidle/governors/menu.c: a bound that leaves C1 open keeps no tick",
        so: |facts| facts.keep("/dev/cpu_dma_latency", "3"),
        otherwise: |facts| facts.keep("/dev/cpu_dma_latency", "0"),
        contradicts: |one, _| {
            one.id == "latency-zero-keeps-tick" && one.read.iter().all(|read| !read.path.contains("/power/"))
        },
    },
    Denied {
        says: "mm/vmstat.c since 6.5: CPUs that are isolated at boot are left out",
        so: |facts| {
            isolated(facts);
            version(facts, "6.12.43");
        },
        otherwise: |facts| {
            isolated(facts);
            version(facts, "6.1.0");
        },
        contradicts: |one, _| one.id == "vmstat-interval",
    },
    Denied {
        says: "kernel/sched/rt.c since 6.12: nothing is throttled without RT_GROUP_SCHED",
        so: |facts| {
            configured(facts);
            version(facts, "6.12.43");
        },
        otherwise: |facts| {
            configured(facts);
            version(facts, "6.1.0");
        },
        contradicts: |one, _| one.id == "rt-throttling",
    },
    Denied {
        says: "admin-guide/hw-vuln/multihit.rst: pages are split where the processor is affected",
        so: |facts| keep(facts, &[(MULTIHIT, "KVM: Mitigation: Split huge pages"), (NX_PAGES, "Y")]),
        otherwise: |facts| keep(facts, &[(MULTIHIT, "Not affected"), (NX_PAGES, "Y")]),
        contradicts: |one, _| one.id == "nx-huge-pages" && !one.fix.contains("Leave nx_huge_pages on"),
    },
    Denied {
        says: "kernel/sched/core.c, get_nohz_timer_target: CPUs outside every domain are no target",
        so: |facts| {
            isolated(facts);
            facts.keep("/proc/sys/kernel/timer_migration", "1");
        },
        otherwise: |facts| {
            not_isolated(facts);
            facts.keep("/proc/sys/kernel/timer_migration", "1");
        },
        contradicts: |one, _| one.id == "timer-migration",
    },
    Denied {
        says: "admin-guide/sysctl/net.rst: an empty rps_default_mask is off",
        so: |facts| facts.keep("/proc/sys/net/core/rps_default_mask", "0"),
        otherwise: |facts| {
            not_isolated(facts);
            facts.keep("/proc/sys/net/core/rps_default_mask", "ffffffff");
        },
        contradicts: |one, _| one.id == "rps-default-mask",
    },
    Denied {
        says: "kernel/auditsc.c, audit_alloc: a task filtered with never has no slow path",
        so: |facts| keep(facts, &[("audit:enabled", "1"), ("audit:rules", "1 task,never\n")]),
        otherwise: |facts| keep(facts, &[("audit:enabled", "1"), ("audit:rules", "4 exit,always -F\n")]),
        contradicts: |one, _| one.id == "audit",
    },
    Denied {
        says: "intel-xeon-2015, 6.3: the interrupt of the real-time work belongs on its CPU",
        so: |facts| {
            isolated(facts);
            placed(facts, "1");
        },
        otherwise: |facts| {
            isolated(facts);
            placed(facts, "0-1");
        },
        contradicts: |one, _| one.id == "irq-affinity" && one.message.contains("fieldbus"),
    },
];

/// With a device of the real-time work, whose interrupt may arrive on these CPUs and does on CPU 1.
fn placed(facts: &mut Facts, cpus: &str) {
    facts.0.retain(|name, _| !name.starts_with("interrupts:"));
    keep(
        facts,
        &[
            ("/proc/interrupts", " CPU0 CPU1\n 56: 0 1 PCI-MSIX-0000:3c:00.0 0-edge fieldbus\n"),
            ("/proc/irq/56/smp_affinity_list", cpus),
            ("/proc/irq/56/effective_affinity_list", "1"),
        ],
    );
}

/// The machines on which something contradicts a statement, with what is said there.
fn contradicted(denied: &Denied, state: fn(&mut Facts)) -> Vec<String> {
    let mut found = Vec::new();
    for name in MACHINES {
        for role in [Role::Host, Role::Guest] {
            let mut facts = machine(name);
            state(&mut facts);
            let audit = audit(&Subject::new(&facts, role, &Intent::default()));
            let against = audit.found().filter(|finding| (denied.contradicts)(finding, role));
            found.extend(against.map(|one| format!("{name}, {role}: {}: {}", one.id, one.message)));
        }
    }
    found
}

#[test]
fn no_finding_on_any_machine_contradicts_the_kernels_documents() {
    for denied in DENIED {
        let against = contradicted(denied, denied.so);
        assert!(against.is_empty(), "{}:\n{}", denied.says, against.join("\n"));
    }
}

#[test]
fn where_the_documents_do_not_speak_of_it_the_same_is_found() {
    for denied in DENIED {
        assert!(!contradicted(denied, denied.otherwise).is_empty(), "{}", denied.says);
    }
}
