//! States of machines that people of the field asked about, each as the tuned machine with what was different there.

use tactus_audit::{Intent, Subject, audit};
use tactus_model::facts::{Facts, Reading};
use tactus_model::finding::{Audit, By, Role, State};

use crate::machines::machine;

const CMDLINE: &str = "/proc/cmdline";

/// The tuned machine, its command line changed by these replacements.
fn told(changes: &[(&str, &str)]) -> Facts {
    let mut facts = machine("intel-bare-tuned");
    let mut line = facts.text(CMDLINE).unwrap().to_owned();
    for (from, to) in changes {
        assert!(line.contains(from), "{from}: {line}");
        line = line.replace(from, to);
    }
    facts.keep(CMDLINE, line);
    facts
}

fn audited(facts: &Facts) -> Audit {
    audit(&Subject::new(facts, Role::Host, &Intent::default()))
}

fn said(audit: &Audit, id: &str) -> (State, String) {
    let finding = audit.findings.iter().find(|finding| finding.id == id).unwrap();
    (finding.state, finding.message.clone())
}

#[test]
fn nowatchdog_leaves_the_timer_of_tsc_adjust_on_isolated_cpus() {
    let audit = audited(&told(&[("tsc=reliable", "tsc=nowatchdog")]));
    let (state, message) = said(&audit, "tsc-checks");
    assert_eq!(state, State::Finding);
    assert!(
        message.starts_with("tsc=nowatchdog leaves the other check running: a timer checks TSC_ADJUST"),
        "{message}"
    );
    let boot = audit.actions.iter().find(|action| action.fixes.contains(&"tsc-checks".to_owned())).unwrap();
    assert!(boot.title.contains("tsc=reliable") || boot.command.is_empty(), "{boot:?}");
    assert_eq!(said(&audited(&told(&[])), "tsc-checks").0, State::Ok);
}

#[test]
fn a_list_up_to_the_last_cpu_is_in_effect() {
    let audit = audited(&told(&[
        ("isolcpus=managed_irq,domain,2-15", "isolcpus=managed_irq,domain,2-N"),
        ("nohz_full=2-15", "nohz_full=2-N"),
        ("rcu_nocbs=2-15", "rcu_nocbs=all"),
    ]));
    for id in [
        "managed-irq",
        "isolcpus",
        "nohz-full",
        "rcu-nocbs",
        "boot-intent",
        "misspelt-parameters",
        "not-built-in",
    ] {
        assert_eq!(said(&audit, id).0, State::Ok, "{id}: {}", said(&audit, id).1);
    }
    let strides = audited(&told(&[(
        "isolcpus=managed_irq,domain,2-15",
        "isolcpus=domain,managed_irq,2-N:1/2,3-15:1/2",
    )]));
    assert_eq!(said(&strides, "managed-irq").0, State::Ok, "{}", said(&strides, "managed-irq").1);
}

#[test]
fn misspelt_parameters_are_named_and_their_cpus_are_those_that_were_meant() {
    let mut facts =
        told(&[("isolcpus=managed_irq,domain,2-15", "isolcpu=2-15"), ("rcu_nocbs=", "rcu_nocb=")]);
    facts.keep("/sys/devices/system/cpu/isolated", "");
    facts.keep("dmesg:rcu-offload", "");
    facts.keep(
        "dmesg:unknown-parameters",
        "Unknown kernel command line parameters \"isolcpu=2-15 rcu_nocb=2-15\", will be passed to user space.",
    );
    let audit = audited(&facts);
    assert_eq!(
        said(&audit, "misspelt-parameters"),
        (
            State::Finding,
            "the kernel does not know `isolcpu=2-15` (`isolcpus` is the correct name), `rcu_nocb=2-15` (`rcu_nocbs` is the correct name): CPUs 2-15 were to be isolated"
                .to_owned()
        )
    );
    assert_eq!((audit.isolation.by, audit.isolation.isolated.to_string()), (By::Intended, "2-15".to_owned()));
}

#[test]
fn a_profile_of_tuned_that_waits_for_a_reboot_is_named_and_its_cpus_are_those_that_are_meant() {
    let mut facts = machine("intel-bare-tuned");
    facts.keep("/etc/tuned/realtime-virtual-host-variables.conf", "isolated_cores=4-15");
    facts.keep(
        CMDLINE,
        "BOOT_IMAGE=(hd0,gpt2)/vmlinuz root=/dev/mapper/rhel-root ro crashkernel=auto rhgb quiet",
    );
    facts.keep("/sys/devices/system/cpu/isolated", "");
    facts.keep("/sys/devices/system/cpu/nohz_full", "(null)");
    facts.keep("dmesg:rcu-offload", "");
    let audit = audited(&facts);
    assert_eq!(
        said(&audit, "boot-intent"),
        (
            State::Finding,
            "TuneD's profile realtime-virtual-host has isolated_cores=4-15, but the machine was not booted with the profile's \
             parameters: reboot"
                .to_owned()
        )
    );
    assert_eq!((audit.isolation.by, audit.isolation.isolated.to_string()), (By::Intended, "4-15".to_owned()));
    // Booted with another list than the profile's.
    let mut facts = told(&[]);
    facts.keep("/etc/tuned/realtime-virtual-host-variables.conf", "isolated_cores=4-15");
    let (state, message) = said(&audited(&facts), "boot-intent");
    assert!(state == State::Finding && message.starts_with("two places disagree: "), "{message}");
}

#[test]
fn nohz_full_on_a_kernel_without_it_is_asked_for_and_not_built_in() {
    let mut facts = told(&[]);
    facts.0.insert("/sys/devices/system/cpu/nohz_full".into(), Reading::Absent);
    facts.keep("config:CONFIG_NO_HZ_FULL", "n");
    let audit = audited(&facts);
    assert_eq!(
        said(&audit, "not-built-in"),
        (
            State::Finding,
            "on the command line, but not built into this kernel: nohz_full=2-15 without CONFIG_NO_HZ_FULL"
                .to_owned()
        )
    );
    assert_eq!(said(&audit, "nohz-full").0, State::Finding, "it is no matter of another machine");
}

#[test]
fn a_quota_of_the_session_is_seen_without_a_container() {
    let mut facts = told(&[]);
    let session = "/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope";
    facts.keep(format!("{session}/cpu.max"), "20000 100000");
    facts.keep(format!("{session}/cpu.stat"), "nr_periods 40\nnr_throttled 13\nthrottled_usec 307500");
    let (state, message) = said(&audited(&facts), "own-limits");
    assert_eq!(state, State::Finding);
    assert!(message.contains("throttled 13 times, 308 ms"), "{message}");
}
