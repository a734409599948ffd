//! An audit for tests.

use tactus_model::finding::{Action, Audit, By, Finding, Isolation, Read, Role, Severity, State};

/// An audit with a finding of every severity and a check in every other state.
pub fn audit() -> Audit {
    let finding = |id: &str, state, severity, said: &str| Finding {
        id: id.into(),
        state,
        severity,
        family: if id == "smt" { "Platform and firmware" } else { "Kernel and isolation" }.into(),
        title: format!("what {id} is about"),
        message: said.into(),
        read: vec![Read { path: format!("/sys/{id}"), value: "on | <off>".into() }],
        expected: "off".into(),
        why: if state == State::Finding { "A sibling steals the pipeline.".into() } else { String::new() },
        fix: if state == State::Finding { "Write off to it.".into() } else { String::new() },
        risk: if state == State::Finding { "Fewer CPUs.".into() } else { String::new() },
    };
    Audit {
        role: Role::Host,
        isolation: Isolation {
            isolated: "2-3".parse().unwrap(),
            housekeeping: "0-1".parse().unwrap(),
            by: By::Boot,
        },
        findings: vec![
            finding("irq-affinity", State::Finding, Severity::Blocker, "3 interrupts may arrive on CPUs 2-3"),
            finding("smt", State::Finding, Severity::Major, "hardware threads are on"),
            finding("watchdogs", State::Finding, Severity::Minor, "the NMI watchdog is on"),
            finding("mitigations", State::Finding, Severity::Info, "mitigations are on"),
            finding("c1e-package-cstate", State::Unreadable, Severity::Minor, "no MSR device"),
            finding("smi-count", State::Unknowable, Severity::Blocker, "this system runs on a hypervisor"),
            finding("thp", State::Ok, Severity::Major, "never"),
            finding("arm64-kvm", State::NotApplicable, Severity::Minor, "it concerns 64-bit Arm only"),
        ],
        actions: vec![
            Action {
                title: "what irq-affinity is about".into(),
                command: String::new(),
                severity: Severity::Blocker,
                fixes: vec!["irq-affinity".into()],
            },
            Action {
                title: "Boot with these parameters: nosmt nosoftlockup nmi_watchdog=0".into(),
                command:
                    "sudo tactus tune apply --profile realtime --isolate 2,3 --persist --only smt,watchdogs"
                        .into(),
                severity: Severity::Major,
                fixes: vec!["smt".into(), "watchdogs".into()],
            },
            Action {
                title: "For your information".into(),
                command: String::new(),
                severity: Severity::Info,
                fixes: vec!["mitigations".into()],
            },
        ],
    }
}
