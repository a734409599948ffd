//! RCU callbacks: where the memory that isolated CPUs no longer need is freed.

use tactus_model::CpuSet;
use tactus_model::finding::Severity;
use tactus_model::isolation::last_cpu;
use tactus_model::threads::Thread;

use crate::sentence::{count, cpus_or_none, few, meet, read_places, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

pub static CHECKS: &[Check] = &[
    Check {
        id: "rcu-nocbs",
        title: "real-time CPUs run RCU callbacks",
        sources: &[
            Source::Xeon,
            Source::RedHat,
            Source::Osadl,
            Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
        ],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "dmesg: Offload RCU callbacks from CPUs; /sys/devices/system/cpu/nohz_full; /proc/cmdline",
        expected: "callbacks of CPUs {isolated} are offloaded",
        why: "A CPU that has used the kernel must later run callbacks, mostly to free memory. They run in a softirq \
or in rcuc, in batches of any size. An offloaded CPU leaves them to rcuo threads, which run on other CPUs. nohz_full \
implies it.",
        fix: "Boot with rcu_nocbs={isolated} (or nohz_full={isolated}).",
        risk: "Low: housekeeping CPUs have more work.",
        judge: offloaded,
        changes: |subject| match subject.parted() {
            Some((isolated, _)) => vec![subject.boot("rcu-nocbs", "rcu_nocbs", isolated.to_string())],
            None => Vec::new(),
        },
    },
    Check {
        id: "rcu-nocb-poll",
        title: "real-time CPUs must wake the threads that run their RCU callbacks",
        sources: &[Source::Xeon, Source::Kernel("Documentation/admin-guide/kernel-parameters.txt")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::KernelCommandLine],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/proc/cmdline",
        expected: "rcu_nocb_poll",
        why: "An offloaded CPU must wake its rcuo thread when it queues a callback. With rcu_nocb_poll these threads \
poll for work instead.",
        fix: "Boot with rcu_nocb_poll.",
        risk: "The housekeeping CPUs wake up regularly to poll and need more power.",
        judge: polled,
        changes: |subject| match subject.parted() {
            Some(_) => vec![subject.boot("rcu-nocb-poll", "rcu_nocb_poll", "")],
            None => Vec::new(),
        },
    },
    Check {
        id: "rcuo-affinity",
        title: "threads that run offloaded RCU callbacks may run on real-time CPUs",
        sources: &[Source::Kernel("Documentation/admin-guide/kernel-per-CPU-kthreads.rst")],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::RunTime],
        reversible: Reversible::Yes,
        hardware: false,
        reads: "Cpus_allowed_list of the threads rcuog/* and rcuo[psb]/*",
        expected: "{housekeeping}",
        why: "Offloading moves callbacks into the rcuo threads. If these may run on the isolated CPUs, nothing is \
gained: the scheduler brings them back there.",
        fix: "for p in $(pgrep '^rcuo'); do taskset -pc {housekeeping} $p; done",
        risk: "None known.",
        judge: rcuo,
        changes: |subject| {
            let Some((isolated, keeping)) = subject.parted() else { return Vec::new() };
            let place = |thread: &Thread| {
                let rest = thread.cpus.minus(isolated);
                subject.place("rcuo-affinity", thread, if rest.is_empty() { keeping } else { &rest })
            };
            rcuo_threads(subject).map(place).collect()
        },
    },
];

fn rcuo_threads<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = &'a Thread> {
    subject.threads.named("rcuo").filter(|thread| thread.kernel)
}

/// The offloading of callbacks.
struct Offload {
    cpus: CpuSet,
    path: &'static str,
    value: String,
    /// A further reading: that the command line lacks the parameter.
    also: Option<(&'static str, &'static str)>,
}

impl Offload {
    /// The judgement, with what was read.
    fn shown(self, judgement: Judgement) -> Judgement {
        let judgement = match self.also {
            Some((path, value)) => judgement.read(path, value),
            None => judgement,
        };
        judgement.read(self.path, self.value)
    }
}

/// The CPUs of `Offload RCU callbacks from CPUs: 1-3.`
fn announced(lines: &str) -> Option<CpuSet> {
    let list = lines.lines().rev().find_map(|line| line.split_once("callbacks from CPUs:"))?.1;
    let list = list.trim().trim_end_matches('.');
    if list == "(none)" { Some(CpuSet::default()) } else { list.parse().ok() }
}

/// CPUs that are offloaded, by the best witness there is.
fn known(subject: &Subject<'_>) -> Result<Offload, Judgement> {
    const DMESG: &str = "dmesg:rcu-offload";
    if let Some((cpus, text)) = subject.facts.text(DMESG).and_then(|text| Some((announced(text)?, text))) {
        return Ok(Offload { cpus, path: "dmesg", value: text.to_owned(), also: None });
    }
    let told = subject.told()?;
    let tickless = subject.topology.nohz_full.clone();
    let option = subject.facts.text("config:CONFIG_RCU_NOCB_CPU");
    let mut all = told.all("rcu_nocbs").peekable();
    if all.peek().is_none() {
        const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
        let value = subject.facts.text(NOHZ_FULL).unwrap_or("not there").to_owned();
        let also = Some(("/proc/cmdline", "no rcu_nocbs"));
        return Ok(Offload { cpus: tickless, path: NOHZ_FULL, value, also });
    }
    if option == Some("n") {
        return Ok(Offload { cpus: tickless, path: "CONFIG_RCU_NOCB_CPU", value: "n".into(), also: None });
    }
    // NO_HZ_FULL selects RCU_NOCB_CPU, and only that option makes rcuo threads.
    let able = option == Some("y") || !tickless.is_empty() || rcuo_threads(subject).next().is_some();
    let (mut cpus, mut value) = (tickless, Vec::new());
    for list in all {
        let list = list.unwrap_or_default();
        value.push(if list.is_empty() { "rcu_nocbs".to_owned() } else { format!("rcu_nocbs={list}") });
        cpus = match list {
            // Without a list the kernel only makes ready for CPUs that are offloaded later (`rcu_nocb_setup`).
            "" => cpus,
            list => match CpuSet::of_parameter(list, last_cpu(subject.facts)) {
                Ok(more) => cpus.or(&more),
                Err(error) => {
                    let why = format!("rcu_nocbs on the kernel's command line: {error}");
                    return Err(Judgement::unreadable(why).read("/proc/cmdline", value.join(" ")));
                }
            },
        };
    }
    if !able {
        let why = "rcu_nocbs is on the command line, but whether this kernel knows it is unknown";
        return Err(Judgement::unreadable(why).read("/proc/cmdline", value.join(" ")));
    }
    Ok(Offload { cpus, path: "/proc/cmdline", value: value.join(" "), also: None })
}

fn offloaded(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    let offload = known(subject)?;
    let good = format!("RCU callbacks of {} are offloaded", cpus_or_none(isolated));
    let bad = format!("RCU callbacks of {} are not offloaded", cpus_or_none(&isolated.minus(&offload.cpus)));
    let judgement = Judgement::when(within(isolated, &offload.cpus), good, bad);
    Ok(offload.shown(judgement))
}

fn polled(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    let offload = known(subject)?;
    if !meet(isolated, &offload.cpus) {
        let why = "no isolated CPU has its RCU callbacks offloaded";
        return Err(offload.shown(Judgement::not_applicable(why)));
    }
    let holds = subject.told()?.has("rcu_nocb_poll");
    let bad = "real-time CPUs wake rcuo threads when they queue callbacks";
    Ok(Judgement::when(holds, "rcuo threads poll for callbacks", bad)
        .read("/proc/cmdline", if holds { "rcu_nocb_poll" } else { "no rcu_nocb_poll" }))
}

fn rcuo(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    subject.running()?;
    let all: Vec<&Thread> = rcuo_threads(subject).collect();
    if all.is_empty() {
        return Err(Judgement::not_applicable("there are no rcuo threads: no CPU is offloaded"));
    }
    let stray: Vec<&Thread> = all.iter().copied().filter(|thread| meet(&thread.cpus, isolated)).collect();
    let names = few(stray.iter().map(|thread| &thread.name));
    let judgement = Judgement::when(
        stray.is_empty(),
        format!("{} stay away from {}", count(all.len(), "rcuo thread"), cpus_or_none(isolated)),
        format!("{} may run on {}: {names}", count(stray.len(), "rcuo thread"), cpus_or_none(isolated)),
    );
    let shown = if stray.is_empty() { all } else { stray };
    Ok(subject.over_all_threads(read_places(judgement, shown)))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, intel};

    const DMESG: &str = "dmesg:rcu-offload";

    #[test]
    fn the_kernels_own_announcement_is_the_best_witness() {
        let said = |line| intel(&[(DMESG, line), ("/proc/cmdline", "rcu_nocbs=2-3")]).state("rcu-nocbs");
        assert_eq!(said("rcu: \tOffload RCU callbacks from CPUs: 2-3."), State::Ok);
        assert_eq!(said("rcu: \tOffload RCU callbacks from CPUs: 3."), State::Finding);
        assert_eq!(said("rcu: \tOffload RCU callbacks from CPUs: (none)."), State::Finding);
        assert_eq!(
            said("\tOffload RCU callbacks from all CPUs\n\tOffload RCU callbacks from CPUs: 0-3."),
            State::Ok
        );
    }

    #[test]
    fn a_parameter_counts_when_the_kernel_knows_it() {
        let told = |cmdline| intel(&[("/proc/cmdline", cmdline), ("config:CONFIG_RCU_NOCB_CPU", "y")]);
        assert_eq!(told("rcu_nocbs=2-3").state("rcu-nocbs"), State::Ok);
        assert_eq!(told("rcu_nocbs").state("rcu-nocbs"), State::Finding, "no list, no CPU");
        assert_eq!(told("rcu_nocbs=all").state("rcu-nocbs"), State::Ok);
        assert_eq!(told("rcu_nocbs=2").said("rcu-nocbs"), "RCU callbacks of CPU 3 are not offloaded");
        assert_eq!(told("rcu_nocbs=N").said("rcu-nocbs"), "RCU callbacks of CPU 2 are not offloaded");
        assert_eq!(told("rcu_nocbs=2-N").state("rcu-nocbs"), State::Ok);
        assert_eq!(told("rcu_nocbs=x").state("rcu-nocbs"), State::Unreadable);
        assert_eq!(told("quiet").state("rcu-nocbs"), State::Finding);
        assert_eq!(told("quiet").wanted("rcu-nocbs"), ["kernel parameter rcu_nocbs = 2,3"]);
        assert_eq!(
            told("rcu_nocbs=2-3").without("config:CONFIG_RCU_NOCB_CPU").state("rcu-nocbs"),
            State::Unreadable
        );
        assert_eq!(
            told("rcu_nocbs=2-3").and("config:CONFIG_RCU_NOCB_CPU", "n").state("rcu-nocbs"),
            State::Finding
        );
        assert_eq!(intel(&[]).state("rcu-nocbs"), State::Unreadable);
        assert_eq!(told("quiet").isolate("0-3").state("rcu-nocbs"), State::NotApplicable);
    }

    #[test]
    fn cpus_without_tick_are_offloaded_and_may_be_polled_for() {
        let tickless =
            |cmdline| intel(&[("/proc/cmdline", cmdline), ("/sys/devices/system/cpu/nohz_full", "2-3")]);
        assert_eq!(tickless("nohz_full=2-3").state("rcu-nocbs"), State::Ok);
        assert_eq!(tickless("nohz_full=2-3").state("rcu-nocb-poll"), State::Finding);
        assert_eq!(tickless("nohz_full=2-3 rcu_nocb_poll").state("rcu-nocb-poll"), State::Ok);
        assert_eq!(intel(&[("/proc/cmdline", "rcu_nocb_poll")]).state("rcu-nocb-poll"), State::NotApplicable);
    }

    #[test]
    fn rcuo_threads_belong_to_the_housekeeping_cpus() {
        let threads = |cpus: &str| {
            intel(&[(
                "threads:0",
                &format!(
                    "16\t16\t2\t208040\tOTHER\t0\t{cpus}\trcuog/2\n17\t17\t2\t208040\tOTHER\t0\t0-1\trcuop/2"
                ),
            )])
        };
        assert_eq!(threads("0,1").state("rcuo-affinity"), State::Ok);
        assert_eq!(threads("0-3").said("rcuo-affinity"), "1 rcuo thread may run on CPUs 2,3: rcuog/2");
        assert_eq!(threads("0-3").wanted("rcuo-affinity"), ["CPUs of rcuog/2 (16) = 0,1"]);
        assert_eq!(threads("2").wanted("rcuo-affinity"), ["CPUs of rcuog/2 (16) = 0,1"]);
        assert_eq!(threads("0-1").and("threads:cut", "9").state("rcuo-affinity"), State::Unreadable);
        assert_eq!(
            intel(&[("threads:0", "1\t1\t0\t400100\tOTHER\t0\t0\tinit")]).state("rcuo-affinity"),
            State::NotApplicable
        );
        assert_eq!(intel(&[]).state("rcuo-affinity"), State::Unreadable);
    }

    #[test]
    fn rubbish_is_not_good() {
        for text in HOSTILE {
            let subject = intel(&[(DMESG, text), ("/proc/cmdline", text), ("threads:0", text)]);
            for id in ["rcu-nocbs", "rcu-nocb-poll", "rcuo-affinity"] {
                assert_ne!(subject.state(id), State::Ok, "{id}: {text}");
            }
        }
    }
}
