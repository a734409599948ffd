//! Where threads and deferred work may run that were not placed on isolated CPUs.

use std::collections::HashMap;
use std::sync::Arc;

use tactus_model::CpuSet;
use tactus_model::change::{self, Change, Effect, Form, Target};
use tactus_model::finding::Severity;
use tactus_model::threads::Thread;

use crate::sentence::{count, cpus_or_none, few, few_threads, meet, read_places, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const WORK: &str = "/sys/devices/virtual/workqueue/";

pub static CHECKS: &[Check] = &[
    Check {
        id: "kthread-affinity",
        title: "unbound kernel threads may run on real-time CPUs",
        sources: &[
            Source::Kernel("Documentation/admin-guide/kernel-per-CPU-kthreads.rst"),
            Source::Kernel("kernel/kthread.c"),
            Source::Kernel("commit 041ee6f3727a"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine, SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "Cpus_allowed_list of kthreadd and of kernel threads that can be moved",
        expected: "{housekeeping}",
        why: "Writeback, reclaim, RCU and drivers work in threads that are not bound to a CPU. A new thread gets the \
CPUs that kthreadd (thread 2) had at boot; later changes to kthreadd do not count. The parameter that \
decides depends on the version: since Linux 5.9 (commit 9cc5b8656892) nohz_full=; since 7.0 (commit 041ee6f3727a) \
isolcpus=domain and isolated cpusets instead. The other parameter alone does not keep them away.",
        fix: "At run time: taskset -pc {housekeeping} TID for each listed thread, and again for new threads. At \
boot, for all of them: nohz_full={isolated} before Linux 7.0 (if nohz-full is right for your work), \
isolcpus=domain,{isolated} since 7.0. Mainline kernels do not know kthread_cpus=, which some guides name.",
        risk: "Low: a thread that serves one NUMA node may run on another.",
        judge: kernel_threads,
        changes: |subject| {
            let Some((isolated, keeping)) = subject.parted() else { return Vec::new() };
            let first = subject.threads.get(2).filter(|thread| is_kthreadd(thread));
            let all = first.into_iter().chain(unbound(subject).filter(|thread| meet(&thread.cpus, isolated)));
            all.map(|thread| away("kthread-affinity", subject, thread, isolated, keeping)).collect()
        },
    },
    Check {
        id: "workqueue-cpumask",
        title: "unbound work may run on real-time CPUs",
        sources: &[Source::Kernel("Documentation/core-api/workqueue.rst"), Source::Tuned("realtime")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "/sys/devices/virtual/workqueue/cpumask; /sys/devices/virtual/workqueue/*/cpumask",
        expected: "the mask {housekeeping_mask} (CPUs {housekeeping})",
        why: "kworkers run unbound work (writeback, crypto, file systems) on the CPUs of these masks. The first mask \
limits all others.",
        fix: "Write the mask {housekeeping_mask} to /sys/devices/virtual/workqueue/cpumask and to those below it; or \
boot with isolcpus or nohz_full, which sets it.",
        risk: "Low: housekeeping CPUs have more work.",
        judge: workqueues,
        changes: |subject| {
            let Some((_, keeping)) = subject.parted() else { return Vec::new() };
            let mask = change::to_mask(keeping);
            let set = |path: &str| subject.set("workqueue-cpumask", path, Form::Mask, mask.as_str());
            workqueue_masks(subject).filter_map(|(path, _)| set(path)).collect()
        },
    },
    Check {
        id: "systemd-cpu-affinity",
        title: "services may run on real-time CPUs",
        sources: &[Source::RedHat, Source::Guide("systemd-system.conf(5)")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Service, SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "Cpus_allowed_list of process 1",
        expected: "{housekeeping}",
        why: "All services and logins inherit the CPUs of the first process. With isolcpus the kernel keeps it off \
isolated CPUs; otherwise CPUAffinity= does.",
        fix: "CPUAffinity={housekeeping} under [Manager] in /etc/systemd/system.conf.d/, or boot with \
systemd.cpu_affinity={housekeeping}.",
        risk: "Programs for the isolated CPUs inherit it too and must be placed: CPUAffinity= in their unit, \
taskset, or AllowedCPUs= of their slice.",
        judge: first_process,
        changes: |subject| {
            let (Some((_, keeping)), true) = (subject.parted(), runs_systemd(subject)) else {
                return Vec::new();
            };
            let unit = Target::DropIn {
                unit: "system.conf".to_owned(),
                section: "Manager".to_owned(),
                key: "CPUAffinity".to_owned(),
            };
            let drop_in = Change {
                check: "systemd-cpu-affinity".to_owned(),
                target: unit,
                now: None,
                then: keeping.to_string(),
                effect: Effect::Boot,
            };
            vec![drop_in, subject.boot("systemd-cpu-affinity", "systemd.cpu_affinity", keeping.to_string())]
        },
    },
    Check {
        id: "foreign-tasks",
        title: "unpinned tasks may run on real-time CPUs",
        sources: &[Source::Osadl],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "Cpus_allowed_list of all threads of user programs",
        expected: "user threads are confined to {isolated} or to {housekeeping}, not allowed on both",
        why: "A task on the same CPU evicts a real-time thread's cache. Waking it costs an interrupt from another \
CPU. With a second runnable task nohz_full restarts the tick. A task that is allowed on both kinds of CPUs was never \
placed.",
        fix: "Keep services away (systemd-cpu-affinity), or confine them at run time: systemctl set-property \
--runtime system.slice AllowedCPUs={housekeeping}; for single ones taskset -pac {housekeeping} PID.",
        risk: "A program that needs these CPUs must be placed there explicitly.",
        judge: foreign,
        changes: |subject| {
            let Some((isolated, keeping)) = subject.parted() else { return Vec::new() };
            let all = wandering(subject, isolated);
            all.map(|thread| away("foreign-tasks", subject, thread, isolated, keeping)).collect()
        },
    },
];

fn away(check: &str, subject: &Subject<'_>, thread: &Thread, isolated: &CpuSet, keeping: &CpuSet) -> Change {
    let rest = thread.cpus.minus(isolated);
    subject.place(check, thread, if rest.is_empty() { keeping } else { &rest })
}

fn is_kthreadd(thread: &Thread) -> bool {
    thread.kernel && thread.name == "kthreadd"
}

/// Kernel threads that may be moved and that no other check looks at. Of vhost and the timer of a
/// virtual machine the placement beside its virtual CPUs is judged.
fn unbound<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = &'a Thread> {
    subject.threads.kernel().filter(|thread| {
        let others = ["irq/", "rcuo", "vhost-", "kvm-pit", "kworker/"];
        !thread.bound && thread.tid != 2 && !others.iter().any(|name| thread.name.starts_with(name))
    })
}

fn kernel_threads(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let Some(first) = subject.threads.get(2).filter(|thread| is_kthreadd(thread)) else {
        return Err(Judgement::unreadable("kernel threads cannot be seen from here"));
    };
    let mut stray: Vec<&Thread> = unbound(subject).filter(|thread| meet(&thread.cpus, isolated)).collect();
    if meet(&first.cpus, isolated) {
        stray.insert(0, first);
    }
    let place = cpus_or_none(isolated);
    let names = few(stray.iter().map(|thread| &thread.name));
    let judgement = Judgement::when(
        stray.is_empty(),
        format!("kthreadd and all unbound kernel threads stay away from {place}"),
        format!("{} may run on {place}: {names}", count(stray.len(), "unbound kernel thread")),
    );
    let shown = if stray.is_empty() { vec![first] } else { stray };
    Ok(subject.over_all_threads(read_places(judgement, shown)))
}

/// The mask of all unbound work, then those of single workqueues.
fn workqueue_masks<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all = subject.facts.under(WORK).map(|(name, _)| name);
    let masks = all.filter(|name| name.ends_with("/cpumask"));
    let mut masks: Vec<(&str, &str)> =
        masks.filter_map(|name| Some((name, subject.facts.text(name)?))).collect();
    masks.sort_by_key(|(name, _)| (name.len() > WORK.len() + "cpumask".len(), *name));
    masks.into_iter()
}

fn workqueues(subject: &Subject<'_>) -> Verdict {
    let path = "/sys/devices/virtual/workqueue/cpumask";
    let text = subject.value(path)?;
    let (isolated, _) = subject.need_parted()?;
    let Some(all) = change::mask(text) else {
        return Err(Judgement::unreadable(format!("{path} is not a mask of CPUs")).read(path, text));
    };
    let place = cpus_or_none(&all.and(isolated));
    let reaches = |(name, text): &(&str, &str)| {
        *name != path && change::mask(text).is_some_and(|cpus| meet(&cpus, isolated) && meet(&cpus, &all))
    };
    let queues: Vec<&str> = workqueue_masks(subject)
        .filter(reaches)
        .filter_map(|(name, _)| name.strip_prefix(WORK)?.strip_suffix("/cpumask"))
        .collect();
    let mut bad = format!("unbound work may run on {place}");
    if !queues.is_empty() {
        bad += &format!(", and work of {} too", few(&queues));
    }
    let good = format!("unbound work runs on {}", cpus_or_none(&all.and(&subject.topology.online)));
    Ok(Judgement::when(!meet(&all, isolated), good, bad).read(path, text))
}

fn runs_systemd(subject: &Subject<'_>) -> bool {
    subject.threads.get(1).is_some_and(|thread| thread.name == "systemd")
}

fn first_process(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let Some(first) = subject.threads.get(1) else {
        return Err(Judgement::unreadable("process 1 cannot be seen from here"));
    };
    let name = &first.name;
    let place = cpus_or_none(&first.cpus.and(isolated));
    Ok(Judgement::when(
        !meet(&first.cpus, isolated),
        format!("{name} and its children run on {}", cpus_or_none(&first.cpus)),
        format!("{name} and its children may run on {place}"),
    )
    .read(format!("Cpus_allowed_list of {name} (1)"), first.cpus.to_string()))
}

/// User threads that may run on isolated CPUs and elsewhere: they were not placed. The probe that reads this is left
/// out, and so are its parent and the parent's other children.
fn wandering<'a>(subject: &'a Subject<'_>, isolated: &'a CpuSet) -> impl Iterator<Item = &'a Thread> {
    let (own, parent) = (subject.facts.number("probe:pid"), subject.facts.number("probe:ppid"));
    // The name alone proves nothing, because any user can choose it; so the process ids decide.
    let ours = move |thread: &Thread| {
        let is = |pid: u32, known: Option<u64>| known == Some(u64::from(pid));
        thread.name.starts_with("tactus")
            && (is(thread.pid, own)
                || is(thread.pid, parent)
                || is(thread.ppid, parent.filter(|pid| *pid != 1)))
    };
    // Thousands of threads have the same few sets.
    let mut known: HashMap<*const CpuSet, bool> = HashMap::new();
    subject.threads.user().filter(move |thread| {
        let both = || meet(&thread.cpus, isolated) && !within(&thread.cpus, isolated);
        *known.entry(Arc::as_ptr(&thread.cpus)).or_insert_with(both) && !ours(thread)
    })
}

fn foreign(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    let threads = subject.running()?;
    let found: Vec<&Thread> = wandering(subject, isolated).collect();
    let place = cpus_or_none(isolated);
    let names = few_threads(&found);
    let placed = threads.user().filter(|thread| within(&thread.cpus, isolated)).count();
    if found.is_empty() {
        let said = format!("no user thread moves onto {place}; {placed} are confined to them");
        return Ok(subject.over_all_threads(Judgement::ok(said)));
    }
    let mut said = format!(
        "{} may run on {place} without being placed there: {names}",
        count(found.len(), "user thread")
    );
    // The balancing does not take a task to a CPU without a scheduling domain.
    let kept_off = within(isolated, &subject.topology.isolated);
    if kept_off {
        said += "; the scheduler does not move them there by itself";
    }
    let judgement = read_places(Judgement::finding(said), found);
    Ok(if kept_off { judgement.at(Severity::Minor) } else { judgement })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, intel};

    fn with(lines: &[&str]) -> System {
        let text: Vec<String> = lines.iter().map(|line| line.replace(' ', "\t").replace('_', " ")).collect();
        intel(&[("threads:0", &text.join("\n"))])
    }

    const KTHREADD: &str = "2 2 0 208040 OTHER 0 0,1 kthreadd";
    const SWAPPER: &str = "50 50 2 220840 OTHER 0 0-3 kswapd0";
    const BOUND: &str = "18 18 2 4208040 FIFO 99 2 migration/2";

    #[test]
    fn unbound_kernel_threads_keep_house() {
        let id = "kthread-affinity";
        assert_eq!(with(&[KTHREADD, BOUND]).state(id), State::Ok);
        assert_eq!(
            with(&[KTHREADD, BOUND, SWAPPER]).said(id),
            "1 unbound kernel thread may run on CPUs 2,3: kswapd0"
        );
        let wanted = with(&["2 2 0 208040 OTHER 0 0-3 kthreadd", SWAPPER]).wanted(id);
        assert_eq!(wanted, ["CPUs of kthreadd (2) = 0,1", "CPUs of kswapd0 (50) = 0,1"]);
        assert_eq!(with(&[SWAPPER]).state(id), State::Unreadable);
        assert_eq!(with(&["2 2 1 400100 OTHER 0 0 bash"]).state(id), State::Unreadable);
        assert_eq!(intel(&[]).state(id), State::Unreadable);
        assert_eq!(with(&[KTHREADD]).isolate("0-3").state(id), State::NotApplicable);
        assert_eq!(with(&[KTHREADD]).and("threads:cut", "1").state(id), State::Unreadable);
    }

    #[test]
    fn the_first_mask_limits_all_work() {
        let id = "workqueue-cpumask";
        let (all, one) =
            ("/sys/devices/virtual/workqueue/cpumask", "/sys/devices/virtual/workqueue/writeback/cpumask");
        assert_eq!(intel(&[(all, "3"), (one, "f")]).state(id), State::Ok);
        let bad = intel(&[(one, "f"), (all, "f")]);
        assert_eq!(bad.said(id), "unbound work may run on CPUs 2,3, and work of writeback too");
        assert_eq!(bad.wanted(id), [format!("{all} = 3"), format!("{one} = 3")]);
        assert_eq!(intel(&[]).absent(all).state(id), State::NotApplicable);
        assert_eq!(intel(&[]).unreadable(all, "denied").state(id), State::Unreadable);
        assert_eq!(intel(&[(all, "f")]).isolate("0-3").state(id), State::NotApplicable);
        for text in HOSTILE.iter().filter(|text| **text != "[") {
            assert_ne!(intel(&[(all, text)]).state(id), State::Ok, "{text}");
        }
    }

    #[test]
    fn services_inherit_from_the_first_process() {
        let id = "systemd-cpu-affinity";
        let first = |cpus: &str| with(&[&format!("1 1 0 400100 OTHER 0 {cpus} systemd")]);
        assert_eq!(first("0,1").state(id), State::Ok);
        assert_eq!(first("0-3").said(id), "systemd and its children may run on CPUs 2,3");
        assert_eq!(
            first("0-3").wanted(id),
            ["system.conf [Manager] CPUAffinity = 0,1", "kernel parameter systemd.cpu_affinity = 0,1"]
        );
        assert!(with(&["1 1 0 400100 OTHER 0 0-3 init"]).changes(id).is_empty());
        assert_eq!(with(&[KTHREADD]).state(id), State::Unreadable);
    }

    #[test]
    fn tasks_belong_here_or_there() {
        let id = "foreign-tasks";
        let pinned = "800 800 1 400100 OTHER 0 2 dpdk";
        let house = "1 1 0 400100 OTHER 0 0,1 systemd";
        assert_eq!(
            with(&[pinned, house]).said(id),
            "no user thread moves onto CPUs 2,3; 1 are confined to them"
        );
        let foreign = with(&[
            pinned,
            "900 900 1 400100 OTHER 0 0-3 cron",
            "901 901 899 400100 OTHER 0 0-3 tactus-probe",
        ])
        .with(&[("probe:pid", "901"), ("probe:ppid", "899")]);
        let found = foreign.finding(id);
        assert_eq!((found.state, found.severity), (State::Finding, Severity::Minor));
        assert_eq!(foreign.wanted(id), ["CPUs of cron (900) = 0,1"]);
        let ours = ["899 899 1 400100 OTHER 0 0-3 tactus", "902 902 899 400100 OTHER 0 0-3 tactus-probe"];
        let probe = [("probe:pid", "901"), ("probe:ppid", "899")];
        assert_eq!(with(&ours).with(&probe).state(id), State::Ok, "those of this run");
        let other = with(&["910 910 1 400100 OTHER 0 0-3 tactus-x", ours[0]]).with(&probe);
        assert_eq!(other.wanted(id), ["CPUs of tactus-x (910) = 0,1"], "anybody may call himself so");
        let open = foreign.and("/sys/devices/system/cpu/isolated", "").isolate("2-3").finding(id);
        assert_eq!(open.severity, Severity::Major);
        assert_eq!(with(&[house]).and("threads:cut", "1").state(id), State::Unreadable);
        assert_eq!(intel(&[]).state(id), State::Unreadable);
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            for id in ["kthread-affinity", "systemd-cpu-affinity", "foreign-tasks"] {
                assert_ne!(intel(&[("threads:0", text)]).state(id), State::Ok, "{id}: {text}");
            }
        }
    }
}
