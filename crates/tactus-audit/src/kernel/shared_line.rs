//! Real-time work that waits for an interrupt line: shared with other devices, or passed through.

use tactus_model::finding::Severity;
use tactus_model::interrupts::Interrupt;

use super::interrupts::read;
use crate::sentence::{cpus_or_none, few, meet};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "irq-line-shared",
    title: "real-time work waits for a shared interrupt line",
    sources: &[
        Source::Industrial,
        Source::Kernel("Documentation/PCI/msi-howto.rst"),
        Source::Kernel("drivers/vfio/pci/vfio_pci_intrs.c"),
    ],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::Placement],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "/proc/interrupts; /proc/irq/*/effective_affinity_list",
    expected: "no line with several handlers on CPUs {isolated}, and no passed-through device with a line interrupt",
    why: "On a line (INTx) the kernel calls the handler of every device that shares it, and each handler asks its \
device over the bus. The latency of one device is the sum of all. While one device holds the line, the others wait. \
For a passed-through device the host masks the line at each interrupt until the guest unmasks it: two more exits. A \
message (MSI, MSI-X) is never shared and goes to one CPU.",
    fix: "Make the driver use MSI or MSI-X (do not boot with pci=nomsi; in a guest give the device vectors). Put the \
card into a slot with a separate line. Unbind drivers that share it and that you do not need.",
    risk: "Some old devices announce MSI and lose interrupts when they use it.",
    judge: lines,
    changes: no_change,
}];

/// Whether it is the line of a device that is passed through.
fn is_passed_through(interrupt: &Interrupt) -> bool {
    interrupt.actions.iter().any(|action| action.starts_with("vfio-intx"))
}

fn lines(subject: &Subject<'_>) -> Verdict {
    if !subject.interrupts.known {
        subject.need("/proc/interrupts")?;
    }
    let isolated = subject.isolated();
    let by_line = || subject.interrupts.active().filter(|interrupt| !interrupt.is_message());
    let here = |interrupt: &&Interrupt| interrupt.arrives().is_some_and(|cpus| meet(cpus, isolated));
    let several = || by_line().filter(|interrupt| interrupt.actions.len() > 1);
    let shared: Vec<&Interrupt> = several().filter(here).collect();
    let through: Vec<&Interrupt> = by_line().filter(|interrupt| is_passed_through(interrupt)).collect();
    let unplaced: Vec<&Interrupt> = several().filter(|interrupt| interrupt.arrives().is_none()).collect();
    if shared.is_empty() && through.is_empty() && !unplaced.is_empty() {
        let lines = few(unplaced.iter().map(name));
        return Err(Judgement::unreadable(format!(
            "drivers share a line, but where it arrives is unknown: {lines}"
        )));
    }
    let place = cpus_or_none(isolated);
    let mut said = Vec::new();
    if !shared.is_empty() {
        said.push(format!("drivers share a line that arrives on {place}: {}", few(shared.iter().map(name))));
    }
    if !through.is_empty() {
        said.push(format!("passed-through devices use a line: {}", few(through.iter().map(name))));
    }
    let good =
        format!("no line that drivers share arrives on {place}, and no passed-through device uses a line");
    let judgement = Judgement::when(said.is_empty(), good, said.join("; "));
    let shown: Vec<&Interrupt> =
        by_line().filter(|one| shared.contains(one) || through.contains(one)).collect();
    if shown.is_empty() {
        let lines = by_line().count();
        return Ok(judgement.read("/proc/interrupts", format!("{lines} in use without messages (MSI)")));
    }
    Ok(read(judgement, &shown))
}

/// `ehci_hcd:usb1 and ahci (interrupt 16)`.
fn name(interrupt: &&Interrupt) -> String {
    format!("{} (interrupt {})", interrupt.actions.join(" and "), interrupt.irq)
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::testing::{HOSTILE, System, guest, intel};

    const ID: &str = "irq-line-shared";
    const ROWS: &str = "            CPU0       CPU1       CPU2       CPU3
  9:          0          4          0          0  IO-APIC   9-fasteoi   acpi
 16:         12          0          0          0  IO-APIC  16-fasteoi   ehci_hcd:usb1, ahci[0000:00:1f.5]
 26:          1          0          0          0 PCI-MSIX-0000:00:03.0   0-edge      eth0-rx-0, eth0-tx-0
";

    fn at(cpus: &str) -> System {
        intel(&[("/proc/interrupts", ROWS), ("/proc/irq/16/effective_affinity_list", cpus)]).isolate("2-3")
    }

    #[test]
    fn a_shared_line_matters_where_real_time_work_is() {
        assert_eq!(at("0").state(ID), State::Ok);
        let found = at("2").finding(ID);
        assert_eq!(found.state, State::Finding);
        let said = "drivers share a line that arrives on CPUs 2,3: ehci_hcd:usb1 and ahci[0000:00:1f.5] (interrupt 16)";
        assert_eq!(found.message, said);
    }

    #[test]
    fn a_shared_line_that_may_arrive_anywhere_is_not_a_good_one() {
        assert_eq!(intel(&[("/proc/interrupts", ROWS)]).isolate("2-3").state(ID), State::Unreadable);
    }

    #[test]
    fn a_message_is_never_shared_whatever_its_handler_is_called() {
        assert_eq!(at("0").and("/proc/irq/26/effective_affinity_list", "2").state(ID), State::Ok);
    }

    #[test]
    fn a_device_that_is_passed_through_by_a_line_is_found_wherever_it_arrives() {
        let rows = format!("{ROWS} 18: 5 0 0 0 IO-APIC 18-fasteoi vfio-intx(0000:03:00.0)\n");
        let found = intel(&[("/proc/interrupts", &rows)]).isolate("2-3").finding(ID);
        assert_eq!(found.state, State::Finding);
        assert!(
            found.message.ends_with("use a line: vfio-intx(0000:03:00.0) (interrupt 18)"),
            "{}",
            found.message
        );
        let message = rows.replace("IO-APIC 18-fasteoi vfio-intx(", "PCI-MSI 18-edge vfio-msi[0](");
        let at_home = ("/proc/irq/16/effective_affinity_list", "0");
        assert_eq!(intel(&[("/proc/interrupts", &message), at_home]).isolate("2-3").state(ID), State::Ok);
    }

    #[test]
    fn interrupts_that_could_not_be_read_are_not_good_ones() {
        assert_eq!(guest(&[]).state(ID), State::Unreadable);
        for text in HOSTILE {
            guest(&[("/proc/interrupts", text)]).state(ID);
        }
    }
}
