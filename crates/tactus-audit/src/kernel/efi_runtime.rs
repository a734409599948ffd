//! Calls into the firmware while the system runs.

use tactus_model::change::{self, Form};
use tactus_model::finding::Severity;

use crate::sentence::{cpus_or_none, within};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict};

const EFI: &str = "list:/sys/firmware/efi";
const WORK: &str = "/sys/devices/virtual/workqueue/efi_runtime/cpumask";

pub static CHECKS: &[Check] = &[Check {
    id: "efi-runtime",
    title: "the kernel calls EFI firmware on any CPU",
    sources: &[
        Source::Kernel("Documentation/core-api/real-time/kernel-configuration.rst"),
        Source::Kernel("Documentation/core-api/real-time/hardware.rst"),
        Source::Kernel("drivers/firmware/efi/efi.c"),
        Source::Kernel("commit 0bd96853ba72"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::RunTime, SetBy::KernelCommandLine],
    reversible: Reversible::Yes,
    hardware: false,
    reads: "/sys/firmware/efi; efi= in /proc/cmdline; CONFIG_EFI_DISABLE_RUNTIME; \
/sys/devices/virtual/workqueue/efi_runtime/cpumask",
    expected: "runtime services off (a PREEMPT_RT kernel's default, or efi=noruntime), or their workqueue on {housekeeping}",
    why: "Reading or writing an EFI variable runs the firmware's code. During that time the CPU may take no \
interrupt: milliseconds, when it writes a flash. Some firmware stops all other CPUs as well; then only noruntime \
helps.",
    fix: "Write the mask {housekeeping_mask} to /sys/devices/virtual/workqueue/efi_runtime/cpumask where the kernel has it \
(kernels before 7.1 do not: commit 0bd96853ba72); or boot with efi=noruntime.",
    risk: "With noruntime the running system cannot change boot entries or update firmware (efibootmgr, fwupd).",
    judge: runtime,
    changes: |subject| {
        let Some((_, keeping)) = subject.parted() else { return Vec::new() };
        subject.set("efi-runtime", WORK, Form::Mask, change::to_mask(keeping)).into_iter().collect()
    },
}];

fn runtime(subject: &Subject<'_>) -> Verdict {
    let Ok(entries) = subject.value(EFI) else {
        return Err(Judgement::not_applicable("this system was not booted by EFI"));
    };
    let (_, keeping) = subject.need_parted()?;
    let told = subject.told()?;
    let says =
        |word: &str| told.all("efi").flatten().flat_map(|value| value.split(',')).any(|one| one == word);
    let off_by_build = match subject.facts.text("config:CONFIG_EFI_DISABLE_RUNTIME") {
        Some(value) => value == "y",
        None => subject.kernel.rt,
    };
    if says("noruntime") || (off_by_build && !says("runtime")) {
        return Ok(
            Judgement::ok("the kernel makes no calls to EFI firmware").read("/sys/firmware/efi", entries)
        );
    }
    let place = cpus_or_none(subject.isolated());
    if let Some(text) = subject.facts.text(WORK)
        && let Some(cpus) = change::mask(text)
    {
        let good = format!("calls to EFI firmware are made on {}", cpus_or_none(&cpus));
        let bad = format!("calls to EFI firmware may be made on {place}");
        return Ok(Judgement::when(within(&cpus, keeping), good, bad).read(WORK, text));
    }
    Ok(Judgement::finding(format!(
        "calls to EFI firmware may be made on {place}, and this kernel cannot restrict them with a mask"
    ))
    .fix("Boot with efi=noruntime, if the running system never changes boot entries or firmware.")
    .read("/sys/firmware/efi", entries))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, System, intel};

    fn efi(cmdline: &str) -> System {
        intel(&[(EFI, "efivars runtime"), ("/proc/cmdline", cmdline)])
    }

    #[test]
    fn firmware_is_called_nowhere_or_on_housekeeping_cpus() {
        let id = "efi-runtime";
        assert_eq!(efi("quiet").state(id), State::Finding);
        assert_eq!(efi("efi=noruntime").state(id), State::Ok);
        assert_eq!(efi("efi=debug,noruntime").state(id), State::Ok);
        let rt = |cmdline: &str| efi(cmdline).and("uname:version", "#1 SMP PREEMPT_RT").state(id);
        assert_eq!((rt("quiet"), rt("efi=runtime")), (State::Ok, State::Finding));
        assert_eq!(efi("quiet").and(WORK, "3").state(id), State::Ok);
        assert_eq!(efi("quiet").and(WORK, "f").wanted(id), [format!("{WORK} = 3")]);
        assert_eq!(intel(&[("/proc/cmdline", "")]).state(id), State::NotApplicable);
        assert_eq!(intel(&[(EFI, "efivars")]).state(id), State::Unreadable);
        for text in HOSTILE {
            efi(text).and(WORK, text).state(id);
        }
    }
}
