//! The threads of a virtual machine that run no vCPU: the emulator's, the IO threads, the kernel's
//! helpers. They must not run where a vCPU runs.

use tactus_model::CpuSet;
use tactus_model::change::Change;
use tactus_model::finding::Severity;
use tactus_model::threads::Thread;

use super::vcpus::vcpus_of;
use crate::vm::{Vm, each, realtime};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

pub static CHECKS: &[Check] = &[
    Check {
        id: "emulator-pin",
        title: "QEMU's own threads may run where a vCPU runs",
        sources: &[Source::RedHat, Source::Guide("libvirt, realtime"), Source::Guide("Nova")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "the CPUs of the process's threads that are neither a vCPU nor an IO thread",
        expected: "within {housekeeping}, on no CPU of a vCPU that is isolated or has a real-time policy",
        why: "QEMU's main loop, workers and monitor handle devices, timers and commands. On the CPU of an ordinary \
vCPU they take CPU time from it. Below a FIFO vCPU they starve until it halts, and the guest waits for its devices. \
If it polls for them, it deadlocks.",
        fix: "libvirt: <emulatorpin cpuset='{housekeeping}'/>. QEMU: start it with taskset -c {housekeeping}, then \
pin the vCPU threads.",
        risk: "Emulated devices share the housekeeping CPUs with everything else.",
        judge: |subject| judge(subject, |vm| &vm.emulator, "other QEMU thread"),
        changes: |subject| changes(subject, "emulator-pin", |vm| &vm.emulator),
    },
    Check {
        id: "iothread-pin",
        title: "an IO thread may run where a vCPU runs",
        sources: &[Source::Guide("libvirt, domain XML")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "the CPUs of the threads named IO ...",
        expected: "within {housekeeping}, on no CPU of a vCPU that is isolated or has a real-time policy",
        why: "An IO thread serves the queues of a disk. On a vCPU's CPU it takes CPU time while the disk is busy. \
Below a FIFO vCPU it starves, and the guest waits for its disk.",
        fix: "libvirt: <iothreadpin iothread='1' cpuset='{housekeeping}'/>. QEMU: taskset -pc {housekeeping} TID for \
each thread-id of QMP's query-iothreads.",
        risk: "The disk competes with other housekeeping work.",
        judge: |subject| judge(subject, |vm| &vm.io, "IO thread"),
        changes: |subject| changes(subject, "iothread-pin", |vm| &vm.io),
    },
    Check {
        id: "vhost-placement",
        title: "kernel threads of a guest may run where a vCPU runs",
        sources: &[Source::Qoriq],
        applies: &[Applies::Hypervisor],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "the CPUs of the threads vhost-PID, kvm-pit/PID and kvm-nx-lpage-recovery",
        expected: "within {housekeeping}, on no CPU of a vCPU that is isolated or has a real-time policy",
        why: "A vhost thread moves each packet between the guest's queues and the network. On an ordinary vCPU's CPU \
it takes CPU time. Below a FIFO vCPU it starves, and the guest's network stops. Since Linux 6.4 it is a thread of \
QEMU's process, before that a kernel thread.",
        fix: "taskset -pc {housekeeping} TID for each of them. In libvirt <emulatorpin cpuset='{housekeeping}'/> \
moves the threads of QEMU's process.",
        risk: "The housekeeping CPUs limit network throughput.",
        judge: |subject| judge(subject, |vm| &vm.helpers, "kernel thread of the guest"),
        changes: |subject| changes(subject, "vhost-placement", |vm| &vm.helpers),
    },
];

/// The CPUs of real-time vCPUs: those of vCPUs with a real-time policy, and the isolated CPUs of the others. An
/// ordinary vCPU may share its housekeeping CPU, as vCPU 0 does that serves as the guest's housekeeping CPU.
fn promised(subject: &Subject<'_>) -> CpuSet {
    let vcpus = subject.vms.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| &vcpu.thread);
    vcpus.fold(CpuSet::default(), |all, thread| match thread.policy.is_realtime() {
        true => all.or(&thread.cpus),
        false => all.or(&thread.cpus.and(subject.isolated())),
    })
}

fn judge(subject: &Subject<'_>, which: impl Fn(&Vm) -> &Vec<Thread>, what: &str) -> Verdict {
    let vcpus = promised(subject);
    each(subject, |vm| {
        vcpus_of(vm)?;
        let threads = which(vm);
        if threads.is_empty() {
            return Err(Judgement::not_applicable(format!("it has no {what}")));
        }
        Ok(placed(subject, threads, &vcpus, what))
    })
}

fn placed(subject: &Subject<'_>, threads: &[Thread], vcpus: &CpuSet, what: &str) -> Judgement {
    let inside = |thread: &&Thread, set: &CpuSet| !thread.cpus.and(set).is_empty();
    let beside: Vec<_> = threads.iter().filter(|thread| inside(thread, vcpus)).collect();
    let isolated: Vec<_> = threads.iter().filter(|thread| inside(thread, subject.isolated())).collect();
    let judgement = if !beside.is_empty() {
        let where_ = beside.iter().fold(CpuSet::default(), |all, thread| all.or(&thread.cpus.and(vcpus)));
        let judgement =
            Judgement::finding(format!("{} may run on {}, where vCPUs run", named(&beside), on(&where_)));
        // Where every housekeeping CPU carries a vCPU with a real-time policy there is no place to go.
        if spare(subject, vcpus).is_empty() {
            judgement.fix(format!(
                "Every housekeeping CPU ({}) runs a vCPU with a real-time policy. Make vCPU 0 an ordinary thread \
(libvirt: leave it out of <vcpusched>), or leave one CPU to QEMU's other threads.",
                subject.housekeeping()
            ))
        } else {
            judgement
        }
    } else if !isolated.is_empty() {
        // A separate CPU, as Nova's hw:emulator_threads_policy=isolate gives, costs a CPU and nothing else.
        Judgement::finding(format!("{} may run on real-time CPUs, but not on a vCPU's CPU", named(&isolated)))
            .at(Severity::Minor)
    } else {
        let all = threads.iter().fold(CpuSet::default(), |all, thread| all.or(&thread.cpus));
        let s = if threads.len() == 1 { "" } else { "s" };
        Judgement::ok(format!(
            "{} {} on CPUs {all}",
            threads.len(),
            what.replacen("thread", &format!("thread{s}"), 1)
        ))
    };
    threads.iter().take(8).fold(judgement, |judgement, thread| {
        judgement.read(format!("CPUs of {} ({})", thread.name, thread.tid), thread.cpus.to_string())
    })
}

/// Housekeeping CPUs that carry no vCPU which is held to promises.
fn spare(subject: &Subject<'_>, vcpus: &CpuSet) -> CpuSet {
    subject.housekeeping().minus(vcpus)
}

fn on(cpus: &CpuSet) -> String {
    if cpus.len() == 1 { format!("CPU {cpus}") } else { format!("CPUs {cpus}") }
}

fn named(threads: &[&Thread]) -> String {
    let Some(first) = threads.first() else { return String::new() };
    match threads.len() {
        1 => format!("{} ({})", first.name, first.tid),
        more => format!("{} ({}) and {} more", first.name, first.tid, more - 1),
    }
}

fn changes(subject: &Subject<'_>, check: &str, which: impl Fn(&Vm) -> &Vec<Thread>) -> Vec<Change> {
    let house = &spare(subject, &promised(subject));
    if house.is_empty() {
        return Vec::new();
    }
    let (vms, _) = realtime(subject);
    // Without the names of vCPUs every thread would be taken for QEMU's own.
    let known = vms.into_iter().filter(|vm| !vm.vcpus.is_empty());
    let threads = known.flat_map(|vm| which(vm).clone()).filter(|thread| !thread.bound);
    threads
        .map(|thread| {
            // A thread that is within these CPUs already stays where it is.
            let within = thread.cpus.minus(house).is_empty();
            let cpus = if within { &*thread.cpus } else { house };
            subject.place(check, &thread, cpus)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::intel;
    use crate::vm::testing::{THREADS, host, threads};

    #[test]
    fn threads_that_run_no_vcpu_stay_away_from_vcpus() {
        for (id, thread, own) in [
            ("emulator-pin", "qemu-system-x86", Severity::Blocker),
            ("emulator-pin", "IO mon_iothread", Severity::Blocker),
            ("iothread-pin", "IO iothread1", Severity::Major),
            ("vhost-placement", "vhost-812", Severity::Major),
            ("vhost-placement", "kvm-pit/812", Severity::Major),
        ] {
            assert_eq!(host().state(id), State::Ok, "{id}: {}", host().said(id));
            assert!(host().wanted(id).is_empty() && !host().changes(id).is_empty());
            let bad = threads(&format!("0,1\t{thread}"), &format!("0-3\t{thread}"));
            let finding = bad.finding(id);
            assert_eq!((finding.state, finding.severity), (State::Finding, own), "{id}");
            assert!(
                finding.message.contains(thread) && finding.message.contains("2,3"),
                "{}",
                finding.message
            );
            let wanted = bad.wanted(id);
            assert!(wanted.len() == 1 && wanted[0].ends_with(" = 0,1"), "{wanted:?}");
        }
    }

    #[test]
    fn a_vcpu_that_keeps_house_shares_its_cpu_with_the_emulator() {
        let house = threads("FIFO\t1\t2\tCPU 0/KVM", "OTHER\t0\t0\tCPU 0/KVM");
        for id in ["emulator-pin", "iothread-pin", "vhost-placement"] {
            assert_eq!(house.state(id), State::Ok, "{id}: {}", house.said(id));
        }
        let fifo = threads("FIFO\t1\t2\tCPU 0/KVM", "FIFO\t1\t0\tCPU 0/KVM");
        assert_eq!(fifo.state("emulator-pin"), State::Finding);
        let wanted = fifo.wanted("emulator-pin");
        assert!(!wanted.is_empty() && wanted.iter().all(|change| change.ends_with(" = 1")), "{wanted:?}");
        let full = fifo.and("threads:1", "820\t812\t1\t400040\tFIFO\t1\t1\tCPU 2/KVM");
        assert!(full.changes("emulator-pin").is_empty(), "there is no place to go");
        assert!(full.finding("emulator-pin").fix.contains("ordinary thread"));
    }

    #[test]
    fn a_cpu_for_the_emulator_alone_is_a_lesser_matter() {
        let spare = host()
            .with(&[("/sys/devices/system/cpu/online", "0-4"), ("/sys/devices/system/cpu/isolated", "2-4")])
            .and("threads:0", &THREADS.replace("0,1\tIO iothread1", "4\tIO iothread1"));
        let finding = spare.finding("iothread-pin");
        assert_eq!((finding.state, finding.severity), (State::Finding, Severity::Minor));
    }

    #[test]
    fn what_a_machine_does_not_have_is_not_judged() {
        let without = |name: &str| {
            let kept: Vec<_> = THREADS.lines().filter(|line| !line.ends_with(name)).collect();
            host().and("threads:0", &kept.join("\n"))
        };
        assert_eq!(without("iothread1").state("iothread-pin"), State::NotApplicable);
        assert_eq!(intel(&[]).state("emulator-pin"), State::Unreadable);
        let nameless = host().and("threads:0", &THREADS.replace("CPU ", "qemu"));
        assert_eq!(
            (nameless.state("emulator-pin"), nameless.changes("emulator-pin").len()),
            (State::Unreadable, 0)
        );
    }

    #[test]
    fn a_thread_that_cannot_be_moved_is_not_proposed_to_be() {
        let bound = threads("818\t818\t2\t208040\tOTHER\t0\t0,1", "818\t818\t2\t4208040\tOTHER\t0\t3");
        assert_eq!(bound.state("vhost-placement"), State::Finding);
        assert!(bound.wanted("vhost-placement").is_empty());
    }
}
