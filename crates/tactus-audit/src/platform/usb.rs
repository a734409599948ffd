//! USB: interrupts, polling, and the firmware's emulation of old keyboards.

use tactus_model::facts::Reading;
use tactus_model::finding::{Role, Severity};

use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Subject, Verdict, no_change};

const ID: &str = "usb-off";
const BUS: &str = "list:/sys/bus/usb/devices";

pub static CHECKS: &[Check] = &[Check {
    id: ID,
    title: "USB controllers are on",
    sources: &[Source::Xeon],
    applies: &[Applies::Host, Applies::Guest],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Firmware, SetBy::Libvirt],
    reversible: Reversible::Reboot,
    hardware: false,
    reads: "/sys/bus/usb/devices, PCI devices of class 0x0c03, xhci, ehci and ohci in /proc/interrupts",
    expected: "no USB controller",
    why: "A controller interrupts and writes to memory even with nothing plugged in. The firmware may serve it by \
SMIs to emulate an old keyboard. In a guest an active emulated UHCI or EHCI controller runs a timer for each frame \
in QEMU's main thread.",
    fix: "Host: turn the controllers, or at least legacy USB support, off in the firmware's setup. Guest: \
<controller type='usb' model='none'/> in the libvirt domain, or QEMU with -nodefaults and no -usb.",
    risk: "Keyboard, mouse and serial adapters on USB stop working; keep another way to log in.",
    judge: usb,
    changes: no_change,
}];

fn usb(subject: &Subject<'_>) -> Verdict {
    // usb1, usb2: the root hubs, one or two for each controller that a driver serves.
    let hubs = match subject.facts.0.get(BUS) {
        Some(Reading::Text(names) | Reading::Cut(names)) => Some(
            names
                .split_ascii_whitespace()
                .filter(|name| name.strip_prefix("usb").is_some_and(|n| n.parse::<u32>().is_ok()))
                .count(),
        ),
        // The kernel has no USB.
        Some(Reading::Absent) => Some(0),
        Some(Reading::Unreadable(_)) | None => None,
    };
    let (mut served, mut idle, mut told) = (Vec::new(), Vec::new(), false);
    for (name, reading) in subject.facts.under("pci:") {
        let (Reading::Text(text) | Reading::Cut(text)) = reading else { continue };
        told = true;
        let mut words = text.split_ascii_whitespace();
        let (class, id, driver) =
            (words.next().unwrap_or("-"), words.next().unwrap_or("-"), words.next().unwrap_or("-"));
        // The last byte is the programming interface: UHCI, OHCI, EHCI, xHCI; 0xfe is a device, no controller.
        if !class.starts_with("0x0c03") || class == "0x0c03fe" {
            continue;
        }
        let device = format!("{} {id} {driver}", name.trim_start_matches("pci:"));
        match driver {
            // It is a guest's, and no firmware's.
            "vfio-pci" => {}
            "-" => idle.push(device),
            _ => served.push(device),
        }
    }
    let interrupts: Vec<String> = subject
        .interrupts
        .active()
        .filter_map(|interrupt| {
            let action = interrupt.actions.iter().find(|action| {
                ["xhci", "ehci", "ohci", "uhci", "dwc2", "dwc3"].iter().any(|name| action.starts_with(name))
            })?;
            let arrives =
                interrupt.arrives().map_or("unknown CPUs".to_owned(), |cpus| format!("CPUs {cpus}"));
            Some(format!("{} {action} on {arrives}", interrupt.irq))
        })
        .collect();
    let count = served.len().max(usize::from(hubs.unwrap_or(0) > 0)).max(usize::from(!interrupts.is_empty()));
    let judgement = if count > 0 {
        let s = if count == 1 { " is" } else { "s are" };
        Judgement::finding(format!("{count} USB controller{s} in use"))
    } else if !idle.is_empty() && subject.role == Role::Host {
        Judgement::finding(format!("no driver serves the USB controller {}: the firmware may", first(&idle)))
    } else if hubs == Some(0) && (told || subject.facts.0.contains_key(BUS)) {
        Judgement::ok("no USB controller is in use")
    } else {
        Judgement::unreadable("these facts do not include USB controllers")
    };
    let mut judgement = judgement;
    if let Some(hubs) = hubs {
        judgement = judgement.read("/sys/bus/usb/devices", format!("{hubs} root hubs"));
    }
    for device in served.iter().chain(&idle).take(4) {
        judgement = judgement.read("PCI device of class 0x0c03", device);
    }
    for interrupt in interrupts.iter().take(4) {
        judgement = judgement.read("/proc/interrupts", interrupt);
    }
    Ok(judgement)
}

fn first(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [one] => one.clone(),
        [one, more @ ..] => format!("{one} ({} more)", more.len()),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::testing::{HOSTILE, arm, guest, intel};

    const XHCI: (&str, &str) = ("pci:0000:00:14.0", "0x0c0330 8086:a36d xhci_hcd - 4");
    const NIC: (&str, &str) = ("pci:0000:01:00.0", "0x020000 8086:1572 i40e 0 9");

    #[test]
    fn a_machine_without_usb_is_good() {
        assert_eq!(intel(&[NIC, (BUS, "")]).state(ID), State::Ok);
        assert_eq!(guest(&[NIC]).absent(BUS).state(ID), State::Ok);
        let given = ("pci:0000:00:14.0", "0x0c0330 8086:a36d vfio-pci - 4");
        assert_eq!(intel(&[given, (BUS, "")]).state(ID), State::Ok);
    }

    #[test]
    fn a_controller_is_found_with_or_without_a_driver() {
        assert_eq!(intel(&[XHCI, (BUS, "1-0:1.0 1-1 usb1 usb2")]).said(ID), "1 USB controller is in use");
        assert_eq!(arm(&[(BUS, "1-0:1.0 usb1")]).state(ID), State::Finding);
        let orphan = ("pci:0000:00:14.0", "0x0c0330 8086:a36d - - 4");
        assert!(intel(&[orphan, (BUS, "")]).said(ID).contains("the firmware may"));
        assert_eq!(guest(&[orphan, (BUS, "")]).state(ID), State::Ok);
        let table = "           CPU0       CPU1\n 24:      5      0  PCI-MSI 327680-edge      xhci_hcd\n";
        assert_eq!(guest(&[("/proc/interrupts", table)]).state(ID), State::Finding);
    }

    #[test]
    fn what_was_not_read_is_not_good() {
        assert_eq!(intel(&[]).state(ID), State::Unreadable);
        assert_eq!(intel(&[NIC]).state(ID), State::Unreadable);
        assert_eq!(intel(&[]).role(Role::Container).state(ID), State::NotApplicable);
        for text in HOSTILE {
            let _ = intel(&[("pci:0000:00:14.0", text), (BUS, text)]).finding(ID);
        }
    }
}
