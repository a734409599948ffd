//! The memory of a guest, as its process has it: locked, in huge pages, taken at the start.

use tactus_model::finding::Severity;

use crate::vm::{Arguments, OfWhole as _, Parameter, Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

/// The smallest size of a huge page, in kB (32-bit Arm and x86; a page of PowerPC or Arm may have 64 kB).
const HUGE: u64 = 2048;
/// From this page size on, in kB, the TLB covers the whole guest: 1 GiB, or the 512 MiB of an Arm system with pages
/// of 64 KiB.
const GIANT: u64 = 512 * 1024;
const KSM: &str = "/sys/kernel/mm/ksm/run";

pub static CHECKS: &[Check] = &[
    Check {
        id: "mem-lock",
        title: "the memory of a guest may be swapped out",
        sources: &[Source::Xeon],
        applies: &[Applies::Hypervisor],
        severity: Severity::Blocker,
        arch: Arch::Any,
        set: &[SetBy::Libvirt, SetBy::Qemu],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "VmLck and HugetlbPages of /proc/PID/status; the page sizes of /proc/PID/smaps; -m of the command line",
        expected: "locked memory plus huge pages about equal to the guest's memory, and VmLck not 0. Huge pages are \
never swapped, and VmLck does not count them",
        why: "A page that the host swapped out comes back through a fault that reads the disk. That takes \
milliseconds, in a guest that believes it has its memory.",
        fix: "libvirt: <memoryBacking><locked/></memoryBacking> with <memtune><hard_limit> well above the guest's \
memory. QEMU: -overcommit mem-lock=on (with the limit of locked memory raised).",
        risk: "The host loses this memory. If hard_limit is too low, the guest is killed or does not start.",
        judge: |subject| each(subject, |vm| locked(subject, vm)),
        changes: no_change,
    },
    Check {
        id: "guest-hugepages",
        title: "the memory of a guest is in small pages",
        sources: &[Source::Qoriq],
        applies: &[Applies::Hypervisor],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "the memory of /proc/PID/smaps by KernelPageSize",
        expected: "the guest's memory in pages of 1048576 kB",
        why: "A guest's address is translated twice: up to 24 memory accesses when no TLB has it. In \
freescale-qoriq-2014 random reads took 648 ns in a guest and 125 ns on the host. Pages of 1 GiB need few TLB \
entries, and save one level of each translation.",
        fix: "Reserve pages at boot (hugepagesz=1G hugepages=N). libvirt: <memoryBacking><hugepages><page size='1' \
unit='G'/></hugepages></memoryBacking>. QEMU: -object memory-backend-file with mem-path of a hugetlbfs mounted with \
pagesize=1G.",
        risk: "The pages are reserved on the host even when no guest uses them. default_hugepagesz=1G leaves no pool \
of 2 MiB pages.",
        judge: |subject| each(subject, |vm| in_huge_pages(subject, vm)),
        changes: no_change,
    },
    Check {
        id: "mem-prealloc-nomerge",
        title: "the memory of a guest is allocated at first touch, or may be merged",
        sources: &[Source::Guide("libvirt, realtime"), Source::Guide("libvirt, domain XML")],
        applies: &[Applies::Hypervisor],
        severity: Severity::Major,
        arch: Arch::Any,
        set: &[SetBy::Libvirt],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "-object memory-backend-*, -machine, -mem-prealloc of QEMU's command line; /sys/kernel/mm/ksm/run",
        expected: "prealloc=on, and merge=off or mem-merge=off",
        why: "The first touch of a page costs the guest an exit, a fault and the clearing of the page. At 10 GB/s \
that is 0.2 ms for a page of 2 MiB, 0.1 s for one of 1 GiB. The next write to a page that KSM merged costs a copy.",
        fix: "libvirt: <memoryBacking><allocation mode='immediate'/><nosharepages/></memoryBacking>. QEMU: prealloc=on \
and merge=off of the memory backend, or -machine mem-merge=off.",
        risk: "The start of the guest takes as long as clearing its memory.",
        judge: |subject| each(subject, |vm| taken(subject, vm)),
        changes: no_change,
    },
];

/// `1234 kB`.
fn kilobytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB").unwrap_or(text).trim().parse().ok()
}

/// `4 kB: 10240, 1048576 kB: 4194304`: kB of memory by kB of page.
fn by_page(text: &str) -> Option<Vec<(u64, u64)>> {
    let pair = |part: &str| {
        let (page, memory) = part.split_once(':')?;
        Some((kilobytes(page.trim())?, kilobytes(memory.trim())?))
    };
    text.split(',').map(pair).collect()
}

fn in_pages_of(pages: &[(u64, u64)], least: u64) -> u64 {
    pages.iter().filter(|(page, _)| *page >= least).fold(0, |sum, (_, memory)| sum.saturating_add(*memory))
}

/// Nearly all: the rest of a guest's memory is that of its devices and of rounding.
fn nearly(part: u64, whole: u64) -> bool {
    part >= whole.saturating_sub(whole / 20)
}

/// The guest's memory in kB: as it was given, else what the process holds now.
fn memory(subject: &Subject<'_>, vm: &Vm) -> Result<(u64, &'static str), Judgement> {
    if let Some(bytes) = vm.memory() {
        return Ok((bytes / 1024, "it was assigned"));
    }
    // Pages of hugetlb are not in VmRSS.
    let text = vm.reading(subject, "VmRSS")?;
    let held = kilobytes(text).ok_or_else(|| Judgement::unreadable("its VmRSS is not a size"))?;
    Ok((held.saturating_add(hugetlb(subject, vm).unwrap_or(0)), "it holds now"))
}

/// kB in pages of hugetlb of whatever size, as `/proc/PID/status` counts them.
fn hugetlb(subject: &Subject<'_>, vm: &Vm) -> Option<u64> {
    kilobytes(vm.reading(subject, "HugetlbPages").ok()?)
}

fn locked(subject: &Subject<'_>, vm: &Vm) -> Verdict {
    let text = vm.reading(subject, "VmLck")?;
    let locked = kilobytes(text).ok_or_else(|| Judgement::unreadable("its VmLck is not a size"))?;
    let (whole, as_) = memory(subject, vm)?;
    let pages = vm.reading(subject, "hugepages");
    let huge = pages.as_ref().ok().and_then(|text| by_page(text)).map(|pages| in_pages_of(&pages, HUGE));
    let huge = huge.or_else(|| hugetlb(subject, vm));
    let safe = locked.saturating_add(huge.unwrap_or(0));
    let judgement = if nearly(safe, whole) && locked > 0 {
        Judgement::ok(format!(
            "{locked} kB locked and {} kB in huge pages, of {whole} kB that {as_}",
            huge.unwrap_or(0)
        ))
    } else if nearly(safe, whole) {
        Judgement::finding(
            "the guest's memory is in huge pages, which are never swapped, but QEMU's own memory is not locked",
        )
        .at(Severity::Major)
    } else if huge.is_none() && locked > 0 {
        Judgement::unreadable(format!(
            "{locked} kB of {whole} kB are locked; the size in huge pages could not be read"
        ))
    } else {
        Judgement::finding(format!(
            "{locked} kB are locked and {} kB in huge pages, of {whole} kB that {as_}",
            huge.map_or("an unknown number of".to_owned(), |huge| huge.to_string())
        ))
    };
    let judgement = judgement.read(format!("VmLck of process {}", vm.pid), text);
    Ok(match pages {
        Ok(text) => judgement.read(format!("page sizes of process {}", vm.pid), text),
        Err(_) => judgement,
    })
}

fn in_huge_pages(subject: &Subject<'_>, vm: &Vm) -> Verdict {
    let (whole, _) = memory(subject, vm)?;
    let text = match (vm.reading(subject, "hugepages"), hugetlb(subject, vm)) {
        (Ok(text), _) => text,
        // The sizes are not known, but that there are too few is.
        (Err(_), Some(huge)) if !nearly(huge, whole) => {
            return Ok(Judgement::finding(format!("only {huge} kB of {whole} kB are in huge pages"))
                .read(format!("HugetlbPages of process {}", vm.pid), format!("{huge} kB")));
        }
        (Err(judgement), _) => return Err(judgement),
    };
    let pages = by_page(text).ok_or_else(|| Judgement::unreadable("its page sizes are not valid"))?;
    let (giant, huge) = (in_pages_of(&pages, GIANT), in_pages_of(&pages, HUGE));
    let judgement = if whole == 0 {
        Judgement::unreadable("it holds no memory yet")
    } else if nearly(giant, whole) {
        Judgement::ok(format!("{giant} kB of {whole} kB are in pages of 512 MiB or more"))
    } else if nearly(huge, whole) {
        Judgement::finding(format!("{huge} kB of {whole} kB are in huge pages, but not in the largest"))
            .at(Severity::Minor)
    } else {
        Judgement::finding(format!("only {huge} kB of {whole} kB are in huge pages"))
    };
    Ok(judgement.read(format!("page sizes of process {}", vm.pid), text))
}

fn taken(subject: &Subject<'_>, vm: &Vm) -> Verdict {
    let arguments = vm.qemu()?;
    let backends: Vec<&Parameter> =
        arguments.all("object").filter(|object| object.kind.starts_with("memory-backend-")).collect();
    let all = |key: &str, wanted: bool| {
        !backends.is_empty() && backends.iter().all(|backend| backend.flag(key) == Some(wanted))
    };
    let early = arguments.has("mem-prealloc") || all("prealloc", true);
    let unmerged = all("merge", false) || arguments.last(&["machine", "M"], "mem-merge") == Some("off");
    let judgement = match (early, unmerged) {
        (true, true) => Judgement::ok("its memory is allocated at the start and never merged"),
        (false, _) => arguments.without(Judgement::finding(if unmerged {
            "its memory is allocated at first touch"
        } else {
            "its memory is allocated at first touch, and may be merged"
        })),
        (true, false) => arguments.without(merged(subject)),
    };
    Ok(shown(judgement, arguments, &backends))
}

fn merged(subject: &Subject<'_>) -> Judgement {
    let said = "its memory is allocated at the start, but QEMU offers it for merging";
    let judgement = Judgement::finding(said);
    match subject.facts.text(KSM) {
        Some(run @ "1") => judgement.read(KSM, run),
        // KSM is off now, but may be switched on later.
        Some(run) => judgement.at(Severity::Minor).read(KSM, run),
        None => judgement,
    }
}

fn shown(judgement: Judgement, arguments: &Arguments, backends: &[&Parameter]) -> Judgement {
    let or = |value: Option<&str>| value.unwrap_or("not given").to_owned();
    let judgement = judgement.read("-machine mem-merge", or(arguments.last(&["machine", "M"], "mem-merge")));
    backends.iter().take(4).fold(judgement, |judgement, backend| {
        let value = format!("prealloc {}, merge {}", or(backend.get("prealloc")), or(backend.get("merge")));
        judgement.read(format!("-object {},id={}", backend.kind, backend.name()), value)
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::vm::testing::{arguments, host};

    fn judged(id: &str, readings: &[(&str, &str)]) -> (State, Severity) {
        let finding = host().with(readings).finding(id);
        (finding.state, finding.severity)
    }

    #[test]
    fn memory_is_safe_when_it_is_locked_or_in_huge_pages() {
        let id = "mem-lock";
        assert_eq!(host().state(id), State::Ok, "{}", host().said(id));
        let (locked, pages) = ("vm:812:VmLck", "vm:812:hugepages");
        assert_eq!(judged(id, &[(locked, "4500000 kB"), (pages, "4 kB: 4400000")]).0, State::Ok);
        assert_eq!(judged(id, &[(locked, "0 kB")]), (State::Finding, Severity::Major));
        assert_eq!(
            judged(id, &[(locked, "0 kB"), (pages, "4 kB: 900000")]),
            (State::Finding, Severity::Blocker)
        );
        assert_eq!(judged(id, &[(locked, "310224 kB"), (pages, "rubbish")]).0, State::Unreadable);
        let hugetlb = ("vm:812:HugetlbPages", "4194304 kB");
        assert_eq!(host().without(pages).with(&[hugetlb]).state(id), State::Ok);
        assert_eq!(judged(id, &[(locked, "99999999999999999999999 kB")]).0, State::Unreadable);
        assert_eq!(host().without(locked).state(id), State::Unreadable);
        assert!(host().unreadable(locked, "no such process").said(id).contains("no such process"));
    }

    #[test]
    fn pages_are_judged_by_how_much_of_the_guest_they_hold() {
        let (id, pages) = ("guest-hugepages", "vm:812:hugepages");
        for (text, state, severity) in [
            ("4 kB: 90000, 1048576 kB: 4194304", State::Ok, Severity::Major),
            ("64 kB: 90000, 524288 kB: 4194304", State::Ok, Severity::Major),
            ("4 kB: 90000, 2048 kB: 4194304", State::Finding, Severity::Minor),
            ("4 kB: 4300000", State::Finding, Severity::Major),
            ("4 kB: 4300000, 1048576 kB: 1048576", State::Finding, Severity::Major),
            ("", State::Unreadable, Severity::Major),
            ("4 kB", State::Unreadable, Severity::Major),
        ] {
            assert_eq!(judged(id, &[(pages, text)]), (state, severity), "{text}");
        }
        let unread = host().unreadable(pages, "reading its map would take too long");
        assert_eq!(unread.state(id), State::Unreadable);
        assert_eq!(unread.clone().and("vm:812:HugetlbPages", "0 kB").state(id), State::Finding);
        assert_eq!(unread.and("vm:812:HugetlbPages", "4194304 kB").state(id), State::Unreadable);
    }

    #[test]
    fn memory_is_taken_at_the_start_and_not_merged() {
        let id = "mem-prealloc-nomerge";
        assert_eq!(host().state(id), State::Ok);
        assert_eq!(arguments(r#""prealloc":true,"#, "").finding(id).severity, Severity::Major);
        let merged = arguments("mem-merge=off,", "");
        assert_eq!((merged.state(id), merged.finding(id).severity), (State::Finding, Severity::Major));
        assert_eq!(merged.clone().and(KSM, "0").finding(id).severity, Severity::Minor);
        let plain = host().and(
            "vm:812:cmdline",
            "qemu-system-x86_64 -accel kvm -m 4G -mem-prealloc -machine mem-merge=off",
        );
        assert_eq!(plain.state(id), State::Ok);
        let long = format!("qemu-system-x86_64 -accel kvm -append {}", "x".repeat(20_000));
        assert_eq!(host().and("vm:812:cmdline", &long).state(id), State::Unreadable);
        assert_eq!(host().without("vm:812:cmdline").state(id), State::Unreadable);
    }
}
