//! Grace periods of RCU that interrupt every CPU.

use tactus_model::change::{Form, flag};
use tactus_model::finding::Severity;

use crate::sentence::cpus_or_none;
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const NORMAL: &str = "/sys/kernel/rcu_normal";
const EXPEDITED: &str = "/sys/kernel/rcu_expedited";
const AFTER_BOOT: &str = "/sys/module/rcupdate/parameters/rcu_normal_after_boot";

pub static CHECKS: &[Check] = &[Check {
    id: "rcu-expedited",
    title: "expedited grace periods interrupt real-time CPUs",
    sources: &[
        Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
        Source::Kernel("kernel/rcu/tree_exp.h"),
        Source::Tuned("network-latency"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::RunTime, SetBy::KernelCommandLine],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/kernel/{rcu_normal,rcu_expedited}; rcupdate.rcu_normal_after_boot",
    expected: "rcu_normal 1, as rcupdate.rcu_normal_after_boot=1 sets it (a PREEMPT_RT kernel's default); rcu_expedited 0",
    why: "Some tasks need RCU quickly: a network interface, a mount, loading or unloading a module. The kernel then \
interrupts every CPU not in user mode or idle, isolated or not. With rcu_normal every task waits the ordinary way.",
    fix: "echo 1 > /sys/kernel/rcu_normal; boot with rcupdate.rcu_normal_after_boot=1.",
    risk: "Changes to networks, mounts and modules take longer.",
    judge: expedited,
    changes: |subject| {
        if subject.facts.text(AFTER_BOOT).is_none() || subject.parted().is_none() {
            return Vec::new();
        }
        let now = subject.set("rcu-expedited", NORMAL, Form::Plain, "1");
        let boot = subject.boot("rcu-expedited", "rcupdate.rcu_normal_after_boot", "1");
        // Where the kernel does so by itself nothing has to be told.
        let own = subject.facts.text(AFTER_BOOT).and_then(flag) == Some(true);
        now.into_iter().chain((!own).then_some(boot)).collect()
    },
}];

fn expedited(subject: &Subject<'_>) -> Verdict {
    let (isolated, _) = subject.need_parted()?;
    let normal = subject.value(NORMAL)?;
    let hurried = subject.facts.text(EXPEDITED);
    let place = cpus_or_none(isolated);
    // rcu_normal goes before rcu_expedited (synchronize_rcu_expedited).
    let judgement = if normal == "1" {
        Judgement::ok("every task waits for RCU the ordinary way")
    } else if normal != "0" {
        Judgement::unreadable(format!("{NORMAL} is neither 0 nor 1"))
    } else if hurried == Some("1") {
        Judgement::finding(format!("every grace period of RCU is expedited and interrupts {place}"))
    } else {
        Judgement::finding(format!("expedited grace periods of RCU interrupt {place}"))
    };
    let judgement = judgement.read(NORMAL, normal);
    Ok(match hurried {
        Some(text) => judgement.read(EXPEDITED, text),
        None => judgement,
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, intel};

    #[test]
    fn rcu_is_waited_for_the_ordinary_way() {
        let id = "rcu-expedited";
        let at = |normal: &str| intel(&[(NORMAL, normal), (EXPEDITED, "0"), (AFTER_BOOT, "0")]);
        assert_eq!(at("1").state(id), State::Ok);
        let wanted =
            [format!("{NORMAL} = 1"), "kernel parameter rcupdate.rcu_normal_after_boot = 1".to_owned()];
        assert_eq!((at("0").state(id), at("0").wanted(id)), (State::Finding, wanted.to_vec()));
        assert!(at("0").and(EXPEDITED, "1").said(id).starts_with("every grace period"));
        assert_eq!(intel(&[]).state(id), State::NotApplicable);
        for text in HOSTILE {
            assert_ne!(at(text).state(id), State::Ok, "{text}");
        }
    }
}
