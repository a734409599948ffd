//! Sentences that were once wrong or missing, and are right now, by their sources.

use tactus_audit::find;

/// A check, what its text says, and what it does not say any more.
const TEXTS: &[(&str, &[&str], &[&str])] = &[
    ("kvmclock-sync", &["N"], &[]),
    (
        "pm-qos",
        &["a bound of 1 to 3 us", "makes idle CPUs poll if their first idle state is POLL"],
        &["write 0"],
    ),
    ("latency-zero-keeps-tick", &["(unless nohz_full had stopped it before)"], &["nohz_full or not"]),
    ("virt-hw-assists", &["erratum 1235", "commit ca2967de5a5b"], &[]),
    ("firmware-services", &["stops no CPU", "shows as SMIs"], &[]),
    ("split-lock", &["buslock.rst, Usages"], &[]),
    ("mitigations", &["kvm.nx_huge_pages"], &[]),
    ("watchdogs", &["rates it high"], &[]),
    ("mce-polling", &["mce=ignore_ce"], &["mce=off"]),
    ("iommu-passthrough", &["ends SEV-SNP"], &[]),
    ("efi-runtime", &["kernels before 7.1 do not", "commit 0bd96853ba72"], &["6.12 and older"]),
    ("swap", &["zram, which is no disk"], &[]),
    ("halt-poll", &["kernels 5.11 to 6.0"], &[]),
    ("cpuset-partition", &["tells only programs that poll the file"], &["without a word"]),
    ("irq-thread-priority", &["49 since Linux 6.18"], &[]),
    ("vmstat-interval", &["6.5 (be5e015d107d)", "6.8 (3232e7aad11e)"], &[]),
    ("rt-priority-ceiling", &["of the stop class"], &["watchdog/", "migration/N is FIFO 99"]),
    ("timer-migration", &["are in no domain and get no timers", "contested"], &[]),
    ("cpufreq-governor", &["userspace", "intel-xeon-2015, 7.2"], &[]),
    ("kthread-affinity", &["nohz_full=ISOLATED before Linux 7.0", "since 7.0", "commit 041ee6f3727a"], &[]),
    ("ctr-rt-budget", &["rt_group_sched=0", "since 6.16"], &[]),
    ("audit", &["The mildest first", "-a task,never"], &[]),
    ("workqueue-cpumask", &["mask HOUSEKEEPING_MASK"], &[]),
    ("irq-default-affinity", &["mask HOUSEKEEPING_MASK"], &[]),
    ("kernel-config", &["off for short periods"], &["LOCKUP_DETECTOR"]),
    ("nohz-full", &["vCPUs, polling, long cycles", "control loop"], &[]),
    ("memory-power-speed", &["CKE power down, self refresh"], &[]),
    ("exit-rate", &["let work that is not real-time poll"], &[]),
    ("posted-interrupts-absent", &["devices that are polled"], &["Boot another kernel"]),
    ("own-irq", &["belongs on that thread's CPU", "intel-xeon-2015, 6.3"], &[]),
    ("nx-huge-pages", &["only where the kernel says that the processor is not affected"], &[]),
];

#[test]
fn what_was_wrong_once_is_said_right() {
    for (id, says, not) in TEXTS {
        let fields = find(id).unwrap_or_else(|| panic!("no check {id}")).fields();
        let text = fields.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        for words in *says {
            assert!(text.contains(words), "{id} does not say `{words}`: {text}");
        }
        for words in *not {
            assert!(!text.contains(words), "{id} says `{words}`: {text}");
        }
    }
}
