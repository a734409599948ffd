//! The way that network packets and disk blocks take between a guest and the world.

use std::fmt;

use tactus_model::finding::Severity;

use crate::vm::{Arguments, OfWhole as _, Parameter, Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "io-path",
    title: "QEMU emulates devices of the guest",
    sources: &[Source::Qoriq, Source::Industrial],
    applies: &[Applies::Hypervisor],
    severity: Severity::Major,
    arch: Arch::Any,
    set: &[SetBy::Libvirt],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "-device, -netdev, -nic, -drive of QEMU's command line",
    expected: "the device itself (vfio-pci), or virtio served by the kernel (vhost) or another process (vhost-user); \
virtio disks in an IO thread",
    why: "The cost of a packet falls in this order: emulated, virtio, vhost, dedicated device. Each register access \
of an emulated device exits to QEMU. With virtio the guest exits once per batch, vhost bypasses QEMU, and a \
dedicated device bypasses the host. In freescale-qoriq-2014 a guest with vhost sent 1.57 Gb/s for 3.47 GHz of CPU. \
With a dedicated device it sent 2.15 Gb/s for 2.31 GHz.",
    fix: "libvirt: <hostdev> for a dedicated device or virtual function. Otherwise <interface><model \
type='virtio'/><driver name='vhost' queues='N'/>, and <disk><target bus='virtio'/><driver iothread='1'/>.",
    risk: "A guest with a dedicated device cannot be migrated.",
    judge: |subject| each(subject, paths),
    changes: no_change,
}];

/// How a device is served, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Emulated,
    Virtio,
    MainLoop,
    Slow,
    IoThread,
    Vhost,
    Own,
}

impl Way {
    fn severity(self) -> Option<Severity> {
        match self {
            Self::Emulated | Self::Virtio => Some(Severity::Major),
            Self::MainLoop | Self::Slow => Some(Severity::Minor),
            Self::IoThread | Self::Vhost | Self::Own => None,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emulated => "emulated by QEMU",
            Self::Virtio => "virtio served by QEMU, without vhost",
            Self::MainLoop => "virtio served by QEMU's main loop, without an IO thread",
            Self::Slow => "an emulated optical drive",
            Self::IoThread => "virtio in an IO thread",
            Self::Vhost => "vhost",
            Self::Own => "dedicated to the guest (VFIO)",
        })
    }
}

const EMULATED_NETWORK: &[&str] =
    &["e1000", "rtl8139", "pcnet", "ne2k", "i825", "i82801", "tulip", "vmxnet3", "usb-net", "igb", "sungem"];
const EMULATED_DISK: &[&str] =
    &["ide-hd", "scsi-hd", "nvme", "sd-card", "usb-storage", "usb-uas", "usb-bot", "nvme-ns"];

fn paths(vm: &Vm) -> Verdict {
    let arguments = vm.qemu()?;
    let mut found: Vec<(Way, String)> = arguments
        .devices()
        .filter_map(|device| Some((way(arguments, device)?, device.name().to_owned())))
        .chain(arguments.all("nic").filter_map(nic))
        .chain(arguments.all("drive").filter_map(drive))
        .collect();
    for option in ["hda", "hdb", "hdc", "hdd"] {
        if arguments.has(option) {
            found.push((Way::Emulated, format!("-{option}")));
        }
    }
    found.sort();
    let Some((worst, _)) = found.first() else {
        return Err(arguments.without(Judgement::not_applicable("it has neither network nor disk")));
    };
    let judgement = match worst.severity() {
        None => arguments.without(Judgement::ok(said(&found))),
        Some(Severity::Major) => Judgement::finding(said(&found)),
        Some(severity) => Judgement::finding(said(&found)).at(severity),
    };
    Ok(found.iter().take(8).fold(judgement, |judgement, (way, name)| judgement.read(name, way.to_string())))
}

/// The worst, by way; the rest only where nothing is wrong.
fn said(found: &[(Way, String)]) -> String {
    let bad = found.iter().any(|(way, _)| way.severity().is_some());
    let mut sentences: Vec<String> = Vec::new();
    let shown: Vec<_> = found.iter().filter(|(way, _)| !bad || way.severity().is_some()).collect();
    for same in shown.chunk_by(|(one, _), (other, _)| one == other) {
        let names: Vec<_> = same.iter().take(3).map(|(_, name)| name.as_str()).collect();
        let more = same.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
        if let Some((way, _)) = same.first() {
            let is = if same.len() == 1 { "is" } else { "are" };
            sentences.push(format!("{}{more} {is} {way}", names.join(", ")));
        }
    }
    sentences.join(", ")
}

fn way(arguments: &Arguments, device: &Parameter) -> Option<Way> {
    let kind = device.kind.as_str();
    let starts = |names: &[&str]| names.iter().any(|name| kind.starts_with(name));
    let queue = |iothread: Way| {
        let own = device.get("iothread").is_some() || device.get("iothread-vq-mapping.0.iothread").is_some();
        if own { iothread } else { Way::MainLoop }
    };
    if starts(&["vfio-pci", "vfio-ccw", "vfio-ap"]) {
        Some(Way::Own)
    } else if starts(&["vhost-user-blk", "vhost-user-scsi", "vhost-scsi", "vhost-vdpa", "vhost-user-fs"]) {
        Some(Way::Vhost)
    } else if starts(&["virtio-net"]) {
        Some(network(arguments, device.get("netdev")))
    } else if starts(&["virtio-blk", "virtio-scsi"]) {
        Some(queue(Way::IoThread))
    } else if starts(&["ide-cd", "scsi-cd", "floppy"]) {
        Some(Way::Slow)
    } else if starts(EMULATED_NETWORK) {
        Some(Way::Emulated)
    } else if starts(EMULATED_DISK) {
        // A SCSI disk is only as slow as its controller: behind virtio-scsi that is judged itself.
        let virtio = kind == "scsi-hd" && arguments.devices().any(|d| d.kind.starts_with("virtio-scsi"));
        (!virtio).then_some(Way::Emulated)
    } else {
        None
    }
}

fn network(arguments: &Arguments, id: Option<&str>) -> Way {
    let backend = arguments.all("netdev").find(|backend| id.is_some() && backend.get("id") == id);
    backend.map_or(Way::Virtio, vhost)
}

fn vhost(backend: &Parameter) -> Way {
    let outside = matches!(backend.kind.as_str(), "vhost-user" | "vhost-vdpa");
    // `vhostforce` and the file descriptors of vhost imply it.
    let kernel = backend.flag("vhost") == Some(true)
        || backend.flag("vhost").is_none()
            && (backend.get("vhostfd").is_some() || backend.get("vhostfds").is_some());
    if outside || kernel { Way::Vhost } else { Way::Virtio }
}

/// `-nic tap,model=virtio-net-pci,vhost=on`: network and device in one.
fn nic(option: &Parameter) -> Option<(Way, String)> {
    if option.kind == "none" {
        return None;
    }
    let model = option.get("model").unwrap_or("QEMU's default network card");
    let way = if model.starts_with("virtio") { vhost(option) } else { Way::Emulated };
    Some((way, format!("-nic {model}")))
}

/// `-drive` that also makes a device: all but `if=none` and firmware.
fn drive(option: &Parameter) -> Option<(Way, String)> {
    let name = option.get("id").unwrap_or("-drive").to_owned();
    match option.get("if") {
        Some("none" | "pflash") => None,
        Some("virtio") => Some((Way::MainLoop, name)),
        _ if option.get("media") == Some("cdrom") => Some((Way::Slow, name)),
        // The default depends on the machine: IDE on a PC, virtio on Arm's virt.
        Some(_) => Some((Way::Emulated, name)),
        None => Some((Way::MainLoop, name)),
    }
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use super::*;
    use crate::vm::testing::{arguments, host};

    fn of(rest: &str) -> (State, Severity, String) {
        let line = format!("qemu-system-x86_64 -accel kvm -nodefaults {rest}");
        let finding = host().and("vm:812:cmdline", &line).finding("io-path");
        (finding.state, finding.severity, finding.message)
    }

    #[test]
    fn ways_are_told_apart() {
        let id = "io-path";
        assert_eq!(host().state(id), State::Ok);
        assert_eq!(
            host().said(id),
            "rt (process 812): virtio-disk0 is virtio in an IO thread, net0 is vhost, hostdev0 is dedicated to the guest (VFIO)"
        );
        let slow = arguments(r#""vhost":true,"vhostfd":"31","#, "");
        assert_eq!(slow.said(id), "rt (process 812): net0 is virtio served by QEMU, without vhost");
        assert_eq!(arguments(r#""iothread":"iothread1","#, "").finding(id).severity, Severity::Minor);
        let (bad, ok) = ((State::Finding, Severity::Major), (State::Ok, Severity::Major));
        for (rest, expected) in [
            ("-netdev user,id=n -device e1000,netdev=n", bad),
            ("-netdev user,id=n -device virtio-net-pci,netdev=n", bad),
            ("-netdev tap,id=n,vhost=on -device virtio-net-pci,netdev=n", ok),
            ("-netdev tap,id=n,vhost=off,vhostfd=3 -device virtio-net-pci,netdev=n", bad),
            ("-netdev vhost-user,id=n,chardev=c -device virtio-net-pci,netdev=n", ok),
            ("-device virtio-net-pci,netdev=gone", bad),
            ("-nic tap,model=virtio-net-pci,vhost=on", ok),
            ("-nic user", bad),
            ("-drive file=/a.raw,if=none,id=d -device ide-hd,drive=d", bad),
            ("-drive file=/a.raw,if=ide", bad),
            ("-drive file=/a.raw,if=virtio", (State::Finding, Severity::Minor)),
            ("-device ide-cd,drive=d", (State::Finding, Severity::Minor)),
            ("-device virtio-scsi-pci,iothread=io -device scsi-hd,drive=d", ok),
            ("-device lsi53c895a -device scsi-hd,drive=d", bad),
            ("-hda /a.img", bad),
            ("-device vfio-pci,host=3b:00.0", ok),
            ("-nic none", (State::NotApplicable, Severity::Major)),
        ] {
            let (state, severity, said) = of(rest);
            assert_eq!((state, severity), expected, "{rest}: {said}");
        }
    }

    #[test]
    fn many_devices_are_shortened_and_cut_lines_prove_nothing() {
        let many: String = (0..9).map(|n| format!("-device e1000,id=n{n} ")).collect();
        assert_eq!(of(&many).2, "qemu-system-x86 (process 812): n0, n1, n2 (6 more) are emulated by QEMU");
        let cut = format!("-device vfio-pci,host=3b:00.0 -append {}", "x".repeat(20_000));
        assert_eq!(of(&cut).0, State::Unreadable);
        assert_eq!(of(&format!("-append {}", "x".repeat(20_000))).0, State::Unreadable);
        assert_eq!(host().without("vm:812:cmdline").state("io-path"), State::Unreadable);
    }
}
