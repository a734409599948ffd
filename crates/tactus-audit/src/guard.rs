//! Guards: settings that watch over a machine, protect it or rescue it. Without a request no guard is weakened.
//! Tuning leaves such a change out and says what it would give up. The audit puts it in no line to be copied.
//!
//! `watchdog_cpumask` is not among them. The kernel itself leaves the isolated CPUs out of it with nohz_full=
//! (`lockup_detector_init` in kernel/watchdog.c), and the others stay watched.

use tactus_model::change::{Change, Target, flag};

use super::kernel::is_chosen;
use super::{Subject, rescued};

/// Something that watches over a machine, protects it or rescues it.
pub struct Guard {
    /// The name of the guard.
    pub name: &'static str,
    /// The protection that is lost without it.
    pub gives_up: &'static str,
    /// Whether a change weakens it on this system.
    weakened_by: fn(&Subject<'_>, &Change) -> bool,
}

/// All of them.
pub const GUARDS: &[Guard] = &[
    Guard {
        name: "throttling of real-time threads",
        gives_up: "a real-time thread that never sleeps starves all other threads on its CPU, also kernel threads; \
only stalld would rescue them, and it does not run (systemctl enable --now stalld)",
        weakened_by: stops_throttling,
    },
    Guard {
        name: "the fair server",
        gives_up: "threads starved by a real-time thread, also kernel threads, lose their 50 ms a second; only \
stalld would rescue them, and it does not run (systemctl enable --now stalld)",
        weakened_by: |subject, change| stops_fair_server(change) && !rescued(subject),
    },
    Guard {
        name: "the hard lockup detector",
        gives_up: "a CPU that hangs with interrupts off is not reported, and no panic on it restarts the machine",
        weakened_by: |_, change| {
            file(change, "/proc/sys/kernel/nmi_watchdog") == Some("0")
                || parameter(change, "nmi_watchdog") == Some("0")
        },
    },
    Guard {
        name: "the soft lockup detector",
        gives_up: "a CPU that hangs in the kernel is not reported, and no panic on it restarts the machine",
        weakened_by: |_, change| {
            file(change, "/proc/sys/kernel/soft_watchdog") == Some("0")
                || parameter(change, "nosoftlockup").is_some()
        },
    },
    Guard {
        name: "the hung task detector",
        gives_up: "a hung task is reported later, or never",
        weakened_by: |_, change| {
            let Some(then) = file(change, "/proc/sys/kernel/hung_task_timeout_secs") else { return false };
            let seconds = |text: &str| match text.trim().parse::<u64>() {
                // 0 is never.
                Ok(0) => u64::MAX,
                Ok(seconds) => seconds,
                Err(_) => 0,
            };
            seconds(then) >= change.now.as_deref().map_or(0, seconds)
        },
    },
    Guard {
        name: "reports of corrected machine errors",
        gives_up: "failing memory and caches are not reported before they have failed",
        weakened_by: |_, change| {
            let machine = |name: &str| match &change.target {
                Target::File { path, .. } => {
                    path.starts_with("/sys/devices/system/machinecheck/") && path.ends_with(name)
                }
                _ => false,
            };
            (machine("/ignore_ce") && change.then != "0")
                || (machine("/check_interval") && change.then == "0")
                || parameter(change, "mce")
                    .is_some_and(|value| ["ignore_ce", "off", "no_cmci"].contains(&value))
        },
    },
    Guard {
        name: "the watchdog of the clock source",
        gives_up: "a time stamp counter that runs wrong is not noticed, and every time read from it is wrong",
        weakened_by: |_, change| {
            parameter(change, "tsc").is_some_and(|value| ["reliable", "nowatchdog"].contains(&value))
        },
    },
    Guard {
        name: "the mitigation of iTLB multihit",
        gives_up: "a guest can halt the machine (CVE-2018-12207); set it only if you trust every guest",
        weakened_by: |subject, change| {
            let off = |then: &str| flag(then) == Some(false) || then == "never";
            let module = matches!(&change.target, Target::Module { parameter, .. } if parameter == "nx_huge_pages")
                && off(&change.then);
            let affected = subject.facts.text("/sys/devices/system/cpu/vulnerabilities/itlb_multihit")
                != Some("Not affected");
            affected && (module || file(change, "/sys/module/kvm/parameters/nx_huge_pages").is_some_and(off))
        },
    },
    Guard {
        name: "IOMMU translation for the host's devices",
        gives_up: "a broken or hostile host device can write anywhere in memory; on AMD it disables SEV-SNP, and \
such guests do not start",
        weakened_by: |subject, change| {
            let translates =
                subject.facts.text("list:/sys/class/iommu").is_none_or(|units| !units.trim().is_empty());
            let passes = parameter(change, "iommu") == Some("pt")
                || parameter(change, "iommu.passthrough").and_then(flag) == Some(true);
            passes && translates
        },
    },
    Guard {
        name: "the audit of system calls",
        gives_up: "events that audit rules match are not recorded",
        weakened_by: |_, change| parameter(change, "audit") == Some("0"),
    },
    Guard {
        name: "the penalty of split locks",
        gives_up: "a program or guest with split locks slows down every CPU",
        weakened_by: |_, change| {
            file(change, "/proc/sys/kernel/split_lock_mitigate") == Some("0")
                || parameter(change, "split_lock_detect") == Some("off")
        },
    },
    Guard {
        name: "scrubbing of memory",
        gives_up: "single-bit errors stay in memory until a second one makes them uncorrectable",
        weakened_by: |_, change| match &change.target {
            Target::File { path, .. } => {
                path.starts_with("/sys/devices/system/edac/mc/")
                    && path.ends_with("/sdram_scrub_rate")
                    && change.then.trim() == "0"
            }
            _ => false,
        },
    },
    Guard {
        name: "the placement of an interrupt",
        gives_up: "it is on isolated CPUs only, like an interrupt of the real-time work itself; moved away, it \
reaches that work later",
        weakened_by: |subject, change| interrupt(change).is_some() && is_own(subject, change),
    },
];

/// The guard of an interrupt that was placed: the last of the table.
pub const PLACE: &Guard = &GUARDS[GUARDS.len() - 1];

/// Where the throttling of real-time threads is set.
pub const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// The first guard that a change weakens on this system.
#[must_use]
pub fn weakened(subject: &Subject<'_>, change: &Change) -> Option<&'static Guard> {
    GUARDS.iter().find(|guard| (guard.weakened_by)(subject, change))
}

/// Whether a change takes the throttling of real-time threads away, and nothing else would rescue who waits for them.
#[must_use]
pub fn stops_throttling(subject: &Subject<'_>, change: &Change) -> bool {
    let period = subject.facts.number("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    let off =
        |then: &str| then.parse::<i64>().is_ok_and(|us| u64::try_from(us).map_or(true, |us| us >= period));
    file(change, RT_RUNTIME).is_some_and(off) && !rescued(subject)
}

/// Whether a change takes a CPU's fair server away.
#[must_use]
pub fn stops_fair_server(change: &Change) -> bool {
    match &change.target {
        Target::File { path, .. } => {
            path.starts_with("/sys/kernel/debug/sched/fair_server/")
                && path.ends_with("/runtime")
                && change.then.trim() == "0"
        }
        _ => false,
    }
}

/// Whether somebody chose the isolated CPUs alone for the interrupt that a change moves.
fn is_own(subject: &Subject<'_>, change: &Change) -> bool {
    let here = interrupt(change).and_then(|irq| subject.interrupts.get(irq));
    !change.holds() && here.is_some_and(|interrupt| is_chosen(subject, interrupt))
}

/// The number of the interrupt whose CPUs a change sets.
#[must_use]
pub fn interrupt(change: &Change) -> Option<u32> {
    let Target::File { path, .. } = &change.target else { return None };
    path.strip_prefix("/proc/irq/")?.strip_suffix("/smp_affinity_list")?.parse().ok()
}

/// The value that a change gives this file.
fn file<'a>(change: &'a Change, name: &str) -> Option<&'a str> {
    matches!(&change.target, Target::File { path, .. } if path == name).then_some(change.then.as_str())
}

/// The value that a change gives this kernel parameter.
fn parameter<'a>(change: &'a Change, name: &str) -> Option<&'a str> {
    matches!(&change.target, Target::Kernel { parameter } if parameter == name)
        .then_some(change.then.as_str())
}
