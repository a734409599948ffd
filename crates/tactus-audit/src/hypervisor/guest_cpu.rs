//! The guest's processor in QEMU's command line.

use std::collections::HashMap;

use tactus_model::CpuSet;
use tactus_model::change::flag;
use tactus_model::finding::Severity;

use crate::vm::{Arguments, OfWhole as _, Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ENABLE_PMU: &str = "/sys/module/kvm/parameters/enable_pmu";

pub static CHECKS: &[Check] = &[
    Check {
        id: "cpu-passthrough",
        title: "the guest's processor differs from the host's",
        sources: &[Source::Guide("libvirt, domain XML"), Source::Guide("Nova")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "-cpu of QEMU's command line",
        expected: "host",
        why: "A CPU model hides features of the host's processor: the TSC deadline, the invariant TSC, x2APIC, newer \
string and vector instructions. The guest then takes slower ways, which cost exits or cycles.",
        fix: "libvirt: <cpu mode='host-passthrough'/>. QEMU: -cpu host.",
        risk: "The guest cannot be migrated to a host with another processor.",
        judge: |subject| each(subject, passthrough),
        changes: no_change,
    },
    Check {
        id: "vpmu-off",
        title: "the guest has a virtual performance counter unit",
        sources: &[Source::Guide("libvirt, realtime"), Source::Guide("Nova")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Major,
        arch: Arch::X86,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "-cpu of QEMU's command line; /sys/module/kvm/parameters/enable_pmu. In the guest: CPUID 0xA, EAX bits 0 \
to 7 are 0",
        expected: "pmu=off",
        why: "With it KVM saves and loads the counter registers at exits and entries. A guest whose watchdog counts \
cycles takes NMIs.",
        fix: "libvirt: <features><pmu state='off'/></features>. QEMU: -cpu host,pmu=off.",
        risk: "No perf with hardware counters inside the guest.",
        judge: |subject| each(subject, |vm| counters(subject, vm)),
        changes: no_change,
    },
    Check {
        id: "kvm-hint-dedicated",
        title: "the guest does not know that its CPUs are dedicated",
        sources: &[Source::Kernel("Documentation/virt/kvm/x86/cpuid.rst")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "-cpu of QEMU's command line. In the guest: CPUID 0x40000001, EDX bit 0",
        expected: "kvm-hint-dedicated=on, and one CPU per vCPU",
        why: "With the hint a Linux guest spins on its locks as on hardware, flushes TLBs with plain IPIs and loads \
the haltpoll idle driver. Without it a vCPU that waits for a lock halts and is woken, with an exit each time.",
        fix: "libvirt: <features><kvm><hint-dedicated state='on'/></kvm></features>. QEMU: -cpu \
host,kvm-hint-dedicated=on.",
        risk: "Where vCPUs share CPUs, the guest spins for a lock whose holder does not run.",
        judge: |subject| {
            let users = users(subject);
            each(subject, |vm| dedicated(&users, vm))
        },
        changes: no_change,
    },
    Check {
        id: "guest-idle-ownership",
        title: "an idle guest gives its CPU back to the host",
        sources: &[Source::Guide("QEMU, -overcommit cpu-pm=on")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Minor,
        arch: Arch::X86,
        set: &[SetBy::Qemu],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "-overcommit of QEMU's command line",
        expected: "cpu-pm=on",
        why: "With it HLT and MWAIT of the guest do not exit: the vCPU stays in the guest, and the interrupt itself \
wakes it. Each wake-up saves an exit, the host's scheduler and an entry: several microseconds.",
        fix: "QEMU: -overcommit cpu-pm=on. libvirt has no element for it: <qemu:commandline \
xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><qemu:arg value='-overcommit'/><qemu:arg value='cpu-pm=on'/></qemu:commandline>.",
        risk: "The host sees its CPU 100 % busy, and gives it to nothing else while the guest is idle. The guest may \
choose deep C-states: limit them on the host.",
        judge: |subject| each(subject, own_idle),
        changes: no_change,
    },
    Check {
        id: "irqchip-in-kernel",
        title: "QEMU emulates the guest's interrupt controller",
        sources: &[Source::Qoriq],
        applies: &[Applies::Hypervisor],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Qemu],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "kernel-irqchip of -machine or -accel of QEMU's command line",
        expected: "on (the default) or split, not off",
        why: "Without the kernel's interrupt controller each interrupt, each end of interrupt and each timer goes \
through QEMU's main loop. That costs several system calls and a lock, where hardware posts a bit.",
        fix: "QEMU: -machine kernel-irqchip=on, or leave it out.",
        risk: "None. PowerPC kernels with real-time patches disable the kernel's MPIC, so it is not available there.",
        judge: |subject| each(subject, irqchip),
        changes: no_change,
    },
];

/// The value of a key of `-cpu`, as it was given.
fn shown(arguments: &Arguments, key: &str) -> String {
    arguments.last(&["cpu"], key).unwrap_or("not given").to_owned()
}

fn on(arguments: &Arguments, option: &str, key: &str) -> Option<bool> {
    arguments.all(option).rev().find_map(|parameter| parameter.flag(key))
}

/// `max` is what `host` is, where KVM runs the guest.
fn is_host(model: &str) -> bool {
    matches!(model, "host" | "max")
}

fn passthrough(vm: &Vm) -> Verdict {
    let arguments = vm.kvm()?;
    Ok(match arguments.kind("cpu") {
        Some(model) => Judgement::when(
            is_host(model),
            "it has the host's processor",
            format!("its processor is the CPU model {model}"),
        )
        .read("-cpu", model),
        None => arguments.without(
            Judgement::finding("its processor is QEMU's default CPU model").read("-cpu", "not given"),
        ),
    })
}

fn counters(subject: &Subject<'_>, vm: &Vm) -> Verdict {
    let off = subject.facts.text(ENABLE_PMU).filter(|text| flag(text) == Some(false));
    if let Some(text) = off.filter(|_| vm.emulated != Some(true)) {
        return Ok(Judgement::ok("KVM gives no guest performance counters").read(ENABLE_PMU, text));
    }
    let arguments = vm.kvm()?;
    let judgement = match (on(arguments, "cpu", "pmu"), arguments.kind("cpu")) {
        (Some(false), _) => Judgement::ok("it has no performance counters"),
        (Some(true), _) => Judgement::finding("it has performance counters, as configured"),
        (None, Some(model)) if is_host(model) => {
            arguments.without(Judgement::finding("it has performance counters, the default of -cpu host"))
        }
        // Named models of x86 have none unless it is asked for.
        (None, Some(_)) => Judgement::ok("its CPU model has no performance counters"),
        (None, None) => {
            arguments.without(Judgement::ok("QEMU's default CPU model has no performance counters"))
        }
    };
    Ok(judgement.read("-cpu pmu", shown(arguments, "pmu")))
}

fn dedicated(users: &Users<'_>, vm: &Vm) -> Verdict {
    let arguments = vm.kvm()?;
    let judgement = match on(arguments, "cpu", "kvm-hint-dedicated") {
        Some(true) => {
            let shared = shares(users, vm);
            match shared {
                _ if vm.vcpus.is_empty() => {
                    Judgement::unreadable("it has the hint; where its vCPUs run is unknown")
                }
                None => Judgement::ok("it knows that its CPUs are dedicated"),
                Some(why) => Judgement::finding(format!("it is told that its CPUs are dedicated, but {why}")),
            }
        }
        Some(false) => Judgement::finding("it is told that its CPUs are not dedicated"),
        None => arguments.without(Judgement::finding("it is not told that its CPUs are dedicated")),
    };
    Ok(judgement.read("-cpu kvm-hint-dedicated", shown(arguments, "kvm-hint-dedicated")))
}

/// The machine whose vCPUs may run on a set of CPUs, by its process; `None`: several machines. Many vCPUs share few
/// sets.
type Users<'a> = HashMap<&'a CpuSet, Option<u32>>;

fn users<'a>(subject: &'a Subject<'_>) -> Users<'a> {
    let mut users = Users::new();
    for (pid, vcpu) in subject.vms.iter().flat_map(|vm| vm.vcpus.iter().map(|vcpu| (Some(vm.pid), vcpu))) {
        let user = users.entry(&vcpu.thread.cpus).or_insert(pid);
        *user = user.filter(|known| pid == Some(*known));
    }
    users
}

/// Why the CPUs of a machine are not its own.
fn shares(users: &Users<'_>, vm: &Vm) -> Option<&'static str> {
    if vm.vcpus.iter().any(|vcpu| vcpu.thread.cpus.len() != 1) {
        return Some("not every vCPU is pinned to one CPU");
    }
    if vm.cpus().len() < vm.vcpus.len() {
        return Some("some of its vCPUs share one");
    }
    let own = vm.cpus();
    let met = users.iter().any(|(cpus, user)| *user != Some(vm.pid) && !cpus.and(&own).is_empty());
    met.then_some("another machine may run on them")
}

fn own_idle(vm: &Vm) -> Verdict {
    let arguments = vm.kvm()?;
    let judgement = match on(arguments, "overcommit", "cpu-pm") {
        Some(true) => Judgement::ok("its vCPUs stay in the guest while idle"),
        Some(false) => Judgement::finding("a vCPU leaves the guest each time it is idle"),
        None => arguments
            .without(Judgement::finding("a vCPU leaves the guest each time it is idle (the default)")),
    };
    Ok(judgement.read("-overcommit cpu-pm", arguments.last(&["overcommit"], "cpu-pm").unwrap_or("not given")))
}

fn irqchip(vm: &Vm) -> Verdict {
    let arguments = vm.kvm()?;
    let value = arguments.last(&["machine", "M", "accel"], "kernel-irqchip");
    let judgement = match value {
        Some("off") => Judgement::finding("QEMU emulates its interrupt controller"),
        Some("split") => {
            Judgement::ok("the kernel emulates its local interrupt controllers, QEMU the I/O APIC")
        }
        Some(_) => Judgement::ok("the kernel emulates its interrupt controller"),
        None => {
            arguments.without(Judgement::ok("the kernel emulates its interrupt controller (the default)"))
        }
    };
    Ok(judgement.read("kernel-irqchip", value.unwrap_or("not given")))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::arm;
    use crate::vm::testing::{THREADS, arguments, beside, host, threads};

    const ALL: [&str; 5] =
        ["cpu-passthrough", "vpmu-off", "kvm-hint-dedicated", "guest-idle-ownership", "irqchip-in-kernel"];

    #[test]
    fn a_tuned_machine_passes_and_each_option_can_fail() {
        for id in ALL {
            assert_eq!(host().state(id), State::Ok, "{id}: {}", host().said(id));
        }
        for (id, of, instead) in [
            ("cpu-passthrough", "-cpu host,", "-cpu Skylake-Server-IBRS,"),
            ("cpu-passthrough", "-cpu host,", "-smp "),
            ("vpmu-off", ",pmu=off", ""),
            ("vpmu-off", ",pmu=off", ",pmu=on"),
            ("kvm-hint-dedicated", ",kvm-hint-dedicated=on", ""),
            ("guest-idle-ownership", ",cpu-pm=on", ""),
            ("guest-idle-ownership", ",cpu-pm=on", ",cpu-pm=off"),
            ("irqchip-in-kernel", "-accel kvm", "-accel kvm,kernel-irqchip=off"),
            ("irqchip-in-kernel", "mem-merge=off", "kernel_irqchip=off"),
        ] {
            assert_eq!(arguments(of, instead).state(id), State::Finding, "{id} {instead}");
        }
        assert_eq!(
            arguments("-accel kvm", "-accel kvm,kernel-irqchip=split").state("irqchip-in-kernel"),
            State::Ok
        );
        assert_eq!(
            arguments("host,migratable=on", "EPYC")
                .and("vm:812:cmdline", "qemu-kvm -cpu EPYC")
                .state("vpmu-off"),
            State::Ok
        );
        assert_eq!(arguments(",pmu=off", "").and(ENABLE_PMU, "N").state("vpmu-off"), State::Ok);
    }

    #[test]
    fn the_hint_is_wrong_where_cpus_are_shared() {
        let id = "kvm-hint-dedicated";
        let wrong = [threads("3\tCPU 1", "2,3\tCPU 1"), threads("3\tCPU 1", "2\tCPU 1"), beside(host(), "2")];
        for system in wrong {
            let finding = system.finding(id);
            assert!(
                finding.state == State::Finding && finding.message.contains("dedicated, but"),
                "{}",
                finding.message
            );
        }
        let nameless = host().and("threads:0", &THREADS.replace("CPU ", "qemu"));
        assert_eq!(nameless.state(id), State::Unreadable);
    }

    #[test]
    fn an_emulated_or_foreign_machine_is_not_judged_by_kvm() {
        for id in ALL {
            let emulated = host()
                .and(ENABLE_PMU, "N")
                .and("vm:812:cmdline", "qemu-system-x86_64 -accel tcg")
                .and("threads:0", &THREADS.replace("/KVM", "/TCG"));
            assert!(matches!(emulated.state(id), State::NotApplicable), "{id}");
            let foreign = host().and("vm:812:cmdline", "/usr/bin/cloud-hypervisor --cpus boot=2");
            assert_eq!(foreign.state(id), State::Unreadable, "{id}");
            let cut = format!("qemu-system-x86_64 -append {}", "x".repeat(20_000));
            assert_eq!(host().and("vm:812:cmdline", &cut).state(id), State::Unreadable, "{id}");
        }
        assert_eq!(arm(&[("threads:0", THREADS)]).state("vpmu-off"), State::NotApplicable);
    }
}
