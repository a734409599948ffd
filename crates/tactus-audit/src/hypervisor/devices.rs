//! Devices of a guest that cost it time without being asked for.

use tactus_model::finding::Severity;

use crate::vm::{Arguments, OfWhole as _, Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "no-extra-devices",
    title: "the guest has devices that real-time work does not need",
    sources: &[Source::Guide("libvirt, realtime")],
    applies: &[Applies::Hypervisor],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Libvirt],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "-device, -usb, -vga, -vnc, -spice, -nodefaults of QEMU's command line",
    expected: "-nodefaults, and no balloon, USB controller, random number generator, graphics or sound",
    why: "A USB controller has timers in QEMU and polling in the guest. A display is refreshed and scanned for \
changes. A balloon takes back pages that were already touched. Each costs exits and work in QEMU's main loop.",
    fix: "libvirt: <controller type='usb' model='none'/>, <memballoon model='none'/>, no <rng>, <graphics>, <video>, \
<sound>, <input>. QEMU: -nodefaults -display none and only the devices that you need.",
    risk: "No graphical console: use a serial one. Without the random number generator a guest may wait for entropy \
at its first boot.",
    judge: |subject| each(subject, extra),
    changes: no_change,
}];

/// The purpose of a device, if it is one of those.
fn class(kind: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if has(&["balloon"]) {
        Some("balloon")
    } else if has(&["usb", "xhci", "-ehci", "-ohci", "-uhci"]) {
        Some("USB")
    } else if has(&["virtio-rng", "user-rng"]) {
        Some("random numbers")
    } else if has(&["vga", "VGA", "qxl", "virtio-gpu", "user-gpu", "bochs-display", "ramfb"]) {
        Some("graphics")
    } else if has(&["AC97", "ES1370", "hda", "sb16", "adlib", "gus", "cs4231a", "virtio-sound"]) {
        Some("sound")
    } else {
        None
    }
}

fn extra(vm: &Vm) -> Verdict {
    let arguments = vm.qemu()?;
    let mut found: Vec<(&str, String)> = Vec::new();
    for device in arguments.devices() {
        if let Some(class) = class(&device.kind) {
            found.push((class, device.kind.clone()));
        }
    }
    for (class, option) in [("USB", "usb"), ("USB", "usbdevice"), ("graphics", "spice"), ("graphics", "vnc")]
    {
        if arguments.has(option) && arguments.kind(option) != Some("none") {
            found.push((class, format!("-{option}")));
        }
    }
    if arguments.kind("vga").is_some_and(|kind| kind != "none") {
        found.push(("graphics", "-vga".to_owned()));
    }
    if arguments.last(&["machine", "M"], "usb") == Some("on") {
        found.push(("USB", "-machine usb=on".to_owned()));
    }
    Ok(judge(arguments, found))
}

fn judge(arguments: &Arguments, mut found: Vec<(&str, String)>) -> Judgement {
    found.sort();
    found.dedup();
    let bare = arguments.has("nodefaults") || arguments.kind("machine").is_some_and(|kind| kind == "microvm");
    let mut classes: Vec<_> = found.iter().map(|(class, _)| *class).collect();
    classes.dedup();
    let judgement = match (classes.is_empty(), bare) {
        (true, true) => arguments.without(Judgement::ok("it has none of these devices")),
        (true, false) => arguments.without(Judgement::finding(
            "-nodefaults is missing: QEMU adds its default devices, including graphics and a network",
        )),
        (false, true) => Judgement::finding(format!("it has {}", classes.join(", "))),
        // Where the end is missing the option may be in it.
        (false, false) if arguments.cut => Judgement::finding(format!("it has {}", classes.join(", "))),
        (false, false) => Judgement::finding(format!(
            "it has {}, and without -nodefaults QEMU's default devices",
            classes.join(", ")
        )),
    };
    let judgement = judgement.read("-nodefaults", if bare { "given, or not needed" } else { "not given" });
    found.iter().take(8).fold(judgement, |judgement, (class, what)| judgement.read(*class, what))
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::vm::testing::{arguments, host};

    const ID: &str = "no-extra-devices";

    #[test]
    fn each_kind_of_needless_device_is_named() {
        assert_eq!(host().state(ID), State::Ok, "{}", host().said(ID));
        for (device, says) in [
            (r#"-device {"driver":"virtio-balloon-pci","id":"balloon0"}"#, "balloon"),
            ("-device qemu-xhci,id=usb", "USB"),
            ("-device piix3-usb-uhci", "USB"),
            ("-device ich9-usb-ehci1 -device usb-tablet", "USB"),
            ("-usb", "USB"),
            (r#"-device {"driver":"virtio-rng-pci"}"#, "random numbers"),
            ("-device VGA", "graphics"),
            ("-device qxl-vga -spice port=5900", "graphics"),
            ("-vga std", "graphics"),
            ("-vnc 127.0.0.1:0", "graphics"),
            ("-device intel-hda", "sound"),
        ] {
            let bad = arguments("-no-user-config", device);
            assert_eq!(
                (bad.state(ID), bad.said(ID)),
                (State::Finding, format!("rt (process 812): it has {says}"))
            );
        }
        for good in ["-vga none", "-vnc none", "-device virtio-net-pci", "-device pcie-root-port"] {
            assert_eq!(arguments("-no-user-config", good).state(ID), State::Ok, "{good}");
        }
    }

    #[test]
    fn the_defaults_of_qemu_count() {
        let defaults = arguments("-nodefaults ", "");
        assert!(defaults.state(ID) == State::Finding && defaults.said(ID).contains("-nodefaults is missing"));
        let small = host().and("vm:812:cmdline", "qemu-system-x86_64 -M microvm -machine microvm,accel=kvm");
        assert_eq!(small.state(ID), State::Ok);
        let cut = format!("qemu-system-x86_64 -nodefaults -append {}", "x".repeat(20_000));
        assert_eq!(host().and("vm:812:cmdline", &cut).state(ID), State::Unreadable);
        assert_eq!(host().without("vm:812:cmdline").state(ID), State::Unreadable);
    }
}
