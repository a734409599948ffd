//! tactus's own layer: audit checks whose changes a profile's purpose calls for, beyond TuneD's
//! values.
//!
//! Not among them, because they cost something else or are contested: `idle-poll`, `audit`,
//! `split-lock`, `halt-poll`, `smt`. `--with` adds them one by one. `selinux` and `mitigations` have no
//! changes at all.

/// On the isolated CPUs of any machine.
const QUIET: [&str; 12] = [
    "c-state-per-cpu",
    "cpufreq-pinned",
    "epb-epp-hwp",
    "uncore-frequency",
    "irq-default-affinity",
    "irqbalance",
    "kthread-affinity",
    "rcuo-affinity",
    "watchdogs",
    "compaction",
    "ksm",
    "skew-tick",
];

/// For real-time priorities.
const PRIORITIES: [&str; 7] = [
    "nohz-full",
    "rcu-nocbs",
    "rcu-nocb-poll",
    "fair-server",
    "rcu-softirq-priority",
    "stalld",
    "systemd-cpu-affinity",
];

/// For `realtime`.
pub static REALTIME: &[&str] = &joined::<19>(&[&QUIET, &PRIORITIES]);
/// For `realtime-virtual-host`.
pub static VIRTUAL_HOST: &[&str] =
    &joined::<22>(&[&QUIET, &PRIORITIES, &["lapic-timer-advance", "iommu-passthrough", "virt-hw-assists"]]);
/// For `realtime-virtual-guest`.
pub static VIRTUAL_GUEST: &[&str] = &joined::<20>(&[&QUIET, &PRIORITIES, &["guest-haltpoll"]]);
/// For `cpu-partitioning`.
pub static PARTITIONING: &[&str] = &QUIET;

const fn joined<const N: usize>(parts: &[&[&'static str]]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut n = 0;
        while n < parts[part].len() {
            all[at] = parts[part][n];
            at += 1;
            n += 1;
        }
        part += 1;
    }
    assert!(at == N, "the length is that of all parts");
    all
}
