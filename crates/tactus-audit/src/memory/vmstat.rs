//! The worker that folds per-CPU counters.

use tactus_model::CpuSet;
use tactus_model::change::{Change, Form};
use tactus_model::finding::Severity;
use tactus_model::isolation::PARTITIONS;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const INTERVAL: &str = "/proc/sys/vm/stat_interval";

pub static CHECKS: &[Check] = &[Check {
    id: "vmstat-interval",
    title: "a worker on every CPU folds memory statistics each second",
    sources: &[
        Source::Kernel("Documentation/admin-guide/sysctl/vm.rst"),
        Source::Kernel("mm/vmstat.c"),
        Source::Kernel("commit be5e015d107d"),
        Source::Kernel("commit 3232e7aad11e"),
        Source::Kernel("commit 1c3329df409b"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::RunTime],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/proc/sys/vm/stat_interval; /sys/devices/system/cpu/{nohz_full,isolated}, /sys/fs/cgroup/cpuset.cpus.isolated",
    expected: "10 or more (seconds), or a kernel since 6.5 that treats the CPUs as isolated",
    why: "When per-CPU memory counters have changed, the kernel queues vmstat_update on that CPU: a switch to a \
kworker and back. Kernels since 6.5 (be5e015d107d) leave isolated CPUs alone (cpu_is_isolated). Those are CPUs of \
isolcpus=domain, since 6.8 (3232e7aad11e) of an isolated cpuset partition, and up to 6.19 (1c3329df409b) of \
nohz_full.",
    fix: "Write 10 to /proc/sys/vm/stat_interval (vm.stat_interval = 10 in /etc/sysctl.d).",
    risk: "Memory statistics lag by up to that many seconds.",
    judge,
    changes,
}];

fn judge(subject: &Subject<'_>) -> Verdict {
    let seconds = subject.number(INTERVAL)?;
    if seconds < 10 && spared(subject) {
        return Ok(Judgement::ok(format!(
            "memory statistics are folded every {seconds} s, but not on CPUs {}, which are isolated",
            subject.isolated()
        ))
        .read(INTERVAL, seconds.to_string()));
    }
    Ok(Judgement::when(
        seconds >= 10,
        format!("memory statistics are folded every {seconds} s"),
        format!("memory statistics are folded every {seconds} s on each CPU; it should be every 10 s or less often"),
    )
    .read(INTERVAL, seconds.to_string()))
}

/// Whether the kernel leaves the CPUs for real-time work out: `cpu_is_isolated()` in `vmstat_shepherd()`.
fn spared(subject: &Subject<'_>) -> bool {
    let isolated = subject.isolated();
    let mut quiet = subject.topology.booted.clone();
    if subject.kernel.since(6, 8) {
        let partition = subject.facts.text(PARTITIONS).and_then(|text| text.parse::<CpuSet>().ok());
        quiet = quiet.or(&partition.unwrap_or_default());
    }
    if !subject.kernel.since(7, 0) {
        quiet = quiet.or(&subject.topology.nohz_full);
    }
    subject.kernel.since(6, 5) && !isolated.is_empty() && isolated.minus(&quiet).is_empty()
}

/// A longer interval than ten seconds stays.
fn changes(subject: &Subject<'_>) -> Vec<Change> {
    let then = subject.facts.number(INTERVAL).unwrap_or(0).max(10);
    subject.set("vmstat-interval", INTERVAL, Form::Plain, then.to_string()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, blank, intel};

    #[test]
    fn ten_seconds_and_more_are_good() {
        let state = |text| intel(&[(INTERVAL, text)]).state("vmstat-interval");
        assert_eq!((state("10"), state("120")), (State::Ok, State::Ok));
        assert_eq!((state("1"), state("0")), (State::Finding, State::Finding));
        assert!(HOSTILE.iter().all(|text| state(text) == State::Unreadable));
        assert_eq!(blank(&[]).state("vmstat-interval"), State::NotApplicable);
    }

    #[test]
    fn kernels_since_6_5_leave_cpus_alone_that_were_isolated_at_boot() {
        let on = |release| intel(&[(INTERVAL, "1"), ("uname:release", release)]);
        assert_eq!(on("6.5.0").state("vmstat-interval"), State::Ok);
        assert_eq!(on("6.4.0").state("vmstat-interval"), State::Finding);
        // CPUs that are only intended to be isolated are not isolated.
        assert_eq!(on("6.12.1").isolate("1-3").state("vmstat-interval"), State::Finding);
        assert_eq!(
            on("6.12.1")
                .and("/sys/devices/system/cpu/nohz_full", "1-3")
                .isolate("1-3")
                .state("vmstat-interval"),
            State::Ok
        );
    }

    #[test]
    fn an_isolated_partition_counts_since_6_8_and_nohz_full_alone_until_7_0() {
        let on = |release, place| {
            let system = intel(&[(INTERVAL, "1"), ("uname:release", release)]).and(place, "1-3");
            system.isolate("1-3").state("vmstat-interval")
        };
        let nohz_full = "/sys/devices/system/cpu/nohz_full";
        assert_eq!((on("6.7.0", PARTITIONS), on("6.8.0", PARTITIONS)), (State::Finding, State::Ok));
        assert_eq!((on("6.19.0", nohz_full), on("7.0.0", nohz_full)), (State::Ok, State::Finding));
    }

    #[test]
    fn a_longer_interval_is_not_made_shorter() {
        let wanted = |text| intel(&[(INTERVAL, text)]).wanted("vmstat-interval");
        assert_eq!(wanted("1"), [format!("{INTERVAL} = 10")]);
        assert_eq!(wanted("120"), [""; 0]);
    }
}
