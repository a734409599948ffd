//! Which CPUs are set apart at boot, and what is left for the rest of the system.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::change::Change;
use tactus_model::facts::Reading;
use tactus_model::finding::{By, Severity, State};
use tactus_model::isolation::{BOOT, PARTITIONS};

use super::asked::{NOHZ_FULL, asked_and_not_built};
use crate::sentence::{cpus_or_none, few, meet, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[
    Check {
        id: "housekeeping",
        title: "the rest of the system has no separate CPU",
        sources: &[Source::Xeon, Source::RedHat, Source::Osadl],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "the intended isolation; /sys/devices/system/node/node*/cpulist; thread_siblings_list",
        expected: "CPU 0 and at least one whole core for housekeeping; best one core in each NUMA node",
        why: "Timekeeping, RCU, kernel threads, interrupts and services must run on some CPU. The kernel itself \
chooses CPU 0 for many of them. If one hardware thread of a core does housekeeping, the other thread shares the core \
with it. Work for a NUMA node without a housekeeping CPU crosses to another node.",
        fix: "Isolate other CPUs: leave CPU 0, whole cores, and one core of each NUMA node out of isolcpus, nohz_full \
and rcu_nocbs.",
        risk: "Fewer CPUs for real-time work.",
        judge: housekeeping,
        changes: no_change,
    },
    Check {
        id: "isolcpus",
        title: "the scheduler moves tasks onto real-time CPUs",
        sources: &[
            Source::Xeon,
            Source::RedHat,
            Source::Osadl,
            Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
            Source::Kernel("kernel/sched/isolation.c"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/sys/devices/system/cpu/isolated; /sys/fs/cgroup/cpuset.cpus.isolated and cpuset.cpus.partition; cgroup v1: \
cpuset.sched_load_balance",
        expected: "{isolated}",
        why: "Load balancing moves any task to any CPU that it may use, and reads the run queues of all CPUs of a \
domain. An isolated CPU is in no domain: only tasks pinned to it run there.",
        fix: "Boot with isolcpus=managed_irq,domain,{isolated}. Before Linux 5.6 use isolcpus={isolated}: such a \
kernel does not know managed_irq and rejects the whole parameter. On a kernel of 6.1 or later you can instead put \
the CPUs into an isolated cpuset partition, which can be reverted. The kernel's list of parameters prefers it.",
        risk: "Tasks on isolated CPUs are not balanced. Threads of a program pile up on one CPU, unless each thread \
is pinned.",
        judge: isolcpus,
        changes: |subject| isolate("isolcpus", subject),
    },
    Check {
        id: "nohz-full",
        title: "the periodic tick interrupts real-time work",
        sources: &[
            Source::RedHat,
            Source::Osadl,
            Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst"),
            Source::Kernel("Documentation/timers/no_hz.rst"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/sys/devices/system/cpu/nohz_full",
        expected: "{isolated}, where the work there computes without sleeping: vCPUs, polling, long cycles. Work \
with a short period, such as a control loop of 100 us, runs better without",
        why: "The tick interrupts a CPU HZ times a second (100 to 1000), even when only one task runs. With \
nohz_full it stops while at most one task is runnable. RCU callbacks, unbound timers and unbound work stay off these \
CPUs too, and before Linux 7.0 also kernel threads. In return each entry into the kernel costs more. The kernel's \
document on real-time configuration recommends consistent ticks for periodic work, and NO_HZ_FULL for long \
computation.",
        fix: "For vCPUs, polling and long computation boot with nohz=on nohz_full={isolated}. Run one task per CPU, \
and no POSIX CPU timers, which keep the tick. For short periods do not set it: keep kernel threads and RCU callbacks \
away with kthread-affinity and rcu-nocbs. tactus prove nohz-full measures both here.",
        risk: "System calls and interrupts cost more on these CPUs, because each entry accounts its time.",
        judge: nohz_full,
        changes: |subject| match subject.parted() {
            Some((isolated, _)) if subject.facts.text(NOHZ_FULL).is_some() => {
                vec![subject.boot("nohz-full", "nohz_full", isolated.to_string())]
            }
            _ => Vec::new(),
        },
    },
];

/// The one parameter that [`isolcpus`] and managed interrupts need.
pub fn isolate(check: &str, subject: &Subject<'_>) -> Vec<Change> {
    let parameter = |(isolated, _)| subject.boot(check, "isolcpus", isolcpus_value(subject, isolated));
    subject.parted().map(parameter).into_iter().collect()
}

/// The value of `isolcpus=` for this kernel. Until 5.8 a kernel with an unknown flag dropped the whole parameter
/// (`housekeeping_isolcpus_setup`); `managed_irq` came with 5.6, flags with 4.15.
#[must_use]
pub fn isolcpus_value(subject: &Subject<'_>, isolated: &CpuSet) -> String {
    if subject.kernel.before(5, 6) {
        return isolated.to_string();
    }
    // A partition that isolates them all can be taken back at run time; what is isolated at boot as well cannot.
    let by_partition = subject.isolation.by == By::Cpuset && meet(isolated, &subject.topology.isolated);
    if by_partition && !meet(isolated, &subject.topology.booted) {
        return format!("managed_irq,{isolated}");
    }
    format!("managed_irq,domain,{isolated}")
}

fn whose(subject: &Subject<'_>) -> &'static str {
    match subject.isolation.by {
        By::Asked => "as asked for",
        By::Boot => "as booted",
        By::Cpuset => "isolated by a cpuset",
        By::Intended => "as requested at boot, but not in effect",
        By::Assumed => "as tactus would choose: nothing is isolated yet",
    }
}

fn nodes(subject: &Subject<'_>) -> BTreeMap<String, CpuSet> {
    let dir = "/sys/devices/system/node/node";
    subject
        .facts
        .under(dir)
        .filter_map(|(name, reading)| {
            let node = name.strip_prefix(dir)?.strip_suffix("/cpulist")?;
            let Reading::Text(text) = reading else { return None };
            let cpus = text.parse::<CpuSet>().ok()?.and(&subject.topology.online);
            (!cpus.is_empty()).then(|| (node.to_owned(), cpus))
        })
        .collect()
}

fn housekeeping(subject: &Subject<'_>) -> Verdict {
    let (isolated, keeping) = (subject.isolated(), subject.housekeeping());
    let online = subject.need("/sys/devices/system/cpu/online")?;
    if isolated.is_empty() {
        return Err(Judgement::not_applicable("no CPU is isolated, so all do housekeeping"));
    }
    let (mut bad, mut severity) = (Vec::new(), Severity::Major);
    if keeping.is_empty() {
        bad.push("no CPU is left for housekeeping".to_owned());
        severity = Severity::Blocker;
    } else if isolated.contains(0) {
        bad.push("CPU 0 is a real-time CPU".to_owned());
        severity = Severity::Blocker;
    }
    let without: Vec<String> = nodes(subject)
        .into_iter()
        .filter(|(_, cpus)| !keeping.is_empty() && !meet(cpus, keeping))
        .map(|(node, cpus)| format!("NUMA node {node} ({})", cpus_or_none(&cpus)))
        .collect();
    if !without.is_empty() {
        bad.push(format!("{} has no housekeeping CPU", few(&without)));
    }
    let halves = subject.topology.cores.iter().filter(|core| meet(core, isolated) && meet(core, keeping));
    let halves: Vec<String> = halves.map(|core| format!("CPUs {core}")).collect();
    if !halves.is_empty() {
        bad.push(format!("housekeeping and real-time CPUs share cores: {}", few(&halves)));
    }
    let parts =
        format!("{} for real-time work, {} for the rest", cpus_or_none(isolated), cpus_or_none(keeping));
    Ok(Judgement::when(
        bad.is_empty(),
        format!("{parts} ({})", whose(subject)),
        format!("{parts} ({}): {}", whose(subject), bad.join("; ")),
    )
    .at(severity.max(if bad.is_empty() { Severity::Blocker } else { severity }))
    .read("/sys/devices/system/cpu/online", online))
}

fn isolcpus(subject: &Subject<'_>) -> Verdict {
    let booted = subject.need(BOOT)?;
    let later = subject.facts.text(PARTITIONS);
    let (isolated, _) = subject.need_parted()?;
    let covered = &subject.topology.isolated;
    let missing = isolated.minus(covered);
    let mut good = format!("the scheduler does not balance {}", cpus_or_none(isolated));
    let spare = covered.minus(isolated);
    if !spare.is_empty() {
        good += &format!("; nor {}, although not meant for real-time work", cpus_or_none(&spare));
    }
    let bad = format!("the scheduler balances {} like all other CPUs", cpus_or_none(&missing));
    let mut judgement = Judgement::when(missing.is_empty(), good, bad).read(BOOT, booted);
    if let Some(text) = later {
        judgement = judgement.read(PARTITIONS, text);
    }
    let partitions = subject.topology.partitions.iter();
    Ok(partitions
        .fold(judgement, |one, group| one.read(format!("{}/cpuset.cpus.partition", group.path), "isolated")))
}

fn nohz_full(subject: &Subject<'_>) -> Verdict {
    if let Some(asked) = asked_and_not_built(subject, "nohz_full") {
        let cpus = cpus_or_none(subject.need_parted()?.0);
        let said = format!(
            "{asked} is on the command line, and this kernel is built without CONFIG_NO_HZ_FULL: the tick interrupts {cpus}"
        );
        return Ok(Judgement::finding(said).at(Severity::Minor).read("/proc/cmdline", asked).fix(
            "See not-built-in: boot a kernel with CONFIG_NO_HZ_FULL, or remove nohz_full= from the command line.",
        ));
    }
    let text = subject.value(NOHZ_FULL)?;
    let (isolated, _) = subject.need_parted()?;
    // Without the parameter the kernel prints `(null)`, the mask that it has not made.
    let tickless: CpuSet = text.parse().unwrap_or_default();
    let good = format!("no tick interrupts {} while one task runs there", cpus_or_none(isolated));
    let missing = isolated.minus(&tickless);
    let mut bad = format!("the tick interrupts {}", cpus_or_none(&missing));
    let virtual_cpus = subject.vms.iter().any(|vm| meet(&vm.cpus(), &missing));
    if virtual_cpus {
        bad += ", where vCPUs run";
    } else {
        bad += ": this matters for work that computes without sleeping, less for short periods";
    }
    let judgement = Judgement::when(within(isolated, &tickless), good, bad).read(NOHZ_FULL, text);
    let known = virtual_cpus || judgement.state == State::Ok;
    Ok(if known { judgement } else { judgement.at(Severity::Minor) })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Severity, State};

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn cpu_0_and_a_cpu_of_each_node_keep_house() {
        let good = intel(&[]);
        assert_eq!(good.state("housekeeping"), State::Ok);
        assert_eq!(
            good.said("housekeeping"),
            "CPUs 2,3 for real-time work, CPUs 0,1 for the rest (as booted)"
        );
        let first = intel(&[]).isolate("0-1").finding("housekeeping");
        assert_eq!((first.state, first.severity), (State::Finding, Severity::Blocker));
        assert!(first.message.ends_with("CPU 0 is a real-time CPU"), "{}", first.message);
        assert!(intel(&[]).isolate("0-3").said("housekeeping").ends_with("no CPU is left for housekeeping"));
        let node = |n: u32| format!("/sys/devices/system/node/node{n}/cpulist");
        let two = intel(&[(&node(0), "0-1"), (&node(1), "2-3"), (&node(2), "")]);
        assert!(
            two.said("housekeeping").ends_with("NUMA node 1 (CPUs 2,3) has no housekeeping CPU"),
            "{}",
            two.said("housekeeping")
        );
        assert_eq!(two.finding("housekeeping").severity, Severity::Major, "the other node keeps house");
        assert_eq!(two.isolate("1,3").state("housekeeping"), State::Ok);
    }

    #[test]
    fn half_a_core_is_no_core() {
        let siblings = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let smt = [(siblings(0), "0,2"), (siblings(1), "1,3"), (siblings(2), "0,2"), (siblings(3), "1,3")];
        let smt: Vec<(&str, &str)> = smt.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let found = intel(&smt).finding("housekeeping");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Major));
        assert!(
            found.message.ends_with("housekeeping and real-time CPUs share cores: CPUs 0,2, CPUs 1,3"),
            "{}",
            found.message
        );
        assert_eq!(intel(&smt).isolate("1,3").state("housekeeping"), State::Ok);
    }

    #[test]
    fn isolated_cpus_are_those_of_the_boot_or_of_a_partition() {
        assert_eq!(intel(&[]).state("isolcpus"), State::Ok);
        assert_eq!(
            intel(&[]).isolate("1-3").said("isolcpus"),
            "the scheduler balances CPU 1 like all other CPUs"
        );
        assert_eq!(intel(&[(PARTITIONS, "1")]).isolate("1-3").state("isolcpus"), State::Ok);
        assert_eq!(intel(&[(BOOT, "")]).state("isolcpus"), State::Finding);
        assert_eq!(
            intel(&[("/sys/devices/system/cpu/online", "0"), (BOOT, "")]).state("isolcpus"),
            State::NotApplicable
        );
        assert_eq!(intel(&[]).without(BOOT).state("isolcpus"), State::Unreadable);
        let wanted = intel(&[("/proc/cmdline", "isolcpus=2-3")]).wanted("isolcpus");
        assert_eq!(wanted, ["kernel parameter isolcpus = managed_irq,domain,2,3"]);
        assert!(intel(&[]).isolate("0-3").wanted("isolcpus").is_empty(), "no CPU would be left");
        let of = |release| intel(&[("uname:release", release)]).wanted("isolcpus");
        assert_eq!(of("5.4.0-150-generic"), ["kernel parameter isolcpus = 2,3"], "it knows no managed_irq");
        assert_eq!(
            of("3.10.0-1160.el7.x86_64"),
            ["kernel parameter isolcpus = 2,3"],
            "it knows no flags at all"
        );
        assert_eq!(of("5.6.0"), ["kernel parameter isolcpus = managed_irq,domain,2,3"]);
    }

    #[test]
    fn cpus_of_a_partition_are_for_real_time_work_and_stay_in_it() {
        const KIND: &str = "/sys/fs/cgroup/rt/cpuset.cpus.partition";
        let of_cgroup = intel(&[
            (BOOT, ""),
            (KIND, "isolated"),
            ("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3"),
            ("uname:release", "6.1.0-38-amd64"),
            ("/proc/cmdline", "quiet"),
        ]);
        let of_root = intel(&[(BOOT, ""), (PARTITIONS, "2-3"), ("/proc/cmdline", "quiet")]);
        for system in [of_cgroup, of_root] {
            assert_eq!(system.state("isolcpus"), State::Ok, "{}", system.said("isolcpus"));
            assert_eq!(
                system.said("housekeeping"),
                "CPUs 2,3 for real-time work, CPUs 0,1 for the rest (isolated by a cpuset)"
            );
            // `domain` at boot would take them out of the hands of who made the partition.
            assert_eq!(system.wanted("managed-irq"), ["kernel parameter isolcpus = managed_irq,2,3"]);
        }
        let invalid = intel(&[(BOOT, ""), (KIND, "isolated invalid (...)")]);
        assert_eq!(invalid.state("isolcpus"), State::Finding);
    }

    #[test]
    fn the_tick_is_off_where_the_kernel_says_so() {
        assert_eq!(intel(&[(NOHZ_FULL, "2-3")]).state("nohz-full"), State::Ok);
        let unknown = intel(&[(NOHZ_FULL, "3")]).finding("nohz-full");
        assert!(
            unknown.message.starts_with("the tick interrupts CPU 2: this matters for work"),
            "{}",
            unknown.message
        );
        assert_eq!(unknown.severity, Severity::Minor, "short periods want their ticks");
        let guest = crate::vm::testing::host().and(NOHZ_FULL, "(null)").finding("nohz-full");
        assert_eq!(
            (guest.severity, &*guest.message),
            (Severity::Major, "the tick interrupts CPUs 2,3, where vCPUs run")
        );
        assert_eq!(intel(&[(NOHZ_FULL, "(null)")]).state("nohz-full"), State::Finding);
        assert_eq!(intel(&[]).absent(NOHZ_FULL).state("nohz-full"), State::NotApplicable);
        assert!(intel(&[]).absent(NOHZ_FULL).changes("nohz-full").is_empty());
        assert_eq!(intel(&[]).unreadable(NOHZ_FULL, "denied").state("nohz-full"), State::Unreadable);
        for text in HOSTILE {
            assert_ne!(intel(&[(NOHZ_FULL, text)]).state("nohz-full"), State::Ok, "{text}");
        }
    }
}
