//! Pitfalls of the kernel's command line and of isolation.

use super::context::Look;
use super::{Pitfall, Scope};

pub static PITFALLS: &[Pitfall] = &[
    Pitfall {
        number: 3,
        title: "nohz_full stops the tick only for a lone task",
        text: "The tick stops while at most one task is runnable on the CPU. A second task, a POSIX CPU timer or a \
perf event keeps it. Pin one busy thread to each isolated CPU.",
        scope: Scope::Plan(|look| {
            look.plans_parameter("nohz_full")
                .map(|cpus| format!("nohz_full={cpus}: one runnable thread on each of them, and no more"))
        }),
        settings: &["nohz_full"],
    },
    Pitfall {
        number: 4,
        title: "isolcpus takes load balancing away",
        text: "Nothing moves a thread between isolated CPUs: a virtual machine or program with many threads that is \
not pinned thread by thread piles up on the first of them. Pin every thread.",
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
        text: "calc_isolated_cores:1 in TuneD's variables files keeps one logical CPU of each socket: with SMT its \
sibling is isolated, and shares the core with everything else. Write isolated_cores= yourself.",
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
        text: "Mainline kernels do not know it, and say so among the unknown parameters at boot. nohz_full keeps \
unbound kernel threads away, and isolcpus=domain on kernels that go by scheduling domains instead (commit 041ee6f3727a).",
        scope: Scope::Plan(|look| {
            if let Some(cpus) = look.parameter("kthread_cpus") {
                return Some(format!("kthread_cpus={cpus} is on the command line"));
            }
            let unknown = look.text("dmesg:unknown-parameters").filter(|text| !text.is_empty())?;
            let line = unknown.lines().next().unwrap_or_default();
            Some(format!("the kernel says: {}", line.chars().take(160).collect::<String>()))
        }),
        settings: &["kthread_cpus"],
    },
    Pitfall {
        number: 8,
        title: "intel_idle.max_cstate=0 hands over to acpi_idle",
        text: "It switches the intel_idle driver off, and acpi_idle takes its place with deep states of the firmware's. \
Add processor.max_cstate=1.",
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
        title: "idle=poll costs heat, and starves the neighbours of a virtual CPU",
        text: "A CPU that never idles heats its package, which throttles and loses its turbo; a virtual CPU that never \
idles leaves nothing to whatever else is on its CPU.",
        scope: Scope::Plan(|look| {
            (look.parameter("idle") == Some("poll")).then(|| "idle=poll is on the command line".into())
        }),
        settings: &["idle", "idle-poll"],
    },
    Pitfall {
        number: 18,
        title: "RT_GROUP_SCHED and cgroup v2 forbid real-time threads outside the root",
        text: "cgroup v2 has no real-time budget for groups: with CONFIG_RT_GROUP_SCHED=y a thread can only become \
SCHED_FIFO in the root group. Kernels of 2025 and later can boot with rt_group_sched=0.",
        scope: Scope::Plan(|look| {
            let on = look.text("config:CONFIG_RT_GROUP_SCHED") == Some("y");
            (on && look.cgroup2()).then(|| "both are so here".into())
        }),
        settings: &["rt-throttling"],
    },
    Pitfall {
        number: 20,
        title: "tsc=reliable switches the watchdog of the clock off",
        text: "A time stamp counter that is not synchronous between CPUs then gives wrong times, and nobody notices. Set \
it where the kernel has not complained: no `Marking TSC unstable` in dmesg.",
        scope: Scope::Plan(|look| {
            let planned = look.plans_parameter("tsc").filter(|value| *value == "reliable")?;
            let said =
                look.text("dmesg:tsc").and_then(|text| text.lines().find(|line| line.contains("nstable")));
            Some(
                match (said, look.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")) {
                    (Some(line), _) => format!("the kernel says: {line}"),
                    (None, Some(clock)) => format!("tsc={planned}; the clock source is {clock} now"),
                    (None, None) => format!("tsc={planned}; what the clock source is now is not known"),
                },
            )
        }),
        settings: &["tsc", "clocksource"],
    },
    Pitfall {
        number: 22,
        title: "managed_irq cannot protect a CPU whose queue has no other",
        text: "A queue whose CPUs are all isolated keeps its interrupt there, and gets one whenever something on those \
CPUs does I/O on it. Do no disk or network I/O from isolated CPUs.",
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
        title: "a default of 1 GiB pages takes 2 MiB pools away",
        text: "hugepages= before any hugepagesz= then means 1 GiB, and programs that take the default size find no 2 MiB \
pages. Reserve 2 MiB pages with hugepagesz=2M hugepages=N where something needs them.",
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
        title: "real-time patches for PowerPC take the in-kernel MPIC away",
        text: "KVM's MPIC emulation in the kernel is switched off by them: guests fall back to QEMU's, with an exit for \
each access.",
        scope: Scope::Plan(|look: &Look<'_>| {
            let power = look.subject.machine.starts_with("ppc");
            (power && look.subject.kernel.rt).then(|| format!("{} with PREEMPT_RT", look.subject.machine))
        }),
        settings: &[],
    },
];
