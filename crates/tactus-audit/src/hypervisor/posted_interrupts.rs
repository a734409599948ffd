//! Whether interrupts reach a running guest without an exit.

use tactus_model::finding::Severity;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "posted-interrupts-absent",
    title: "the processor cannot deliver interrupts to a running guest",
    sources: &[
        Source::Industrial,
        Source::Kernel("arch/x86/kvm/vmx/posted_intr.c"),
        Source::Kernel("arch/x86/kernel/cpu/feat_ctl.c"),
    ],
    applies: &[Applies::Host],
    severity: Severity::Minor,
    arch: Arch::X86,
    set: &[SetBy::Placement],
    reversible: Reversible::Nothing,
    hardware: true,
    reads: "vmx flags of /proc/cpuinfo (apicv, posted_intr); the flag avic of an AMD processor",
    expected: "apicv and posted_intr, or avic",
    why: "Without them every interrupt for a guest stops it, and so does the end of its handling: one exit of a \
microsecond or more each. That includes interrupts of passed-through devices and of other vCPUs. Intel server \
processors have them since 2013, few client and embedded ones do.",
    fix: "Another processor. On this one reduce the guest's interrupts: few vCPUs, devices that are polled, no \
timers except those of the work itself.",
    risk: "None.",
    judge: posted,
    changes: no_change,
}];

fn posted(subject: &Subject<'_>) -> Verdict {
    if subject.kvm() == Some(false) {
        return Err(Judgement::not_applicable("KVM does not run here: there is no /dev/kvm"));
    }
    let (line, wanted): (&str, &[&str]) = match subject.is(Arch::Intel) {
        true => ("vmx flags", &["apicv", "posted_intr"]),
        false => ("flags", &["avic"]),
    };
    let flags = subject.facts.field("/proc/cpuinfo", line, ':').unwrap_or_default();
    if flags.is_empty() {
        return Err(Judgement::unreadable(format!(
            "/proc/cpuinfo has no line `{line}`: the kernel is older than 5.6"
        )));
    }
    let missing: Vec<&str> = wanted
        .iter()
        .copied()
        .filter(|name| !flags.split_ascii_whitespace().any(|flag| flag == *name))
        .collect();
    let bad = format!("the processor has no {}: each interrupt of a guest is an exit", missing.join(", "));
    Ok(Judgement::when(missing.is_empty(), "the processor delivers interrupts to running guests", bad).read(
        format!("/proc/cpuinfo, {line}"),
        if missing.is_empty() { wanted.join(" ") } else { "not there".to_owned() },
    ))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{System, amd, intel};

    fn with(flags: &str) -> System {
        let cpuinfo = format!("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vmx\n{flags}\n");
        intel(&[("/proc/cpuinfo", &cpuinfo), ("device:kvm", "present")])
    }

    #[test]
    fn interrupts_are_posted_where_the_processor_can() {
        let id = "posted-interrupts-absent";
        assert_eq!(with("vmx flags\t: vnmi posted_intr apicv").state(id), State::Ok);
        assert!(with("vmx flags\t: vnmi apicv").said(id).starts_with("the processor has no posted_intr"));
        assert_eq!(with("").state(id), State::Unreadable);
        assert_eq!(with("").and("device:kvm", "absent").state(id), State::NotApplicable);
        assert_eq!(amd(&[("device:kvm", "present")]).state(id), State::Finding, "no avic");
    }
}
