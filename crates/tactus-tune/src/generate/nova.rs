//! OpenStack Nova: a flavor, and the part of a compute host's configuration that it needs.

use tactus_audit::Arch;
use tactus_model::text::quoted;

use super::comment::{Marks, comment, header};
use super::{File, GenerateError, GenerateRequest, Generator, Output, Page, Placement, Purpose, guest};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "nova",
    about: "A script that creates a flavor of real-time instances, and a drop-in for the compute host's nova.conf \
with its dedicated and shared CPUs. The flavor has dedicated CPUs, FIFO vCPUs except the first, emulator threads on \
the shared CPUs, huge pages and one NUMA node.",
    purpose: Purpose::Guest,
    generate,
};

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let placement = request.placement(2)?;
    let (memory, page) = request.memory()?;
    let name = &request.options.name;
    // cpu_thread_policy=isolate: each vCPU has a core, however the CPUs lie.
    let placement = Placement { threads: 1, ..placement };
    let line = guest::kernel_line(request, &placement);
    let mut notes: Vec<String> = placement.scheduled().into_iter().collect();
    if request.subject.topology.cores.iter().any(|core| core.len() > 1) {
        notes.push(
            "smt: with hardware threads on, hw:cpu_thread_policy=isolate leaves each sibling idle, so a flavor takes \
two CPUs per vCPU; better turn SMT off"
                .to_owned(),
        );
    }
    if request.options.accel == Some(super::Accel::Tcg) {
        notes.push("real-time instances need KVM: virt_type stays kvm here".into());
    }

    let inside = format!("guest-isolation: set on the command line of the image's kernel: {line}");
    let mut flavor = "#!/bin/sh\n".to_owned();
    flavor += &header(
        request,
        Marks::Hash,
        "nova",
        &format!("with an administrator's credentials: ./{name}-flavor.sh"),
        &format!("openstack flavor delete {name}"),
        &[&inside],
    );
    flavor += &format!(
        "set -eu\n\nopenstack flavor create --vcpus {} --ram {} --disk \"${{DISK:-20}}\" {name}\n",
        placement.count(),
        memory.mib()
    );
    let mask = placement.keeps_house();
    let size = match page {
        Page::G1 => "1GB",
        Page::M2 => "2MB",
        Page::Base => "small",
    };
    let mut specs = vec![
        ("hw:cpu_policy", "dedicated".to_owned(), "vcpu-pin", "a CPU of cpu_dedicated_set for each vCPU"),
        (
            "hw:cpu_realtime",
            "yes".to_owned(),
            "vcpu-fifo",
            "FIFO vCPUs; Nova then also locks the memory and stops page merging (mem-lock)",
        ),
        (
            "hw:cpu_realtime_mask",
            format!("^{mask}"),
            "guest-isolation",
            "all vCPUs except those for housekeeping inside. Nova needs one that is not FIFO: emulator threads may \
share its CPU if the policy is not `share`",
        ),
        (
            "hw:emulator_threads_policy",
            "share".to_owned(),
            "emulator-pin",
            "emulator threads on cpu_shared_set, without which the instance is not scheduled. `isolate` takes one \
more CPU",
        ),
        (
            "hw:cpu_thread_policy",
            "isolate".to_owned(),
            "smt",
            "no two vCPUs on one core, and no other work beside them",
        ),
        (
            "hw:mem_page_size",
            size.to_owned(),
            "guest-hugepages",
            "reserved at boot on the compute host (generate grub)",
        ),
        ("hw:numa_nodes", "1".to_owned(), "numa-locality", "CPUs and memory of one node"),
        (
            "hw:pci_numa_affinity_policy",
            "required".to_owned(),
            "numa-locality",
            "passed-through devices of the same node",
        ),
    ];
    if request.subject.is(Arch::X86) || request.subject.is(Arch::Arm64) {
        specs.push(("hw:pmu", "false".to_owned(), "vpmu-off", "no counters to switch; no perf inside"));
    }
    for (key, value, check, why) in specs {
        flavor += &comment("", &format!("{check}: {why}"));
        flavor += &format!("openstack flavor set --property {} {name}\n", quoted(&format!("{key}={value}")));
    }

    let mut conf = header(
        request,
        Marks::Hash,
        "nova",
        "put it in /etc/nova/nova.conf.d/50-tactus.conf on the compute host (empty of instances), restart \
nova-compute",
        "remove it, restart nova-compute",
        &["housekeeping: the host's own CPUs come from its boot parameters (generate grub), not from here."],
    );
    conf += "\n[compute]\n";
    conf +=
        &comment("", "vcpu-pin: the isolated CPUs. It cannot be changed while instances run on this host");
    conf += &format!("cpu_dedicated_set = {}\n", request.subject.isolated());
    conf +=
        &comment("", "emulator-pin: for emulator threads, and for vCPUs of instances without dedicated CPUs");
    conf += &format!("cpu_shared_set = {}\n\n[libvirt]\n", placement.housekeeping);
    conf += "virt_type = kvm\n";
    conf +=
        &comment("", "cpu-passthrough: no emulated features. Live migration only between equal processors");
    conf += "cpu_mode = host-passthrough\n";
    conf += &comment("", "vcpu-fifo, rt-priority-ceiling: above ordinary threads, below all kernel threads");
    conf += "realtime_scheduler_priority = 1\n";

    Ok(Output {
        files: vec![
            File {
                name: format!("{name}-flavor.sh"),
                belongs: format!("anywhere with the openstack client: ./{name}-flavor.sh"),
                mode: 0o755,
                text: flavor,
            },
            File {
                name: "50-tactus.conf".into(),
                belongs: "/etc/nova/nova.conf.d/50-tactus.conf".into(),
                mode: 0o644,
                text: conf,
            },
        ],
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{shown, three};
    use super::ENTRY;

    #[test]
    fn the_flavor_of_each_machine() {
        for (name, machine) in three() {
            insta::assert_snapshot!(format!("nova_{name}"), shown(&machine.generate(&ENTRY).unwrap()));
        }
    }
}
