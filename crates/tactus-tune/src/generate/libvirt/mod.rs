//! A libvirt domain.

mod domain;
mod edit;
mod limits;
mod place;
mod settings;
#[cfg(test)]
mod tests;
mod threads;
mod tree;

pub use domain::patch;
pub use place::{Placed, place};
use tactus_audit::Arch;
pub use tree::Tree;

use super::comment::{Marks, header, xml_comment};
use super::{Accel, File, GenerateError, GenerateRequest, Generator, Output, Placement, Purpose, guest};

/// The entry of the table.
pub static ENTRY: Generator = Generator {
    name: "libvirt",
    about: "A libvirt domain of a real-time guest, following libvirt's own guide. Each vCPU is pinned to an isolated \
CPU of one NUMA node and runs with FIFO priority 1. Its other threads run on the housekeeping CPUs. Its memory is \
locked, in huge pages and on the same node. It has only the devices that it needs. With --patch tactus changes your \
domain instead, and leaves everything else in it byte for byte. With --accel tcg features that QEMU cannot emulate \
are left out.",
    purpose: Purpose::Guest,
    generate,
};

fn generate(request: &GenerateRequest<'_>) -> Result<Output, GenerateError> {
    let guest = settings::guest(request)?;
    let (arch, machine) = match request.subject.machine.as_str() {
        "x86_64" => ("x86_64", "q35"),
        "aarch64" => ("aarch64", "virt"),
        machine => return Err(GenerateError::Machine { what: "a domain", machine: machine.to_owned() }),
    };
    let name = &request.options.name;
    let mut notes = placement_notes(&guest.placement);
    if guest.accel == Accel::Tcg {
        notes.extend(settings::drops(request));
    }
    let line = guest::kernel_line(request, &guest.placement);
    let inside = format!("Inside the guest (guest-isolation), set on its kernel's command line: {line}");
    let slice = format!(
        "slice-cpus: if systemd limits machine.slice (AllowedCPUs=), it must allow {} and {}.",
        guest.placement.set(),
        guest.placement.emulator
    );
    let mut more = vec![inside, slice];
    more.extend(notes.iter().cloned());
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let mut text = header(
        request,
        Marks::Xml,
        "libvirt",
        &format!("edit the disk and the network, then virsh define {name}.xml and virsh start {name}"),
        &format!("virsh destroy {name}; virsh undefine {name}"),
        &more,
    );
    text += &skeleton(request, arch, machine, guest.placement.count());
    for setting in settings::settings(&guest) {
        edit::apply(&mut text, &setting).map_err(|reason| GenerateError::Domain {
            file: format!("{name}.xml"),
            reason,
            hint: "this is a bug in tactus".into(),
        })?;
    }
    let belongs = format!("libvirt (virsh define {name}.xml)");
    Ok(Output { files: vec![File { name: format!("{name}.xml"), belongs, mode: 0o644, text }], notes })
}

/// The parts of any guest, in the order in which libvirt writes them.
fn skeleton(request: &GenerateRequest<'_>, arch: &str, machine: &str, vcpus: usize) -> String {
    let name = &request.options.name;
    let x86 = request.subject.is(Arch::X86);
    // arm64's `virt` boots a disk by UEFI.
    let os = if x86 { "<os>" } else { "<os firmware='efi'>" };
    let apic = if x86 { "<apic/>" } else { "<gic version='3'/>" };
    let console =
        xml_comment("    ", "console-logging: for emergencies; the guest's kernel should print little on it");
    let disk = xml_comment("    ", "disk-image: raw, fully allocated, on a local disk");
    let net = xml_comment(
        "    ",
        "io-path: vhost runs in the host's kernel. A passed-through device (hostdev, vfio-passthrough) is better",
    );
    let queues = vcpus.clamp(1, 8);
    format!(
        "<domain type='kvm'>
  <name>{name}</name>
  {os}
    <type arch='{arch}' machine='{machine}'>hvm</type>
    <boot dev='hd'/>
  </os>
  <features>
    <acpi/>
    {apic}
  </features>
  <clock offset='utc'/>
  <devices>
{disk}    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='none' io='native' iothread='1'/>
      <source file='/var/lib/libvirt/images/{name}.raw'/>
      <target dev='vda' bus='virtio'/>
    </disk>
{net}    <interface type='network'>
      <source network='default'/>
      <model type='virtio'/>
      <driver name='vhost' queues='{queues}'/>
    </interface>
{console}    <console type='pty'/>
  </devices>
</domain>
"
    )
}

/// Notes on the placement of the guest.
pub(super) fn placement_notes(placement: &Placement) -> Vec<String> {
    let mut notes = Vec::new();
    if !placement.idle.is_empty() {
        notes.push(format!(
            "smt: CPUs {} are sibling threads of the vCPUs' CPUs and must stay idle; better turn SMT off",
            placement.idle
        ));
    }
    notes.extend(placement.mixture());
    if placement.threads > 1 {
        notes.push(
            "smt: two vCPUs share each core and slow each other; use at most one vCPU per isolated core, or turn SMT \
off"
                .into(),
        );
    }
    notes
}
