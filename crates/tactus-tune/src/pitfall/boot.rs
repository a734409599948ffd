//! Pitfalls of the kernel's command line and of isolation.

use super::context::Look;
use super::{Pitfall, Scope};

pub static PITFALLS: &[Pitfall] = &[
    Pitfall {
        number: 3,
        title: "nohz_full stops the tick only for a single task",
        text: "The tick stops while at most one task is runnable on the CPU. A second task, a POSIX CPU timer or a \
perf event keeps it. Pin one busy thread to each isolated CPU.",
        scope: Scope::Plan(|look| {
            look.plans_parameter("nohz_full")
                .map(|cpus| format!("nohz_full={cpus}: at most one runnable thread on each of them"))
        }),
        settings: &["nohz_full"],
    },
    Pitfall {
        number: 4,
        title: "isolcpus turns load balancing off",
        text: "The kernel moves no thread between isolated CPUs. A virtual machine or program with many unpinned \
threads piles up on the first of them. Pin every thread.",
        scope: Scope::Plan(|look| {
            let value = look.plans_parameter("isolcpus")?;
            let domain = value.contains("domain") || !value.contains("managed_irq");
            (domain && look.subject.isolated().len() > 1)
                .then(|| format!("isolcpus={value}: threads stay where they start"))
        }),
        settings: &["isolcpus"],
    },
    Pitfall {
        number: 5,
        title: "CPUs isolated at boot go into isolated partitions only",
        text: "A cpuset partition of type root cannot have CPUs of isolcpus; only type isolated can. A partition at run \
time sets neither nohz_full nor managed_irq.",
        scope: Scope::Plan(|look| {
            let value = look.parameter("isolcpus")?;
            look.cgroup2().then(|| format!("cgroup v2 and isolcpus={value}"))
        }),
        settings: &["isolcpus", "cpuset-partition"],
    },
    Pitfall {
        number: 6,
        title: "TuneD's default isolation splits cores",
        text: "calc_isolated_cores:1 in TuneD's variables files keeps one logical CPU of each socket. With SMT its \
sibling is isolated, and shares the core with everything else. Set isolated_cores= yourself.",
        scope: Scope::Plan(|look| {
            let smt = look.subject.topology.cores.iter().any(|core| core.len() > 1);
            (smt && look.text("program:tuned-adm").is_some())
                .then(|| "TuneD is installed, and cores have several hardware threads here".into())
        }),
        settings: &[],
    },
    Pitfall {
        number: 7,
        title: "kthread_cpus= does nothing",
        text: "Mainline kernels do not know it, and list it among the unknown parameters at boot. Use nohz_full to \
keep unbound kernel threads away; on kernels with commit 041ee6f3727a use isolcpus=domain.",
        scope: Scope::Plan(|look| {
            if let Some(cpus) = look.parameter("kthread_cpus") {
                return Some(format!("kthread_cpus={cpus} is on the command line"));
            }
            let unknown = look.text("dmesg:unknown-parameters").filter(|text| !text.is_empty())?;
            let line = unknown.lines().next().unwrap_or_default();
            Some(format!("the kernel reports: {}", line.chars().take(160).collect::<String>()))
        }),
        settings: &["kthread_cpus"],
    },
    Pitfall {
        number: 8,
        title: "intel_idle.max_cstate=0 hands over to acpi_idle",
        text: "It turns the intel_idle driver off, and acpi_idle takes over with the firmware's deep states. Add \
processor.max_cstate=1.",
        scope: Scope::Plan(|look| {
            let off = look.parameter("intel_idle.max_cstate") == Some("0");
            let other = look.parameter("processor.max_cstate");
            (off && !matches!(other, Some("0" | "1")))
                .then(|| "intel_idle.max_cstate=0 without processor.max_cstate=1".into())
        }),
        settings: &["intel_idle.max_cstate"],
    },
    Pitfall {
        number: 10,
        title: "idle=poll costs heat, and starves the neighbours of a vCPU",
        text: "A CPU that never idles heats its package, which throttles and loses its turbo. A vCPU that never \
idles starves everything else on its CPU.",
        scope: Scope::Plan(|look| {
            (look.parameter("idle") == Some("poll")).then(|| "idle=poll is on the command line".into())
        }),
        settings: &["idle", "idle-poll"],
    },
    Pitfall {
        number: 18,
        title: "RT_GROUP_SCHED and cgroup v2 forbid real-time threads outside the root",
        text: "cgroup v2 has no real-time budget for groups. With CONFIG_RT_GROUP_SCHED=y a thread can become \
SCHED_FIFO only in the root group. Kernels of 2025 and later can boot with rt_group_sched=0.",
        scope: Scope::Plan(|look| {
            let on = look.text("config:CONFIG_RT_GROUP_SCHED") == Some("y");
            (on && look.cgroup2()).then(|| "both are in use here".into())
        }),
        settings: &["rt-throttling"],
    },
    Pitfall {
        number: 20,
        title: "tsc=reliable turns the watchdog of the clock off",
        text: "An unsynchronized time stamp counter then gives wrong times without a warning. Set it only if the \
kernel has not complained: no `Marking TSC unstable` in dmesg.",
        scope: Scope::Plan(|look| {
            let planned = look.plans_parameter("tsc").filter(|value| *value == "reliable")?;
            let said =
                look.text("dmesg:tsc").and_then(|text| text.lines().find(|line| line.contains("nstable")));
            Some(
                match (said, look.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")) {
                    (Some(line), _) => format!("the kernel logged: {line}"),
                    (None, Some(clock)) => format!("tsc={planned}; the clock source is {clock} now"),
                    (None, None) => format!("tsc={planned}; the current clock source is unknown"),
                },
            )
        }),
        settings: &["tsc", "clocksource"],
    },
    Pitfall {
        number: 22,
        title: "managed_irq cannot protect a CPU if its queue has no other CPU",
        text: "A queue whose CPUs are all isolated keeps its interrupt there. It interrupts whenever a program on \
those CPUs does I/O on it. Do no disk or network I/O from isolated CPUs.",
        scope: Scope::Plan(|look| {
            look.plans_parameter("isolcpus").filter(|value| value.contains("managed_irq"))?;
            let queues: Vec<String> = look
                .subject
                .interrupts
                .active()
                .filter(|irq| irq.is_message())
                .filter(|irq| {
                    irq.affinity.as_deref().is_some_and(|cpus| {
                        !cpus.is_empty() && cpus.minus(look.subject.isolated()).is_empty()
                    })
                })
                .map(|irq| format!("{} ({})", irq.irq, irq.actions.join(", ")))
                .collect();
            let first = queues.first()?;
            let more =
                if queues.len() > 1 { format!(", and {} more", queues.len() - 1) } else { String::new() };
            Some(format!("interrupt {first}{more} is allowed on isolated CPUs only"))
        }),
        settings: &["isolcpus", "managed-irq", "irq-affinity"],
    },
    Pitfall {
        number: 25,
        title: "a default of 1 GiB pages removes 2 MiB pools",
        text: "hugepages= before any hugepagesz= then means 1 GiB, and programs that use the default size find no 2 \
MiB pages. If a program needs them, reserve 2 MiB pages with hugepagesz=2M hugepages=N.",
        scope: Scope::Plan(|look| {
            let one =
                look.parameter("default_hugepagesz").is_some_and(|size| size.eq_ignore_ascii_case("1g"));
            let pool = look.text("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")?;
            (one && pool != "0").then(|| format!("{pool} pages of 2 MiB are reserved now"))
        }),
        settings: &["default_hugepagesz", "hugepages-1g"],
    },
    Pitfall {
        number: 27,
        title: "real-time patches for PowerPC disable the in-kernel MPIC",
        text: "They turn off KVM's MPIC emulation in the kernel. Guests fall back to QEMU's, with an exit for each \
access.",
        scope: Scope::Plan(|look: &Look<'_>| {
            let power = look.subject.machine.starts_with("ppc");
            (power && look.subject.kernel.rt).then(|| format!("{} with PREEMPT_RT", look.subject.machine))
        }),
        settings: &[],
    },
];
