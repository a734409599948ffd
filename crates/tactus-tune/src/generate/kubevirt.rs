//! KubeVirt: a real-time virtual machine.

use tactus_audit::Arch;

use super::comment::{Marks, comment, header};
use super::kubernetes::annotations;
use super::{File, GenerateError, GenerateRequest, Generator, Output, Page, Purpose, guest};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "kubevirt",
    about: "A VirtualMachine (kubevirt.io/v1) of a real-time guest. It has dedicated CPUs, an isolated emulator \
thread, FIFO vCPUs except the first, huge pages, and the host's NUMA node. It needs nodes whose kubelet gives whole \
CPUs (generate kubernetes).",
    purpose: Purpose::Guest,
    generate,
};

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let placement = request.placement(2)?;
    let (memory, page) = request.memory()?;
    let name = &request.options.name;
    let mut notes = vec![format!(
        "emulator-pin: isolateEmulatorThread takes one CPU more than the {} vCPUs: the node must have {} free in one NUMA node",
        placement.count(),
        placement.count() + 1
    )];
    notes.extend(placement.scheduled());
    if request.options.accel == Some(super::Accel::Tcg) {
        notes.push("real-time machines need KVM: KubeVirt's emulation (useEmulation) has no realtime".into());
    }
    let inside = format!(
        "guest-isolation: set on the command line of the guest's kernel: {}",
        guest::kernel_line(request, &placement)
    );
    let mut text = header(
        request,
        Marks::Hash,
        "kubevirt",
        &format!("put in your disk, then kubectl apply -f {name}-vm.yaml"),
        &format!("kubectl delete virtualmachine {name}"),
        &[
            &inside,
            "KubeVirt needs the feature gates CPUManager and NUMA if they are off by default, and nodes labelled \
cpumanager=true and kubevirt.io/realtime.",
            "KubeVirt passes the annotations to the virt-launcher pod. They belong to CRI-O, and need its runtime \
class: defaultRuntimeClass: performance-tactus in the KubeVirt resource's configuration; containerd ignores them.",
            "mem-lock, mem-prealloc-nomerge, vpmu-off: KubeVirt sets these by default for realtime.",
        ],
    );
    let line = |indent: &str, check: &str, why: &str, line: &str| {
        comment(indent, &format!("{check}: {why}")) + indent + line + "\n"
    };
    text += &format!(
        "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: {name}\nspec:\n  runStrategy: Always\n  template:\n    metadata:\n      annotations:\n"
    );
    text += &annotations("        ");
    text += "    spec:\n      domain:\n        cpu:\n";
    let threads = placement.threads;
    text += &format!(
        "          sockets: 1\n          cores: {}\n          threads: {threads}\n",
        placement.count() / threads
    );
    let i = "          ";
    text += &line(
        i,
        "cpu-passthrough",
        "no emulated features. No migration to other processors",
        "model: host-passthrough",
    );
    text += &line(i, "vcpu-pin", "a dedicated CPU for each vCPU", "dedicatedCpuPlacement: true");
    text += &line(i, "emulator-pin", "and one for QEMU's other threads", "isolateEmulatorThread: true");
    if page != Page::Base {
        text += &line(
            i,
            "numa-locality",
            "the guest sees the node of its CPUs and memory; it needs huge pages",
            "numa:",
        );
        text += "            guestMappingPassthrough: {}\n";
    }
    text += &line(
        i,
        "vcpu-fifo",
        "FIFO vCPUs, except those for housekeeping inside: virt-launcher's own threads may share their CPUs",
        "realtime:",
    );
    text += &format!("            mask: \"{}\"\n", placement.realtime());
    if request.subject.is(Arch::X86) {
        text += &line(i, "guest-tsc-deadline", "a timer is one write of a register", "features:");
        text += "            - name: tsc-deadline\n              policy: require\n";
        text += &line("        ", "hpet", "the guest cannot fall back to a slow clock", "clock:");
        text += "          utc: {}\n          timer:\n            hpet:\n              present: false\n";
    }
    text += "        memory:\n";
    text += &format!("          guest: {memory}i\n");
    if page != Page::Base {
        text += &line(i, "guest-hugepages", "reserved at boot on the node", "hugepages:");
        text += &format!("            pageSize: {}i\n", page.word());
    }
    text += &line("        ", "iothread-pin", "a separate thread serves the disks", "ioThreadsPolicy: auto");
    text += "        devices:\n";
    text += &line(i, "no-extra-devices", "memory stays allocated", "autoattachMemBalloon: false");
    text += &line(i, "no-extra-devices", "no screen", "autoattachGraphicsDevice: false");
    text += &comment(i, "io-path, disk-image: virtio; a block volume on a local disk is best");
    text += "          disks:\n            - name: root\n              cache: none\n              disk:\n                bus: virtio\n";
    text += &format!(
        "      volumes:\n        - name: root\n          persistentVolumeClaim:\n            claimName: {name}\n"
    );
    Ok(Output {
        files: vec![File {
            name: format!("{name}-vm.yaml"),
            belongs: format!("kubectl apply -f {name}-vm.yaml"),
            mode: 0o644,
            text,
        }],
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{shown, three};
    use super::ENTRY;

    #[test]
    fn the_machine_of_each_machine() {
        for (name, machine) in three() {
            insta::assert_snapshot!(format!("kubevirt_{name}"), shown(&machine.generate(&ENTRY).unwrap()));
        }
    }
}
