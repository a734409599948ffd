//! Where the blocks of a guest's disks are kept.

use tactus_model::finding::Severity;

use crate::vm::{Arguments, OfWhole as _, Parameter, Vm, each};
use crate::{Applies, Arch, Check, Judgement, Reversible, SetBy, Source, Verdict, no_change};

pub static CHECKS: &[Check] = &[Check {
    id: "disk-image",
    title: "a disk of the guest grows, is cached twice, or is on the network",
    sources: &[Source::Xeon],
    applies: &[Applies::Hypervisor],
    severity: Severity::Minor,
    arch: Arch::Any,
    set: &[SetBy::Libvirt],
    reversible: Reversible::Restart,
    hardware: false,
    reads: "-drive and -blockdev of QEMU's command line",
    expected: "raw images on this host, preallocated, with cache=none (cache.direct=on)",
    why: "A growing image writes twice: once in the guest's file system and once in the image's tables. An image \
behind the host's page cache waits for the host's write-back. A network image waits for the network.",
    fix: "qemu-img convert -O raw -S 0 (or -o preallocation=falloc), and in libvirt <driver name='qemu' type='raw' \
cache='none' io='native'/>. A logical volume is better.",
    risk: "No snapshots inside the image; the full size is allocated at once.",
    judge: |subject| each(subject, disks),
    changes: no_change,
}];

/// Formats that store more than blocks.
const FORMATS: &[&str] =
    &["qcow2", "qcow", "qed", "vmdk", "vdi", "vhdx", "vpc", "parallels", "luks", "dmg", "cloop"];
/// Protocols that leave the host.
const REMOTE: &[&str] =
    &["nbd", "rbd", "iscsi", "nfs", "gluster", "ssh", "http", "https", "ftp", "ftps", "sheepdog"];

/// What is wrong with a disk, and whether anything is.
#[derive(Default)]
struct Disk<'a> {
    name: &'a str,
    faults: Vec<String>,
    file: bool,
}

fn disks(vm: &Vm) -> Verdict {
    let arguments = vm.qemu()?;
    let disks: Vec<Disk<'_>> = arguments
        .all("blockdev")
        .filter_map(|node| blockdev(arguments, node))
        .chain(arguments.all("drive").filter_map(drive))
        .collect();
    if disks.is_empty() {
        return Err(arguments.without(Judgement::not_applicable("it has no disk")));
    }
    let bad: Vec<String> = disks
        .iter()
        .filter(|disk| !disk.faults.is_empty())
        .map(|disk| format!("{} {}", disk.name, disk.faults.join(", ")))
        .collect();
    let judgement = if bad.is_empty() {
        // Whether a file has all its blocks is not on the command line.
        let file = disks.iter().any(|disk| disk.file);
        let rest = if file {
            "; whether all blocks of the files are allocated cannot be seen from here"
        } else {
            ""
        };
        arguments
            .without(Judgement::ok(format!("its disks are raw, on this host and not cached by it{rest}")))
    } else {
        let shown = bad.iter().take(4).cloned().collect::<Vec<_>>().join("; ");
        let more = bad.len().saturating_sub(4);
        Judgement::finding(if more > 0 { format!("{shown} ({more} more)") } else { shown })
    };
    Ok(disks.iter().take(8).fold(judgement, |judgement, disk| {
        let value = if disk.faults.is_empty() { "as expected".to_owned() } else { disk.faults.join(", ") };
        judgement.read(format!("disk {}", disk.name), value)
    }))
}

/// A node of `-blockdev`; the two of a disk, format and protocol, are judged each for itself.
fn blockdev<'a>(arguments: &'a Arguments, node: &'a Parameter) -> Option<Disk<'a>> {
    let name = node.get("node-name").unwrap_or(&node.kind);
    let firmware = name.contains("pflash")
        || ["pflash0", "pflash1"].iter().any(|key| arguments.last(&["machine", "M"], key) == Some(name));
    // A read-only disk (a disc, or the image below a snapshot) is not written twice.
    if firmware || node.flag("read-only") == Some(true) {
        return None;
    }
    let mut disk = Disk { name, ..Disk::default() };
    for driver in [Some(node.kind.as_str()), node.get("file.driver")].into_iter().flatten() {
        judge_driver(driver, &mut disk);
    }
    let protocol = matches!(node.kind.as_str(), "file" | "host_device") || node.get("file.driver").is_some();
    let direct = node.flag("cache.direct").or_else(|| node.flag("file.cache.direct"));
    if protocol && direct != Some(true) {
        disk.faults.push("is cached by the host".to_owned());
    }
    Some(disk)
}

fn drive(option: &Parameter) -> Option<Disk<'_>> {
    let read = option.flag("readonly") == Some(true) || option.flag("read-only") == Some(true);
    if option.get("if") == Some("pflash") || option.get("media") == Some("cdrom") || read {
        return None;
    }
    // Of its name there is only where it lies.
    let file = option.get("file")?;
    let mut disk = Disk { name: option.get("id").unwrap_or("-drive"), ..Disk::default() };
    match option.get("format").or_else(|| option.get("driver")) {
        Some(driver) => judge_driver(driver, &mut disk),
        None => disk.faults.push("has no format set: QEMU guesses it".to_owned()),
    }
    // `rbd:pool/image`, `nbd://host`: a protocol before the colon; a path begins with a slash.
    let protocol = file.split(':').next().filter(|_| file.contains(':') && !file.starts_with('/'));
    protocol.into_iter().for_each(|protocol| judge_driver(protocol, &mut disk));
    disk.file |= protocol.is_none() && !file.starts_with("/dev/");
    let direct = match option.get("cache") {
        Some(cache) => matches!(cache, "none" | "directsync"),
        None => option.flag("cache.direct") == Some(true),
    };
    if protocol.is_none() && !direct {
        disk.faults.push("is cached by the host".to_owned());
    }
    Some(disk)
}

fn judge_driver(driver: &str, disk: &mut Disk<'_>) {
    if FORMATS.contains(&driver) {
        disk.faults.push(format!("is {driver}"));
    }
    if REMOTE.contains(&driver) {
        disk.faults.push(format!("is on the network ({driver})"));
    }
    disk.file |= driver == "file";
}

#[cfg(test)]
mod tests {
    use tactus_model::finding::State;

    use crate::vm::testing::{arguments, host};

    const ID: &str = "disk-image";

    fn of(rest: &str) -> (State, String) {
        let line = format!("qemu-system-x86_64 -name vm -accel kvm {rest}");
        let finding = host().and("vm:812:cmdline", &line).finding(ID);
        (finding.state, finding.message)
    }

    #[test]
    fn disks_are_raw_here_and_not_cached() {
        assert_eq!(host().state(ID), State::Ok, "{}", host().said(ID));
        let cached = arguments(
            r#""cache":{"direct":true,"no-flush":false},"auto-read-only":true"#,
            r#""auto-read-only":true"#,
        );
        assert_eq!(cached.said(ID), "rt (process 812): libvirt-1-storage is cached by the host");
        let grows = arguments(r#""driver":"raw""#, r#""driver":"qcow2""#);
        assert_eq!(grows.said(ID), "rt (process 812): libvirt-1-format is qcow2");
        for (rest, state) in [
            ("-drive file=/a.raw,format=raw,cache=none,aio=native", State::Ok),
            ("-drive file=/dev/vg/a,format=raw,cache=directsync", State::Ok),
            ("-drive file=/a.raw,format=raw", State::Finding),
            ("-drive file=/a.raw,cache=none", State::Finding),
            ("-drive file=/a.qcow2,format=qcow2,cache=none", State::Finding),
            ("-drive file=rbd:pool/a,format=raw,cache=none", State::Finding),
            ("-blockdev driver=nbd,node-name=n,server.type=inet", State::Finding),
            ("-blockdev driver=raw,node-name=n,file.driver=file,file.filename=/a,cache.direct=on", State::Ok),
            ("-blockdev driver=raw,node-name=n,file.driver=file,file.filename=/a", State::Finding),
            (
                "-drive if=pflash,file=/OVMF.fd,format=raw -drive media=cdrom,file=/a.iso",
                State::NotApplicable,
            ),
            (
                "-blockdev driver=file,node-name=libvirt-pflash0-storage,filename=/OVMF.fd",
                State::NotApplicable,
            ),
            ("-drive", State::NotApplicable),
        ] {
            let (judged, said) = of(rest);
            assert_eq!(judged, state, "{rest}: {said}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_said() {
        assert!(of("-drive file=/a.raw,format=raw,cache=none").1.contains("cannot be seen from here"));
        assert!(!host().said(ID).contains("cannot be seen"));
        assert_eq!(of(&format!("-append {}", "x".repeat(20_000))).0, State::Unreadable);
        let many: String = (0..9).map(|n| format!("-drive file=/{n},format=qcow2,cache=none ")).collect();
        assert!(of(&many).1.ends_with("(5 more)"));
    }
}
