//! The processor's support for virtual machines.

use tactus_model::change::{Change, Effect, Form, Target, flag};
use tactus_model::facts::Reading;
use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[
    Check {
        id: "virt-extensions",
        title: "the processor's virtualization cannot be used",
        sources: &[Source::Xeon, Source::Industrial],
        applies: &[Applies::Host],
        severity: Severity::Blocker,
        arch: Arch::X86,
        set: &[SetBy::Firmware],
        reversible: Reversible::Reboot,
        hardware: false,
        reads: "/dev/kvm, the flags vmx and svm of /proc/cpuinfo, MSR 0x3A (Intel) and 0xC0010114 (AMD)",
        expected: "vmx or svm, not forbidden by the firmware, and /dev/kvm",
        why: "Without it there is no KVM: guests are emulated, many times slower and without bounded timing. \
Firmware may lock it off (MSR 0x3A with bit 0 and without bit 2, VM_CR bit 4). The kernel then hides the flag.",
        fix: "Enable VT-x (Intel Virtualization Technology) or SVM in the firmware's setup, then load the module: \
modprobe kvm_intel or modprobe kvm_amd.",
        risk: "none",
        judge: extensions,
        changes: no_change,
    },
    Check {
        id: "virt-hw-assists",
        title: "KVM does work in software that the processor could do",
        sources: &[
            Source::Industrial,
            Source::Kernel("Documentation/admin-guide/kernel-parameters.txt"),
            Source::Kernel("arch/x86/kvm/svm/avic.c"),
            Source::Kernel("commit ca2967de5a5b"),
        ],
        applies: &[Applies::Host],
        severity: Severity::Major,
        arch: Arch::X86,
        set: &[SetBy::ModuleParameter],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "/sys/module/kvm_intel/parameters/{ept,enable_apicv}, /sys/module/kvm_amd/parameters/{npt,avic}; the flags of \
/proc/cpuinfo (npt, avic, x2avic), its cpu family and its line vmx flags (ept, apicv)",
        expected: "Y for each that the processor has; avic only with the flag x2avic, and without erratum 1235",
        why: "Without EPT or NPT every page fault of a guest and every write of its page tables exits; without APICv \
or AVIC every interrupt does.",
        fix: "Write to /etc/modprobe.d: options kvm_intel ept=1 enable_apicv=1, or options kvm_amd npt=1, with \
avic=1 if /proc/cpuinfo has the flag x2avic. Reload the module when no guest runs. The module keeps N if the \
processor lacks the feature.",
        risk: "avic=1 can hang guests on AMD family 17h before Linux 6.17, and on Hygon family 18h (erratum 1235). \
KVM turns AVIC off for guests with incompatible features: nested guests, and x2APIC if the flag x2avic is missing. \
Linux 6.18 turns AVIC on by default with x2avic, since Zen 4. Otherwise low.",
        judge: assists,
        changes: assist_changes,
    },
];

fn extensions(subject: &Subject<'_>) -> Verdict {
    let kvm = subject.kvm();
    let flag = match (subject.flag("vmx"), subject.flag("svm")) {
        (Some(true), _) => Some("vmx"),
        (_, Some(true)) => Some("svm"),
        (None, None) => {
            return Err(Judgement::unreadable("/proc/cpuinfo does not contain the processor's flags"));
        }
        _ => None,
    };
    let judgement = match (flag, kvm, forbidden(subject)) {
        (_, _, Some(register)) => {
            Judgement::finding(format!("the firmware forbids virtualization ({register})"))
        }
        // A virtual machine that is meant to run no guests: nested-host tells what it is.
        (None, ..) if subject.virtualized && subject.vms.is_empty() => {
            return Err(Judgement::not_applicable(
                "neither vmx nor svm: the hypervisor below offers this system no virtualization, and no guest runs \
here",
            ));
        }
        (None, ..) => Judgement::finding(
            "neither vmx nor svm: the processor has no virtualization, or the firmware turned it off",
        ),
        (Some(flag), Some(true), _) => {
            Judgement::ok(format!("the processor has {flag} and /dev/kvm is there"))
        }
        (Some(flag), Some(false), _) => Judgement::finding(format!(
            "the processor has {flag}, but there is no /dev/kvm: the module is not loaded"
        ))
        .fix("modprobe kvm_intel or modprobe kvm_amd; the kernel's log gives the reason if the module does not load."),
        (Some(flag), None, _) => {
            Judgement::unreadable(format!("the processor has {flag}; whether /dev/kvm is there was not read"))
        }
    };
    let judgement = judgement.read("/proc/cpuinfo, flags vmx and svm", flag.unwrap_or("neither"));
    Ok(match kvm {
        Some(there) => judgement.read("/dev/kvm", if there { "there" } else { "not there" }),
        None => judgement,
    })
}

/// The register with which the firmware forbids it. IA32_FEATURE_CONTROL: bit 0 locks it, bit 2 allows
/// VMX outside SMX. VM_CR: bit 4 turns SVM off.
fn forbidden(subject: &Subject<'_>) -> Option<String> {
    for (name, reading) in subject.facts.under("msr:") {
        let Reading::Text(text) = reading else { continue };
        let Some(value) = text.trim().strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok())
        else {
            continue;
        };
        let off = (name.ends_with(":0x3a") && value & 1 == 1 && value & 4 == 0)
            || (name.ends_with(":0xc0010114") && value & 0x10 != 0);
        if off {
            return Some(format!("{name} is {value:#x}"));
        }
    }
    None
}

const ASSISTS: [(&str, [&str; 2]); 2] =
    [("kvm_intel", ["ept", "enable_apicv"]), ("kvm_amd", ["npt", "avic"])];

fn path(module: &str, parameter: &str) -> String {
    format!("/sys/module/{module}/parameters/{parameter}")
}

/// Whether the processor is known not to have it. Intel's flags are on a separate line, since Linux 5.6.
fn lacks(subject: &Subject<'_>, parameter: &str) -> bool {
    let (line, name) = match parameter {
        "ept" => ("vmx flags", "ept"),
        "enable_apicv" => ("vmx flags", "apicv"),
        other => ("flags", other),
    };
    let flags = subject.facts.field("/proc/cpuinfo", line, ':').unwrap_or_default();
    !flags.is_empty() && !flags.split_ascii_whitespace().any(|flag| flag == name)
}

/// Whether AVIC can hang guests: with erratum 1235 a halted vCPU may miss the interrupt that wakes it. Since 6.17 KVM sends
/// these itself on family 17h, which it knows by the number alone: Hygon's copy of it, family 18h, is left out.
fn may_hang(subject: &Subject<'_>) -> bool {
    let family = subject.facts.field("/proc/cpuinfo", "cpu family", ':');
    match (subject.vendor.as_str(), family) {
        ("AuthenticAMD", Some("23")) => !subject.kernel.since(6, 17),
        ("HygonGenuine", Some("24")) => true,
        _ => false,
    }
}

/// How much it matters that a help is off; `None`: it had better stay off.
fn weight(subject: &Subject<'_>, parameter: &str) -> Option<Severity> {
    match parameter {
        "avic" if may_hang(subject) => None,
        "avic" if subject.flag("x2avic") == Some(true) => Some(Severity::Minor),
        // Then AVIC goes with guests alone that do not use the x2APIC.
        "avic" => Some(Severity::Info),
        _ => Some(Severity::Major),
    }
}

fn assists(subject: &Subject<'_>) -> Verdict {
    let (mut read, mut off, mut dark, mut damaged) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut lacking, mut left, mut worst) = (Vec::new(), Vec::new(), Severity::Info);
    for (module, parameters) in ASSISTS {
        for parameter in parameters {
            let path = path(module, parameter);
            match subject.facts.0.get(&path) {
                Some(Reading::Text(text) | Reading::Cut(text)) => {
                    match flag(text) {
                        Some(true) => {}
                        Some(false) if lacks(subject, parameter) => {
                            lacking.push(format!("{module}.{parameter}"));
                        }
                        Some(false) => match weight(subject, parameter) {
                            Some(severity) => {
                                worst = worst.max(severity);
                                off.push(format!("{module}.{parameter}"));
                            }
                            None => left.push(format!("{module}.{parameter}")),
                        },
                        None => damaged.push(format!("{module}.{parameter}")),
                    }
                    read.push((path, text.trim().to_owned()));
                }
                Some(Reading::Unreadable(reason)) => dark.push((path, reason.clone())),
                Some(Reading::Absent) | None => {}
            }
        }
    }
    let judgement = if !off.is_empty() {
        let judgement =
            Judgement::finding(format!("{} is off: KVM does its work in software", off.join(", ")));
        match worst {
            Severity::Info => judgement.at(worst).fix(
                "Leave it off, unless the guests run without x2APIC: then options kvm_amd avic=1 in /etc/modprobe.d.",
            ),
            _ => judgement.at(worst),
        }
    } else if let Some((path, reason)) = dark.first() {
        Judgement::unreadable(format!("{path} could not be read: {reason}"))
    } else if !damaged.is_empty() {
        Judgement::unreadable(format!("{} is neither on nor off", damaged.join(", ")))
    } else if read.is_empty() {
        return Err(Judgement::not_applicable("neither kvm_intel nor kvm_amd is loaded"));
    } else if !left.is_empty() {
        let left = left.join(", ");
        Judgement::ok(format!("{left} is off, and should stay off: it can hang guests here (erratum 1235)"))
    } else if !lacking.is_empty() {
        Judgement::ok(format!(
            "KVM uses the features that the processor has; it has none for {}",
            lacking.join(", ")
        ))
    } else {
        Judgement::ok("KVM uses the processor's page tables and interrupt controllers for guests")
    };
    Ok(read.into_iter().fold(judgement, |judgement, (path, value)| judgement.read(path, value)))
}

fn assist_changes(subject: &Subject<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (module, parameters) in ASSISTS {
        for parameter in parameters {
            let Some(text) = subject.facts.text(&path(module, parameter)) else { continue };
            let advised = weight(subject, parameter).is_some_and(|severity| severity > Severity::Info);
            if lacks(subject, parameter) || !advised {
                continue;
            }
            // Older modules have numbers here: a parameter that is on keeps its notation.
            let on = if matches!(Form::Flag.value(text).as_str(), "1" | "0") { "1" } else { "Y" };
            changes.push(Change {
                check: "virt-hw-assists".into(),
                target: Target::Module { module: module.into(), parameter: parameter.into() },
                now: Some(text.to_owned()),
                then: on.into(),
                effect: Effect::Restart,
            });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, amd, arm, intel};

    const KVM: (&str, &str) = ("device:kvm", "present");
    const EPT: &str = "/sys/module/kvm_intel/parameters/ept";
    const APICV: &str = "/sys/module/kvm_intel/parameters/enable_apicv";
    const NPT: &str = "/sys/module/kvm_amd/parameters/npt";
    const AVIC: &str = "/sys/module/kvm_amd/parameters/avic";

    #[test]
    fn a_processor_with_virtualization_and_its_device_are_good() {
        assert_eq!(intel(&[KVM, ("msr:0:0x3a", "0x5")]).state("virt-extensions"), State::Ok);
        assert_eq!(amd(&[KVM, ("msr:0:0xc0010114", "0x8")]).state("virt-extensions"), State::Ok);
        assert_eq!(arm(&[KVM]).state("virt-extensions"), State::NotApplicable);
    }

    #[test]
    fn virtualization_off_in_firmware_or_without_its_module_is_found() {
        for (system, said) in [
            (intel(&[KVM, ("msr:0:0x3a", "0x1")]), "msr:0:0x3a is 0x1"),
            (amd(&[KVM, ("msr:0:0xc0010114", "0x18")]), "msr:0:0xc0010114 is 0x18"),
            (intel(&[("device:kvm", "absent")]), "the module is not loaded"),
            (
                intel(&[KVM, ("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu\n")]),
                "neither vmx nor svm",
            ),
        ] {
            let finding = system.finding("virt-extensions");
            assert_eq!((finding.state, finding.severity), (State::Finding, Severity::Blocker));
            assert!(finding.message.contains(said), "{}", finding.message);
        }
    }

    #[test]
    fn what_was_not_read_is_not_good() {
        assert_eq!(intel(&[]).state("virt-extensions"), State::Unreadable);
        let dark = intel(&[KVM, ("/proc/cpuinfo", "vendor_id : GenuineIntel")]);
        assert_eq!(dark.state("virt-extensions"), State::Unreadable);
    }

    fn with_avic(vendor: &str, family: u32, flags: &str, release: &str) -> System {
        let info = format!("vendor_id : {vendor}\ncpu family : {family}\nflags : svm npt {flags}\n");
        let readings = [(AVIC, "N"), (NPT, "1"), ("/proc/cpuinfo", &info), ("uname:release", release)];
        amd(&readings)
    }

    #[test]
    fn avic_stays_off_where_it_can_hang_guests() {
        let id = "virt-hw-assists";
        for (system, hangs) in [
            (with_avic("AuthenticAMD", 23, "avic", "6.16.9"), true),
            (with_avic("AuthenticAMD", 23, "avic x2avic", "6.1.0"), true),
            (with_avic("AuthenticAMD", 23, "avic", ""), true),
            (with_avic("HygonGenuine", 24, "avic", "6.18.0"), true),
            (with_avic("AuthenticAMD", 23, "avic x2avic", "6.17.0"), false),
            (with_avic("AuthenticAMD", 25, "avic x2avic", "6.1.0"), false),
        ] {
            assert_eq!(system.state(id) == State::Ok, hangs, "{}", system.said(id));
            assert_eq!(system.said(id).contains("erratum 1235"), hangs, "{}", system.said(id));
            assert_eq!(system.wanted(id).is_empty(), hangs, "{}", system.said(id));
            let paged = system.and(NPT, "0");
            assert_eq!(paged.finding(id).severity, Severity::Major, "npt is wanted everywhere");
            assert!(paged.wanted(id).contains(&"module kvm_amd, npt = 1".to_owned()));
        }
    }

    #[test]
    fn avic_without_x2avic_is_told_and_not_changed() {
        let id = "virt-hw-assists";
        let half = with_avic("AuthenticAMD", 25, "avic", "6.12.0");
        assert_eq!((half.state(id), half.finding(id).severity), (State::Finding, Severity::Info));
        assert!(half.wanted(id).is_empty(), "{:?}", half.wanted(id));
    }

    #[test]
    fn each_help_of_the_processor_is_wanted() {
        assert_eq!(intel(&[(EPT, "Y"), (APICV, "Y")]).state("virt-hw-assists"), State::Ok);
        let bad = intel(&[(EPT, "Y"), (APICV, "N")]);
        assert_eq!(
            bad.said("virt-hw-assists"),
            "kvm_intel.enable_apicv is off: KVM does its work in software"
        );
        assert_eq!(bad.wanted("virt-hw-assists"), ["module kvm_intel, enable_apicv = Y"]);
        let off = (AVIC, "0");
        assert_eq!(amd(&[off]).state("virt-hw-assists"), State::Ok, "the processor has no AVIC");
        let new = amd(&[off, ("/proc/cpuinfo", "vendor_id : AuthenticAMD\nflags : svm npt avic x2avic\n")]);
        assert_eq!(new.wanted("virt-hw-assists"), ["module kvm_amd, avic = 1"]);
        assert_eq!(new.finding("virt-hw-assists").severity, Severity::Minor);
        let both = new.and(NPT, "0").finding("virt-hw-assists");
        assert_eq!(both.severity, Severity::Major);
        assert_eq!(intel(&[]).state("virt-hw-assists"), State::NotApplicable);
        let client = "vendor_id : GenuineIntel\nflags : vmx\nvmx flags : vnmi preemption_timer ept vpid\n";
        let client = intel(&[("/proc/cpuinfo", client), (EPT, "Y"), (APICV, "N")]);
        assert_eq!(
            client.said("virt-hw-assists"),
            "KVM uses the features that the processor has; it has none for kvm_intel.enable_apicv"
        );
        assert_eq!(client.wanted("virt-hw-assists"), Vec::<String>::new());
        assert_eq!(
            intel(&[(APICV, "Y")]).unreadable(EPT, "denied").state("virt-hw-assists"),
            State::Unreadable
        );
        for text in HOSTILE.iter().filter(|text| flag(text).is_none()) {
            assert_eq!(intel(&[(EPT, text)]).state("virt-hw-assists"), State::Unreadable, "{text}");
        }
    }
}
