//! How devices interrupt: by messages or by lines, and whether drivers share one.

use std::collections::BTreeSet;

use tactus_model::facts::Facts;
use tactus_model::finding::Severity;
use tactus_model::interrupts::Interrupt;

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[
    Check {
        id: "msi-only",
        title: "a PCI device uses a line interrupt instead of MSI",
        sources: &[Source::Industrial],
        applies: &[Applies::Host, Applies::Guest],
        severity: Severity::Minor,
        arch: Arch::Any,
        set: &[SetBy::Placement],
        reversible: Reversible::Restart,
        hardware: false,
        reads: "/proc/interrupts, pci:*",
        expected: "PCI-MSI or PCI-MSIX for each PCI device (ITS on Arm)",
        why: "A line (INTx) is shared, passes the I/O APIC, and is held until the driver has asked its device over \
the bus. Each interrupt costs register reads, in a guest exits. A message goes straight to one CPU, and can be \
posted into a guest.",
        fix: "Use a driver or a device with MSI; do not boot with pci=nomsi. Give the virtio devices of guests \
vectors (vectors=N), and avoid emulated devices without them.",
        risk: "Some old devices announce MSI and lose interrupts when they use it.",
        judge: lines,
        changes: no_change,
    },
    Check {
        id: "rt-isr-design",
        title: "drivers share an interrupt",
        sources: &[Source::Industrial],
        applies: &[Applies::Guest],
        severity: Severity::Info,
        arch: Arch::Any,
        set: &[SetBy::Application],
        reversible: Reversible::Nothing,
        hardware: false,
        reads: "/proc/interrupts",
        expected: "one handler per interrupt; the rest depends on the application",
        why: "Every handler of a shared interrupt runs and asks its device, whichever device raised it. Work that a \
handler defers to a thread adds the scheduler's latency.",
        fix: "Give the important device a separate interrupt (MSI). Do urgent work in the handler itself. Pin the \
handler's thread and the interrupt to the vCPU of the application.",
        risk: "Long handlers delay everything else on their CPU.",
        judge: shared,
        changes: no_change,
    },
];

/// Interrupts of the I/O APIC that are level triggered (`fasteoi`), which on a PC are those of PCI and the one of
/// ACPI. This is read from the kernel's rows, because the parsed interrupts do not keep it.
fn level_triggered(facts: &Facts) -> BTreeSet<u32> {
    let rows = facts.parts("interrupts").chain(facts.text("/proc/interrupts")).flat_map(str::lines);
    rows.filter(|row| row.contains("IO-APIC") && row.contains("fasteoi"))
        .filter_map(|row| row.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect()
}

/// Addresses and drivers of the PCI devices, as handlers are named after them.
struct Devices<'a> {
    addresses: BTreeSet<&'a str>,
    drivers: BTreeSet<String>,
}

fn devices(facts: &Facts) -> Devices<'_> {
    let (mut addresses, mut drivers) = (BTreeSet::new(), BTreeSet::new());
    for (name, _) in facts.under("pci:") {
        addresses.extend(name.strip_prefix("pci:"));
        let driver = facts.text(name).and_then(|text| text.split_whitespace().nth(2));
        drivers.extend(driver.filter(|driver| *driver != "-").map(plain));
    }
    Devices { addresses, drivers }
}

/// A driver's name with the one spelling that kernel and module agree upon.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

impl Devices<'_> {
    /// `ahci[0000:00:1f.2]`, `xhci-hcd:usb1`, `i801_smbus`.
    fn has(&self, action: &str) -> bool {
        let bracket = action.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']'));
        if bracket.is_some_and(|address| self.addresses.contains(address)) {
            return true;
        }
        let end =
            action.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(action.len());
        action.get(..end).is_some_and(|name| self.drivers.contains(&plain(name)))
    }
}

fn known(subject: &Subject<'_>) -> Result<(), Judgement> {
    if subject.interrupts.known {
        return Ok(());
    }
    Err(match subject.value("/proc/interrupts") {
        Err(judgement) if subject.facts.0.contains_key("/proc/interrupts") => judgement,
        _ => Judgement::unreadable("the facts do not include the interrupts"),
    })
}

fn lines(subject: &Subject<'_>) -> Verdict {
    known(subject)?;
    let level = level_triggered(subject.facts);
    let devices = devices(subject.facts);
    let by_line: Vec<&Interrupt> = subject
        .interrupts
        .active()
        .filter(|interrupt| !interrupt.is_message())
        .filter(|interrupt| {
            let acpi = interrupt.actions.iter().all(|action| action == "acpi");
            !acpi && level.contains(&interrupt.irq)
                || interrupt.actions.iter().any(|action| devices.has(action))
        })
        .collect();
    let messages = subject.interrupts.active().filter(|interrupt| interrupt.is_message()).count();
    if by_line.is_empty() && messages == 0 {
        return Err(Judgement::not_applicable("no PCI device interrupts"));
    }
    let judgement = Judgement::when(
        by_line.is_empty(),
        format!("all {messages} interrupts of PCI devices are messages (MSI)"),
        format!("{} by a line, not by a message (MSI)", named(&by_line)),
    );
    Ok(listed(judgement, &by_line))
}

fn shared(subject: &Subject<'_>) -> Verdict {
    known(subject)?;
    let mut several: Vec<&Interrupt> =
        subject.interrupts.active().filter(|interrupt| interrupt.actions.len() > 1).collect();
    if several.is_empty() {
        return Err(Judgement::unknowable(
            "no two drivers share an interrupt; the application's handlers cannot be seen from here",
        ));
    }
    let isolated = |interrupt: &Interrupt| {
        interrupt.arrives().is_some_and(|cpus| !cpus.and(subject.isolated()).is_empty())
    };
    several.sort_by_key(|interrupt| (!isolated(interrupt), interrupt.irq));
    let where_ =
        if several.iter().any(|interrupt| isolated(interrupt)) { ", also on isolated vCPUs" } else { "" };
    Ok(listed(Judgement::finding(format!("drivers share {}{where_}", numbers(&several))), &several))
}

fn named(interrupts: &[&Interrupt]) -> String {
    let names: Vec<_> = interrupts
        .iter()
        .take(4)
        .map(|interrupt| format!("{} (interrupt {})", interrupt.actions.join(" and "), interrupt.irq))
        .collect();
    let more = interrupts.len().saturating_sub(4);
    let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
    let verb = if interrupts.len() == 1 { "interrupts" } else { "interrupt" };
    format!("{}{more} {verb}", names.join(", "))
}

fn numbers(interrupts: &[&Interrupt]) -> String {
    let numbers: Vec<_> = interrupts.iter().take(4).map(|interrupt| interrupt.irq.to_string()).collect();
    let more = interrupts.len().saturating_sub(4);
    let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
    let s = if interrupts.len() == 1 { "" } else { "s" };
    format!("interrupt{s} {}{more}", numbers.join(", "))
}

fn listed(judgement: Judgement, interrupts: &[&Interrupt]) -> Judgement {
    interrupts.iter().take(8).fold(judgement, |judgement, interrupt| {
        let path = format!("/proc/interrupts, {}", interrupt.irq);
        judgement.read(path, format!("{} {}", interrupt.chip, interrupt.actions.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::{Role, State};
    use tactus_model::interrupts::compact;

    use crate::testing::{arm, guest, intel};

    const ROWS: &str = "/proc/interrupts";
    /// Rows of a PC, whose ACPI interrupt is level triggered and no PCI device's.
    const MESSAGES: &str = "           CPU0       CPU1
  1:          9          0   IO-APIC   1-edge      i8042
  9:          0          4   IO-APIC   9-fasteoi   acpi
 28:          7          0  PCI-MSIX-0000:00:01.0   0-edge      virtio0-config
 29:          7          0  PCI-MSI-0000:00:1f.2   0-edge      ahci[0000:00:1f.2]
";
    const LINES: &str = " 16:         12          0   IO-APIC  16-fasteoi   ehci_hcd:usb1, ahci[0000:00:1f.5]\n\
         17:          3          0   IO-APIC  17-fasteoi   snd_hda_intel\n";

    #[test]
    fn lines_of_pci_devices_are_found() {
        let id = "msi-only";
        assert_eq!(intel(&[(ROWS, MESSAGES)]).said(id), "all 2 interrupts of PCI devices are messages (MSI)");
        let bad = guest(&[(ROWS, &format!("{MESSAGES}{LINES}"))]);
        assert_eq!(
            (bad.state(id), bad.said(id).as_str()),
            (
                State::Finding,
                "ehci_hcd:usb1 and ahci[0000:00:1f.5] (interrupt 16), snd_hda_intel (interrupt 17) interrupt by a line, not by a message (MSI)"
            )
        );
        let mut large = intel(&[]);
        large.facts.keep_parts("interrupts", compact(&format!("{MESSAGES}{LINES}")));
        assert_eq!(large.said(id), bad.said(id));
    }

    #[test]
    fn elsewhere_a_line_is_known_by_the_driver_of_a_pci_device() {
        let id = "msi-only";
        let rows = " CPU0\n 11: 5 GICv3 27 Level arch_timer\n 40: 7 GICv3 36 Level xhci-hcd:usb1\n 41: 7 ITS-MSI 0 Edge nvme0q0\n";
        let board = arm(&[(ROWS, rows)]);
        assert_eq!(board.state(id), State::Ok);
        let with = board.and("pci:0000:01:00.0", "0x0c0330 1912:0014 xhci_hcd 0 -");
        assert_eq!(
            (with.state(id), with.said(id).as_str()),
            (State::Finding, "xhci-hcd:usb1 (interrupt 40) interrupts by a line, not by a message (MSI)")
        );
        assert_eq!(
            arm(&[(ROWS, " CPU0\n 11: 5 GICv3 27 Level arch_timer\n")]).state(id),
            State::NotApplicable
        );
    }

    #[test]
    fn shared_interrupts_are_told_and_the_rest_is_not_known() {
        let id = "rt-isr-design";
        assert_eq!(guest(&[(ROWS, MESSAGES)]).state(id), State::Unknowable);
        let both = guest(&[(ROWS, &format!("{MESSAGES}{LINES}")), ("/proc/irq/16/smp_affinity_list", "0-3")]);
        assert_eq!(
            (both.state(id), both.said(id).as_str()),
            (State::Finding, "drivers share interrupt 16, also on isolated vCPUs")
        );
        assert_eq!(intel(&[(ROWS, LINES)]).state(id), State::NotApplicable);
    }

    #[test]
    fn interrupts_that_could_not_be_read_are_not_good_ones() {
        for id in ["msi-only", "rt-isr-design"] {
            assert_eq!(guest(&[]).state(id), State::Unreadable);
            assert_eq!(guest(&[]).unreadable(ROWS, "denied").state(id), State::Unreadable);
            assert_ne!(intel(&[(ROWS, "rubbish: ::")]).role(Role::Guest).state(id), State::Ok);
        }
    }
}
