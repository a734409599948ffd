//! Whether the kernel may be interrupted at any point, and what there is when it may not.

use tactus_model::facts::Facts;
use tactus_model::finding::{Role, Severity};

use crate::{
    Applies, Arch, Check, Judgement, Kernel, Reversible, SetBy, Source, Subject, Verdict, no_change,
};

pub static CHECKS: &[Check] = &[
    Check {
        id: "preempt-rt",
        title: "the kernel is not fully preemptible",
        sources: &[
            Source::Xeon,
            Source::RedHat,
            Source::Osadl,
            Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::Installation],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "uname -v; CONFIG_PREEMPT_RT; /sys/kernel/realtime",
        expected: "PREEMPT_RT in the kernel's version",
        why: "Without PREEMPT_RT a thread of the highest priority waits while the kernel runs with preemption off. \
That covers interrupt handlers, softirqs and spinlocked sections of any length and any driver, so there is no bound. \
With PREEMPT_RT these parts are threads and sleeping locks. Published: 22 us with PREEMPT_RT on host and guest, 126 \
us with partitioned standard kernels (redhat-openstack-2018).",
        fix: "Install and boot a PREEMPT_RT kernel: linux-image-rt-amd64 or linux-image-rt-arm64 (Debian), kernel-rt \
(RHEL), linux-realtime (Ubuntu Pro), or build Linux 6.12 or later with CONFIG_PREEMPT_RT=y.",
        risk: "Less throughput. Out-of-tree drivers may not build, or may sleep where they must not.",
        judge: preempt_rt,
        changes: no_change,
    },
    Check {
        id: "rt-pair-match",
        title: "host and guest run different kinds of kernels",
        sources: &[Source::RedHat],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Installation],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "uname -v of the guest and of its host",
        expected: "PREEMPT_RT on both, or on neither",
        why: "A bound in the guest is worthless if the host has no bound, and a real-time host cannot fix a guest \
whose own kernel blocks. Published maxima: 22 us with PREEMPT_RT on both, 126 us with partitioned standard kernels \
on both (redhat-openstack-2018).",
        fix: "Boot a PREEMPT_RT kernel on the side without one. Use the profiles in pairs: realtime-virtual-host \
with realtime-virtual-guest.",
        risk: "Less throughput on the side that changes.",
        judge: pair,
        changes: no_change,
    },
    Check {
        id: "threadirqs",
        title: "interrupt handlers cannot be preempted",
        sources: &[Source::Kernel("Documentation/admin-guide/kernel-parameters.txt")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/proc/cmdline; CONFIG_IRQ_FORCED_THREADING",
        expected: "threadirqs, on a kernel without PREEMPT_RT",
        why: "On a kernel without PREEMPT_RT threadirqs makes handlers threads of priority FIFO 50, so that a thread \
of higher priority preempts them. PREEMPT_RT always does this.",
        fix: "Boot with threadirqs, or use a PREEMPT_RT kernel.",
        risk: "Each interrupt costs a thread switch. A handler that starves below a higher thread stops its device.",
        judge: threaded,
        changes: |subject| {
            if subject.kernel.rt { Vec::new() } else { vec![subject.boot("threadirqs", "threadirqs", "")] }
        },
    },
];

fn preempt_rt(subject: &Subject<'_>) -> Verdict {
    let version = subject.need("uname:version")?;
    let release = subject.facts.text("uname:release").unwrap_or("of unknown release");
    let mut judgement = Judgement::when(
        subject.kernel.rt,
        format!("the kernel {release} is a PREEMPT_RT kernel"),
        format!("the kernel {release} is not a PREEMPT_RT kernel"),
    )
    .read("uname -v", version);
    for name in ["config:CONFIG_PREEMPT_RT", "/sys/kernel/realtime"] {
        if let Some(text) = subject.facts.text(name) {
            judgement = judgement.read(name, text);
        }
    }
    Ok(judgement)
}

fn sort(kernel: Kernel) -> &'static str {
    if kernel.rt { "PREEMPT_RT" } else { "standard" }
}

fn pair(subject: &Subject<'_>) -> Verdict {
    if subject.role == Role::Host {
        return Err(Judgement::not_applicable("it is judged for each guest together with its host"));
    }
    let own = subject.need("uname:version")?;
    let version = |facts: &Facts| facts.text("uname:version").map(str::to_owned);
    let Some((carrier, below)) = subject.carrier.and_then(|facts| Some((Kernel::of(facts), version(facts)?)))
    else {
        return Err(Judgement::unknowable("the kernel of this guest's host is unknown"));
    };
    Ok(Judgement::when(
        carrier.rt == subject.kernel.rt,
        format!("host and guest both run a {} kernel", sort(carrier)),
        format!("the host runs a {} kernel, the guest a {} one", sort(carrier), sort(subject.kernel)),
    )
    .read("uname -v of the host", below)
    .read("uname -v of the guest", own))
}

fn threaded(subject: &Subject<'_>) -> Verdict {
    if subject.kernel.rt {
        return Err(Judgement::not_applicable("a PREEMPT_RT kernel always threads its interrupt handlers"));
    }
    let told = subject.told()?;
    if subject.facts.text("config:CONFIG_IRQ_FORCED_THREADING") == Some("n") {
        return Err(Judgement::not_applicable("this kernel is built without IRQ_FORCED_THREADING"));
    }
    let holds = told.has("threadirqs");
    let said = "interrupt handlers are threads (threadirqs)";
    Ok(Judgement::when(
        holds,
        said,
        "interrupt handlers run with preemption off: no threadirqs, no PREEMPT_RT",
    )
    .read("/proc/cmdline", if holds { "threadirqs" } else { "no threadirqs" }))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{blank, guest, intel};

    const RT: (&str, &str) = ("uname:version", "#1 SMP PREEMPT_RT Debian 6.1.147-1 (2025-08-02)");
    const PLAIN: (&str, &str) = ("uname:version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.147-1 (2025-08-02)");

    #[test]
    fn a_preempt_rt_kernel_says_so_in_its_version_and_dynamic_preemption_is_another_thing() {
        assert_eq!(intel(&[RT]).state("preempt-rt"), State::Ok);
        assert_eq!(intel(&[PLAIN]).state("preempt-rt"), State::Finding);
        assert_eq!(intel(&[PLAIN]).absent("/sys/kernel/realtime").state("preempt-rt"), State::Finding);
        assert_eq!(intel(&[("uname:version", "#1 SMP PREEMPT RT Mon")]).state("preempt-rt"), State::Ok);
        assert_eq!(intel(&[]).without("uname:version").state("preempt-rt"), State::Unreadable);
    }

    #[test]
    fn a_pair_is_judged_in_the_guest_when_the_host_is_known() {
        assert_eq!(guest(&[RT]).carried_by(intel(&[RT])).state("rt-pair-match"), State::Ok);
        assert_eq!(guest(&[PLAIN]).carried_by(intel(&[PLAIN])).state("rt-pair-match"), State::Ok);
        let odd = guest(&[RT]).carried_by(intel(&[PLAIN]));
        assert_eq!(odd.said("rt-pair-match"), "the host runs a standard kernel, the guest a PREEMPT_RT one");
        assert_eq!(guest(&[RT]).state("rt-pair-match"), State::Unknowable);
        assert_eq!(guest(&[RT]).carried_by(blank(&[])).state("rt-pair-match"), State::Unknowable);
        assert_eq!(intel(&[RT]).state("rt-pair-match"), State::NotApplicable);
    }

    #[test]
    fn forced_threads_are_for_kernels_that_do_not_thread_by_themselves() {
        let cmdline = |text| intel(&[PLAIN, ("/proc/cmdline", text)]);
        assert_eq!(cmdline("quiet threadirqs").state("threadirqs"), State::Ok);
        assert_eq!(cmdline("quiet").state("threadirqs"), State::Finding);
        assert_eq!(cmdline("quiet").wanted("threadirqs"), ["kernel parameter threadirqs = "]);
        assert_eq!(cmdline("quiet -- threadirqs").state("threadirqs"), State::Finding);
        assert_eq!(intel(&[RT, ("/proc/cmdline", "quiet")]).state("threadirqs"), State::NotApplicable);
        let cannot = cmdline("quiet").and("config:CONFIG_IRQ_FORCED_THREADING", "n");
        assert_eq!(cannot.state("threadirqs"), State::NotApplicable);
        assert_eq!(intel(&[PLAIN]).state("threadirqs"), State::Unreadable);
    }
}
