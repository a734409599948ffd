//! The real-time budget of a container's cgroup.

use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use super::cgroup::{is_v1, own};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const OPTION: &str = "config:CONFIG_RT_GROUP_SCHED";
const OFF: &str = "config:CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED";

pub const CHECK: Check = Check {
    id: "ctr-rt-budget",
    title: "the container's cgroup has no real-time budget",
    sources: &[
        Source::Kernel("Documentation/scheduler/sched-rt-group.rst"),
        Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
    ],
    applies: &[Applies::Container],
    severity: Severity::Blocker,
    arch: Arch::Any,
    set: &[SetBy::ContainerFlag],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "cpu.rt_runtime_us of the container's cgroup, CONFIG_RT_GROUP_SCHED, /proc/sys/kernel/sched_rt_runtime_us",
    expected: "a budget above 0, or a kernel that does not schedule real-time threads by group",
    why: "A kernel with CONFIG_RT_GROUP_SCHED refuses real-time policies to threads whose cpu cgroup has no budget \
(EPERM, even with CAP_SYS_NICE). A new cgroup has none. A cgroup version 2 group cannot get one.",
    fix: "cgroup version 1: give the parent a budget and start with --cpu-rt-runtime=950000 (docker, and its \
daemon's --cpu-rt-runtime). Version 2: boot with rt_group_sched=0 (kernels that know it, since 6.16) or a kernel \
without CONFIG_RT_GROUP_SCHED. Or first start stalld on the host, then set kernel.sched_rt_runtime_us = -1 there: \
the kernel then does not require a budget.",
    risk: "A program with a budget can keep a CPU for that share of each period. With -1 it can keep the CPU \
forever, as can every other real-time program of the host: only stalld then lets others run.",
    judge,
    changes: no_change,
};

fn judge(subject: &Subject<'_>) -> Verdict {
    if let Some((path, text)) = own(subject, "cpu", "", "cpu.rt_runtime_us")? {
        let shown: String = text.chars().take(40).collect();
        let Ok(budget) = text.parse::<i64>() else {
            return Err(Judgement::unreadable(format!("{path} contains `{shown}`, which is not a number")));
        };
        let judgement = match budget {
            0 => without(subject, "the container's cgroup has no real-time budget"),
            -1 => Judgement::ok("the container's cgroup has an unlimited real-time budget"),
            _ => Judgement::ok(format!(
                "the container's cgroup has {budget} us of real-time budget in each period"
            )),
        };
        return Ok(judgement.read(path, shown));
    }
    if subject.cmdline.get("rt_group_sched") == Some("0") {
        return Err(Judgement::not_applicable("the kernel was booted with rt_group_sched=0"));
    }
    // Of version 1, the file is there if the kernel has the option.
    if is_v1(subject, "cpu") && own(subject, "cpu", "", "cpu.shares")?.is_some() {
        return Err(Judgement::not_applicable("the kernel does not schedule real-time threads by group"));
    }
    match by_group(subject) {
        Some(false) => {
            Err(Judgement::not_applicable("the kernel does not schedule real-time threads by group"))
        }
        Some(true) => match own(subject, "cpu", "cpu.weight", "")? {
            Some((path, weight)) => Ok(without(
                subject,
                "the kernel schedules real-time threads by group, and a cgroup of version 2 has no budget",
            )
            .read(path, weight.chars().take(40).collect::<String>())
            .read(OPTION, "y")),
            None => Err(Judgement::unknowable(
                "the kernel schedules real-time threads by group; its cgroup cannot be seen from inside",
            )),
        },
        None => Err(Judgement::unknowable(
            "whether the kernel schedules real-time threads by group cannot be seen from inside",
        )),
    }
}

/// Whether the kernel schedules real-time threads by group. This system's configuration says so, or that of the
/// machine that carries it, whose kernel is the same; `None` if neither does. Since Linux 6.16 the option may be
/// compiled in but off until the command line asks for it.
fn by_group(subject: &Subject<'_>) -> Option<bool> {
    let facts =
        std::iter::once(subject.facts).chain(subject.carrier).find(|facts| facts.text(OPTION).is_some())?;
    if facts.text(OPTION) != Some("y") || subject.cmdline.get("rt_group_sched") == Some("1") {
        return Some(facts.text(OPTION) == Some("y"));
    }
    match facts.0.get(OFF) {
        Some(Reading::Text(text)) => Some(text.trim() != "y"),
        Some(Reading::Absent) => Some(true),
        _ => subject.kernel.before(6, 16).then_some(true),
    }
}

/// The kernel asks for a budget only while real-time threads are limited at all:
/// `rt_bandwidth_enabled()` in `__sched_setscheduler()`.
fn without(subject: &Subject<'_>, said: &str) -> Judgement {
    match subject.facts.text(LIMIT) {
        Some("-1") => Judgement::ok(format!("{said}, but does not need one: sched_rt_runtime_us is -1"))
            .read(LIMIT, "-1"),
        _ => Judgement::finding(said),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};

    use super::{LIMIT, OFF, OPTION};
    use crate::testing::{HOSTILE, System, intel};

    const BUDGET: &str = "/sys/fs/cgroup/cpu/cpu.rt_runtime_us";

    fn v1(budget: &str) -> System {
        intel(&[("/proc/self/cgroup", "4:cpu,cpuacct:/"), (BUDGET, budget)]).role(Role::Container)
    }

    fn v2(option: &str) -> System {
        intel(&[("/proc/self/cgroup", "0::/"), (OPTION, option), ("/sys/fs/cgroup/cpu.weight", "100")])
            .absent(OFF)
            .role(Role::Container)
    }

    #[test]
    fn version_1_must_have_a_budget() {
        assert_eq!(v1("950000").state("ctr-rt-budget"), State::Ok);
        assert_eq!(v1("-1").state("ctr-rt-budget"), State::Ok);
        assert_eq!(v1("0").state("ctr-rt-budget"), State::Finding);
        assert_eq!(v1("0").and(LIMIT, "-1").state("ctr-rt-budget"), State::Ok, "the kernel does not ask");
        assert_eq!(v1("0").and(LIMIT, "950000").state("ctr-rt-budget"), State::Finding);
        let plain = v1("").without(BUDGET).and("/sys/fs/cgroup/cpu/cpu.shares", "1024");
        assert_eq!(plain.state("ctr-rt-budget"), State::NotApplicable);
    }

    #[test]
    fn version_2_cannot_have_one() {
        assert_eq!(v2("y").state("ctr-rt-budget"), State::Finding);
        assert_eq!(v2("n").state("ctr-rt-budget"), State::NotApplicable);
        let off = v2("y").and("/proc/cmdline", "rt_group_sched=0");
        assert_eq!(off.state("ctr-rt-budget"), State::NotApplicable);
        let root = v2("y").without("/sys/fs/cgroup/cpu.weight");
        assert_eq!(root.state("ctr-rt-budget"), State::Unknowable);
    }

    #[test]
    fn the_option_may_be_there_and_off() {
        assert_eq!(v2("y").and(OFF, "y").state("ctr-rt-budget"), State::NotApplicable);
        let asked = v2("y").and(OFF, "y").and("/proc/cmdline", "rt_group_sched=1");
        assert_eq!(asked.state("ctr-rt-budget"), State::Finding);
        let release = |release| v2("y").without(OFF).and("uname:release", release).state("ctr-rt-budget");
        assert_eq!(release("6.1.0-38-amd64"), State::Finding);
        assert_eq!(release("6.18.1"), State::Unknowable);
    }

    #[test]
    fn without_the_configuration_nothing_is_known_unless_the_carrier_tells() {
        assert_eq!(v2("").without(OPTION).state("ctr-rt-budget"), State::Unknowable);
        let carried = v2("").without(OPTION).carried_by(intel(&[(OPTION, "n")]));
        assert_eq!(carried.state("ctr-rt-budget"), State::NotApplicable);
        assert_eq!(v1("0").role(Role::Host).state("ctr-rt-budget"), State::NotApplicable);
        assert_eq!(v1("0").unreadable(BUDGET, "denied").state("ctr-rt-budget"), State::Unreadable);
        for text in HOSTILE.iter().filter(|text| **text != "-1") {
            assert_eq!(v1(text).state("ctr-rt-budget"), State::Unreadable);
        }
    }
}
