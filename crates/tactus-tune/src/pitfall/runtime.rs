//! Pitfalls of what is set at run time.

use tactus_audit::rescued;
use tactus_model::facts::Reading;

use super::{Pitfall, Scope};

pub static PITFALLS: &[Pitfall] = &[
    Pitfall {
        number: 1,
        title: "without RT throttling a spinning FIFO thread starves the kernel",
        text: "kworkers, RCU and vmstat of that CPU never run again, and the machine locks up piece by piece. Either \
the thread must block in each cycle, or stalld must give starved threads some microseconds.",
        scope: Scope::Plan(|look| {
            let off = look.plans_file("/sched_rt_runtime_us") == Some("-1");
            (off && !rescued(look.subject)).then(|| "throttling is off, and stalld does not run".into())
        }),
        settings: &["sched_rt_runtime_us"],
    },
    Pitfall {
        number: 2,
        title: "since Linux 6.12 the fair server throttles, not sched_rt_runtime_us",
        text: "Without RT_GROUP_SCHED that sysctl controls only the admission of SCHED_DEADLINE. Ordinary threads \
get 50 ms of each second from the fair server: /sys/kernel/debug/sched/fair_server/cpuN/runtime.",
        scope: Scope::Plan(|look| {
            look.plans_file("/sched_rt_runtime_us")?;
            let group = look.text("config:CONFIG_RT_GROUP_SCHED") == Some("y");
            let kernel = look.subject.kernel;
            (kernel.since(6, 12) && !group)
                .then(|| format!("this is Linux {}.{}", kernel.major, kernel.minor))
        }),
        settings: &["sched_rt_runtime_us"],
    },
    Pitfall {
        number: 9,
        title: "in pm_qos_resume_latency_us, 0 allows any latency and n/a allows none",
        text: "A latency of zero (n/a here, or 0 in /dev/cpu_dma_latency) makes the idle governor poll. An idle \
nohz_full CPU then keeps its tick. With 1 to 3 us it may use C1 and stops the tick. While cyclictest or tactus \
measures, it sets /dev/cpu_dma_latency to 0 and hides bad idle states: audit before you measure, and also measure \
with --no-side-effects.",
        scope: Scope::Plan(|look| {
            let then = look.plans_file("/power/pm_qos_resume_latency_us")?;
            Some(format!("pm_qos_resume_latency_us becomes {then}"))
        }),
        settings: &["pm_qos_resume_latency_us", "pm-qos"],
    },
    Pitfall {
        number: 19,
        title: "timer_migration is contested",
        text: "TuneD sets 0: a timer stays on the CPU that starts it. OpenShift sets 1: a timer started on a \
nohz_full CPU goes to a housekeeping CPU. A CPU outside every scheduling domain (isolcpus=domain) and without \
nohz_full keeps its timers in both cases, and gets none of other CPUs (get_nohz_timer_target). Measure both: `tactus \
prove timer-migration`.",
        scope: Scope::Plan(|look| {
            look.plans_file("/timer_migration").map(|then| format!("timer_migration becomes {then}"))
        }),
        settings: &["timer_migration"],
    },
    Pitfall {
        number: 21,
        title: "TuneD resets network cards and moves threads while it applies",
        text: "Its [net], [irqbalance] and [scheduler] parts change queues (the link goes down), restart irqbalance \
and touch every thread. Apply it before the real-time work starts.",
        scope: Scope::Plan(|look| {
            let profile = look.text("/etc/tuned/active_profile").filter(|name| !name.is_empty())?;
            look.runs("tuned").then(|| format!("TuneD runs here, with the profile {profile}"))
        }),
        settings: &["irqbalance"],
    },
    Pitfall {
        number: 24,
        title: "disabled watchdogs hide real faults",
        text: "A hang, a corrected memory error or a warning is no longer reported. Note that they are off, and turn \
them on to look for a fault.",
        scope: Scope::Plan(|look| {
            let files = ["/nmi_watchdog", "/soft_watchdog", "/ignore_ce", "/printk"];
            let mut off: Vec<&str> = files
                .into_iter()
                .filter(|end| look.plans_file(end).is_some())
                .map(|end| end.trim_start_matches('/'))
                .collect();
            let parameters = ["nosoftlockup", "nmi_watchdog", "mce"];
            let planned = parameters.into_iter().filter(|name| look.plans_parameter(name).is_some());
            let planned: Vec<&str> = planned.filter(|name| !off.contains(name)).collect();
            off.extend(planned);
            (!off.is_empty()).then(|| format!("the plan sets {}", off.join(", ")))
        }),
        settings: &["nmi_watchdog", "soft_watchdog", "ignore_ce", "printk", "nosoftlockup", "mce"],
    },
    Pitfall {
        number: 26,
        title: "cache ways shared with devices stay shared",
        text: "I/O writes into the ways of shareable_bits, regardless of the masks. An isolated mask with one of \
them is not isolated from devices. Choose masks without them.",
        scope: Scope::Plan(|look| {
            let bits = look.text("/sys/fs/resctrl/info/L3/shareable_bits")?;
            let shared = u64::from_str_radix(bits, 16).is_ok_and(|bits| bits != 0);
            shared.then(|| format!("shareable_bits of L3 is {bits}"))
        }),
        settings: &["resctrl-cat", "schemata"],
    },
    Pitfall {
        number: 28,
        title: "the hypervisor decides what hardware a guest sees",
        text: "MSRs, clock rates and idle states of a virtual machine do not describe the machine below. Setting \
them changes nothing there: tune the host.",
        scope: Scope::Plan(|look| {
            if !look.subject.virtualized {
                return None;
            }
            let ends = [
                "/scaling_governor",
                "/scaling_min_freq",
                "/no_turbo",
                "/boost",
                "/energy_perf_bias",
                "/disable",
            ];
            let set: Vec<&str> = ends.into_iter().filter(|end| look.plans_file(end).is_some()).collect();
            let list = set.iter().map(|end| end.trim_start_matches('/')).collect::<Vec<_>>().join(", ");
            (!set.is_empty()).then(|| format!("this system runs on a hypervisor, and the plan sets {list}"))
        }),
        settings: &[
            "scaling_governor",
            "scaling_min_freq",
            "no_turbo",
            "boost",
            "energy_perf_bias",
            "disable",
        ],
    },
    Pitfall {
        number: 29,
        title: "features that a real-time kernel lacks need no setting",
        text: "PREEMPT_RT is built without automatic NUMA balancing, and often without transparent huge pages. Their \
absence is no failure, and the plan leaves them out.",
        scope: Scope::Plan(|look| {
            let files = ["/proc/sys/kernel/numa_balancing", "/sys/kernel/mm/transparent_hugepage/enabled"];
            let absent =
                |path: &&&str| matches!(look.subject.facts.0.get(**path), None | Some(Reading::Absent));
            let missing: Vec<&str> = files.iter().filter(absent).copied().collect();
            (look.subject.kernel.rt && !missing.is_empty())
                .then(|| format!("this kernel is PREEMPT_RT and has no {}", missing.join(", ")))
        }),
        settings: &[],
    },
];
