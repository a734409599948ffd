//! Whether a guest has vCPUs for real-time work alone, and whether the host leaves them to it.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::change::Change;
use tactus_model::facts::Facts;
use tactus_model::finding::Severity;

use crate::kernel::isolcpus_value;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const STAT: &str = "/proc/stat";
/// Bit of CPUID 0x40000001, EAX, by which KVM says that it tells stolen time
/// (`KVM_FEATURE_STEAL_TIME`, Documentation/virt/kvm/x86/cpuid.rst).
const KVM_STEAL_TIME: u32 = 5;

pub static CHECKS: &[Check] = &[
    Check {
        id: "guest-isolation",
        title: "the guest has no vCPU for real-time work only",
        sources: &[Source::Xeon, Source::RedHat, Source::Osadl],
        applies: &[Applies::Guest],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/sys/devices/system/cpu/{online,isolated}",
        expected: "at least two vCPUs, with vCPU 0 for housekeeping. Its checks isolcpus, rcu-nocbs, \
irq-default-affinity and nohz-full show whether {isolated} are isolated inside the guest too: no RCU callbacks, \
interrupts or tick",
        why: "The host keeps other work off its CPUs, but the guest's own kernel puts it back on the vCPUs: daemons, \
kernel threads, the tick, interrupts. In redhat-openstack-2018 a guest that was only partitioned reached 126 us. \
With the host's kernel and isolation in the guest it reached 22 us.",
        fix: "Give the guest a second vCPU. Boot it with isolcpus, rcu_nocbs and irqaffinity for the vCPUs of its \
real-time work. Add nohz_full where that work computes for long (nohz-full).",
        risk: "The isolated vCPUs run only what is pinned to them.",
        judge: isolation,
        changes,
    },
    Check {
        id: "steal-time",
        title: "the host takes CPU time away from the guest",
        sources: &[Source::Kernel("Documentation/virt/kvm/x86/msr.rst")],
        applies: &[Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[],
        reversible: Reversible::Nothing,
        hardware: false,
        reads: "steal of each CPU in /proc/stat, twice",
        expected: "no steal on CPUs {isolated}",
        why: "Stolen time: the vCPU was ready to run, and the host ran something else on its CPU. No setting of the \
guest helps against it.",
        fix: "On the host: a dedicated CPU and FIFO for each vCPU, and QEMU's other threads on other CPUs (vcpu-pin, \
vcpu-fifo, emulator-pin).",
        risk: "None in the guest.",
        judge: steal,
        changes: no_change,
    },
];

fn isolation(subject: &Subject<'_>) -> Verdict {
    let online = &subject.topology.online;
    if !subject.facts.0.contains_key("/sys/devices/system/cpu/online") {
        return Err(Judgement::unreadable("the facts do not show how many vCPUs the guest has"));
    }
    let shown = |judgement: Judgement| {
        judgement
            .read("/sys/devices/system/cpu/online", online.to_string())
            .read(ISOLATED, subject.facts.text(ISOLATED).unwrap_or("not there"))
    };
    if online.len() < 2 {
        return Ok(shown(Judgement::finding(
            "the guest has one vCPU: housekeeping and real-time work share it",
        )));
    }
    let text = subject.facts.text(ISOLATED);
    if text.is_none() {
        return Err(match subject.value(ISOLATED) {
            Err(judgement) if subject.facts.0.contains_key(ISOLATED) => judgement,
            _ => Judgement::unreadable("the facts do not show which vCPUs are isolated"),
        });
    }
    let wanted = subject.isolated();
    if wanted.contains(0) {
        return Err(Judgement::not_applicable("vCPU 0 is meant for real-time work: see housekeeping"));
    }
    // One fact, one finding.
    if !wanted.minus(&subject.topology.isolated).is_empty() {
        return Err(Judgement::not_applicable(
            "see isolcpus for the vCPUs that are not isolated in the guest",
        ));
    }
    let those = if wanted.len() == 1 { format!("vCPU {wanted} is") } else { format!("vCPUs {wanted} are") };
    Ok(shown(Judgement::ok(format!(
        "{those} isolated in the guest; housekeeping runs on {}",
        subject.housekeeping()
    ))))
}

fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let (isolated, house) = (subject.isolated(), subject.housekeeping());
    if isolated.is_empty() || house.is_empty() || isolated.contains(0) {
        return Vec::new();
    }
    // Not nohz_full, which suits long computation only: that is nohz-full's to say.
    [
        ("isolcpus", isolcpus_value(subject, isolated)),
        ("rcu_nocbs", isolated.to_string()),
        ("irqaffinity", house.to_string()),
    ]
    .into_iter()
    .map(|(parameter, then)| subject.boot("guest-isolation", parameter, then))
    .collect()
}

/// Stolen ticks by CPU: the eighth figure of its line (Documentation/filesystems/proc.rst).
fn stolen(facts: &Facts) -> Option<BTreeMap<u32, u64>> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        Some((cpu, words.nth(7)?.parse().ok()?))
    };
    let all: BTreeMap<u32, u64> = facts.text(STAT)?.lines().filter_map(line).collect();
    (!all.is_empty()).then_some(all)
}

/// Whether this hypervisor tells a guest what it takes from it; `None`: not known.
fn told(subject: &Subject<'_>) -> Option<bool> {
    if subject.cmdline.has("no-steal-acc") {
        return Some(false);
    }
    if subject.facts.text("/sys/hypervisor/type") == Some("xen") {
        return Some(true);
    }
    // `KVMK` of the signature.
    (subject.cpuid("0x40000000:0", "ebx")? == 0x4b4d_564b)
        .then(|| subject.cpuid("0x40000001:0", "eax").map(|eax| eax >> KVM_STEAL_TIME & 1 == 1))?
}

fn steal(subject: &Subject<'_>) -> Verdict {
    let Some(before) = stolen(subject.facts) else {
        return Err(match subject.value(STAT) {
            Err(judgement) if subject.facts.0.contains_key(STAT) => judgement,
            _ => Judgement::unreadable("the facts do not include stolen time"),
        });
    };
    let later = subject.later.and_then(stolen);
    let unseen = subject.isolated().minus(&before.keys().copied().collect());
    if !unseen.is_empty() {
        return Err(Judgement::unreadable(format!("/proc/stat does not list CPUs {unseen}")));
    }
    let ever = before.values().any(|ticks| *ticks > 0);
    if !ever && told(subject) != Some(true) {
        return Err(Judgement::unknowable(
            "the guest sees no stolen time, but the hypervisor may not report it",
        )
        .read("steal of /proc/stat", "0 on every CPU"));
    }
    let moved: BTreeMap<u32, u64> = match &later {
        Some(later) => {
            let gone = |(cpu, ticks): (&u32, &u64)| Some((*cpu, later.get(cpu)?.checked_sub(*ticks)?));
            before.iter().filter_map(gone).collect()
        }
        None => before.clone(),
    };
    let robbed: CpuSet = moved.iter().filter(|(_, ticks)| **ticks > 0).map(|(cpu, _)| *cpu).collect();
    let ticks = moved.values().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
    let judgement = match (robbed.is_empty(), &later) {
        (true, Some(_)) => Judgement::ok("no time was stolen between two readings"),
        (true, None) => Judgement::ok("no time was stolen since the guest started"),
        (false, Some(_)) => Judgement::finding(format!(
            "{ticks} ticks of 10 ms were stolen from CPUs {robbed} between two readings"
        )),
        // It may have been at its start only.
        (false, None) => Judgement::finding(format!(
            "{ticks} ticks of 10 ms were stolen from CPUs {robbed} since the guest started"
        ))
        .at(Severity::Minor),
    };
    let house = !robbed.is_empty() && robbed.and(subject.isolated()).is_empty();
    let judgement = if house { judgement.at(Severity::Minor) } else { judgement };
    Ok(moved.iter().filter(|(_, ticks)| **ticks > 0).take(8).fold(judgement, |judgement, (cpu, ticks)| {
        judgement.read(format!("steal of cpu{cpu} in /proc/stat"), ticks.to_string())
    }))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{arm, guest, intel};

    const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
    const DONE: &[(&str, &str)] = &[
        (NOHZ_FULL, "2-3"),
        ("/proc/cmdline", "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1"),
        ("/proc/irq/default_smp_affinity", "3"),
    ];

    #[test]
    fn a_guest_isolates_its_own_vcpus() {
        let id = "guest-isolation";
        let good = guest(DONE);
        assert_eq!(good.state(id), State::Ok, "{}", good.said(id));
        assert!(good.changes(id).len() == 3);
        assert!(!guest(&[]).wanted(id).iter().any(|change| change.contains("nohz_full")));
        let alone = guest(DONE).with(&[("/sys/devices/system/cpu/online", "0"), (ISOLATED, "")]).finding(id);
        assert_eq!((alone.state, alone.severity), (State::Finding, Severity::Blocker), "{}", alone.message);
        // Each is the finding of another check, and of none twice.
        for (readings, other) in [
            (&[(ISOLATED, "")][..], "isolcpus"),
            (&[("/proc/irq/default_smp_affinity", "f")][..], "irq-default-affinity"),
            (&[(NOHZ_FULL, "3")][..], "nohz-full"),
        ] {
            let bad = guest(DONE).with(readings);
            assert_ne!(bad.state(id), State::Finding, "{}", bad.said(id));
            assert_eq!(bad.state(other), State::Finding, "{other}: {}", bad.said(other));
        }
        assert_eq!(guest(DONE).isolate("0-1").state("housekeeping"), State::Finding);
        assert_ne!(guest(DONE).isolate("0-1").state(id), State::Finding);
        let other = guest(DONE).isolate("1-3");
        assert!(other.wanted(id).contains(&"kernel parameter isolcpus = managed_irq,domain,1-3".to_owned()));
        assert_eq!(guest(DONE).without(ISOLATED).state(id), State::Unreadable);
        assert_eq!(guest(DONE).unreadable(ISOLATED, "denied").state(id), State::Unreadable);
        assert_eq!(intel(DONE).state(id), State::NotApplicable);
    }

    const KVM: &[(&str, &str)] = &[
        ("cpuid:0x40000000:0", "eax=0x40000001 ebx=0x4b4d564b ecx=0x564b4d56 edx=0x4d"),
        ("cpuid:0x40000001:0", "eax=0x1007afb ebx=0x0 ecx=0x0 edx=0x0"),
    ];

    fn stat(steal: [u64; 4]) -> String {
        let lines =
            steal.iter().enumerate().map(|(cpu, steal)| format!("cpu{cpu} 1 0 2 900 0 0 0 {steal} 0 0\n"));
        format!("cpu  4 0 8 3600 0 0 0 0 0 0\n{}intr 5 0\n", lines.collect::<String>())
    }

    #[test]
    fn what_the_host_takes_is_seen_where_it_tells() {
        let id = "steal-time";
        let with = |steal| guest(KVM).and(STAT, &stat(steal));
        assert_eq!(with([0; 4]).state(id), State::Ok);
        let since = with([0, 0, 7, 0]).finding(id);
        assert_eq!((since.state, since.severity), (State::Finding, Severity::Minor));
        let now = with([0, 0, 7, 0]).later(&[(STAT, &stat([0, 0, 9, 1]))]).finding(id);
        assert_eq!((now.state, now.severity), (State::Finding, Severity::Major));
        assert!(now.message.starts_with("3 ticks of 10 ms were stolen from CPUs 2,3"), "{}", now.message);
        let house = with([0, 0, 7, 0]).later(&[(STAT, &stat([4, 0, 7, 0]))]).finding(id);
        assert_eq!((house.state, house.severity), (State::Finding, Severity::Minor));
        assert_eq!(with([0, 0, 7, 0]).later(&[(STAT, &stat([0, 0, 7, 0]))]).state(id), State::Ok);
    }

    #[test]
    fn silence_proves_nothing_where_the_host_does_not_tell() {
        let id = "steal-time";
        assert_eq!(guest(&[(STAT, &stat([0; 4]))]).state(id), State::Unknowable);
        assert_eq!(
            arm(&[(STAT, &stat([0; 4]))]).role(tactus_model::finding::Role::Guest).state(id),
            State::Unknowable
        );
        let deaf = guest(KVM).with(&[(STAT, &stat([0; 4])), ("/proc/cmdline", "no-steal-acc")]);
        assert_eq!(deaf.state(id), State::Unknowable);
        assert_eq!(guest(KVM).state(id), State::Unreadable);
        assert_eq!(guest(KVM).and(STAT, "cpu0 1 0").state(id), State::Unreadable);
        assert_eq!(guest(KVM).and(STAT, "cpu0 1 0 2 900 0 0 0 0 0 0\n").state(id), State::Unreadable);
        assert_eq!(guest(KVM).and(STAT, &stat([u64::MAX, u64::MAX, 1, 1])).state(id), State::Finding);
        assert_eq!(intel(KVM).and(STAT, &stat([9; 4])).state(id), State::NotApplicable);
    }
}
