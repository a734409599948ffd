//! Where interrupts arrive.

use tactus_model::CpuSet;
use tactus_model::change::{self, Change, Form};
use tactus_model::finding::Severity;
use tactus_model::interrupts::Interrupt;
use tactus_model::isolation::{Isolcpus, last_cpu};

use super::isolation::isolate;
use super::services::is_balanced;
use crate::sentence::{count, cpus_or_none, few, meet, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const DEFAULT: &str = "/proc/irq/default_smp_affinity";

pub static CHECKS: &[Check] = &[
    Check {
        id: "managed-irq",
        title: "managed interrupts may arrive on real-time CPUs",
        sources: &[
            Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
            Source::Tuned("realtime"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "isolcpus= in /proc/cmdline; /proc/irq/*/effective_affinity_list of storage queues",
        expected: "isolcpus=managed_irq,... with {isolated}; queues arrive on {housekeeping}",
        why: "Drivers with one queue per CPU (NVMe, virtio-blk, SAS) let the kernel spread their interrupts over all \
CPUs. These interrupts are managed: the kernel refuses writes to their smp_affinity. Only isolcpus=managed_irq \
(since Linux 5.6) keeps them off isolated CPUs, if a queue has a housekeeping CPU.",
        fix: "Boot with isolcpus=managed_irq,domain,{isolated}. If all CPUs of a queue are isolated, its interrupt \
still arrives on them when a program on one of them does I/O. Keep I/O off these CPUs, or give the device fewer \
queues.",
        risk: "Low: the kernel guarantees nothing (best effort).",
        judge: managed,
        changes: |subject| match subject.kernel.before(5, 6) {
            true => Vec::new(),
            false => isolate("managed-irq", subject),
        },
    },
    Check {
        id: "irq-default-affinity",
        title: "new interrupts may arrive on real-time CPUs",
        sources: &[
            Source::Xeon,
            Source::Osadl,
            Source::Kernel("Documentation/core-api/irq/irq-affinity.rst"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine, SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: DEFAULT,
        expected: "the mask {housekeeping_mask} (CPUs {housekeeping})",
        why: "Interrupts requested later get this mask, for example from a driver or network interface that starts. \
Without the mask each such event puts new interrupts on isolated CPUs.",
        fix: "Boot with irqaffinity={housekeeping}, or write the mask {housekeeping_mask} to \
/proc/irq/default_smp_affinity.",
        risk: "None known.",
        judge: default_affinity,
        changes: |subject| {
            let Some((_, keeping)) = subject.parted() else { return Vec::new() };
            let mask = subject.set("irq-default-affinity", DEFAULT, Form::Mask, change::to_mask(keeping));
            let boot = subject.boot("irq-default-affinity", "irqaffinity", keeping.to_string());
            mask.into_iter().chain([boot]).collect()
        },
    },
    Check {
        id: "irq-affinity",
        title: "device interrupts arrive on real-time CPUs",
        sources: &[
            Source::Xeon,
            Source::Industrial,
            Source::Kernel("Documentation/core-api/irq/irq-affinity.rst"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/proc/interrupts; /proc/irq/*/smp_affinity_list; /proc/irq/*/effective_affinity_list",
        expected: "no interrupt on CPUs {isolated}, except those of passed-through devices (vfio) and those placed there \
alone (own-irq)",
        why: "A handler preempts every thread; on a PREEMPT_RT kernel its thread has FIFO 50. It also brings \
softirqs of any length: a network card's receive handler may run for milliseconds.",
        fix: "Write {housekeeping} to /proc/irq/N/smp_affinity_list of each listed interrupt N. Managed interrupts \
(managed-irq) refuse it. Interrupts of the real-time work stay (own-irq).",
        risk: "Devices interrupt fewer CPUs, and may become slower.",
        judge: affinity,
        changes: |subject| {
            let Some((isolated, keeping)) = subject.parted() else { return Vec::new() };
            movable(subject).filter_map(|interrupt| moved(subject, interrupt, isolated, keeping)).collect()
        },
    },
];

/// Queues whose interrupts the kernel itself spreads (`IRQ_AFFINITY_MANAGED`), told by the names that
/// their drivers give them. `nvme0q0` is the admin queue, which is not managed.
#[must_use]
pub fn is_managed(interrupt: &Interrupt) -> bool {
    interrupt.actions.iter().any(|name| {
        let nvme = name.strip_prefix("nvme").and_then(|rest| rest.split_once('q'));
        nvme.is_some_and(|(_, queue)| queue.parse::<u32>().is_ok_and(|number| number > 0))
            || (name.starts_with("virtio") && (name.contains("-req.") || name.ends_with("-request")))
            || ["megasas", "mpt3sas", "mpt2sas", "mpi3mr", "smartpqi", "hisi_sas"]
                .iter()
                .any(|d| name.starts_with(d))
    })
}

/// Interrupts that each CPU has for itself, and the timer that was there at boot: none can be moved.
fn is_fixed(interrupt: &Interrupt) -> bool {
    interrupt.actions.iter().any(|name| {
        matches!(name.as_str(), "timer" | "cascade" | "arch_timer" | "IPI")
            || (name.starts_with("kvm guest") && name.ends_with("timer"))
            || name.starts_with("arm-pmu")
            || name.starts_with("armv8")
    })
}

/// Whether the device belongs to somebody else: passed through to a guest.
fn is_owned(interrupt: &Interrupt) -> bool {
    interrupt.actions.iter().any(|name| name.starts_with("vfio-"))
}

/// Whether CPUs are set apart, and the interrupt may arrive on these alone because somebody chose that.
pub fn is_placed(subject: &Subject<'_>, interrupt: &Interrupt) -> bool {
    !subject.sets_none_apart() && !is_owned(interrupt) && is_chosen(subject, interrupt)
}

/// Whether somebody restricted the interrupt to the CPUs for real-time work. Without that, it can arrive elsewhere.
/// Every default includes housekeeping CPUs. A driver that spreads its queues reports that
/// (`irq_set_affinity_and_hint`). irqbalance puts an interrupt on one CPU only if that CPU takes part in its
/// balancing.
#[must_use]
pub fn is_chosen(subject: &Subject<'_>, interrupt: &Interrupt) -> bool {
    let Some(allowed) = interrupt.affinity.as_deref().filter(|cpus| !cpus.is_empty()) else { return false };
    let hint = || subject.facts.text(&format!("/proc/irq/{}/affinity_hint", interrupt.irq));
    within(allowed, subject.isolated())
        && !is_fixed(interrupt)
        && !is_managed(interrupt)
        && hint().and_then(change::mask).as_ref() != Some(allowed)
        && (is_owned(interrupt) || !is_balanced(subject, allowed))
}

/// Interrupts that keep away from isolated CPUs if they are told to: no CPU's own, no guest's, and
/// neither spread by the kernel nor placed by somebody.
fn movable<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = &'a Interrupt> {
    subject
        .interrupts
        .active()
        .filter(|one| !is_fixed(one) && !is_owned(one) && !is_managed(one) && !is_placed(subject, one))
}

fn moved(
    subject: &Subject<'_>,
    interrupt: &Interrupt,
    isolated: &CpuSet,
    keeping: &CpuSet,
) -> Option<Change> {
    let rest = interrupt.affinity.as_deref()?.minus(isolated);
    let then = if rest.is_empty() { keeping } else { &rest };
    let path = format!("/proc/irq/{}/smp_affinity_list", interrupt.irq);
    subject.set("irq-affinity", &path, Form::List, then.to_string())
}

/// `26 (eth0-rx-0)`.
pub fn name(interrupt: &&Interrupt) -> String {
    format!("{} ({})", interrupt.irq, interrupt.actions.first().map_or("", String::as_str))
}

/// Adds where interrupts may and do arrive.
pub fn read(judgement: Judgement, shown: &[&Interrupt]) -> Judgement {
    let list = |set: Option<&CpuSet>| set.map_or("unknown".to_owned(), ToString::to_string);
    shown.iter().take(4).fold(judgement, |judgement, one| {
        let may = list(one.affinity.as_deref());
        let does = list(one.effective.as_deref());
        judgement
            .read(format!("/proc/irq/{}/{{smp,effective}}_affinity_list", one.irq), format!("{may}; {does}"))
    })
}

fn managed(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    let told = subject.told()?;
    let Isolcpus { managed_irq: kept, refused, .. } = Isolcpus::of(told, last_cpu(subject.facts));
    let values: Vec<String> =
        told.all("isolcpus").flatten().map(|value| format!("isolcpus={value}")).collect();
    let value = if values.is_empty() { "no isolcpus".to_owned() } else { values.join(" ") };
    let queues: Vec<&Interrupt> = subject.interrupts.active().filter(|one| is_managed(one)).collect();
    let arrive = |one: &&Interrupt| one.effective.as_deref().is_some_and(|cpus| meet(cpus, isolated));
    let stray: Vec<&Interrupt> = queues.iter().copied().filter(arrive).collect();
    let asked = within(isolated, &kept);
    let found = few(stray.iter().map(name));
    let said = match (asked, stray.is_empty()) {
        (true, true) => {
            let what = count(queues.len(), "queue interrupt");
            format!(
                "the kernel keeps managed interrupts away from {}: none of {what} is there",
                cpus_or_none(isolated)
            )
        }
        (true, false) => {
            format!("managed_irq is on, but these arrive on {}: {found}", cpus_or_none(isolated))
        }
        (false, true) => format!("the kernel may put managed interrupts onto {}", cpus_or_none(isolated)),
        (false, false) => format!("managed interrupts arrive on {}: {found}", cpus_or_none(isolated)),
    };
    let said = match refused.filter(|_| !asked) {
        Some(why) => format!("{said} ({why})"),
        None => said,
    };
    if asked && !subject.interrupts.known {
        let why = "managed_irq is on, but the facts do not show whether a queue arrives there anyway";
        return Err(Judgement::unreadable(why).read("/proc/cmdline", value));
    }
    let judgement = if asked && stray.is_empty() { Judgement::ok(said) } else { Judgement::finding(said) };
    let judgement = match subject.kernel.before(5, 6) {
        true => judgement.fix(
            "Linux before 5.6 does not know the parameter. Boot a newer kernel, or give the device fewer queues than \
there are housekeeping CPUs.",
        ),
        false => judgement,
    };
    // Without such a queue this concerns only devices that may be added. With managed_irq it concerns only queues
    // whose CPUs are all isolated, and only when a program there uses them.
    let severity = if asked || queues.is_empty() { Severity::Minor } else { Severity::Major };
    let judgement = read(judgement.read("/proc/cmdline", value), &stray);
    Ok(if asked && stray.is_empty() { judgement } else { judgement.at(severity) })
}

fn default_affinity(subject: &Subject<'_>) -> Verdict {
    let text = subject.value(DEFAULT)?;
    let (isolated, _) = subject.need_parted()?;
    let Some(cpus) = change::mask(text) else {
        return Err(Judgement::unreadable(format!("{DEFAULT} is not a mask of CPUs")).read(DEFAULT, text));
    };
    let bad = format!("new interrupts may arrive on {}", cpus_or_none(&cpus.and(isolated)));
    Ok(Judgement::when(
        !meet(&cpus, isolated),
        format!("new interrupts arrive on {}", cpus_or_none(&cpus)),
        bad,
    )
    .read(DEFAULT, text))
}

fn affinity(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    if !subject.interrupts.known {
        subject.need("/proc/interrupts")?;
    }
    let used: Vec<&Interrupt> = subject.interrupts.active().filter(|one| !is_fixed(one)).collect();
    let owned = used.iter().filter(|one| is_owned(one)).count();
    let placed = used.iter().filter(|one| is_placed(subject, one)).count();
    let foreign = || movable(subject);
    let reaches = |cpus: Option<&CpuSet>| cpus.is_some_and(|cpus| meet(cpus, isolated));
    let stray: Vec<&Interrupt> = foreign().filter(|one| reaches(one.arrives())).collect();
    let place = cpus_or_none(isolated);
    if !stray.is_empty() {
        let said = format!("device interrupts arrive on {place}: {}", few(stray.iter().map(name)));
        return Ok(read(Judgement::finding(said), &stray));
    }
    let loose: Vec<&Interrupt> = foreign().filter(|one| reaches(one.affinity.as_deref())).collect();
    if !loose.is_empty() {
        let names = few(loose.iter().map(name));
        let said = format!(
            "{} may move to {place}, although none is there now: {names}",
            count(loose.len(), "interrupt")
        );
        return Ok(read(Judgement::finding(said), &loose).at(Severity::Minor));
    }
    let hidden: Vec<&Interrupt> =
        foreign().filter(|one| one.arrives().is_none_or(CpuSet::is_empty)).collect();
    if !hidden.is_empty() {
        let said = format!(
            "where {} arrive is unknown: {}",
            count(hidden.len(), "interrupt"),
            few(hidden.iter().map(name))
        );
        return Err(Judgement::unreadable(said));
    }
    let mut said = format!("none of {} arrives on {place}", count(foreign().count(), "interrupt"));
    let but = [(owned, "those of passed-through devices"), (placed, "those placed there alone, see own-irq")];
    let but = but.iter().filter(|(number, _)| *number > 0).map(|(number, of)| format!("{of} ({number})"));
    if owned + placed > 0 {
        said += &format!(", except {}", but.collect::<Vec<_>>().join(" and "));
    }
    Ok(Judgement::ok(said).read("/proc/irq/*/effective_affinity_list", "housekeeping CPUs"))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, intel};

    const INTERRUPTS: &str = "            CPU0       CPU1       CPU2       CPU3
  0:         44          0          0          0  IO-APIC   2-edge      timer
 24:          1          0          0          0 PCI-MSIX-0000:00:02.0   0-edge      nvme0q0
 25:          1          0          0          0 PCI-MSIX-0000:00:02.0   1-edge      nvme0q1
 26:          1          0          0          0 PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0
 27:          1          0          0          0 PCI-MSIX-0000:00:04.0   0-edge      vfio-msix[0](0000:00:04.0)
LOC:          9          9          9          9   Local timer interrupts";

    /// IRQ, allowed CPUs, effective CPUs.
    fn machine(places: &[(u32, &str, &str)]) -> System {
        let machine =
            intel(&[("/proc/interrupts", INTERRUPTS), ("/proc/cmdline", "isolcpus=managed_irq,domain,2-3")]);
        let all = [(0, "0-3", "0"), (24, "0,1", "0"), (25, "0,1", "0"), (26, "0,1", "1"), (27, "3", "3")];
        all.iter().chain(places).fold(machine, |machine, (irq, may, does)| {
            machine
                .and(&format!("/proc/irq/{irq}/smp_affinity_list"), may)
                .and(&format!("/proc/irq/{irq}/effective_affinity_list"), does)
        })
    }

    #[test]
    fn interrupts_keep_house_but_for_those_that_are_passed_through() {
        let good = machine(&[]);
        assert_eq!(good.state("irq-affinity"), State::Ok);
        assert!(good.said("irq-affinity").contains("passed-through devices (1)"));
        assert!(good.wanted("irq-affinity").is_empty());
        let bad = machine(&[(26, "0-3", "2")]);
        assert_eq!(bad.said("irq-affinity"), "device interrupts arrive on CPUs 2,3: 26 (eth0-rx-0)");
        assert_eq!(bad.wanted("irq-affinity"), ["/proc/irq/26/smp_affinity_list = 0,1"]);
    }

    #[test]
    fn the_cpus_of_isolcpus_are_read_as_the_kernel_reads_them() {
        let told = |line: &str| {
            intel(&[
                ("/proc/interrupts", "            CPU0       CPU1       CPU2       CPU3\n"),
                ("/proc/cmdline", line),
            ])
            .and("/sys/devices/system/cpu/possible", "0-3")
        };
        for line in [
            "isolcpus=managed_irq,domain,2-N",
            "isolcpus=domain,managed_irq,0-3:2/4,2-3",
            "isolcpus=managed_irq,2,N",
            "isolcpus=managed_irq,2-3",
        ] {
            let found = told(line);
            assert_eq!(found.state("managed-irq"), State::Ok, "{line}: {}", found.said("managed-irq"));
        }
        let beyond = told("isolcpus=managed_irq,domain,2-7").said("managed-irq");
        assert_eq!(
            beyond,
            "the kernel may put managed interrupts onto CPUs 2,3 (the kernel refuses isolcpus=managed_irq,domain,2-7: CPU 7 \
             is above the highest there is (3))"
        );
        assert_eq!(told("isolcpus=2-3 isolcpus=managed_irq,2-N").state("managed-irq"), State::Ok);
        // It is the same line: nothing is to be changed.
        assert!(told("isolcpus=domain,managed_irq,2-N").wanted("managed-irq").is_empty());
    }

    #[test]
    fn an_interrupt_that_was_placed_on_isolated_cpus_alone_is_no_stray() {
        let own = machine(&[(26, "2", "2")]);
        assert_eq!(own.state("irq-affinity"), State::Ok, "{}", own.said("irq-affinity"));
        assert!(own.said("irq-affinity").ends_with("those placed there alone, see own-irq (1)"));
        assert!(own.wanted("irq-affinity").is_empty());
        let spread = own.clone().and("/proc/irq/26/affinity_hint", "4");
        assert_eq!(spread.state("irq-affinity"), State::Finding, "its driver spreads its queues");
        assert_eq!(spread.wanted("irq-affinity"), ["/proc/irq/26/smp_affinity_list = 0,1"]);
        let nobody = own.and("/sys/devices/system/cpu/isolated", "");
        assert_eq!(nobody.state("irq-affinity"), State::Finding, "no CPU was set apart");
    }

    #[test]
    fn an_interrupt_on_the_cpu_where_irqbalance_put_it_was_not_placed() {
        // Isolated by a word and not at boot: irqbalance knows nothing of it, and puts queues onto single CPUs.
        let running = "700\t700\t1\t400100\tOTHER\t0\t0-1\tirqbalance";
        let single = machine(&[(24, "0", "0"), (26, "1", "1")]).isolate("1-3");
        assert_eq!(single.state("irq-affinity"), State::Ok, "{}", single.said("irq-affinity"));
        let balanced = single.and("threads:0", running);
        assert_eq!(balanced.wanted("irq-affinity"), ["/proc/irq/26/smp_affinity_list = 0"]);
        assert_eq!(balanced.state("own-irq"), State::Ok);
        // It keeps away from what was isolated at boot, and from what it is told.
        let placed = |system: System| system.state("own-irq") == State::Finding;
        let isolated = machine(&[(26, "2", "2")]).and("threads:0", running);
        assert!(placed(isolated));
        let told = |line: &str| placed(balanced.clone().and("/etc/default/irqbalance", line));
        assert!(told("IRQBALANCE_BANNED_CPULIST=1-3") && told("IRQBALANCE_BANNED_CPUS=e"));
        assert!(told("IRQBALANCE_ARGS=\"--banirq=26\"") && told("IRQBALANCE_ARGS=-i 26"));
        assert!(!told("#IRQBALANCE_ARGS=--banirq=26") && !told("IRQBALANCE_BANNED_CPULIST=3"));
        assert!(!told("IRQBALANCE_ARGS=--journal"));
    }

    #[test]
    fn a_queue_that_the_kernel_spreads_is_reported_once() {
        let spread = machine(&[(25, "2", "2")]).and("/proc/cmdline", "");
        assert_eq!((spread.state("managed-irq"), spread.state("irq-affinity")), (State::Finding, State::Ok));
    }

    #[test]
    fn an_interrupt_that_may_move_is_less_than_one_that_is_there() {
        let found = machine(&[(26, "0-3", "1")]).finding("irq-affinity");
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Minor));
        assert_eq!(
            machine(&[(25, "0-3", "1")]).state("irq-affinity"),
            State::Ok,
            "a managed queue cannot be moved"
        );
    }

    #[test]
    fn what_cannot_be_seen_is_not_good() {
        assert_eq!(intel(&[]).state("irq-affinity"), State::Unreadable);
        assert_eq!(intel(&[("/proc/interrupts", INTERRUPTS)]).state("irq-affinity"), State::Unreadable);
        assert_eq!(
            intel(&[]).unreadable("/proc/interrupts", "denied").state("irq-affinity"),
            State::Unreadable
        );
        assert_eq!(machine(&[]).isolate("0-3").state("irq-affinity"), State::NotApplicable);
    }

    #[test]
    fn managed_interrupts_need_the_word_on_the_command_line() {
        assert_eq!(machine(&[]).state("managed-irq"), State::Ok);
        let plain = |machine: System| machine.and("/proc/cmdline", "isolcpus=2-3").finding("managed-irq");
        assert_eq!(
            (plain(machine(&[])).state, plain(machine(&[])).severity),
            (State::Finding, Severity::Major)
        );
        assert_eq!(plain(intel(&[("/proc/interrupts", "")])).severity, Severity::Minor);
        let full = machine(&[(25, "2", "2")]).finding("managed-irq");
        assert_eq!((full.state, full.severity), (State::Finding, Severity::Minor));
        assert_eq!(
            machine(&[]).and("/proc/cmdline", "isolcpus=managed_irq,3").state("managed-irq"),
            State::Finding
        );
        let old = |release| machine(&[]).and("/proc/cmdline", "quiet").and("uname:release", release);
        assert!(old("5.4.0-150-generic").changes("managed-irq").is_empty(), "it has no such parameter");
        assert!(old("5.4.0-150-generic").finding("managed-irq").fix.starts_with("Linux before 5.6"));
        assert_eq!(
            old("5.6.0").wanted("managed-irq"),
            ["kernel parameter isolcpus = managed_irq,domain,2,3"]
        );
        let twice = machine(&[]).and("/proc/cmdline", "isolcpus=managed_irq,3 isolcpus=managed_irq,2");
        assert_eq!(twice.state("managed-irq"), State::Finding, "the second is refused");
        assert_eq!(
            intel(&[("/proc/cmdline", "isolcpus=managed_irq,2-3")]).state("managed-irq"),
            State::Unreadable
        );
        assert_eq!(intel(&[]).state("managed-irq"), State::Unreadable);
    }

    #[test]
    fn new_interrupts_go_where_the_mask_says() {
        assert_eq!(intel(&[(DEFAULT, "3")]).state("irq-default-affinity"), State::Ok);
        assert_eq!(
            intel(&[(DEFAULT, "f")]).said("irq-default-affinity"),
            "new interrupts may arrive on CPUs 2,3"
        );
        let wanted = intel(&[(DEFAULT, "f")]).wanted("irq-default-affinity");
        assert_eq!(wanted, ["/proc/irq/default_smp_affinity = 3", "kernel parameter irqaffinity = 0,1"]);
        assert_eq!(intel(&[]).absent(DEFAULT).state("irq-default-affinity"), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(DEFAULT, "denied").state("irq-default-affinity"), State::Unreadable);
        for text in ["rubbish", "", "0-3"] {
            assert_eq!(intel(&[(DEFAULT, text)]).state("irq-default-affinity"), State::Unreadable, "{text}");
        }
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            let subject = machine(&[(26, text, text)]).and("/proc/cmdline", text).and(DEFAULT, text);
            for id in ["managed-irq", "irq-affinity"] {
                assert_ne!(subject.state(id), State::Ok, "{id}: {text}");
            }
        }
    }
}
