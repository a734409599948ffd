//! The activity of virtual machines: how often they leave the guest, and whether one is being migrated.

use tactus_model::facts::Facts;
use tactus_model::finding::Severity;

use super::vcpus::vcpus_of;
use crate::vm::{Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const TOTALS: &str = "/sys/kernel/debug/kvm/";
const UPTIME: &str = "/proc/uptime";
/// Exits per second and vCPU that are worth a look. An exit and the way back take one to several microseconds. So
/// this many take some thousandths of the CPU, and are as many as a tick of 1 kHz.
const MANY: f64 = 1000.0;

pub static CHECKS: &[Check] = &[
    Check {
        id: "exit-rate",
        title: "guests exit to the hypervisor often",
        sources: &[Source::Qoriq, Source::Industrial],
        applies: &[Applies::Hypervisor],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::Application],
        reversible: Reversible::Nothing,
        hardware: false,
        reads: "/sys/kernel/debug/kvm/* twice (perf kvm stat and QMP's query-stats show the same)",
        expected: "below 1000 exits a second per vCPU",
        why: "Each exit costs the guest one to several microseconds, and more through the caches that the host uses \
meanwhile. The kinds show the cause: halts, timers, interrupts, port I/O.",
        fix: "Find the most frequent kinds (perf kvm stat live, or tactus' measurement exits). In the guest's cycle \
avoid CPUID, port I/O, timers and interrupts between vCPUs. Isolate its vCPUs; give it vhost or a dedicated device. \
Where interrupts lead, let work that is not real-time poll its devices (intel-industrial-2014 advises it).",
        risk: "None.",
        judge: exits,
        changes: no_change,
    },
    Check {
        id: "live-ops",
        title: "a machine is migrated, saved or monitored while it runs",
        sources: &[Source::Guide("QEMU, query-migrate")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::Placement],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "the names of QEMU's threads and of all processes (QMP's query-migrate shows more)",
        expected: "no migration, no snapshot, no program that polls machines for statistics",
        why: "A migration tracks every written page, with an exit or a fault for each. At its end it stops the guest \
for milliseconds to seconds. A snapshot does the same. Programs that ask QEMU for statistics hold the lock that \
vCPUs need when they leave the guest.",
        fix: "Exclude real-time machines from automatic migration, balancing, snapshots and backup. Stop the \
program, or make it poll less often.",
        risk: "Maintenance of the host needs a planned stop of its machines.",
        judge: |subject| {
            let watchers = watchers(subject);
            each(subject, |vm| moved(vm, &watchers))
        },
        changes: no_change,
    },
];

/// Totals over all machines of one moment: by the file's name.
fn total(facts: &Facts, name: &str) -> Option<u64> {
    facts.number(&format!("{TOTALS}{name}"))
}

fn seconds(facts: &Facts) -> Option<f64> {
    facts.text(UPTIME)?.split_whitespace().next()?.parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

fn exits(subject: &Subject<'_>) -> Verdict {
    let vcpus: usize = subject.vms.iter().map(|vm| vm.vcpus.len()).sum();
    if vcpus == 0 {
        // Says why: none runs, or their threads have no names.
        return each(subject, |vm| {
            vcpus_of(vm)?;
            Ok(Judgement::unreadable("its vCPUs are unknown"))
        });
    }
    if subject.vms.iter().all(|vm| vm.emulated == Some(true)) {
        return Err(Judgement::not_applicable("all machines are emulated (TCG): they have no exits"));
    }
    let before = total(subject.facts, "exits").ok_or_else(|| {
        Judgement::unreadable("/sys/kernel/debug/kvm/exits could not be read: mount debugfs and be root")
    })?;
    let Some(later) = subject.later else {
        return Err(Judgement::unreadable("a rate needs two readings, but these facts contain one")
            .read(format!("{TOTALS}exits"), before.to_string()));
    };
    let rate = || -> Option<(f64, f64)> {
        let gone = total(later, "exits")?.checked_sub(before)?;
        let time = seconds(later)? - seconds(subject.facts)?;
        let vcpus = u32::try_from(vcpus).ok()?;
        (time > 0.0).then(|| (per_second(gone, time) / f64::from(vcpus), time))
    };
    let (rate, time) =
        rate().ok_or_else(|| Judgement::unreadable("the second reading does not follow the first"))?;
    let leading = leading(subject.facts, later, time);
    let said = format!("{rate:.0} exits a second for each of {vcpus} vCPUs, over {time:.1} s{leading}");
    Ok(Judgement::when(rate < MANY, said.clone(), said)
        .read(format!("{TOTALS}exits, twice"), format!("{rate:.0}/s per vCPU")))
}

#[expect(clippy::cast_precision_loss, reason = "a rate of events, for reading")]
fn per_second(count: u64, time: f64) -> f64 {
    count as f64 / time
}

/// The three kinds that moved most.
fn leading(before: &Facts, later: &Facts, time: f64) -> String {
    let mut kinds: Vec<(u64, &str)> = before
        .under(TOTALS)
        .filter_map(|(name, _)| {
            let kind = name.strip_prefix(TOTALS).filter(|kind| kind.contains("exit") && *kind != "exits")?;
            let moved = later.number(name)?.checked_sub(before.number(name)?)?;
            (moved > 0).then_some((moved, kind))
        })
        .collect();
    kinds.sort_by(|one, other| other.cmp(one));
    let shown: Vec<_> = kinds
        .iter()
        .take(3)
        .map(|(moved, kind)| format!("{kind} {:.0}/s", per_second(*moved, time)))
        .collect();
    if shown.is_empty() { String::new() } else { format!("; most frequent: {}", shown.join(", ")) }
}

/// Threads that QEMU has while it moves or saves a guest, in its older and newer names.
const MOVING: &[&str] = &[
    "mig/",
    "live_migration",
    "migration",
    "multifdsend",
    "multifdrecv",
    "bg_snapshot",
    "postcopy",
    "fd_mig",
];
/// Programs that ask machines for figures, by the beginning of their names.
const WATCHERS: &[&str] =
    &["virt-top", "virt-manager", "ceilometer-poll", "prometheus-libv", "libvirt-exporte", "kvmtop", "numad"];

fn watchers(subject: &Subject<'_>) -> Vec<String> {
    let first = subject.threads.user().filter(|thread| thread.tid == thread.pid);
    let found = first.filter(|thread| WATCHERS.iter().any(|name| thread.name.starts_with(name)));
    found.map(|thread| format!("{} ({})", thread.name, thread.tid)).take(4).collect()
}

fn moved(vm: &Vm, watchers: &[String]) -> Verdict {
    if vm.emulator.is_empty() {
        return Err(Judgement::unreadable("the facts do not include its threads"));
    }
    let moving = vm.emulator.iter().find(|thread| MOVING.iter().any(|name| thread.name.starts_with(name)));
    if let Some(thread) = moving {
        return Ok(Judgement::finding(format!("it is being migrated or saved (thread {})", thread.name))
            .read(format!("threads of process {}", vm.pid), thread.name.as_str()));
    }
    if !watchers.is_empty() {
        return Ok(Judgement::finding(format!("{} polls it for statistics", watchers.join(", ")))
            .read("processes", watchers.join(", ")));
    }
    let threads = format!("{} threads besides vCPUs", vm.emulator.len());
    Ok(Judgement::ok("it was neither migrated nor saved when the facts were read")
        .read(format!("threads of process {}", vm.pid), threads))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{System, intel};
    use crate::vm::testing::{THREADS, host, threads};

    const EXITS: &str = "/sys/kernel/debug/kvm/exits";
    const HALTS: &str = "/sys/kernel/debug/kvm/halt_exits";

    fn looked_at_twice(exits: &str, uptime: &str) -> System {
        host().with(&[(EXITS, "1000"), (HALTS, "10"), (UPTIME, "100.00 350.00")]).later(&[
            (EXITS, exits),
            (HALTS, "510"),
            (UPTIME, uptime),
        ])
    }

    #[test]
    fn a_rate_is_of_two_looks_for_each_vcpu() {
        let id = "exit-rate";
        let calm = looked_at_twice("2000", "110.00 380.00");
        assert_eq!(calm.state(id), State::Ok);
        assert_eq!(
            calm.said(id),
            "50 exits a second for each of 2 vCPUs, over 10.0 s; most frequent: halt_exits 50/s"
        );
        assert_eq!(looked_at_twice("201000", "110.00 380.00").state(id), State::Finding);
        for (exits, uptime) in
            [("999", "110"), ("2000", "100.00"), ("2000", ""), ("", "110"), ("2000", "NaN"), ("2000", "inf")]
        {
            assert_eq!(looked_at_twice(exits, uptime).state(id), State::Unreadable, "{exits} {uptime}");
        }
        assert_eq!(host().and(EXITS, "1000").state(id), State::Unreadable);
        assert_eq!(host().state(id), State::Unreadable);
        assert_eq!(intel(&[("threads:0", "")]).state(id), State::NotApplicable);
        assert_eq!(host().and("threads:0", &THREADS.replace("CPU ", "x")).state(id), State::Unreadable);
    }

    #[test]
    fn a_machine_that_is_moved_or_watched_is_found() {
        let id = "live-ops";
        assert_eq!(host().state(id), State::Ok);
        let moving =
            host().and("threads:0", &format!("{THREADS}\n830\t812\t1\t0\tOTHER\t0\t0\tmig/src/main"));
        assert!(moving.state(id) == State::Finding && moving.said(id).contains("mig/src/main"));
        let watched = host().and("threads:0", &format!("{THREADS}\n950\t950\t1\t0\tOTHER\t0\t0\tvirt-top"));
        assert!(watched.said(id).contains("virt-top (950) polls it for statistics"), "{}", watched.said(id));
        // A thread of the kernel of that name moves no guest.
        assert_eq!(
            threads(
                "2\t2\t0\t208040\tOTHER\t0\t0,1\tkthreadd",
                "15\t15\t2\t208040\tFIFO\t99\t0\tmigration/0"
            )
            .state(id),
            State::Ok
        );
        assert_eq!(host().without("threads:0").state(id), State::Unreadable);
        assert_eq!(intel(&[("threads:0", "")]).state(id), State::NotApplicable);
    }
}
