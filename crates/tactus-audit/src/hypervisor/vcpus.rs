//! The threads that run the processors of guests: where they run, and what goes before them.

use std::collections::BTreeMap;

use tactus_model::CpuSet;
use tactus_model::change::Change;
use tactus_model::finding::Severity;
use tactus_model::threads::{Policy, Thread};

use crate::vm::{Vm, each, realtime};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

/// The priority that libvirt's and Nova's guides give a vCPU, below all helpers of the kernel.
const PRIORITY: u32 = 1;

pub static CHECKS: &[Check] = &[
    Check {
        id: "vcpu-pin",
        title: "a vCPU has no dedicated CPU",
        sources: &[Source::Xeon, Source::Qoriq, Source::Osadl],
        applies: &[Applies::Hypervisor],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::Libvirt, SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "the CPUs of each thread named CPU n/KVM (threads:*, from sched_getaffinity)",
        expected: "a different one of CPUs {isolated} for each, and no core shared by two of them",
        why: "A vCPU that moves loses its caches and its TLB, and waits for the task on its new CPU. Isolated CPUs \
are not balanced: vCPUs that may use several of them pile up on one. Two vCPUs on one CPU take turns of one time \
slice.",
        fix: "libvirt: <vcpupin vcpu='0' cpuset='...'/> for each vCPU, from CPUs {isolated}. QEMU: taskset -pc \
CPU TID for each thread-id of QMP's query-cpus-fast.",
        risk: "A pinned guest cannot leave a busy or broken CPU.",
        judge: |subject| {
            let users = users(subject);
            each(subject, |vm| pinned(subject, vm, &users))
        },
        changes: pins,
    },
    Check {
        id: "vcpu-fifo",
        title: "a vCPU is scheduled like an ordinary thread",
        sources: &[
            Source::RedHat,
            Source::Osadl,
            Source::Kernel("Documentation/core-api/real-time/hardware.rst"),
            Source::Guide("libvirt, realtime"),
        ],
        applies: &[Applies::Hypervisor],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "policy and priority of each thread named CPU n/KVM",
        expected: "FIFO 1; vCPU 0 of a guest with several vCPUs may be an ordinary thread for housekeeping",
        why: "With the ordinary policy every thread on the CPU gets its share, kernel workers included. The guest's \
real-time work waits for milliseconds and cannot notice. Priority 1 is above all of these, and below the kernel \
helpers that the vCPU needs (rcuc, ktimers).",
        fix: "libvirt: <vcpusched vcpus='1-2' scheduler='fifo' priority='1'/> with the vCPUs of the real-time \
work, and <emulatorpin cpuset='{housekeeping}'/>. QEMU: chrt -f -p 1 TID for each thread-id of QMP's \
query-cpus-fast.",
        risk: "A FIFO vCPU that never halts starves everything else on its CPU, including QEMU's other threads and \
vhost: pin those to other CPUs first. A guest whose vCPUs are all FIFO and spin for each other hangs.",
        judge: |subject| each(subject, scheduled),
        changes: policies,
    },
];

/// How many vCPUs, of all machines, are bound to each CPU alone.
fn users(subject: &Subject<'_>) -> BTreeMap<u32, usize> {
    let mut users = BTreeMap::new();
    for vcpu in subject.vms.iter().flat_map(|vm| &vm.vcpus) {
        // A vCPU that may run on several CPUs has its own finding, and is not counted for each of them.
        if vcpu.thread.cpus.len() == 1 {
            vcpu.thread.cpus.iter().for_each(|cpu| *users.entry(cpu).or_default() += 1);
        }
    }
    users
}

/// The judgement of a machine whose vCPUs cannot be told from its other threads.
///
/// # Errors
/// Unreadable, always, when it has no known vCPU.
pub fn vcpus_of(vm: &Vm) -> Result<(), Judgement> {
    if vm.vcpus.is_empty() {
        return Err(Judgement::unreadable(
            "no thread has the name of a vCPU: start QEMU with `-name NAME,debug-threads=on`, as libvirt does",
        ));
    }
    Ok(())
}

fn pinned(subject: &Subject<'_>, vm: &Vm, users: &BTreeMap<u32, usize>) -> Verdict {
    vcpus_of(vm)?;
    let mut faults = Vec::new();
    let (mut loose, mut outside, mut shared) = (CpuSet::default(), CpuSet::default(), CpuSet::default());
    for vcpu in &vm.vcpus {
        match vcpu.thread.cpus.first().filter(|_| vcpu.thread.cpus.len() == 1) {
            None => loose.insert(vcpu.number),
            Some(cpu) if users.get(&cpu).is_some_and(|users| *users > 1) => shared.insert(vcpu.number),
            Some(cpu) if !subject.isolated().contains(cpu) => outside.insert(vcpu.number),
            Some(_) => {}
        }
    }
    for (set, what) in [
        (&loose, "not pinned to one CPU"),
        (&shared, "pinned to a CPU that another vCPU is pinned to"),
        (&outside, "pinned to a CPU that is not for real-time work"),
    ] {
        match set.len() {
            0 => {}
            1 => faults.push(format!("vCPU {set} is {what}")),
            _ => faults.push(format!("vCPUs {set} are {what}")),
        }
    }
    let bound = faults.is_empty();
    let halves = halves(subject, vm);
    if halves.len() > 1 {
        faults.push(format!("vCPUs {halves} share a core with each other"));
    }
    let judgement = match faults.is_empty() {
        true => Judgement::ok(format!("{} vCPUs have one CPU each: {}", vm.vcpus.len(), vm.cpus())),
        false => Judgement::finding(faults.join(", ")),
    };
    // The first vCPU may keep the guest's house, on the CPUs that keep the host's.
    let first = CpuSet::one(0);
    let house = loose.or(&outside) == first
        && shared.is_empty()
        && vm.vcpus.len() > 1
        && vm.vcpus.iter().all(|v| v.number != 0 || v.thread.cpus.minus(subject.housekeeping()).is_empty());
    let judgement = match (house, bound && halves.len() > 1) {
        (true, _) if halves.len() < 2 => judgement.at(Severity::Minor),
        // Each has its CPU, but not the core that it shares.
        (_, true) => judgement.at(Severity::Major),
        _ => judgement,
    };
    Ok(vm.vcpus.iter().fold(judgement, |judgement, vcpu| {
        judgement
            .read(format!("CPUs of {} ({})", vcpu.thread.name, vcpu.thread.tid), vcpu.thread.cpus.to_string())
    }))
}

/// The vCPUs that are bound to hardware threads of one core.
fn halves(subject: &Subject<'_>, vm: &Vm) -> CpuSet {
    let mut on: BTreeMap<u32, u32> = BTreeMap::new();
    for vcpu in vm.vcpus.iter().filter(|vcpu| vcpu.thread.cpus.len() == 1) {
        vcpu.thread.cpus.iter().for_each(|cpu| _ = on.insert(cpu, vcpu.number));
    }
    let cores = subject.topology.cores.iter().filter(|core| core.len() > 1);
    cores
        .map(|core| core.iter().filter_map(|cpu| on.get(&cpu).copied()).collect::<CpuSet>())
        .filter(|vcpus| vcpus.len() > 1)
        .fold(CpuSet::default(), |all, vcpus| all.or(&vcpus))
}

/// A free isolated CPU for each vCPU that shares its CPU; nothing if there are too few. Threads that only have the
/// name of a vCPU are left alone: otherwise any user could get reserved CPUs by naming a thread as QEMU does.
fn pins(subject: &Subject<'_>) -> Vec<Change> {
    let (vms, _) = realtime(subject);
    let mut taken = CpuSet::default();
    let mut without: Vec<&Thread> = Vec::new();
    let mut pins: Vec<(&Thread, u32)> = Vec::new();
    for vcpu in vms.into_iter().filter(|vm| vm.distrust.is_none()).flat_map(|vm| &vm.vcpus) {
        let own = vcpu.thread.cpus.first().filter(|cpu| {
            vcpu.thread.cpus.len() == 1 && subject.isolated().contains(*cpu) && !taken.contains(*cpu)
        });
        match own {
            Some(cpu) => {
                taken.insert(cpu);
                pins.push((&vcpu.thread, cpu));
            }
            None => without.push(&vcpu.thread),
        }
    }
    let free = subject.isolated().minus(&taken);
    if free.len() >= without.len() {
        pins.extend(without.into_iter().zip(free.iter()));
    }
    pins.sort_by_key(|(thread, _)| thread.tid);
    pins.into_iter().map(|(thread, cpu)| subject.place("vcpu-pin", thread, &CpuSet::one(cpu))).collect()
}

fn scheduled(vm: &Vm) -> Verdict {
    vcpus_of(vm)?;
    let several = vm.vcpus.len() > 1;
    let fixed = |thread: &Thread| matches!(thread.policy, Policy::Fifo | Policy::Rr);
    let ordinary: CpuSet =
        vm.vcpus.iter().filter(|vcpu| !fixed(&vcpu.thread)).map(|vcpu| vcpu.number).collect();
    let highest = vm.vcpus.iter().filter(|vcpu| fixed(&vcpu.thread)).map(|vcpu| vcpu.thread.priority).max();
    let judgement = if ordinary.is_empty() || several && ordinary == CpuSet::one(0) {
        let house = if ordinary.is_empty() { "" } else { "; vCPU 0 does housekeeping" };
        match highest.unwrap_or(0) {
            PRIORITY => Judgement::ok(format!("its vCPUs are FIFO {PRIORITY}{house}")),
            priority => Judgement::finding(format!(
                "its vCPUs have priority {priority}{house}: they preempt kernel helpers of lower priority, without \
need"
            ))
            .at(Severity::Minor),
        }
    } else {
        let are = if ordinary.len() == 1 {
            "vCPU {} is an ordinary thread"
        } else {
            "vCPUs {} are ordinary threads"
        };
        let distrust = vm.distrust.map(|why| format!(" ({why})"));
        Judgement::finding(are.replace("{}", &ordinary.to_string()) + &distrust.unwrap_or_default())
    };
    Ok(vm.vcpus.iter().fold(judgement, |judgement, vcpu| {
        let Thread { name, tid, policy, priority, .. } = &vcpu.thread;
        judgement.read(format!("scheduling of {name} ({tid})"), format!("{} {priority}", policy.word()))
    }))
}

/// Threads that only say that they are vCPUs stay as they are: a policy of root's is worth having.
/// The first vCPU of several is left as it is; nothing is made FIFO where QEMU's other threads might
/// need the same CPU (pitfalls 11 and 12).
fn policies(subject: &Subject<'_>) -> Vec<Change> {
    let (vms, _) = realtime(subject);
    let mut changes = Vec::new();
    for vm in vms.into_iter().filter(|vm| vm.distrust.is_none()) {
        let rest = vm.emulator.iter().chain(&vm.io).chain(&vm.helpers);
        let elsewhere = rest.fold(CpuSet::default(), |all, thread| all.or(&thread.cpus));
        for vcpu in &vm.vcpus {
            let alone = vcpu.thread.cpus.len() == 1 && vcpu.thread.cpus.and(&elsewhere).is_empty();
            let first = vcpu.number == 0 && vm.vcpus.len() > 1 && !vcpu.thread.policy.is_realtime();
            if alone && !first {
                changes.push(subject.schedule("vcpu-fifo", &vcpu.thread, format!("FIFO {PRIORITY}")));
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::intel;
    use crate::vm::testing::{THREADS, beside, host, threads};

    #[test]
    fn threads_that_only_say_that_they_are_vcpus_get_nothing_of_roots() {
        for (id, of, instead) in [
            ("vcpu-pin", "3\tCPU 1/KVM", "2,3\tCPU 1/KVM"),
            ("vcpu-fifo", "FIFO\t1\t3\tCPU 1/KVM", "OTHER\t0\t3\tCPU 1/KVM"),
        ] {
            let service = threads(of, instead).and("vm:812:uid", "64055");
            assert!(!service.changes(id).is_empty(), "{id}");
            for liar in [
                threads(of, instead).and("vm:812:uid", "1000"),
                threads(of, instead).without("vm:812:uid"),
                threads(of, instead).and("vm:812:vcpus", ""),
                threads(of, instead).without("vm:812:vcpus"),
                threads(of, instead).and("vm:812:vcpus", "0,2"),
            ] {
                assert_eq!((liar.state(id), liar.changes(id).len()), (State::Finding, 0), "{id}");
            }
        }
        let said = threads("FIFO\t1\t3\tCPU 1/KVM", "OTHER\t0\t3\tCPU 1/KVM")
            .and("vm:812:uid", "1000")
            .said("vcpu-fifo");
        assert!(said.contains("of user 1000"), "{said}");
    }

    #[test]
    fn each_vcpu_has_an_isolated_cpu_for_itself() {
        let id = "vcpu-pin";
        let good = host();
        assert_eq!(
            (good.state(id), good.said(id).as_str()),
            (State::Ok, "rt (process 812): 2 vCPUs have one CPU each: 2,3")
        );
        assert!(good.wanted(id).is_empty() && good.changes(id).len() == 2);
        for (of, instead, says) in [
            ("3\tCPU 1/KVM", "2,3\tCPU 1/KVM", "vCPU 1 is not pinned to one CPU"),
            ("3\tCPU 1/KVM", "2\tCPU 1/KVM", "vCPUs 0,1 are pinned to a CPU that another vCPU is pinned to"),
            ("3\tCPU 1/KVM", "1\tCPU 1/KVM", "vCPU 1 is pinned to a CPU that is not for real-time work"),
        ] {
            let bad = threads(of, instead);
            assert_eq!(bad.finding(id).severity, Severity::Blocker);
            assert_eq!((bad.state(id), bad.said(id)), (State::Finding, format!("rt (process 812): {says}")));
            assert_eq!(bad.wanted(id), ["CPUs of CPU 1/KVM (816) = 3"]);
        }
        let sibling = "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list";
        let halves = host().with(&[(sibling, "2-3"), (&sibling.replace("cpu2", "cpu3"), "2-3")]).finding(id);
        assert_eq!((halves.state, halves.severity), (State::Finding, Severity::Major));
        assert!(halves.message.ends_with("vCPUs 0,1 share a core with each other"), "{}", halves.message);
        let house = threads("2\tCPU 0/KVM", "0,1\tCPU 0/KVM").finding(id);
        assert_eq!((house.state, house.severity), (State::Finding, Severity::Minor));
    }

    #[test]
    fn no_machine_and_no_names_are_told_apart() {
        for id in ["vcpu-pin", "vcpu-fifo"] {
            assert_eq!(
                intel(&[("threads:0", "1\t1\t0\t0\tOTHER\t0\t0\tinit")]).state(id),
                State::NotApplicable
            );
            assert_eq!(intel(&[]).state(id), State::Unreadable);
            let nameless = host().and("threads:0", &THREADS.replace("CPU ", "qemu"));
            assert_eq!(nameless.state(id), State::Unreadable, "{}", nameless.said(id));
            let old = host().without("threads:0");
            assert_eq!(old.state(id), State::Unreadable);
            let cut = host().and("threads:0", &THREADS[..THREADS.len() / 3]);
            assert_ne!(cut.state(id), State::Ok);
        }
    }

    #[test]
    fn a_machine_among_the_housekeeping_is_held_to_nothing_beside_one_that_is_not() {
        let two = beside(host(), "0-1");
        assert_eq!(two.state("vcpu-pin"), State::Ok, "{}", two.said("vcpu-pin"));
        assert!(two.said("vcpu-pin").ends_with("1 machine that stays on the housekeeping CPUs not counted"));
        let both = beside(host(), "0-3");
        assert_eq!(both.state("vcpu-pin"), State::Finding);
        assert_eq!(
            both.said("vcpu-pin"),
            "other (process 900): vCPUs 0,1 are not pinned to one CPU; 1 more without this finding"
        );
        assert!(both.wanted("vcpu-pin").is_empty(), "there is no CPU left for it");
        let alone = beside(intel(&[("threads:0", "")]), "0-1");
        assert_eq!(alone.state("vcpu-pin"), State::Finding);
    }

    #[test]
    fn vcpus_go_before_ordinary_threads_and_not_before_everything() {
        let id = "vcpu-fifo";
        assert_eq!(host().state(id), State::Ok);
        assert_eq!(threads("FIFO\t1\t2\tCPU 0", "OTHER\t0\t2\tCPU 0").state(id), State::Ok);
        let bad = threads("FIFO\t1\t3\tCPU 1", "OTHER\t0\t3\tCPU 1");
        assert_eq!(
            (bad.state(id), bad.said(id).as_str()),
            (State::Finding, "rt (process 812): vCPU 1 is an ordinary thread")
        );
        assert_eq!(bad.wanted(id), ["scheduling of CPU 1/KVM (816) = FIFO 1"]);
        let high = threads("FIFO\t1\t3\tCPU 1", "FIFO\t99\t3\tCPU 1").finding(id);
        assert_eq!((high.state, high.severity), (State::Finding, Severity::Minor));
        let shared = host()
            .and("threads:0", &THREADS.replace("FIFO\t1", "OTHER\t0").replace("0,1\tvhost", "0-3\tvhost"));
        assert_eq!((shared.state(id), shared.changes(id).len()), (State::Finding, 0));
    }
}
